#include "core/text/uses.h"

#include <string.h>

static const struct shk_use *uses_rows;
static size_t uses_count;

void shk_uses_install(const struct shk_use *rows, size_t count)
{
    uses_rows = rows;
    uses_count = count;
}

const struct shk_use *shk_use_find(const char *name)
{
    for (size_t i = 0; i < uses_count; i++)
        if (strcmp(uses_rows[i].name, name) == 0)
            return &uses_rows[i];
    return NULL;
}

const struct shk_use *shk_use_next(const char *prefix, size_t *at)
{
    while (*at < uses_count) {
        const struct shk_use *use = &uses_rows[(*at)++];
        if (strncmp(use->name, prefix, strlen(prefix)) == 0)
            return use;
    }
    return NULL;
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
