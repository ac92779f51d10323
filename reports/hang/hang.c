#include "reports/formats.h"
#include "reports/hang/hang_private.h"
#include "reports/privacy/anonymize.h"
#include "reports/text/escape.h"
#include "reports/text/style.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Characters of one line of a stack. */
enum { HANG_WIDTH = 100, HANG_CLIP = 400 };

static void hang_line(struct shk_strbuf *out, const struct shk_report_options *options,
                      enum shk_role role, unsigned indent, const char *lead, const char *text)
{
    struct shk_wrap wrap = {
        .style = {.color = options->color, .unicode = options->unicode},
        .role = role,
        .indent = indent,
        .width = options->width ? options->width : HANG_WIDTH,
        .lead = lead,
        .clip = HANG_CLIP,
        .block = true,
    };
    shk_wrap_put(out, &wrap, text);
}

/* Each line of the tree, indented as it is. */
static void hang_term_tree(struct shk_strbuf *out, const struct shk_report_options *options,
                           const json_t *tree)
{
    struct shk_strbuf raw = SHK_STRBUF_INIT;
    hang_tree_lines(&raw, tree);
    char *text = shk_strbuf_take(&raw), *save = NULL;
    out->failed |= !text;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned indent = (unsigned)strspn(line, " ");
        hang_line(out, options, SHK_ROLE_PLAIN, 2 + indent, "", line + indent);
    }
    free(text);
}

static void hang_term_groups(struct shk_strbuf *out, const struct shk_report_options *options,
                             const json_t *groups)
{
    size_t i;
    json_t *group;
    hang_line(out, options, SHK_ROLE_TITLE, 0, "", "Where the ranks are");
    json_array_foreach(groups, i, group)
    {
        struct shk_strbuf text = SHK_STRBUF_INIT;
        hang_ranks(&text, json_object_get(group, "ranks"), json_object_get(group, "processes"));
        shk_strbuf_printf(&text, " %s%s", hang_word(group, "text"),
                          strcmp(hang_word(group, "still"), "no") == 0 ? " (moves)" : "");
        hang_line(out, options, SHK_ROLE_PLAIN, 2, "", shk_strbuf_text(&text));
        shk_strbuf_free(&text);
    }
}

/* `lines` are stolen. */
static void hang_term_lines(struct shk_strbuf *out, const struct shk_report_options *options,
                            const char *title, json_t *lines)
{
    size_t i;
    json_t *item;
    json_array_foreach(lines, i, item)
    {
        const char *fix = hang_word(item, "fix"), *verdict = hang_word(item, "verdict");
        bool below = strcmp(hang_word(item, "key"), "cause") == 0 ||
                     strcmp(hang_word(item, "key"), "row") == 0;
        enum shk_role role = strcmp(verdict, "pass") == 0      ? SHK_ROLE_PASS
                             : strcmp(verdict, "fail") == 0    ? SHK_ROLE_FAIL
                             : strcmp(verdict, "unknown") == 0 ? SHK_ROLE_UNKNOWN
                                                               : SHK_ROLE_WARN;
        if (i == 0) {
            shk_strbuf_putc(out, '\n');
            hang_line(out, options, SHK_ROLE_TITLE, 0, "", title);
        }
        hang_line(out, options, role, below ? 4 : 2, "", hang_word(item, "text"));
        if (*fix)
            hang_line(out, options, SHK_ROLE_FIX, below ? 6 : 4, "", fix);
    }
    json_decref(lines);
}

static void hang_term_rest(struct shk_strbuf *out, const struct shk_report_options *options,
                           const json_t *judgement)
{
    size_t i;
    json_t *item;
    const json_t *unknown = json_object_get(judgement, "unknown");
    json_array_foreach(json_object_get(judgement, "said"), i, item)
    {
        if (i == 0)
            shk_strbuf_putc(out, '\n');
        hang_line(out, options, SHK_ROLE_PLAIN, 0, "", json_string_value(item));
    }
    hang_term_lines(out, options, hang_audit_title, hang_audit_lines(judgement));
    if (!json_array_size(unknown))
        return;
    shk_strbuf_putc(out, '\n');
    hang_line(out, options, SHK_ROLE_TITLE, 0, "", "Not seen");
    json_array_foreach(unknown, i, item) if (json_is_string(item))
        hang_line(out, options, SHK_ROLE_DIM, 2, "- ", json_string_value(item));
}

static int hang_term(const struct shk_hang_report *report, const struct shk_report_options *options,
                     FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const json_t *judgement = report->judgement;
    struct shk_style style = {.color = options->color, .unicode = options->unicode};
    const char *outcome = hang_word(judgement, "outcome");
    bool named = strcmp(outcome, "named") == 0, progress = strcmp(outcome, "progress") == 0;
    char lead[8];
    size_t i;
    json_t *one;
    snprintf(lead, sizeof lead, "%s ",
             shk_style_sign(style, named      ? SHK_SIGN_FAIL
                                   : progress ? SHK_SIGN_PASS
                                              : SHK_SIGN_UNKNOWN));
    hang_line(&text, options,
              named      ? SHK_ROLE_FAIL
              : progress ? SHK_ROLE_PASS
                         : SHK_ROLE_UNKNOWN,
              0, lead, hang_word(judgement, "headline"));
    json_array_foreach(json_object_get(judgement, "named"), i, one)
    {
        bool alone = json_array_size(json_object_get(judgement, "named")) == 1;
        char *line = shk_strf("%s%s%s", hang_word(one, "confidence"), alone ? "" : ": ",
                              alone ? "" : hang_word(one, "text"));
        hang_line(&text, options, SHK_ROLE_PLAIN, 2, "", line ? line : "");
        free(line);
        if (*hang_word(one, "advice"))
            hang_line(&text, options, SHK_ROLE_FIX, 4, "", hang_word(one, "advice"));
    }
    hang_term_lines(&text, options, hang_check_title, hang_check_lines(judgement));
    shk_strbuf_putc(&text, '\n');
    hang_term_groups(&text, options, json_object_get(judgement, "groups"));
    if (json_array_size(json_object_get(judgement, "tree"))) {
        shk_strbuf_putc(&text, '\n');
        hang_line(&text, options, SHK_ROLE_TITLE, 0, "", "Stacks");
        hang_term_tree(&text, options, json_object_get(judgement, "tree"));
    }
    hang_term_rest(&text, options, judgement);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

static void hang_md_item(struct shk_strbuf *out, const char *text)
{
    shk_strbuf_puts(out, "- ");
    shk_escape_md(out, text);
    shk_strbuf_putc(out, '\n');
}

/* `lines` are stolen. */
static void hang_md_lines(struct shk_strbuf *text, const char *title, json_t *lines)
{
    size_t i;
    json_t *item;
    json_array_foreach(lines, i, item)
    {
        const char *fix = hang_word(item, "fix");
        if (i == 0)
            shk_strbuf_printf(text, "\n**%s**\n\n", title);
        char *line = shk_strf("%s%s%s", hang_word(item, "text"), *fix ? "; " : "", fix);
        hang_md_item(text, line ? line : "");
        free(line);
    }
    json_decref(lines);
}

static void hang_md_lists(struct shk_strbuf *text, const json_t *judgement)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(judgement, "named"), i, item)
    {
        char *line = shk_strf("%s: %s%s%s", hang_word(item, "confidence"), hang_word(item, "text"),
                              *hang_word(item, "advice") ? "; " : "", hang_word(item, "advice"));
        hang_md_item(text, line ? line : "");
        free(line);
    }
    shk_strbuf_puts(text, "\n**Where the ranks are**\n\n");
    json_array_foreach(json_object_get(judgement, "groups"), i, item)
    {
        struct shk_strbuf raw = SHK_STRBUF_INIT;
        hang_ranks(&raw, json_object_get(item, "ranks"), json_object_get(item, "processes"));
        shk_strbuf_printf(&raw, " %s", hang_word(item, "text"));
        hang_md_item(text, shk_strbuf_text(&raw));
        shk_strbuf_free(&raw);
    }
    hang_md_lines(text, hang_check_title, hang_check_lines(judgement));
    hang_md_lines(text, hang_audit_title, hang_audit_lines(judgement));
    json_array_foreach(json_object_get(judgement, "said"), i, item)
        hang_md_item(text, json_string_value(item));
    if (json_array_size(json_object_get(judgement, "unknown")))
        shk_strbuf_puts(text, "\n**Not seen**\n\n");
    json_array_foreach(json_object_get(judgement, "unknown"), i, item) if (json_is_string(item))
        hang_md_item(text, json_string_value(item));
}

static int hang_md(const struct shk_hang_report *report, const struct shk_report_options *options,
                   FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT, tree = SHK_STRBUF_INIT;
    const json_t *judgement = report->judgement;
    size_t limit = options->limit ? options->limit : 32000;
    shk_strbuf_puts(&text, "**");
    shk_escape_md(&text, hang_word(judgement, "headline"));
    shk_strbuf_puts(&text, "**\n\n");
    hang_md_lists(&text, judgement);
    hang_tree_lines(&tree, json_object_get(judgement, "tree"));
    if (tree.len && text.len + tree.len + 1000 < limit) {
        shk_strbuf_puts(&text, "\n**Stacks**\n\n");
        shk_escape_md_block(&text, "text", shk_strbuf_text(&tree));
    } else if (tree.len) {
        shk_strbuf_puts(&text, "\nThe stacks are omitted; attach them with `-o hang.json`.\n");
    }
    shk_strbuf_puts(&text, "\n");
    shk_escape_md_block(&text, "sh", report->command);
    text.failed |= tree.failed;
    shk_strbuf_free(&tree);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

static int hang_json(const struct shk_hang_report *report, const struct shk_report_options *options,
                     FILE *out)
{
    (void)options;
    json_t *doc = json_pack("{s:s,s:s,s:o,s:o,s:O,s:O}", "schema", SHK_HANG_SCHEMA, "version",
                            report->version, "command",
                            shk_json_text(report->command, strlen(report->command)), "time",
                            shk_json_text(report->time, strlen(report->time)), "judgement",
                            report->judgement, "nodes", report->nodes);
    int rc = shk_format_document(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(10), out);
    json_decref(doc);
    return rc;
}

static int hang_headline(const struct shk_hang_report *report,
                         const struct shk_report_options *options, FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const char *line = hang_word(report->judgement, "headline");
    shk_text_clean(&text, line, strlen(line),
                   SHK_CLEAN_LINES | (options->unicode ? 0 : SHK_CLEAN_ASCII));
    shk_strbuf_putc(&text, '\n');
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

static const struct shk_form hang_forms[] = {
    {"term", ".txt"},  {"md", ".md"},    {"json", ".json"}, {"html", ".html"}, {"junit", ".xml"},
    {"prom", ".prom"}, {"github", NULL}, {"gitlab", NULL},  {"line", NULL}};

/* NULL: hang_rows() does it. */
static int (*const hang_renders[])(const struct shk_hang_report *,
                                   const struct shk_report_options *, FILE *) = {
    hang_term, hang_md, hang_json, hang_html, NULL, NULL, NULL, NULL, hang_headline};

const struct shk_form *shk_hang_forms(size_t *count_p)
{
    *count_p = sizeof hang_forms / sizeof *hang_forms;
    return hang_forms;
}

/* One store of facts for each node and one for the rest: secrets and names leave by the one gate
 * that facts pass. NULL: out of memory. */
static struct shk_facts **hang_facts(const struct shk_hang_report *report, size_t *count_p)
{
    size_t n = json_array_size(report->nodes);
    struct shk_facts **facts = calloc(n + 2, sizeof *facts);
    bool failed = !facts;
    *count_p = facts ? n + 1 : 0;
    for (size_t i = 0; !failed && i <= n; i++) {
        json_t *node = json_array_get(report->nodes, i);
        facts[i] = shk_facts_create();
        failed = !facts[i];
        if (!failed && i < n)
            failed = shk_facts_text(facts[i], "host.name", hang_word(node, "host"), "") ||
                     shk_facts_present(facts[i], "hang.node", json_incref(node), NULL, "");
        else if (!failed)
            failed = shk_facts_present(facts[i], "hang.judgement",
                                       json_incref((json_t *)report->judgement), NULL, "") ||
                     shk_facts_text(facts[i], "hang.time", report->time, "");
    }
    for (size_t i = 0; failed && facts && i <= n; i++)
        shk_facts_destroy(facts[i]);
    if (failed)
        free(facts);
    return failed ? NULL : facts;
}

static int hang_render(const struct shk_report *clean, const struct shk_form *form,
                       const struct shk_report_options *options, const char *time, FILE *out)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i + 1 < clean->nodes; i++)
        json_array_append(nodes, shk_facts_get_object(clean->facts[i], "hang.node"));
    const struct shk_hang_report report = {
        .version = clean->version,
        .command = clean->command,
        .time = time,
        .nodes = nodes,
        .judgement = shk_facts_get_object(clean->facts[clean->nodes - 1], "hang.judgement")};
    int (*render)(const struct shk_hang_report *, const struct shk_report_options *, FILE *) =
        hang_renders[form - hang_forms];
    int rc = -ENOMEM;
    if (report.judgement && render)
        rc = render(&report, options, out);
    else if (report.judgement)
        rc = hang_rows(&report, clean->facts, clean->nodes - 1, form->name, options, out);
    json_decref(nodes);
    return rc;
}

int shk_hang_report(const struct shk_hang_report *report, const struct shk_form *form,
                    const struct shk_report_options *options, FILE *out)
{
    struct shk_scrubbed *scrubbed = NULL;
    size_t count = 0;
    struct shk_facts **facts = hang_facts(report, &count);
    if (!facts)
        return -ENOMEM;
    struct shk_report all = {.version = report->version,
                             .command = report->command,
                             .profile = "",
                             .profile_why = "",
                             .facts = (const struct shk_facts *const *)facts,
                             .nodes = count};
    unsigned what = SHK_SCRUB_SECRETS | (options->anonymize ? SHK_SCRUB_IDENTITY : 0);
    int rc = shk_report_scrub(&scrubbed, &all, what, NULL);
    if (!rc)
        rc = hang_render(shk_scrubbed_report(scrubbed), form, options, report->time, out);
    shk_scrubbed_destroy(scrubbed);
    for (size_t i = 0; i < count; i++)
        shk_facts_destroy(facts[i]);
    free(facts);
    return rc;
}
