#include "cli/session.h"

#include "checks/check.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "collectives/collective.h"
#include "core/host.h"
#include "core/strbuf.h"
#include "probes/probe.h"
#include "reports/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double session_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static char *session_command_line(int argc, char **argv)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_puts(&sb, "shakedown");
    for (int i = 1; i < argc; i++) {
        bool plain = *argv[i] && !strpbrk(argv[i], " \t\n'\"\\$`*?[](){}<>|&;#~!");
        shk_strbuf_putc(&sb, ' ');
        if (plain) {
            shk_strbuf_puts(&sb, argv[i]);
            continue;
        }
        shk_strbuf_putc(&sb, '\'');
        for (const char *p = argv[i]; *p; p++)
            if (*p == '\'')
                shk_strbuf_puts(&sb, "'\\''");
            else
                shk_strbuf_putc(&sb, *p);
        shk_strbuf_putc(&sb, '\'');
    }
    return shk_strbuf_take(&sb);
}

static int session_fail(const struct shk_error *err, int code)
{
    shk_say("%s", err->text);
    return code;
}

static int session_check_format(const char *format, struct shk_error *err)
{
    if (!format || shk_format_find(format))
        return 0;
    size_t n;
    const struct shk_format *const *formats = shk_formats(&n);
    struct shk_strbuf names = SHK_STRBUF_INIT;
    for (size_t i = 0; i < n; i++)
        shk_strbuf_printf(&names, "%s%s", i ? ", " : "", formats[i]->name);
    int rc = shk_error_set(err, EINVAL, "--format: '%s' is not one of %s", format,
                           shk_strbuf_text(&names));
    shk_strbuf_free(&names);
    return rc;
}

static int session_choose_profile(struct shk_session *session, struct shk_error *err)
{
    const char *want = session->options->profile;
    if (strcmp(want, "auto") == 0)
        return 0;
    session->profile = shk_config_profile(session->config, want);
    if (!session->profile && strpbrk(want, "/.")) {
        int rc = shk_config_load_profile(session->config, want, &session->profile, err);
        if (rc)
            return rc;
    }
    if (session->profile && !session->profile->abstract) {
        session->profile_why = strdup("asked for with --profile");
        return 0;
    }
    size_t n, named = 0;
    const struct shk_profile *all = shk_config_profiles(session->config, &n);
    const char **names = calloc(n + 1, sizeof *names);
    for (size_t i = 0; names && i < n; i++)
        if (!all[i].abstract)
            names[named++] = all[i].name;
    const char *near = names ? shk_nearest(want, names, named) : NULL;
    int rc = shk_error_set(err, EINVAL, "--profile: there is no profile '%s'%s%s%s", want,
                           near ? "; did you mean " : " (see: shakedown list profiles)",
                           near ? near : "", near ? "?" : "");
    free(names);
    return rc;
}

int shk_session_open(struct shk_session *session, const struct shk_options *options, int argc,
                     char **argv)
{
    struct shk_error err = {""};
    *session = (struct shk_session){
        .options = options,
        .command_line = session_command_line(argc, argv),
        .started_s = session_now(),
        .findings = shk_findings_create(),
    };
    if (!session->command_line || !session->findings) {
        shk_error_sys(&err, ENOMEM, "start");
        return session_fail(&err, SHK_EXIT_INTERNAL);
    }
    if (shk_config_load(&session->config, "/etc/shakedown", options->config_dir, &err))
        return session_fail(&err, SHK_EXIT_USAGE);
    return SHK_EXIT_OK;
}

int shk_session_begin(struct shk_session *session, const struct shk_options *options, int argc,
                      char **argv)
{
    struct shk_error err = {""};
    int rc = shk_session_open(session, options, argc, argv);
    if (rc == SHK_EXIT_OK &&
        (session_check_format(options->format, &err) || session_choose_profile(session, &err)))
        rc = session_fail(&err, SHK_EXIT_USAGE);
    return rc;
}

static int session_add(struct shk_session *session, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_facts **more = realloc(session->facts, (session->nodes + 1) * sizeof *more);
    if (!more) {
        shk_facts_destroy(facts);
        return shk_error_sys(err, ENOMEM, "facts");
    }
    session->facts = more;
    session->facts[session->nodes++] = facts;
    return 0;
}

static void session_progress(const char *text, void *arg)
{
    const struct shk_session *session = arg;
    shk_progress(text, session->options->verbose > 0);
}

int shk_session_gather(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_error err = {""};
    struct shk_host *host = NULL;
    struct shk_probe_options how = {
        .quick = o->quick,
        .deadline_ms = (unsigned)o->timeout_s * 1000u,
        .progress = session_progress,
        .progress_arg = session,
    };
    if (shk_host_open(&host, o->sysroot, &err))
        return session_fail(&err, SHK_EXIT_USAGE);
    session->live = shk_host_is_live(host);
    struct shk_facts *facts = shk_facts_create();
    int rc = facts ? shk_probes_run(host, &how, facts, &err) : shk_error_sys(&err, ENOMEM, "facts");
    shk_host_close(host);
    if (rc) {
        shk_facts_destroy(facts);
        return session_fail(&err, session->live ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE);
    }
    if (session_add(session, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

int shk_session_blank(struct shk_session *session)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    if (!facts)
        shk_error_sys(&err, ENOMEM, "facts");
    if (!facts || session_add(session, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

int shk_session_empty(struct shk_session *session)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    session->live = true;
    session->collectives_only = true;
    if (!facts)
        shk_error_sys(&err, ENOMEM, "facts");
    if (!facts || session_add(session, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

static const struct shk_transport *session_transport(const char *name)
{
    size_t n;
    const struct shk_transport *const *all = shk_transports(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0 || strcmp(name, "auto") == 0)
            return all[i];
    return NULL;
}

void shk_session_no_collective(struct shk_session *session, const char *why)
{
    struct shk_facts *facts = session->facts[session->nodes - 1];
    shk_facts_text(facts, "collective.fabric.status", "na", "shakedown");
    shk_facts_text(facts, "collective.fabric.reason", why, "shakedown");
}

static const char *session_no_collective(const struct shk_session *session)
{
    if (session->options->quick)
        return "not run: --quick";
    if (strcmp(session->options->transport, "none") == 0)
        return "not run: --transport none";
    return session->live ? NULL : "not run: this is a capture";
}

int shk_session_measure(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_facts *facts = session->facts[session->nodes - 1];
    const char *why_not = session_no_collective(session);
    struct shk_error err = {""};
    if (strcmp(o->transport, "none") != 0 && !session_transport(o->transport)) {
        shk_error_set(&err, EINVAL,
                      "--transport: there is no transport '%s' (see: shakedown list "
                      "transports)",
                      o->transport);
        return session_fail(&err, SHK_EXIT_USAGE);
    }
    if (why_not) {
        shk_session_no_collective(session, why_not);
        return SHK_EXIT_OK;
    }
    struct shk_collective_options how = {
        .ranks = (unsigned)o->ranks,
        .min_bytes = o->min_bytes,
        .max_bytes = o->max_bytes,
        .deadline_ms = (unsigned)o->timeout_s * 1000u,
        .provider = o->provider,
        .progress = session_progress,
        .progress_arg = session,
    };
    if (session_transport(o->transport)->run(&how, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

int shk_session_load(struct shk_session *session, const char *path)
{
    struct shk_error err = {""};
    struct shk_facts **facts;
    size_t n;
    if (shk_facts_load(&facts, &n, path, &err))
        return session_fail(&err, SHK_EXIT_USAGE);
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        if (rc)
            shk_facts_destroy(facts[i]);
        else
            rc = session_add(session, facts[i], &err);
    }
    free(facts);
    return rc ? session_fail(&err, SHK_EXIT_INTERNAL) : SHK_EXIT_OK;
}

int shk_session_load_env(struct shk_session *session, const char *path)
{
    struct shk_error err = {""};
    FILE *in = fopen(path, "re");
    if (!in) {
        shk_error_sys(&err, errno, "%s", path);
        return session_fail(&err, SHK_EXIT_USAGE);
    }
    char *line = NULL, source[300];
    size_t cap = 0;
    int rc = 0;
    for (int at = 1; !rc && getline(&line, &cap, in) >= 0; at++) {
        char *text = shk_trim(line), *eq = strchr(text, '=');
        if (!*text || *text == '#')
            continue;
        if (strncmp(text, "export ", 7) == 0)
            text = shk_trim(text + 7);
        snprintf(source, sizeof source, "%s:%d", path, at);
        if (!eq || eq == text) {
            rc = shk_error_set(&err, EINVAL, "%s: not NAME=VALUE", source);
            break;
        }
        *eq = '\0';
        for (size_t i = 0; i < session->nodes && !rc; i++) {
            rc = shk_probe_env_fact(session->facts[i], text, eq + 1, source);
            if (rc)
                shk_error_set(&err, -rc, "%s: '%.60s' is not a variable name", source, text);
        }
    }
    free(line);
    fclose(in);
    return rc ? session_fail(&err, SHK_EXIT_USAGE) : SHK_EXIT_OK;
}

static const char *session_node_name(const struct shk_facts *facts, size_t i, char *buf,
                                     size_t size)
{
    const char *name = shk_facts_get_text(facts, "host.name");
    if (name)
        return name;
    snprintf(buf, size, "node %zu", i + 1);
    return buf;
}

/* bench: only what the collectives themselves say. */
static int session_check_collectives(const struct shk_check_context *ctx,
                                     struct shk_findings *findings)
{
    size_t n;
    const struct shk_check *const *checks = shk_checks(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(checks[i]->family, "collectives") == 0)
            checks[i]->eval(ctx, findings);
    return shk_findings_status(findings);
}

static int session_judge_node(struct shk_session *session, size_t i,
                              struct shk_findings_fold **fold, struct shk_error *err)
{
    struct shk_check_context ctx = {
        .facts = session->facts[i], .config = session->config, .profile = session->profile};
    if (session->collectives_only)
        return session_check_collectives(&ctx, session->findings);
    if (session->nodes == 1)
        return shk_checks_run(&ctx, session->findings, err);
    struct shk_findings *mine = shk_findings_create();
    int rc = mine ? shk_checks_run(&ctx, mine, err) : shk_error_sys(err, ENOMEM, "findings");
    char buf[32];
    if (!rc) {
        rc = shk_findings_fold(session->findings, fold, mine,
                               session_node_name(session->facts[i], i, buf, sizeof buf));
        if (rc)
            shk_error_sys(err, -rc, "findings");
    }
    shk_findings_destroy(mine);
    return rc;
}

static bool session_is_known(const struct shk_finding *row)
{
    return row->verdict != SHK_UNKNOWN && row->verdict != SHK_NA;
}

/* For evidence that is only part of a picture: rows about the rest would hide it. */
static int session_keep_known(struct shk_session *session)
{
    struct shk_findings *kept = shk_findings_create();
    int rc = kept ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < shk_findings_count(session->findings); i++) {
        const struct shk_finding *f = shk_findings_at(session->findings, i);
        size_t nodes = 0;
        if (!session_is_known(f))
            continue;
        const struct shk_finding_in in = {.id = f->id,
                                          .family = f->family,
                                          .setting = f->setting,
                                          .verdict = f->verdict,
                                          .evidence = f->evidence,
                                          .observed = f->observed,
                                          .expected = f->expected,
                                          .why = f->why,
                                          .fix = f->fix,
                                          .diagnosis = f->diagnosis,
                                          .source = f->source,
                                          .fact = f->fact,
                                          .required = f->required};
        shk_findings_add(kept, &in);
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
    struct shk_findings_fold *fold = NULL;
    int rc = 0;
    for (size_t i = 0; i < session->nodes; i++)
        shk_facts_freeze(session->facts[i]);
    if (!session->profile)
        session->profile =
            shk_profile_detect(session->config, session->facts[0], &session->profile_why);
    if (!session->profile)
        rc = shk_error_set(&err, EINVAL, "no profile fits, and the catalogue has no single-node");
    for (size_t i = 0; i < session->nodes && !rc; i++)
        rc = session_judge_node(session, i, &fold, &err);
    shk_findings_fold_free(fold);
    shk_findings_sort(session->findings);
    if (!rc && (rc = shk_findings_status(session->findings)))
        shk_error_sys(&err, -rc, "findings");
    if (!rc)
        rc = shk_diagnose(session->config, session->findings,
                          (const struct shk_facts *const *)session->facts, session->nodes,
                          &session->diagnoses, &err);
    if (!rc && session->known_only && (rc = session_keep_known(session)))
        shk_error_sys(&err, -rc, "findings");
    return rc ? session_fail(&err, SHK_EXIT_INTERNAL) : SHK_EXIT_OK;
}

void shk_session_end(struct shk_session *session)
{
    for (size_t i = 0; i < session->nodes; i++)
        shk_facts_destroy(session->facts[i]);
    free(session->facts);
    shk_diagnoses_free(&session->diagnoses);
    shk_findings_destroy(session->findings);
    shk_config_free(session->config);
    free(session->profile_why);
    free(session->command_line);
}
