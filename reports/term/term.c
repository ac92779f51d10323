/* Terminal report: one screen with what to do first and how well it runs, the verdict again at its
 * end; rows, sizes, topology and probes with --verbose. */
#include "reports/formats.h"
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TERM_WIDTH = 100, TERM_WIDTH_LEAST = 40 };

void shk_term_put(const struct term *t, const struct shk_wrap *like, const char *text)
{
    struct shk_wrap wrap = *like;
    wrap.style = t->style;
    wrap.width = t->width;
    wrap.clip = wrap.clip ? wrap.clip : TERM_NAMES;
    if (text && *text)
        shk_wrap_put(t->out, &wrap, text);
}

void shk_term_text(const struct term *t, enum shk_role role, unsigned indent, const char *lead,
                   const char *text)
{
    shk_term_put(
        t, &(struct shk_wrap){.role = role, .indent = indent, .lead = lead, .clip = TERM_CLIP},
        text);
}

/* The first lines of a text (0: all), and how many more there are; one more is shown, too. */
static void term_lines(const struct term *t, const struct shk_wrap *wrap, const char *text,
                       unsigned lines)
{
    const char *end = text;
    unsigned shown = 0, more = 0;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        if (!lines || shown < lines) {
            end = p + strcspn(p, "\n");
            shown++;
        } else {
            more++;
        }
    }
    if (more == 1) {
        end = text + strlen(text);
        more = 0;
    }
    char *first = shown ? strndup(text, (size_t)(end - text)) : NULL;
    t->out->failed |= shown && !first;
    shk_term_put(t, wrap, first);
    free(first);
    if (more) {
        char rest[64];
        snprintf(rest, sizeof rest, "and %u more lines (-v)", more);
        shk_term_text(t, SHK_ROLE_DIM, wrap->indent + 2, "", rest);
    }
}

void shk_term_fix(const struct term *t, unsigned indent, const char *fix, unsigned lines)
{
    struct shk_wrap wrap = {.role = SHK_ROLE_FIX,
                            .indent = indent,
                            .lead = shk_term_arrow(t),
                            .clip = TERM_CLIP,
                            .shell = true};
    term_lines(t, &wrap, fix, lines);
}

void shk_term_advice(const struct term *t, unsigned indent, const char *advice, unsigned lines)
{
    struct shk_wrap wrap = {.role = SHK_ROLE_PLAIN,
                            .indent = indent,
                            .lead = SHK_TERM_ADVICE,
                            .clip = TERM_CLIP,
                            .block = true};
    term_lines(t, &wrap, advice, lines);
}

void shk_term_title(const struct term *t, const char *title, const char *rest)
{
    shk_strbuf_printf(t->out, "\n%s%s%s", shk_style_on(t->style, SHK_ROLE_TITLE), title,
                      shk_style_off(t->style, SHK_ROLE_TITLE));
    shk_strbuf_printf(t->out, "%s%s\n", rest ? "  " : "", rest ? rest : "");
}

const char *shk_term_arrow(const struct term *t)
{
    return t->style.unicode ? "\xE2\x86\x92 " : "> ";
}

enum shk_verdict shk_term_verdict(const struct term *t)
{
    return t->report->headline ? t->report->answer : t->model->verdict;
}

int shk_term_begin(struct term *t, const struct shk_report *report,
                   const struct shk_report_options *options, struct shk_strbuf *out)
{
    unsigned width = options->width ? options->width : TERM_WIDTH;
    struct shk_model *model = shk_model_create(report, options);
    if (!model)
        return -ENOMEM;
    *t = (struct term){
        .model = model,
        .report = model->report,
        .style = {.color = options->color, .unicode = options->unicode},
        .width = width < TERM_WIDTH_LEAST ? TERM_WIDTH_LEAST : width,
        .verbose = options->verbose,
        .out = out,
    };
    int rc = shk_node_counts(&t->counts, model);
    if (rc)
        shk_model_destroy(model);
    return rc;
}

void shk_term_end(struct term *t)
{
    shk_node_counts_free(&t->counts);
    shk_model_destroy((struct shk_model *)t->model);
}

static int term_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct term t;
    int rc = shk_term_begin(&t, report, options, &text);
    if (rc)
        return rc;
    shk_term_head(&t);
    shk_term_causes(&t);
    shk_term_summary(&t);
    if (t.verbose) {
        shk_term_matrix(&t);
        shk_term_gaps(&t);
        shk_term_runs(&t);
        shk_term_topology(&t);
        shk_term_probes(&t);
    }
    shk_term_counts(&t);
    shk_term_last(&t);
    rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_term_end(&t);
    return rc;
}

const struct shk_format shk_format_term = {
    .name = "term",
    .extension = ".txt",
    .doc = "for a terminal: verdict, causes with what to do, transports; rows with --verbose",
    .render = term_render,
};
