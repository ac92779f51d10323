#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/output.h"
#include "core/text/strbuf.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Runs that go into the database at once, and seconds by which a node's clock may be ahead. */
enum { COLLECT_BATCH = 256, COLLECT_AHEAD = 86400 };

struct collect {
    struct shk_session *session;
    struct shk_history *history;
    struct shk_collected *count;
    struct shk_history_run runs[COLLECT_BATCH]; /* own their texts and objects */
    size_t pending;
    const char *path;
    json_t *cache; /* shk_states_of() */
};

static void collect_free(struct shk_history_run *run)
{
    free((char *)run->node);
    free((char *)run->job);
    free((char *)run->profile);
    free((char *)run->kind);
    json_decref(run->metrics);
    json_decref(run->states);
    json_decref(run->issues);
}

static int collect_flush(struct collect *c, bool last, struct shk_error *err)
{
    bool work = c->pending || last;
    int rc = work ? shk_history_begin(c->history, err) : 0;
    size_t added = 0;
    for (size_t i = 0; i < c->pending && !rc; i++) {
        bool new = false;
        rc = shk_history_put(c->history, &c->runs[i], &new, err);
        added += new;
    }
    if (!rc && last) {
        long long days = c->session->options->keep_days;
        rc = shk_history_retain(c->history, (long long)c->session->started_at - days * 86400,
                                SHK_HISTORY_RUNS, err);
    }
    if (!rc && work)
        rc = shk_history_commit(c->history, err);
    if (!rc) {
        c->count->added += added;
        c->count->known += c->pending - added;
    }
    for (size_t i = 0; i < c->pending; i++)
        collect_free(&c->runs[i]);
    c->pending = 0;
    return rc;
}

/* What the rows of a document come to for one node. */
struct tally {
    const char *name;
    const struct shk_facts *facts;
    size_t nodes; /* of the document */
    unsigned verdicts[SHK_VERDICT_COUNT];
    bool unread; /* what was required is unknown, or failed and is not said of whom */
};

/* Takes a row into the tally; true: it is of this node. One that names no node is of the only one
 * of its document, but not where it speaks of a whole job: then it is held against nobody, and
 * nobody passed. */
static bool tally_row(struct tally *t, const char *id, bool names, bool mine, int verdict,
                      bool required)
{
    if (!names)
        mine = shk_session_is_own(t->facts, t->nodes, id);
    if (mine)
        t->verdicts[verdict]++;
    if (mine || !names)
        t->unread |= (verdict == SHK_UNKNOWN && required) || (verdict == SHK_FAIL && !mine);
    return mine;
}

static const char *tally_verdict(const struct tally *t)
{
    return shk_verdict_name(t->verdicts[SHK_FAIL]   ? SHK_FAIL
                            : t->verdicts[SHK_WARN] ? SHK_WARN
                            : t->unread             ? SHK_UNKNOWN
                            : t->verdicts[SHK_PASS] ? SHK_PASS
                                                    : SHK_UNKNOWN);
}

/* Takes a run of a node; issues and verdict are of the caller. */
static int collect_run(struct collect *c, const struct shk_facts *facts, const char *name,
                       const char *profile, json_t *issues, const char *verdict,
                       struct shk_error *err)
{
    size_t rules_count;
    const struct shk_diff_rule *rules = shk_config_diff(c->session->config, &rules_count);
    const char *job = shk_facts_get_text(facts, "job.id");
    long long number = shk_facts_get_int(facts, "job.slurm.job_id", -1);
    struct shk_history_run *run = &c->runs[c->pending];
    *run = (struct shk_history_run){
        .node = strdup(name),
        .start = shk_run_start(facts),
        .seconds = shk_hardware_seconds(&facts, 1),
        .job = job           ? strdup(job)
               : number >= 0 ? shk_strf("%lld", number)
                             : NULL,
        .verdict = verdict,
        .profile = profile ? strdup(profile) : NULL,
        .kind = shk_hardware_kind(facts),
        .metrics = shk_metrics_of(facts),
        .states = shk_states_of(facts, rules, rules_count, c->cache),
        .issues = json_incref(issues),
    };
    c->pending++;
    if (!run->node || !run->kind || !run->metrics || !run->states ||
        shk_metrics_mark(facts, run->metrics))
        return shk_error_sys(err, ENOMEM, "history");
    return c->pending == COLLECT_BATCH ? collect_flush(c, false, err) : 0;
}

/* Does the document say of which node and when it is? Says so and counts it when not. */
static bool collect_dated(struct collect *c, const struct shk_facts *facts, const char **name_p)
{
    long long start = shk_run_start(facts);
    *name_p = shk_facts_get_text(facts, "host.name");
    size_t *bad = !*name_p || !**name_p                                       ? &c->count->unnamed
                  : start < 0                                                 ? &c->count->undated
                  : start > (long long)c->session->started_at + COLLECT_AHEAD ? &c->count->future
                                                                              : NULL;
    if (!bad)
        return true;
    if (++*bad == 1)
        shk_say("%s: left out: %s", c->path,
                bad == &c->count->unnamed ? "it does not name its node (host.name)"
                : bad == &c->count->undated
                    ? "it does not say when it was written (run.start, clock.time)"
                    : "it is dated in the future: its node's clock is more than a day ahead");
    return false;
}

static json_t *collect_issue(const char *cause, const char *setting, const char *verdict,
                             const char *scope, const char *observed, const char *why)
{
    return json_pack("{s:s*, s:s*, s:s, s:s*, s:s*, s:s*}", "cause", cause, "setting", setting,
                     "verdict", verdict, "scope", scope, "observed", observed, "why", why);
}

/* What was wrong with the node, of the findings of a report. */
static json_t *collect_reported(const json_t *report, struct tally *tally)
{
    json_t *issues = json_array(), *row, *node;
    size_t i, k;
    json_array_foreach(json_object_get(report, "findings"), i, row)
    {
        const char *verdict = json_string_value(json_object_get(row, "verdict")),
                   *cause = json_string_value(json_object_get(row, "diagnosis")),
                   *id = json_string_value(json_object_get(row, "id"));
        json_t *nodes = json_object_get(row, "nodes");
        bool named = false, required = json_is_true(json_object_get(row, "required"));
        int v = 0;
        json_array_foreach(nodes, k, node)
        {
            named |= json_string_value(node) && strcmp(json_string_value(node), tally->name) == 0;
        }
        while (verdict && v < SHK_VERDICT_COUNT && strcmp(verdict, shk_verdict_name(v)) != 0)
            v++;
        if (!verdict || v == SHK_VERDICT_COUNT)
            tally->unread = true;
        else if (tally_row(tally, id ? id : "", nodes, named, v, required) &&
                 (v == SHK_FAIL || v == SHK_WARN))
            json_array_append_new(
                issues, collect_issue(cause ? cause : id,
                                      json_string_value(json_object_get(row, "setting")), verdict,
                                      json_string_value(json_object_get(row, "scope")),
                                      json_string_value(json_object_get(row, "observed")),
                                      json_string_value(json_object_get(row, "why"))));
    }
    return issues;
}

static int collect_report(struct collect *c, const json_t *report, struct shk_error *err)
{
    json_t *nodes = json_object_get(report, "nodes"), *node;
    size_t i;
    int rc = json_array_size(nodes) ? 0 : shk_error_set(err, EINVAL, "the report has no nodes");
    json_array_foreach(nodes, i, node)
    {
        struct tally tally = {.nodes = json_array_size(nodes)};
        struct shk_facts *facts = NULL;
        rc = rc ? rc : shk_facts_from_json(&facts, node, err);
        if (!rc && collect_dated(c, facts, &tally.name)) {
            tally.facts = facts;
            json_t *issues = collect_reported(report, &tally);
            rc = collect_run(c, facts, tally.name,
                             json_string_value(json_object_get(node, "profile")), issues,
                             tally_verdict(&tally), err);
            json_decref(issues);
        }
        shk_facts_destroy(facts);
        if (rc)
            break;
    }
    return rc;
}

/* The same of the findings of a session. */
static json_t *collect_found(const struct shk_session *session, struct tally *tally)
{
    json_t *issues = json_array();
    for (size_t i = 0; i < shk_findings_count(session->findings); i++) {
        const struct shk_finding *row = shk_findings_at(session->findings, i);
        bool named = false;
        for (char **node = row->nodes; node && *node; node++)
            named |= strcmp(*node, tally->name) == 0;
        if (tally_row(tally, row->id, row->nodes, named, row->verdict, row->required) &&
            (row->verdict == SHK_FAIL || row->verdict == SHK_WARN))
            json_array_append_new(
                issues, collect_issue(row->diagnosis ? row->diagnosis : row->id, row->setting,
                                      shk_verdict_name(row->verdict), shk_scope_name(row->scope),
                                      row->observed, row->why));
    }
    return issues;
}

static int collect_judged(struct collect *c, struct shk_session *session, struct shk_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < session->nodes && !rc; i++) {
        struct tally tally = {.facts = session->facts[i], .nodes = session->nodes};
        const char *profile = session->node_profiles[i].profile->name;
        if (!collect_dated(c, session->facts[i], &tally.name))
            continue;
        json_t *issues = collect_found(session, &tally);
        rc = collect_run(c, session->facts[i], tally.name, profile, issues, tally_verdict(&tally),
                         err);
        json_decref(issues);
    }
    return rc;
}

/* Judges one document by itself, with the catalogue of the session. */
static int collect_facts(struct collect *c, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_options plain = *c->session->options; /* judged by itself */
    plain.history = plain.baseline = NULL;
    struct shk_session one = {.options = &plain,
                              .config = c->session->config,
                              .profile = c->session->profile,
                              .findings = shk_findings_create()};
    int rc =
        one.findings ? shk_session_add(&one, facts, err) : shk_error_sys(err, ENOMEM, "findings");
    if (!one.findings)
        shk_facts_destroy(facts);
    if (!rc && c->session->profile_why)
        one.profile_why = strdup(c->session->profile_why);
    if (!rc && shk_session_judge(&one) != SHK_EXIT_OK)
        rc = shk_error_set(err, EIO, "could not be judged");
    rc = rc ? rc : collect_judged(c, &one, err);
    shk_session_clear(&one);
    return rc;
}

static int collect_document(const json_t *doc, void *arg, struct shk_error *err)
{
    struct collect *c = arg;
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    struct shk_facts *facts = NULL;
    if (schema && strncmp(schema, "shakedown.report/", 17) == 0)
        return collect_report(c, doc, err);
    int rc = shk_facts_from_json(&facts, doc, err);
    return rc ? rc : collect_facts(c, facts, err);
}

static int collect_file(struct collect *c, const char *path)
{
    struct shk_error err = {""};
    c->path = path;
    int rc = shk_facts_documents(path, collect_document, c, &err);
    if (rc == -EINVAL || rc == -ENOENT || rc == -EACCES || rc == -E2BIG || rc == -EFBIG ||
        rc == -EISDIR) {
        shk_say("%s", err.text);
        c->count->unreadable++;
        return SHK_EXIT_OK;
    }
    return rc ? shk_history_fail(&err, rc) : SHK_EXIT_OK;
}

static int collect_path(struct collect *c, const char *path)
{
    struct shk_error err = {""};
    struct stat st;
    char **files;
    size_t count;
    int rc = SHK_EXIT_OK;
    if (strcmp(path, "-") == 0 || stat(path, &st) || !S_ISDIR(st.st_mode))
        return collect_file(c, path);
    if (shk_facts_folder(path, &files, &count, &err)) {
        shk_say("%s", err.text);
        return SHK_EXIT_USAGE;
    }
    for (size_t i = 0; i < count && rc == SHK_EXIT_OK; i++)
        rc = collect_file(c, files[i]);
    shk_facts_folder_free(files, count);
    return rc;
}

int shk_collect(struct shk_session *session, struct shk_history *history, const char *const *paths,
                size_t count, struct shk_collected *collected)
{
    struct shk_error err = {""};
    struct collect *c = calloc(1, sizeof *c);
    *collected = (struct shk_collected){0};
    if (!c) {
        shk_say("out of memory");
        return SHK_EXIT_INTERNAL;
    }
    *c = (struct collect){
        .session = session, .history = history, .count = collected, .cache = json_object()};
    int code = SHK_EXIT_OK;
    for (size_t i = 0; i < count && code == SHK_EXIT_OK; i++)
        code = collect_path(c, paths[i]);
    int rc = collect_flush(c, true, &err);
    json_decref(c->cache);
    free(c);
    if (rc)
        code = shk_history_fail(&err, rc);
    return code;
}

int shk_collect_session(struct shk_session *session, struct shk_history *history,
                        struct shk_error *err)
{
    struct shk_collected count = {0};
    struct collect *c = calloc(1, sizeof *c);
    if (!c)
        return shk_error_sys(err, ENOMEM, "history");
    *c = (struct collect){.session = session,
                          .history = history,
                          .count = &count,
                          .path = "this run",
                          .cache = json_object()};
    int rc = collect_judged(c, session, err);
    rc = rc ? rc : collect_flush(c, true, err);
    json_decref(c->cache);
    free(c);
    return rc;
}

const char *shk_history_place(const struct shk_options *options)
{
    return options->history ? options->history : SHK_HISTORY_PLACE;
}

int shk_history_fail(const struct shk_error *err, int rc)
{
    shk_say("%s", err->text);
    return rc == -ENOSPC || rc == -EIO || rc == -ENOMEM ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE;
}
