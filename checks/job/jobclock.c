/* Do the nodes of the job agree on the time? */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <math.h>
#include <string.h>

/* Credentials of munge live that long unless the site says otherwise (MUNGE_DEFAULT_TTL in munge's
 * src/libcommon/munge_defs.h), and Kerberos tolerates as much (clockskew in krb5.conf(5)). */
#define CLOCK_FAIL_S 300.0

/* Beyond this ntpd steps a clock instead of steering it (step threshold, ntp.org miscopt: "tinker
 * step"; STEPT of RFC 5905): no clock under control of NTP is that far off. */
#define CLOCK_WARN_S 0.128

struct clock_node {
    const char *name;
    double offset, error; /* s, from rank 0's clock */
};

struct clock_set {
    struct clock_node *nodes; /* by offset */
    size_t count;
    size_t reference;
    bool majority; /* more than half of the nodes are near the reference */
    size_t unread;
    const char *unread_name;
};

static int clock_order(const void *a, const void *b)
{
    double x = ((const struct clock_node *)a)->offset, y = ((const struct clock_node *)b)->offset;
    return (x > y) - (x < y);
}

/* The middle of the largest group of clocks that lie within CLOCK_WARN_S. */
static void clock_refer(struct clock_set *set)
{
    size_t first = 0, best = 0;
    for (size_t last = 0; last < set->count; last++) {
        while (set->nodes[last].offset - set->nodes[first].offset > CLOCK_WARN_S)
            first++;
        if (last - first + 1 > best) {
            best = last - first + 1;
            set->reference = first + (last - first) / 2;
        }
    }
    set->majority = best * 2 > set->count;
}

static bool clock_read(struct clock_set *set, const json_t *rows)
{
    size_t i;
    json_t *row;
    set->nodes = calloc(json_array_size(rows) + 1, sizeof *set->nodes);
    json_array_foreach(set->nodes ? rows : NULL, i, row)
    {
        const char *name = "a node";
        double offset, error;
        enum shk_look named = shk_look_member_text(row, "node", &name);
        if (named == SHK_LOOK_PRESENT &&
            shk_look_member_number(row, "offset_us", &offset) == SHK_LOOK_PRESENT &&
            shk_look_member_number(row, "error_us", &error) == SHK_LOOK_PRESENT) {
            set->nodes[set->count++] = (struct clock_node){name, offset / 1e6, error / 1e6};
        } else {
            set->unread++;
            set->unread_name = name;
        }
    }
    if (set->nodes)
        qsort(set->nodes, set->count, sizeof *set->nodes, clock_order);
    clock_refer(set);
    return set->nodes != NULL;
}

/* How far a node is off at least and at most: from the majority, or without one from the clock that
 * is farthest. */
static void clock_bounds(const struct clock_set *set, size_t i, double *least_p, double *most_p)
{
    const struct clock_node *node = &set->nodes[i], *other = &set->nodes[set->reference];
    if (!set->majority) {
        const struct clock_node *first = set->nodes, *last = &set->nodes[set->count - 1];
        other = node->offset - first->offset > last->offset - node->offset ? first : last;
    }
    double apart = i == (size_t)(other - set->nodes) ? 0 : fabs(node->offset - other->offset);
    double error = apart > 0 ? node->error + other->error : 0;
    *least_p = apart - error;
    *most_p = apart + error;
}

static void clock_say(struct shk_strbuf *sb, double seconds, bool sign)
{
    double size = fabs(seconds);
    const char *unit = size >= 1 ? "s" : size >= 1e-3 ? "ms" : "us";
    double value = size >= 1 ? seconds : size >= 1e-3 ? seconds * 1e3 : seconds * 1e6;
    shk_strbuf_printf(sb, sign ? "%+.*f %s" : "%.*f %s", size >= 1e-3 ? 1 : 0, value, unit);
}

/* Nodes that are off by more than `above` for sure, and at most `below`. */
static void clock_row(const struct shk_check_context *ctx, const struct clock_set *set,
                      double above, double below, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_clocks, "clocks");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    json_t *names = json_array();
    size_t said = 0;
    double least, most, reference = set->majority ? set->nodes[set->reference].offset : 0;
    for (size_t i = 0; i < set->count; i++) {
        clock_bounds(set, i, &least, &most);
        if (least <= above || least > below)
            continue;
        json_array_append_new(names, json_string(set->nodes[i].name));
        if (said++ >= 8)
            continue;
        shk_strbuf_printf(&sb, "%s%s ", said > 1 ? ", " : "", set->nodes[i].name);
        clock_say(&sb, set->nodes[i].offset - reference, true);
        shk_strbuf_puts(&sb, " (+-");
        clock_say(&sb, set->nodes[i].error, false);
        shk_strbuf_puts(&sb, ")");
    }
    if (said > 8)
        shk_strbuf_printf(&sb, ", and %zu more", said - 8);
    if (said) {
        bool fatal = above >= CLOCK_FAIL_S;
        shk_row_verdict(&row, fatal ? SHK_FAIL : SHK_WARN, SHK_TESTED);
        row.fact = "job.clocks";
        row.diagnosis = "clock-skew";
        shk_row_text(&row.observed, "%s%s", shk_strbuf_text(&sb),
                     set->majority ? " from the other nodes" : " from rank 0, and no majority");
        shk_row_text(&row.expected, "nodes within 0.128 s of each other");
        shk_row_text(&row.why, "%s",
                     fatal ? "credentials of munge and Kerberos tolerate 300 s: the node rejects "
                             "others' and others reject the node's"
                           : "NTP would step a clock that is off by more than 0.128 s, so time "
                             "synchronisation is not working here; log lines of different nodes "
                             "cannot be put in order");
        shk_row_fix(&row, "clock", NULL);
        shk_row_end(findings, &row);
        shk_row_nodes(findings, names, NULL);
    }
    shk_strbuf_free(&sb);
    json_decref(names);
}

static void clock_good(const struct shk_check_context *ctx, const struct clock_set *set,
                       struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_clocks, "clocks");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    double least, most, worst = 0;
    const char *where = "";
    row.fact = "job.clocks";
    for (size_t i = 0; i < set->count; i++) {
        clock_bounds(set, i, &least, &most);
        where = most > worst ? set->nodes[i].name : where;
        worst = most > worst ? most : worst;
    }
    clock_say(&sb, worst, false);
    if (set->count > 1)
        shk_row_text(&row.observed, "%zu nodes within %s, error of the measurement included",
                     set->count, shk_strbuf_text(&sb));
    shk_strbuf_free(&sb);
    if (worst > CLOCK_WARN_S)
        shk_row_text(&row.why, "the round trip to %s is too long to measure 0.128 s", where);
    else if (set->unread)
        shk_row_lacks(&row, "job.clocks", "%s%s did not report its time", set->unread_name,
                      set->unread > 1 ? " among others" : "");
    else
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_end(findings, &row);
}

static void eval_clocks(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct clock_set set = {0};
    struct shk_row none = shk_row_begin(ctx, &shk_check_job_clocks, "clocks");
    json_t *rows = NULL;
    enum shk_look look = shk_look_array(ctx->facts, "job.clocks", &rows);
    if (look == SHK_LOOK_FAILED) {
        shk_row_unread(findings, &none, ctx->facts, "job.clocks");
        return;
    }
    if (json_array_size(rows) < 2)
        return; /* not a job of several nodes */
    size_t before = shk_findings_count(findings);
    if (clock_read(&set, rows) && set.count > 1) {
        clock_row(ctx, &set, CLOCK_FAIL_S, INFINITY, findings);
        clock_row(ctx, &set, CLOCK_WARN_S, CLOCK_FAIL_S, findings);
    }
    if (shk_findings_count(findings) == before)
        clock_good(ctx, &set, findings);
    free(set.nodes);
}

const struct shk_check shk_check_job_clocks = {
    .id = "job.clocks",
    .diagnosis = "clock-skew",
    .family = "launcher",
    .title = "The clocks of the nodes agree",
    .eval = eval_clocks,
    .of_job = true,
    .doc = "Fact: job.clocks, measured by rank 0: half of the shortest of 8 round trips to each "
           "node bounds the error.\nA node is held against the largest group of clocks that agree. "
           "Off by more than 300 s is FAIL: that long credentials of munge live by default, and as "
           "much Kerberos tolerates (clockskew in krb5.conf). Off by more than 0.128 s is WARN: "
           "the step threshold of ntpd (RFC 5905, STEPT). Both only when the error cannot explain "
           "it; an error that could hide 0.128 s is UNKNOWN.",
};
