/* Takes secrets, and on request everything that names people, hosts and hardware, out of texts.
 *
 * The same text always becomes the same pseudonym within one shk_scrub, so that "node-2" in a
 * finding is "node-2" in the log line as well. */
#ifndef SHK_REPORTS_SCRUB_H
#define SHK_REPORTS_SCRUB_H

#include "core/text/strbuf.h"
#include <jansson.h>
#include <stdbool.h>

enum shk_scrub_what {
    SHK_SCRUB_SECRETS = 1,  /* passwords, tokens, keys (core/redact/redact.h): [redacted] */
    SHK_SCRUB_IDENTITY = 2, /* hosts, users, accounts, IP and MAC addresses, GUIDs, UUIDs */
};

enum shk_scrub_kind {
    SHK_SCRUB_HOST,     /* node-1 */
    SHK_SCRUB_NODELIST, /* nodes-1 */
    SHK_SCRUB_USER,     /* user-1 */
    SHK_SCRUB_ACCOUNT,  /* account-1 */
    SHK_SCRUB_SERIAL,   /* serial-1 */
    SHK_SCRUB_ADDRESS,  /* addr-1 */
    SHK_SCRUB_MAC,      /* mac-1 */
    SHK_SCRUB_GUID,     /* guid-1 */
    SHK_SCRUB_UUID,     /* uuid-1 */
    SHK_SCRUB_JOB,      /* job-1 */
    SHK_SCRUB_KIND_COUNT
};

struct shk_scrub;

struct shk_scrub *shk_scrub_create(unsigned what); /* NULL: out of memory */
void shk_scrub_destroy(struct shk_scrub *scrub);

/* Replaces `name` from now on wherever it stands as a word. No-op without SHK_SCRUB_IDENTITY, for
 * "", "root" and "localhost". A host name also covers the domain that follows it. */
void shk_scrub_name(struct shk_scrub *scrub, enum shk_scrub_kind kind, const char *name);

/* Learns the users whose home directories the text names, so that they are replaced in texts that
 * come before it as well. */
void shk_scrub_learn(struct shk_scrub *scrub, const char *text);

/* `word` only looks like an address (a version of four parts): it stays. */
void shk_scrub_keep(struct shk_scrub *scrub, const char *word);

/* The scrubbed text, a new string; NULL when out of memory. */
char *shk_scrub_text(struct shk_scrub *scrub, const char *text);

/* A value of the same shape with scrubbed texts; of points in time (core/text/stamp.h) the day
 * stays: with the minute of a job the accounting of a scheduler names its user. A new reference;
 * NULL: out of memory. */
json_t *shk_scrub_json(struct shk_scrub *scrub, const json_t *value);

#endif
