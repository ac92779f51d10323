#include "checks/fabric/plugin.h"
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/uses.h"

#include <string.h>

/* The file that the library takes: the first considered candidate that exists. What cannot be told
 * before that makes the row unknown. */
static const json_t *first_found(struct shk_row *row, const json_t *list)
{
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        enum shk_told considered = shk_plugin_is_considered(plugin);
        enum shk_told found = considered == SHK_TOLD_NO ? SHK_TOLD_NO : shk_plugin_is_found(plugin);
        if (considered == SHK_TOLD_UNREAD || found == SHK_TOLD_UNREAD)
            shk_row_lacks(row, SHK_PLUGIN_FACT,
                          "a candidate of %s does not say whether it is taken", SHK_PLUGIN_FACT);
        else if (found == SHK_TOLD_YES)
            return plugin;
    }
    return NULL;
}

static bool wanted(const struct shk_profile *profile, const char *strength)
{
    return profile->plugin && strcmp(profile->plugin, strength) == 0;
}

/* Names that were handed to the loader, or the paths of merely seen files. */
static char *names_of(const json_t *list, bool considered)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        enum shk_told told = shk_plugin_is_considered(plugin);
        const char *name = shk_plugin_text(plugin, "name");
        if (told == (considered ? SHK_TOLD_YES : SHK_TOLD_NO) && *name && sb.len < 240 &&
            strcmp(shk_plugin_text(plugin, "kind"), "net") == 0)
            shk_strbuf_printf(&sb, "%s%s", sb.len ? ", " : "", name);
    }
    return sb.len ? shk_strbuf_take(&sb) : NULL;
}

/* The first considered candidate of which a file is there that cannot be opened. */
static const json_t *first_blocked(const json_t *list)
{
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        if (shk_plugin_is_considered(plugin) == SHK_TOLD_YES && shk_plugin_blocked(plugin))
            return shk_plugin_blocked(plugin);
    }
    return NULL;
}

/* "ofi" of /x/libnccl-net-ofi.so, "" of /x/libnccl-net.so; NULL for other names. New string. */
static char *suffix_of(const char *path)
{
    static const char *const prefixes[] = {"libnccl-net", "librccl-net"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(prefixes[i]), len = strlen(base);
        if (strncmp(base, prefixes[i], n) != 0 || len < n + 3 || strcmp(base + len - 3, ".so") != 0)
            continue;
        if (len == n + 3)
            return strdup("");
        return base[n] == '-' ? strndup(base + n + 1, len - n - 4) : NULL;
    }
    return NULL;
}

/* Is the directory of the file among those of LD_LIBRARY_PATH? Then its short name is enough. */
static bool in_library_path(const struct shk_facts *facts, const char *path)
{
    const char *list, *slash = strrchr(path, '/');
    if (!slash || shk_look_env(facts, shk_variable("loader-path"), &list) != SHK_LOOK_PRESENT)
        return false;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ":;"), len = n;
        while (len > 1 && p[len - 1] == '/')
            len--;
        if (len == (size_t)(slash - path) && strncmp(p, path, len) == 0)
            return true;
        p += n + (p[n] != '\0');
    }
    return false;
}

/* Did the library try the value itself as a file name? Then a path works as well. */
static bool takes_paths(const json_t *list, const char *value)
{
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        const char *name = shk_plugin_text(plugin, "name");
        if (*name && strncmp(value, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

/* A seen file is the one that was meant: how to ask for it. */
static void suggest(const struct shk_check_context *ctx, struct shk_row *row, const json_t *list,
                    const char *value)
{
    size_t i;
    json_t *plugin;
    json_array_foreach((json_t *)list, i, plugin)
    {
        const char *path = shk_plugin_text(plugin, "path");
        char *suffix = shk_plugin_is_considered(plugin) == SHK_TOLD_NO ? suffix_of(path) : NULL;
        if (!suffix)
            continue;
        const char *slash = strrchr(path, '/');
        char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
        bool near = in_library_path(ctx->facts, path);
        if (near && !*suffix)
            shk_row_fix(row, "plugin-own-name", NULL);
        else if (near)
            shk_row_fix(row, "plugin-by-name", "plugin", suffix, NULL);
        else if (takes_paths(list, value))
            shk_row_fix(row, "plugin-by-name", "plugin", path, NULL);
        else if (*suffix)
            shk_row_fix(row, "plugin-by-name-and-path", "plugin", suffix, "dir", dir, NULL);
        else
            shk_row_fix(row, "plugin-own-name-and-path", "dir", dir, NULL);
        shk_row_text(&row->expected, "%s, by its %s", path, *suffix ? "name" : "own name");
        if (*suffix)
            shk_row_text(&row->expected, "%s (did you mean %s?)", path, suffix);
        free(suffix);
        free(dir);
        return;
    }
}

/* The variable names something that the loader does not get. */
static void say_name(const struct shk_check_context *ctx, struct shk_row *row, const json_t *list,
                     const char *value)
{
    char *tried = names_of(list, true), *seen = names_of(list, false);
    char *after = shk_plugin_consequence(ctx, NULL, &(struct shk_link){.step = "file"});
    const json_t *blocked = first_blocked(list);
    const char *path = blocked ? shk_plugin_text(blocked, "path") : "";
    const char *state = blocked ? shk_plugin_text(blocked, "state") : "";
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    if (blocked) {
        row->diagnosis = "plugin-file-unusable";
        shk_row_text(&row->observed, "%s: %s", path, shk_plugin_text(blocked, "text"));
        shk_row_text(&row->why, "%s=%s: the loader cannot open %s: %s%s",
                     shk_variable("net-plugin"), value, path, shk_plugin_text(blocked, "text"),
                     after ? after : "");
        if (strcmp(state, "denied") == 0)
            shk_row_fix(row, "plugin-readable", "path", path, NULL);
        else
            shk_row_fix(row, "plugin-reinstall", "path", path, NULL);
    } else {
        row->diagnosis = "net-plugin-name-wrong";
        shk_row_text(&row->why, "%s=%s: the loader finds no %s%s%s%s", shk_variable("net-plugin"),
                     value, tried ? tried : "such file", after ? after : "",
                     seen ? ". Not requested, but present: " : "", seen ? seen : "");
        shk_row_fix(row, "plugin-own-name", NULL);
        suggest(ctx, row, list, value);
    }
    free(tried);
    free(seen);
    free(after);
}

/* That nothing is asked for is a claim: the probe says so, or the environment. */
static void read_requested(struct shk_row *row)
{
    struct shk_fact fact;
    const char *value;
    enum shk_look look = shk_look(row->ctx->facts, "plugin.requested", &fact);
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_was_read(row);
    else
        (void)shk_read_env(row, shk_variable("net-plugin"), &value);
}

static void say_missing(const struct shk_check_context *ctx, struct shk_row *row)
{
    long long nodes = shk_job_nodes(ctx->facts);
    bool fail = wanted(ctx->profile, "required") && nodes != 1;
    shk_row_verdict(row, fail ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "net-plugin-missing";
    shk_row_text(&row->expected, "a net plugin for this fabric");
    shk_row_text(&row->why, "without it NCCL silently falls back to TCP sockets");
    shk_row_fix(row, "plugin-path", NULL);
}

/* Nothing names a plugin, and none is there: does this node need one? */
static void judge_none(const struct shk_check_context *ctx, struct shk_findings *findings,
                       struct shk_row *row)
{
    if (!wanted(ctx->profile, "required") && !wanted(ctx->profile, "recommended")) {
        shk_row_na(findings, row, "profile %s needs no net plugin", ctx->profile->name);
        return;
    }
    long long nvidia = shk_read_device_count(row, "gpu-nvidia"),
              amd = shk_read_device_count(row, "gpu-amd");
    if (nvidia == 0 && amd == 0) {
        shk_row_na(findings, row, "no GPU on the PCI bus that NCCL or RCCL works with");
        return;
    }
    /* of GPUs that nobody counted only a fabric that has no other use for a plugin tells */
    bool counted = nvidia > 0 || amd > 0;
    if (!ctx->profile_doubt && (counted || wanted(ctx->profile, "required")))
        say_missing(ctx, row);
    shk_row_end(findings, row);
}

static void not_found(const struct shk_check_context *ctx, struct shk_findings *findings,
                      struct shk_row *row, const json_t *list)
{
    const char *name = shk_plugin_requested(ctx->facts);
    char *names = names_of(list, true);
    shk_read_profile(row);
    read_requested(row);
    shk_row_text(&row->observed, "not found (%s)", names ? names : "libnccl-net.so");
    free(names);
    if (!name) {
        judge_none(ctx, findings, row);
        return;
    }
    say_name(ctx, row, list, name);
    shk_row_end(findings, row);
}

static void eval_file(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_plugin_file, "net plugin file");
    json_t *list = NULL;
    enum shk_look look = shk_read_array(&row, SHK_PLUGIN_FACT, &list);
    const char *path, *why;
    row.fact = SHK_PLUGIN_FACT;
    row.required = wanted(ctx->profile, "required");
    row.source = SHK_PLUGIN_SOURCE;
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT) {
        shk_row_unread(findings, &row, ctx->facts, SHK_PLUGIN_FACT);
        return;
    }
    const json_t *plugin = first_found(&row, list);
    if (!plugin && shk_row_lacking(&row)) {
        shk_row_unread(findings, &row, ctx->facts, SHK_PLUGIN_FACT);
        return;
    }
    if (!plugin) {
        not_found(ctx, findings, &row, list);
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    if (shk_read_member_text(&row, SHK_PLUGIN_FACT, plugin, "path", &path) == SHK_LOOK_PRESENT)
        shk_row_text(&row.observed, "%s", path);
    if (shk_look_member_text(plugin, "reason", &why) == SHK_LOOK_PRESENT)
        shk_row_text(&row.why, "%s", why);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_plugin_file = {
    .id = "plugin.file",
    .diagnosis = "plugin-file-unusable",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "The net plugin is found where NCCL looks",
    .eval = eval_file,
    .doc = "Facts: plugin.candidates (by NCCL's own search order), plugin.requested.\n"
           "A name in {net-plugin} that the loader gets no file for is FAIL: there is none, or "
           "it is a dangling link, links in a circle or without permission, which is told; a file "
           "of a like name that nothing asks for is suggested. Without {net-plugin} no file is "
           "FAIL or WARN as the profile says, WARN in a job of one node.",
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

static void say_abi(const struct shk_check_context *ctx, struct shk_row *row, const json_t *plugin,
                    const json_t *exported, const json_t *accepted, const char *title)
{
    const struct shk_link link = {.step = "abi", .what = "", .where = "", .detail = ""};
    struct shk_strbuf has = SHK_STRBUF_INIT, takes = SHK_STRBUF_INIT;
    versions_text(&has, exported);
    versions_text(&takes, accepted);
    long long common = best_common(exported, accepted);
    shk_row_text(&row->observed, "plugin: %s; %s: %s", has.len ? shk_strbuf_text(&has) : "none",
                 title, takes.len ? shk_strbuf_text(&takes) : "none");
    if (common >= 0) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->why, "v%lld will be used", common);
    } else {
        char *after = shk_plugin_consequence(ctx, plugin, &link);
        shk_row_verdict(row, shk_plugin_verdict(ctx, plugin, &link), SHK_EFFECT);
        row->diagnosis = "plugin-abi-mismatch";
        shk_row_text(&row->expected, "one ncclNetPlugin version in common");
        shk_row_text(&row->why, "%s knows none of the plugin's interface versions%s", title,
                     after ? after : "");
        shk_row_fix(row, "plugin-for-library", "library", title, NULL);
        free(after);
    }
    shk_strbuf_free(&has);
    shk_strbuf_free(&takes);
}

static void eval_abi(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_plugin_abi, "net plugin ABI");
    json_t *list = NULL, *accepted = NULL, *exported = NULL, *abi = NULL;
    const char *owner = "nccl";
    row.fact = "plugin.candidates, nccl.net_abi, rccl.net_abi";
    row.source = SHK_PLUGIN_SOURCE;
    (void)shk_read_array(&row, SHK_PLUGIN_FACT, &list);
    const json_t *plugin = first_found(&row, list);
    if (!plugin) {
        shk_row_na(findings, &row, "no plugin file was found");
        return;
    }
    (void)shk_read_member_text(&row, SHK_PLUGIN_FACT, plugin, "owner", &owner);
    bool rccl = strcmp(owner, "rccl") == 0;
    enum shk_look look = shk_read_numbers(&row, rccl ? "rccl.net_abi" : "nccl.net_abi", &accepted);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no %s was found to compare with", rccl ? "RCCL" : "NCCL");
        return;
    }
    if (shk_read_member_object(&row, SHK_PLUGIN_FACT, plugin, "abi", &abi) == SHK_LOOK_PRESENT)
        (void)shk_read_member_numbers(&row, SHK_PLUGIN_FACT, abi, "net", &exported);
    if (exported && accepted)
        say_abi(ctx, &row, plugin, exported, accepted, rccl ? "RCCL" : "NCCL");
    else
        shk_row_text(&row.why, "%s", row.unread_why ? row.unread_why : "not read");
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_plugin_abi = {
    .id = "plugin.abi",
    .diagnosis = "plugin-abi-mismatch",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "net plugin",
    .title = "Plugin and NCCL have an interface version in common",
    .eval = eval_abi,
    .doc = "Facts: plugin.candidates[].abi.net (exported symbols), nccl.net_abi, rccl.net_abi "
           "(symbols that the library asks for). Read from the files, nothing is executed.\n"
           "None in common: as any other reason why a plugin is not used, see plugin.load.",
};
