/* What a libnccl or librccl (or a plugin for them) says through its read-only strings. */
#ifndef SHK_PROBES_NCCL_STRINGS_H
#define SHK_PROBES_NCCL_STRINGS_H

#include "probes/library/elf.h"

#include <jansson.h>

/* Kinds of plugin interface; the symbols are ncclNetPlugin_v<n> … (the profiler's is
 * ncclProfiler_v<n>). */
enum shk_nccl_abi {
    SHK_ABI_NET,
    SHK_ABI_COLLNET,
    SHK_ABI_TUNER,
    SHK_ABI_PROFILER,
    SHK_ABI_ENV,
    SHK_ABI_GIN,
    SHK_ABI_RMA,
    SHK_ABI_COUNT
};

const char *shk_nccl_abi_name(enum shk_nccl_abi kind); /* "net", "collnet" … */

/* Kind and version of a plugin symbol name; false when it is none. */
bool shk_nccl_abi_parse(const char *symbol, enum shk_nccl_abi *kind_p, unsigned *version_p);

/* A set of versions per kind; bit n = version n. Versions above 63 are not recorded. */
struct shk_nccl_abis {
    unsigned long long set[SHK_ABI_COUNT];
};
void shk_nccl_abis_add(struct shk_nccl_abis *abis, const char *symbol);
json_t *shk_nccl_abis_json(unsigned long long set); /* [6, 7, …]; NULL: no memory */

struct shk_nccl_strings {
    json_t *env_names;    /* sorted, unique */
    json_t *plugin_names; /* sorted: "libnccl-net", "librccl-net" … as used for plugin files */
    char version[48];     /* "2.28.9"; "" when no such string was found */
    char built_for[48];   /* "cuda13.0", "hip6.2"; "" unknown */
    struct shk_nccl_abis accepts;
    bool static_plugin; /* knows STATIC_PLUGIN */
};

/* -ENOMEM only. Free with shk_nccl_strings_free(). */
int shk_nccl_strings_read(struct shk_nccl_strings *strings_p, const struct shk_elf *elf,
                          struct shk_error *err) SHK_MUST_CHECK;
void shk_nccl_strings_free(struct shk_nccl_strings *strings);

/* Names among the read-only strings that look like environment variables with one of the prefixes
 * (NULL at the end). New reference: sorted array; NULL: no memory. */
json_t *shk_elf_env_names(const struct shk_elf *elf, const char *const *prefixes);

#endif
