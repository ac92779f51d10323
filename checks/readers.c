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

static const struct library libraries[] = {
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

static const struct shk_name_family families[] = {
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

static const struct library *library_of(const char *name)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
    return NULL;
}

const struct shk_name_family *shk_name_family(const char *name)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
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

static bool param_listed(const json_t *params, const char *name)
{
    size_t i;
    json_t *param;
    json_array_foreach((json_t *)params, i, param)
    {
        const char *s =
            json_is_string(param) ? json_string_value(param) : shk_member_text(param, "name");
        if (s && strcmp(s, name) == 0)
            return true;
    }
    return false;
}

static enum shk_reads plugins_read(const struct shk_facts *facts, const char *name, bool *asked_p)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(facts, "plugin.candidates", &fact);
    if (look == SHK_LOOK_ABSENT)
        return SHK_READS_NONE_HERE;
    if (look != SHK_LOOK_PRESENT || !json_is_array(fact.value))
        return SHK_READS_UNKNOWN;
    enum shk_reads reads = SHK_READS_NONE_HERE;
    size_t i;
    json_t *plugin;
    json_array_foreach(fact.value, i, plugin)
    {
        const json_t *names = json_object_get(plugin, "env_names");
        if (!shk_member_bool(plugin, "found", false))
            continue;
        if (json_array_size(names) == 0) {
            if (reads == SHK_READS_NONE_HERE)
                reads = SHK_READS_UNKNOWN;
            continue;
        }
        *asked_p = true;
        if (shk_array_has(names, name, false))
            return SHK_READS_YES;
        reads = SHK_READS_NO;
    }
    return reads;
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

static enum shk_reads library_reads(const struct shk_facts *facts, const struct library *lib,
                                    const char *name, const struct shk_reader *reader,
                                    bool *asked_p)
{
    if (lib->plugin)
        return plugins_read(facts, name, asked_p);
    const char *list_key = lib->names ? lib->names : lib->params;
    json_t *list = shk_facts_get_array(facts, list_key);
    if (json_array_size(list) > 0) {
        *asked_p = true;
        if (lib->params ? param_listed(list, name) : shk_array_has(list, name, false))
            return SHK_READS_YES;
        /* Not every variable of the core goes through its parameter list: trust the row there. */
        bool complete = lib->params ? lib->provider || !reader : !lib->partial;
        if (complete)
            return SHK_READS_NO;
        *asked_p = false;
    }
    struct shk_fact fact;
    switch (shk_look(facts, lib->version, &fact)) {
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

struct shk_read_answer shk_readers_ask(const struct shk_facts *facts,
                                       const struct shk_setting *setting)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < setting->readers_count; i++) {
        const struct shk_reader *reader = &setting->readers[i];
        const struct library *lib = library_of(reader->library);
        bool asked = false;
        enum shk_reads one =
            lib ? library_reads(facts, lib, setting->name, reader, &asked) : SHK_READS_UNKNOWN;
        fold(&all, &sb, one, asked, lib, facts);
    }
    all.text = shk_strbuf_take(&sb);
    return all;
}

struct shk_read_answer shk_readers_ask_name(const struct shk_facts *facts,
                                            const struct shk_name_family *family, const char *name)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < 4 && family->libraries[i]; i++) {
        const struct library *lib = library_of(family->libraries[i]);
        bool asked = false;
        enum shk_reads one =
            lib ? library_reads(facts, lib, name, NULL, &asked) : SHK_READS_UNKNOWN;
        /* A library that was asked counts for more than one that is not here to ask. */
        if (one == SHK_READS_NO && all.reads == SHK_READS_UNKNOWN)
            all.reads = SHK_READS_NONE_HERE;
        else if (one == SHK_READS_UNKNOWN && all.reads == SHK_READS_NO)
            continue;
        fold(&all, &sb, one, asked, lib, facts);
    }
    if (!family->libraries[0])
        all.reads = SHK_READS_UNKNOWN;
    all.text = shk_strbuf_take(&sb);
    return all;
}

/* ---- nearest name ---- */

struct names {
    const char **list;
    size_t count, cap;
};

static void names_add(struct names *names, const char *name)
{
    if (!name)
        return;
    if (names->count == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 256;
        const char **list = realloc(names->list, cap * sizeof(*list));
        if (!list)
            return; /* a suggestion less */
        names->list = list;
        names->cap = cap;
    }
    names->list[names->count++] = name;
}

static void names_add_array(struct names *names, const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item) names_add(
        names, json_is_string(item) ? json_string_value(item) : shk_member_text(item, "name"));
}

static void names_add_library(struct names *names, const struct shk_facts *facts,
                              const struct library *lib)
{
    if (!lib->plugin) {
        names_add_array(names, shk_facts_get_array(facts, lib->names ? lib->names : lib->params));
        return;
    }
    size_t i;
    json_t *plugin;
    json_array_foreach(shk_facts_get_array(facts, lib->names), i, plugin)
        names_add_array(names, json_object_get(plugin, "env_names"));
}

/* The words of a name (between '_'), sorted into a canonical text. */
static bool same_words(const char *a, const char *b)
{
    if (strlen(a) != strlen(b))
        return false;
    const char *start, *other;
    size_t len, other_len;
    for (const char *pos = a; pos;) {
        const char *end = strchr(pos, '_');
        start = pos;
        len = end ? (size_t)(end - pos) : strlen(pos);
        pos = end ? end + 1 : NULL;
        bool found = false;
        for (const char *q = b; q && !found;) {
            const char *stop = strchr(q, '_');
            other = q;
            other_len = stop ? (size_t)(stop - q) : strlen(q);
            q = stop ? stop + 1 : NULL;
            found = other_len == len && strncmp(start, other, len) == 0;
        }
        if (!found)
            return false;
    }
    return true;
}

/* `longer` is `shorter` with one word more, anywhere. */
static bool one_word_more(const char *longer, const char *shorter)
{
    size_t a = strlen(longer), b = strlen(shorter);
    if (a <= b + 1)
        return false;
    size_t head = 0;
    while (shorter[head] && longer[head] == shorter[head])
        head++;
    while (head && longer[head - 1] != '_' && !(shorter[head] == '\0' && longer[head] == '_'))
        head--;
    size_t extra = a - b; /* "_WORD" or "WORD_" */
    if (strcmp(longer + head + extra, shorter + head) != 0)
        return false;
    size_t underscores = 0;
    for (size_t i = head; i < head + extra; i++)
        underscores += longer[i] == '_';
    return underscores == 1;
}

static const char *nearest_of(const char *name, const struct names *names)
{
    const char *near = shk_nearest(name, names->list, names->count);
    if (near)
        return near;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(name, names->list[i]) != 0 && same_words(name, names->list[i]))
            return names->list[i];
    const char *best = NULL; /* the shortest longer name */
    for (size_t i = 0; i < names->count; i++)
        if (one_word_more(names->list[i], name) && (!best || strlen(names->list[i]) < strlen(best)))
            best = names->list[i];
    for (size_t i = 0; !best && i < names->count; i++)
        if (one_word_more(name, names->list[i]) &&
            strchr(names->list[i], '_') != strrchr(names->list[i], '_'))
            best = names->list[i];
    return best;
}

static bool is_foreign(const char *name)
{
    for (const char *const *f = foreign; *f; f++)
        if (strncmp(name, *f, strlen(*f)) == 0)
            return true;
    return false;
}

static void names_add_catalogue(struct names *names, const struct shk_config *config)
{
    size_t count;
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count; i++)
        if (settings[i].variable &&
            (settings[i].kind == SHK_SETTING_CURRENT || settings[i].kind == SHK_SETTING_DEPRECATED))
            names_add(names, settings[i].name);
}

char *shk_readers_nearest(const struct shk_facts *facts, const struct shk_config *config,
                          const struct shk_name_family *family, const char *name)
{
    struct names names = {0};
    const char *near = NULL;
    for (size_t i = 0; family && i < 4 && family->libraries[i]; i++)
        names_add_library(&names, facts, library_of(family->libraries[i]));
    if (names.count)
        near = nearest_of(name, &names);
    if (!near && (family || !is_foreign(name))) {
        names_add_catalogue(&names, config);
        near = nearest_of(name, &names);
        /* A name of no family is reported only when it is all but equal. */
        if (near && (!family || !family->strict) &&
            (strlen(name) < 8 || shk_edit_distance(name, near) > 1))
            near = NULL;
    }
    char *copy = near ? strdup(near) : NULL;
    free(names.list);
    return copy;
}

bool shk_name_is_install(const char *name)
{
    const char *word = strchr(name, '_');
    for (const char *const *w = install_words; word && *w; w++)
        if (strcmp(word + 1, *w) == 0)
            return true;
    return false;
}
