#include "probes/fabric/why_private.h"

#include "core/text/strbuf.h"

#include <stdio.h>
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
    json_array_foreach(shk_facts_get_array(why->known, "fabric.copies"), i, copy)
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
    json_array_foreach(shk_facts_get_array(why->known, "fabric.dl_providers"), i, row)
    {
        if (shk_why_names(why->provider, shk_why_member(row, "name")))
            return row;
    }
    return NULL;
}

/* FI_PROVIDER_PATH takes the place of the library's own directory. */
static char *library_plugin_text(const struct shk_why *why)
{
    const char *path = shk_facts_get_text(why->known, "fabric.provider_path");
    const json_t *plugin = library_plugin(why);
    if (plugin)
        return shk_strf("as the file %s", shk_why_member(plugin, "path"));
    return path ? shk_strf("FI_PROVIDER_PATH=%s holds no lib%s-fi.so", path, why->provider) : NULL;
}

static void library_missing(struct shk_why *why)
{
    const char *path = shk_facts_get_text(why->known, "fabric.path");
    const char *version = shk_facts_get_text(why->known, "fabric.version");
    const char *broken = shk_why_member(library_plugin(why), "problem");
    char *other = library_other(why, path ? path : ""), *searched = library_plugin_text(why);
    char *have = library_join(shk_facts_get_array(why->known, "fabric.core_providers"));
    char *it_has = shk_strf("%s%sit has: %s", searched ? searched : "", searched ? "; " : "",
                            have ? have : "");
    if (*broken)
        shk_step_add(why->steps, "library", SHK_STEP_BROKEN, searched, "%s", broken);
    else
        shk_step_add(why->steps, "library", SHK_STEP_BROKEN, other ? other : it_has,
                     "%s (%s) has no provider %s", path ? path : "libfabric.so.1",
                     version ? version : "version unknown", why->provider);
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
    const char *path = shk_facts_get_text(why->known, "fabric.path");
    const char *version = shk_facts_get_text(why->known, "fabric.version");
    json_t *core = shk_facts_get_array(why->known, "fabric.core_providers");
    struct shk_fact fact;
    bool asked = shk_facts_get(why->known, "fabric.path", &fact);
    if (asked && fact.state == SHK_FACT_ABSENT) {
        char *other = library_other(why, "");
        shk_step_add(why->steps, "library", SHK_STEP_BROKEN, other, "libfabric.so.1: %s",
                     fact.reason ? fact.reason : "not found");
        free(other);
    } else if (core && library_all_parts(core, why->provider)) {
        char *plugin = library_plugin(why) ? library_plugin_text(why) : NULL;
        shk_step_add(why->steps, "library", SHK_STEP_OK, plugin, "%s (%s) has it",
                     path ? path : "libfabric.so.1", version ? version : "version unknown");
        free(plugin);
    } else if (core) {
        library_missing(why);
    } else {
        shk_step_add(why->steps, "library", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, "fabric.core_providers"));
    }
    shk_step_where(why->steps, path ? path : "libfabric.so.1");
}

static void library_loads(struct shk_why *why)
{
    json_t *problems = shk_facts_get_array(why->known, "fabric.problems");
    json_t *problem = shk_facts_get_object(why->known, "fabric.problem");
    const char *first = shk_why_member(json_array_get(problems, 0), "text");
    if (*first)
        shk_step_add(why->steps, "dependencies", SHK_STEP_BROKEN, NULL, "%s", first);
    else if (problem)
        shk_step_add(why->steps, "dependencies", SHK_STEP_BROKEN, shk_why_member(problem, "call"),
                     "%s", shk_why_member(problem, "text"));
    else if (problems)
        shk_step_add(why->steps, "dependencies", SHK_STEP_OK, NULL, "libfabric loads");
    else if (shk_facts_get_array(why->known, "fabric.providers"))
        shk_step_add(why->steps, "dependencies", SHK_STEP_OK, NULL, "libfabric answered");
    else
        shk_step_add(why->steps, "dependencies", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, "fabric.problems"));
    shk_step_where(why->steps, shk_facts_get_text(why->known, "fabric.path"));
}

static const char *library_filter_text(const struct shk_why *why)
{
    const char *filter = shk_facts_get_text(why->known, "fabric.filter");
    return filter ? filter : shk_facts_get_text(why->known, "env.FI_PROVIDER");
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
    const char *filter = library_filter_text(why);
    if (!filter || !*filter)
        shk_step_add(why->steps, "filter", SHK_STEP_OK, NULL, "FI_PROVIDER is not set");
    else if (shk_why_filtered(why))
        shk_step_add(why->steps, "filter", SHK_STEP_BROKEN, NULL, "FI_PROVIDER=%s %s %s", filter,
                     *filter == '^' ? "excludes" : "leaves out", why->provider);
    else
        shk_step_add(why->steps, "filter", SHK_STEP_OK, NULL, "FI_PROVIDER=%s lets it through",
                     filter);
    shk_step_where(why->steps, "FI_PROVIDER");
}

void shk_why_library_steps(struct shk_why *why)
{
    library_has(why);
    library_loads(why);
    library_filter(why);
}
