/* Nodes and pairs of nodes that are slower than the others. */
#include "checks/coded.h"

#include <string.h>

static void speed_median(struct shk_strbuf *sb, const json_t *summary)
{
    const json_t *latency = json_object_get(json_object_get(summary, "latency_us"), "median");
    const json_t *bandwidth = json_object_get(json_object_get(summary, "bandwidth"), "median");
    shk_strbuf_printf(sb, "%lld pairs of %lld nodes: median %.1f us, %.2f GB/s",
                      shk_member_int(summary, "pairs", 0), shk_member_int(summary, "nodes", 0),
                      json_number_value(latency), json_number_value(bandwidth));
}

/* "n3: latency 412.0 us (median 10.2)" or "n1 with n2: …". */
static void speed_slow(struct shk_strbuf *sb, const json_t *slow, json_t *names)
{
    json_t *nodes = json_object_get(slow, "nodes"), *node;
    const char *what = shk_member_text(slow, "what");
    bool latency = what && strcmp(what, "latency_us") == 0;
    bool mean = what && strcmp(what, "mean_ms") == 0;
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        shk_strbuf_printf(sb, "%s%s", i ? " with " : "", json_string_value(node));
        json_array_append(names, node);
    }
    shk_strbuf_printf(sb,
                      latency ? ": latency %.1f us (median %.1f)"
                      : mean  ? ": 1 MiB takes %.1f ms on average (median %.1f)"
                              : ": %.2f GB/s (median %.2f)",
                      json_number_value(json_object_get(slow, "value")),
                      json_number_value(json_object_get(slow, "median")));
}

static void speed_row(const char *transport, int len, const struct shk_fact *fact,
                      struct shk_findings *findings)
{
    char *setting = shk_strf("speed between nodes (%.*s)", len, transport);
    struct shk_row row = shk_row_start(&shk_check_pair_speed, setting ? setting : "speed");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    json_t *slow = json_object_get(fact->value, "slow"), *item, *names = json_array();
    size_t i;
    row.fact = fact->key;
    if (!json_is_array(slow) || !shk_member_int(fact->value, "pairs", 0)) {
        shk_row_text(&row.why, "%s", fact->reason ? fact->reason : "no pair was measured");
    } else if (!json_array_size(slow)) {
        speed_median(&sb, fact->value);
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    } else {
        json_array_foreach(slow, i, item)
        {
            shk_strbuf_puts(&sb, i && i < 8 ? "; " : "");
            if (i < 8)
                speed_slow(&sb, item, names);
        }
        if (i > 8)
            shk_strbuf_printf(&sb, "; and %zu more", i - 8);
        shk_row_verdict(&row, SHK_WARN, SHK_TESTED);
        row.source = "NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17";
        shk_row_text(&row.expected, "within twice the median of all pairs");
        shk_row_text(&row.why,
                     "so in two runs, each with three measurements, and not for want of a "
                     "CPU: a collective is as fast as its slowest link");
        shk_row_text(&row.fix, "compare link rate, width and error counters of these nodes and "
                               "their switch ports with another node's; leave them out with srun "
                               "--exclude");
    }
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_end(findings, &row);
    if (json_array_size(names))
        shk_row_nodes(findings, names, NULL);
    json_decref(names);
    shk_strbuf_free(&sb);
    free(setting);
}

static int speed_each(const struct shk_fact *fact, void *arg)
{
    const char *transport = fact->key + strlen("collective."), *dot = strchr(transport, '.');
    if (dot && strcmp(dot, ".pair_speed") == 0)
        speed_row(transport, (int)(dot - transport), fact, arg);
    return 0;
}

static void eval_pair_speed(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    (void)shk_facts_each(ctx->facts, "collective.", speed_each, findings);
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
