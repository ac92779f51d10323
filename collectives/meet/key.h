/* The key by which the ranks of one job know each other.
 *
 * Where it comes from, the first that is there: the variable of the use "rendezvous-key", a file
 * that nobody but its owner may read, a secret that the launcher itself gave to its tasks (the use
 * "rendezvous-secret"). It never stands in an argument, a fact or a report. */
#ifndef SHK_COLLECTIVES_KEY_H
#define SHK_COLLECTIVES_KEY_H

#include "collectives/meet/sha256.h"
#include "core/text/error.h"

#include <stdbool.h>

/* 64 random bits in hexadecimal digits, as a launcher makes them, are the least that is taken. */
#define SHK_KEY_LEAST 16U
#define SHK_KEY_MOST  1024U

struct shk_key {
    bool there;
    char from[96]; /* as a report may say it: a variable's name, an option, "PMIx" */
    unsigned char bytes[SHK_SHA256_BYTES]; /* hash of what was given */
};

/* Takes the key out of the environment: its bytes are overwritten where the kernel shows them
 * (/proc/PID/environ), then the variable is removed. To be called before anything reads the
 * environment; once. */
void shk_key_take(void);

/* The key: what was taken, else that of the file (NULL: none), else, where `launcher` says that the
 * one that made it started this process itself, the launcher's own secret: what torchrun starts on
 * each node inherits those of different steps. There need be none. A key that is too short, or a
 * file that others may read, is an error with text, -EINVAL, -EACCES or what open() said. */
int shk_key_get(struct shk_key *key, const char *file, bool launcher,
                struct shk_error *err) SHK_MUST_CHECK;

/* One key of two: both must be the same at both ends. `add` is what a launcher passed on. */
void shk_key_mix(struct shk_key *key, const char *add, const char *from);

#endif
