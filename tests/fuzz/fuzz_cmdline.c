/* The kernel's command line, from /proc/cmdline through the probes to the checks' verdicts. */
#include "fuzz.h"
#include "probes/base/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct shk_probe *const probes[] = {&shk_probe_kernel, &shk_probe_iommu,
                                                     &shk_probe_cpufreq};
    const char *dir = shk_fuzz_dir(NULL);
    char path[512];
    struct shk_error err = {""};
    struct shk_host *host;
    struct shk_fact line;
    snprintf(path, sizeof path, "%s/proc", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/proc/cmdline", dir);
    if (!*dir || shk_fuzz_put(path, data, size) != 0 || shk_host_open(&host, dir, &err) != 0)
        abort();
    struct shk_facts *known = shk_facts_create(), *facts = shk_facts_create();
    struct shk_probe_context ctx = {.host = host, .known = known, .facts = facts};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        (void)!probes[i]->run(&ctx, &err);
    if (!shk_facts_get(facts, "kernel.cmdline", &line))
        abort(); /* present, absent or failed, but never forgotten */
    shk_fuzz_judge(facts);
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
    shk_host_close(host);
    return 0;
}
