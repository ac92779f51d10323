/* A history from a stranger: a good database with bytes of it replaced (two of where, one of how
 * many, then these; and again), or one that begins as SQLite's do. Read whole, added to, and
 * shortened: each either works or is an error of one line. */
#include "core/history/history.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HISTORY_DAY 86400LL
enum { HISTORY_MOST = 1 << 18, HISTORY_RUNS = 6 };

static char history_path[300];
static unsigned char history_good[HISTORY_MOST], history_made[HISTORY_MOST];
static size_t history_size;

static void history_said(int rc, const struct shk_error *err)
{
    if (rc && (rc > 0 || !*err->text || strchr(err->text, '\n')))
        abort();
}

static int history_add(struct shk_history *history, const char *node, int day,
                       struct shk_error *err)
{
    struct shk_history_run run = {.node = node,
                                  .start = HISTORY_DAY * day,
                                  .seconds = 8,
                                  .job = "7",
                                  .verdict = "fail",
                                  .profile = "p",
                                  .kind = "k"};
    bool fresh;
    run.metrics = json_pack("{s:f, s:f}", "busbw.nccl", 400.0 + day, "count.mlx5_0.x", 3.0);
    run.states = json_pack("{s:s}", "nvml.driver", day > 3 ? "570" : "550");
    run.issues = json_pack("[{s:s, s:s, s:s, s:s, s:s}]", "cause", "c", "setting", "s", "verdict",
                           "fail", "scope", "node", "observed", "o");
    int rc = shk_history_put(history, &run, &fresh, err);
    json_decref(run.metrics);
    json_decref(run.states);
    json_decref(run.issues);
    return rc;
}

static void history_prepare(void)
{
    struct shk_history *history;
    struct shk_error err = {""};
    snprintf(history_path, sizeof history_path, "%s/history.db", shk_fuzz_dir(NULL));
    if (shk_history_open(&history, history_path, true, &err))
        abort();
    for (int i = 0; i < HISTORY_RUNS; i++)
        if (history_add(history, i % 2 ? "n1" : "n2", i + 1, &err))
            abort();
    shk_history_close(history);
    FILE *file = fopen(history_path, "rb");
    history_size = file ? fread(history_good, 1, sizeof history_good, file) : 0;
    if (!history_size || history_size == sizeof history_good)
        abort();
    fclose(file);
}

static int history_run(const struct shk_history_run *run, void *arg)
{
    struct shk_history *history = arg;
    struct shk_error err = {""};
    json_t *states = NULL, *issues = NULL;
    if (strlen(run->node) + strlen(run->verdict) > HISTORY_MOST)
        abort();
    history_said(shk_history_states(history, run->states_id, &states, &err), &err);
    history_said(shk_history_issues(history, run->id, &issues, &err), &err);
    json_decref(states);
    json_decref(issues);
    return 0;
}

static int history_sample(const struct shk_history_sample *sample, void *arg)
{
    *(size_t *)arg += strlen(sample->node) + (sample->kind ? strlen(sample->kind) : 0);
    return 0;
}

static int history_name(const char *name, void *arg)
{
    *(size_t *)arg += strlen(name);
    return 0;
}

static void history_read(struct shk_history *history)
{
    struct shk_error err = {""};
    const long long last = HISTORY_DAY * 99999;
    size_t seen = 0;
    history_said(shk_history_runs(history, NULL, 0, last, history_run, history, &err), &err);
    history_said(shk_history_samples(history, "busbw.nccl", NULL, "n1", 0, last, history_sample,
                                     &seen, &err),
                 &err);
    history_said(shk_history_samples(history, "count.mlx5_0.x", "busbw.nccl", NULL, 0, last,
                                     history_sample, &seen, &err),
                 &err);
    history_said(shk_history_metrics(history, history_name, &seen, &err), &err);
    history_said(shk_history_nodes(history, history_name, &seen, &err), &err);
}

static size_t history_make(const uint8_t *data, size_t size)
{
    static const char magic[] = "SQLite format 3";
    if (size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0 && size < HISTORY_MOST) {
        memcpy(history_made, data, size);
        return size;
    }
    memcpy(history_made, history_good, history_size);
    while (size > 3) {
        size_t at = (size_t)(data[0] | data[1] << 8) % history_size, count = data[2] % 64;
        count = count < size - 3 ? count : size - 3;
        count = count < history_size - at ? count : history_size - at;
        memcpy(history_made + at, data + 3, count);
        data += 3 + count;
        size -= 3 + count;
    }
    return history_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_history *history = NULL;
    struct shk_error err = {""};
    if (!history_size)
        history_prepare();
    if (shk_fuzz_put(history_path, history_made, history_make(data, size)))
        abort();
    int rc = shk_history_open(&history, history_path, false, &err);
    history_said(rc, &err);
    if (!rc)
        history_read(history);
    shk_history_close(history);
    history = NULL;
    rc = shk_history_open(&history, history_path, true, &err);
    history_said(rc, &err);
    if (!rc) {
        history_said(history_add(history, "n3", 9, &err), &err);
        history_said(shk_history_retain(history, HISTORY_DAY * 3, 2, &err), &err);
    }
    shk_history_close(history);
    return 0;
}
