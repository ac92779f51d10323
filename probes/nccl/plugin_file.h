/* One plugin candidate, told from its file: what it exports, needs and reads. */
#ifndef SHK_PROBES_PLUGIN_FILE_H
#define SHK_PROBES_PLUGIN_FILE_H

#include "probes/library/elfdeps.h"
#include "probes/nccl/nccl_search.h"

struct shk_plugin {
    enum shk_nccl_owner owner;
    enum shk_nccl_abi kind; /* what it would be loaded as */
    char name[1024];        /* as handed to dlopen() */
    bool considered;        /* the library would try it by itself */
    bool found;             /* a file that a load would take */
    bool usable;            /* a shared object for this machine with a version in common */
    int version;            /* net: version that would be used; 0 when none */
    json_t *row;            /* of plugin.candidates */
};

struct shk_plugin_scene {
    const struct shk_ldsearch *search;
    const struct shk_ldsearch_asker *loader; /* libnccl or librccl; NULL when not at hand */
    /* Versions that the library accepts; NULL when unknown (then any is). */
    const struct shk_nccl_abis *accepts;
};

/* Fills a candidate from its name (owner, kind, name, considered are set by the caller). The row is
 * {name, path, kind, owner, reason, considered, found, via, …}, see docs/plugin.md. -ENOMEM only.
 */
int shk_plugin_inspect(struct shk_plugin *plugin, const struct shk_plugin_scene *scene,
                       const char *reason, struct shk_error *err) SHK_MUST_CHECK;

#endif
