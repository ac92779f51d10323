#include "probes/base/registry.h"

#include <string.h>

#define PROBE(name) &shk_probe_##name,
static const struct shk_probe *const probes[] = {
#include "probes/base/list.def"
};
#undef PROBE

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

const char *shk_probe_of(const char *key)
{
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        if (registry_provides(probes[i], key))
            return probes[i]->name;
    return NULL;
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
