/* The net plugins that NCCL would take, judged by the chain that the probe left: may the file be
 * used and does it load (plugin.load), and does it work when it is started (plugin.use)? */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/fabric/plugin.h"

#include <string.h>

#define text_of shk_plugin_text

/* Net plugins that the library itself would try, and of which there is something to judge. A path
 * that does not exist counts when others of the list do: else plugin.file tells it. */
static enum shk_told is_candidate(const json_t *plugin, bool others)
{
    enum shk_told considered = shk_plugin_is_considered(plugin);
    enum shk_told found = shk_plugin_is_found(plugin);
    if (considered != SHK_TOLD_YES || found != SHK_TOLD_NO)
        return considered == SHK_TOLD_NO                                   ? SHK_TOLD_NO
               : considered == SHK_TOLD_UNREAD || found == SHK_TOLD_UNREAD ? SHK_TOLD_UNREAD
                                                                           : SHK_TOLD_YES;
    return *text_of(plugin, "passed_over") || shk_plugin_blocked(plugin) ||
                   (others && strchr(text_of(plugin, "name"), '/'))
               ? SHK_TOLD_YES
               : SHK_TOLD_NO;
}

static size_t count_candidates(const json_t *list, bool others, enum shk_told told)
{
    size_t i, count = 0;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin) count += is_candidate(plugin, others) == told;
    return count;
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

static json_t *steps_of(const json_t *plugin)
{
    json_t *steps = NULL;
    (void)shk_look_member_array(plugin, "steps", &steps);
    return steps;
}

/* The first row of the chain in that state among those steps. */
static bool first_of(const json_t *plugin, const char *const *steps, const char *state,
                     struct shk_link *link_p)
{
    json_t *mine = json_array(), *row;
    size_t i;
    json_array_foreach(steps_of(plugin), i, row) if (shk_list_has(steps, text_of(row, "step")))
        json_array_append(mine, row);
    bool found = shk_chain_first(mine, state, link_p);
    json_decref(mine); /* the rows live on in the plugin */
    return found;
}

/* A member of what a step left ("load", "init" …); "" and 0 when there is none. */
static const char *tried_text(const json_t *plugin, const char *step, const char *name)
{
    return text_of(json_object_get(plugin, step), name);
}

static long long tried_int(const json_t *plugin, const char *step, const char *name)
{
    long long value = 0;
    (void)shk_look_member_int(json_object_get(plugin, step), name, &value);
    return value;
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
        return shk_plugin_blocked(plugin) ? "plugin-file-unusable" : "net-plugin-name-wrong";
    if (strcmp(link->step, "format") == 0)
        return "plugin-file-unusable";
    if (strcmp(link->step, "abi") == 0)
        return "plugin-abi-mismatch";
    if (shk_plugin_crashed(plugin, link))
        return "plugin-crashes";
    if (*tried_text(plugin, "load", "missing_slots"))
        return "plugin-interface-broken";
    return strstr(link->what, "FABRIC_") ? "plugin-libfabric-version-mismatch"
                                         : "plugin-dependency-missing";
}

/* A copy of libfabric that has the symbol version which the loaded one lacks. */
static const char *newer_copy(const struct shk_check_context *ctx, const json_t *problem)
{
    const char *version = text_of(problem, "version");
    size_t i;
    json_t *copy, *copies = NULL;
    if (strncmp(version, "FABRIC_", 7) != 0)
        return NULL;
    (void)shk_look_array(ctx->facts, "fabric.copies", &copies);
    json_array_foreach(copies, i, copy)
    {
        const char *abi = text_of(copy, "abi"), *path;
        if (strncmp(abi, "FABRIC_", 7) == 0 && shk_version_cmp(abi + 7, version + 7) >= 0 &&
            shk_look_member_text(copy, "path", &path) == SHK_LOOK_PRESENT)
            return path;
    }
    return NULL;
}

static void load_fix(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                     const struct shk_link *link)
{
    const json_t *problem = version_problem(plugin);
    const char *path = text_of(plugin, "path"), *newer = problem ? newer_copy(ctx, problem) : NULL;
    const char *slash = newer ? strrchr(newer, '/') : NULL;
    if (strcmp(link->step, "file") == 0 && shk_plugin_blocked(plugin))
        shk_row_text(&row->fix, "ls -lL %s; install the plugin again, readable for everybody",
                     text_of(shk_plugin_blocked(plugin), "path"));
    else if (strcmp(link->step, "file") == 0)
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
    else if (shk_plugin_crashed(plugin, link) || strstr(link->what, "ncclNetPlugin"))
        shk_row_text(&row->fix, "install another release of the plugin");
    else
        shk_row_text(&row->fix, "make the library that is named available to the loader (ldd %s)",
                     path);
}

static void add_problem(const struct shk_check_context *ctx, struct shk_row *row,
                        const json_t *plugin, const struct shk_link *link)
{
    char *text = shk_link_text(link), *after = shk_plugin_consequence(ctx, plugin, link);
    bool executed = json_is_object(json_object_get(plugin, "load"));
    shk_row_verdict(row, shk_plugin_verdict(ctx, plugin, link), executed ? SHK_TESTED : SHK_EFFECT);
    shk_row_text(&row->observed, "first broken link: %s", link->step);
    shk_row_text(&row->why, "%s%s", text ? text : link->what, after ? after : "");
    free(text);
    free(after);
}

static void say_loads(struct shk_row *row, const json_t *plugin)
{
    const char *path;
    shk_row_verdict(row, SHK_PASS, SHK_TESTED);
    if (shk_read_member_text(row, SHK_PLUGIN_FACT, plugin, "path", &path) == SHK_LOOK_PRESENT)
        shk_row_text(&row->observed, "%s loads", path);
}

/* Facts without a chain: what dlopen() said, if it was tried. */
static void load_plain(const struct shk_check_context *ctx, struct shk_row *row,
                       const json_t *plugin)
{
    const char *path = text_of(plugin, "path"), *error = tried_text(plugin, "load", "error");
    json_t *load = NULL;
    bool ok;
    if (shk_look_member_object(plugin, "load", &load) == SHK_LOOK_MISSING) {
        shk_row_text(&row->why, "loading it was not tried");
    } else if (shk_read_member_object(row, SHK_PLUGIN_FACT, plugin, "load", &load) !=
                   SHK_LOOK_PRESENT ||
               shk_read_member_bool(row, SHK_PLUGIN_FACT, load, "ok", &ok) != SHK_LOOK_PRESENT) {
        shk_row_text(&row->why, "how loading it went could not be read");
    } else if (ok) {
        say_loads(row, plugin);
    } else {
        const struct shk_link link = {.step = "load", .what = error, .where = "", .detail = ""};
        char *after = shk_plugin_consequence(ctx, plugin, &link);
        shk_row_verdict(row, shk_plugin_verdict(ctx, plugin, &link), SHK_TESTED);
        row->diagnosis = strstr(error, "FABRIC_") ? "plugin-libfabric-version-mismatch"
                                                  : "plugin-dependency-missing";
        shk_row_text(&row->observed, "%s does not load", path);
        shk_row_text(&row->why, "%s%s", *error ? error : "no reason given", after ? after : "");
        shk_row_text(&row->fix, "make the library that the loader names available (ldd %s)", path);
        free(after);
    }
}

static void load_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin)
{
    struct shk_link link;
    json_t *steps;
    enum shk_look look = shk_look_member_array(plugin, "steps", &steps);
    if (look == SHK_LOOK_MISSING) {
        load_plain(ctx, row, plugin);
    } else if (look != SHK_LOOK_PRESENT) {
        (void)shk_read_member_array(row, SHK_PLUGIN_FACT, plugin, "steps", &steps);
    } else if (first_of(plugin, load_steps, "broken", &link)) {
        add_problem(ctx, row, plugin, &link);
        row->diagnosis = load_diagnosis(plugin, &link);
        load_fix(ctx, row, plugin, &link);
    } else if (first_of(plugin, load_steps, "unknown", &link)) {
        char *text = shk_link_text(&link);
        bool refused = false; /* root does not run what others may change */
        (void)shk_look_member_bool(plugin, "refused", &refused);
        shk_row_text(&row->why, "%s: %s%s", link.step, text ? text : link.what,
                     refused ? "; run as an ordinary user, or with --trust-libraries" : "");
        free(text);
    } else {
        say_loads(row, plugin);
    }
}

/* On a node without GPUs a plugin cannot start, which says nothing about the network. */
static bool needs_gpu(const struct shk_check_context *ctx, const json_t *plugin,
                      const struct shk_link *link)
{
    static const char *const words[] = {"CUDA", "cuda", "hip", "HIP", "ROCr", "GPU", "Neuron"};
    if (strcmp(link->step, "init") != 0 || shk_plugin_crashed(plugin, link) ||
        shk_gpu_count(ctx->facts) != 0)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(link->detail, words[i]))
            return true;
    return false;
}

static const char *use_diagnosis(const json_t *plugin, const struct shk_link *link)
{
    if (shk_plugin_crashed(plugin, link))
        return "plugin-crashes";
    if (*tried_text(plugin, "init", "missing_slots"))
        return "plugin-interface-broken";
    if (strcmp(link->step, "init") == 0)
        return "net-plugin-init-failed";
    if (strcmp(link->step, "devices") == 0)
        return tried_int(plugin, "devices", "rc") ? "net-plugin-init-failed" : "plugin-no-device";
    if (strcmp(link->step, "properties") == 0)
        return "plugin-interface-broken";
    if (strcmp(tried_text(plugin, "loopback", "step"), "verify") == 0)
        return "plugin-corrupts-data";
    return strstr(link->what, "still pending") ? "plugin-connection-stall"
                                               : "plugin-transfer-failed";
}

static const char *use_fix(const char *diagnosis)
{
    return strcmp(diagnosis, "plugin-interface-broken") == 0
               ? "install another release of the plugin"
           : strcmp(diagnosis, "plugin-no-device") == 0
               ? "fi_info; ibv_devinfo -l: without a network adapter there is nothing to mend"
               : "FI_LOG_LEVEL=warn NCCL_DEBUG=INFO in the job's environment says more; otherwise "
                 "install another release of the plugin";
}

/* What was not started: the question is not asked by --quick and on captures. */
static void use_untried(struct shk_row *row, const json_t *plugin)
{
    const char *untried = text_of(plugin, "untried");
    shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
    shk_row_text(&row->why, "it was not started (%s)",
                 *untried ? untried : "a capture, or --quick");
}

static void use_right(struct shk_row *row, const json_t *plugin)
{
    json_t *devices = NULL, *loop = NULL;
    long long count = 0, bytes = 0;
    (void)shk_read_member_object(row, SHK_PLUGIN_FACT, plugin, "devices", &devices);
    (void)shk_read_member_object(row, SHK_PLUGIN_FACT, plugin, "loopback", &loop);
    (void)shk_read_member_int(row, SHK_PLUGIN_FACT, devices, "count", &count);
    (void)shk_read_member_int(row, SHK_PLUGIN_FACT, loop, "bytes", &bytes);
    shk_row_verdict(row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row->observed, "%lld devices, loopback of %lld bytes right", count, bytes);
}

static void use_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin)
{
    struct shk_link link;
    json_t *steps;
    enum shk_look look = shk_look_member_array(plugin, "steps", &steps);
    if (look == SHK_LOOK_MISSING) {
        use_untried(row, plugin);
    } else if (look != SHK_LOOK_PRESENT) {
        (void)shk_read_member_array(row, SHK_PLUGIN_FACT, plugin, "steps", &steps);
    } else if (first_of(plugin, load_steps, "broken", &link)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it does not get that far");
    } else if (!first_of(plugin, use_steps, "broken", &link)) {
        if (first_of(plugin, use_steps, "unknown", &link))
            use_untried(row, plugin);
        else
            use_right(row, plugin);
    } else if (needs_gpu(ctx, plugin, &link)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it starts only on a node with GPUs: %s", link.detail);
    } else {
        add_problem(ctx, row, plugin, &link);
        row->diagnosis = use_diagnosis(plugin, &link);
        shk_row_text(&row->fix, "%s", use_fix(row->diagnosis));
    }
}

struct pass {
    const struct shk_check *check;
    const char *what;
    void (*judge)(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin);
    size_t unread; /* candidates that do not say whether they are taken */
};

static void one_candidate(const struct shk_check_context *ctx, struct shk_findings *findings,
                          const struct pass *pass, const json_t *plugin, bool named)
{
    char *setting = setting_of(pass->what, named ? plugin : NULL);
    struct shk_row row = shk_row_begin(ctx, pass->check, setting ? setting : pass->what);
    row.fact = SHK_PLUGIN_FACT;
    row.source = SHK_PLUGIN_SOURCE;
    shk_row_was_read(&row);
    pass->judge(ctx, &row, plugin);
    if (pass->unread)
        shk_row_lacks(&row, SHK_PLUGIN_FACT, "%zu more of %s do not say whether they are taken",
                      pass->unread, SHK_PLUGIN_FACT);
    /* required only where the profile says so, and where it is about the one in use */
    bool unknown = row.verdict == SHK_UNKNOWN || shk_row_lacking(&row);
    row.required = unknown && ctx->profile->plugin && strcmp(ctx->profile->plugin, "required") == 0;
    shk_row_end(findings, &row);
    free(setting);
}

static void each_candidate(const struct shk_check_context *ctx, struct shk_findings *findings,
                           struct pass pass)
{
    json_t *list = NULL, *plugin;
    char *setting = setting_of(pass.what, NULL);
    struct shk_row row = shk_row_begin(ctx, pass.check, setting ? setting : pass.what);
    size_t i;
    row.fact = SHK_PLUGIN_FACT;
    (void)shk_read_array(&row, SHK_PLUGIN_FACT, &list);
    bool others = count_candidates(list, false, SHK_TOLD_YES) > 0;
    size_t count = count_candidates(list, others, SHK_TOLD_YES);
    pass.unread = count_candidates(list, others, SHK_TOLD_UNREAD);
    if (count) {
        json_array_foreach(list, i, plugin) if (is_candidate(plugin, others) == SHK_TOLD_YES)
            one_candidate(ctx, findings, &pass, plugin, count > 1);
    } else {
        if (pass.unread)
            shk_row_lacks(&row, SHK_PLUGIN_FACT,
                          "a candidate of %s does not say whether it is taken", SHK_PLUGIN_FACT);
        shk_row_na(findings, &row, "no plugin file was found");
    }
    free(setting);
}

static void eval_load(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    each_candidate(
        ctx, findings,
        (struct pass){.check = &shk_check_plugin_load, .what = "load", .judge = load_row});
}

static void eval_use(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    each_candidate(ctx, findings,
                   (struct pass){.check = &shk_check_plugin_use, .what = "use", .judge = use_row});
}

const struct shk_check shk_check_plugin_load = {
    .id = "plugin.load",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "The net plugin loads",
    .eval = eval_load,
    .doc = "Fact: plugin.candidates[].steps, from the file up to dlopen(RTLD_NOW) in a child, as "
           "NCCL does it: file format, interface versions, needed libraries, their symbol "
           "versions. The loader's reason is given word for word.\n"
           "A row for each plugin that NCCL would try. The first broken link is FAIL when it kills "
           "or hangs the rank, when NCCL_NET leaves no other network, and when NCCL_NET_PLUGIN or "
           "the profile asks for a plugin and no other one takes its place; a note when NCCL_NET "
           "names one of NCCL's own networks, or when nothing asks for it and the node has no "
           "network adapter; else WARN.",
};

const struct shk_check shk_check_plugin_use = {
    .id = "plugin.use",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "The net plugin starts, has devices and carries data",
    .eval = eval_use,
    .doc = "Fact: plugin.candidates[].steps: init with a logger, devices, their properties, and a "
           "message from the first device to itself, every byte compared; each in a child with a "
           "deadline.\n"
           "As plugin.load; n/a on captures, with --quick, and for a plugin that asks for GPUs on "
           "a node without any.",
};
