/* What a line must have so that a pattern can match it: one of some fixed texts. */
#ifndef SHK_PROBES_LOGLITERAL_H
#define SHK_PROBES_LOGLITERAL_H

#include <stdbool.h>
#include <stddef.h>

#define SHK_LOG_LITERAL_MAX  24  /* bytes */
#define SHK_LOG_LITERALS_MAX 128 /* of a pattern */
#define SHK_LOG_GRAM         4   /* bytes by which one is found in a line */
#define SHK_LOG_GRAM_LEAST   3   /* length of the shortest one, whose gram is all of it */

struct shk_log_literal {
    unsigned char len;
    unsigned char rare;             /* where the rarest bytes of it begin, SHK_LOG_GRAM of them */
    char text[SHK_LOG_LITERAL_MAX]; /* folded */
};

/* Letters of either case are one; some other bytes, too. */
static inline char shk_log_fold(char c)
{
    return (char)(c | 0x20);
}

/* The rarest of them (of a pattern of core/regex/regex.h); how many, 0: nothing that is rare
 * enough, or too many. */
size_t shk_log_literals(const char *pattern, struct shk_log_literal literals[SHK_LOG_LITERALS_MAX]);

#endif
