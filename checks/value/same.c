/* Do two texts of a value mean the same? */
#include "checks/value/grammar.h"
#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int bool_value(const char *text)
{
    static const char *const no[] = {"0", "false", "no", "off", NULL};
    static const char *const yes[] = {"1", "true", "yes", "on", NULL};
    for (size_t i = 0; no[i]; i++) {
        if (strcasecmp(text, no[i]) == 0)
            return 0;
        if (strcasecmp(text, yes[i]) == 0)
            return 1;
    }
    return -1;
}

static bool number(const char *text, long long *value_p)
{
    char *end;
    *value_p = strtoll(text, &end, 0);
    return end != text && *end == '\0';
}

static bool has_item(const char *list, char separator, const char *item, size_t item_len,
                     bool ignore_case)
{
    const char *start;
    size_t len;
    while (shk_grammar_item(&list, separator, &start, &len))
        if (len == item_len &&
            (ignore_case ? strncasecmp(start, item, len) : strncmp(start, item, len)) == 0)
            return true;
    return false;
}

static bool covers(const char *list, const char *items, char separator, bool ignore_case)
{
    const char *start;
    size_t len;
    while (shk_grammar_item(&items, separator, &start, &len))
        if (!has_item(list, separator, start, len, ignore_case))
            return false;
    return true;
}

static bool lists_equal(const char *a, const char *b, char separator, bool ignore_case)
{
    return covers(a, b, separator, ignore_case) && covers(b, a, separator, ignore_case);
}

static bool names_equal(const char *a, const char *b)
{
    bool ax, ae, bx, be;
    a = shk_grammar_list_body(a, &ax, &ae);
    b = shk_grammar_list_body(b, &bx, &be);
    return ax == bx && ae == be && lists_equal(a, b, ',', false);
}

bool shk_grammar_same(const struct shk_grammar *g, const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return true;
    long long x, y;
    switch (g->type) {
    case SHK_VALUE_BOOL: return bool_value(a) >= 0 && bool_value(a) == bool_value(b);
    case SHK_VALUE_FLAG: return true;
    case SHK_VALUE_INT:
        if (number(a, &x) && number(b, &y))
            return x == y;
        return g->ignore_case && strcasecmp(a, b) == 0;
    case SHK_VALUE_LIST:
        return lists_equal(a, b, g->separator ? g->separator : ',', g->ignore_case);
    case SHK_VALUE_INTERFACES:
    case SHK_VALUE_HCAS: return names_equal(a, b);
    case SHK_VALUE_DEVICES: return false;
    default: return g->ignore_case && strcasecmp(a, b) == 0;
    }
}
