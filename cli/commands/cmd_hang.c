#include "checks/hang/hang.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/output.h"
#include "cli/session/hang_check.h"
#include "cli/session/hang_files.h"
#include "cli/session/hang_nodes.h"
#include "cli/session/session.h"
#include "core/run/clock.h"
#include "core/run/isolate.h"
#include "core/run/stop.h"
#include "core/text/stamp.h"
#include "probes/hang/hang.h"
#include "reports/hang/hang.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The look has its own deadlines, process by process; this one is for what they cannot cover. */
enum { HANG_DEADLINE_S = 180 };
#define HANG_MEMORY ((size_t)8 << 30)

struct hang_pids {
    long *items;
    size_t count;
};

static bool hang_is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10;
}

/* "12,13" of --pid, and numbers among the arguments. */
static int hang_take_pids(const struct shk_options *options, struct hang_pids *pids)
{
    size_t room = options->arguments.count;
    for (size_t i = 0; i < options->pids.count; i++)
        for (const char *p = options->pids.items[i]; p; p = strchr(p + 1, ','))
            room++;
    pids->items = calloc(room + 1, sizeof *pids->items);
    if (!pids->items)
        return SHK_EXIT_INTERNAL;
    for (size_t i = 0; i < options->pids.count; i++) {
        const char *p = options->pids.items[i];
        for (;;) {
            char *end;
            long pid = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : 0;
            if (pid <= 0 || pid > 1 << 30 || (*end && *end != ',')) {
                shk_say("--pid: '%s' is not a number of a process", options->pids.items[i]);
                return SHK_EXIT_USAGE;
            }
            pids->items[pids->count++] = pid;
            if (!*end)
                break;
            p = end + 1;
        }
    }
    for (size_t i = 0; i < options->arguments.count; i++) {
        const char *text = options->arguments.items[i];
        if (hang_is_number(text) && access(text, F_OK) != 0)
            pids->items[pids->count++] = strtol(text, NULL, 10);
    }
    return SHK_EXIT_OK;
}

struct hang_look {
    struct shk_hang_want want;
};

/* In a child: the document of this host, or {refused: errno, text}. */
static int hang_look_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct hang_look *look = arg;
    struct shk_host *host = NULL;
    int rc = shk_host_open(&host, NULL, err);
    if (rc)
        return rc;
    rc = shk_hang_look(host, &look->want, result_p, err);
    if (rc == -ESRCH || rc == -EMLINK) {
        *result_p = json_pack("{s:i,s:s}", "refused", -rc, "text", err->text);
        rc = 0;
    }
    shk_host_close(host);
    return rc;
}

/* Of all rows; the list is to be freed, its items are the catalogue's. NULL: out of memory. */
static const char **hang_libraries(const struct shk_config *config)
{
    size_t rows, count = 0;
    const struct shk_waitcall *calls = shk_config_calls(config, &rows);
    for (size_t i = 0; i < rows; i++)
        for (const char *const *l = calls[i].libraries; l && *l; l++)
            count++;
    const char **list = calloc(count + 1, sizeof *list);
    count = 0;
    for (size_t i = 0; list && i < rows; i++)
        for (const char *const *l = calls[i].libraries; l && *l; l++)
            list[count++] = *l;
    return list;
}

/* Who asks several hosts wants to know which of them have no rank. */
static json_t *hang_empty(json_t *why)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return json_pack("{s:o,s:[],s:[O]}", "host", shk_json_text(name, strlen(name)), "ranks",
                     "unread", why);
}

static int hang_look(struct shk_session *session, const struct hang_pids *pids, json_t *nodes)
{
    const struct shk_options *options = session->options;
    struct shk_error err = {""};
    const char **libraries = hang_libraries(session->config);
    if (!libraries || shk_session_names(session, &err)) {
        free(libraries);
        shk_say("hang: out of memory");
        return SHK_EXIT_INTERNAL;
    }
    struct hang_look look = {.want = {.pids = pids->items,
                                      .pids_count = pids->count,
                                      .job = options->job,
                                      .container = options->container,
                                      .seconds = (double)options->interval_s,
                                      .libraries = libraries,
                                      .names = session->names,
                                      .no_stacks = options->no_stacks,
                                      .intrusive = options->intrusive}};
    struct shk_isolate_job job = {.name = "look",
                                  .fn = hang_look_run,
                                  .arg = &look,
                                  .deadline_ms =
                                      (unsigned)(options->interval_s + HANG_DEADLINE_S) * 1000,
                                  .memory_limit = HANG_MEMORY};
    struct shk_isolate_result result = {0};
    int rc = shk_isolate_run(&job, &result, 1, 1, &err), code = SHK_EXIT_OK;
    json_t *refused = json_object_get(result.result, "refused");
    if (rc || result.outcome != SHK_CHILD_OK || !result.result) {
        shk_say("%s", rc ? err.text : result.error.text);
        code = SHK_EXIT_INTERNAL;
    } else if (refused && options->here && json_integer_value(refused) == ESRCH) {
        json_array_append_new(nodes, hang_empty(json_object_get(result.result, "text")));
    } else if (refused) {
        shk_say("hang: %s", json_string_value(json_object_get(result.result, "text")));
        bool asked = pids->count || json_integer_value(refused) == EMLINK;
        code = asked ? SHK_EXIT_USAGE : SHK_EXIT_UNKNOWN;
    } else {
        json_array_append(nodes, result.result);
    }
    shk_isolate_result_clear(&result);
    free(libraries);
    return code;
}

/* A part of an ID that another one has as well would choose by chance. */
static bool hang_is_container(const char *id)
{
    return strlen(id) >= 6 && strlen(id) <= 128 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               strlen(id);
}

/* What does not go together. */
static int hang_places(const struct shk_options *options, bool pids, struct shk_error *err)
{
    if ((options->hosts || options->pods) && pids)
        return shk_error_set(err, EINVAL,
                             "hang: --pid is of this host; leave --hosts and --pods out");
    if (options->hosts && options->pods)
        return shk_error_set(err, EINVAL, "hang: either --hosts or --pods");
    if (options->container && (options->hosts || (options->job && !options->here)))
        return shk_error_set(err, EINVAL,
                             "hang: --container is of this host, or of --pods; leave %s out",
                             options->hosts ? "--hosts" : "--job");
    if (options->container && !options->pods && !hang_is_container(options->container))
        return shk_error_set(err, EINVAL, "--container: '%.64s' is not the ID of a container",
                             options->container);
    return 0;
}

/* This host, or all that --hosts, --pods and --job tell of. */
static int hang_look_all(struct shk_session *session, const struct hang_pids *pids,
                         struct shk_reach *reach, json_t *nodes)
{
    struct shk_error err = {""};
    bool done = false;
    int rc = hang_places(session->options, pids->count > 0, &err);
    if (!rc && pids->count)
        rc = shk_reach_begin(reach, SHK_REACH_HERE, &err);
    else if (!rc)
        rc = shk_hang_nodes(session->options, reach, nodes, &done, &err);
    if (rc) {
        shk_say("%s", err.text);
        return rc == -ENOMEM ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE;
    }
    return done ? SHK_EXIT_OK : hang_look(session, pids, nodes);
}

static int hang_write(void *arg, const struct shk_form *form, const struct shk_report_options *how,
                      FILE *out)
{
    return shk_hang_report(arg, form, how, out);
}

static struct shk_hang_report hang_of(const struct shk_session *session, const json_t *nodes,
                                      const json_t *judgement, char now[SHK_STAMP])
{
    shk_stamp(now, (long long)time(NULL));
    return (struct shk_hang_report){.version = SHK_VERSION,
                                    .command = session->command_line,
                                    .time = now,
                                    .nodes = nodes,
                                    .judgement = judgement};
}

static int hang_report(const struct shk_session *session, const json_t *nodes,
                       const json_t *judgement)
{
    char now[SHK_STAMP];
    size_t count;
    const struct shk_options *options = session->options;
    const struct shk_form *forms = shk_hang_forms(&count);
    struct shk_hang_report report = hang_of(session, nodes, judgement, now);
    return shk_how_write_all(options, forms, count, "hang", hang_write, &report);
}

static const int hang_codes[] = {[SHK_HANG_PROGRESS] = SHK_EXIT_OK,
                                 [SHK_HANG_NAMED] = SHK_EXIT_FAIL,
                                 [SHK_HANG_UNDECIDED] = SHK_EXIT_UNKNOWN};

static json_t *hang_decide(const struct shk_session *session, const json_t *nodes,
                           enum shk_hang_outcome *outcome_p)
{
    struct shk_error err = {""};
    json_t *judgement = NULL;
    if (!shk_hang_judge(session->config, nodes, &judgement, outcome_p, &err))
        return judgement;
    shk_say("hang: %s", err.text);
    return NULL;
}

/* Checks what is asked for and writes. `reach`: how the nodes were reached; NULL: they are saved
 * ones. */
static int hang_finish(const struct shk_session *session, const struct shk_reach *reach,
                       const json_t *nodes, json_t *judgement, enum shk_hang_outcome outcome)
{
    struct shk_error err = {""};
    if (reach && session->options->then_check && shk_hang_check(reach, nodes, judgement, &err)) {
        shk_say("hang: %s", err.text);
        return SHK_EXIT_INTERNAL;
    }
    int rc = hang_report(session, nodes, judgement);
    return rc ? rc : hang_codes[outcome];
}

static int hang_judge(const struct shk_session *session, const struct shk_reach *reach,
                      const json_t *nodes)
{
    enum shk_hang_outcome outcome = SHK_HANG_UNDECIDED;
    json_t *judgement = hang_decide(session, nodes, &outcome);
    int rc = judgement ? hang_finish(session, reach, nodes, judgement, outcome) : SHK_EXIT_INTERNAL;
    json_decref(judgement);
    return rc;
}

static int hang_once(struct shk_session *session, const struct hang_pids *pids, json_t *nodes)
{
    struct shk_reach reach = {.names = NULL};
    int rc = hang_look_all(session, pids, &reach, nodes);
    if (rc == SHK_EXIT_OK)
        rc = hang_judge(session, &reach, nodes);
    shk_reach_end(&reach);
    return rc;
}

/* Who is named, and why: what two looks must agree in. */
static json_t *hang_core(const json_t *judgement)
{
    size_t i;
    json_t *one, *named = json_array();
    json_array_foreach(json_object_get(judgement, "named"), i, one)
    {
        json_t *who = json_object();
        static const char *const members[] = {"rank", "pid", "host", "kind"};
        for (size_t m = 0; m < sizeof members / sizeof *members; m++)
            if (json_object_get(one, members[m]))
                json_object_set(who, members[m], json_object_get(one, members[m]));
        json_array_append_new(named, who);
    }
    return json_pack("{s:o,s:O*}", "named", named, "reason", json_object_get(judgement, "reason"));
}

static bool hang_is_sure(const json_t *judgement)
{
    const json_t *first = json_array_get(json_object_get(judgement, "named"), 0);
    const char *sure = json_string_value(json_object_get(first, "confidence"));
    return sure && strcmp(sure, "confirmed") == 0;
}

static bool hang_pause(long seconds)
{
    double end = shk_clock_s() + (double)seconds;
    while (shk_clock_s() < end && !shk_stop_signal()) {
        struct timespec pause = {.tv_nsec = 50000000};
        nanosleep(&pause, NULL);
    }
    return !shk_stop_signal();
}

struct hang_watched {
    json_t *before; /* what the last look came to */
    bool done;
};

/* One look is over: is it the end? */
static int hang_watch_judge(struct shk_session *session, struct hang_watched *w,
                            const struct shk_reach *reach, const json_t *nodes)
{
    char now[SHK_STAMP];
    size_t count;
    const struct shk_form *forms = shk_hang_forms(&count);
    enum shk_hang_outcome outcome = SHK_HANG_PROGRESS;
    json_t *judgement = hang_decide(session, nodes, &outcome), *core = hang_core(judgement);
    bool again = w->before && json_equal(core, w->before);
    int rc = judgement ? SHK_EXIT_OK : SHK_EXIT_INTERNAL;
    w->done = !judgement || (outcome != SHK_HANG_PROGRESS && (again || hang_is_sure(judgement)));
    if (judgement && w->done) {
        rc = hang_finish(session, reach, nodes, judgement, outcome);
    } else if (judgement) {
        struct shk_hang_report report = hang_of(session, nodes, judgement, now);
        shk_how_headline(session->options, forms, count, hang_write, &report);
    }
    json_decref(w->before);
    w->before = core;
    json_decref(judgement);
    return rc;
}

/* All nodes answered, and none has a rank any more. */
static bool hang_all_gone(const json_t *nodes)
{
    size_t i;
    const json_t *node;
    json_array_foreach(nodes, i, node)
    {
        if (json_array_size(json_object_get(node, "ranks")) ||
            json_is_true(json_object_get(node, "unreached")))
            return false;
    }
    return json_array_size(nodes) > 0;
}

/* Looks until two looks one after the other come to the same, other than that the ranks go on, or
 * one is certain; or until the job is over. */
static int hang_watch(struct shk_session *session, const struct hang_pids *pids)
{
    struct hang_watched w = {.done = false};
    int rc = SHK_EXIT_OK;
    shk_stop_catch();
    for (unsigned looks = 0; !w.done && rc == SHK_EXIT_OK; looks++) {
        struct shk_reach reach = {.names = NULL};
        json_t *nodes = json_array();
        rc = hang_look_all(session, pids, &reach, nodes);
        bool gone = rc == SHK_EXIT_OK ? hang_all_gone(nodes)
                                      : rc == SHK_EXIT_USAGE || rc == SHK_EXIT_UNKNOWN;
        if (looks && gone) {
            shk_say("hang: the job is over");
            rc = SHK_EXIT_OK;
            w.done = true;
        } else if (rc == SHK_EXIT_OK) {
            rc = hang_watch_judge(session, &w, &reach, nodes);
        }
        shk_reach_end(&reach);
        json_decref(nodes);
        w.done = w.done || (rc == SHK_EXIT_OK && !hang_pause(session->options->watch_s));
    }
    json_decref(w.before);
    return shk_session_exit(rc);
}

/* Saved documents, where arguments name some; numbers of processes are not among them. */
static int hang_load(const struct shk_options *options, const struct hang_pids *pids, json_t *nodes,
                     size_t *files_p)
{
    struct shk_error err = {""};
    int rc = 0;
    for (size_t i = 0; !rc && i < options->arguments.count; i++) {
        const char *path = options->arguments.items[i];
        if (hang_is_number(path) && access(path, F_OK) != 0)
            continue;
        rc = shk_hang_load(path, nodes, &err);
        ++*files_p;
    }
    if (!rc && *files_p && (options->then_check || options->watch_s))
        rc = shk_error_set(&err, EINVAL, "hang: %s is for a running job, not for saved files",
                           options->watch_s ? "--watch" : "--then-check");
    if (!rc && *files_p && (pids->count || options->job))
        rc = shk_error_set(&err, EINVAL,
                           "hang: saved files and processes of this host cannot be "
                           "judged together: save the look with -o first");
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}

int shk_cmd_hang(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    struct hang_pids pids = {0};
    size_t files = 0, forms_count;
    const struct shk_form *forms = shk_hang_forms(&forms_count);
    json_t *nodes = json_array();
    int rc = shk_session_open(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_how_outputs(options, forms, forms_count);
    if (rc == SHK_EXIT_OK)
        rc = hang_take_pids(options, &pids);
    if (rc == SHK_EXIT_OK)
        rc = hang_load(options, &pids, nodes, &files);
    if (rc == SHK_EXIT_OK && files)
        rc = hang_judge(&session, NULL, nodes);
    else if (rc == SHK_EXIT_OK && options->watch_s)
        rc = hang_watch(&session, &pids);
    else if (rc == SHK_EXIT_OK)
        rc = hang_once(&session, &pids, nodes);
    json_decref(nodes);
    free(pids.items);
    shk_session_end(&session);
    return rc;
}
