/* What redact.c and redact_match.c share. */
#ifndef SHK_CORE_REDACT_PRIVATE_H
#define SHK_CORE_REDACT_PRIVATE_H

#include "core/redact/redact.h"

/* Has this gate been here? */
bool shk_redact_is_done(const char *s);

/* Bytes up to where an unquoted value ends at the latest, `most` at most. */
size_t shk_redact_unquoted(const char *s, size_t most);

/* Bytes up to one of `ends`, `most` at most. */
size_t shk_redact_until(const char *s, const char *ends, size_t most);

/* What stands before the '@' of a URL, when s is behind its "://": bytes, 0 when it is a host. */
size_t shk_redact_userinfo(const char *text, const char *s);

/* user:password@host without a scheme, or behind -u and --user: the password's bytes, those of
 * `user` with the ':' in *head_p. */
size_t shk_redact_login(const char *text, const char *s, size_t user, size_t *head_p);

/* The value of a short option by which a tool takes a password (sshpass -p): its bytes, those of
 * the option in *head_p. */
size_t shk_redact_option(const char *text, const char *s, size_t *head_p);

/* Does a value behind that name have to go? Loose: the name stands before ": ", as words of a
 * sentence do. Why: a literal, NULL: no. */
const char *shk_redact_name(const char *name, size_t len, const char *value, size_t value_len,
                            bool loose);

/* A key or token at s that its form gives away: bytes, 0. */
size_t shk_redact_token(const char *s);

/* Long and random-looking: for whole values only, texts are full of digests. */
bool shk_redact_random(const char *s, size_t len);

#endif
