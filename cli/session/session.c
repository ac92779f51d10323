#include "cli/session/session.h"

#include "checks/base/check.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "collectives/collective.h"
#include "collectives/counters/counters.h"
#include "collectives/launch/world.h"
#include "collectives/layers.h"
#include "core/host/host.h"
#include "core/host/record.h"
#include "core/run/clock.h"
#include "core/run/stop.h"
#include "core/text/strbuf.h"
#include "probes/base/probe.h"
#include "probes/counters/counters.h"
#include "reports/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Lines about malformed facts of one file. */
enum { SESSION_FAULTS = 20 };

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
        session->profile_why = strdup("selected with --profile");
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
        .started_s = shk_clock_s(),
        .started_at = time(NULL),
        .findings = shk_findings_create(),
    };
    if (!session->command_line || !session->findings) {
        shk_error_sys(&err, ENOMEM, "start");
        return session_fail(&err, SHK_EXIT_INTERNAL);
    }
    if (shk_config_load(&session->config, "/etc/shakedown", options->config_dir, &err))
        return session_fail(&err, SHK_EXIT_USAGE);
    shk_config_install(session->config);
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

int shk_session_add(struct shk_session *session, struct shk_facts *facts, struct shk_error *err)
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

static int session_capture(struct shk_host *host, const struct shk_options *o,
                           const struct shk_facts *facts, struct shk_error *err)
{
    int rc = shk_record_finish(host, facts, shk_probes_is_library_fact, err);
    if (!rc)
        rc = shk_record_scrub(o->capture_dir, !o->verbatim, err);
    return rc;
}

/* Made when first needed: by then a profile of a file is in the catalogue. */
int shk_session_names(struct shk_session *session, struct shk_error *err)
{
    if (!session->names && shk_config_name_set(session->config, &session->names) < 0)
        return shk_error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int session_probe(void *arg, struct shk_facts **facts_p, struct shk_error *err)
{
    struct shk_session *session = arg;
    const struct shk_options *o = session->options;
    struct shk_host *host = NULL;
    struct shk_probe_options how = {
        .quick = o->quick,
        .deadline_ms = (unsigned)o->timeout_s * 1000u,
        .progress = session_progress,
        .progress_arg = session,
    };
    int rc = shk_session_names(session, err);
    how.names = session->names;
    if (!rc)
        rc = shk_host_open(&host, o->sysroot, err);
    if (rc)
        return rc;
    session->live = shk_host_is_live(host);
    if (o->capture_dir && (rc = shk_record_begin(host, o->capture_dir, err))) {
        shk_host_close(host);
        return rc;
    }
    struct shk_facts *facts = shk_facts_create();
    rc = facts ? shk_probes_run(host, &how, facts, err) : shk_error_sys(err, ENOMEM, "facts");
    if (!rc && o->capture_dir)
        rc = session_capture(host, o, facts, err);
    if (!rc && session->live && shk_session_stamp(session, facts))
        rc = shk_error_sys(err, ENOMEM, "facts");
    shk_host_close(host);
    if (rc)
        shk_facts_destroy(facts);
    else
        *facts_p = facts;
    return rc;
}

int shk_session_blank(struct shk_session *session)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    if (!facts)
        shk_error_sys(&err, ENOMEM, "facts");
    if (!facts || shk_session_add(session, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

static void *session_counters_begin(void *arg)
{
    struct shk_host *host = NULL;
    (void)arg;
    if (shk_host_open(&host, NULL, NULL))
        return NULL;
    struct shk_counters_reading *reading = shk_counters_read_begin(host);
    shk_host_close(host);
    return reading;
}

static json_t *session_counters_end(void *reading)
{
    return shk_counters_read_end(reading);
}

static const struct shk_counters_source session_counters = {.begin = session_counters_begin,
                                                            .end = session_counters_end};

static json_t *session_counters_read(void *arg)
{
    return session_counters_end(session_counters_begin(arg));
}

static struct shk_world_options session_world_options(struct shk_session *session)
{
    size_t n = 0;
    const struct shk_diff_rule *rules = shk_config_diff(session->config, &n);
    return (struct shk_world_options){
        .version = SHK_VERSION,
        .rendezvous = session->options->rendezvous,
        .key_file = session->options->key_file,
        .rules = rules,
        .rules_count = n,
        .deadline_ms = (unsigned)session->options->timeout_s * 1000u,
        .probe = session->collectives_only ? NULL : session_probe,
        .probe_arg = session,
        .counters = session_counters_read,
        .kept = &session->counters,
        .progress = session_progress,
        .progress_arg = session,
    };
}

int shk_session_join(struct shk_session *session, bool *done_p)
{
    struct shk_error err = {""};
    *done_p = session->options->hosts;
    if (session->options->sysroot || *done_p)
        return *done_p ? shk_session_over_ssh(session) : SHK_EXIT_OK;
    session->world_options = session_world_options(session);
    int rc = shk_world_open(&session->world, &session->world_options, &err);
    if (rc)
        return session_fail(&err, rc == -ENOMEM ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE);
    enum shk_world_role role = shk_world_role(session->world);
    *done_p = role == SHK_WORLD_MEMBER || role == SHK_WORLD_SILENT;
    if (!*done_p)
        shk_stop_catch();
    if (role != SHK_WORLD_MEMBER)
        return SHK_EXIT_OK;
    int code = shk_world_serve(session->world, &err);
    return code < 0 ? session_fail(&err, SHK_EXIT_FAIL) : code;
}

int shk_session_tell_nodes(const struct shk_session *session, struct shk_facts *facts)
{
    struct shk_fact fact;
    if (shk_facts_get(facts, "job.nodes", &fact) && fact.state == SHK_FACT_PRESENT)
        return 0;
    return shk_facts_int(facts, "job.nodes", (long long)shk_world_nodes(session->world), NULL,
                         "nodes whose ranks came to rank 0");
}

/* Every node that answered; the first is rank 0's. */
static int session_gather_world(struct shk_session *session, struct shk_error *err)
{
    int rc = shk_world_gather(session->world, err);
    session->live = true;
    bool fleet = !rc && shk_session_is_fleet(session);
    if (fleet)
        rc = shk_session_gather_fleet(session, err);
    for (size_t i = 0; !rc && !fleet && i < shk_world_nodes(session->world); i++) {
        struct shk_facts *facts = shk_world_take_facts(session->world, i);
        if (facts && shk_session_tell_nodes(session, facts))
            rc = shk_error_sys(err, ENOMEM, "facts");
        if (facts && !rc)
            rc = shk_session_add(session, facts, err);
    }
    if (!rc && !session->nodes)
        rc = shk_error_set(err, EIO, "no node could be probed");
    if (!rc && fleet && shk_session_name_fleet(session))
        rc = shk_error_sys(err, ENOMEM, "facts");
    return rc;
}

static int session_gather_here(struct shk_session *session, struct shk_error *err)
{
    struct shk_facts *facts = NULL;
    session->live = session->live || session->collectives_only;
    int rc = session->collectives_only ? 0 : session_probe(session, &facts, err);
    if (!rc && !facts && !(facts = shk_facts_create()))
        rc = shk_error_sys(err, ENOMEM, "facts");
    if (!rc && session->collectives_only && shk_session_stamp(session, facts)) {
        shk_facts_destroy(facts);
        rc = shk_error_sys(err, ENOMEM, "facts");
    }
    return rc ? rc : shk_session_add(session, facts, err);
}

int shk_session_gather(struct shk_session *session)
{
    struct shk_error err = {""};
    bool root = session->world && shk_world_role(session->world) == SHK_WORLD_ROOT;
    int rc = root ? session_gather_world(session, &err) : session_gather_here(session, &err);
    if (rc)
        return session_fail(&err, session->options->sysroot || session->options->capture_dir
                                      ? SHK_EXIT_USAGE
                                      : SHK_EXIT_INTERNAL);
    return SHK_EXIT_OK;
}

static const struct shk_transport *session_transport(const char *name)
{
    size_t n;
    const struct shk_transport *const *all = shk_transports(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

void shk_session_no_collective(struct shk_session *session, const char *why)
{
    struct shk_facts *facts = session->facts[0];
    const char *transport = session->options->transport;
    if (strcmp(transport, "auto") && strcmp(transport, "none"))
        return; /* asked for by name: that nothing ran is judged as such */
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

static bool session_is_root(const struct shk_session *session)
{
    return session->world && shk_world_role(session->world) == SHK_WORLD_ROOT;
}

/* Ranks of the launcher on this node, or on the fullest. */
static unsigned session_local_tasks(const struct shk_session *session)
{
    if (session_is_root(session))
        return shk_world_most_local(session->world);
    return session->world ? shk_world_local_tasks(session->world) : 0;
}

/* Facts that this process itself found on this node; NULL: none. */
static const struct shk_facts *session_own_facts(const struct shk_session *session)
{
    bool alone = !session->world || shk_world_role(session->world) == SHK_WORLD_ALONE;
    return alone && session->nodes == 1 ? session->facts[0] : NULL;
}

/* Local ranks: as asked for, or one for each GPU that the driver shows to this process. */
static unsigned session_ranks(const struct shk_session *session, bool per_gpu)
{
    unsigned tasks = session_local_tasks(session);
    if (tasks > 1)
        return tasks;
    if (session->options->ranks)
        return (unsigned)session->options->ranks;
    unsigned gpus = per_gpu ? shk_gpus_visible(session_own_facts(session)) : 0;
    return gpus > 2 ? gpus : 2;
}

static struct shk_collective_options session_collective(struct shk_session *session, bool per_gpu)
{
    const struct shk_options *o = session->options;
    return (struct shk_collective_options){
        .ranks = session_ranks(session, per_gpu),
        .min_bytes = o->min_bytes,
        .max_bytes = o->max_bytes,
        .large_bytes = !session->world || shk_world_nodes(session->world) <= 1 ? o->large_bytes : 0,
        .deadline_ms = (unsigned)(o->timeout_s + o->stress_s) * 1000u,
        .brief = !session->collectives_only,
        .provider = o->provider,
        .rails = (unsigned)o->rails,
        .stress_ms = (unsigned)o->stress_s * 1000u,
        .counters = &session_counters,
        .kept = &session->counters,
        .progress = session_progress,
        .progress_arg = session,
    };
}

/* struct shk_measure of the ranks that a launcher started. One rank on each node has nobody there:
 * then rank 0 starts local ones. */
static int session_run_world(const struct shk_transport *transport,
                             const struct shk_collective_options *how, struct shk_facts *facts,
                             void *arg, struct shk_error *err)
{
    struct shk_session *session = arg;
    if (!transport->work || (transport->within_node && session_local_tasks(session) < 2))
        return shk_counters_run(transport, how, facts, err);
    return shk_world_measure(session->world, transport, how, facts, err);
}

static int session_run_all(struct shk_session *session, const struct shk_transport *transport,
                           bool layers, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_collective_options how = session_collective(session, transport->per_gpu);
    struct shk_measure world = {.run = session_run_world, .arg = session};
    const struct shk_measure *measure = session_is_root(session) ? &world : NULL;
    int rc = shk_layer_run(transport, &how, measure, facts, err);
    if (!rc && layers) {
        how = session_collective(session, true);
        rc = shk_layers_run(&how, measure, facts, err);
    }
    int left = shk_counters_settle(&session->counters, rc ? NULL : err);
    return rc ? rc : left;
}

int shk_session_measure(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_facts *facts = session->facts[0];
    const char *why_not = session_no_collective(session);
    bool all = strcmp(o->transport, "auto") == 0;
    const struct shk_transport *transport = session_transport(all ? "fabric" : o->transport);
    struct shk_error err = {""};
    if (strcmp(o->transport, "none") != 0 && !transport) {
        shk_error_set(&err, EINVAL,
                      "--transport: there is no transport '%s' (see: shakedown list "
                      "transports)",
                      o->transport);
        return session_fail(&err, SHK_EXIT_USAGE);
    }
    if (session->world && shk_world_facts(session->world, facts))
        return SHK_EXIT_INTERNAL;
    if (why_not) {
        shk_session_no_collective(session, why_not);
        return SHK_EXIT_OK;
    }
    /* what was asked for by name, as opposed to what is run for lack of a wish */
    if (!all && shk_facts_text(facts, "collective.asked", o->transport, "--transport"))
        return SHK_EXIT_INTERNAL;
    if (session_run_all(session, transport, all, facts, &err))
        return session_fail(&err, SHK_EXIT_INTERNAL);
    if (session->world && shk_world_facts(session->world, facts)) {
        shk_error_sys(&err, ENOMEM, "facts");
        return session_fail(&err, SHK_EXIT_INTERNAL);
    }
    return SHK_EXIT_OK;
}

/* A line for each malformed fact of a file, the first few. */
static void session_say_all(const json_t *said)
{
    size_t count = json_array_size(said);
    for (size_t i = 0; i < count && i < SESSION_FAULTS; i++)
        shk_say("%s", json_string_value(json_array_get(said, i)));
    if (count > SESSION_FAULTS)
        shk_say("%zu more facts are malformed", count - SESSION_FAULTS);
}

static int session_load_file(struct shk_session *session, const char *path)
{
    struct shk_error err = {""};
    struct shk_facts **facts;
    size_t n;
    int code = SHK_EXIT_OK;
    if (shk_session_load_fleet(session, path, &code))
        return code;
    json_t *said = json_array();
    int rc = shk_facts_load(&facts, &n, path, said, &err);
    if (!rc)
        session_say_all(said);
    json_decref(said);
    if (rc)
        return session_fail(&err, SHK_EXIT_USAGE);
    for (size_t i = 0; i < n; i++) {
        if (rc)
            shk_facts_destroy(facts[i]);
        else
            rc = shk_session_add(session, facts[i], &err);
    }
    free(facts);
    return rc ? session_fail(&err, SHK_EXIT_INTERNAL) : SHK_EXIT_OK;
}

int shk_session_load(struct shk_session *session, const char *path)
{
    struct shk_error err = {""};
    struct stat st;
    char **files;
    size_t count;
    int rc = SHK_EXIT_OK;
    if (strcmp(path, "-") == 0 || stat(path, &st) || !S_ISDIR(st.st_mode))
        return session_load_file(session, path);
    if (shk_facts_folder(path, &files, &count, &err))
        return session_fail(&err, SHK_EXIT_USAGE);
    session->in_folder = count;
    for (size_t i = 0; rc == SHK_EXIT_OK && i < count; i++)
        rc = session_load_file(session, files[i]);
    session->in_folder = 0;
    shk_facts_folder_free(files, count);
    return rc;
}

bool shk_session_speaks(const struct shk_session *session)
{
    return !session->world || shk_world_speaks(session->world);
}

void shk_session_leave(struct shk_session *session, int code)
{
    shk_world_close(session->world, code);
    session->world = NULL;
}

void shk_session_clear(struct shk_session *session)
{
    for (size_t i = 0; i < session->nodes; i++)
        shk_facts_destroy(session->facts[i]);
    free(session->facts);
    free(session->weights);
    shk_fleet_free(session->fleet);
    shk_diagnoses_free(&session->diagnoses);
    free(session->headline);
    shk_findings_destroy(session->findings);
    shk_session_profiles_free(session);
    free(session->profile_why);
}

void shk_session_end(struct shk_session *session)
{
    shk_world_close(session->world, SHK_EXIT_INTERNAL);
    shk_counters_forget(&session->counters);
    shk_session_clear(session);
    shk_name_set_destroy(session->names);
    shk_config_install(NULL);
    shk_config_free(session->config);
    free(session->command_line);
}
