/* What a verdict rests on, tried out: each fact of a document, each member of it, entries of its
 * arrays, and groups of facts together are made unreadable in turn, and every check is run again.
 * Nothing is listed by hand, so a new check or a new fact is covered as soon as a document holds
 * it. */
#ifndef SHK_CHECKS_MUTATE_H
#define SHK_CHECKS_MUTATE_H

#include "checks/base/check.h"

struct shk_mutation_breach {
    const char *fact; /* key, with the path of the member: "rdma.devices/0/ports/0/state" */
    const char *how;  /* "failed", "missing", "of another type", … */
    const char *check, *setting;
    const char *problem; /* "passes although it was not read: …" */
};

struct shk_mutation_count {
    size_t mutations, breaches;
};

/* Mutates `facts` ({key: fact}, as in a facts document), judged by every check and by the
 * profile that the facts then look like. A breach is
 *   - a row that is not UNKNOWN although a value of that fact, or of that member, can turn it;
 *   - a row that turns to WARN, FAIL, n/a or pass because something was not read;
 *   - a row that vanishes;
 *   - a row that fails without a diagnosis of the catalogue.
 * Calls `breach` for each. Returns 0, -EINVAL (facts are none; err), -ENOMEM. */
int shk_mutate(const struct shk_config *config, const json_t *facts,
               void (*breach)(const struct shk_mutation_breach *breach, void *arg), void *arg,
               struct shk_mutation_count *count_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
