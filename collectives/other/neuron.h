/* Neuron devices: an all-reduce by AWS's own nccom-test, run and judged.
 *
 * nccom-test allr -r RANKS --minbytes … --maxbytes … --stepfactor … --datatype fp32 --check, in a
 * child with the deadline of the collective and without a shell. Its options and its table are as
 * the NCCOM-TEST user guide of the Neuron SDK (2.12 to 2.29) has them. Never run on a Neuron
 * device so far.
 *
 * Facts beside those of collective.h:
 *   collective.neuron.command  the command line
 *   collective.neuron.output   what it printed, when it did not end well: the last 2000 bytes
 * "time_us" is nccom-test's (median or mean, by its version); algbw and busbw are computed from it,
 * since the versions differ in GB and GiB. */
#ifndef SHK_COLLECTIVES_NEURON_H
#define SHK_COLLECTIVES_NEURON_H

#include "collectives/collective.h"

/* What tests may change; zeroed for the real thing. */
struct shk_neuron_tweaks {
    const char *tool;             /* path, instead of PATH and /opt/aws/neuron/bin */
    const char *const *nrt_names; /* instead of libnrt.so.1 and /opt/aws/neuron/lib/libnrt.so.1 */
};

/* Runs it with tweaks (may be NULL). */
int shk_neuron_run(const struct shk_collective_options *options,
                   const struct shk_neuron_tweaks *tweaks, struct shk_facts *facts,
                   struct shk_error *err) SHK_MUST_CHECK;

/* What nccom-test printed (changed while it is read), for `ranks` ranks: status_p gets "ok",
 * "wrong" or "failed", why one line when not ok. Returns the rows as sizes[] of collective.h, a new
 * reference; NULL: out of memory. exit_code is that of the process. */
json_t *shk_neuron_table(char *output, int exit_code, unsigned ranks, const char **status_p,
                         struct shk_error *why);

extern const struct shk_transport shk_transport_neuron;

#endif
