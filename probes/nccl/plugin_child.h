/* What runs in the children of probes/nccl/plugin_try.c: shk_isolate_job functions. */
#ifndef SHK_PROBES_PLUGIN_CHILD_H
#define SHK_PROBES_PLUGIN_CHILD_H

#include "core/text/error.h"

#include <jansson.h>
#include <stdbool.h>

struct shk_plugin_job {
    const char *path;
    int version;         /* of ncclNetPlugin_v<n>; 0: not a net plugin, dlopen() alone */
    int device;          /* for the loopback */
    unsigned connect_ms; /* how long a connection may stay pending */
};

/* {path, name, missing_slots}: dlopen(RTLD_NOW), as the collective library does it. The loader's
 * own words are the error text; the name is the one of the table before init, which NCCL_NET is
 * compared with by some releases. */
int shk_plugin_child_load(void *arg, json_t **result_p, struct shk_error *err);

/* {version, rc, result, ms, name, missing_slots, devices: {rc, result, count, rows: […]}}: init,
 * devices and the properties of each. Lines of the plugin's logger go to stderr as "WARN text",
 * "INFO text". */
int shk_plugin_child_init(void *arg, json_t **result_p, struct shk_error *err);

/* {step, device, bytes, wrong, rc, result}: init again, then a message from the device to itself
 * through listen, connect, accept, regMr, irecv, isend, test; every byte compared. */
int shk_plugin_child_loopback(void *arg, json_t **result_p, struct shk_error *err);

/* Text at an address that a plugin handed out: true when it can be read up to its NUL within size
 * bytes; then buf holds it. Never faults. */
bool shk_plugin_text_at(const char *address, char *buf, size_t size);

#endif
