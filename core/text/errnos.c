#include "core/text/errnos.h"

#include <string.h>
#include <strings.h>

static const struct shk_errno *errno_rows;
static size_t errno_count;

void shk_errnos_install(const struct shk_errno *rows, size_t count)
{
    errno_rows = rows;
    errno_count = count;
}

const struct shk_errno *shk_errnos(size_t *count_p)
{
    *count_p = errno_count;
    return errno_rows;
}

static bool has_text(const char *const *texts, const char *text)
{
    for (; texts && *texts; texts++)
        if (strcasecmp(*texts, text) == 0)
            return true;
    return false;
}

const struct shk_errno *shk_errno_find(const char *text, bool number, long value)
{
    for (size_t i = 0; i < errno_count; i++) {
        const struct shk_errno *row = &errno_rows[i];
        if (number ? row->number && row->number == value
                   : strcasecmp(row->name, text) == 0 || has_text(row->texts, text))
            return row;
    }
    return NULL;
}

static unsigned long long add_text(unsigned long long digest, const char *text)
{
    for (; text && *text; text++)
        digest = (digest ^ (unsigned char)*text) * 0x100000001b3u;
    return (digest ^ 1) * 0x100000001b3u;
}

unsigned long long shk_errnos_digest(void)
{
    unsigned long long digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < errno_count; i++) {
        const struct shk_errno *row = &errno_rows[i];
        digest = add_text(digest + (unsigned)row->number, row->name);
        for (const char *const *t = row->texts; t && *t; t++)
            digest = add_text(digest, *t);
        for (const char *const *t = row->names; t && *t; t++)
            digest = add_text(digest, *t);
        digest = add_text(digest, row->words);
    }
    return digest;
}
