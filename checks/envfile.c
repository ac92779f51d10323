/* Configuration files of the libraries, and names that no library can look for. */
#include "checks/env.h"

#include <stdlib.h>
#include <string.h>

static void problem_row(struct shk_findings *findings, const json_t *entry, const char *fact)
{
    const char *path = shk_member_text(entry, "path"), *name = shk_member_text(entry, "name");
    const char *problem = shk_member_text(entry, "problem");
    long long line = shk_member_int(entry, "line", 0);
    char *setting = line > 0 ? shk_strf("%s:%lld", path ? path : "?", line)
                             : shk_strf("%s", path   ? path
                                              : name ? name
                                                     : "?");
    struct shk_row row = shk_row_start(&shk_check_env_file, setting ? setting : "?");
    shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
    shk_row_text(&row.why, "%s", problem ? problem : "something is wrong with it");
    shk_row_text(&row.fix, path ? "correct or remove the line" : "unset it");
    row.fact = fact;
    shk_row_end(findings, &row);
    free(setting);
}

static void problems(const struct shk_check_context *ctx, struct shk_findings *findings,
                     const char *key)
{
    size_t i;
    json_t *entry;
    json_array_foreach(shk_facts_get_array(ctx->facts, key), i, entry)
        problem_row(findings, entry, key);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_env_file, "configuration files");
    struct shk_strbuf read = SHK_STRBUF_INIT;
    const json_t *files = shk_facts_get_array(ctx->facts, "env.files");
    size_t i;
    json_t *file;
    problems(ctx, findings, "env.problems");
    problems(ctx, findings, "env.file_problems");
    row.fact = "env.files";
    if (!files) {
        shk_row_unread(findings, &row, ctx->facts, "env.files");
        return;
    }
    json_array_foreach((json_t *)files, i, file)
    {
        const char *state = shk_member_text(file, "state"), *path = shk_member_text(file, "path");
        if (state && path && strcmp(state, "read") == 0)
            shk_strbuf_printf(&read, "%s%s", read.len ? ", " : "", path);
    }
    if (read.len) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&read));
        shk_row_text(&row.why, "their settings are judged below, with the file as origin");
        shk_row_end(findings, &row);
    } else {
        shk_row_na(findings, &row,
                   "none of nccl.conf, rccl.conf, libfabric.conf and nvshmem.conf is there");
    }
    shk_strbuf_free(&read);
}

const struct shk_check shk_check_env_file = {
    .id = "env.file",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Configuration files of the libraries say what they seem to say",
    .eval = eval,
    .doc = "Facts: env.files, env.file_problems, env.problems.\n"
           "Each line that a library skips, cuts or takes otherwise than it reads is WARN.",
};
