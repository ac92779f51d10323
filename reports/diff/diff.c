#include "reports/diff/diff.h"
#include "core/text/nodefold.h"
#include "reports/diff/diff_text.h"
#include "reports/formats.h"
#include "reports/privacy/anonymize.h"
#include "reports/text/escape.h"
#include "reports/text/table.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIFF_SCHEMA "shakedown.diff/1"

/* Characters of one side. */
enum { DIFF_CLIP = 200, DIFF_MD_CLIP = 600, DIFF_WIDTH = 100 };
/* What a GitHub comment holds, with room for a greeting; as reports/format/md.c. */
enum { DIFF_MD_LIMIT = 65000 };

static void diff_fold(struct shk_strbuf *out, const json_t *names)
{
    size_t n = json_array_size(names);
    const char **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = json_string_value(json_array_get(names, i));
    if (list)
        shk_nodefold(out, list, n);
    out->failed |= !list;
    free(list);
}

/* "a.json (nid001) and b.json (nid002)". */
static void diff_sides(struct shk_strbuf *out, const struct shk_diff_input *input)
{
    const struct {
        const char *name;
        const struct shk_facts *const *facts;
        size_t count;
    } side[] = {{input->name_a, input->a, input->nodes_a},
                {input->name_b, input->b, input->nodes_b}};
    for (size_t s = 0; s < 2; s++) {
        json_t *names = json_array();
        for (size_t i = 0; i < side[s].count; i++) {
            const char *name = shk_facts_get_text(side[s].facts[i], "host.name");
            json_array_append_new(names, json_string(name ? name : "unnamed"));
        }
        shk_strbuf_printf(out, "%s%s (", s ? " and " : "", side[s].name);
        diff_fold(out, names);
        shk_strbuf_puts(out, ")");
        json_decref(names);
    }
}

/* "4 differences; set aside: 12 with time, 9 of the node". */
static void diff_summary(struct shk_strbuf *out, const struct shk_diff *diff)
{
    static const char *const words[SHK_DIFF_CLASS_COUNT] = {
        [SHK_DIFF_TIME] = "with time",         [SHK_DIFF_NODE] = "names of nodes",
        [SHK_DIFF_JOB] = "of the job",         [SHK_DIFF_DERIVED] = "repeated",
        [SHK_DIFF_NOISE] = "within the noise",
    };
    size_t n = json_array_size(shk_diff_rows(diff));
    bool first = true;
    shk_strbuf_printf(out, "%zu difference%s", n, n == 1 ? "" : "s");
    if (shk_diff_pairs(diff) != 1)
        shk_strbuf_printf(out, " over %zu pairs of nodes", shk_diff_pairs(diff));
    for (int c = 0; c < SHK_DIFF_CLASS_COUNT; c++) {
        size_t aside = shk_diff_aside(diff, (enum shk_diff_class)c);
        if (aside)
            shk_strbuf_printf(out, "%s%zu %s", first ? "; set aside: " : ", ", aside, words[c]);
        first = first && !aside;
    }
}

static void diff_alone(struct shk_strbuf *out, const struct shk_diff_input *input,
                       const struct shk_diff *diff)
{
    const struct {
        const char *name;
        const json_t *nodes;
    } side[] = {{input->name_a, shk_diff_only_a(diff)}, {input->name_b, shk_diff_only_b(diff)}};
    for (size_t s = 0; s < 2; s++) {
        if (!json_array_size(side[s].nodes))
            continue;
        shk_strbuf_printf(out, "only in %s: ", side[s].name);
        diff_fold(out, side[s].nodes);
        shk_strbuf_putc(out, '\n');
    }
}

static const struct shk_column diff_columns[] = {
    {.title = "fact", .code = true, .max = 44},
    {.title = "A", .code = true, .flexible = true},
    {.title = "B", .code = true, .flexible = true},
};

static void diff_table_row(struct shk_table *table, const json_t *row, bool nodes,
                           struct shk_strbuf *status)
{
    struct shk_strbuf a = SHK_STRBUF_INIT, b = SHK_STRBUF_INIT, on = SHK_STRBUF_INIT,
                      path = SHK_STRBUF_INIT;
    shk_diff_texts(row, &a, &b);
    shk_table_row(table);
    json_int_t alike = json_integer_value(json_object_get(row, "alike"));
    shk_strbuf_puts(&path, json_string_value(json_object_get(row, "path")));
    if (alike > 1)
        shk_strbuf_printf(&path, " (%lld alike)", (long long)alike);
    shk_table_text(table, SHK_ROLE_PLAIN, shk_strbuf_text(&path));
    shk_table_text(table, SHK_ROLE_PLAIN, shk_strbuf_text(&a));
    shk_table_text(table, SHK_ROLE_PLAIN, shk_strbuf_text(&b));
    if (nodes) {
        shk_strbuf_puts(&on, "on ");
        diff_fold(&on, json_object_get(row, "nodes"));
        shk_table_note(table, SHK_ROLE_DIM, "", SHK_TABLE_WORDS, shk_strbuf_text(&on));
    }
    status->failed |= a.failed || b.failed || on.failed || path.failed;
    shk_strbuf_free(&a);
    shk_strbuf_free(&b);
    shk_strbuf_free(&on);
    shk_strbuf_free(&path);
}

/* The first `most` rows; *left_p are left out. NULL: out of memory. */
static struct shk_table *diff_table(const struct shk_diff *diff, size_t most, size_t *left_p,
                                    struct shk_strbuf *status)
{
    struct shk_table *table =
        shk_table_create(diff_columns, sizeof diff_columns / sizeof *diff_columns);
    json_t *row, *rows = shk_diff_fold(shk_diff_rows(diff));
    size_t i;
    if (!table || !rows) {
        json_decref(rows);
        shk_table_destroy(table);
        return NULL;
    }
    size_t all = json_array_size(rows);
    *left_p = all > most ? all - most : 0;
    json_array_foreach(rows, i, row)
    {
        if (i < most)
            diff_table_row(table, row, shk_diff_pairs(diff) > 1, status);
    }
    json_decref(rows);
    if (shk_table_status(table))
        status->failed = true;
    return table;
}

static int diff_term(const struct shk_diff_input *input, const struct shk_diff *diff,
                     const struct shk_report_options *options, FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT, raw = SHK_STRBUF_INIT;
    size_t left;
    struct shk_table_view view = {
        .style = {.color = options->color, .unicode = options->unicode},
        .width = options->width ? options->width : DIFF_WIDTH,
        .indent = 2,
        .clip = DIFF_CLIP,
        .header = true,
    };
    diff_sides(&raw, input);
    shk_strbuf_putc(&raw, '\n');
    diff_summary(&raw, diff);
    shk_strbuf_putc(&raw, '\n');
    diff_alone(&raw, input, diff);
    shk_text_clean(&text, shk_strbuf_text(&raw), raw.len,
                   SHK_CLEAN_LINES | (options->unicode ? 0 : SHK_CLEAN_ASCII));
    struct shk_table *table = diff_table(diff, SIZE_MAX, &left, &text);
    if (!table || raw.failed)
        text.failed = true;
    if (table && shk_table_rows(table)) {
        shk_strbuf_putc(&text, '\n');
        shk_table_term(table, &view, &text);
    }
    shk_table_destroy(table);
    shk_strbuf_free(&raw);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

static void diff_md_line(struct shk_strbuf *text, struct shk_strbuf *raw, const char *mark)
{
    shk_strbuf_puts(text, mark);
    shk_escape_md(text, shk_strbuf_text(raw));
    shk_strbuf_printf(text, "%s\n\n", mark);
    text->failed |= raw->failed;
    shk_strbuf_free(raw);
}

static void diff_md_text(struct shk_strbuf *text, const struct shk_diff_input *input,
                         const struct shk_diff *diff, size_t most)
{
    struct shk_strbuf raw = SHK_STRBUF_INIT;
    size_t left = 0;
    diff_summary(&raw, diff);
    diff_md_line(text, &raw, "**");
    shk_strbuf_puts(&raw, "A and B are ");
    diff_sides(&raw, input);
    diff_md_line(text, &raw, "");
    diff_alone(&raw, input, diff);
    if (raw.len)
        diff_md_line(text, &raw, "");
    struct shk_table *table = diff_table(diff, most, &left, text);
    if (!table)
        text->failed = true;
    else if (shk_table_rows(table))
        shk_table_md(table, DIFF_MD_CLIP, text);
    shk_table_destroy(table);
    if (left)
        shk_strbuf_printf(text,
                          "\n%zu more rows are omitted; attach all of them with `-o "
                          "diff.json`.\n",
                          left);
    shk_strbuf_puts(text, "\n");
    shk_escape_md_block(text, "sh", input->command);
}

/* As many rows as fit into a comment. */
static int diff_md(const struct shk_diff_input *input, const struct shk_diff *diff,
                   const struct shk_report_options *options, FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    size_t limit = options->limit ? options->limit : DIFF_MD_LIMIT;
    for (size_t most = 4096;; most /= 2) {
        diff_md_text(&text, input, diff, most);
        if (text.failed || text.len <= limit || most <= 1)
            break;
        shk_strbuf_free(&text);
    }
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

static json_t *diff_names(const struct shk_facts *const *facts, size_t count)
{
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++) {
        const char *name = shk_facts_get_text(facts[i], "host.name");
        json_array_append_new(names, name ? json_string(name) : json_null());
    }
    return names;
}

static int diff_json(const struct shk_diff_input *input, const struct shk_diff *diff,
                     const struct shk_report_options *options, FILE *out)
{
    json_t *aside = json_object();
    (void)options;
    for (int c = 0; c < SHK_DIFF_COMPARE; c++)
        json_object_set_new(aside, shk_diff_class_name((enum shk_diff_class)c),
                            json_integer((json_int_t)shk_diff_aside(diff, (enum shk_diff_class)c)));
    json_t *doc = json_pack(
        "{s:s,s:s,s:o,s:{s:o,s:o},s:{s:o,s:o},s:I,s:O,s:O,s:o,s:O}", "schema", DIFF_SCHEMA,
        "version", input->version, "command", shk_json_text(input->command, strlen(input->command)),
        "a", "name", shk_json_text(input->name_a, strlen(input->name_a)), "nodes",
        diff_names(input->a, input->nodes_a), "b", "name",
        shk_json_text(input->name_b, strlen(input->name_b)), "nodes",
        diff_names(input->b, input->nodes_b), "pairs", (json_int_t)shk_diff_pairs(diff), "only_a",
        shk_diff_only_a(diff), "only_b", shk_diff_only_b(diff), "set_aside", aside, "differences",
        shk_diff_rows(diff));
    int rc = shk_format_document(doc, JSON_INDENT(2), out);
    json_decref(doc);
    return rc;
}

static const struct shk_form diff_forms[] = {{"term", ".txt"}, {"md", ".md"}, {"json", ".json"}};

static int (*const diff_renders[])(const struct shk_diff_input *, const struct shk_diff *,
                                   const struct shk_report_options *,
                                   FILE *) = {diff_term, diff_md, diff_json};

const struct shk_form *shk_diff_forms(size_t *count_p)
{
    *count_p = sizeof diff_forms / sizeof *diff_forms;
    return diff_forms;
}

/* Both sides in one report, so that a name is the same pseudonym on either. */
static int diff_scrub(const struct shk_diff_input *input, bool anonymize,
                      struct shk_scrubbed **scrubbed_p)
{
    size_t n = input->nodes_a + input->nodes_b;
    const struct shk_facts **all = calloc(n + 1, sizeof(const struct shk_facts *));
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        all[i] = i < input->nodes_a ? input->a[i] : input->b[i - input->nodes_a];
    struct shk_report both = {.version = input->version,
                              .command = input->command,
                              .profile = input->name_a,
                              .profile_why = input->name_b,
                              .facts = all,
                              .nodes = n};
    unsigned what = SHK_SCRUB_SECRETS | (anonymize ? SHK_SCRUB_IDENTITY : 0);
    int rc = shk_report_scrub(scrubbed_p, &both, what, NULL);
    free(all);
    return rc;
}

int shk_diff_report(const struct shk_diff_input *input, const struct shk_form *form,
                    const struct shk_report_options *options, FILE *out, bool *found_p)
{
    struct shk_scrubbed *scrubbed = NULL;
    struct shk_diff *diff = shk_diff_create(input->rules, input->rules_count, input->all);
    int rc = diff ? diff_scrub(input, options->anonymize, &scrubbed) : -ENOMEM;
    if (!rc) {
        const struct shk_report *both = shk_scrubbed_report(scrubbed);
        struct shk_diff_input clean = *input;
        clean.version = both->version;
        clean.command = both->command;
        clean.name_a = both->profile;
        clean.name_b = both->profile_why;
        clean.a = both->facts;
        clean.b = both->facts + input->nodes_a;
        rc = shk_diff_sets(diff, clean.a, clean.nodes_a, clean.b, clean.nodes_b);
        if (!rc)
            rc = diff_renders[form - diff_forms](&clean, diff, options, out);
    }
    if (!rc)
        *found_p = json_array_size(shk_diff_rows(diff)) || json_array_size(shk_diff_only_a(diff)) ||
                   json_array_size(shk_diff_only_b(diff));
    shk_scrubbed_destroy(scrubbed);
    shk_diff_destroy(diff);
    return rc;
}
