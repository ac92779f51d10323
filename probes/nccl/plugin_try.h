/* Plugins put to the test as the collective library would use them, each step in a child of its
 * own with a deadline. Executes foreign code: live hosts only. */
#ifndef SHK_PROBES_PLUGIN_TRY_H
#define SHK_PROBES_PLUGIN_TRY_H

#include "probes/nccl/plugin_file.h"

struct shk_plugin_deadlines {
    unsigned load_ms, init_ms, loopback_ms;
};

/* dlopen() runs constructors (libfabric's dependencies alone take 0.2 s); init opens every device
 * and the GPU runtime; the loopback adds a connection set-up. */
#define SHK_PLUGIN_DEADLINES                                                                       \
    {                                                                                              \
        .load_ms = 5000, .init_ms = 15000, .loopback_ms = 20000                                    \
    }

/* Adds to the row of each found plugin
 *   load      {ok, outcome, ms, path, name, error, missing_slots}
 *   init      {ok, outcome, version, rc, result, ms, error, name, missing_slots, log} (net plugins
 *   devices   {ok, count, rc, result, error, rows: [{…}]}                            that load,
 *   loopback  {ok, outcome, step, device, bytes, wrong, rc, result, ms, error, log}  not `quick`)
 * -ENOMEM and the like only. */
int shk_plugin_try(struct shk_plugin *plugins, size_t count,
                   const struct shk_plugin_deadlines *deadlines, bool quick,
                   struct shk_error *err) SHK_MUST_CHECK;

#endif
