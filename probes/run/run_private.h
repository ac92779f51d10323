/* Running probes: one of them, and several in one child. */
#ifndef SHK_PROBES_RUN_PRIVATE_H
#define SHK_PROBES_RUN_PRIVATE_H

#include "core/run/isolate.h"
#include "probes/base/probe.h"

/* What a child needs to run one probe. */
struct run_unit {
    const struct shk_probe *probe;
    const struct shk_host *host;
    const struct shk_facts *known;
    const struct shk_name_set *names;
    unsigned deadline_ms;
    bool quick, apart, done;
};

/* In the child: a job of core/run/isolate.h whose argument is a unit. */
int run_child(void *arg, json_t **result_p, struct shk_error *err);

/* Which of n units may share a child, and does so, after those that need none (`derives`): the
 * probes that run only our own code and do not wait for anything, one after another, in as few
 * children as the processors allow; the others each in one of its own. results has n entries. A
 * unit that was with one that crashed, hung or took too much memory is run again, in a child of its
 * own. */
int run_units(struct run_unit *units, struct shk_isolate_result *results, size_t n,
              struct shk_error *err);

#endif
