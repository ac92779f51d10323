#include "reports/model/runs_table.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MIB = 1 << 20 };

/* What was measured of one size. */
struct sample {
    double us, busbw, roof;
};

static double number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Sums of float, where there are several types for one size. */
static bool is_usual(const json_t *row)
{
    const char *type = json_string_value(json_object_get(row, "type"));
    const char *redop = json_string_value(json_object_get(row, "redop"));
    return type && redop && strncmp(type, "float", 5) == 0 && strcmp(type, "float16") != 0 &&
           strcmp(redop, "sum") == 0;
}

static struct sample sample_of(const struct shk_run *run, double bytes)
{
    const json_t *best = NULL;
    json_t *row;
    size_t i;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row)
    {
        if (number(row, "bytes") == bytes && (!best || (is_usual(row) && !is_usual(best))))
            best = row;
    }
    return (struct sample){number(best, "time_us"), number(best, "busbw"),
                           number(best, "efficiency")};
}

/* Largest size of a run; 0: none was measured. */
static double largest(const struct shk_run *run)
{
    double most = 0;
    json_t *row;
    size_t i;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row)
    {
        double bytes = number(row, "bytes");
        most = bytes > most && number(row, "time_us") > 0 ? bytes : most;
    }
    return most;
}

static double wrong_of(const struct shk_run *run)
{
    double wrong = NAN;
    json_t *row;
    size_t i;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row)
    {
        double a = number(row, "wrong"), b = number(row, "in_place_wrong");
        double both = (isfinite(a) ? a : 0) + (isfinite(b) ? b : 0);
        if (isfinite(a) || isfinite(b))
            wrong = (isfinite(wrong) ? wrong : 0) + both;
    }
    return wrong;
}

static bool has_size(const struct shk_run *run, double bytes)
{
    json_t *row;
    size_t i;
    json_t *sizes = shk_run_array(run, "sizes");
    json_array_foreach(sizes, i, row) if (number(row, "bytes") == bytes) return true;
    return false;
}

/* Sizes that the columns are chosen from, and how many runs have them. */
struct choice {
    const struct shk_model *model;
    double least, most, common; /* the largest one; that of half of the runs at least */
};

static bool is_common(const struct shk_model *model, double bytes)
{
    size_t with = 0, all = 0;
    for (size_t r = 0; r < model->runs_count; r++) {
        all += largest(&model->runs[r]) > 0;
        with += has_size(&model->runs[r], bytes);
    }
    return 2 * with >= all;
}

static struct choice choose_ends(const struct shk_model *model)
{
    struct choice c = {.model = model, .least = INFINITY};
    json_t *row;
    size_t i;
    for (size_t r = 0; r < model->runs_count; r++) {
        json_t *sizes = shk_run_array(&model->runs[r], "sizes");
        json_array_foreach(sizes, i, row)
        {
            double bytes = number(row, "bytes");
            c.least = bytes < c.least ? bytes : c.least;
            c.most = bytes > c.most ? bytes : c.most;
            if (bytes > c.common && is_common(model, bytes))
                c.common = bytes;
        }
    }
    return c;
}

/* The one nearest to the geometric mean of 1 MiB and the largest, of those that half of the runs
 * have or of all; 0: there is none between. */
static double choose_middle(const struct choice *c, bool common)
{
    double want = sqrt(RUNS_MIB * c->most), middle = 0;
    json_t *row;
    size_t i;
    for (size_t r = 0; r < c->model->runs_count; r++) {
        json_t *sizes = shk_run_array(&c->model->runs[r], "sizes");
        json_array_foreach(sizes, i, row)
        {
            double bytes = number(row, "bytes");
            if (bytes > RUNS_MIB && bytes < c->most && (!common || is_common(c->model, bytes)) &&
                (!middle || fabs(log(bytes / want)) < fabs(log(middle / want))))
                middle = bytes;
        }
    }
    return middle;
}

/* The columns: the least size, 1 MiB, the largest, and before it the largest that half of the
 * transports have, or one between. */
static size_t choose_sizes(const struct shk_model *model, double sizes[RUNS_SIZES])
{
    struct choice c = choose_ends(model);
    double middle = c.common > RUNS_MIB && c.common < c.most ? c.common : choose_middle(&c, true);
    middle = middle > 0 ? middle : choose_middle(&c, false);
    size_t count = 0;
    if (isfinite(c.least))
        sizes[count++] = c.least;
    if (c.least < RUNS_MIB && c.most > RUNS_MIB)
        sizes[count++] = RUNS_MIB;
    if (middle > 0)
        sizes[count++] = middle;
    if (c.most > c.least)
        sizes[count++] = c.most;
    return count;
}

static bool is_slower(const struct shk_run *a, const struct shk_run *b)
{
    double x = sample_of(a, largest(a)).busbw, y = sample_of(b, largest(b)).busbw;
    return shk_run_ok(a) != shk_run_ok(b) ? !shk_run_ok(a) : x < y;
}

/* The run that stands for its transport, and on how many nodes there is one; NULL: not the first of
 * them. */
static const struct shk_run *stands_for(const struct shk_model *model, size_t r, size_t *nodes_p)
{
    const struct shk_run *first = &model->runs[r], *worst = first;
    *nodes_p = 0;
    for (size_t i = 0; i < model->runs_count; i++) {
        const struct shk_run *run = &model->runs[i];
        if (strcmp(run->transport, first->transport) != 0 || largest(run) <= 0)
            continue;
        if (i < r)
            return NULL;
        ++*nodes_p;
        if (run != worst && is_slower(run, worst))
            worst = run;
    }
    return worst;
}

static void put_name(struct shk_runs_table *out, const struct shk_run *run, size_t nodes)
{
    const char *provider = shk_run_text(run, "provider");
    struct shk_strbuf name = SHK_STRBUF_INIT;
    shk_strbuf_puts(&name, run->transport);
    if (provider && *provider)
        shk_strbuf_printf(&name, " %s", provider);
    if (nodes > 1)
        shk_strbuf_printf(&name, " (%s, slowest of %zu)", run->node, nodes);
    if (!shk_run_ok(run))
        shk_strbuf_printf(&name, ": %s", run->status);
    shk_table_text(out->table, shk_run_ok(run) ? SHK_ROLE_PLAIN : SHK_ROLE_FAIL,
                   name.failed ? NULL : shk_strbuf_text(&name));
    shk_strbuf_free(&name);
}

/* Three digits say what there is to say. */
static unsigned digits(double value)
{
    return value >= 100 ? 0 : value >= 10 ? 1 : 2;
}

/* Part of the roof at the largest size: what the run measured itself, between two GPUs what copies
 * in both directions reached. */
static double roof_of(const struct shk_model *model, const struct shk_run *run)
{
    struct sample most = sample_of(run, largest(run));
    if (isfinite(most.roof) || shk_run_int(run, "ranks") != 2 || !shk_run_array(run, "devices"))
        return most.roof;
    for (size_t i = 0; i < model->runs_count; i++) {
        const struct shk_run *peer = &model->runs[i];
        double both = number(shk_run_object(peer, "copy"), "both_ways_gbs");
        if (strcmp(peer->node, run->node) == 0 && both > 0)
            return most.busbw / both;
    }
    return NAN;
}

static void put_run(struct shk_runs_table *out, const struct shk_model *model,
                    const struct shk_run *run, size_t nodes, const double *sizes, size_t count)
{
    double roof = 100 * roof_of(model, run), wrong = wrong_of(run);
    char text[32];
    shk_table_row(out->table);
    put_name(out, run, nodes);
    for (size_t i = 0; i < count; i++) {
        struct sample s = sample_of(run, sizes[i]);
        double value = i || sizes[i] >= RUNS_MIB ? s.busbw : s.us;
        shk_table_number(out->table, value, digits(value));
    }
    shk_table_number(out->table, roof, 0);
    snprintf(text, sizeof text, "%.0f", wrong);
    shk_table_text(out->table, wrong > 0 ? SHK_ROLE_FAIL : SHK_ROLE_PLAIN,
                   isfinite(wrong) ? text : NULL);
}

static void size_title(char *title, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < sizeof units / sizeof *units; u++)
        bytes /= 1024;
    snprintf(title, size, "%g %s", bytes, units[u]);
}

/* "all-reduce, 2 ranks", when all runs have as many. */
static void head_title(char *title, size_t size, const struct shk_model *model)
{
    long long ranks = -1;
    bool same = true;
    for (size_t i = 0; i < model->runs_count; i++) {
        long long n = shk_run_int(&model->runs[i], "ranks");
        if (largest(&model->runs[i]) <= 0 || n < 0)
            continue;
        same &= ranks < 0 || ranks == n;
        ranks = n;
    }
    if (same && ranks > 0)
        snprintf(title, size, "all-reduce, %lld rank%s", ranks, ranks == 1 ? "" : "s");
    else
        snprintf(title, size, "all-reduce");
}

static void columns(struct shk_runs_table *out, const struct shk_model *model, const double *sizes,
                    size_t count)
{
    head_title(out->titles[0], sizeof out->titles[0], model);
    out->columns[0] = (struct shk_column){.title = out->titles[0], .flexible = true};
    for (size_t i = 0; i < count; i++) {
        size_title(out->titles[i + 1], sizeof out->titles[i + 1], sizes[i]);
        out->columns[i + 1] = (struct shk_column){.title = out->titles[i + 1],
                                                  .unit = i || sizes[i] >= RUNS_MIB ? "GB/s" : "us",
                                                  .right = true};
    }
    out->columns[count + 1] = (struct shk_column){.title = "of roof", .unit = "%", .right = true};
    out->columns[count + 2] = (struct shk_column){.title = "wrong", .right = true};
}

static bool is_idle(const struct shk_run *run, bool gpu)
{
    bool host = strcmp(run->transport, "fabric") == 0;
    return largest(run) <= 0 && strcmp(run->status, "na") == 0 && (gpu || host);
}

static bool name_idle(struct shk_runs_table *out, const struct shk_model *model)
{
    bool gpu = shk_hardware_has_gpu(model), same = true;
    struct shk_strbuf names = SHK_STRBUF_INIT;
    const char *why = NULL;
    json_t *seen = json_object();
    for (size_t i = 0; seen && i < model->runs_count; i++) {
        const struct shk_run *run = &model->runs[i];
        const char *reason = shk_run_text(run, "reason");
        if (!is_idle(run, gpu) || json_object_get(seen, run->transport))
            continue;
        names.failed |= json_object_set_new_nocheck(seen, run->transport, json_true()) != 0;
        shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", run->transport);
        same &= reason && (!why || strcmp(why, reason) == 0);
        why = reason;
    }
    bool whole = seen && !names.failed;
    out->idle = names.len ? shk_strbuf_take(&names) : NULL;
    out->why = out->idle && same && why ? strdup(why) : NULL;
    shk_strbuf_free(&names);
    json_decref(seen);
    return whole;
}

int shk_runs_table(struct shk_runs_table *out, const struct shk_model *model)
{
    double sizes[RUNS_SIZES];
    size_t count = choose_sizes(model, sizes);
    *out = (struct shk_runs_table){0};
    columns(out, model, sizes, count);
    if (count && !(out->table = shk_table_create(out->columns, count + 3)))
        return -ENOMEM;
    for (size_t r = 0; out->table && r < model->runs_count; r++) {
        size_t nodes;
        const struct shk_run *run =
            largest(&model->runs[r]) > 0 ? stands_for(model, r, &nodes) : NULL;
        if (run)
            put_run(out, model, run, nodes, sizes, count);
    }
    return name_idle(out, model) ? 0 : -ENOMEM;
}

void shk_runs_table_free(struct shk_runs_table *out)
{
    shk_table_destroy(out->table);
    free(out->idle);
    free(out->why);
    *out = (struct shk_runs_table){0};
}
