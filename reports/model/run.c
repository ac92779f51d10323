/* A collective as the reports show it. */
#include "reports/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *run_key(const struct shk_run *run, const char *member)
{
    return shk_strf("collective.%s.%s", run->transport, member);
}

const char *shk_run_text(const struct shk_run *run, const char *member)
{
    char *key = run_key(run, member);
    const char *text = key ? shk_facts_get_text(run->facts, key) : NULL;
    free(key);
    return text;
}

long long shk_run_int(const struct shk_run *run, const char *member)
{
    char *key = run_key(run, member);
    long long value = key ? shk_facts_get_int(run->facts, key, -1) : -1;
    free(key);
    return value;
}

json_t *shk_run_object(const struct shk_run *run, const char *member)
{
    char *key = run_key(run, member);
    json_t *object = key ? shk_facts_get_object(run->facts, key) : NULL;
    free(key);
    return object;
}

json_t *shk_run_array(const struct shk_run *run, const char *member)
{
    char *key = run_key(run, member);
    json_t *array = key ? shk_facts_get_array(run->facts, key) : NULL;
    free(key);
    return array;
}

bool shk_run_ok(const struct shk_run *run)
{
    return strcmp(run->status, "ok") == 0;
}

void shk_run_title(struct shk_strbuf *out, const struct shk_run *run)
{
    static const struct {
        const char *member, *word;
    } parts[] = {
        {"provider", "provider"}, {"fabric", "fabric"}, {"domain", "domain"}, {"endpoint", ""}};
    long long ranks = shk_run_int(run, "ranks");
    shk_strbuf_printf(out, "all-reduce over %s", run->transport);
    if (ranks >= 0)
        shk_strbuf_printf(out, ", %lld rank%s", ranks, ranks == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *text = shk_run_text(run, parts[i].member);
        if (text && *text)
            shk_strbuf_printf(out, ", %s%s%s", parts[i].word, *parts[i].word ? " " : "", text);
    }
}

static double run_number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void run_bytes(struct shk_strbuf *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024 && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    shk_strbuf_printf(out, "%g %s", bytes, units[u]);
}

void shk_run_summary(struct shk_strbuf *out, const struct shk_run *run)
{
    double best = NAN, at = NAN, least = NAN;
    size_t i;
    json_t *row;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row)
    {
        double busbw = run_number(row, "busbw"), us = run_number(row, "time_us");
        double bytes = run_number(row, "bytes");
        if (isfinite(busbw) && isfinite(bytes) && !(busbw <= best)) {
            best = busbw;
            at = bytes;
        }
        if (isfinite(us) && !(us >= least))
            least = us;
    }
    if (isfinite(best)) {
        shk_strbuf_printf(out, "best busbw %.2f GB/s at ", best);
        run_bytes(out, at);
    }
    if (isfinite(least))
        shk_strbuf_printf(out, "%sleast time %.2f us", isfinite(best) ? ", " : "", least);
}

static const struct shk_column run_columns[] = {
    {.title = "size", .unit = "(B)", .right = true},
    {.title = "count", .unit = "(elements)", .right = true},
    {.title = "type", .right = true, .max = 10},
    {.title = "redop", .right = true, .max = 8},
    {.title = "algorithm", .right = true, .max = 16},
    {.title = "time", .unit = "(us)", .right = true},
    {.title = "algbw", .unit = "(GB/s)", .right = true},
    {.title = "busbw", .unit = "(GB/s)", .right = true},
    {.title = "#wrong", .right = true},
    {.title = "of roof", .unit = "(%)", .right = true}, /* only where it is known */
};

/* Transports that also work in place: the columns of nccl-tests. */
static const struct shk_column run_place_columns[] = {
    {.title = "size", .unit = "(B)", .right = true},
    {.title = "count", .right = true},
    {.title = "type", .right = true, .max = 10},
    {.title = "redop", .right = true, .max = 8},
    {.title = "time", .unit = "(us)", .right = true},
    {.title = "algbw", .unit = "(GB/s)", .right = true},
    {.title = "busbw", .unit = "(GB/s)", .right = true},
    {.title = "#wrong", .right = true},
    {.title = "in place", .unit = "(us)", .right = true},
    {.title = "busbw", .unit = "(GB/s)", .right = true},
    {.title = "#wrong", .right = true},
    /* only where there is room */
    {.title = "algorithm", .right = true, .max = 16},
    {.title = "p50", .unit = "(us)", .right = true},
    {.title = "p99", .unit = "(us)", .right = true},
};
#define RUN_PLACE_NARROW 11
#define RUN_PLACE_WIDTH  128 /* of all of them */

static bool run_has(const struct shk_run *run, const char *member)
{
    bool found = false;
    size_t i;
    json_t *row;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row) found = found || json_object_get(row, member) != NULL;
    return found;
}

static void run_wrong(struct shk_table *t, double wrong)
{
    char text[32];
    if (!(wrong > 0)) {
        shk_table_number(t, wrong, 0);
        return;
    }
    snprintf(text, sizeof text, "%.0f", wrong);
    shk_table_text(t, SHK_ROLE_FAIL, text);
}

static void run_text(struct shk_table *t, const json_t *row, const char *member)
{
    shk_table_text(t, SHK_ROLE_PLAIN, json_string_value(json_object_get(row, member)));
}

static void run_row_begin(struct shk_table *t, const json_t *row)
{
    shk_table_row(t);
    shk_table_number(t, run_number(row, "bytes"), 0);
    shk_table_number(t, run_number(row, "count"), 0);
    run_text(t, row, "type");
    run_text(t, row, "redop");
}

static void run_row_out_of_place(struct shk_table *t, const json_t *row)
{
    shk_table_number(t, run_number(row, "time_us"), 2);
    shk_table_number(t, run_number(row, "algbw"), 2);
    shk_table_number(t, run_number(row, "busbw"), 2);
    run_wrong(t, run_number(row, "wrong"));
}

bool shk_run_table_cut(const struct shk_run *run, unsigned width)
{
    return width != 0 && width < RUN_PLACE_WIDTH && run_has(run, "in_place_us");
}

static struct shk_table *run_place_table(const struct shk_run *run, unsigned width)
{
    bool all = !shk_run_table_cut(run, width);
    size_t columns = all ? sizeof run_place_columns / sizeof *run_place_columns : RUN_PLACE_NARROW;
    struct shk_table *t = shk_table_create(run_place_columns, columns);
    size_t i;
    json_t *row;
    json_array_foreach(t ? shk_run_array(run, "sizes") : NULL, i, row)
    {
        double us = run_number(row, "time_us"), in_place = run_number(row, "in_place_us");
        run_row_begin(t, row);
        run_row_out_of_place(t, row);
        shk_table_number(t, in_place, 2);
        shk_table_number(t, in_place > 0 ? run_number(row, "busbw") * us / in_place : NAN, 2);
        run_wrong(t, run_number(row, "in_place_wrong"));
        if (all) {
            run_text(t, row, "algorithm");
            shk_table_number(t, run_number(row, "p50_us"), 2);
            shk_table_number(t, run_number(row, "p99_us"), 2);
        }
    }
    return t;
}

struct shk_table *shk_run_table(const struct shk_run *run, unsigned width)
{
    size_t i;
    json_t *row;
    bool roof = run_has(run, "efficiency");
    size_t columns = sizeof run_columns / sizeof *run_columns - (roof ? 0 : 1);
    if (run_has(run, "in_place_us"))
        return run_place_table(run, width);
    struct shk_table *t = shk_table_create(run_columns, columns);
    json_array_foreach(t ? shk_run_array(run, "sizes") : NULL, i, row)
    {
        run_row_begin(t, row);
        run_text(t, row, "algorithm");
        run_row_out_of_place(t, row);
        if (roof)
            shk_table_number(t, 100 * run_number(row, "efficiency"), 0);
    }
    return t;
}
