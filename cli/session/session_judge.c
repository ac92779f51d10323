#include "checks/base/check.h"
#include "checks/base/look.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/run/stop.h"

#include <errno.h>
#include <string.h>

static const char *judge_node_name(const struct shk_facts *facts, size_t i, char *buf, size_t size)
{
    const char *name = shk_facts_get_text(facts, "host.name");
    if (name)
        return name;
    snprintf(buf, size, "node %zu", i + 1);
    return buf;
}

/* bench: only what the collectives themselves say. */
static int judge_collectives(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t n;
    const struct shk_check *const *checks = shk_checks(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(checks[i]->family, "collectives") == 0)
            checks[i]->eval(ctx, findings);
    return shk_findings_status(findings);
}

bool shk_session_spans(const struct shk_facts *facts)
{
    json_t *layout = NULL;
    (void)shk_look_array(facts, "job.layout", &layout);
    return json_array_size(layout) > 1;
}

bool shk_session_is_own(const struct shk_facts *facts, size_t nodes, const char *id)
{
    return nodes == 1 && !(shk_session_spans(facts) && shk_check_of_job(id));
}

/* Several nodes: rows that say the same are joined and name their nodes. */
static int judge_folded(struct shk_session *session, struct shk_check_context *ctx, size_t i,
                        struct shk_findings_fold **fold, struct shk_error *err)
{
    enum shk_check_part part = ctx->part;
    struct shk_findings *mine = shk_findings_create();
    int rc = mine ? 0 : shk_error_sys(err, ENOMEM, "findings");
    char buf[32];
    if (!rc && part == SHK_CHECK_ALL && shk_session_spans(ctx->facts)) {
        /* What is of the job is not of the node whose facts hold it. */
        ctx->part = SHK_CHECK_JOB;
        rc = shk_checks_run(ctx, session->findings, err);
        ctx->part = SHK_CHECK_NODE;
    }
    rc = rc ? rc : shk_checks_run(ctx, mine, err);
    ctx->part = part;
    if (!rc) {
        rc = shk_findings_fold(session->findings, fold, mine,
                               judge_node_name(ctx->facts, i, buf, sizeof buf));
        if (rc)
            shk_error_sys(err, -rc, "findings");
    }
    shk_findings_destroy(mine);
    return rc;
}

static bool judge_is_root(const struct shk_session *session)
{
    return session->world && shk_world_role(session->world) == SHK_WORLD_ROOT;
}

static struct shk_check_context judge_context(const struct shk_session *session, size_t node)
{
    const char *transport = session->options->transport;
    bool named = transport && strcmp(transport, "auto") != 0 && strcmp(transport, "none") != 0;
    return (struct shk_check_context){
        .facts = session->facts[node],
        .config = session->config,
        .profile = session->node_profiles[node].profile,
        .profile_doubt = session->node_profiles[node].doubt,
        .profile_asked =
            session->options->profile && strcmp(session->options->profile, "auto") != 0,
        .transport_asked = named ? transport : NULL,
        .provider_asked = session->options->provider,
    };
}

static int judge_all(struct shk_session *session, struct shk_error *err)
{
    struct shk_findings_fold *fold = NULL;
    struct shk_check_context ctx = judge_context(session, 0);
    int rc = 0;
    if (session->collectives_only)
        return judge_collectives(&ctx, session->findings);
    if (judge_is_root(session)) {
        ctx.part = SHK_CHECK_JOB;
        rc = shk_checks_run(&ctx, session->findings, err);
        ctx.part = SHK_CHECK_NODE;
    }
    if (!rc && session->nodes == 1 && !session->weights)
        return shk_checks_run(&ctx, session->findings, err);
    for (size_t i = 0; i < session->nodes && !rc; i++) {
        ctx = judge_context(session, i);
        ctx.part = judge_is_root(session) ? SHK_CHECK_NODE : SHK_CHECK_ALL;
        rc = judge_folded(session, &ctx, i, &fold, err);
    }
    if (!rc)
        rc = shk_session_compare(session, err);
    shk_findings_fold_free(fold);
    return rc;
}

static bool judge_is_known(const struct shk_finding *row)
{
    bool about_logs = strncmp(row->id, "log.", 4) == 0;
    return about_logs || (row->verdict != SHK_UNKNOWN && row->verdict != SHK_NA);
}

/* For evidence that is only part of a picture: rows about the rest would hide it. */
static int judge_keep_known(struct shk_session *session)
{
    struct shk_findings *kept = shk_findings_create();
    int rc = kept ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < shk_findings_count(session->findings); i++) {
        const struct shk_finding *f = shk_findings_at(session->findings, i);
        size_t nodes = 0;
        if (!judge_is_known(f))
            continue;
        shk_findings_add_copy(kept, f);
        while (f->nodes && f->nodes[nodes])
            nodes++;
        rc = shk_findings_status(kept);
        if (!rc && nodes)
            rc = shk_findings_set_nodes(kept, shk_findings_count(kept) - 1,
                                        (const char *const *)f->nodes, nodes);
    }
    if (rc) {
        shk_findings_destroy(kept);
        return rc;
    }
    shk_findings_destroy(session->findings);
    session->findings = kept;
    return 0;
}

int shk_session_judge(struct shk_session *session)
{
    struct shk_error err = {""};
    int rc = 0, code;
    session->interrupted = shk_stop_name();
    if (session->live && session->nodes && shk_session_stamp_end(session, session->facts[0]))
        rc = shk_error_sys(&err, ENOMEM, "facts");
    for (size_t i = 0; i < session->nodes; i++)
        shk_facts_freeze(session->facts[i]);
    rc = rc ? rc : shk_session_profiles(session, &err);
    rc = rc ? rc : judge_all(session, &err);
    if (!rc && session->past && (code = session->past(session)) != SHK_EXIT_OK)
        return code;
    if (!rc && (rc = shk_repeats_settle(session->findings)))
        shk_error_sys(&err, -rc, "findings");
    shk_scopes_settle(session->config, session->findings);
    shk_findings_sort(session->findings);
    if (!rc && (rc = shk_findings_status(session->findings)))
        shk_error_sys(&err, -rc, "findings");
    if (!rc)
        rc = (session->part ? shk_diagnose_part : shk_diagnose)(
            session->config, session->findings, (const struct shk_facts *const *)session->facts,
            session->nodes, &session->diagnoses, &err);
    if (!rc &&
        (rc = shk_ends_settle(session->findings, (const struct shk_facts *const *)session->facts,
                              session->nodes, &session->diagnoses)))
        shk_error_sys(&err, -rc, "findings");
    session->coverage = shk_findings_coverage(session->findings);
    if (!rc && session->known_only && (rc = judge_keep_known(session)))
        shk_error_sys(&err, -rc, "findings");
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}
