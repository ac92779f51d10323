#include "checks/selftest.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/selftest.h"

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

int shk_cmd_selftest(const struct shk_options *options, int argc, char **argv)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    struct shk_selftest_report report = {
        .out = stdout, .verbose = options->verbose > 0, .area = "checks"};
    (void)argc, (void)argv;
    int rc = shk_config_load(&config, NULL, NULL, &err);
    for (size_t i = 0; !rc && shk_selftest_cases[i]; i++)
        rc = shk_selftest_checks(config, shk_selftest_cases[i], selftest_check_row, &report, &err);
    if (rc) {
        shk_say("%s", err.text);
        shk_config_free(config);
        return SHK_EXIT_INTERNAL;
    }
    selftest_area(&report);
    shk_selftest_isolation(&report);
    selftest_area(&report);
    shk_selftest_files(&report);
    selftest_area(&report);
    if (!options->quick) {
        shk_selftest_ranks(&report);
        selftest_area(&report);
    }
    shk_selftest_output(&report);
    selftest_area(&report);
    shk_config_free(config);
    printf(report.missed ? "%u faults were missed: do not trust this build here\n"
                         : "every planted fault was found\n",
           report.missed);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !shk_output_unread()) {
        shk_say("stdout cannot be written");
        return SHK_EXIT_INTERNAL;
    }
    return report.missed ? SHK_EXIT_FAIL : SHK_EXIT_OK;
}
