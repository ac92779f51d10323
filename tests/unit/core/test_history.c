/* The history database and what it keeps of a document. */
#include "core/facts/metrics.h"
#include "core/history/history.h"
#include "core/text/stamp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(history, times)
{
    cr_assert_eq(shk_stamp_read("1970-01-01T00:00:00Z"), 0);
    cr_assert_eq(shk_stamp_read("2026-11-28T18:49:07Z"), 1795891747);
    cr_assert_eq(shk_stamp_read("2026-11-28T18:49:07.25Z"), 1795891747);
    cr_assert_eq(shk_stamp_read("2026-11-28T18:49:07+00:00"), 1795891747);
    static const char *const none[] = {"",
                                       "2026-11-28",
                                       "2026-11-28T18:49:07",
                                       "yesterday",
                                       "2026-11-28T18:49:07+01:00",
                                       "2026-13-40T99:00:00Z",
                                       "Z"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_assert_eq(shk_stamp_read(none[i]), -1, "%s", none[i]);
    cr_assert_eq(shk_stamp_read(NULL), -1);
}

Test(history, file_systems)
{
    cr_assert_str_eq(shk_history_network(0x6969), "NFS");
    cr_assert_str_eq(shk_history_network(0x0BD00BD0), "Lustre");
    cr_assert_str_eq(shk_history_network(0xFFFFFFFFFF534D42), "CIFS"); /* a signed f_type */
    cr_assert_null(shk_history_network(0xEF53));                       /* ext4 */
    cr_assert_null(shk_history_network(0x01021994));                   /* tmpfs */
    cr_assert_null(shk_history_network(0x794C7630));                   /* overlayfs */
}

Test(history, metrics_have_a_kind)
{
    cr_assert_eq(shk_metric_find("busbw.nccl")->kind, SHK_METRIC_MORE);
    cr_assert_eq(shk_metric_find("latency.nccl")->kind, SHK_METRIC_LESS);
    cr_assert_eq(shk_metric_find("count.mlx5_0/1.link_downed")->kind, SHK_METRIC_COUNT);
    cr_assert_null(shk_metric_find("busbw."));
    cr_assert_null(shk_metric_find("copy.to_device2"));
    cr_assert_null(shk_metric_find(""));
}

static struct shk_facts *facts_of(const char *text)
{
    json_t *doc = json_loads(text, 0, NULL);
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    return facts;
}

Test(history, what_is_kept)
{
    struct shk_facts *facts = facts_of(
        "{\"schema\": \"shakedown.facts/1\", \"facts\": {\"collective.nccl.status\": \"ok\", "
        "\"collective.nccl.sizes\": [{\"bytes\": 8, \"time_us\": 20.0, \"busbw\": 0.1}, "
        "{\"bytes\": "
        "64, \"time_us\": 9.0, \"busbw\": 380.0}, 7], \"collective.shm.status\": \"failed\", "
        "\"collective.shm.sizes\": [{\"bytes\": 8, \"time_us\": 1.0, \"busbw\": 1.0}], "
        "\"counters.totals\": {\"errors\": {\"mlx5_0/1\": {\"link_downed\": 3, \"odd\": \"x\"}}}, "
        "\"nic\": [{\"name\": \"a\", \"fw\": \"1\", \"up\": true}, {\"name\": \"b\", \"fw\": "
        "\"2\"}], "
        "\"env.KEPT\": \"1\", \"env.JOB\": \"17\", \"other\": \"x\"}}");
    static const char *const where[] = {"up", NULL};
    const struct shk_diff_rule rules[] = {
        {.path = "nic", .differs = SHK_DIFF_AGREE, .where = where},
        {.path = "nic.fw", .differs = SHK_DIFF_AGREE},
        {.path = "env.JOB", .differs = SHK_DIFF_JOB},
    };
    json_t *metrics = shk_metrics_of(facts), *cache = json_object();
    cr_assert_eq(json_object_size(metrics), 3);
    cr_assert_float_eq(json_number_value(json_object_get(metrics, "busbw.nccl")), 380, 0.1);
    cr_assert_float_eq(json_number_value(json_object_get(metrics, "latency.nccl")), 20, 0.1);
    cr_assert_float_eq(json_number_value(json_object_get(metrics, "count.mlx5_0/1.link_downed")), 3,
                       0.1);
    for (int i = 0; i < 3; i++) {
        json_t *states = shk_states_of(facts, rules, 3, i ? cache : NULL);
        cr_assert_str_eq(json_string_value(json_object_get(states, "nic[a].fw")), "1");
        cr_assert_str_eq(json_string_value(json_object_get(states, "env.KEPT")), "1");
        cr_assert_eq(json_object_size(states), 2);
        json_decref(states);
    }
    json_decref(metrics);
    json_decref(cache);
    shk_facts_destroy(facts);
}

static int count_runs(const struct shk_history_run *run, void *arg)
{
    cr_assert_str_eq(run->node, "n1");
    ++*(int *)arg;
    return 0;
}

Test(history, put_and_ask)
{
    struct shk_history *history = NULL;
    struct shk_error err = {""};
    json_t *metrics = json_pack("{s:f, s:s}", "busbw.x", 2.5, "no number", "x"), *issues = NULL;
    int rc = shk_history_open(&history, ":memory:", true, &err), runs = 0;
    if (rc == -ENOSYS)
        return;
    cr_assert_eq(rc, 0, "%s", err.text);
    for (long long day = 0; day < 10; day++) {
        bool new = false;
        struct shk_history_run run = {.node = "n1",
                                      .start = day * 86400,
                                      .seconds = -1,
                                      .verdict = "pass",
                                      .metrics = metrics};
        cr_assert_eq(shk_history_put(history, &run, &new, &err), 0, "%s", err.text);
        cr_assert(new);
        cr_assert_eq(shk_history_put(history, &run, &new, &err), 0, "%s", err.text);
        cr_assert_not(new);
    }
    cr_assert_eq(shk_history_retain(history, 2 * 86400, 5, &err), 0, "%s", err.text);
    cr_assert_eq(shk_history_runs(history, NULL, 0, 1 << 30, count_runs, &runs, &err), 0);
    cr_assert_eq(runs, 5);
    cr_assert_eq(shk_history_issues(history, 1, &issues, &err), 0);
    cr_assert_eq(json_array_size(issues), 0);
    json_decref(issues);
    json_decref(metrics);
    shk_history_close(history);
}
