#include "reports/history/history.h"
#include "reports/text/wrap.h"

#include <stdlib.h>
#include <string.h>

/* Rows and names on one screen; -v shows all. */
enum { TERM_ROWS = 20, TERM_NAMES = 400, TERM_WORST = 10, TERM_CLIP = 2000 };

struct history_term {
    const struct shk_report_options *how;
    struct shk_strbuf *out;
};

/* A text from outside, cleaned and wrapped. */
static void term_line(const struct history_term *t, unsigned indent, const char *text)
{
    struct shk_wrap wrap = {
        .style = {.color = t->how->color, .unicode = t->how->unicode},
        .role = SHK_ROLE_PLAIN,
        .indent = indent,
        .width = t->how->width ? t->how->width : 100,
        .lead = "",
        .block = true,
    };
    shk_wrap_put(t->out, &wrap, text);
}

static size_t term_most(const struct history_term *t, size_t most)
{
    return t->how->verbose ? (size_t)-1 : most;
}

static void term_row(const struct history_term *t, const json_t *row)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    shk_strbuf_printf(&line, "%.64s  %.100s (%.60s)", shk_history_text(row, "node"),
                      shk_history_text(row, "title"), shk_history_text(row, "metric"));
    term_line(t, 2, shk_strbuf_text(&line));
    shk_strbuf_free(&line);
    shk_history_sentence(&line, row);
    term_line(t, 6, shk_strbuf_text(&line));
    shk_strbuf_free(&line);
}

static void term_rows(const struct history_term *t, const json_t *document, const json_t *rows)
{
    size_t i, n = json_array_size(rows), most = term_most(t, TERM_ROWS);
    const json_t *row;
    if (!n) {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        shk_history_quiet(&line, document);
        term_line(t, 0, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
        return;
    }
    shk_strbuf_printf(t->out, "%zu %s not as before, or not as on similar nodes:\n", n,
                      n == 1 ? "value is" : "values are");
    json_array_foreach(rows, i, row)
    {
        if (i < most)
            term_row(t, row);
    }
    if (n > most)
        shk_strbuf_printf(t->out, "  and %zu more: -v\n", n - most);
}

static void term_overview(const struct history_term *t, const json_t *document)
{
    const json_t *metrics = json_object_get(document, "metrics"), *metric;
    size_t i;
    long long nodes = (long long)json_integer_value(json_object_get(document, "nodes")),
              runs = (long long)json_integer_value(json_object_get(document, "runs"));
    shk_strbuf_printf(t->out, "%lld node%s, %lld run%s, %.10s to %.10s\n", nodes,
                      nodes == 1 ? "" : "s", runs, runs == 1 ? "" : "s",
                      shk_history_text(document, "from"), shk_history_text(document, "to"));
    term_rows(t, document, json_object_get(document, "rows"));
    shk_strbuf_puts(t->out, json_array_size(metrics) ? "\nmetrics:\n" : "");
    json_array_foreach(metrics, i, metric)
    {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        long long of = json_integer_value(json_object_get(metric, "nodes"));
        shk_strbuf_printf(&line, "%-28s %s, %lld node%s", shk_history_text(metric, "name"),
                          shk_history_text(metric, "title"), of, of == 1 ? "" : "s");
        if (i < term_most(t, TERM_ROWS))
            term_line(t, 2, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
}

static void term_trend(const struct history_term *t, const json_t *trend)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    const json_t *event;
    size_t i;
    shk_strbuf_printf(&line, "%s  %s: %s", shk_history_text(trend, "node"),
                      shk_history_text(trend, "metric"), shk_history_text(trend, "title"));
    term_line(t, 0, shk_strbuf_text(&line));
    shk_strbuf_free(&line);
    shk_strbuf_puts(&line, "");
    shk_sparkline(&line, trend, (t->how->width ? t->how->width : 100) - 4, t->how->unicode);
    for (char *p = (char *)shk_strbuf_text(&line), *end; *p; p = end) {
        end = p + strcspn(p, "\n");
        shk_strbuf_printf(t->out, "    %.*s\n", (int)(end - p), p);
        end += *end == '\n';
    }
    shk_strbuf_free(&line);
    shk_history_sentence(&line, trend);
    term_line(t, 4, shk_strbuf_text(&line));
    shk_strbuf_free(&line);
    json_array_foreach(json_object_get(trend, "events"), i, event)
    {
        shk_strbuf_printf(&line, "^ %.10s  %s: %s -> %s", shk_history_text(event, "at"),
                          shk_history_text(event, "path"), shk_history_text(event, "from"),
                          shk_history_text(event, "to"));
        term_line(t, 4, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
}

static void term_drain(const struct history_term *t, const json_t *drain)
{
    const json_t *row;
    size_t i, most = term_most(t, 2 * TERM_ROWS), n = json_array_size(drain);
    json_t *names = json_array();
    struct shk_strbuf line = SHK_STRBUF_INIT;
    json_array_foreach(drain, i, row) json_array_append(names, json_object_get(row, "node"));
    if (!n)
        shk_strbuf_puts(t->out, "\nno node needs to be drained\n");
    else {
        shk_strbuf_printf(&line, "drain %zu: ", n);
        shk_history_names(&line, names);
        shk_strbuf_putc(t->out, '\n');
        term_line(t, 0, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
    json_array_foreach(drain, i, row)
    {
        if (i >= most)
            break;
        shk_strbuf_printf(&line, "%s  %s since %.10s: %.100s %.300s; %.300s",
                          shk_history_text(row, "node"), shk_history_text(row, "cause"),
                          shk_history_text(row, "since"), shk_history_text(row, "setting"),
                          shk_history_text(row, "observed"), shk_history_text(row, "why"));
        term_line(t, 2, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
    json_decref(names);
}

static void term_causes(const struct history_term *t, const json_t *causes)
{
    const json_t *cause;
    size_t i;
    shk_strbuf_puts(t->out, json_array_size(causes) ? "\nmost frequent causes:\n" : "");
    json_array_foreach(causes, i, cause)
    {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        if (i >= term_most(t, TERM_ROWS))
            break;
        shk_strbuf_printf(&line, "%lld nodes  %s (%s%s) since %.10s: ",
                          (long long)json_integer_value(json_object_get(cause, "nodes")),
                          shk_history_text(cause, "name"), shk_history_text(cause, "verdict"),
                          strcmp(shk_history_text(cause, "scope"), "launch") == 0
                              ? ", of the launch, not of the nodes"
                              : "",
                          shk_history_text(cause, "since"));
        shk_history_names(&line, json_object_get(cause, "names"));
        if (line.len > TERM_NAMES && !t->how->verbose) {
            char *cut = shk_strf("%.*s ...", TERM_NAMES, shk_strbuf_text(&line));
            term_line(t, 2, cut ? cut : "");
            free(cut);
        } else {
            term_line(t, 2, shk_strbuf_text(&line));
        }
        shk_strbuf_free(&line);
    }
}

static void term_counts(struct shk_strbuf *line, const json_t *verdicts)
{
    static const char *const names[] = {"fail", "warn", "unknown", "pass"};
    const char *sep = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        long long n = (long long)json_integer_value(json_object_get(verdicts, names[i]));
        if (n)
            shk_strbuf_printf(line, "%s%lld %s", sep, n, names[i]);
        sep = n ? ", " : sep;
    }
}

static void term_groups(const struct history_term *t, const json_t *groups)
{
    const json_t *group;
    size_t i;
    shk_strbuf_puts(t->out, json_array_size(groups) ? "\nby kind:\n" : "");
    json_array_foreach(groups, i, group)
    {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        if (i >= term_most(t, TERM_ROWS))
            break;
        shk_strbuf_printf(&line, "%lld nodes (",
                          (long long)json_integer_value(json_object_get(group, "nodes")));
        term_counts(&line, group);
        shk_strbuf_puts(&line, "): ");
        for (const char *p = shk_history_text(group, "name"); *p; p++)
            shk_strbuf_puts(&line, *p == '\n' ? ", " : (char[]){*p, '\0'});
        term_line(t, 2, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
}

static void term_worst(const struct history_term *t, const json_t *worst)
{
    const json_t *node, *issue;
    size_t i, k;
    bool title = false;
    json_array_foreach(worst, i, node)
    {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        if (i >= term_most(t, TERM_WORST) || !json_array_size(json_object_get(node, "issues")))
            break;
        shk_strbuf_puts(t->out, title ? "" : "\nworst nodes:\n");
        title = true;
        shk_strbuf_printf(&line, "%s  %s", shk_history_text(node, "node"),
                          shk_history_text(node, "verdict"));
        json_array_foreach(json_object_get(node, "issues"), k, issue)
        {
            if (k < 4)
                shk_strbuf_printf(&line, "%s %s (%.10s)", k ? "," : ":",
                                  shk_history_text(issue, "cause"),
                                  shk_history_text(issue, "since"));
        }
        term_line(t, 2, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
    }
}

static void term_fleet(const struct history_term *t, const json_t *document)
{
    const json_t *silent = json_object_get(document, "silent"), *node;
    struct shk_strbuf line = SHK_STRBUF_INIT;
    size_t i;
    long long nodes = (long long)json_integer_value(json_object_get(document, "nodes"));
    shk_strbuf_printf(&line, "%lld node%s: ", nodes, nodes == 1 ? "" : "s");
    term_counts(&line, json_object_get(document, "verdicts"));
    term_line(t, 0, shk_strbuf_text(&line));
    shk_strbuf_free(&line);
    term_drain(t, json_object_get(document, "drain"));
    term_causes(t, json_object_get(document, "causes"));
    term_worst(t, json_object_get(document, "worst"));
    term_groups(t, json_object_get(document, "groups"));
    if (json_array_size(silent)) {
        json_t *names = json_array();
        json_array_foreach(silent, i, node) json_array_append(names, json_object_get(node, "node"));
        shk_strbuf_puts(&line, "not tested for a week: ");
        shk_history_names(&line, names);
        shk_strbuf_putc(t->out, '\n');
        term_line(t, 0, shk_strbuf_text(&line));
        shk_strbuf_free(&line);
        json_decref(names);
    }
    if (json_array_size(json_object_get(document, "trend"))) {
        shk_strbuf_putc(t->out, '\n');
        term_rows(t, document, json_object_get(document, "trend"));
    }
}

void shk_history_term(const json_t *document, const struct shk_report_options *how,
                      struct shk_strbuf *out)
{
    struct history_term t = {.how = how, .out = out};
    const char *schema = shk_history_text(document, "schema");
    const json_t *trend;
    size_t i;
    if (strcmp(schema, "shakedown.fleet/1") == 0)
        term_fleet(&t, document);
    else if (strcmp(schema, "shakedown.history/1") == 0)
        term_overview(&t, document);
    json_array_foreach(json_object_get(document, "trends"), i, trend)
    {
        shk_strbuf_puts(out, i ? "\n" : "");
        term_trend(&t, trend);
    }
}
