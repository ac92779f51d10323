/* What is wrong, worst first: a title, where, what was seen, and what to do. */
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <stdlib.h>
#include <string.h>

/* Warnings in full, lines of a fix and of advice, and wrapped lines of what was seen; a FAIL is
 * always shown. */
enum {
    CAUSES_WARNINGS = 5,
    CAUSES_FIX = 3,
    CAUSES_ADVICE = 2,
    CAUSES_SEEN = 2,
    CAUSES_SLACK = 16,
    CAUSES_INDENT = 4
};

static bool cause_is_open(const struct term *t, const struct shk_diagnosis_row *row)
{
    return t->verbose || shk_cause_is_open(row);
}

/* "likely; for the admin to fix": behind the title where there is room, else below it. */
static char *cause_who(const struct shk_diagnosis_row *row)
{
    struct shk_strbuf who = SHK_STRBUF_INIT;
    shk_model_who(&who, row);
    return who.len || who.failed ? shk_strbuf_take(&who) : strdup("");
}

/* `place`: its number on the screen, where those below others are not counted. */
static void cause_title(const struct term *t, size_t place, const struct shk_diagnosis_row *row)
{
    char *lead = shk_strf("%2zu%s ", place, row->verdict == SHK_FAIL ? " " : "!");
    char *who = cause_who(row), *title = strdup(row->title ? row->title : row->key);
    char *line = who && *who && title ? shk_strf("%s  (%s)", title, who) : NULL;
    bool fits = line && CAUSES_INDENT + shk_text_width(line) <= t->width;
    struct shk_wrap wrap = {.role = SHK_ROLE_TITLE,
                            .lead = lead,
                            .lead_role = shk_style_role(row->verdict),
                            .clip = TERM_CLIP};
    t->out->failed |= !lead || !who || !title;
    shk_term_put(t, &wrap, fits ? line : title);
    if (!fits && who && *who) {
        char *own = shk_strf("(%s)", who);
        shk_term_text(t, SHK_ROLE_DIM, CAUSES_INDENT, "", own);
        free(own);
    }
    free(lead);
    free(who);
    free(title);
    free(line);
}

static void cause_names(const struct term *t, const char *names, size_t count)
{
    char *text = count == t->counts.total
                     ? shk_strf("all %zu nodes", count)
                     : shk_strf("%zu node%s: %s", count, count == 1 ? "" : "s", names);
    t->out->failed |= !text;
    shk_term_put(t, &(struct shk_wrap){.indent = CAUSES_INDENT}, text);
    free(text);
}

static void cause_row_nodes(const struct term *t, const struct shk_finding *row)
{
    char *names = NULL;
    size_t count = 0;
    if (t->counts.total <= 1 || !row->nodes)
        return;
    t->out->failed |= shk_row_nodes_folded(row, &names, &count) != 0;
    if (names)
        cause_names(t, names, count);
    free(names);
}

static void cause_nodes(const struct term *t, size_t number)
{
    char *names = NULL;
    size_t count = 0;
    if (t->counts.total <= 1)
        return;
    t->out->failed |= shk_cause_nodes(t->model, number, &names, &count) != 0;
    if (count)
        cause_names(t, names, count);
    free(names);
}

/* Text in at most as many lines as a screen has for it, and what else there is. */
static void cause_clipped(const struct term *t, const char *lead, enum shk_role role,
                          const char *text, size_t more)
{
    size_t room = (t->width - CAUSES_INDENT) * CAUSES_SEEN - CAUSES_SLACK;
    struct shk_strbuf clip = SHK_STRBUF_INIT;
    shk_text_clip(&clip, text, room, t->style.unicode ? 0 : SHK_CLEAN_ASCII);
    if (more)
        shk_strbuf_printf(&clip, " (+%zu: -v)", more);
    shk_term_put(
        t, &(struct shk_wrap){.indent = *lead ? 0 : CAUSES_INDENT, .lead = lead, .lead_role = role},
        shk_strbuf_text(&clip));
    t->out->failed |= clip.failed;
    shk_strbuf_free(&clip);
}

/* "setting = observed: why"; what the title says already is left out. */
static char *cause_row_text(const struct shk_finding *row, const char *title)
{
    const char *seen = row->observed && *row->observed ? row->observed : NULL;
    const char *why = row->why && *row->why ? row->why : NULL;
    bool told = title && seen && strstr(title, seen) && strstr(title, row->setting);
    if (told)
        return shk_copy(why);
    return shk_strf("%s%s%s%s%s", row->setting, seen ? " = " : "", seen ? seen : "",
                    why ? ": " : "", why ? why : "");
}

/* The row that stands for the cause: the first of its verdict. */
static const struct shk_finding *cause_row(const struct term *t, size_t number)
{
    enum shk_verdict verdict = t->report->diagnoses->rows[number - 1].verdict;
    for (size_t i = 0; t->report->findings && i < shk_findings_count(t->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(t->report->findings, i);
        if (row->verdict == verdict && shk_model_cause(t->report, row) == number)
            return row;
    }
    return NULL;
}

/* What a check saw before what a log or a rule says; all of it with --verbose. */
static void cause_seen(const struct term *t, size_t number)
{
    const struct shk_diagnosis_row *cause = &t->report->diagnoses->rows[number - 1];
    const struct shk_finding *row = cause_row(t, number);
    size_t count = 0;
    while (cause->evidence && cause->evidence[count])
        count++;
    for (size_t i = 0; i < count && t->verbose; i++)
        shk_term_text(t, SHK_ROLE_PLAIN, CAUSES_INDENT, "- ", cause->evidence[i]);
    if (t->verbose || !(count || row))
        return;
    char *text = row ? cause_row_text(row, cause->title) : strdup(cause->evidence[0]);
    t->out->failed |= !text;
    if (text && *text)
        cause_clipped(t, "", SHK_ROLE_PLAIN, text, count > 1 ? count - 1 : 0);
    free(text);
}

/* Titles of the causes that this one explains and that are not shown by themselves. */
static void cause_below(const struct term *t, size_t number)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (!t->verbose && shk_cause_below(t->model, number, &text)) {
        shk_strbuf_puts(&text, " (-v)");
        shk_term_text(t, SHK_ROLE_DIM, CAUSES_INDENT, "less likely: ", shk_strbuf_text(&text));
    }
    t->out->failed |= text.failed;
    shk_strbuf_free(&text);
}

static void cause_put(const struct term *t, size_t number, size_t place)
{
    const struct shk_diagnosis_row *row = &t->report->diagnoses->rows[number - 1];
    cause_title(t, place, row);
    cause_nodes(t, number);
    cause_seen(t, number);
    if (t->verbose)
        shk_term_text(t, SHK_ROLE_PLAIN, CAUSES_INDENT, "", row->explanation);
    shk_term_fix(t, CAUSES_INDENT, row->fix, t->verbose ? 0 : CAUSES_FIX);
    shk_term_advice(t, CAUSES_INDENT, row->advice, t->verbose ? 0 : CAUSES_ADVICE);
    cause_below(t, number);
}

static void cause_row_put(const struct term *t, const struct shk_finding *row, const char *text)
{
    char *lead = shk_strf(" %s  ", shk_style_sign(t->style, shk_style_verdict_sign(row->verdict)));
    t->out->failed |= !lead;
    if (lead)
        cause_clipped(t, lead, shk_style_role(row->verdict), text, 0);
    free(lead);
}

/* Rows that fail or warn and belong to no cause. */
static unsigned cause_rows(const struct term *t, unsigned shown)
{
    unsigned more = 0;
    for (size_t i = 0; t->report->findings && i < shk_findings_count(t->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(t->report->findings, i);
        bool fails = row->verdict == SHK_FAIL;
        if ((row->verdict != SHK_WARN && !fails) || shk_model_cause(t->report, row))
            continue;
        if (!fails && shown++ >= CAUSES_WARNINGS) {
            more++;
            continue;
        }
        char *text = cause_row_text(row, NULL);
        t->out->failed |= !text;
        if (text)
            cause_row_put(t, row, text);
        cause_row_nodes(t, row);
        shk_term_fix(t, CAUSES_INDENT, row->fix, 1);
        shk_term_advice(t, CAUSES_INDENT, row->advice, 1);
        free(text);
    }
    return more;
}

void shk_term_causes(const struct term *t)
{
    const struct shk_diagnoses *list = t->report->diagnoses;
    unsigned warnings = 0, more = 0;
    size_t place = 0;
    size_t from = t->out->len;
    shk_strbuf_putc(t->out, '\n');
    for (size_t i = 0; list && i < list->count; i++) {
        bool warns = list->rows[i].verdict != SHK_FAIL;
        if (!cause_is_open(t, &list->rows[i]))
            continue;
        if (warns && !t->verbose && warnings++ >= CAUSES_WARNINGS)
            more++;
        else
            cause_put(t, i + 1, t->verbose ? i + 1 : ++place);
    }
    more += t->verbose ? 0 : cause_rows(t, warnings);
    if (more) {
        char text[64];
        snprintf(text, sizeof text, "and %u more that warn%s (-v)", more, more == 1 ? "s" : "");
        shk_term_text(t, SHK_ROLE_WARN, CAUSES_INDENT, "", text);
    }
    if (t->out->len == from + 1 && t->out->data) /* nothing to say */
        t->out->data[t->out->len = from] = '\0';
}
