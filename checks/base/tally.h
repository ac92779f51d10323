/* The one way to judge many of a kind (links, ports, device nodes, groups): good, bad and unread
 * ones are counted apart, so that what was not read is never part of "all are good". */
#ifndef SHK_CHECKS_TALLY_H
#define SHK_CHECKS_TALLY_H

#include "checks/base/read.h"

struct shk_tally {
    unsigned good, bad, unread;
    struct shk_strbuf bad_names, unread_names; /* ", " between them, clipped when many */
};

#define SHK_TALLY_INIT                                                                             \
    {                                                                                              \
        .bad_names = SHK_STRBUF_INIT, .unread_names = SHK_STRBUF_INIT                              \
    }

void shk_tally_good(struct shk_tally *tally);
void shk_tally_bad(struct shk_tally *tally, const char *namef, ...) SHK_PRINTF(2, 3);
void shk_tally_unread(struct shk_tally *tally, const char *namef, ...) SHK_PRINTF(2, 3);

/* Sets the verdict of the row: `bad` (WARN, FAIL or NOTE) when there is a bad one, else UNKNOWN
 * with the reason "2 of 8 KINDS could not be read: …" when there is an unread one, else PASS when
 * there is a good one. False when there was none at all: the row is then unchanged. `fact` is the
 * key that they are from, `kinds` their plural ("links"). Texts other than the reason of UNKNOWN
 * are left to the caller. */
bool shk_tally_judge(const struct shk_tally *tally, struct shk_row *row, enum shk_verdict bad,
                     enum shk_evidence evidence, const char *fact, const char *kinds);

void shk_tally_free(struct shk_tally *tally);

#endif
