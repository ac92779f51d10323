/* hwloc's XML from a stranger. hwloc reads it in a child, as in the program: it may die or loop for
 * ever there (2.8 does, on corpus/topology/endless.xml), but we must always learn how it ended. */
#include "core/run/isolate.h"
#include "fuzz.h"
#include "probes/base/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int topology_child(void *arg, json_t **result_p, struct shk_error *err)
{
    struct shk_host *host;
    struct shk_facts *known = shk_facts_create(), *facts = shk_facts_create();
    int rc = shk_host_open(&host, arg, err);
    if (rc)
        return rc;
    struct shk_probe_context ctx = {.host = host, .known = known, .facts = facts};
    rc = shk_probe_topology.run(&ctx, err);
    *result_p = shk_facts_to_json(facts);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *dir = shk_fuzz_dir(NULL);
    char path[512];
    struct shk_error err = {""};
    struct shk_isolate_result result = {0};
    const struct shk_isolate_job job = {
        .name = "topology", .fn = topology_child, .arg = (void *)dir, .deadline_ms = 2000};
    snprintf(path, sizeof path, "%s/.shakedown", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/.shakedown/topology.xml", dir);
    if (!*dir || shk_fuzz_put(path, data, size) != 0 || shk_isolate_run(&job, &result, 1, 0, &err))
        abort();
    if (result.outcome != SHK_CHILD_OK && !*result.error.text)
        abort();
    shk_isolate_result_clear(&result);
    return 0;
}
