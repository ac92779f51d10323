#include "checks/fabric/fabric.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/fabric/plugin.h"

#include <stdlib.h>
#include <string.h>

static bool needs_fabric(const struct shk_profile *profile)
{
    return profile->providers && profile->providers[0];
}

static void say_no_library(const struct shk_check_context *ctx, struct shk_row *row,
                           const char *reason)
{
    const char *provider = ctx->profile->providers[0];
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = shk_provider_diagnosis(provider, strlen(provider), SHK_PROVIDER_NO_DOMAIN);
    shk_row_text(&row->observed, "not found");
    shk_row_text(&row->expected, "libfabric with provider %s", provider);
    shk_row_text(&row->why, "%s", reason ? reason : "no libfabric.so.1 where the loader looks");
    shk_row_fix(row, "libfabric-path", NULL);
}

/* What the loader will not find for the copy that it takes: no program can load that one. */
static bool say_unloadable(const struct shk_check_context *ctx, struct shk_row *row)
{
    json_t *problems = NULL;
    const char *path = "libfabric.so.1", *text = NULL;
    if (shk_look_objects(ctx->facts, "fabric.problems", &problems) != SHK_LOOK_PRESENT ||
        !json_array_size(problems))
        return false;
    (void)shk_look_text(ctx->facts, "fabric.path", &path);
    (void)shk_look_member_text(json_array_get(problems, 0), "text", &text);
    shk_row_verdict(row, needs_fabric(ctx->profile) ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "libfabric-does-not-load";
    row->fact = "fabric.problems";
    shk_row_text(&row->observed, "%s does not load", path);
    shk_row_text(&row->why, "%s", text ? text : "something that it needs is missing");
    shk_row_fix(row, "library-dependency", "path", path, NULL);
    return true;
}

static void eval_library(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_fabric_library, "libfabric");
    struct shk_fact fact = {.reason = NULL};
    const char *version, *path;
    row.fact = "fabric.version";
    row.required = needs_fabric(ctx->profile);
    enum shk_look look = shk_read_text(&row, "fabric.version", &version);
    (void)shk_look(ctx->facts, "fabric.version", &fact);
    if (look == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version);
        if (shk_look_text(ctx->facts, "fabric.path", &path) == SHK_LOOK_PRESENT)
            shk_row_text(&row.why, "%s", path);
    } else if (look != SHK_LOOK_ABSENT && say_unloadable(ctx, &row)) {
        shk_row_end(findings, &row);
        return;
    } else if (look != SHK_LOOK_ABSENT) {
        shk_row_unread(findings, &row, ctx->facts, "fabric.version");
        return;
    } else if (needs_fabric(ctx->profile)) {
        say_no_library(ctx, &row, fact.reason);
    } else {
        shk_read_profile(&row);
        shk_row_na(findings, &row, "not found, and profile %s does not need it%s%s",
                   ctx->profile->name, fact.reason ? ": " : "", fact.reason ? fact.reason : "");
        return;
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_fabric_library = {
    .id = "fabric.library",
    .diagnosis = "libfabric-does-not-load",
    .family = "libfabric",
    .title = "libfabric is found and loads",
    .eval = eval_library,
    .doc = "Facts: fabric.version, fabric.path (of the file that was really loaded), "
           "fabric.problems.\n"
           "FAIL when it is not there and the profile names providers; n/a when nothing needs it. "
           "One that was not loaded and lacks a library or a symbol version of its own (missing, "
           "invalid, version: the loader gives up on each) is FAIL where the profile names "
           "providers, else WARN.",
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = "";
    (void)shk_look_member_text(object, name, &text);
    return text;
}

static bool links(const json_t *copy, const char *provider)
{
    json_t *list;
    return shk_look_member_array(copy, "links", &list) == SHK_LOOK_PRESENT &&
           shk_array_has(list, provider, true);
}

const char *shk_fabric_copy_with(const struct shk_facts *facts, const char *provider)
{
    size_t i;
    json_t *copies, *copy;
    const char *taken, *with = NULL;
    if (shk_look_array(facts, "fabric.copies", &copies) != SHK_LOOK_PRESENT ||
        shk_look_text(facts, "fabric.path", &taken) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(copies, i, copy)
    {
        bool has = links(copy, provider), loaded = strcmp(text_of(copy, "path"), taken) == 0;
        if (loaded && has)
            return NULL;
        if (!loaded && has && !with)
            with = *text_of(copy, "path") ? text_of(copy, "path") : NULL;
    }
    return with;
}

/* A copy that has what is asked for and the loaded one has not: a provider whose chain breaks there
 * and nowhere before. */
static const char *lacked_provider(const struct shk_check_context *ctx, const char **copy_p)
{
    for (const char *const *p = ctx->profile->providers; p && *p; p++) {
        struct shk_chain chain;
        bool told = shk_chain_of(ctx->facts, *p, &chain);
        const struct shk_link *broken = shk_chain_first(&chain, SHK_LINK_BROKEN);
        bool there = !told || (broken && strcmp(broken->step, "library") == 0);
        shk_chain_clear(&chain);
        *copy_p = shk_fabric_copy_with(ctx->facts, *p);
        if (*copy_p && there)
            return *p;
    }
    return NULL;
}

/* A plugin that does not load because the libfabric that it gets is too old. */
static const char *lacked_version(const struct shk_facts *facts, const char *taken)
{
    size_t i, k;
    json_t *list, *plugin, *problems, *problem;
    if (shk_look_array(facts, SHK_PLUGIN_FACT, &list) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(list, i, plugin)
    {
        if (shk_plugin_is_considered(plugin) != SHK_TOLD_YES ||
            shk_look_member_array(plugin, "problems", &problems) != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(problems, k,
                           problem) if (strcmp(text_of(problem, "kind"), "version") == 0 &&
                                        *text_of(problem, "version") &&
                                        strcmp(text_of(problem, "path"), taken) ==
                                            0) return text_of(problem, "version");
    }
    return NULL;
}

/* Something shows that another copy than the intended one was taken. */
static void say_wrong_copy(const struct shk_check_context *ctx, struct shk_row *row,
                           const char *path_key, const char *diagnosis)
{
    const char *taken, *copy = NULL, *provider = NULL, *version = NULL;
    if (shk_look_text(ctx->facts, path_key, &taken) != SHK_LOOK_PRESENT)
        return;
    if (strcmp(path_key, "fabric.path") == 0)
        provider = lacked_provider(ctx, &copy);
    if (!provider)
        version = lacked_version(ctx->facts, taken);
    if (!provider && !version)
        return;
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = diagnosis;
    if (version) {
        shk_row_text(&row->why, "the loader takes %s, which lacks %s: a net plugin needs it", taken,
                     version);
        return;
    }
    const char *slash = strrchr(copy, '/');
    shk_row_text(&row->why, "the loader takes %s, which lacks the provider %s; %s has it", taken,
                 provider, copy);
    char *dir = strndup(copy, slash ? (size_t)(slash - copy) : 0);
    shk_row_fix(row, "library-first", "dir", slash ? dir : NULL, NULL);
    free(dir);
}

/* Are there copies of different versions? Lists them all. */
static bool list_copies(struct shk_row *row, const char *key, const json_t *copies,
                        struct shk_strbuf *sb)
{
    size_t i;
    json_t *copy;
    const char *first = NULL;
    bool differ = false;
    json_array_foreach((json_t *)copies, i, copy)
    {
        const char *path = "?", *version = NULL;
        (void)shk_read_member_text(row, key, copy, "path", &path);
        bool broken = *text_of(copy, "error"); /* told by the loader, no version to compare */
        if (broken)
            (void)shk_look_member_text(copy, "version", &version);
        else
            (void)shk_read_member_text(row, key, copy, "version", &version);
        shk_strbuf_printf(sb, "%s%s (%s)", sb->len ? ", " : "", path,
                          broken    ? "unusable"
                          : version ? version
                                    : "?");
        differ |= version && first && strcmp(version, first) != 0;
        first = first ? first : version;
    }
    return differ;
}

/* The copy that the loader takes lacks a library of its own: no program can load it. */
static bool say_lacking(struct shk_row *row, const json_t *copies)
{
    size_t i;
    json_t *copy;
    json_array_foreach((json_t *)copies, i, copy)
    {
        const char *lacks = NULL;
        if (shk_look_member_text(copy, "lacks", &lacks) != SHK_LOOK_PRESENT)
            continue;
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row->observed, "%s", shk_member_name(copy, "path"));
        shk_row_text(&row->why, "the loader cannot bring it together: %s", lacks);
        shk_row_fix(row, "library-dependency", "path", shk_member_name(copy, "path"), NULL);
        return true;
    }
    return false;
}

/* /lib is a link to /usr/lib on most systems. */
static bool same_file(const char *a, const char *b)
{
    a += strncmp(a, "/usr/", 5) == 0 ? 4 : 0;
    b += strncmp(b, "/usr/", 5) == 0 ? 4 : 0;
    return strcmp(a, b) == 0;
}

/* The libfabric that a net plugin takes by the path in its own file; NULL: the loader's. */
static const json_t *own_libfabric(const json_t *plugin, const char *taken)
{
    size_t i;
    json_t *list = NULL, *needed;
    if (shk_plugin_is_considered(plugin) == SHK_TOLD_YES)
        (void)shk_look_member_array(plugin, "needed", &list);
    json_array_foreach(list, i, needed)
    {
        const char *via = text_of(needed, "via"), *path = text_of(needed, "path");
        bool own = strcmp(via, "RUNPATH") == 0 || strcmp(via, "RPATH") == 0;
        if (own && !*text_of(needed, "by") && !same_file(path, taken) &&
            strncmp(text_of(needed, "name"), "libfabric.so", 12) == 0)
            return needed;
    }
    return NULL;
}

/* A net plugin uses another libfabric than the one that everything else here is about. */
static bool say_own_libfabric(struct shk_row *row)
{
    size_t i;
    json_t *list = NULL, *plugin;
    const char *taken = NULL;
    if (shk_look_text(row->ctx->facts, "fabric.path", &taken) != SHK_LOOK_PRESENT)
        return false;
    (void)shk_look_array(row->ctx->facts, SHK_PLUGIN_FACT, &list);
    json_array_foreach(list, i, plugin)
    {
        const json_t *own = own_libfabric(plugin, taken);
        if (!own)
            continue;
        shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        shk_row_text(&row->observed, "%s, and %s of the net plugin", taken, text_of(own, "path"));
        shk_row_text(&row->why,
                     "%s takes %s, which its %s names: what is said here about libfabric and its "
                     "variables is about %s, which programs take",
                     shk_member_name(plugin, "path"), text_of(own, "path"), text_of(own, "via"),
                     taken);
        return true;
    }
    return false;
}

static void copies_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *key, const char *path_key, const char *name,
                       const char *diagnosis)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_fabric_copies, name);
    json_t *copies = NULL;
    const char *taken = "the first on its path";
    row.fact = key;
    (void)shk_read_array(&row, key, &copies);
    bool fabric = strcmp(key, "fabric.copies") == 0;
    if (say_lacking(&row, copies)) {
        shk_row_end(findings, &row);
        return;
    }
    if (json_array_size(copies) < 2 && fabric && say_own_libfabric(&row)) {
        shk_row_end(findings, &row);
        return;
    }
    if (json_array_size(copies) < 2) {
        shk_row_na(findings, &row, json_array_size(copies) ? "one copy" : "no copy");
        return;
    }
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool differ = list_copies(&row, key, copies, &sb);
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_verdict(&row, differ ? SHK_NOTE : SHK_PASS, SHK_EFFECT);
    if (differ) {
        (void)shk_look_text(ctx->facts, path_key, &taken);
        shk_row_text(&row.why, "the loader takes %s; nothing shows that another one was meant",
                     taken);
        say_wrong_copy(ctx, &row, path_key, diagnosis);
    }
    if (fabric && row.verdict != SHK_WARN)
        (void)say_own_libfabric(&row);
    shk_strbuf_free(&sb);
    shk_row_end(findings, &row);
}

static void eval_copies(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const struct {
        const char *key, *path, *name, *diagnosis;
    } libs[] = {
        {"fabric.copies", "fabric.path", "libfabric copies", "libfabric-wrong-version-loaded"},
        {"nccl.copies", "nccl.path", "libnccl copies", "libnccl-wrong-version-loaded"},
        {"rccl.copies", "rccl.path", "librccl copies", "libnccl-wrong-version-loaded"},
    };
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++)
        copies_row(ctx, findings, libs[i].key, libs[i].path, libs[i].name, libs[i].diagnosis);
}

const struct shk_check shk_check_fabric_copies = {
    .id = "library.copies",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "libraries",
    .title = "The loader picks the intended copy of each library",
    .eval = eval_copies,
    .doc = "Facts: fabric.copies, nccl.copies, rccl.copies ([{path, version, lacks}]), "
           "fabric.core_providers, plugin.candidates.\n"
           "WARN when the loader's copy needs a library that is not there. "
           "A net plugin whose file names another libfabric than the loader takes is a note. "
           "Copies of different versions are a note: the system's and that of a wheel or module "
           "are normal. WARN when something shows that the wrong one is taken: it lacks a provider "
           "that the profile needs and another copy has, or a symbol version that a net plugin "
           "needs.",
};
