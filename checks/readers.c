#include "checks/readers.h"
#include "checks/row.h"

#include <stdlib.h>
#include <string.h>

/* Where the facts of a library are. names: array of strings; params: array of {name}. */
struct library {
    const char *name, *title;
    const char *version, *path, *names, *params;
    const char *provider; /* libfabric provider that this reader stands for */
    bool plugin;
    bool partial; /* not every name is among the strings: compilers put short ones into code */
};

static const struct library libraries[SHK_READERS_LIBRARIES] = {
    {.name = "nccl",
     .title = "NCCL",
     .version = "nccl.version",
     .path = "nccl.path",
     .names = "nccl.env_names"},
    {.name = "rccl",
     .title = "RCCL",
     .version = "rccl.version",
     .path = "rccl.path",
     .names = "rccl.env_names"},
    {.name = "libfabric",
     .title = "libfabric",
     .version = "fabric.version",
     .path = "fabric.path",
     .params = "fabric.params"},
    {.name = "efa",
     .title = "libfabric",
     .version = "fabric.version",
     .path = "fabric.path",
     .params = "fabric.params",
     .provider = "efa"},
    {.name = "cxi",
     .title = "libfabric",
     .version = "fabric.version",
     .path = "fabric.path",
     .params = "fabric.params",
     .provider = "cxi"},
    {.name = "ofi-plugin", .title = "net plugin", .names = "plugin.candidates", .plugin = true},
    {.name = "nvshmem",
     .title = "NVSHMEM",
     .version = "nvshmem.version",
     .path = "nvshmem.path",
     .names = "nvshmem.env_names"},
    {.name = "libcxi",
     .title = "libcxi",
     .version = "libcxi.version",
     .path = "libcxi.path",
     .names = "libcxi.env_names"},
    {.name = "neuron",
     .title = "Neuron runtime",
     .version = "neuron.version",
     .path = "neuron.path",
     .names = "neuron.env_names",
     .partial = true},
    {.name = "hsa",
     .title = "HSA runtime",
     .version = "hsa.version",
     .path = "hsa.path",
     .names = "hsa.env_names",
     .partial = true},
    {.name = "hip",
     .title = "HIP runtime",
     .version = "hip.version",
     .path = "hip.path",
     .names = "hip.env_names",
     .partial = true},
    {.name = "miopen",
     .title = "MIOpen",
     .version = "miopen.version",
     .path = "miopen.path",
     .names = "miopen.env_names",
     .partial = true},
};

static const struct shk_name_family families[SHK_READERS_FAMILIES] = {
    {"NCCL_", "nccl", {"nccl", "rccl", "ofi-plugin"}, true},
    {"RCCL_", "rccl", {"rccl"}, true},
    {"OFI_NCCL_", "ofi-plugin", {"ofi-plugin"}, true},
    {"FI_", "libfabric", {"libfabric"}, true},
    {"CXI_", "cxi", {"libcxi"}, true},
    {"NVSHMEM_", "nvshmem", {"nvshmem"}, true},
    {"NEURON_RT_", "neuron", {"neuron"}, true},
    {"HSA_", "hsa", {"hsa", "rccl"}, true},
    {"MIOPEN_", "miopen", {"miopen"}, true},
    {"TORCH_NCCL_", "framework", {NULL}, true},
    {"ROCR_", "hsa", {"hsa"}, false},
    {"HIP_", "hip", {"hip"}, false},
    {"RDMAV_", "efa", {NULL}, false},
    {"IBV_", "efa", {NULL}, false},
};

/* Variables of these name families belong to programs that this tool does not judge. */
static const char *const foreign[] = {
    "SLURM",   "PMI",      "PALS_", "PBS",  "LSB_",  "OMPI_",     "PRTE_",  "UCX_",    "UCC_",
    "MPI",     "CUDA_",    "CRAY",  "PE_",  "EB",    "LMOD_",     "MODULE", "XDG_",    "CONDA",
    "TORCH",   "PYTORCH_", "OMP_",  "KMP_", "GOMP_", "APPTAINER", "SINGUL", "NVIDIA_", "SLINGSHOT_",
    "NEURON_", "I_MPI_",   "GPU_",  "AMD_", "LD_",   "TP_",       "GLOO_",  NULL};

/* Ends of names that say where something is installed; build systems and modules set them. */
static const char *const install_words[] = {
    "ROOT",    "HOME",     "DIR",          "PATH",    "PREFIX",    "LIB",
    "LIBRARY", "INCLUDE",  "INC",          "VERSION", "LIBRARIES", "INCLUDE_DIR",
    "LIB_DIR", "ROOT_DIR", "INCLUDE_DIRS", "LIBDIR",  NULL};

/* Names looked at: fifty thousand unknown settings' worth. */
#define NEAREST_MOST ((size_t)100000000)

void shk_readers_clear(struct shk_readers *readers)
{
    for (size_t i = 0; i < SHK_READERS_LIBRARIES; i++)
        shk_known_destroy(readers->libraries[i]);
    for (size_t i = 0; i <= SHK_READERS_FAMILIES; i++)
        for (size_t j = 0; j < 2; j++)
            shk_known_destroy(readers->families[i][j]);
    *readers = (struct shk_readers){.facts = readers->facts, .config = readers->config};
}

static const struct library *library_of(const char *name)
{
    for (size_t i = 0; i < SHK_READERS_LIBRARIES; i++)
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
    return NULL;
}

const struct shk_name_family *shk_name_family(const char *name)
{
    for (size_t i = 0; i < SHK_READERS_FAMILIES; i++)
        if (strncmp(name, families[i].prefix, strlen(families[i].prefix)) == 0)
            return &families[i];
    return NULL;
}

static void name_library(struct shk_strbuf *sb, const struct library *lib,
                         const struct shk_facts *facts)
{
    const char *version = lib->version ? shk_facts_get_text(facts, lib->version) : NULL;
    const char *path = lib->path ? shk_facts_get_text(facts, lib->path) : NULL;
    shk_strbuf_printf(sb, "%s%s", sb->len ? ", " : "", lib->title);
    if (version)
        shk_strbuf_printf(sb, " %s", version);
    if (path)
        shk_strbuf_printf(sb, " (%s)", path);
}

/* What the net plugins of this node read: their names go to `known`; what a name is that none has.
 */
static void plugins_names(struct shk_readers *readers, struct shk_known *known)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(readers->facts, "plugin.candidates", &fact);
    readers->plugins = look == SHK_LOOK_ABSENT ? SHK_READS_NONE_HERE : SHK_READS_UNKNOWN;
    if (look != SHK_LOOK_PRESENT || !json_is_array(fact.value))
        return;
    readers->plugins = SHK_READS_NONE_HERE;
    size_t i;
    json_t *plugin;
    json_array_foreach(fact.value, i, plugin)
    {
        const json_t *names = json_object_get(plugin, "env_names");
        if (!shk_member_bool(plugin, "found", false))
            continue;
        if (json_array_size(names) > 0)
            readers->plugins = SHK_READS_NO;
        else if (readers->plugins == SHK_READS_NONE_HERE)
            readers->plugins = SHK_READS_UNKNOWN;
        shk_known_add_array(known, names);
    }
}

/* The names that a library says it reads. */
static struct shk_known *library_names(struct shk_readers *readers, const struct library *lib)
{
    struct shk_known **known = &readers->libraries[lib - libraries];
    if (*known || !(*known = shk_known_create()))
        return *known;
    if (lib->plugin)
        plugins_names(readers, *known);
    else
        shk_known_add_array(
            *known, shk_facts_get_array(readers->facts, lib->names ? lib->names : lib->params));
    return *known;
}

static enum shk_reads plugins_read(struct shk_readers *readers, const struct library *lib,
                                   const char *name, bool *asked_p)
{
    bool has = shk_known_has(library_names(readers, lib), name);
    *asked_p = has || readers->plugins == SHK_READS_NO;
    return has ? SHK_READS_YES : readers->plugins;
}

/* `until` may name a release line: "2.30" is the last of 2.30.x as well. */
static bool in_range(const char *version, const struct shk_reader *reader)
{
    if (reader->since && shk_version_cmp(version, reader->since) < 0)
        return false;
    if (!reader->until || shk_version_cmp(version, reader->until) <= 0)
        return true;
    size_t len = strlen(reader->until);
    return strncmp(version, reader->until, len) == 0 && version[len] == '.';
}

static enum shk_reads library_reads(struct shk_readers *readers, const struct library *lib,
                                    const char *name, const struct shk_reader *reader,
                                    bool *asked_p)
{
    if (lib->plugin)
        return plugins_read(readers, lib, name, asked_p);
    struct shk_known *known = library_names(readers, lib);
    if (shk_known_count(known) > 0) {
        *asked_p = true;
        if (shk_known_has(known, name))
            return SHK_READS_YES;
        /* Not every variable of the core goes through its parameter list: trust the row there. */
        bool complete = lib->params ? lib->provider || !reader : !lib->partial;
        if (complete)
            return SHK_READS_NO;
        *asked_p = false;
    }
    struct shk_fact fact;
    switch (shk_look(readers->facts, lib->version, &fact)) {
    case SHK_LOOK_ABSENT: return SHK_READS_NONE_HERE;
    case SHK_LOOK_PRESENT: break;
    default: return SHK_READS_UNKNOWN;
    }
    const char *version = json_string_value(fact.value);
    if (!version || !reader)
        return SHK_READS_UNKNOWN;
    if (in_range(version, reader))
        return SHK_READS_YES;
    return SHK_READS_NO;
}

/* Folds one reader's answer into the whole. */
static void fold(struct shk_read_answer *all, struct shk_strbuf *sb, enum shk_reads one, bool asked,
                 const struct library *lib, const struct shk_facts *facts)
{
    static const int rank[] = {[SHK_READS_YES] = 3,
                               [SHK_READS_UNKNOWN] = 2,
                               [SHK_READS_NO] = 1,
                               [SHK_READS_NONE_HERE] = 0};
    if (rank[one] > rank[all->reads]) {
        all->reads = one;
        all->asked = asked;
        shk_strbuf_free(sb);
    }
    if (one == all->reads && lib && one != SHK_READS_UNKNOWN) {
        all->asked |= asked;
        if (!sb->len || !strstr(shk_strbuf_text(sb), lib->title))
            name_library(sb, lib, facts);
    }
}

struct shk_read_answer shk_readers_ask(struct shk_readers *readers,
                                       const struct shk_setting *setting)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < setting->readers_count; i++) {
        const struct shk_reader *reader = &setting->readers[i];
        const struct library *lib = library_of(reader->library);
        bool asked = false;
        enum shk_reads one =
            lib ? library_reads(readers, lib, setting->name, reader, &asked) : SHK_READS_UNKNOWN;
        fold(&all, &sb, one, asked, lib, readers->facts);
    }
    all.text = shk_strbuf_take(&sb);
    return all;
}

struct shk_read_answer shk_readers_ask_name(struct shk_readers *readers,
                                            const struct shk_name_family *family, const char *name)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < 4 && family->libraries[i]; i++) {
        const struct library *lib = library_of(family->libraries[i]);
        bool asked = false;
        enum shk_reads one =
            lib ? library_reads(readers, lib, name, NULL, &asked) : SHK_READS_UNKNOWN;
        /* A library that was asked counts for more than one that is not here to ask. */
        if (one == SHK_READS_NO && all.reads == SHK_READS_UNKNOWN)
            all.reads = SHK_READS_NONE_HERE;
        else if (one == SHK_READS_UNKNOWN && all.reads == SHK_READS_NO)
            continue;
        fold(&all, &sb, one, asked, lib, readers->facts);
    }
    if (!family->libraries[0])
        all.reads = SHK_READS_UNKNOWN;
    all.text = shk_strbuf_take(&sb);
    return all;
}

/* ---- nearest name ---- */

static bool is_foreign(const char *name)
{
    for (const char *const *f = foreign; *f; f++)
        if (strncmp(name, *f, strlen(*f)) == 0)
            return true;
    return false;
}

static void add_catalogue(struct shk_known *known, const struct shk_config *config)
{
    size_t count;
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count; i++)
        if (settings[i].variable &&
            (settings[i].kind == SHK_SETTING_CURRENT || settings[i].kind == SHK_SETTING_DEPRECATED))
            shk_known_add(known, settings[i].name);
}

/* What the libraries of a family know (NULL: none), or that and the catalogue. */
static struct shk_known *family_names(struct shk_readers *readers,
                                      const struct shk_name_family *family, bool catalogue)
{
    size_t row = family ? (size_t)(family - families) : SHK_READERS_FAMILIES;
    struct shk_known **known = &readers->families[row][catalogue];
    if (*known || !(*known = shk_known_create()))
        return *known;
    for (size_t i = 0; family && i < 4 && family->libraries[i]; i++)
        shk_known_add_all(*known, library_names(readers, library_of(family->libraries[i])));
    if (catalogue)
        add_catalogue(*known, readers->config);
    return *known;
}

/* Bounds what a stranger's facts can cost: no suggestion when all of it is spent. */
static const char *nearest_of(struct shk_readers *readers, const struct shk_known *known,
                              const char *name)
{
    size_t count = shk_known_count(known);
    if (count > NEAREST_MOST - readers->compared)
        return NULL;
    readers->compared += count;
    return shk_known_nearest(known, name);
}

const char *shk_readers_nearest(struct shk_readers *readers, const struct shk_name_family *family,
                                const char *name)
{
    const char *near = nearest_of(readers, family_names(readers, family, false), name);
    if (near || (!family && is_foreign(name)))
        return near;
    near = nearest_of(readers, family_names(readers, family, true), name);
    /* A name of no family is reported only when it is all but equal. */
    if (near && (!family || !family->strict) &&
        (strlen(name) < 8 || shk_edit_distance_within(name, near, 1) > 1))
        near = NULL;
    return near;
}

bool shk_name_is_install(const char *name)
{
    const char *word = strchr(name, '_');
    for (const char *const *w = install_words; word && *w; w++)
        if (strcmp(word + 1, *w) == 0)
            return true;
    return false;
}
