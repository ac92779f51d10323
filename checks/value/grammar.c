#include "checks/value/grammar.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_VALUES = 64 };

/* What libfabric's boolean parser knows (src/var.c); order: the false ones first. */
static const char *const bools[] = {"0", "false", "no", "off", "1", "true", "yes", "on", NULL};
enum { BOOLS_FALSE = 4 };

/* Takes over `text` (from shk_strf) as the reason. Always returns false. */
static bool judge(struct shk_judged *judged, enum shk_judgement judgement, char *text)
{
    judged->judgement = judgement;
    if (text) {
        strncpy(judged->why, text, sizeof(judged->why) - 1);
        judged->why[sizeof(judged->why) - 1] = '\0';
    }
    free(text);
    return false;
}

static void suggest(struct shk_judged *judged, const char *value)
{
    if (!value || strlen(value) >= sizeof(judged->suggestion))
        return;
    strcpy(judged->suggestion, value);
}

static bool same_text(const struct shk_grammar *g, const char *a, const char *b)
{
    return (g->ignore_case ? strcasecmp(a, b) : strcmp(a, b)) == 0;
}

static bool in_list(const struct shk_grammar *g, const char *const *list, const char *value)
{
    for (; list && *list; list++)
        if (same_text(g, *list, value))
            return true;
    return false;
}

static size_t list_length(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* All allowed values in one text, cut when there are many. */
static char *list_text(const char *const *list)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; list && list[i]; i++) {
        if (sb.len > 90) {
            shk_strbuf_puts(&sb, ", …");
            break;
        }
        shk_strbuf_printf(&sb, "%s%s", i ? ", " : "", list[i]);
    }
    return shk_strbuf_take(&sb);
}

/* Every one-letter word is near every other: no suggestion for those. */
static const char *near_value(const char *value, const char *const *list)
{
    return strlen(value) > 1 ? shk_nearest(value, list, list_length(list)) : NULL;
}

static bool not_a_value(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    if (g->values && strcmp(g->values[0], "(unset)") == 0)
        return judge(judged, SHK_VALUE_WRONG, shk_strf("it must not be set at all"));
    suggest(judged, near_value(value, g->values));
    char *allowed = list_text(g->values);
    bool ok = judge(judged, SHK_VALUE_WRONG,
                    shk_strf("\"%.60s\" is not one of the values it knows (%s)", value,
                             allowed ? allowed : ""));
    free(allowed);
    return ok;
}

static bool known_wrong(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    if (!in_list(g, g->wrong, value))
        return true;
    char *allowed = g->values ? list_text(g->values) : NULL;
    judge(judged, SHK_VALUE_WRONG,
          allowed
              ? shk_strf("\"%.60s\" looks right but is not a value of this setting; it takes %s",
                         value, allowed)
              : shk_strf("\"%.60s\" looks right but does not do what it says", value));
    free(allowed);
    return false;
}

static bool judge_enum(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    if (g->negation && *value == '^')
        value++;
    if (!known_wrong(g, value, judged))
        return false;
    if (!g->values || in_list(g, g->values, value))
        return true;
    return not_a_value(g, value, judged);
}

static bool judge_bool(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    for (const char *const *b = bools; *b; b++)
        if (strcasecmp(*b, value) == 0)
            return true;
    if (g->values && in_list(g, g->values, value))
        return true;
    suggest(judged, near_value(value, bools));
    return judge(judged, SHK_VALUE_WRONG,
                 shk_strf("\"%.60s\" is not a boolean (0/1, on/off, true/false, yes/no), so the "
                          "default stays",
                          value));
}

static bool judge_flag(const char *value, struct shk_judged *judged)
{
    if (strcmp(value, "0") != 0 && *value && strcasecmp(value, "off") != 0 &&
        strcasecmp(value, "no") != 0 && strcasecmp(value, "false") != 0)
        return true;
    return judge(judged, SHK_VALUE_ODD,
                 shk_strf("only its presence counts: \"%.20s\" switches it on as well", value));
}

static bool judge_range(const struct shk_grammar *g, long long n, struct shk_judged *judged)
{
    if (g->has_min && n < g->min)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("%lld is below the smallest allowed value, %lld", n, g->min));
    if (g->has_max && n > g->max)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("%lld is above the largest allowed value, %lld", n, g->max));
    return true;
}

/* "16k": what people mean by the suffix, for the suggestion. 0: not a size suffix. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "kmgt";
    const char *at = *suffix ? strchr(letters, tolower((unsigned char)*suffix)) : NULL;
    if (!at)
        return 0;
    const char *rest = suffix + 1;
    if (*rest && strcasecmp(rest, "b") != 0 && strcasecmp(rest, "ib") != 0)
        return 0;
    return 10 * (int)(at - letters + 1);
}

static bool judge_tail(const char *value, long long n, const char *end, struct shk_judged *judged)
{
    int shift = suffix_shift(end);
    if (shift && n >= 0 && n <= LLONG_MAX >> shift) {
        char *meant = shk_strf("%lld", n << shift);
        suggest(judged, meant);
        free(meant);
    }
    char *read = shk_strf("%lld", n);
    if (read && strlen(read) < sizeof(judged->effective))
        strcpy(judged->effective, read);
    free(read);
    return judge(
        judged, SHK_VALUE_WRONG,
        shk_strf("\"%.60s\" is read as %lld: what follows the digits is ignored", value, n));
}

static bool judge_int(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    if (!known_wrong(g, value, judged))
        return false;
    if (g->values && in_list(g, g->values, value))
        return true;
    bool decimal = g->int_parser == SHK_INT_DECIMAL;
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, decimal ? 10 : 0);
    if (end == value) {
        if (g->values)
            return not_a_value(g, value, judged);
        if (!decimal)
            strcpy(judged->effective, "0");
        return judge(judged, SHK_VALUE_WRONG,
                     decimal ? shk_strf("\"%.60s\" is not a number", value)
                             : shk_strf("\"%.60s\" is not a number, and is read as 0", value));
    }
    if (errno == ERANGE)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("%.60s is too large a number%s", value,
                              g->int_parser == SHK_INT_NCCL ? ", so the default stays" : ""));
    if (*end)
        return judge_tail(value, n, end, judged);
    if (!judge_range(g, n, judged))
        return false;
    const char *digits = value + strspn(value, "+- ");
    if (!decimal && digits[0] == '0' && isdigit((unsigned char)digits[1]))
        return judge(judged, SHK_VALUE_ODD,
                     shk_strf("a leading 0 makes \"%.40s\" octal: it is read as %lld", value, n));
    return true;
}

static bool judge_size(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    char *end;
    if (!known_wrong(g, value, judged))
        return false;
    if (g->values && in_list(g, g->values, value))
        return true;
    errno = 0;
    double number = strtod(value, &end);
    int shift = *end ? suffix_shift(end) : 0;
    if (end == value || (*end && !shift))
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("\"%.60s\" is not a size (digits, then k, m, g or t)", value));
    double bytes = number * (double)(1ULL << shift);
    if (errno == ERANGE || bytes < 0 || bytes >= 9.2e18)
        return judge(judged, SHK_VALUE_WRONG, shk_strf("%.60s is no possible size", value));
    return judge_range(g, (long long)bytes, judged);
}

bool shk_word_is_one_of(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcasecmp(*words, word) == 0)
            return true;
    return false;
}

bool shk_grammar_item(const char **pos_p, char separator, const char **start_p, size_t *len_p)
{
    if (!*pos_p)
        return false;
    const char *start = *pos_p, *end = strchr(start, separator);
    *start_p = start;
    *len_p = end ? (size_t)(end - start) : strlen(start);
    *pos_p = end ? end + 1 : NULL;
    return true;
}

static bool judge_item(const struct shk_grammar *g, const char *start, size_t len,
                       struct shk_judged *judged)
{
    char item[128];
    if (len == 0)
        return judge(judged, SHK_VALUE_ODD, shk_strf("the list has an empty element"));
    if (len >= sizeof(item))
        return judge(judged, SHK_VALUE_WRONG, shk_strf("an element of the list is too long"));
    memcpy(item, start, len);
    item[len] = '\0';
    const char *word = item;
    if (!g->values && !g->wrong)
        return true;
    if (g->negation && *word == '^')
        word++;
    if (!known_wrong(g, word, judged))
        return false;
    if (!g->values || in_list(g, g->values, word))
        return true;
    char *trimmed = shk_trim(item);
    if (strcmp(trimmed, word) != 0 && in_list(g, g->values, trimmed)) {
        suggest(judged, trimmed);
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("the blank next to \"%s\" is taken as part of the element", trimmed));
    }
    return not_a_value(g, word, judged);
}

/* A separator that belongs to other lists: "a;b" where ',' separates. */
static char wrong_separator(const struct shk_grammar *g, const char *value, char separator)
{
    static const char others[] = ",;:| ";
    for (const char *o = others; *o; o++) {
        if (*o == separator || !strchr(value, *o) || strchr(value, separator))
            continue;
        char head[128];
        size_t len = strcspn(value, (char[]){*o, '\0'});
        if (len == 0 || len >= sizeof(head))
            continue;
        memcpy(head, value, len);
        head[len] = '\0';
        if (in_list(g, g->values, *head == '^' ? head + 1 : head))
            return *o;
    }
    return '\0';
}

/* Turns the suggestion for one element into one for the whole value. */
static void suggest_list(const char *value, const char *start, size_t len,
                         struct shk_judged *judged)
{
    if (!judged->suggestion[0])
        return;
    if (len && *start == '^')
        start++, len--;
    char *whole =
        shk_strf("%.*s%s%s", (int)(start - value), value, judged->suggestion, start + len);
    judged->suggestion[0] = '\0';
    suggest(judged, whole);
    free(whole);
}

static bool judge_list(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    char separator = g->separator ? g->separator : ',';
    char other = g->values ? wrong_separator(g, value, separator) : '\0';
    if (other) {
        char fixed[sizeof(judged->suggestion)];
        strncpy(fixed, value, sizeof(fixed) - 1);
        fixed[sizeof(fixed) - 1] = '\0';
        for (char *p = fixed; *p; p++)
            if (*p == other)
                *p = separator;
        suggest(judged, fixed);
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("the elements are separated by '%c', not by '%c'", separator, other));
    }
    const char *pos = value, *start;
    size_t len;
    while (shk_grammar_item(&pos, separator, &start, &len))
        if (!judge_item(g, start, len, judged)) {
            suggest_list(value, start, len, judged);
            return false;
        }
    return true;
}

const char *shk_grammar_list_body(const char *value, bool *exclude_p, bool *exact_p)
{
    *exclude_p = *value == '^';
    if (*exclude_p)
        value++;
    *exact_p = *value == '=';
    if (*exact_p)
        value++;
    return value;
}

static bool judge_names(const char *value, bool ports, struct shk_judged *judged)
{
    bool exclude, exact;
    const char *body = shk_grammar_list_body(value, &exclude, &exact);
    judged->diagnosis = ports ? "wrong-hca-selected" : "socket-ifname-bad-syntax";
    if (strncmp(value, "=^", 2) == 0)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("'^' must come before '=': here it is taken as part of a name"));
    const char *bad = strpbrk(body, " \t;|*?()[]{}\"'!");
    if (bad)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("'%c' is taken as part of a name: names are separated by ',' alone, "
                              "and there are no patterns",
                              *bad));
    if (strpbrk(body, "^="))
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("'^' and '=' count only once, in front of the whole list"));
    const char *pos = body, *start;
    size_t len;
    while (shk_grammar_item(&pos, ',', &start, &len))
        if (len == 0)
            return judge(judged, SHK_VALUE_ODD, shk_strf("the list has an empty element"));
        else if (ports && memchr(start, '/', len))
            return judge(judged, SHK_VALUE_WRONG,
                         shk_strf("a port follows the device after ':', not '/'"));
    judged->diagnosis = NULL;
    return true;
}

static bool judge_path(const char *value, struct shk_judged *judged)
{
    if (*value == '~')
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("'~' is not expanded by the library: no such directory"));
    if (strchr(value, '$'))
        return judge(
            judged, SHK_VALUE_WRONG,
            shk_strf("\"%.60s\" still holds a shell variable, which nobody expands", value));
    return true;
}

static bool judge_paths(const char *value, struct shk_judged *judged)
{
    const char *pos = value, *start;
    size_t len;
    while (shk_grammar_item(&pos, ':', &start, &len)) {
        if (len == 0)
            return judge(judged, SHK_VALUE_ODD,
                         shk_strf("an empty element means the current directory"));
        if (*start == '~')
            return judge(
                judged, SHK_VALUE_WRONG,
                shk_strf("'~' in \"%.*s\" is not expanded", (int)(len < 60 ? len : 60), start));
        if (memchr(start, '$', len) && strncmp(start, "$ORIGIN", 7) != 0 &&
            strncmp(start, "${ORIGIN", 8) != 0)
            return judge(judged, SHK_VALUE_WRONG,
                         shk_strf("\"%.*s\" still holds a shell variable, which nobody expands",
                                  (int)(len < 60 ? len : 60), start));
        if (*start != '/' && *start != '$' && *start != '@' && *start != '+')
            return judge(judged, SHK_VALUE_ODD,
                         shk_strf("\"%.*s\" is relative: it changes with the working directory",
                                  (int)(len < 60 ? len : 60), start));
    }
    return true;
}

static bool judge_host_port(const char *value, struct shk_judged *judged)
{
    const char *colon = strrchr(value, ':');
    if (*value == '[') {
        const char *close = strchr(value, ']');
        if (!close || close[1] != ':')
            return judge(judged, SHK_VALUE_WRONG,
                         shk_strf("\"%.60s\" is not [address]:port", value));
        colon = close + 1;
    }
    if (!colon || colon == value)
        return judge(judged, SHK_VALUE_WRONG, shk_strf("\"%.60s\" is not host:port", value));
    if (*value != '[' && memchr(value, ':', (size_t)(colon - value)))
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("an IPv6 address needs brackets: [address]:port"));
    if (strstr(value, "://"))
        return judge(judged, SHK_VALUE_WRONG, shk_strf("host:port, not a URL"));
    char *end;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || port < 1 || port > 65535)
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("\"%.20s\" is not a port number (1 to 65535)", colon + 1));
    if (strpbrk(value, " \t"))
        return judge(judged, SHK_VALUE_WRONG, shk_strf("a blank is not part of a host name"));
    return true;
}

/* One element of a device mask. */
static bool device_ok(const char *start, size_t len)
{
    if (len > 4 && (strncasecmp(start, "GPU-", 4) == 0 || strncasecmp(start, "MIG-", 4) == 0))
        return true;
    size_t digits = strspn(start, "0123456789");
    if (digits == 0)
        return false;
    if (digits >= len)
        return true;
    if (start[digits] != '-')
        return false;
    size_t more = strspn(start + digits + 1, "0123456789");
    return more && digits + 1 + more == len;
}

static bool judge_devices(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    const char *pos = value, *start;
    size_t len;
    unsigned long long seen = 0;
    if (g->values && in_list(g, g->values, value))
        return true;
    if (strcasecmp(value, "all") == 0 || strcmp(value, "-1") == 0 ||
        strcasecmp(value, "NoDevFiles") == 0 || strcasecmp(value, "none") == 0)
        return judge(judged, SHK_VALUE_ODD,
                     shk_strf("\"%.20s\" is no list of devices: everything is hidden", value));
    while (shk_grammar_item(&pos, ',', &start, &len)) {
        while (len && isspace((unsigned char)*start))
            start++, len--;
        if (!device_ok(start, len))
            return judge(judged, SHK_VALUE_WRONG,
                         shk_strf("\"%.*s\" is not an index, range or UUID, so it and all that "
                                  "follows is hidden",
                                  (int)(len < 40 ? len : 40), start));
        long index = isdigit((unsigned char)*start) ? strtol(start, NULL, 10) : -1;
        if (index < 0 || index > 63)
            continue;
        if (seen >> index & 1)
            return judge(judged, SHK_VALUE_WRONG,
                         shk_strf("device %ld is named twice, so no device is visible", index));
        seen |= 1ULL << index;
    }
    return true;
}

/* Problems that no grammar of a single setting has to know about. */
static bool judge_whole(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    size_t len = strlen(value);
    if (len >= 2 && (value[0] == '\'' || value[0] == '"') && value[len - 1] == value[0]) {
        char inner[sizeof(judged->suggestion)];
        if (len - 2 < sizeof(inner)) {
            memcpy(inner, value + 1, len - 2);
            inner[len - 2] = '\0';
            suggest(judged, inner);
        }
        judged->diagnosis = "env-value-quoted";
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("the quotation marks are part of the value (%.60s)", value));
    }
    if (len && (value[len - 1] == '\r' || value[len - 1] == '\n')) {
        judged->diagnosis = "env-value-quoted";
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("the value ends with a line end, as from a file with DOS lines"));
    }
    if (strstr(value, "\xe2\x80\x9c") || strstr(value, "\xe2\x80\x9d") ||
        strstr(value, "\xe2\x80\x99") || strstr(value, "\xe2\x80\x93")) {
        judged->diagnosis = "env-value-quoted";
        return judge(judged, SHK_VALUE_WRONG,
                     shk_strf("the value holds typographic characters, as pasted from a web page"));
    }
    if (!len && g->empty)
        return false;
    if (!len && g->type != SHK_VALUE_FLAG)
        return judge(judged, SHK_VALUE_ODD, shk_strf("set, but empty"));
    if (len && g->type != SHK_VALUE_STRING && g->type != SHK_VALUE_LIST &&
        (isspace((unsigned char)value[0]) || isspace((unsigned char)value[len - 1])) &&
        g->type != SHK_VALUE_INT)
        return judge(judged, SHK_VALUE_WRONG, shk_strf("a blank at the edge is part of the value"));
    return true;
}

static bool judge_string(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    return known_wrong(g, value, judged);
}

void shk_grammar_judge(const struct shk_grammar *g, const char *value, struct shk_judged *judged)
{
    *judged = (struct shk_judged){.judgement = SHK_VALUE_OK};
    if (!judge_whole(g, value, judged))
        return;
    switch (g->type) {
    case SHK_VALUE_BOOL: (void)judge_bool(g, value, judged); break;
    case SHK_VALUE_FLAG: (void)judge_flag(value, judged); break;
    case SHK_VALUE_INT: (void)judge_int(g, value, judged); break;
    case SHK_VALUE_SIZE: (void)judge_size(g, value, judged); break;
    case SHK_VALUE_ENUM: (void)judge_enum(g, value, judged); break;
    case SHK_VALUE_LIST: (void)judge_list(g, value, judged); break;
    case SHK_VALUE_INTERFACES: (void)judge_names(value, false, judged); break;
    case SHK_VALUE_HCAS: (void)judge_names(value, true, judged); break;
    case SHK_VALUE_PATH: (void)judge_path(value, judged); break;
    case SHK_VALUE_PATHS: (void)judge_paths(value, judged); break;
    case SHK_VALUE_HOST_PORT: (void)judge_host_port(value, judged); break;
    case SHK_VALUE_DEVICES: (void)judge_devices(g, value, judged); break;
    case SHK_VALUE_STRING:
    case SHK_VALUE_COUNT: (void)judge_string(g, value, judged); break;
    }
}
