#include "checks/base/coded.h"
#include "checks/base/read.h"

#include <errno.h>

#define CHECK(name) &shk_check_##name,
static const struct shk_check *const checks[] = {
#include "checks/base/list.def"
};
#undef CHECK

const struct shk_check *const *shk_checks(size_t *count_p)
{
    *count_p = sizeof(checks) / sizeof(checks[0]);
    return checks;
}

/* Said once, however many rows are unknown because of it. */
static void misformed_row(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_probe_health, "form of the facts");
    struct shk_strbuf keys = SHK_STRBUF_INIT;
    shk_strbuf_array(&keys, ctx->misformed, 8);
    shk_row_text(&row.observed, "%zu of another type than expected: %s",
                 json_array_size(ctx->misformed), shk_strbuf_text(&keys));
    shk_row_text(&row.why, "these facts were not written by this program, or not by this version; "
                           "they count as not read");
    shk_strbuf_free(&keys);
    shk_row_end(findings, &row);
}

static const struct shk_check evidence_check = {.id = "node.evidence", .family = "shakedown"};

/* A document with a name and nothing else, a capture of an empty folder: not a good node. `first`:
 * where the rows of this node begin. */
static void evidence_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         size_t first)
{
    for (size_t i = first; i < shk_findings_count(findings); i++) {
        enum shk_verdict verdict = shk_findings_at(findings, i)->verdict;
        if (verdict != SHK_UNKNOWN && verdict != SHK_NA)
            return;
    }
    struct shk_row row = shk_row_begin(ctx, &evidence_check, "evidence");
    row.required = SHK_ASKED;
    shk_row_text(&row.why, "nothing here tells anything of the node: no check could judge it");
    shk_row_end(findings, &row);
}

int shk_checks_run(const struct shk_check_context *ctx, struct shk_findings *findings,
                   struct shk_error *err)
{
    if (!ctx->profile)
        return shk_error_set(err, EINVAL, "no profile to judge by");
    struct shk_check_context mine = *ctx;
    mine.misformed = json_array();
    size_t first = shk_findings_count(findings);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if ((!ctx->skip || !ctx->skip[i]) &&
            (ctx->part == SHK_CHECK_ALL || checks[i]->of_job == (ctx->part == SHK_CHECK_JOB)))
            checks[i]->eval(&mine, findings);
    if (json_array_size(mine.misformed))
        misformed_row(&mine, findings);
    if (ctx->part != SHK_CHECK_JOB && !ctx->skip)
        evidence_row(ctx, findings, first);
    json_decref(mine.misformed);
    if (shk_findings_status(findings) < 0)
        return shk_error_set(err, ENOMEM, "out of memory while judging");
    return 0;
}
