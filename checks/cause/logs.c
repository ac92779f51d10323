/* What logs prove or refute about settings: the evidence "log" of the matrix. */
#include "checks/base/coded.h"
#include "checks/cause/clue.h"
#include "checks/env/env.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>

/* The first signature that was seen and has `name` in its list; *place_p: where (free()). */
static const struct shk_signature *seen_for(const struct shk_check_context *ctx, const char *name,
                                            bool refutes, char **place_p)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(ctx->config, &count);
    for (size_t i = 0; i < count; i++) {
        const char *const *list = refutes ? sigs[i].refutes : sigs[i].proves;
        if (!list || !shk_list_has(list, name))
            continue;
        *place_p = shk_log_place(ctx->facts, sigs[i].id);
        if (*place_p)
            return &sigs[i];
    }
    return NULL;
}

/* Does a process of the log say that it has read the variable with this value? */
static bool was_read(const struct shk_facts *facts, const char *name, const char *value)
{
    json_t *tuple;
    size_t i;
    json_array_foreach(json_object_get(shk_log_seen(facts, "nccl-env-read"), "captures"), i, tuple)
    {
        const char *read = NULL, *got = NULL;
        if (shk_look_member_text(tuple, "name", &read) == SHK_LOOK_PRESENT &&
            shk_look_member_text(tuple, "value", &got) == SHK_LOOK_PRESENT &&
            strcmp(read, name) == 0 && strcmp(got, value) == 0)
            return true;
    }
    return false;
}

bool shk_log_refute(const struct shk_check_context *ctx, const char *name, struct shk_row *row)
{
    char *place = NULL;
    const struct shk_signature *sig =
        shk_log_given(ctx->facts) ? seen_for(ctx, name, true, &place) : NULL;
    if (!sig)
        return false;
    shk_row_verdict(row, SHK_WARN, SHK_LOG);
    shk_row_text(&row->why, "set, and a log shows it without effect: %s (%s)", sig->meaning, place);
    free(place);
    return true;
}

/* A refutation counts more than a proof: a fallback is printed after the attempt. */
bool shk_log_judge(const struct shk_check_context *ctx, const char *name, const char *value,
                   struct shk_row *row)
{
    char *place = NULL;
    if (!shk_log_given(ctx->facts))
        return false;
    if (shk_log_refute(ctx, name, row))
        return true;
    const struct shk_signature *sig = seen_for(ctx, name, false, &place);
    if (sig) {
        shk_row_verdict(row, SHK_PASS, SHK_LOG);
        shk_row_text(&row->why, "seen in a log: %s (%s)", sig->meaning, place ? place : "");
    } else if (was_read(ctx->facts, name, value)) {
        shk_row_verdict(row, SHK_PASS, SHK_LOG);
        shk_row_text(&row->why, "a log says that the library has read this value");
    }
    free(place);
    return row->evidence == SHK_LOG;
}

static void judge_read(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *name)
{
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    const char *value = shk_log_env(ctx->facts, name), *set = NULL;
    enum shk_look look = shk_look_env(ctx->facts, name, &set);
    if (!setting || !value || look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED)
        return; /* with a fact of its own, env.value has the row */
    struct shk_row row = shk_row_begin(ctx, &shk_check_log_setting, name);
    shk_row_was_read(&row);
    row.family = setting->family;
    row.source = setting->source;
    row.fact = "log.sig.nccl-env-read";
    shk_row_text(&row.observed, "%s (from a log)", value);
    shk_log_judge(ctx, name, value, &row);
    shk_row_end(findings, &row);
}

/* Lines that only a log with enough detail has. */
static const char *const detail[] = {"nccl-env-read",
                                     "nccl-init-rank",
                                     "nccl-network-value",
                                     "nccl-plugin-loaded",
                                     "nccl-bootstrap-using",
                                     "nccl-bootstrap-using-2",
                                     "ofi-plugin-version-value",
                                     "fi-read-string-var"};

/* What would tell more than these logs do, by the kinds of lines that they have; false: nothing
 * better than a log of NCCL and libfabric. */
static bool say_more(const struct shk_check_context *ctx, struct shk_row *row)
{
    size_t count, said = 0;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const struct shk_signature *sigs = shk_config_signatures(ctx->config, &count);
    for (size_t i = 0; i < count && said < 2; i++)
        if (sigs[i].more && shk_log_seen(ctx->facts, sigs[i].id))
            shk_strbuf_printf(&sb, "%s%s", said++ ? "; " : "", sigs[i].more);
    if (said)
        shk_row_text(&row->why,
                     "the logs hold no start of NCCL or libfabric, so what they do not say proves "
                     "nothing; more would tell: %s",
                     shk_strbuf_text(&sb));
    shk_strbuf_free(&sb);
    return said > 0;
}

/* What is absent from a terse log says nothing, and users should know how to get a better one. */
static void judge_detail(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    if (!shk_log_given(ctx->facts))
        return;
    for (size_t i = 0; i < sizeof(detail) / sizeof(detail[0]); i++)
        if (shk_log_seen(ctx->facts, detail[i]))
            return;
    struct shk_row row = shk_row_begin(ctx, &shk_check_log_setting, "detail of the logs");
    row.fact = "log.sig.*";
    if (!say_more(ctx, &row))
        shk_row_text(&row.why,
                     "the logs hold no line of NCCL's or libfabric's start, so what they do "
                     "not say proves nothing; run once more with %s=INFO "
                     "%s=INIT,ENV,NET,GRAPH %s=info",
                     shk_variable("nccl-log"), shk_variable("nccl-log-parts"),
                     shk_variable("fabric-log"));
    shk_row_end(findings, &row);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    judge_detail(ctx, findings);
    shk_log_unknown_rows(ctx, findings);
    json_t *tuples = json_object_get(shk_log_seen(ctx->facts, "nccl-env-read"), "captures");
    for (size_t i = 0; i < json_array_size(tuples); i++) {
        const char *name = NULL;
        bool again = false;
        if (shk_look_member_text(json_array_get(tuples, i), "name", &name) != SHK_LOOK_PRESENT)
            continue;
        for (size_t j = 0; j < i && !again; j++) {
            const char *before = NULL;
            (void)shk_look_member_text(json_array_get(tuples, j), "name", &before);
            again = before && strcmp(before, name) == 0;
        }
        if (!again)
            judge_read(ctx, findings, name);
    }
}

const struct shk_check shk_check_log_setting = {
    .id = "log.setting",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Settings that a log shows: read, in effect, or without effect",
    .eval = eval,
    .doc =
        "Facts: log.sig.*, log.unknown, env.*.\n"
        "Of the variables that the processes of a log say they have read, those that the "
        "environment does not tell get a row here; the rows of the others (env.value) take their "
        "evidence from the log. PASS when a line shows the setting read or in effect, WARN when "
        "a line shows that it had none; which lines do is data (config/signatures: proves, "
        "refutes). Lines that look like errors and that no signature knows have a row each, the "
        "first of each kind; these are UNKNOWN.",
};
