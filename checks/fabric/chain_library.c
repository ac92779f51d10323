#include "checks/fabric/chain_private.h"

#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char *library_join(const json_t *names)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        /* hooks are no transports */
        if (json_is_string(name) && strncmp(json_string_value(name), "ofi_hook", 8) != 0)
            shk_strbuf_printf(&sb, "%s%s", sb.len ? ", " : "", json_string_value(name));
    }
    return shk_strbuf_take(&sb);
}

/* Another copy that is linked for the provider: the way out. */
static char *library_other(const struct shk_why *why, const char *path)
{
    size_t i;
    json_t *copy;
    json_t *copies = shk_why_array(why->known, "fabric.copies");
    json_array_foreach(copies, i, copy)
    {
        const char *other = shk_why_member(copy, "path");
        if (strcmp(other, path) != 0 &&
            shk_why_list_names(json_object_get(copy, "links"), why->provider))
            return shk_strf("%s (%s) has it", other, shk_why_member(copy, "version"));
    }
    return NULL;
}

/* The file of a provider that is built as one; NULL when there is none. */
static json_t *library_plugin(const struct shk_why *why)
{
    size_t i;
    json_t *row;
    json_t *dl_providers = shk_why_array(why->known, "fabric.dl_providers");
    json_array_foreach(dl_providers, i, row)
    {
        if (shk_why_names(why->provider, shk_why_member(row, "name")))
            return row;
    }
    return NULL;
}

/* FI_PROVIDER_PATH takes the place of the library's own directory. */
static char *library_plugin_text(const struct shk_why *why)
{
    const char *path = shk_why_text(why->known, "fabric.provider_path");
    const json_t *plugin = library_plugin(why);
    if (plugin)
        return shk_strf("as the file %s", shk_why_member(plugin, "path"));
    return path ? shk_strf("%s=%s holds no lib%s-fi.so", shk_variable("code-path.provider"), path,
                           why->provider)
                : NULL;
}

static void library_missing(struct shk_why *why)
{
    const char *path = shk_why_text(why->known, "fabric.path");
    const char *version = shk_why_text(why->known, "fabric.version");
    const char *broken = shk_why_member(library_plugin(why), "problem");
    char *other = library_other(why, path ? path : ""), *searched = library_plugin_text(why);
    char *have = library_join(shk_why_array(why->known, "fabric.core_providers"));
    char *it_has = shk_strf("%s%sit has: %s", searched ? searched : "", searched ? "; " : "",
                            have ? have : "");
    if (*broken)
        shk_chain_add(why->chain, "library", SHK_LINK_BROKEN, searched, "%s", broken);
    else
        shk_chain_add(why->chain, "library", SHK_LINK_BROKEN, other ? other : it_has,
                      "%s (%s) has no provider %s", path ? path : "libfabric.so.1",
                      version ? version : "version unknown", why->provider);
    if (!*broken)
        shk_chain_code(why->chain, SHK_CODE_NOT_COMPILED);
    free(other);
    free(searched);
    free(have);
    free(it_has);
}

/* A layered name needs each of its parts. */
static bool library_all_parts(const json_t *core, const char *provider)
{
    for (const char *p = provider; *p;) {
        char part[80];
        size_t n = strcspn(p, ";");
        snprintf(part, sizeof part, "%.*s", (int)(n < 79 ? n : 79), p);
        if (n && !shk_why_list_names(core, part))
            return false;
        p += n + (p[n] == ';');
    }
    return true;
}

static void library_has(struct shk_why *why)
{
    const char *path = shk_why_text(why->known, "fabric.path");
    const char *version = shk_why_text(why->known, "fabric.version");
    json_t *core = shk_why_array(why->known, "fabric.core_providers");
    struct shk_fact fact;
    bool asked = shk_facts_get(why->known, "fabric.path", &fact);
    if (asked && fact.state == SHK_FACT_ABSENT) {
        char *other = library_other(why, "");
        shk_chain_add(why->chain, "library", SHK_LINK_BROKEN, other, "libfabric.so.1: %s",
                      fact.reason ? fact.reason : "not found");
        free(other);
    } else if (core && library_all_parts(core, why->provider)) {
        char *plugin = library_plugin(why) ? library_plugin_text(why) : NULL;
        shk_chain_add(why->chain, "library", SHK_LINK_OK, plugin, "%s (%s) has it",
                      path ? path : "libfabric.so.1", version ? version : "version unknown");
        free(plugin);
    } else if (core) {
        library_missing(why);
    } else {
        shk_chain_add(why->chain, "library", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "fabric.core_providers"));
        shk_why_unread(why, "fabric.core_providers", true);
    }
    shk_chain_where(why->chain, path ? path : "libfabric.so.1");
}

/* Is it the runtime of the accelerators that is missing? `names`: a library, or what the loader
 * said, whose words are its own but for the names of the libraries. */
static bool library_is_runtime(const char *names)
{
    static const char *const runtimes[] = {"libcuda", "libamdhip", "libhsa", "libze_loader"};
    static const char ends[] = " :,;/()'\"\n";
    while (*(names += strspn(names, ends))) {
        for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++) {
            if (strncmp(names, runtimes[i], strlen(runtimes[i])) == 0)
                return true;
        }
        names += strcspn(names, ends);
    }
    return false;
}

static void library_loads(struct shk_why *why)
{
    json_t *problems = shk_why_array(why->known, "fabric.problems");
    json_t *problem = shk_why_object(why->known, "fabric.problem");
    const json_t *first = json_array_get(problems, 0);
    if (!*shk_why_member(first, "text"))
        first = NULL;
    const char *lacks = first ? shk_why_member(first, "library") : shk_why_member(problem, "text");
    if (first)
        shk_chain_add(why->chain, "dependencies", SHK_LINK_BROKEN, NULL, "%s",
                      shk_why_member(first, "text"));
    else if (problem)
        shk_chain_add(why->chain, "dependencies", SHK_LINK_BROKEN, shk_why_member(problem, "call"),
                      "%s", shk_why_member(problem, "text"));
    else if (problems)
        shk_chain_add(why->chain, "dependencies", SHK_LINK_OK, NULL, "libfabric loads");
    else if (shk_why_array(why->known, "fabric.providers"))
        shk_chain_add(why->chain, "dependencies", SHK_LINK_OK, NULL, "libfabric answered");
    else {
        shk_chain_add(why->chain, "dependencies", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "fabric.problems"));
        shk_why_unread(why, "fabric.problems", false);
    }
    if ((first || problem) && library_is_runtime(lacks))
        shk_chain_code(why->chain, SHK_CODE_NO_GPU_RUNTIME);
    shk_chain_where(why->chain, shk_why_text(why->known, "fabric.path"));
}

static const char *library_filter_text(const struct shk_why *why)
{
    return shk_why_filter(why->known);
}

/* "a,b" lets these through, "^a,b" all but these. */
bool shk_why_filtered(const struct shk_why *why)
{
    const char *filter = library_filter_text(why);
    if (!filter || !*filter)
        return false;
    bool negated = *filter == '^', named = false;
    for (const char *p = filter + negated; *p;) {
        char item[128];
        size_t n = strcspn(p, ",");
        snprintf(item, sizeof item, "%.*s", (int)(n < 127 ? n : 127), p);
        named |= shk_why_names(item, why->provider) || shk_why_names(why->provider, item);
        p += n + (p[n] == ',');
    }
    return negated ? named : !named;
}

static void library_filter(struct shk_why *why)
{
    const char *filter = library_filter_text(why), *value;
    enum shk_look look = shk_look_text(why->known, "fabric.filter", &value);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT &&
        shk_look_text(why->known, shk_variable_fact("provider-filter"), &value) ==
            SHK_LOOK_FAILED) {
        shk_chain_add(why->chain, "filter", SHK_LINK_UNKNOWN, NULL, "%s was not read",
                      shk_variable("provider-filter"));
        shk_why_lacks(why, shk_variable_fact("provider-filter"));
    } else if (!filter || !*filter)
        shk_chain_add(why->chain, "filter", SHK_LINK_OK, NULL, "%s is not set",
                      shk_variable("provider-filter"));
    else if (shk_why_filtered(why))
        shk_chain_add(why->chain, "filter", SHK_LINK_BROKEN, NULL, "%s=%s %s %s",
                      shk_variable("provider-filter"), filter,
                      *filter == '^' ? "excludes" : "leaves out", why->provider);
    else
        shk_chain_add(why->chain, "filter", SHK_LINK_OK, NULL, "%s=%s lets it through",
                      shk_variable("provider-filter"), filter);
    shk_chain_where(why->chain, shk_variable("provider-filter"));
}

void shk_why_library_steps(struct shk_why *why)
{
    library_has(why);
    library_loads(why);
    library_filter(why);
}
