#include "checks/coded.h"

#include <string.h>

static const json_t *candidates(const struct shk_facts *facts, enum shk_look *look_p)
{
    struct shk_fact fact;
    *look_p = shk_look(facts, "plugin.candidates", &fact);
    return *look_p == SHK_LOOK_PRESENT && json_is_array(fact.value) ? fact.value : NULL;
}

/* The file that NCCL takes: the first net candidate that exists. Later files of the directories are
 * listed too, but not considered. */
static const json_t *first_found(const json_t *list)
{
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        const char *kind = shk_member_text(plugin, "kind");
        if ((!kind || strcmp(kind, "net") == 0) && shk_member_bool(plugin, "considered", true) &&
            shk_member_bool(plugin, "found", false))
            return plugin;
    }
    return NULL;
}

static const char *requested(const struct shk_facts *facts)
{
    const char *name = shk_facts_get_text(facts, "plugin.requested");
    if (!name)
        name = shk_env_get(facts, "NCCL_NET_PLUGIN");
    return name && *name && strcmp(name, "none") != 0 ? name : NULL;
}

static char *looked_for(const json_t *list)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        const char *name = shk_member_text(plugin, "name");
        if (name && sb.len < 160 && !strstr(shk_strbuf_text(&sb), name))
            shk_strbuf_printf(&sb, "%s%s", sb.len ? ", " : "", name);
    }
    return sb.len ? shk_strbuf_take(&sb) : strdup("libnccl-net.so");
}

static bool wanted(const struct shk_profile *profile, const char *strength)
{
    return profile->plugin && strcmp(profile->plugin, strength) == 0;
}

static void not_found(const struct shk_check_context *ctx, struct shk_findings *findings,
                      struct shk_row *row, const json_t *list)
{
    const char *name = requested(ctx->facts);
    char *names = looked_for(list);
    bool one_node = shk_job_nodes(ctx->facts) == 1;
    shk_row_text(&row->observed, "not found (%s)", names ? names : "");
    if (name) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "net-plugin-name-wrong";
        shk_row_text(&row->why,
                     "NCCL_NET_PLUGIN=%s: none of %s is where the loader looks; NCCL "
                     "goes on with its own sockets or verbs",
                     name, names ? names : "the files");
        shk_row_text(&row->fix, "unset NCCL_NET_PLUGIN, or give the full path of the file");
    } else if (wanted(ctx->profile, "required") || wanted(ctx->profile, "recommended")) {
        bool fail = wanted(ctx->profile, "required") && !one_node;
        shk_row_verdict(row, fail ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
        row->diagnosis = "net-plugin-missing";
        shk_row_text(&row->expected, "a net plugin for this fabric");
        shk_row_text(&row->why, "without it NCCL falls back to TCP sockets in silence");
        shk_row_text(&row->fix, "put the directory of the plugin into LD_LIBRARY_PATH, or set "
                                "NCCL_NET_PLUGIN to its full path");
    } else {
        free(names);
        shk_row_na(findings, row, "profile %s needs no net plugin", ctx->profile->name);
        return;
    }
    free(names);
    shk_row_end(findings, row);
}

static void eval_file(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_plugin_file, "net plugin file");
    enum shk_look look;
    const json_t *list = candidates(ctx->facts, &look);
    row.fact = "plugin.candidates";
    row.required = wanted(ctx->profile, "required");
    row.source = "NVIDIA/nccl:src/plugin/net.cc";
    if (!list && look != SHK_LOOK_ABSENT) {
        shk_row_unread(findings, &row, ctx->facts, "plugin.candidates");
        return;
    }
    const json_t *plugin = first_found(list);
    if (!plugin) {
        not_found(ctx, findings, &row, list);
        return;
    }
    const char *path = shk_member_text(plugin, "path"), *why = shk_member_text(plugin, "reason");
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%s", path ? path : "found");
    if (why)
        shk_row_text(&row.why, "%s", why);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_plugin_file = {
    .id = "plugin.file",
    .family = "net plugin",
    .title = "The net plugin is found where NCCL looks",
    .eval = eval_file,
    .doc = "Facts: plugin.candidates (by NCCL's own search order), plugin.requested.\n"
           "A name in NCCL_NET_PLUGIN that matches no file is FAIL; none at all is FAIL or WARN "
           "as the profile says, WARN in a job of one node.",
};

static void versions_text(struct shk_strbuf *sb, const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) if (json_is_integer(v))
        shk_strbuf_printf(sb, "%sv%lld", sb->len ? " " : "", (long long)json_integer_value(v));
}

static long long best_common(const json_t *a, const json_t *b)
{
    long long best = -1;
    size_t i, j;
    json_t *x, *y;
    json_array_foreach((json_t *)a, i, x)
        json_array_foreach((json_t *)b, j, y) if (json_is_integer(x) && json_is_integer(y) &&
                                                  json_integer_value(x) == json_integer_value(y) &&
                                                  json_integer_value(x) > best) best =
            json_integer_value(x);
    return best;
}

static void eval_abi(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_plugin_abi, "net plugin ABI");
    enum shk_look look;
    const json_t *plugin = first_found(candidates(ctx->facts, &look));
    row.fact = "plugin.candidates, nccl.net_abi, rccl.net_abi";
    row.source = "NVIDIA/nccl:src/plugin/net.cc";
    if (!plugin) {
        shk_row_na(findings, &row, "no plugin file was found");
        return;
    }
    const char *name = shk_member_text(plugin, "name");
    const json_t *nccl = shk_facts_get_array(ctx->facts, "nccl.net_abi");
    const json_t *rccl = shk_facts_get_array(ctx->facts, "rccl.net_abi");
    bool amd = (name && strstr(name, "librccl")) || json_array_size(nccl) == 0;
    const json_t *library = amd && json_array_size(rccl) ? rccl : nccl;
    const char *title = library == rccl && rccl ? "RCCL" : "NCCL";
    const json_t *exported = json_object_get(json_object_get(plugin, "abi"), "net");
    if (json_array_size(library) == 0) {
        shk_row_na(findings, &row, "no NCCL or RCCL was found to compare with");
        return;
    }
    if (!json_is_array(exported)) {
        shk_row_text(&row.why, "the symbols of the plugin could not be read");
        shk_row_end(findings, &row);
        return;
    }
    struct shk_strbuf has = SHK_STRBUF_INIT, takes = SHK_STRBUF_INIT;
    versions_text(&has, exported);
    versions_text(&takes, library);
    long long common = best_common(exported, library);
    shk_row_text(&row.observed, "plugin: %s; %s: %s", has.len ? shk_strbuf_text(&has) : "none",
                 title, shk_strbuf_text(&takes));
    shk_row_verdict(&row, common >= 0 ? SHK_PASS : SHK_FAIL, SHK_EFFECT);
    if (common >= 0) {
        shk_row_text(&row.why, "v%lld will be used", common);
    } else {
        row.diagnosis = "plugin-abi-mismatch";
        shk_row_text(&row.expected, "one ncclNetPlugin version in common");
        shk_row_text(&row.why,
                     "%s knows none of the plugin's interface versions, ignores it and "
                     "falls back to its own transports",
                     title);
        shk_row_text(&row.fix, "install a plugin release made for this %s", title);
    }
    shk_strbuf_free(&has);
    shk_strbuf_free(&takes);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_plugin_abi = {
    .id = "plugin.abi",
    .family = "net plugin",
    .title = "Plugin and NCCL have an interface version in common",
    .eval = eval_abi,
    .doc = "Facts: plugin.candidates[].abi.net (exported symbols), nccl.net_abi, rccl.net_abi "
           "(symbols that the library asks for). Read from the files, nothing is executed.",
};
