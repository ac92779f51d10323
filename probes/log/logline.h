/* Who printed a line: what launchers and libraries put in front of it. */
#ifndef SHK_PROBES_LOGLINE_H
#define SHK_PROBES_LOGLINE_H

#include <stddef.h>

struct shk_logline {
    char node[64];    /* "" when the line does not say */
    char origin[112]; /* the process: "rank 8", "node01:1958 [3]"; "" when the line does not say */
    long rank;        /* -1 */
};

/* Reads the tags that torchrun, srun --label, mpirun --tag-output and pdsh add, time stamps, and
 * the prefixes of NCCL, RCCL, libfabric, Neuron, Slurm and syslog. `line` has no line break. */
void shk_logline_parse(struct shk_logline *out, const char *line, size_t len);

#endif
