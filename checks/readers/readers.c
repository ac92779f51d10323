#include "checks/readers/readers.h"
#include "checks/base/row.h"
#include "checks/readers/readers_provider.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where the facts of a library are. names: array of strings; params: array of {name}. */
struct library {
    const char *name, *title;
    const char *version, *path, *names, *params;
    const char *provider; /* libfabric provider that this reader stands for */
    const char *copies;   /* more copies, some with the names that they read */
    bool plugin;
    bool partial; /* not every name is among the strings: compilers put short ones into code */
};

static const struct library libraries[SHK_READERS_LIBRARIES] = {
    {.name = "nccl",
     .title = "NCCL",
     .version = "nccl.version",
     .path = "nccl.path",
     .names = "nccl.env_names",
     .copies = "nccl.copies"},
    {.name = "rccl",
     .title = "RCCL",
     .version = "rccl.version",
     .path = "rccl.path",
     .names = "rccl.env_names",
     .copies = "rccl.copies"},
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
    for (size_t i = 0; i < readers->families_count; i++)
        for (size_t j = 0; j < 2; j++)
            shk_known_destroy(readers->families[i][j]);
    free(readers->families);
    *readers = (struct shk_readers){.facts = readers->facts, .config = readers->config};
}

static const struct library *library_of(const char *name)
{
    for (size_t i = 0; i < SHK_READERS_LIBRARIES; i++)
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
    return NULL;
}

/* The longest prefix that begins the name; NULL when there is none. */
static const struct shk_name *prefix_of(const struct shk_config *config, const char *name)
{
    size_t count, longest = 0;
    const struct shk_name *names = shk_config_names(config, &count), *best = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(names[i].name);
        if (names[i].prefix && len > longest && strncmp(name, names[i].name, len) == 0) {
            best = &names[i];
            longest = len;
        }
    }
    return best;
}

const struct shk_name *shk_name_family(const struct shk_config *config, const char *name)
{
    const struct shk_name *prefix = prefix_of(config, name);
    return prefix && prefix->unknown >= SHK_NAME_LOOSE ? prefix : NULL;
}

static void name_copy(struct shk_strbuf *sb, const char *title, const char *version,
                      const char *path)
{
    shk_strbuf_printf(sb, "%s%s", sb->len ? ", " : "", title);
    if (version)
        shk_strbuf_printf(sb, " %s", version);
    if (path)
        shk_strbuf_printf(sb, " (%s)", path);
}

static void name_library(struct shk_strbuf *sb, const struct library *lib,
                         const struct shk_facts *facts)
{
    const char *version = NULL, *path = NULL;
    if (lib->version)
        (void)shk_look_text(facts, lib->version, &version);
    if (lib->path)
        (void)shk_look_text(facts, lib->path, &path);
    name_copy(sb, lib->title, version, path);
}

/* What the net plugins of this node read: their names go to `known`; what a name is that none has.
 */
static void plugins_names(struct shk_readers *readers, struct shk_known *known)
{
    size_t i;
    json_t *list, *plugin;
    enum shk_look look = shk_look_array(readers->facts, "plugin.candidates", &list);
    readers->plugins = look == SHK_LOOK_ABSENT ? SHK_READS_NONE_HERE : SHK_READS_UNKNOWN;
    if (look != SHK_LOOK_PRESENT)
        return;
    readers->plugins = SHK_READS_NONE_HERE;
    bool unread = false;
    json_array_foreach(list, i, plugin)
    {
        json_t *names = NULL;
        bool found;
        enum shk_look told = shk_look_member_bool(plugin, "found", &found);
        unread |= told != SHK_LOOK_PRESENT;
        if (told != SHK_LOOK_PRESENT || !found)
            continue;
        (void)shk_look_member_array(plugin, "env_names", &names);
        unread |= json_array_size(names) == 0;
        readers->plugins = SHK_READS_NO;
        shk_known_add_array(known, names);
    }
    if (unread)
        readers->plugins = SHK_READS_UNKNOWN;
}

/* The list of names that a library says it reads, or that of its parameters. */
static enum shk_look look_for_list(const struct shk_facts *facts, const struct library *lib,
                                   json_t **list_p)
{
    return lib->names    ? shk_look_texts(facts, lib->names, list_p)
           : lib->params ? shk_look_array(facts, lib->params, list_p)
                         : SHK_LOOK_ABSENT;
}

static void library_list(const struct shk_facts *facts, const struct library *lib,
                         struct shk_known *known)
{
    json_t *list = NULL;
    if (look_for_list(facts, lib, &list) == SHK_LOOK_PRESENT)
        shk_known_add_array(known, list);
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
        library_list(readers->facts, lib, *known);
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

/* What decided one library's answer. */
struct one_answer {
    enum shk_reads reads;
    bool asked;            /* its own list decided, not the version range */
    bool disputed;         /* its list and the version range contradict each other */
    const json_t *copy;    /* the copy that reads it, when it is not the loader's; NULL */
    const json_t *lacking; /* a copy that does not read it, though the loader's does; NULL */
    const char *provider;  /* that the library does not have; "": none is missing */
};

/* What the catalogue says about the version that is here. */
static enum shk_reads version_reads(const struct shk_facts *facts, const struct library *lib,
                                    const struct shk_reader *reader)
{
    const char *version;
    switch (shk_look_text(facts, lib->version, &version)) {
    case SHK_LOOK_ABSENT: return SHK_READS_NONE_HERE;
    case SHK_LOOK_PRESENT: break;
    default: return SHK_READS_UNKNOWN;
    }
    if (!reader)
        return SHK_READS_UNKNOWN;
    return in_range(version, reader) ? SHK_READS_YES : SHK_READS_NO;
}

/* A provider's variable: the list of the library counts where the provider is at work. */
static void provider_reads(struct shk_readers *readers, const struct library *lib,
                           const struct shk_reader *reader, const char *provider,
                           struct one_answer *one)
{
    switch (shk_provider_look(readers->facts, provider)) {
    case SHK_PROVIDER_LOOKS_WORKS:
        one->asked = true;
        one->reads = SHK_READS_NO;
        break;
    case SHK_PROVIDER_LOOKS_GONE:
        one->asked = true;
        one->provider = provider;
        one->reads = SHK_READS_NO;
        break;
    case SHK_PROVIDER_LOOKS_IDLE: one->reads = version_reads(readers->facts, lib, reader); break;
    default: one->reads = SHK_READS_UNKNOWN;
    }
}

/* A copy of an active Python environment, where a framework takes it whatever the loader gives to
 * others, that reads the name, or does not. */
static const json_t *other_copy(const struct shk_facts *facts, const struct library *lib,
                                const char *name, bool reads)
{
    size_t i;
    json_t *list, *copy, *names;
    if (!lib->copies || shk_look_array(facts, lib->copies, &list) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(list, i, copy)
    {
        if (shk_look_member_array(copy, "env_names", &names) == SHK_LOOK_PRESENT &&
            shk_array_has(names, name, false) == reads)
            return copy;
    }
    return NULL;
}

static void library_reads(struct shk_readers *readers, const struct library *lib, const char *name,
                          const struct shk_setting *setting, const struct shk_reader *reader,
                          char provider[32], struct one_answer *one)
{
    struct shk_known *known = lib->plugin ? NULL : library_names(readers, lib);
    *one = (struct one_answer){.reads = SHK_READS_UNKNOWN, .provider = ""};
    if (lib->plugin) {
        one->reads = plugins_read(readers, lib, name, &one->asked);
    } else if (shk_known_has(known, name)) {
        one->asked = true;
        one->reads = SHK_READS_YES;
        one->lacking = other_copy(readers->facts, lib, name, false);
    } else if (shk_known_count(known) > 0 && lib->params &&
               shk_provider_of(readers->facts, lib->provider, name, setting, provider)) {
        provider_reads(readers, lib, reader, provider, one);
    } else if (shk_known_count(known) > 0 &&
               (one->copy = other_copy(readers->facts, lib, name, true))) {
        one->asked = true;
        one->reads = SHK_READS_YES;
    } else if (shk_known_count(known) > 0 && !lib->partial && (!lib->params || !reader)) {
        /* Not every variable of libfabric's core goes through its parameter list: the catalogue is
         * trusted there. Of other libraries the list is complete, but where the catalogue names the
         * versions and this is one of them, the two contradict each other. */
        bool claimed = reader && (reader->since || reader->until) &&
                       version_reads(readers->facts, lib, reader) == SHK_READS_YES;
        one->asked = !claimed;
        one->disputed = claimed;
        one->reads = claimed ? SHK_READS_UNKNOWN : SHK_READS_NO;
    } else {
        one->reads = version_reads(readers->facts, lib, reader);
    }
}

static void name_python(struct shk_strbuf *sb, const struct library *lib, const json_t *copy)
{
    const char *version = NULL, *path = NULL;
    (void)shk_look_member_text(copy, "version", &version);
    (void)shk_look_member_text(copy, "path", &path);
    name_copy(sb, lib->title, version, path);
    shk_strbuf_puts(sb, " of the Python environment");
}

static void name_answer(struct shk_strbuf *sb, const struct one_answer *one,
                        const struct library *lib, const struct shk_facts *facts)
{
    struct shk_strbuf loaded = SHK_STRBUF_INIT, python = SHK_STRBUF_INIT;
    name_library(&loaded, lib, facts);
    if (one->copy || one->lacking)
        name_python(&python, lib, one->copy ? one->copy : one->lacking);
    const char *first = shk_strbuf_text(one->copy ? &python : &loaded);
    const char *second = shk_strbuf_text(one->copy ? &loaded : &python);
    shk_strbuf_printf(sb, "%s%s%s%s", sb->len ? ", " : "", first, python.len ? ", not by " : "",
                      python.len ? second : "");
    if (*one->provider)
        shk_strbuf_printf(sb, ", which has no provider %s,", one->provider);
    shk_strbuf_free(&loaded);
    shk_strbuf_free(&python);
}

/* Folds one reader's answer into the whole. */
static void fold(struct shk_read_answer *all, struct shk_strbuf *sb, const struct one_answer *one,
                 const struct library *lib, const struct shk_facts *facts)
{
    static const int rank[] = {[SHK_READS_YES] = 3,
                               [SHK_READS_UNKNOWN] = 2,
                               [SHK_READS_NO] = 1,
                               [SHK_READS_NONE_HERE] = 0};
    if (rank[one->reads] > rank[all->reads]) {
        all->reads = one->reads;
        all->asked = one->asked;
        shk_strbuf_free(sb);
    }
    if (one->reads == all->reads && lib && one->reads != SHK_READS_UNKNOWN) {
        all->asked |= one->asked;
        if (!sb->len || !strstr(shk_strbuf_text(sb), lib->title))
            name_answer(sb, one, lib, facts);
    }
}

/* Is a candidate among them of which it is not known whether it is there? */
static bool unread_plugin(const struct shk_facts *facts, const char *key)
{
    json_t *plugins = NULL, *plugin;
    size_t i;
    (void)shk_look_array(facts, key, &plugins);
    json_array_foreach(plugins, i, plugin)
    {
        bool found = false;
        enum shk_look look = shk_look_member_bool(plugin, "found", &found);
        if (look == SHK_LOOK_FAILED || look == SHK_LOOK_MISSING)
            return true;
    }
    return false;
}

/* Where no library was looked for at all, the environment is judged alone. */
static bool looked_for_any(const struct shk_facts *facts)
{
    const char *version;
    for (size_t i = 0; i < SHK_READERS_LIBRARIES; i++)
        if (libraries[i].version &&
            shk_look_text(facts, libraries[i].version, &version) != SHK_LOOK_MISSING)
            return true;
    return false;
}

/* A fact that would tell what the library reads and that was not read. */
static const char *look_for_unread(const struct shk_facts *facts, const struct library *lib)
{
    const char *version = NULL;
    enum shk_look look =
        lib->version ? shk_look_text(facts, lib->version, &version) : SHK_LOOK_ABSENT;
    if (look == SHK_LOOK_MISSING && looked_for_any(facts))
        return lib->version;
    if (lib->partial)
        return NULL; /* neither its version nor its list would decide */
    if (look == SHK_LOOK_FAILED)
        return lib->version;
    json_t *list = NULL;
    look =
        lib->plugin ? shk_look_array(facts, lib->names, &list) : look_for_list(facts, lib, &list);
    if (look == SHK_LOOK_FAILED || (lib->plugin && unread_plugin(facts, lib->names)))
        return lib->names ? lib->names : lib->params;
    return NULL;
}

/* Looked for once: a library may read a hundred thousand names, and as many settings ask. */
static const char *unread_fact(struct shk_readers *readers, const struct library *lib)
{
    if (!lib)
        return NULL;
    struct shk_unread *unread = &readers->unread[lib - libraries];
    if (!unread->looked)
        *unread = (struct shk_unread){true, look_for_unread(readers->facts, lib)};
    return unread->fact;
}

struct shk_read_answer shk_readers_ask(struct shk_readers *readers,
                                       const struct shk_setting *setting)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char provider[32];
    for (size_t i = 0; i < setting->readers_count; i++) {
        const struct shk_reader *reader = &setting->readers[i];
        const struct library *lib = library_of(reader->library);
        struct one_answer one = {.reads = SHK_READS_UNKNOWN, .provider = ""};
        if (lib)
            library_reads(readers, lib, setting->name, setting, reader, provider, &one);
        fold(&all, &sb, &one, lib, readers->facts);
        if (!all.unread)
            all.unread = unread_fact(readers, lib);
        if (one.disputed && !all.disputed)
            all.disputed = lib->names;
    }
    if (all.reads != SHK_READS_UNKNOWN)
        all.disputed = NULL;
    all.text = shk_strbuf_take(&sb);
    return all;
}

struct shk_read_answer shk_readers_ask_name(struct shk_readers *readers,
                                            const struct shk_name *family, const char *name)
{
    struct shk_read_answer all = {.reads = SHK_READS_NONE_HERE};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char provider[32];
    bool open = false; /* one is here that may read it without holding the whole name */
    for (const char *const *l = family->libraries; l && *l; l++) {
        const struct library *lib = library_of(*l);
        struct one_answer one = {.reads = SHK_READS_UNKNOWN, .provider = ""};
        if (lib)
            library_reads(readers, lib, name, NULL, NULL, provider, &one);
        open |= lib && lib->partial && one.reads == SHK_READS_UNKNOWN &&
                shk_known_count(library_names(readers, lib)) > 0;
        if (!all.unread)
            all.unread = unread_fact(readers, lib);
        /* A library that was asked counts for more than one that is not here to ask. */
        if (one.reads == SHK_READS_NO && all.reads == SHK_READS_UNKNOWN)
            all.reads = SHK_READS_NONE_HERE;
        else if (one.reads == SHK_READS_UNKNOWN && all.reads == SHK_READS_NO)
            continue;
        fold(&all, &sb, &one, lib, readers->facts);
    }
    if (!family->libraries || (open && all.reads == SHK_READS_NO))
        all.reads = SHK_READS_UNKNOWN;
    all.text = shk_strbuf_take(&sb);
    return all;
}

/* ---- nearest name ---- */

static bool is_foreign(const struct shk_config *config, const char *name)
{
    const struct shk_name *prefix = prefix_of(config, name);
    return prefix && prefix->unknown == SHK_NAME_FOREIGN;
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

/* The row of a family (NULL: none), of the lists that were made; false when out of memory. */
static bool family_row(struct shk_readers *readers, const struct shk_name *family, size_t *row_p)
{
    size_t count;
    const struct shk_name *names = shk_config_names(readers->config, &count);
    if (!readers->families)
        readers->families = calloc(count + 1, sizeof(*readers->families));
    readers->families_count = readers->families ? count + 1 : 0;
    *row_p = family ? (size_t)(family - names) : count;
    return readers->families != NULL;
}

/* What the libraries of a family know (NULL: none), or that and the catalogue. */
static struct shk_known *family_names(struct shk_readers *readers, const struct shk_name *family,
                                      bool catalogue)
{
    size_t row;
    if (!family_row(readers, family, &row))
        return NULL;
    struct shk_known **known = &readers->families[row][catalogue];
    if (*known || !(*known = shk_known_create()))
        return *known;
    for (const char *const *l = family ? family->libraries : NULL; l && *l; l++) {
        const struct library *lib = library_of(*l);
        if (lib)
            shk_known_add_all(*known, library_names(readers, lib));
    }
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

const char *shk_readers_nearest(struct shk_readers *readers, const struct shk_name *family,
                                const char *name)
{
    const char *near = nearest_of(readers, family_names(readers, family, false), name);
    if (near || (!family && is_foreign(readers->config, name)))
        return near;
    near = nearest_of(readers, family_names(readers, family, true), name);
    /* A name of no family is reported only when it is all but equal. */
    if (near && (!family || family->unknown != SHK_NAME_STRICT) &&
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
