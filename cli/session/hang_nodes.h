/* `shakedown hang` on other nodes: this program, started there as a user would, by ssh, inside of
 * the Slurm job by srun, or in its pods by kubectl. */
#ifndef SHK_CLI_HANG_NODES_H
#define SHK_CLI_HANG_NODES_H

#include "cli/options.h"
#include "cli/session/reach.h"

#include <jansson.h>

/* Adds a node for each host of --hosts, each pod of --pods, or each node of the Slurm job of --job,
 * to the array; one that was not reached has no ranks and says why in `unread`. *done_p: false when
 * neither tells of other hosts; then nothing is added. Returns 0 or a negative errno with text:
 * -EINVAL for a file that is none of host names, -EIO when the pods could not be asked for. *reach:
 * how they were reached, to be ended by shk_reach_end(), also on failure. */
int shk_hang_nodes(const struct shk_options *options, struct shk_reach *reach, json_t *nodes,
                   bool *done_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
