/* Configuration files of the libraries, and names that no library can look for. */
#include "checks/base/remedy.h"
#include "checks/env/env.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *entry, const char *name)
{
    const char *text = NULL;
    (void)shk_look_member_text(entry, name, &text);
    return text;
}

/* Is this one of the files that are there, or may be, and could not be opened? */
static bool could_not_be_read(const json_t *files, const char *path)
{
    size_t i;
    json_t *file;
    json_array_foreach((json_t *)files, i, file)
    {
        const char *state = text_of(file, "state"), *name = text_of(file, "path");
        if (state && name && strcmp(state, "failed") == 0 && strcmp(name, path) == 0)
            return true;
    }
    return false;
}

/* A line, a file or a name that no library takes as it reads. */
static void problem_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const json_t *files, const json_t *entry, const char *fact)
{
    const char *path = text_of(entry, "path"), *name = text_of(entry, "name");
    const char *problem = text_of(entry, "problem");
    long long line = 0;
    (void)shk_look_member_int(entry, "line", &line);
    char *setting = path && line > 0 ? shk_strf("%s:%lld", path, line)
                                     : shk_strf("%s", path   ? path
                                                      : name ? name
                                                             : "?");
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_file, setting ? setting : "?");
    row.fact = fact;
    if (!problem) {
        shk_row_lacks(&row, fact, "what is wrong with it could not be read");
    } else if (path && could_not_be_read(files, path)) {
        shk_row_lacks(&row, fact, "what this file sets, if it exists, is not known: %s", problem);
    } else {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.why, "%s", problem);
        if (path && line > 0) {
            char at[32];
            snprintf(at, sizeof at, "%lld", line);
            shk_row_fix(&row, "env-file-line", "line", at, "path", path, NULL);
        } else if (path)
            shk_row_fix(&row, "env-file", "path", path, NULL);
        else
            shk_row_fix(&row, "env-unset-for-job", "variable", setting, NULL);
    }
    shk_row_end(findings, &row);
    free(setting);
}

static void problems(const struct shk_check_context *ctx, struct shk_findings *findings,
                     struct shk_row *sum, const json_t *files, const char *key)
{
    json_t *list = NULL, *entry;
    size_t i;
    if (!files) /* one reason is enough */
        (void)shk_look_array(ctx->facts, key, &list);
    else
        (void)shk_read_array(sum, key, &list);
    json_array_foreach(list, i, entry) problem_row(ctx, findings, files, entry, key);
}

/* The names of those that were read; the others are remembered by the row. */
static char *files_read(struct shk_row *row, const json_t *files)
{
    struct shk_strbuf read = SHK_STRBUF_INIT;
    size_t i;
    json_t *file;
    json_array_foreach((json_t *)files, i, file)
    {
        const char *state = NULL, *path = shk_member_name(file, "path");
        if (shk_read_member_text(row, "env.files", file, "state", &state) != SHK_LOOK_PRESENT ||
            shk_read_member_text(row, "env.files", file, "path", &path) != SHK_LOOK_PRESENT)
            continue;
        if (strcmp(state, "failed") == 0)
            shk_row_lacks(row, "env.files", "%s could not be read", path);
        else if (strcmp(state, "read") == 0)
            shk_strbuf_printf(&read, "%s%s", read.len ? ", " : "", path);
    }
    return read.len ? shk_strbuf_take(&read) : NULL;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_file, "configuration files");
    json_t *files = NULL;
    (void)shk_read_array(&row, "env.files", &files);
    row.fact = "env.files";
    problems(ctx, findings, &row, files, "env.problems");
    problems(ctx, findings, &row, files, "env.file_problems");
    char *read = files_read(&row, files);
    if (read) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", read);
        shk_row_text(&row.why, "their settings are judged below, with the file as origin");
        shk_row_end(findings, &row);
    } else {
        shk_row_na(findings, &row,
                   "none of nccl.conf, rccl.conf, libfabric.conf and nvshmem.conf exists");
    }
    free(read);
}

const struct shk_check shk_check_env_file = {
    .id = "env.file",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "The libraries' configuration files are read as written",
    .eval = eval,
    .doc = "Facts: env.files, env.file_problems, env.problems.\n"
           "Each line that a library skips, cuts or takes otherwise than it reads is WARN. A file "
           "that could not be opened is UNKNOWN.",
};
