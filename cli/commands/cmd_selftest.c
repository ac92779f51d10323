#include "checks/selftest/mutate.h"
#include "checks/selftest/selftest.h"
#include "cli/commands/commands.h"
#include "cli/commands/selftest.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"

#include <string.h>

void shk_selftest_count(struct shk_selftest_report *report, const char *name, const char *what,
                        bool found, const char *problem)
{
    report->cases++;
    report->found += found;
    report->missed += !found;
    if (!found)
        fprintf(report->out, "  MISSED  %-22s %s: %s\n", name, what, problem ? problem : "");
    else if (report->verbose)
        fprintf(report->out, "  found   %-22s %s\n", name, what);
}

static void selftest_area(struct shk_selftest_report *report)
{
    fprintf(report->out, "%-10s %3u faults, %3u found\n", report->area, report->cases,
            report->found);
    report->cases = report->found = 0;
}

static void selftest_check_row(const struct shk_selftest_row *row, void *arg)
{
    shk_selftest_count(arg, row->check, row->what, row->ok, row->problem);
}

static void selftest_breach(const struct shk_mutation_breach *breach, void *arg)
{
    struct shk_selftest_report *report = arg;
    report->missed++;
    fprintf(report->out, "  MISSED  %-22s %s %s: %s: %s\n", breach->check, breach->fact,
            breach->how, breach->setting, breach->problem);
}

/* What this node shows, each fact unreadable in turn. */
static int selftest_unread(struct shk_selftest_report *report, struct shk_session *session,
                           struct shk_error *err)
{
    struct shk_mutation_count count = {0};
    json_t *doc = shk_facts_to_json(session->facts[0]);
    report->area = "unread";
    int rc = shk_mutate(session->config, json_object_get(doc, "facts"), selftest_breach, report,
                        &count, err);
    report->cases = (unsigned)count.mutations;
    report->found = (unsigned)(count.mutations - count.breaches);
    json_decref(doc);
    return rc;
}

/* The planted cases, then the facts of this node. */
static int selftest_checks(struct shk_selftest_report *report, const struct shk_options *options,
                           int argc, char **argv)
{
    struct shk_session session;
    struct shk_error err = {""};
    int code = shk_session_begin(&session, options, argc, argv), rc = 0;
    for (size_t i = 0; code == SHK_EXIT_OK && !rc && shk_selftest_cases[i]; i++)
        rc = shk_selftest_checks(session.config, shk_selftest_cases[i], selftest_check_row, report,
                                 &err);
    if (code == SHK_EXIT_OK && !rc) {
        selftest_area(report);
        code = shk_session_gather(&session);
    }
    if (code == SHK_EXIT_OK && !rc) {
        rc = selftest_unread(report, &session, &err);
        selftest_area(report);
    }
    shk_session_end(&session);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : code;
}

int shk_cmd_selftest(const struct shk_options *options, int argc, char **argv)
{
    struct shk_selftest_report report = {
        .out = stdout, .verbose = options->verbose > 0, .area = "checks"};
    /* First those that fork: a child inherits what the others allocate. */
    shk_selftest_isolation(&report);
    selftest_area(&report);
    shk_selftest_files(&report);
    selftest_area(&report);
    report.area = "checks";
    int rc = selftest_checks(&report, options, argc, argv);
    if (rc != SHK_EXIT_OK)
        return rc;
    if (!options->quick) {
        shk_selftest_ranks(&report);
        selftest_area(&report);
    }
    shk_selftest_output(&report);
    selftest_area(&report);
    printf(report.missed ? "%u faults were missed: do not trust this build here\n"
                         : "every planted fault was found\n",
           report.missed);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !shk_output_unread()) {
        shk_say("stdout cannot be written");
        return SHK_EXIT_INTERNAL;
    }
    return report.missed ? SHK_EXIT_FAIL : SHK_EXIT_OK;
}
