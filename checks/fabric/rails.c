/* Network devices that the host all-reduce uses side by side: dead, missing and slow ones. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

#define RAILS_FACT "collective.fabric.rails"
#define RAILS_MAX  64

/* A rail with less than this share of the median of the others is slow. Alike devices that were
 * measured one after the other, best of several turns, differ by less. */
#define RAILS_SLOW 0.7

struct rails {
    const json_t *used[RAILS_MAX];
    size_t count;
    size_t unread; /* devices that do not say what became of them */
};

static double rails_bandwidth(const json_t *row)
{
    double value = 0;
    (void)shk_look_member_number(row, "bandwidth", &value);
    return value;
}

/* A text member, NULL when it was not read: for messages only. */
static const char *rails_text(const json_t *row, const char *name)
{
    const char *text = NULL;
    (void)shk_look_member_text(row, name, &text);
    return text;
}

static long long rails_rank(const json_t *row)
{
    long long rank = -1;
    (void)shk_look_member_int(row, "rank", &rank);
    return rank;
}

/* Median bandwidth of the used rails but one; 0: not known. */
static double rails_median(const struct rails *rails, size_t without)
{
    double sorted[RAILS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < rails->count; i++) {
        double value = rails_bandwidth(rails->used[i]);
        size_t at = n;
        if (i == without || value <= 0)
            continue;
        for (; at > 0 && sorted[at - 1] > value; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = value;
        n++;
    }
    if (!n)
        return 0;
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static const char *rails_name(const json_t *row)
{
    return shk_member_name(row, "domain");
}

static struct shk_row rails_start(const struct shk_check_context *ctx, const json_t *device,
                                  char **setting_p)
{
    *setting_p = device ? shk_strf("network device %s (fabric)", rails_name(device)) : NULL;
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_rails, *setting_p ? *setting_p : "network devices (fabric)");
    row.fact = RAILS_FACT;
    return row;
}

/* The hosts that most lost tokens speak against; as documents of 0.2.0 and before have it, the
 * collective itself named them. */
static json_t *rails_hosts(const json_t *device)
{
    json_t *blame = NULL, *hosts = NULL, *one;
    long long most = 1;
    size_t i;
    if (shk_look_member_array(device, "blame", &blame) != SHK_LOOK_PRESENT)
        (void)shk_look_member_array(device, "hosts", &hosts);
    hosts = blame ? json_array() : json_incref(hosts);
    json_array_foreach(blame, i, one)
    {
        long long tokens = 0;
        (void)shk_look_member_int(one, "tokens", &tokens);
        if (tokens > most)
            json_array_clear(hosts);
        most = tokens > most ? tokens : most;
        if (tokens == most && json_object_get(one, "host"))
            json_array_append(hosts, json_object_get(one, "host"));
    }
    return hosts;
}

/* Dead, or there on some ranks only. */
static void rails_lost(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const json_t *device, bool dead)
{
    char *setting;
    struct shk_row row = rails_start(ctx, device, &setting);
    const char *reason = rails_text(device, "reason"), *host = rails_text(device, "host");
    const char *fabric = rails_text(device, "fabric"), *pci = rails_text(device, "pci");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_row_verdict(&row, SHK_WARN, SHK_TESTED);
    shk_strbuf_puts(&sb, dead ? "carries no data" : "not on every rank");
    shk_strbuf_printf(&sb, ": seen by rank %lld%s%s: %s", rails_rank(device), host ? " on " : "",
                      host ? host : "", reason ? reason : "no reason recorded");
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_text(&row.expected, "every rank reaches its neighbours over each device as fast as "
                                "the first");
    shk_row_text(&row.why,
                 "the all-reduce continued without it; NCCL, RCCL and MPI use every device of a "
                 "node, and hang or fail on this one%s%s%s%s",
                 fabric ? "; fabric " : "", fabric ? fabric : "", pci ? ", PCI " : "",
                 pci ? pci : "");
    shk_row_fix(&row, "rail-dead", NULL);
    row.diagnosis = "fabric-rail-dead";
    shk_row_end(findings, &row);
    json_t *hosts = rails_hosts(device);
    if (json_array_size(hosts))
        shk_row_nodes(findings, hosts, NULL);
    json_decref(hosts);
    shk_strbuf_free(&sb);
    free(setting);
}

static bool rails_slow(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct rails *rails, size_t i)
{
    double value = rails_bandwidth(rails->used[i]), median = rails_median(rails, i);
    const char *host = rails_text(rails->used[i], "host");
    char *setting;
    if (value <= 0 || value >= RAILS_SLOW * median)
        return false;
    struct shk_row row = rails_start(ctx, rails->used[i], &setting);
    shk_row_verdict(&row, SHK_WARN, SHK_TESTED);
    shk_row_text(&row.observed, "%.2f GB/s alone, the others %.2f; least at rank %lld%s%s", value,
                 median, rails_rank(rails->used[i]), host ? " on " : "", host ? host : "");
    shk_row_text(&row.expected, "at least %g of the median of the others", RAILS_SLOW);
    shk_row_text(&row.why, "large messages take turns on all devices and end with the slowest");
    shk_row_fix(&row, "rail-slow", NULL);
    row.diagnosis = "fabric-rail-slow";
    shk_row_end(findings, &row);
    if (host) {
        json_t *nodes = json_pack("[s]", host);
        shk_row_nodes(findings, nodes, NULL);
        json_decref(nodes);
    }
    free(setting);
    return true;
}

/* An all-reduce over the fabric that went well tells of its devices. */
static bool rails_due(const struct shk_facts *facts)
{
    const char *status;
    return shk_look_text(facts, "collective.fabric.status", &status) == SHK_LOOK_PRESENT &&
           strcmp(status, "ok") == 0;
}

static void rails_well(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct rails *rails)
{
    char *setting;
    struct shk_row row = rails_start(ctx, NULL, &setting);
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_row_was_read(&row);
    if (rails->unread)
        shk_row_lacks(&row, RAILS_FACT, "%zu network devices do not say what became of them",
                      rails->unread);
    if (rails->count < 2) {
        shk_row_na(findings, &row, "one device is used: there is nothing to compare");
        return;
    }
    size_t unknown = 0;
    shk_strbuf_puts(&sb, "side by side: ");
    for (size_t i = 0; i < rails->count; i++) {
        const char *name = "?";
        double value = rails_bandwidth(rails->used[i]);
        (void)shk_read_member_text(&row, RAILS_FACT, rails->used[i], "domain", &name);
        shk_strbuf_printf(&sb, "%s%s", i ? ", " : "", name);
        if (value > 0)
            shk_strbuf_printf(&sb, " %.2f GB/s", value);
        else
            unknown++;
    }
    if (unknown && !rails_due(ctx->facts))
        shk_row_text(&row.why, "the all-reduce ended before %zu of them were measured alone",
                     unknown);
    else if (unknown)
        shk_row_text(&row.why, "no time was left to measure %zu of them alone", unknown);
    else
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_end(findings, &row);
    shk_strbuf_free(&sb);
}

static void eval_rails(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct rails rails = {.count = 0};
    struct shk_fact fact = {.reason = NULL};
    json_t *device;
    size_t bad = 0, i;
    enum shk_look look = shk_look(ctx->facts, RAILS_FACT, &fact);
    if (look == SHK_LOOK_MISSING && !rails_due(ctx->facts))
        return;
    if (look != SHK_LOOK_PRESENT || !json_array_size(fact.value)) {
        char *setting;
        struct shk_row row = rails_start(ctx, NULL, &setting);
        shk_row_text(&row.why, "%s", fact.reason ? fact.reason : "no rank reported its devices");
        shk_row_end(findings, &row);
        return;
    }
    json_array_foreach(fact.value, i, device)
    {
        const char *status = rails_text(device, "status");
        rails.unread += !status;
        bool dead = status && strcmp(status, "dead") == 0;
        if (status && strcmp(status, "used") == 0 && rails.count < RAILS_MAX)
            rails.used[rails.count++] = device;
        if (dead || (status && strcmp(status, "missing") == 0)) {
            rails_lost(ctx, findings, device, dead);
            bad++;
        }
    }
    for (i = 0; i < rails.count; i++)
        bad += rails_slow(ctx, findings, &rails, i);
    if (!bad)
        rails_well(ctx, findings, &rails);
}

const struct shk_check shk_check_rails = {
    .id = "collective.rails",
    .family = "collectives",
    .of_job = true,
    .title = "Every network device as fast as the first carries data, and none is slow",
    .eval = eval_rails,
    .doc = "Fact: collective.fabric.rails. WARN: a device over which tokens between neighbouring "
           "ranks did not arrive within two seconds or arrived elsewhere, or that some ranks have "
           "and others have not; a device with less than 0.7 of the median bandwidth of the "
           "others, each measured alone, best of three to nine turns. No FAIL: the all-reduce "
           "itself passed without it, and the network may be meant for something else. Devices "
           "that were left out for a reason of their own (another speed, a bridge, "
           "the same address on every host) do not count. UNKNOWN: devices that carry data, but "
           "were not measured.",
};
