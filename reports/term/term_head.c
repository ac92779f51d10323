/* Who and what: the first lines of the screen, and the last one. */
#include "core/text/nodefold.h"
#include "reports/model/hardware.h"
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <stdlib.h>
#include <string.h>

/* Lines of names in the head: a longer list stands with the causes alone. */
enum { HEAD_NAMES = 4 };

#define HEAD_GLUE "\xC2\xA0"

static const char *const head_words[SHK_VERDICT_COUNT] = {
    [SHK_PASS] = "PASS", [SHK_NOTE] = "PASS",       [SHK_WARN] = "WARN",
    [SHK_FAIL] = "FAIL", [SHK_UNKNOWN] = "UNKNOWN", [SHK_NA] = "PASS"};

/* Parts of a line between dots; a part stays on one line where it fits. */
struct head_parts {
    const struct term *t;
    struct shk_strbuf text;
};

static void head_part(const char *part, void *arg)
{
    struct head_parts *parts = arg;
    const char *dot = shk_style_sign(parts->t->style, SHK_SIGN_DOT);
    bool glue = shk_text_width(part) + 12 < parts->t->width;
    if (!part || !*part)
        return;
    if (parts->text.len)
        shk_strbuf_printf(&parts->text, HEAD_GLUE "%s ", dot);
    struct shk_strbuf clip = SHK_STRBUF_INIT;
    shk_text_clip(&clip, part, TERM_NAMES, 0);
    for (const char *p = shk_strbuf_text(&clip); *p; p++) {
        if (*p == ' ' && glue)
            shk_strbuf_puts(&parts->text, HEAD_GLUE);
        else
            shk_strbuf_putc(&parts->text, *p);
    }
    parts->text.failed |= clip.failed;
    shk_strbuf_free(&clip);
}

static void head_owned(char *part, struct head_parts *parts)
{
    head_part(part ? part : "", parts);
    free(part);
}

/* How many nodes fail; the name of a single node, NULL when nobody told it. */
static char *head_nodes(const struct term *t)
{
    if (t->counts.total <= 1)
        return t->model->unnamed ? NULL : strdup(t->model->where);
    return shk_node_counts_say(&t->counts);
}

static char *head_lead(const struct term *t)
{
    enum shk_verdict verdict = shk_term_verdict(t);
    return shk_strf("%s %s  ", shk_style_sign(t->style, shk_style_verdict_sign(verdict)),
                    t->report->headline ? "diagnosis" : head_words[verdict]);
}

/* A no-break space keeps words together and is printed as a plain one. */
static void head_unglue(struct shk_strbuf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        bool glue = p[0] == '\xC2' && p[1] == '\xA0';
        shk_strbuf_putc(out, glue ? ' ' : *p);
        p += glue;
    }
}

static void head_put(const struct term *t, const struct shk_wrap *like, const char *text)
{
    struct shk_strbuf lines = SHK_STRBUF_INIT;
    struct term own = *t;
    own.out = &lines;
    shk_term_put(&own, like, text);
    head_unglue(t->out, shk_strbuf_text(&lines));
    t->out->failed |= lines.failed;
    shk_strbuf_free(&lines);
}

static void head_machine(const struct term *t, unsigned indent)
{
    struct head_parts parts = {.t = t};
    char *job = shk_hardware_job(t->model);
    t->out->failed |= shk_hardware_each(t->model, head_part, &parts) != 0;
    if (job)
        head_owned(shk_strf("job %s", job), &parts);
    head_owned(shk_hardware_date(t->model), &parts);
    if (t->report->elapsed_s >= 0)
        head_owned(shk_strf("%.1f s", t->report->elapsed_s), &parts);
    head_put(t, &(struct shk_wrap){.role = SHK_ROLE_DIM, .indent = indent},
             shk_strbuf_text(&parts.text));
    t->out->failed |= parts.text.failed;
    shk_strbuf_free(&parts.text);
    free(job);
}

/* "(detected: a, b, and 3 more: -v)": the signs that fit. */
static void head_signs(struct shk_strbuf *out, const char *why, size_t room)
{
    size_t signs = 1, kept = 0, end = 0;
    for (const char *p = why; (p = strstr(p, ", ")); p++)
        signs++;
    for (const char *p = why; (p = strstr(p, ", ")) && (size_t)(p - why) + 22 <= room; p++) {
        end = (size_t)(p - why);
        kept++;
    }
    shk_strbuf_puts(out, " (");
    shk_strbuf_add(out, why, kept ? end : 0);
    shk_strbuf_printf(out, kept ? ", and %zu more: -v)" : "%zu signs: -v)", signs - kept);
}

/* How it was chosen, in as much as one line holds; a doubt is never cut. */
static void head_profile(const struct term *t, unsigned indent)
{
    const char *why = t->report->profile_why;
    struct shk_strbuf line = SHK_STRBUF_INIT;
    if (!t->report->profile || (t->report->headline && !t->verbose))
        return;
    shk_strbuf_printf(&line, "profile %s", t->report->profile);
    size_t used = shk_text_width(shk_strbuf_text(&line)) + indent + 3;
    size_t room = t->width > used ? t->width - used : 0;
    if (why && *why && !t->verbose && !t->report->profile_doubtful && shk_text_width(why) > room &&
        strstr(why, ", "))
        head_signs(&line, why, room);
    else if (why && *why)
        shk_strbuf_printf(&line, " (%s)", why);
    shk_term_text(t, SHK_ROLE_DIM, indent, "", shk_strbuf_text(&line));
    t->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

/* Several nodes: which of them fail, else which warn, else all of them; in full where the list is
 * short or with -v. */
static void head_names(const struct term *t, unsigned indent)
{
    const char *bad = t->counts.failing ? t->counts.failing : t->counts.warning;
    const char *names = bad ? bad : t->model->where;
    bool lengthy = shk_text_width(names) + indent > HEAD_NAMES * (size_t)t->width;
    if (t->counts.total <= 1)
        return;
    if (lengthy && !t->verbose)
        names = bad ? "(named with their causes; --bad-nodes FILE writes those to drain)"
                    : "(names: -v)";
    shk_term_put(t,
                 &(struct shk_wrap){.role = bad ? SHK_ROLE_PLAIN : SHK_ROLE_DIM, .indent = indent},
                 names);
}

/* "3 causes"; of a node without any what passed. */
static void head_causes(const struct term *t, struct head_parts *parts)
{
    const struct shk_diagnoses *list = t->report->diagnoses;
    struct shk_strbuf counts = SHK_STRBUF_INIT;
    size_t count = 0;
    for (size_t i = 0; list && i < list->count; i++)
        count += list->rows[i].verdict == SHK_FAIL || !list->rows[i].below;
    shk_model_counts(&counts, t->report->coverage.verdicts);
    if (count)
        head_owned(shk_strf("%zu cause%s", count, count == 1 ? "" : "s"), parts);
    else
        head_part(shk_strbuf_text(&counts), parts);
    parts->text.failed |= counts.failed;
    shk_strbuf_free(&counts);
}

void shk_term_head(const struct term *t)
{
    char *lead = head_lead(t), *nodes = head_nodes(t);
    unsigned indent = lead ? (unsigned)shk_text_width(lead) : 0;
    struct head_parts parts = {.t = t};
    enum shk_role role = shk_style_role(shk_term_verdict(t));
    if (t->report->headline)
        head_part(t->report->headline, &parts);
    if (nodes)
        head_part(nodes, &parts);
    if (!t->report->headline)
        head_causes(t, &parts);
    head_put(t, &(struct shk_wrap){.role = SHK_ROLE_TITLE, .lead = lead, .lead_role = role},
             shk_strbuf_text(&parts.text));
    head_names(t, indent);
    if (t->report->interrupted) {
        char *text = shk_strf(SHK_MODEL_INTERRUPTED, t->report->interrupted);
        t->out->failed |= !text;
        shk_term_text(t, SHK_ROLE_UNKNOWN, indent, "", text);
        free(text);
    }
    head_machine(t, indent);
    head_profile(t, indent);
    t->out->failed |= !lead || parts.text.failed;
    shk_strbuf_free(&parts.text);
    free(lead);
    free(nodes);
}

void shk_term_last(const struct term *t)
{
    char *lead = head_lead(t), *nodes = head_nodes(t);
    struct head_parts parts = {.t = t};
    enum shk_role role = shk_style_role(shk_term_verdict(t));
    const struct shk_diagnoses *list = t->report->diagnoses;
    if (t->report->headline)
        head_part(t->report->headline, &parts);
    if (nodes)
        head_part(nodes, &parts);
    if (!t->report->headline)
        head_causes(t, &parts);
    if (!t->verbose)
        head_part("rows: -v", &parts);
    head_part("page: -o report.html", &parts);
    if (list && list->count)
        head_owned(shk_strf("shakedown explain %s", list->rows[0].key), &parts);
    shk_strbuf_putc(t->out, '\n');
    head_put(t, &(struct shk_wrap){.role = SHK_ROLE_TITLE, .lead = lead, .lead_role = role},
             shk_strbuf_text(&parts.text));
    t->out->failed |= !lead || parts.text.failed;
    shk_strbuf_free(&parts.text);
    free(lead);
    free(nodes);
}
