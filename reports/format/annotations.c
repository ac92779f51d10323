/* Annotations of a CI job. GitHub: workflow commands on stdout, which the runner turns into marks
 * on the run (docs.github.com, "Workflow commands"); it shows ten errors and ten warnings of a
 * step, so each cause is one, and what is left out is counted. GitLab: a Code Quality report
 * (docs.gitlab.com/ci/testing/code_quality, "Code Quality report format"), which wants a path for
 * each: shakedown/NODES. */
#include "reports/formats.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/model/nodecount.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CI_TITLE = 200, CI_LINE = 1000, CI_EACH = 10 };

/* The escapes of the runner's own parser: of data these three, of a property two more. */
static void ci_escape(struct shk_strbuf *out, const char *text, bool property)
{
    for (const char *p = text; *p; p++) {
        bool code = strchr("%\r\n", *p) || (property && strchr(":,", *p));
        shk_strbuf_printf(out, code ? "%%%02X" : "%c", (unsigned char)*p);
    }
}

static void ci_add(struct shk_strbuf *out, const char *label, const char *text)
{
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    if (!text || !*text)
        return;
    shk_text_clip_lines(&clean, text, CI_LINE, 0);
    shk_strbuf_printf(out, "%s%s%s", out->len ? "\n" : "", label, shk_strbuf_text(&clean));
    out->failed |= clean.failed;
    shk_strbuf_free(&clean);
}

struct ci_cause {
    const struct shk_diagnosis_row *row;
    char *nodes; /* folded; NULL: none is named */
    struct shk_strbuf title, text;
};

static void ci_cause_free(struct ci_cause *cause)
{
    free(cause->nodes);
    shk_strbuf_free(&cause->title);
    shk_strbuf_free(&cause->text);
}

static bool ci_cause(struct ci_cause *cause, const struct shk_model *model, size_t i)
{
    size_t count = 0;
    *cause = (struct ci_cause){.row = &model->report->diagnoses->rows[i]};
    if (shk_cause_nodes(model, i + 1, &cause->nodes, &count))
        return false;
    if (!count) {
        free(cause->nodes);
        cause->nodes = NULL;
    }
    shk_text_clip(&cause->title, cause->row->title, CI_TITLE, 0);
    ci_add(&cause->text, "nodes: ", cause->nodes);
    ci_add(&cause->text, "", cause->row->explanation);
    ci_add(&cause->text, "fix: ", cause->row->fix);
    ci_add(&cause->text, "", cause->row->advice);
    return !cause->title.failed && !cause->text.failed;
}

static void ci_command(struct shk_strbuf *out, const char *command, const char *title,
                       const char *text)
{
    shk_strbuf_printf(out, "::%s title=", command);
    ci_escape(out, title, true);
    shk_strbuf_puts(out, "::");
    ci_escape(out, text, false);
    shk_strbuf_putc(out, '\n');
}

static bool ci_good(const struct shk_model *model)
{
    return model->verdict == SHK_PASS || model->verdict == SHK_NOTE || model->verdict == SHK_NA;
}

/* When, in which job, on what. */
static void ci_when(struct shk_strbuf *text, const struct shk_model *model)
{
    struct shk_strbuf hardware = SHK_STRBUF_INIT;
    char *start = shk_hardware_date(model), *job = shk_hardware_job(model);
    ci_add(text, "start: ", start);
    if (start && model->report->elapsed_s >= 0)
        shk_strbuf_printf(text, ", %.1f s", model->report->elapsed_s);
    ci_add(text, "job: ", job);
    text->failed |= shk_hardware_line(model, &hardware) != 0;
    ci_add(text, "hardware: ", shk_strbuf_text(&hardware));
    shk_strbuf_free(&hardware);
    free(start);
    free(job);
}

/* What no cause says: nodes, headline or counts, what was left out. */
static void ci_verdict(struct shk_strbuf *title, struct shk_strbuf *text,
                       const struct shk_model *model, size_t left)
{
    shk_strbuf_printf(title, "shakedown: %s", shk_verdict_name(model->verdict));
    ci_add(text, "", model->where);
    if (model->report->headline)
        ci_add(text, "", model->report->headline);
    else {
        shk_strbuf_putc(text, '\n');
        shk_model_counts(text, model->report->coverage.verdicts);
    }
    ci_when(text, model);
    if (model->report->interrupted)
        shk_strbuf_printf(text, "\n" SHK_MODEL_INTERRUPTED, model->report->interrupted);
    if (left)
        shk_strbuf_printf(text, "\n%zu more causes: --format md has them", left);
}

static void ci_github_end(struct shk_strbuf *out, const struct shk_model *model, size_t left)
{
    struct shk_strbuf title = SHK_STRBUF_INIT, text = SHK_STRBUF_INIT;
    const char *command = model->verdict == SHK_FAIL ? "error"
                          : ci_good(model)           ? "notice"
                                                     : "warning";
    ci_verdict(&title, &text, model, left);
    ci_command(out, command, shk_strbuf_text(&title), shk_strbuf_text(&text));
    out->failed |= title.failed || text.failed;
    shk_strbuf_free(&title);
    shk_strbuf_free(&text);
}

static int ci_github(const struct shk_model *model, FILE *file)
{
    const struct shk_diagnoses *list = model->report->diagnoses;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    size_t given[2] = {0}, left = 0;
    for (size_t i = 0; list && i < list->count; i++) {
        bool fails = list->rows[i].verdict == SHK_FAIL;
        struct ci_cause cause;
        if (given[fails]++ >= CI_EACH - 1) { /* the verdict is one, too */
            left++;
            continue;
        }
        out.failed |= !ci_cause(&cause, model, i);
        ci_command(&out, fails ? "error" : "warning", shk_strbuf_text(&cause.title),
                   shk_strbuf_text(&cause.text));
        ci_cause_free(&cause);
    }
    ci_github_end(&out, model, left);
    int rc = shk_format_write(&out, file);
    shk_strbuf_free(&out);
    return rc;
}

static json_t *ci_gitlab_issue(const struct shk_model *model, enum shk_verdict verdict,
                               const char *name, const char *nodes, const char *title,
                               const char *more)
{
    static const char *const severities[SHK_VERDICT_COUNT] = {
        [SHK_FAIL] = "critical", [SHK_WARN] = "minor", [SHK_UNKNOWN] = "info"};
    struct shk_strbuf path = SHK_STRBUF_INIT, print = SHK_STRBUF_INIT, text = SHK_STRBUF_INIT,
                      key = SHK_STRBUF_INIT;
    shk_text_clip(&key, name, CI_TITLE, 0);
    shk_strbuf_puts(&path, "shakedown/");
    shk_text_clip(&path, nodes ? nodes : model->where, CI_TITLE, 0);
    shk_strbuf_printf(&print, "%s:%s", shk_strbuf_text(&key), shk_strbuf_text(&path));
    shk_strbuf_printf(&text, "%s\n%s", title, more);
    json_t *issue =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:{s:i}}}", "description", shk_strbuf_text(&text),
                  "check_name", shk_strbuf_text(&key), "fingerprint", shk_strbuf_text(&print),
                  "severity", severities[verdict] ? severities[verdict] : "info", "location",
                  "path", shk_strbuf_text(&path), "lines", "begin", 1);
    shk_strbuf_free(&key);
    shk_strbuf_free(&path);
    shk_strbuf_free(&print);
    shk_strbuf_free(&text);
    return issue;
}

/* One for the verdict where no cause stands for it. */
static int ci_gitlab_verdict(const struct shk_model *model, json_t *issues)
{
    struct shk_strbuf title = SHK_STRBUF_INIT, text = SHK_STRBUF_INIT;
    ci_verdict(&title, &text, model, 0);
    int rc = json_array_append_new(issues, ci_gitlab_issue(model, model->verdict, "verdict", NULL,
                                                           shk_strbuf_text(&title),
                                                           shk_strbuf_text(&text)));
    shk_strbuf_free(&title);
    shk_strbuf_free(&text);
    return rc ? -ENOMEM : 0;
}

static int ci_gitlab(const struct shk_model *model, FILE *file)
{
    const struct shk_diagnoses *list = model->report->diagnoses;
    json_t *issues = json_array();
    size_t count = list ? list->count : 0;
    int rc = count || ci_good(model) ? 0 : ci_gitlab_verdict(model, issues);
    for (size_t i = 0; !rc && i < count; i++) {
        struct ci_cause cause;
        if (!ci_cause(&cause, model, i) ||
            json_array_append_new(issues,
                                  ci_gitlab_issue(model, cause.row->verdict, cause.row->key,
                                                  cause.nodes, shk_strbuf_text(&cause.title),
                                                  shk_strbuf_text(&cause.text))))
            rc = -ENOMEM;
        ci_cause_free(&cause);
    }
    rc = rc ? rc : shk_format_document(issues, JSON_INDENT(2), file);
    json_decref(issues);
    return rc;
}

static int ci_render(const struct shk_report *report, const struct shk_report_options *options,
                     FILE *out, int (*write)(const struct shk_model *model, FILE *file))
{
    struct shk_model *model = shk_model_create(report, options);
    int rc = model ? write(model, out) : -ENOMEM;
    shk_model_destroy(model);
    return rc;
}

static int ci_github_render(const struct shk_report *report,
                            const struct shk_report_options *options, FILE *out)
{
    return ci_render(report, options, out, ci_github);
}

static int ci_gitlab_render(const struct shk_report *report,
                            const struct shk_report_options *options, FILE *out)
{
    return ci_render(report, options, out, ci_gitlab);
}

const struct shk_format shk_format_github = {
    .name = "github",
    .doc = "annotations of a GitHub Actions run: one for each cause",
    .render = ci_github_render,
};

const struct shk_format shk_format_gitlab = {
    .name = "gitlab",
    .doc = "a Code Quality report of GitLab (artifacts:reports:codequality); JUnit has every row",
    .render = ci_gitlab_render,
};
