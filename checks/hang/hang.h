/* `shakedown hang`: which rank holds the others up. A pure function of what was seen of the
 * processes (probes/hang/hang.h) and of the functions that the catalogue knows (config/calls). */
#ifndef SHK_CHECKS_HANG_H
#define SHK_CHECKS_HANG_H

#include "config/config.h"

#include <jansson.h>

enum shk_hang_outcome {
    SHK_HANG_PROGRESS, /* the ranks go on */
    SHK_HANG_NAMED,    /* at least one rank is named */
    SHK_HANG_UNDECIDED /* it cannot be told from what was seen */
};

/* Judges `nodes`, an array of the documents of one job's nodes. *judgement_p, a new reference:
 *   outcome    "progress", "named", "undecided"
 *   reason     a code: what it rests on
 *   headline   one sentence
 *   ranks, seen   of the job (null when not known) and of them looked at
 *   groups     [{kind, call, where, text, still, ranks: [n], processes: [pid], hosts: [name]}]
 *   named      [{rank, host, pid, kind, text, seconds, confidence, advice}]
 *   suspects   [host] of the named ranks, and a host that is cut off
 *   unknown    what was not seen, sentences
 *   libraries  [{library, versions: [{path, version, build_id, ranks}], replaced, why, diagnosis}]
 *              of which ranks have different ones
 *   settings, differences  as hang_audit() has them; left out when empty
 *   tree       the stacks merged: [{frames: [text], ranks: [n], children: [...]}]
 * What is not as the schema has it counts as not seen. -ENOMEM. */
int shk_hang_judge(const struct shk_config *config, const json_t *nodes, json_t **judgement_p,
                   enum shk_hang_outcome *outcome_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
