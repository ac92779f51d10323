#include "reports/formats.h"

#include <string.h>

static const struct shk_format *const formats[] = {
    &shk_format_term, &shk_format_md,   &shk_format_json,   &shk_format_html,   &shk_format_junit,
    &shk_format_prom, &shk_format_line, &shk_format_github, &shk_format_gitlab,
};

const struct shk_format *const *shk_formats(size_t *count_p)
{
    *count_p = sizeof formats / sizeof *formats;
    return formats;
}

const struct shk_format *shk_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}
