#include "probes/registry.h"

#include <string.h>

/* The order of the report. Within a phase probes run side by side, so it says nothing about time.
 */
static const struct shk_probe *const probes[] = {
    /* host */
    &shk_probe_host,
    &shk_probe_container,
    &shk_probe_kernel,
    &shk_probe_iommu,
    &shk_probe_cpufreq,
    &shk_probe_limits,
    &shk_probe_cgroup,
    &shk_probe_net,
    &shk_probe_resolve,
    &shk_probe_env,
    &shk_probe_conffile,
    &shk_probe_paths,
    &shk_probe_pci,
    &shk_probe_rdma,
    &shk_probe_devices,
    &shk_probe_accelerators,
    &shk_probe_kfd,
    &shk_probe_topofile,
    &shk_probe_launcher,
    /* library: hwloc is slow on large nodes and libfabric asks every provider, so both start
     * before the quick NCCL scan */
    &shk_probe_libfabric,
    &shk_probe_topology,
    &shk_probe_nvml,
    &shk_probe_cuda,
    &shk_probe_nvservices,
    &shk_probe_nccl,
    &shk_probe_runtimes,
    &shk_probe_verbs,
    /* derived: a plugin is judged against the NCCL that would load it */
    &shk_probe_plugin,
    &shk_probe_peers,
    &shk_probe_why,
};

const struct shk_probe *const *shk_probes(size_t *count_p)
{
    *count_p = sizeof probes / sizeof *probes;
    return probes;
}

static bool registry_provides(const struct shk_probe *probe, const char *key)
{
    for (const char *const *p = probe->provides; p && *p; p++) {
        size_t n = strlen(*p);
        if (strcmp(*p, key) == 0 || ((*p)[n - 1] == '.' && strncmp(*p, key, n) == 0))
            return true;
    }
    return false;
}

bool shk_probes_is_library_fact(const char *key)
{
    /* these read files, or facts, or the captured XML */
    static const struct shk_probe *const replayed[] = {&shk_probe_topology, &shk_probe_nvservices,
                                                       &shk_probe_peers};
    bool found = false;
    for (size_t i = 0; i < sizeof probes / sizeof *probes && !found; i++) {
        found = probes[i]->phase != SHK_PHASE_HOST && registry_provides(probes[i], key);
        for (size_t k = 0; k < sizeof replayed / sizeof *replayed; k++)
            found &= probes[i] != replayed[k];
    }
    return found;
}
