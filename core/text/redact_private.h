/* What redact.c and redact_match.c share. */
#ifndef SHK_CORE_REDACT_PRIVATE_H
#define SHK_CORE_REDACT_PRIVATE_H

#include "core/text/redact.h"

/* Does a value behind that name have to go? Loose: the name stands before ": ", as words of a
 * sentence do. Why: a literal, NULL: no. */
const char *shk_redact_name(const char *name, size_t len, const char *value, size_t value_len,
                            bool loose);

/* A key or token at s that its form gives away: bytes, 0. */
size_t shk_redact_token(const char *s);

/* Long and random-looking: for whole values only, texts are full of digests. */
bool shk_redact_random(const char *s, size_t len);

#endif
