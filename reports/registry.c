#include "reports/formats.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <stdlib.h>
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

int shk_format_write(const struct shk_strbuf *text, FILE *out)
{
    if (text->failed)
        return -ENOMEM;
    errno = 0;
    if (fwrite(shk_strbuf_text(text), 1, text->len, out) != text->len || fflush(out) != 0)
        return errno ? -errno : -EIO;
    return 0;
}

int shk_format_document(const json_t *document, size_t flags, FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    char *dump = document ? json_dumps(document, flags) : NULL;
    if (!dump)
        return -ENOMEM;
    shk_text_json(&text, dump, strlen(dump));
    free(dump);
    shk_strbuf_putc(&text, '\n');
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}
