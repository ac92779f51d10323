#include "checks/fabric.h"

#include <stdlib.h>
#include <string.h>

static bool needs_fabric(const struct shk_profile *profile)
{
    return profile->providers && profile->providers[0];
}

static void eval_library(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_fabric_library, "libfabric");
    struct shk_fact fact;
    row.fact = "fabric.version";
    row.required = needs_fabric(ctx->profile);
    enum shk_look look = shk_look(ctx->facts, "fabric.version", &fact);
    if (look == SHK_LOOK_PRESENT) {
        const char *path = shk_facts_get_text(ctx->facts, "fabric.path");
        const char *version = json_string_value(fact.value);
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s%s%s%s", version ? version : "", path ? " (" : "",
                     path ? path : "", path ? ")" : "");
        shk_row_end(findings, &row);
    } else if (look != SHK_LOOK_ABSENT) {
        shk_row_unread(findings, &row, ctx->facts, "fabric.version");
    } else if (needs_fabric(ctx->profile)) {
        const char *provider = ctx->profile->providers[0];
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = shk_provider_diagnosis(provider, strlen(provider), SHK_PROVIDER_NO_DOMAIN);
        shk_row_text(&row.observed, "not found");
        shk_row_text(&row.expected, "libfabric with provider %s", provider);
        shk_row_text(&row.why, "%s",
                     fact.reason ? fact.reason : "no libfabric.so.1 where the loader looks");
        shk_row_text(&row.fix, "put the directory of libfabric.so.1 into LD_LIBRARY_PATH");
        shk_row_end(findings, &row);
    } else {
        shk_row_na(findings, &row, "not found, and profile %s does not need it: %s",
                   ctx->profile->name, fact.reason ? fact.reason : "");
    }
}

const struct shk_check shk_check_fabric_library = {
    .id = "fabric.library",
    .family = "libfabric",
    .title = "libfabric is found and loads",
    .eval = eval_library,
    .doc = "Facts: fabric.version, fabric.path (of the file that was really loaded).\n"
           "FAIL when it is not there and the profile names providers; n/a when nothing needs it.",
};

/* Several copies of a library: which one is taken depends on the search path. */
static void copies_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *key, const char *path_key, const char *name,
                       const char *diagnosis)
{
    const json_t *copies = shk_facts_get_array(ctx->facts, key);
    struct shk_row row = shk_row_start(&shk_check_fabric_copies, name);
    row.fact = key;
    if (json_array_size(copies) < 2) {
        shk_row_na(findings, &row, copies ? "one copy" : "copies were not looked for");
        return;
    }
    const char *taken = shk_facts_get_text(ctx->facts, path_key);
    const char *first = NULL;
    bool differ = false;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *copy;
    json_array_foreach((json_t *)copies, i, copy)
    {
        const char *path = shk_member_text(copy, "path");
        const char *version = shk_member_text(copy, "version");
        if (!path)
            continue;
        shk_strbuf_printf(&sb, "%s%s (%s)", sb.len ? ", " : "", path, version ? version : "?");
        if (version && first)
            differ |= strcmp(version, first) != 0;
        else if (version)
            first = version;
    }
    shk_row_verdict(&row, differ ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    if (differ) {
        row.diagnosis = diagnosis;
        shk_row_text(&row.why, "copies of different versions are in reach; the loader takes %s",
                     taken ? taken : "the first on its path");
        shk_row_text(&row.fix, "leave only the wanted directory in LD_LIBRARY_PATH");
    }
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
    .title = "Only one version of each library is in reach of the loader",
    .eval = eval_copies,
    .doc = "Facts: fabric.copies, nccl.copies, rccl.copies ([{path, version}]).\n"
           "WARN when copies of different versions are in reach: MPI, the framework and the net "
           "plugin may each load another one.",
};
