/* Collectives in the column layout of nccl-tests, and how long the probes took. */
#include "reports/term/term_private.h"

#include <stdlib.h>
#include <string.h>

/* "all-reduce over fabric, …", the library, what went wrong, and the proofs. */
static void term_run_head(const struct term *t, const struct shk_run *run)
{
    struct shk_strbuf title = SHK_STRBUF_INIT, lib = SHK_STRBUF_INIT, bad = SHK_STRBUF_INIT;
    const char *library = shk_run_text(run, "library"), *version = shk_run_text(run, "version");
    const char *reason = shk_run_text(run, "reason");
    bool skipped = strcmp(run->status, "na") == 0;
    size_t i;
    json_t *line;
    shk_run_title(&title, run);
    if (t->report->nodes > 1)
        shk_strbuf_printf(&title, ", on %s", run->node);
    if (skipped && reason)
        shk_strbuf_printf(&title, ": %s", reason);
    else if (!shk_run_ok(run))
        shk_strbuf_printf(&bad, "%s%s%s", run->status, reason ? ": " : "", reason ? reason : "");
    if (library)
        shk_strbuf_printf(&lib, "%s%s%s", library, version ? ", version " : "",
                          version ? version : "");
    shk_term_text(t, SHK_ROLE_PLAIN, 2, "", shk_strbuf_text(&title));
    shk_term_text(t, SHK_ROLE_FAIL, 2, "", shk_strbuf_text(&bad));
    shk_term_text(t, SHK_ROLE_DIM, 2, "library ", shk_strbuf_text(&lib));
    json_t *evidence = shk_run_array(run, "evidence");
    json_array_foreach(evidence, i, line)
    {
        shk_term_text(t, SHK_ROLE_DIM, 2, "proof ", json_string_value(line));
    }
    t->out->failed |= title.failed || lib.failed || bad.failed;
    shk_strbuf_free(&title);
    shk_strbuf_free(&bad);
    shk_strbuf_free(&lib);
}

static void term_run(const struct term *t, const struct shk_run *run)
{
    struct shk_strbuf summary = SHK_STRBUF_INIT;
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .indent = 2, .clip = TERM_CLIP, .header = true};
    term_run_head(t, run);
    struct shk_table *table = shk_run_table(run, t->width);
    if (!table)
        t->out->failed = true;
    else if (shk_table_rows(table))
        shk_table_term(table, &view, t->out);
    if (table && shk_table_rows(table) && shk_run_table_cut(run, t->width))
        shk_term_text(t, SHK_ROLE_DIM, 2, "",
                      "algorithm and percentiles: 128 columns or more, --format md or json");
    shk_table_destroy(table);
    shk_run_summary(&summary, run);
    shk_term_text(t, SHK_ROLE_PLAIN, 2, "", shk_strbuf_text(&summary));
    t->out->failed |= summary.failed;
    shk_strbuf_free(&summary);
}

void shk_term_runs(const struct term *t)
{
    shk_term_title(t, "Collectives", t->model->runs_count ? NULL : "none was run");
    for (size_t i = 0; i < t->model->runs_count; i++) {
        if (i)
            shk_strbuf_putc(t->out, '\n');
        term_run(t, &t->model->runs[i]);
    }
}

static const struct shk_column term_probe_columns[] = {
    {.title = "probe"},
    {.title = "node", .max = 24},
    {.title = "status"},
    {.title = "time", .unit = "(ms)", .right = true},
    {.title = "", .flexible = true},
};

struct term_probe {
    struct shk_table *table;
    const struct shk_facts *facts;
    const char *node;
};

static int term_probe(const struct shk_fact *fact, void *arg)
{
    struct term_probe *p = arg;
    const char *name = fact->key + strlen("probe."), *end = strrchr(name, '.');
    if (!end || strcmp(end, ".status") != 0 || fact->state != SHK_FACT_PRESENT)
        return 0;
    char *probe = strndup(name, (size_t)(end - name));
    char *ms = shk_strf("probe.%.*s.ms", (int)(end - name), name);
    char *reason = shk_strf("probe.%.*s.reason", (int)(end - name), name);
    struct shk_fact took;
    bool timed = ms && shk_facts_get(p->facts, ms, &took) && json_is_number(took.value);
    shk_table_row(p->table);
    shk_table_text(p->table, SHK_ROLE_PLAIN, probe);
    shk_table_text(p->table, SHK_ROLE_PLAIN, p->node);
    shk_table_text(p->table, SHK_ROLE_PLAIN, json_string_value(fact->value));
    if (timed)
        shk_table_number(p->table, json_number_value(took.value), 1);
    else
        shk_table_text(p->table, SHK_ROLE_PLAIN, NULL);
    const char *why = reason ? shk_facts_get_text(p->facts, reason) : NULL;
    shk_table_text(p->table, SHK_ROLE_DIM, why ? why : "");
    free(probe);
    free(ms);
    free(reason);
    return 0;
}

void shk_term_probes(const struct term *t)
{
    struct shk_table *table = shk_table_create(term_probe_columns, sizeof term_probe_columns /
                                                                       sizeof *term_probe_columns);
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .indent = 2, .clip = TERM_CLIP, .header = true};
    if (!table) {
        t->out->failed = true;
        return;
    }
    for (size_t i = 0; i < t->report->nodes; i++) {
        struct term_probe p = {table, t->report->facts[i], t->model->nodes[i]};
        shk_facts_each(t->report->facts[i], "probe.", term_probe, &p);
    }
    if (shk_table_rows(table)) {
        shk_term_title(t, "Probes", NULL);
        shk_table_term(table, &view, t->out);
    }
    shk_table_destroy(table);
}
