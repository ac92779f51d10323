/* Nodes and pairs of nodes that are slower than the others. */
#include "core/job/pairspeed.h"
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/job/across.h"

#include <string.h>

#define SPEED_SHOWN 8

/* Which pairs and nodes are slow, as a document of 0.2.0 says itself. */
static bool speed_of_old(struct shk_row *row, const char *key, const json_t *summary,
                         struct shk_pairspeed *speed)
{
    json_t *latency = NULL, *bandwidth = NULL, *slow = NULL;
    if (shk_look_member_array(summary, "slow", &slow) == SHK_LOOK_MISSING)
        return false;
    (void)shk_read_member_array(row, key, summary, "slow", &slow);
    if (shk_read_member_object(row, key, summary, "latency_us", &latency) == SHK_LOOK_PRESENT)
        (void)shk_read_member_number(row, key, latency, "median", &speed->latency_us);
    if (shk_read_member_object(row, key, summary, "bandwidth", &bandwidth) == SHK_LOOK_PRESENT)
        (void)shk_read_member_number(row, key, bandwidth, "median", &speed->bandwidth);
    speed->slow = json_incref(slow);
    return true;
}

/* "3 pairs of 3 nodes: median 2.1 us, 23.40 GB/s" */
static void speed_median(struct shk_row *row, const char *key, const json_t *summary,
                         const struct shk_pairspeed *speed)
{
    long long pairs = 0, nodes = 0;
    if (shk_read_member_int(row, key, summary, "pairs", &pairs) == SHK_LOOK_PRESENT && pairs < 1)
        shk_row_lacks(row, key, "no pair was measured");
    (void)shk_read_member_int(row, key, summary, "nodes", &nodes);
    shk_row_verdict(row, SHK_PASS, SHK_TESTED);
    if (!shk_row_lacking(row))
        shk_row_text(&row->observed, "%lld pairs of %lld nodes: median %.1f us, %.2f GB/s", pairs,
                     nodes, speed->latency_us, speed->bandwidth);
}

/* "n3: latency 412.0 us (median 10.2)" or "n1 with n2: …". False when it cannot be read. */
static bool speed_slow(struct shk_strbuf *sb, struct shk_row *row, const char *key,
                       const json_t *slow, json_t *names)
{
    json_t *nodes = NULL, *node;
    const char *what = NULL;
    double value = 0, median = 0;
    size_t i;
    if (shk_read_member_array(row, key, slow, "nodes", &nodes) != SHK_LOOK_PRESENT ||
        shk_read_member_text(row, key, slow, "what", &what) != SHK_LOOK_PRESENT ||
        shk_read_member_number(row, key, slow, "value", &value) != SHK_LOOK_PRESENT ||
        shk_read_member_number(row, key, slow, "median", &median) != SHK_LOOK_PRESENT)
        return false;
    shk_strbuf_puts(sb, json_array_size(names) ? "; " : "");
    json_array_foreach(nodes, i, node)
    {
        const char *name = json_string_value(node);
        shk_strbuf_printf(sb, "%s%s", i ? " with " : "", name ? name : "?");
        json_array_append(names, node);
    }
    shk_strbuf_printf(sb,
                      strcmp(what, "latency_us") == 0 ? ": latency %.1f us (median %.1f)"
                      : strcmp(what, "mean_ms") == 0
                          ? ": 1 MiB takes %.1f ms on average (median %.1f)"
                          : ": %.2f GB/s (median %.2f)",
                      value, median);
    return true;
}

static void speed_warn(struct shk_row *row, const char *key, json_t *slow, json_t *names)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool read = false;
    size_t i;
    for (i = 0; i < json_array_size(slow) && i < SPEED_SHOWN; i++)
        read |= speed_slow(&sb, row, key, json_array_get(slow, i), names);
    if (json_array_size(slow) > SPEED_SHOWN)
        shk_strbuf_printf(&sb, "; and %zu more", json_array_size(slow) - SPEED_SHOWN);
    if (read) {
        shk_row_verdict(row, SHK_WARN, SHK_TESTED);
        row->diagnosis = "slow-between-nodes";
        row->source = "NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17";
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
        shk_row_text(&row->expected, "within twice the median of all pairs");
        shk_row_text(&row->why, "so in two runs, each with three measurements, and not for lack of "
                                "a CPU: a collective is as fast as its slowest link");
        shk_row_fix(row, "pairs-compare", NULL);
    }
    shk_strbuf_free(&sb);
}

static void speed_row(struct shk_row *row, struct shk_findings *findings, const char *key)
{
    json_t *summary = NULL, *names = json_array();
    struct shk_pairspeed speed = {.slow = NULL};
    if (shk_read_object(row, key, &summary) == SHK_LOOK_PRESENT) {
        if (!speed_of_old(row, key, summary, &speed) && shk_pairspeed_of(summary, &speed))
            shk_row_lacks(row, key, "the measurements of the pairs are incomplete");
        if (json_array_size(speed.slow))
            speed_warn(row, key, speed.slow, names);
        else
            speed_median(row, key, summary, &speed);
    }
    shk_row_end(findings, row);
    if (json_array_size(names))
        shk_row_nodes(findings, names, NULL);
    json_decref(names);
    shk_pairspeed_clear(&speed);
}

static void eval_pair_speed(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const struct shk_across across = {.check = &shk_check_pair_speed,
                                             .member = "pair_speed",
                                             .setting = "speed between nodes",
                                             .nodes = 3,
                                             .only = "fabric",
                                             .ok = true,
                                             .judge = speed_row};
    shk_across_eval(&across, ctx, findings);
}

const struct shk_check shk_check_pair_speed = {
    .id = "collective.pair_speed",
    .family = "collectives",
    .of_job = true,
    .title = "No node and no pair of nodes is much slower than the others",
    .eval = eval_pair_speed,
    .doc =
        "Fact: collective.<transport>.pair_speed, measured over at least three nodes between "
        "their first ranks.\nA node counts with its best pair. WARN: a latency, or a time per "
        "byte, with a modified z-score above 3.5 (0.6745 times the distance from the median by "
        "the median absolute deviation: Iglewicz and Hoaglin, NIST e-Handbook 1.3.5.17) that is "
        "also more than twice the median, so that nodes which hardly differ are no outliers; "
        "and both in each of six measurements, three of them in a second run; or an average of a "
        "whole run that is so in both runs, which shows what stalls now and then. The time for "
        "which the ranks of a pair waited for a CPU is taken off first. Not measured is "
        "UNKNOWN.",
};
