#include "checks/base/check.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "collectives/collective.h"
#include "config/defects.h"
#include "core/text/strbuf.h"
#include "probes/base/probe.h"
#include "reports/report.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What rows must have in them, in any case of letters, or what with '*' or '?' their name must be;
 * NULL: every row. */
static const char *list_pattern;
static size_t list_rows;

static bool list_fits(const char *name, const char *second, const char *text)
{
    if (!list_pattern)
        return true;
    if (strpbrk(list_pattern, "*?"))
        return fnmatch(list_pattern, name, FNM_CASEFOLD) == 0 ||
               fnmatch(list_pattern, second, FNM_CASEFOLD) == 0;
    return strcasestr(name, list_pattern) || strcasestr(second, list_pattern) ||
           (text && strcasestr(text, list_pattern));
}

/* Name, a second column, one line of text; tab-free and greppable, one row per line. */
static void list_row(FILE *out, const char *name, const char *second, const char *text)
{
    if (!list_fits(name, second, text))
        return;
    list_rows++;
    fprintf(out, "%-36s %-12s %s\n", name, second, text ? text : "");
}

static void list_probes(const struct shk_config *config, FILE *out)
{
    static const char *const phases[SHK_PHASE_COUNT] = {
        [SHK_PHASE_EARLY] = "library",
        [SHK_PHASE_HOST] = "host",
        [SHK_PHASE_LIBRARY] = "library",
        [SHK_PHASE_DERIVED] = "derived",
    };
    size_t n;
    const struct shk_probe *const *all = shk_probes(&n);
    (void)config;
    for (size_t i = 0; i < n; i++)
        list_row(out, all[i]->name, phases[all[i]->phase], all[i]->doc);
}

static void list_checks(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_check *const *all = shk_checks(&n);
    (void)config;
    for (size_t i = 0; i < n; i++)
        list_row(out, all[i]->id, all[i]->family, all[i]->title);
}

static void list_settings(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_setting *all = shk_config_settings(config, &n);
    for (size_t i = 0; i < n; i++) {
        char *text = shk_strf("%s [%s]", all[i].effect, all[i].source);
        list_row(out, all[i].name, all[i].family, text);
        free(text);
    }
}

static void list_profiles(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_profile *all = shk_config_profiles(config, &n);
    for (size_t i = 0; i < n; i++)
        if (!all[i].abstract)
            list_row(out, all[i].name, all[i].gpu ? all[i].gpu : "any", all[i].title);
}

/* Rows that have a name, a word and a sentence. */
#define LIST(rows, type, name, word, text)                                                         \
    static void list_##rows(const struct shk_config *config, FILE *out)                            \
    {                                                                                              \
        size_t n;                                                                                  \
        const type *all = shk_config_##rows(config, &n);                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            list_row(out, all[i].name, all[i].word, all[i].text);                                  \
    }

LIST(diagnoses, struct shk_diagnosis, key, who, title)
LIST(conflicts, struct shk_conflict, name, verdict, why)
LIST(rules, struct shk_rule, name, diagnosis, why)
LIST(defects, struct shk_defect, name, library, title)

static void list_signatures(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_signature *all = shk_config_signatures(config, &n);
    for (size_t i = 0; i < n; i++)
        list_row(out, all[i].id,
                 all[i].diagnosis ? all[i].diagnosis : shk_log_role_names[all[i].role],
                 all[i].meaning);
}

static void list_transports(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_transport *const *all = shk_transports(&n);
    (void)config;
    for (size_t i = 0; i < n; i++)
        list_row(out, all[i]->name, "", all[i]->doc);
}

static void list_formats(const struct shk_config *config, FILE *out)
{
    size_t n;
    const struct shk_format *const *all = shk_formats(&n);
    (void)config;
    for (size_t i = 0; i < n; i++)
        list_row(out, all[i]->name, all[i]->extension ? all[i]->extension : "", all[i]->doc);
}

static const struct {
    const char *name;
    void (*print)(const struct shk_config *config, FILE *out);
    const char *doc;
} lists[] = {
    {"probes", list_probes, "where facts come from, in order: name, phase, what"},
    {"checks", list_checks, "what is judged: name, family, what"},
    {"settings", list_settings, "variables and boot options: name, family, effect, source"},
    {"conflicts", list_conflicts, "settings that work against each other: name, verdict, why"},
    {"profiles", list_profiles, "what a system should look like: name, GPU, title"},
    {"diagnoses", list_diagnoses, "root causes: key, who acts, title"},
    {"signatures", list_signatures, "lines of logs: name, root cause or role, meaning"},
    {"rules", list_rules, "evidence put together: name, root cause, why"},
    {"defects", list_defects, "known defects of releases: name, library, what happens"},
    {"transports", list_transports, "collectives that can be run"},
    {"formats", list_formats, "of the report: name, extension, what"},
};
enum { LISTS = sizeof lists / sizeof *lists };

/* Without an argument: what can be listed. */
static void list_lists(FILE *out)
{
    for (size_t i = 0; i < LISTS; i++)
        fprintf(out, "%-12s %s\n", lists[i].name, lists[i].doc);
}

static int list_unknown(const char *what)
{
    const char *names[LISTS];
    for (size_t i = 0; i < LISTS; i++)
        names[i] = lists[i].name;
    const char *near = shk_nearest(what, names, LISTS);
    shk_say("list: there is no list '%s'%s%s%s", what,
            near ? "; did you mean " : " (see: shakedown list)", near ? near : "", near ? "?" : "");
    return SHK_EXIT_USAGE;
}

static void list_print(size_t i, const struct shk_config *config, FILE *out)
{
    list_rows = 0;
    lists[i].print(config, out);
    if (list_pattern && !list_rows)
        shk_say("list: no row of %s has '%s'", lists[i].name, list_pattern);
}

int shk_cmd_list(const struct shk_options *options, int argc, char **argv)
{
    const char *what = options->arguments.count ? options->arguments.items[0] : "lists";
    struct shk_error err = {""}, ignored = {""};
    struct shk_config *config = NULL;
    struct shk_output out;
    size_t i = 0;
    (void)argc;
    (void)argv;
    list_pattern = options->arguments.count > 1 ? options->arguments.items[1] : NULL;
    bool overview = strcmp(what, "lists") == 0;
    while (!overview && i < LISTS && strcmp(lists[i].name, what) != 0)
        i++;
    if (i == LISTS)
        return list_unknown(what);
    bool lines = options->log_files.count > 0;
    if (lines && strcmp(what, "signatures") != 0) {
        shk_say("list: --log goes with the list of signatures");
        return SHK_EXIT_USAGE;
    }
    if (shk_config_load(&config, "/etc/shakedown", options->config_dir, &err)) {
        shk_say("%s", err.text);
        return SHK_EXIT_USAGE;
    }
    int rc = shk_output_begin(&out, &err);
    if (!rc) {
        if (lines)
            rc = shk_list_lines(config, &options->log_files, out.stream, &err);
        else if (!overview)
            list_print(i, config, out.stream);
        else
            list_lists(out.stream);
        if (shk_output_finish(&out, NULL, rc ? &ignored : &err))
            rc = -EIO;
    }
    shk_config_free(config);
    if (rc)
        shk_say("%s", err.text);
    return !rc                                    ? SHK_EXIT_OK
           : lines && rc != -ENOMEM && rc != -EIO ? SHK_EXIT_USAGE
                                                  : SHK_EXIT_INTERNAL;
}
