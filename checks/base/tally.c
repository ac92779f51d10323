#include "checks/base/tally.h"

#include <stdarg.h>
#include <stdlib.h>

/* Names beyond this are counted, not listed. */
enum { TALLY_NAMES = 160 };

static void tally_name(struct shk_strbuf *names, const char *namef, va_list args)
{
    char *name = NULL;
    if (names->len > TALLY_NAMES || vasprintf(&name, namef, args) < 0)
        return;
    shk_strbuf_printf(names, "%s%s", names->len ? ", " : "", name);
    if (names->len > TALLY_NAMES)
        shk_strbuf_puts(names, ", …");
    free(name);
}

void shk_tally_good(struct shk_tally *tally)
{
    tally->good++;
}

void shk_tally_bad(struct shk_tally *tally, const char *namef, ...)
{
    va_list args;
    va_start(args, namef);
    tally->bad++;
    tally_name(&tally->bad_names, namef, args);
    va_end(args);
}

void shk_tally_unread(struct shk_tally *tally, const char *namef, ...)
{
    va_list args;
    va_start(args, namef);
    tally->unread++;
    tally_name(&tally->unread_names, namef, args);
    va_end(args);
}

bool shk_tally_judge(const struct shk_tally *tally, struct shk_row *row, enum shk_verdict bad,
                     enum shk_evidence evidence, const char *fact, const char *kinds)
{
    unsigned all = tally->good + tally->bad + tally->unread;
    if (!all)
        return false;
    if (tally->unread)
        shk_row_lacks(row, fact, "%u of %u %s could not be read: %s", tally->unread, all, kinds,
                      shk_strbuf_text(&tally->unread_names));
    else
        shk_row_was_read(row);
    if (tally->bad)
        shk_row_verdict(row, bad, evidence);
    else if (tally->unread)
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
    else
        shk_row_verdict(row, SHK_PASS, evidence);
    return true;
}

void shk_tally_free(struct shk_tally *tally)
{
    shk_strbuf_free(&tally->bad_names);
    shk_strbuf_free(&tally->unread_names);
}
