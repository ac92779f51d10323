/* What the libfabric of this process answers. Runs in a child of its own (core/run/isolate.h):
 * opening it runs the constructors of libibverbs, PSM and others, and fi_getinfo() opens devices.
 */
#ifndef SHK_PROBES_LIBFABRIC_ASK_H
#define SHK_PROBES_LIBFABRIC_ASK_H

#include "core/text/error.h"

#include <jansson.h>
#include <stdbool.h>

struct shk_libfabric_question {
    bool unfiltered; /* take FI_PROVIDER out of the environment first */
    bool no_gpu;     /* keep libfabric from opening GPU runtimes (FI_HMEM=system unless set) */
    const char *const *widen; /* provider names to try with widening hints; NULL-terminated */
};

/* A shk_isolate_job function; arg is a struct shk_libfabric_question. The result:
 *   {path, version, api, open_ms, getinfo_ms, getinfo: {rc, text},
 *    core_providers: [{name, version}], domains: […], params: […], hints: […]}
 * (rows as in docs/plugin.md). What was learnt before an error is delivered with it. */
int shk_libfabric_ask(void *arg, json_t **result_p, struct shk_error *err);

/* Variable that names a libfabric to ask instead of the one that the loader takes: "what would that
 * copy offer?" */
#define SHK_LIBFABRIC_OVERRIDE "SHAKEDOWN_LIBFABRIC"

/* Domains kept at most: more than the largest node offers (32 NICs, a dozen rows each). */
#define SHK_LIBFABRIC_MAX_DOMAINS 512

#endif
