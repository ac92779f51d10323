/* Rows of the variables that the processes of a log have read, and of logs that say too little. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/log/log.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>

static void judge_read(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *name, const char *fact)
{
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    const char *value = shk_log_env(ctx->config, ctx->facts, name), *set = NULL;
    enum shk_look look = shk_look_env(ctx->facts, name, &set);
    if (!setting || !value || look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED)
        return; /* with a fact of its own, env.value has the row */
    struct shk_row row = shk_row_begin(ctx, &shk_check_log_setting, name);
    shk_row_was_read(&row);
    row.family = setting->family;
    row.source = setting->source;
    row.fact = fact;
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
                                     "fi-param-read"};

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
                     "the logs contain no start-up lines of NCCL or libfabric, so what they do not "
                     "say proves "
                     "nothing; more logging would show it: %s",
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
                     "the logs contain no start-up lines of NCCL or libfabric, so what they do "
                     "not say proves nothing; run once more with %s=INFO "
                     "%s=INIT,ENV,NET,GRAPH %s=info",
                     shk_variable("nccl-log"), shk_variable("nccl-log-parts"),
                     shk_variable("fabric-log"));
    shk_row_end(findings, &row);
}

/* A row for each variable that lines of this signature say was read. */
static void judge_reads(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const struct shk_signature *sig)
{
    json_t *tuples = json_object_get(shk_log_seen(ctx->facts, sig->id), "captures"), *tuple;
    json_t *said = json_object();
    char *fact = shk_strf("log.sig.%s", sig->id);
    size_t i;
    json_array_foreach(tuples, i, tuple)
    {
        char *name = shk_log_read_name(sig, tuple);
        if (fact && name && !json_object_get(said, name)) {
            json_object_set_new(said, name, json_true());
            judge_read(ctx, findings, name, fact);
        }
        free(name);
    }
    free(fact);
    json_decref(said);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(ctx->config, &count);
    judge_detail(ctx, findings);
    shk_log_unknown_rows(ctx, findings);
    for (size_t i = 0; i < count; i++)
        if (sigs[i].reads)
            judge_reads(ctx, findings, &sigs[i]);
}

const struct shk_check shk_check_log_setting = {
    .id = "log.setting",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Settings shown in a log: read, in effect, or without effect",
    .eval = eval,
    .doc =
        "Facts: log.sig.*, log.unknown, env.*.\n"
        "Of the variables that the processes of a log say they have read, those that the "
        "environment does not tell get a row here; the rows of the others (env.value) take their "
        "evidence from the log. PASS when a line shows the setting read or in effect, WARN when "
        "a line shows that it had none; which lines do is data (config/signatures: reads, "
        "proves, refutes). Lines that look like errors and that no signature knows have a row "
        "each, the "
        "first of each kind; these are UNKNOWN.",
};
