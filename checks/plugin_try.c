/* The net plugins that NCCL would take, judged by the chain that the probe left: may the file be
 * used and does it load (plugin.load), and does it work when it is started (plugin.use)? */
#include "checks/chain.h"
#include "checks/coded.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = shk_member_text(object, name);
    return text ? text : "";
}

/* Net plugins that the library itself would try, and of which there is something to judge. A path
 * that does not exist counts when others of the list do: else plugin.file tells it. */
static bool is_candidate(const json_t *plugin, bool others)
{
    const char *kind = shk_member_text(plugin, "kind");
    if ((kind && strcmp(kind, "net") != 0) || !shk_member_bool(plugin, "considered", true))
        return false;
    return shk_member_bool(plugin, "found", false) || shk_member_text(plugin, "passed_over") ||
           (others && strchr(text_of(plugin, "name"), '/'));
}

static size_t count_candidates(const struct shk_check_context *ctx, bool others)
{
    size_t i, count = 0;
    json_t *plugin;
    json_array_foreach(shk_facts_get_array(ctx->facts, "plugin.candidates"), i, plugin) count +=
        is_candidate(plugin, others);
    return count;
}

/* Does anything depend on the plugin? Otherwise a broken one only warns. */
static bool is_wanted(const struct shk_check_context *ctx)
{
    const char *name = shk_facts_get_text(ctx->facts, "plugin.requested");
    const char *policy = ctx->profile->plugin;
    if (!name)
        name = shk_env_get(ctx->facts, "NCCL_NET_PLUGIN");
    return (name && *name) || (policy && strcmp(policy, "none") != 0);
}

/* Another candidate of the list is what NCCL ends up with. */
static bool is_replaced(const struct shk_check_context *ctx, const json_t *plugin)
{
    const char *chosen = shk_facts_get_text(ctx->facts, "plugin.chosen");
    return chosen && strcmp(chosen, text_of(plugin, "path")) != 0;
}

static enum shk_verdict broken_verdict(const struct shk_check_context *ctx, const json_t *plugin)
{
    return is_wanted(ctx) && !is_replaced(ctx, plugin) ? SHK_FAIL : SHK_WARN;
}

/* "net plugin load", with the name when there are several. */
static char *setting_of(const char *what, const json_t *plugin)
{
    return plugin ? shk_strf("net plugin %s (%s)", what, text_of(plugin, "name"))
                  : shk_strf("net plugin %s", what);
}

static const char *const load_steps[] = {"file",     "format", "abi", "dependencies",
                                         "versions", "load",   NULL};
static const char *const use_steps[] = {"init", "devices", "properties", "loopback", NULL};

/* The first row of the chain in that state among those steps. */
static bool first_of(const json_t *plugin, const char *const *steps, const char *state,
                     struct shk_link *link_p)
{
    json_t *mine = json_array(), *row;
    size_t i;
    json_array_foreach(json_object_get(plugin, "steps"), i,
                       row) if (shk_list_has(steps, text_of(row, "step")))
        json_array_append(mine, row);
    bool found = shk_chain_first(mine, state, link_p);
    json_decref(mine); /* the rows live on in the plugin */
    return found;
}

/* Died or hung, rather than returned an error. */
static bool has_crashed(const json_t *plugin, const struct shk_link *link)
{
    static const char *const outcomes[] = {"crashed", "exited", "timeout", "memory", NULL};
    const char *step = strcmp(link->step, "properties") == 0 ? "devices" : link->step;
    const char *outcome = shk_member_text(json_object_get(plugin, step), "outcome");
    return outcome && shk_list_has(outcomes, outcome);
}

static const json_t *version_problem(const json_t *plugin)
{
    size_t i;
    json_t *problem;
    json_array_foreach(json_object_get(plugin, "problems"), i,
                       problem) if (strcmp(text_of(problem, "kind"), "version") ==
                                    0) return problem;
    return NULL;
}

static const char *load_diagnosis(const json_t *plugin, const struct shk_link *link)
{
    if (strcmp(link->step, "file") == 0)
        return "net-plugin-name-wrong";
    if (strcmp(link->step, "format") == 0)
        return "plugin-file-unusable";
    if (strcmp(link->step, "abi") == 0)
        return "plugin-abi-mismatch";
    if (has_crashed(plugin, link))
        return "plugin-crashes";
    if (shk_member_text(json_object_get(plugin, "load"), "missing_slots"))
        return "plugin-interface-broken";
    return strstr(link->what, "FABRIC_") ? "plugin-libfabric-version-mismatch"
                                         : "plugin-dependency-missing";
}

/* A copy of libfabric that has the symbol version which the loaded one lacks. */
static const char *newer_copy(const struct shk_check_context *ctx, const json_t *problem)
{
    const char *version = text_of(problem, "version");
    size_t i;
    json_t *copy;
    if (strncmp(version, "FABRIC_", 7) != 0)
        return NULL;
    json_array_foreach(shk_facts_get_array(ctx->facts, "fabric.copies"), i, copy)
    {
        const char *abi = text_of(copy, "abi");
        if (strncmp(abi, "FABRIC_", 7) == 0 && shk_version_cmp(abi + 7, version + 7) >= 0)
            return shk_member_text(copy, "path");
    }
    return NULL;
}

static void load_fix(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                     const struct shk_link *link)
{
    const json_t *problem = version_problem(plugin);
    const char *path = text_of(plugin, "path"), *newer = problem ? newer_copy(ctx, problem) : NULL;
    const char *slash = newer ? strrchr(newer, '/') : NULL;
    if (strcmp(link->step, "file") == 0)
        shk_row_text(&row->fix, "take it out of NCCL_NET_PLUGIN, or give the path of the file");
    else if (strcmp(link->step, "format") == 0)
        shk_row_text(&row->fix, "install the plugin again, built for this machine");
    else if (strcmp(link->step, "abi") == 0)
        shk_row_text(&row->fix, "install a plugin release made for this NCCL");
    else if (strcmp(link->step, "versions") == 0 && slash)
        shk_row_text(&row->fix, "export LD_LIBRARY_PATH=%.*s:$LD_LIBRARY_PATH",
                     (int)(slash - newer), newer);
    else if (strcmp(link->step, "versions") == 0)
        shk_row_text(&row->fix,
                     "put the %s that the plugin was built with first in "
                     "LD_LIBRARY_PATH, or build the plugin against %s",
                     text_of(problem, "library"), text_of(problem, "path"));
    else if (has_crashed(plugin, link) || strstr(link->what, "ncclNetPlugin"))
        shk_row_text(&row->fix, "install another release of the plugin");
    else
        shk_row_text(&row->fix, "make the library that is named available to the loader (ldd %s)",
                     path);
}

/* What NCCL does about it: it drops what it notices, and does not notice the rest. */
static const char *consequence(const struct shk_check_context *ctx, const json_t *plugin,
                               const struct shk_link *link)
{
    static const char *const unnoticed[] = {"properties", "loopback", NULL};
    if (has_crashed(plugin, link))
        return "; in a job this takes the rank with it";
    if (shk_list_has(unnoticed, link->step))
        return "";
    return is_replaced(ctx, plugin) ? "; NCCL takes the next plugin of the list"
                                    : "; NCCL goes on without it";
}

static void add_problem(const struct shk_check_context *ctx, struct shk_row *row,
                        const json_t *plugin, const struct shk_link *link)
{
    char *text = shk_link_text(link);
    bool executed = json_is_object(json_object_get(plugin, "load"));
    shk_row_verdict(row, broken_verdict(ctx, plugin), executed ? SHK_TESTED : SHK_EFFECT);
    shk_row_text(&row->observed, "first broken link: %s", link->step);
    shk_row_text(&row->why, "%s%s", text ? text : link->what, consequence(ctx, plugin, link));
    free(text);
}

/* Facts without a chain: what dlopen() said, if it was tried. */
static void load_plain(const struct shk_check_context *ctx, struct shk_row *row,
                       const json_t *plugin)
{
    const char *path = shk_member_text(plugin, "path");
    const json_t *load = json_object_get(plugin, "load"), *ok = json_object_get(load, "ok");
    const char *error = shk_member_text(load, "error");
    if (!json_is_boolean(ok)) {
        shk_row_text(&row->why, "loading it was not tried%s%s", error ? ": " : "",
                     error ? error : "");
    } else if (json_is_true(ok)) {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row->observed, "%s loads", path ? path : "it");
    } else {
        shk_row_verdict(row, broken_verdict(ctx, plugin), SHK_TESTED);
        row->diagnosis = error && strstr(error, "FABRIC_") ? "plugin-libfabric-version-mismatch"
                                                           : "plugin-dependency-missing";
        shk_row_text(&row->observed, "%s does not load", path ? path : "it");
        shk_row_text(&row->why, "%s; NCCL goes on without it", error ? error : "no reason given");
        shk_row_text(&row->fix, "make the library that the loader names available (ldd %s)",
                     path ? path : "the plugin");
    }
}

static void load_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin)
{
    struct shk_link link;
    if (!json_is_array(json_object_get(plugin, "steps"))) {
        load_plain(ctx, row, plugin);
    } else if (first_of(plugin, load_steps, "broken", &link)) {
        add_problem(ctx, row, plugin, &link);
        row->diagnosis = load_diagnosis(plugin, &link);
        load_fix(ctx, row, plugin, &link);
    } else if (first_of(plugin, load_steps, "unknown", &link)) {
        char *text = shk_link_text(&link);
        shk_row_text(&row->why, "%s: %s", link.step, text ? text : link.what);
        free(text);
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row->observed, "%s loads", text_of(plugin, "path"));
    }
}

/* On a node without GPUs a plugin cannot start, which says nothing about the network. */
static bool needs_gpu(const struct shk_check_context *ctx, const json_t *plugin,
                      const struct shk_link *link)
{
    static const char *const words[] = {"CUDA", "cuda", "hip", "HIP", "ROCr", "GPU", "Neuron"};
    if (strcmp(link->step, "init") != 0 || has_crashed(plugin, link) ||
        shk_gpu_count(ctx->facts) != 0)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(link->detail, words[i]))
            return true;
    return false;
}

static const char *use_diagnosis(const json_t *plugin, const struct shk_link *link)
{
    const json_t *loop = json_object_get(plugin, "loopback");
    const char *missing;
    if (has_crashed(plugin, link))
        return "plugin-crashes";
    if (shk_look_member_text(json_object_get(plugin, "init"), "missing_slots", &missing) ==
        SHK_LOOK_PRESENT)
        return "plugin-interface-broken";
    if (strcmp(link->step, "init") == 0)
        return "net-plugin-init-failed";
    if (strcmp(link->step, "devices") == 0)
        return shk_member_int(json_object_get(plugin, "devices"), "rc", 0)
                   ? "net-plugin-init-failed"
                   : "plugin-no-device";
    if (strcmp(link->step, "properties") == 0)
        return "plugin-interface-broken";
    if (strcmp(text_of(loop, "step"), "verify") == 0)
        return "plugin-corrupts-data";
    return strstr(link->what, "still pending") ? "plugin-connection-stall"
                                               : "plugin-transfer-failed";
}

static void use_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin)
{
    struct shk_link link;
    const json_t *loop = json_object_get(plugin, "loopback");
    if (first_of(plugin, load_steps, "broken", &link)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it does not get that far");
    } else if (!first_of(plugin, use_steps, "broken", &link)) {
        if (!json_is_array(json_object_get(plugin, "steps")) ||
            first_of(plugin, use_steps, "unknown", &link)) {
            shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
            shk_row_text(&row->why, "it was not started (%s)",
                         shk_member_text(plugin, "untried") ? shk_member_text(plugin, "untried")
                                                            : "a capture, or --quick");
        } else {
            shk_row_verdict(row, SHK_PASS, SHK_TESTED);
            shk_row_text(&row->observed, "%lld devices, loopback of %lld bytes right",
                         shk_member_int(json_object_get(plugin, "devices"), "count", 0),
                         shk_member_int(loop, "bytes", 0));
        }
    } else if (needs_gpu(ctx, plugin, &link)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it starts only on a node with GPUs: %s", link.detail);
    } else {
        add_problem(ctx, row, plugin, &link);
        row->diagnosis = use_diagnosis(plugin, &link);
        shk_row_text(&row->fix, "FI_LOG_LEVEL=warn NCCL_DEBUG=INFO in the job's environment says "
                                "more; otherwise install another release of the plugin");
    }
}

static void each_candidate(const struct shk_check_context *ctx, struct shk_findings *findings,
                           const struct shk_check *check, const char *what,
                           void (*judge)(const struct shk_check_context *ctx, struct shk_row *row,
                                         const json_t *plugin))
{
    bool others = count_candidates(ctx, false) > 0;
    size_t i, count = count_candidates(ctx, others);
    json_t *plugin;
    json_array_foreach(shk_facts_get_array(ctx->facts, "plugin.candidates"), i, plugin)
    {
        if (!is_candidate(plugin, others))
            continue;
        char *setting = setting_of(what, count > 1 ? plugin : NULL);
        struct shk_row row = shk_row_start(check, setting ? setting : what);
        row.fact = "plugin.candidates";
        row.source = "NVIDIA/nccl:src/plugin/net.cc";
        judge(ctx, &row, plugin);
        /* required only where the profile says so, and where it is about the one in use */
        row.required = row.verdict == SHK_UNKNOWN && ctx->profile->plugin &&
                       strcmp(ctx->profile->plugin, "required") == 0;
        shk_row_end(findings, &row);
        free(setting);
    }
    if (count)
        return;
    char *setting = setting_of(what, NULL);
    struct shk_row row = shk_row_start(check, setting ? setting : what);
    row.fact = "plugin.candidates";
    shk_row_na(findings, &row, "no plugin file was found");
    free(setting);
}

static void eval_load(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    each_candidate(ctx, findings, &shk_check_plugin_load, "load", load_row);
}

static void eval_use(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    each_candidate(ctx, findings, &shk_check_plugin_use, "use", use_row);
}

const struct shk_check shk_check_plugin_load = {
    .id = "plugin.load",
    .family = "net plugin",
    .title = "The net plugin loads",
    .eval = eval_load,
    .doc = "Fact: plugin.candidates[].steps, from the file up to dlopen(RTLD_NOW) in a child, as "
           "NCCL does it: file format, interface versions, needed libraries, their symbol "
           "versions. The loader's reason is given word for word.\n"
           "A row for each plugin that NCCL would try. The first broken link is FAIL when "
           "NCCL_NET_PLUGIN or the profile asks for a plugin and no other one takes its place, "
           "else WARN.",
};

const struct shk_check shk_check_plugin_use = {
    .id = "plugin.use",
    .family = "net plugin",
    .title = "The net plugin starts, has devices and carries data",
    .eval = eval_use,
    .doc = "Fact: plugin.candidates[].steps: init with a logger, devices, their properties, and a "
           "message from the first device to itself, every byte compared; each in a child with a "
           "deadline.\n"
           "As plugin.load; n/a on captures, with --quick, and for a plugin that asks for GPUs on "
           "a node without any.",
};
