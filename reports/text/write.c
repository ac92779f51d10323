#include "reports/text/write.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
