/* `shakedown hang --then-check`: what is wrong with the nodes that the judgement suspects. */
#ifndef SHK_CLI_HANG_CHECK_H
#define SHK_CLI_HANG_CHECK_H

#include "cli/session/reach.h"

/* Runs this program on each suspect of the judgement, as it is safe beside a job (--quick: no
 * collective, no GPU context), and between all of them and one node that is none, where they can be
 * reached as nodes of one job, an all-reduce on host memory over the network. Adds `checks` to the
 * judgement: [{what: "node" or "network", hosts, verdict, causes: [{key, title, confidence, fix}],
 * rows: [{name, verdict, observed, why, fix}]}], or with `unread` what could not be tried. `nodes`:
 * of the look. 0 or a negative errno with text. */
int shk_hang_check(const struct shk_reach *reach, const json_t *nodes, json_t *judgement,
                   struct shk_error *err) SHK_MUST_CHECK;

#endif
