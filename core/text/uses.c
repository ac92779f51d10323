#include "core/text/uses.h"

#include "core/text/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USES_KEY = 136 }; /* "env." and the longest name of a variable */

static const struct shk_use *uses_rows, *uses_own;
static size_t uses_count, uses_own_count;
static char (*uses_keys)[USES_KEY];       /* of the fact of each row's first variable */
static const struct shk_use **uses_order; /* by name; of the same name the first one first */

static int uses_by_name(const void *pa, const void *pb)
{
    const struct shk_use *a = *(const struct shk_use *const *)pa,
                         *b = *(const struct shk_use *const *)pb;
    int side = strcmp(a->name, b->name);
    return side ? side : a < b ? -1 : a > b;
}

void shk_uses_install(const struct shk_use *rows, size_t count)
{
    uses_rows = rows;
    uses_count = count;
    if (!uses_own) {
        uses_own = rows;
        uses_own_count = count;
    }
    free(uses_keys);
    uses_keys = calloc(count ? count : 1, sizeof *uses_keys);
    for (size_t i = 0; uses_keys && i < count; i++)
        if (rows[i].variables && rows[i].variables[0])
            snprintf(uses_keys[i], sizeof uses_keys[i], "env.%s", rows[i].variables[0]);
    free(uses_order);
    uses_order = calloc(count ? count : 1, sizeof *uses_order);
    for (size_t i = 0; uses_order && i < count; i++)
        uses_order[i] = &rows[i];
    if (uses_order && count)
        qsort(uses_order, count, sizeof *uses_order, uses_by_name);
}

const struct shk_use *shk_use_find(const char *name)
{
    for (size_t i = 0; !uses_order && i < uses_count; i++)
        if (strcmp(uses_rows[i].name, name) == 0)
            return &uses_rows[i];
    size_t low = 0, high = uses_order ? uses_count : 0;
    while (low < high) { /* the first that is not before the name */
        size_t middle = low + (high - low) / 2;
        if (strcmp(uses_order[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return uses_order && low < uses_count && strcmp(uses_order[low]->name, name) == 0
               ? uses_order[low]
               : NULL;
}

static const struct shk_use *uses_next(const struct shk_use *rows, size_t count, const char *prefix,
                                       size_t *at)
{
    while (*at < count) {
        const struct shk_use *use = &rows[(*at)++];
        if (strncmp(use->name, prefix, strlen(prefix)) == 0)
            return use;
    }
    return NULL;
}

const struct shk_use *shk_use_next(const char *prefix, size_t *at)
{
    return uses_next(uses_rows, uses_count, prefix, at);
}

const struct shk_use *shk_use_next_own(const char *prefix, size_t *at)
{
    return uses_next(uses_own, uses_own_count, prefix, at);
}

const char *const *shk_variables(const char *use)
{
    static const char *const none[] = {NULL};
    const struct shk_use *row = shk_use_find(use);
    return row && row->variables ? row->variables : none;
}

const char *shk_variable(const char *use)
{
    const char *first = shk_variables(use)[0];
    return first ? first : "";
}

const char *shk_variable_fact(const char *use)
{
    const struct shk_use *row = shk_use_find(use);
    return row && uses_keys ? uses_keys[row - uses_rows] : "";
}

char *shk_uses_expand(const char *text)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    for (const char *open; (open = strchr(text, '{')); text = open) {
        char name[64];
        size_t len = strcspn(open + 1, "{}");
        shk_strbuf_add(&out, text, (size_t)(open - text));
        snprintf(name, sizeof name, "%.*s", (int)len, open + 1);
        const char *variable = open[1 + len] == '}' ? shk_variable(name) : "";
        shk_strbuf_puts(&out, *variable ? variable : "{");
        open += *variable ? len + 2 : 1;
    }
    shk_strbuf_puts(&out, text);
    return shk_strbuf_take(&out);
}

bool shk_variable_has(const char *use, const char *variable)
{
    for (const char *const *v = shk_variables(use); *v; v++) {
        size_t len = strlen(*v);
        bool prefix = len && (*v)[len - 1] == '_';
        if (prefix ? strncmp(variable, *v, len) == 0 : strcmp(variable, *v) == 0)
            return true;
    }
    return false;
}
