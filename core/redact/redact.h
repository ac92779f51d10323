/* The one gate for secrets: passwords, tokens and keys do not leave. Facts pass through it when
 * they are stored, findings when they are added, reports, captures and messages when they are
 * written; nothing else decides what a secret is.
 *
 * Recognised are names of variables, options and members (PASSWORD, *_TOKEN, *_PW, *_AUTH …) with
 * whatever stands behind '=', ':' or a blank of an option; forms that services give their keys
 * (AWS, GitHub, GitLab, Google, Slack, OpenAI, JSON web tokens, PEM private keys …); what follows
 * "Bearer"; user:password@ before a host. Host lists, UUIDs, partition keys and paths are none. */
#ifndef SHK_CORE_REDACT_H
#define SHK_CORE_REDACT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define SHK_REDACTED "[redacted]"

/* Is `value` of the variable, option or member NAME a secret as a whole? *why_p says on what
 * grounds (a literal). Decided by the name, or by what the value looks like: any secret inside of
 * it, or a long random text; also one that another gate has redacted. An empty value is none. */
bool shk_redact_value(const char *name, const char *value, const char **why_p);

/* Looks at one place of a text, s, where a word starts. Returns the bytes of the secret that is
 * there, 0 when none is; *head_p: bytes from s that come before it and stay. */
size_t shk_redact_at(const char *text, const char *s, size_t *head_p);

/* The text with SHK_REDACTED in place of every secret in it, a new string (free()); NULL: out of
 * memory. Redacting twice changes nothing more. */
char *shk_redact(const char *text);

/* New reference to `value` with every string in it redacted, and the strings of members whose name
 * is that of a secret withheld; `value` itself when there is nothing to redact. NULL: out of
 * memory. */
json_t *shk_redact_json(json_t *value);

#endif
