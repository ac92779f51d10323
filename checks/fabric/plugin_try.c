/* The net plugins that NCCL would take, judged by their chain: may the file be
 * used and does it load (plugin.load), and does it work when it is started (plugin.use)? */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
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

/* The first of those steps in that state. */
static const struct shk_link *first_of(const struct shk_chain *chain, const char *const *steps,
                                       enum shk_link_state state)
{
    for (size_t i = 0; i < chain->count; i++)
        if (chain->links[i].state == state && shk_list_has(steps, chain->links[i].step))
            return &chain->links[i];
    return NULL;
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

static const char *load_diagnosis(const struct shk_link *link)
{
    if (strcmp(link->step, "file") == 0)
        return link->code == SHK_CODE_BLOCKED ? "plugin-file-unusable" : "net-plugin-name-wrong";
    if (strcmp(link->step, "format") == 0)
        return "plugin-file-unusable";
    if (strcmp(link->step, "abi") == 0)
        return "plugin-abi-mismatch";
    switch (link->code) {
    case SHK_CODE_DIED: return "plugin-crashes";
    case SHK_CODE_SLOTS_MISSING: return "plugin-interface-broken";
    case SHK_CODE_LIBFABRIC_OLD: return "plugin-libfabric-version-mismatch";
    default: return "plugin-dependency-missing";
    }
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
    char *dir = slash ? strndup(newer, (size_t)(slash - newer)) : NULL;
    if (link->code == SHK_CODE_BLOCKED)
        shk_row_fix(row, "plugin-reinstall", "path", text_of(shk_plugin_blocked(plugin), "path"),
                    NULL);
    else if (strcmp(link->step, "file") == 0)
        shk_row_fix(row, "plugin-not-a-file", NULL);
    else if (strcmp(link->step, "format") == 0)
        shk_row_fix(row, "plugin-for-machine", NULL);
    else if (strcmp(link->step, "abi") == 0)
        shk_row_fix(row, "plugin-for-library", "library", "NCCL", NULL);
    else if (strcmp(link->step, "versions") == 0 && slash)
        shk_row_fix(row, "library-first", "dir", dir, NULL);
    else if (strcmp(link->step, "versions") == 0)
        shk_row_fix(row, "plugin-built-with", "library", text_of(problem, "library"), "path",
                    text_of(problem, "path"), NULL);
    else if (link->code == SHK_CODE_DIED || link->code == SHK_CODE_SLOTS_MISSING)
        shk_row_fix(row, "plugin-other-release", NULL);
    else
        shk_row_fix(row, "library-dependency", "path", path, NULL);
    free(dir);
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

static void say_unknown(struct shk_row *row, const json_t *plugin, const struct shk_link *link)
{
    char *text = shk_link_text(link);
    bool refused = false; /* root does not run what others may change */
    (void)shk_look_member_bool(plugin, "refused", &refused);
    shk_row_text(&row->why, "%s: %s%s", link->step, text ? text : link->what,
                 refused ? "; run as an ordinary user, or with --trust-libraries" : "");
    free(text);
}

/* What dlopen() took is loaded, whatever was not looked at before. */
static void load_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                     const struct shk_chain *chain)
{
    static const char *const loading[] = {"load", NULL};
    const struct shk_link *broken = first_of(chain, load_steps, SHK_LINK_BROKEN);
    const struct shk_link *unknown = first_of(chain, loading, SHK_LINK_UNKNOWN);
    if (!unknown)
        unknown = first_of(chain, load_steps, SHK_LINK_UNKNOWN);
    if (broken) {
        add_problem(ctx, row, plugin, broken);
        row->diagnosis = load_diagnosis(broken);
        load_fix(ctx, row, plugin, broken);
    } else if (first_of(chain, loading, SHK_LINK_OK)) {
        for (size_t i = 0; i < chain->count; i++)
            if (chain->links[i].unread)
                shk_row_lacks(row, SHK_PLUGIN_FACT, "%s: %s", chain->links[i].step,
                              chain->links[i].what);
        say_loads(row, plugin);
    } else if (unknown) {
        say_unknown(row, plugin, unknown);
    }
}

/* On a node without GPUs a plugin cannot start, which says nothing about the network. */
static bool needs_gpu(const struct shk_check_context *ctx, const struct shk_link *link)
{
    return link->code == SHK_CODE_NAMES_GPU && shk_gpu_count(ctx->facts) == 0;
}

static const char *use_diagnosis(const struct shk_link *link)
{
    switch (link->code) {
    case SHK_CODE_DIED: return "plugin-crashes";
    case SHK_CODE_SLOTS_MISSING: return "plugin-interface-broken";
    case SHK_CODE_CALL_FAILED: return "net-plugin-init-failed";
    case SHK_CODE_DATA_WRONG: return "plugin-corrupts-data";
    case SHK_CODE_PENDING: return "plugin-connection-stall";
    default: break;
    }
    return strcmp(link->step, "init") == 0         ? "net-plugin-init-failed"
           : strcmp(link->step, "devices") == 0    ? "plugin-no-device"
           : strcmp(link->step, "properties") == 0 ? "plugin-interface-broken"
                                                   : "plugin-transfer-failed";
}

static const char *use_fix(const char *diagnosis)
{
    return strcmp(diagnosis, "plugin-interface-broken") == 0 ? "plugin-other-release"
           : strcmp(diagnosis, "plugin-no-device") == 0      ? "plugin-no-adapter"
                                                             : "plugin-say-more";
}

/* What was not started: the question is not asked by --quick and on captures, nor of what root
 * must not load. Where it was asked and there was no time for the answer, that is unknown. */
static void use_untried(struct shk_row *row, const json_t *plugin)
{
    const char *untried = text_of(plugin, "untried");
    bool refused = false;
    if (*untried &&
        (shk_look_member_bool(plugin, "refused", &refused) != SHK_LOOK_PRESENT || !refused)) {
        shk_row_lacks(row, SHK_PLUGIN_FACT, "it was not started: %s", untried);
        return;
    }
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

static void use_row(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                    const struct shk_chain *chain)
{
    const struct shk_link *broken = first_of(chain, use_steps, SHK_LINK_BROKEN);
    if (first_of(chain, load_steps, SHK_LINK_BROKEN)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it does not get that far");
    } else if (!broken && first_of(chain, use_steps, SHK_LINK_UNKNOWN)) {
        use_untried(row, plugin);
    } else if (!broken) {
        use_right(row, plugin);
    } else if (needs_gpu(ctx, broken)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "it starts only on a node with GPUs: %s", broken->detail);
    } else {
        add_problem(ctx, row, plugin, broken);
        row->diagnosis = use_diagnosis(broken);
        shk_row_fix(row, use_fix(row->diagnosis), NULL);
    }
}

struct pass {
    const struct shk_check *check;
    const char *what;
    void (*judge)(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                  const struct shk_chain *chain);
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
    struct shk_chain chain;
    shk_plugin_chain(plugin, &chain);
    pass->judge(ctx, &row, plugin, &chain);
    shk_chain_clear(&chain);
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
    .diagnosis = "net-plugin-init-failed",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "The net plugin loads",
    .eval = eval_load,
    .doc =
        "Fact: plugin.candidates, from the file up to dlopen(RTLD_NOW) in a child, as "
        "NCCL does it: file format, interface versions, needed libraries, their symbol "
        "versions. The loader's reason is given word for word.\n"
        "A row for each plugin that NCCL would try. The first broken link is FAIL when it kills "
        "or hangs the rank, when {net-choice} leaves no other network, and when {net-plugin} or "
        "the profile asks for a plugin and no other one takes its place; a note when {net-choice} "
        "names one of NCCL's own networks, or when nothing asks for it and the node has no "
        "network adapter; else WARN.",
};

const struct shk_check shk_check_plugin_use = {
    .id = "plugin.use",
    .diagnosis = "net-plugin-init-failed",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "The net plugin starts, has devices and carries data",
    .eval = eval_use,
    .doc = "Fact: plugin.candidates: init with a logger, devices, their properties, and a "
           "message from the first device to itself, every byte compared; each in a child with a "
           "deadline.\n"
           "As plugin.load; n/a on captures, with --quick, and for a plugin that asks for GPUs on "
           "a node without any.",
};
