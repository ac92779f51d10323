/* What lines with a mask hold: a table of a limited size, that begins anew when it is full. */
#ifndef SHK_PROBES_LOGMEMO_H
#define SHK_PROBES_LOGMEMO_H

#include "probes/log/logfind.h"
#include "probes/log/logmask.h"

struct shk_log_memo;

struct shk_log_known {
    const struct shk_log_match *matches;
    size_t count;
    bool told; /* numbers may decide: each such line has to be searched */
};

struct shk_log_memo *shk_log_memo_create(void); /* NULL: out of memory */
void shk_log_memo_destroy(struct shk_log_memo *memo);

/* Valid until the next call of shk_log_memo_add(). */
bool shk_log_memo_get(const struct shk_log_memo *memo, const struct shk_logmask *mask,
                      struct shk_log_known *known_p);

/* Keeps what is known of lines with this mask. A mask that is there already stays as it is. */
void shk_log_memo_add(struct shk_log_memo *memo, const struct shk_logmask *mask,
                      const struct shk_log_known *known);

#endif
