#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/run/stop.h"
#include "core/text/strbuf.h"
#include "probes/base/probe.h"
#include "reports/model/hardware.h"
#include "reports/report.h"
#include "reports/term/brief.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct shk_format *report_format(const struct shk_options *options, const char *path)
{
    size_t n;
    const struct shk_format *const *all = shk_formats(&n);
    if (options->format)
        return shk_format_find(options->format);
    for (size_t i = 0; i < n; i++)
        if (shk_how_extension(path, all[i]->extension))
            return all[i];
    return shk_format_find("term");
}

/* "a/report.json" of a task that does not speak for the job: "a/report.node2.json". NULL: path
 * itself. */
static char *report_own_path(const struct shk_session *session, const char *path)
{
    const char *name = shk_facts_get_text(session->facts[0], "host.name");
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    struct stat st;
    bool file = stat(path, &st) != 0 || S_ISREG(st.st_mode);
    if (shk_session_speaks(session) || !name || !file)
        return NULL;
    int stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    char *own = shk_strf("%.*s.%s%s", stem, path, name, dot ? dot : "");
    if (own)
        shk_say("%s: other tasks of the launcher write that, too; this one's report is %s", path,
                own);
    return own;
}

static bool report_to_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

int shk_session_outputs(const struct shk_session *session)
{
    const struct shk_options *o = session->options;
    const char *extensions[16];
    const char *const lists[] = {o->healthy_nodes, o->bad_nodes};
    struct shk_error err = {""};
    size_t n, known = 0;
    const struct shk_format *const *all = shk_formats(&n);
    int rc = 0;
    for (size_t i = 0; i < n && known < sizeof extensions / sizeof *extensions; i++)
        if (all[i]->extension)
            extensions[known++] = all[i]->extension;
    for (size_t i = 0; !rc && !o->format && i < o->outputs.count; i++)
        rc = shk_how_known(o->outputs.items[i], extensions, known, &err);
    for (size_t i = 0; !rc && i < o->outputs.count; i++)
        rc = shk_output_check(o->outputs.items[i], &err);
    for (size_t i = 0; !rc && i < sizeof lists / sizeof *lists; i++)
        rc = lists[i] ? shk_output_check(lists[i], &err) : 0;
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}

static int report_one(const struct shk_session *session, const struct shk_report *report,
                      const char *path)
{
    struct shk_error err = {""};
    struct shk_output out;
    struct shk_report_options how = shk_how(session->options, !path);
    if (shk_output_begin(&out, &err)) {
        shk_say("%s", err.text);
        return SHK_EXIT_INTERNAL;
    }
    const struct shk_format *format = report_format(session->options, path);
    int rc = format->render(report, &how, out.stream);
    if (rc) {
        shk_output_discard(&out);
        shk_say("%s report: %s", format->name, strerror(-rc));
        return SHK_EXIT_INTERNAL;
    }
    if (shk_output_finish(&out, path, &err)) {
        shk_say("%s", err.text);
        return SHK_EXIT_INTERNAL;
    }
    return SHK_EXIT_OK;
}

static int report_exit(const struct shk_options *options, const struct shk_coverage *c)
{
    if (c->verdicts[SHK_FAIL] || (options->fail_on == SHK_FAIL_ON_WARN && c->verdicts[SHK_WARN]))
        return SHK_EXIT_FAIL;
    if (c->asked_unknown || (options->fail_on == SHK_FAIL_ON_UNKNOWN && c->required_unknown))
        return SHK_EXIT_UNKNOWN;
    return SHK_EXIT_OK;
}

/* Of a diagnosis. */
static int report_answer(enum shk_verdict answer)
{
    return answer == SHK_FAIL ? SHK_EXIT_FAIL : answer == SHK_PASS ? SHK_EXIT_OK : SHK_EXIT_UNKNOWN;
}

int shk_session_exit(int code)
{
    int sig = shk_stop_signal();
    return sig && code != SHK_EXIT_INTERNAL && code != SHK_EXIT_USAGE ? SHK_EXIT_SIGNAL + sig
                                                                      : code;
}

/* Every -o went to a file: those who wait at the terminal see what came out, and where it is. */
static void report_say_written(const struct shk_session *session, const struct shk_report *report,
                               const struct shk_strbuf *written)
{
    struct shk_report_options how = shk_how_stderr(session->options);
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (shk_report_brief(report, &how, &text))
        shk_say("out of memory");
    else
        shk_tell(shk_strbuf_text(&text));
    shk_strbuf_free(&text);
    if (written->len)
        shk_say("wrote %s", shk_strbuf_text(written));
}

/* To every -o; what could not be written to any file goes to stdout: it may have taken an hour of
 * many nodes. */
static int report_outputs(const struct shk_session *session, const struct shk_report *report)
{
    const struct shk_texts *outputs = &session->options->outputs;
    struct shk_strbuf written = SHK_STRBUF_INIT;
    int worst = SHK_EXIT_OK;
    bool on_stdout = false;
    for (size_t i = 0; i < outputs->count; i++) {
        const char *path = outputs->items[i];
        bool to_stdout = report_to_stdout(path);
        char *own = to_stdout ? NULL : report_own_path(session, path);
        int rc = report_one(session, report, to_stdout ? NULL : own ? own : path);
        on_stdout |= to_stdout;
        if (!rc && !to_stdout)
            shk_strbuf_printf(&written, "%s%s", written.len ? ", " : "", own ? own : path);
        free(own);
        worst = rc > worst ? rc : worst;
    }
    if (!on_stdout && worst)
        (void)report_one(session, report, NULL);
    else if (!on_stdout)
        report_say_written(session, report, &written);
    shk_strbuf_free(&written);
    return worst;
}

int shk_session_report(struct shk_session *session)
{
    const char **profiles = calloc(session->nodes + 1, sizeof *profiles);
    bool doubtful = false;
    for (size_t i = 0; profiles && session->node_profiles && i < session->nodes; i++) {
        profiles[i] = session->node_profiles[i].profile->name;
        doubtful |= session->node_profiles[i].doubt != NULL;
    }
    struct shk_report report = {
        .version = SHK_VERSION,
        .command = session->command_line,
        .profile = session->profile->name,
        .profile_why = session->profile_why,
        .profile_doubtful = doubtful,
        .facts = (const struct shk_facts *const *)session->facts,
        .profiles = session->node_profiles ? profiles : NULL,
        .nodes = session->nodes,
        .findings = session->findings,
        .diagnoses = &session->diagnoses,
        .coverage = shk_findings_coverage(session->findings),
        .elapsed_s =
            shk_hardware_seconds((const struct shk_facts *const *)session->facts, session->nodes),
        .interrupted = session->interrupted,
        .probe_of = shk_probe_of,
        .headline = session->headline,
        .answer = session->answer,
    };
    int worst = session->options->outputs.count ? report_outputs(session, &report)
                                                : report_one(session, &report, NULL);
    free(profiles);
    int rc = shk_session_node_files(session);
    worst = rc > worst ? rc : worst;
    int code = session->headline ? report_answer(session->answer)
                                 : report_exit(session->options, &report.coverage);
    return shk_session_exit(worst ? worst : code);
}
