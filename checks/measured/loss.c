/* Packets that TCP lost between nodes while something was measured, and who lost them. */
#include "core/job/loss.h"
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/job/across.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LOSS_NAMES 8

struct loss_way {
    double in, out; /* shares of the segments lost towards the named nodes, and from them */
};

/* "node2, node4 and 3 more" */
static void loss_names(struct shk_strbuf *sb, const json_t *names, const char *between)
{
    size_t count = json_array_size(names), i;
    for (i = 0; i < count && i < LOSS_NAMES; i++)
        shk_strbuf_printf(sb, "%s%s", i ? between : "",
                          json_string_value(json_array_get(names, i)));
    if (i < count)
        shk_strbuf_printf(sb, " and %zu more", count - i);
}

static double loss_part(double lost, double sent)
{
    return sent >= SHK_LOSS_SEGMENTS ? lost / sent : 0;
}

static struct loss_way loss_way(const struct shk_loss *loss)
{
    double in[2] = {0}, out[2] = {0};
    for (size_t i = 0; i < loss->count; i++) {
        const struct shk_loss_link *link = &loss->links[i];
        double *to = shk_loss_names(loss->nodes, link->to) ? in : NULL;
        double *from = shk_loss_names(loss->nodes, link->from) ? out : NULL;
        for (int k = 0; k < 2; k++) {
            double *sum = k ? from : to;
            if (sum) {
                sum[0] += link->lost;
                sum[1] += link->sent;
            }
        }
    }
    return (struct loss_way){loss_part(in[0], in[1]), loss_part(out[0], out[1])};
}

/* "4.0 % of what is sent to it" */
static void loss_direction(struct shk_strbuf *sb, struct loss_way way)
{
    if (way.in >= SHK_LOSS_MUCH && way.in > 4 * way.out)
        shk_strbuf_printf(sb, "%.2g %% of what is sent to it is lost", 100 * way.in);
    else if (way.out >= SHK_LOSS_MUCH && way.out > 4 * way.in)
        shk_strbuf_printf(sb, "%.2g %% of what it sends is lost", 100 * way.out);
    else
        shk_strbuf_printf(sb, "%.2g %% of what is sent to it and %.2g %% of what it sends is lost",
                          100 * way.in, 100 * way.out);
}

static void loss_waits(struct shk_strbuf *sb, const struct shk_loss *loss)
{
    double timeouts = 0, waited = 0;
    for (size_t i = 0; i < loss->count; i++) {
        if (loss->links[i].timeouts < 0)
            return;
        timeouts += loss->links[i].timeouts;
        waited += loss->links[i].waited_ms;
    }
    if (timeouts > 0)
        shk_strbuf_printf(sb, "; %.0f timer%s ran out, %.1f s", timeouts, timeouts > 1 ? "s" : "",
                          waited / 1000);
}

static void loss_total(struct shk_strbuf *sb, const struct shk_loss *loss)
{
    double sent = 0, lost = 0;
    for (size_t i = 0; i < loss->count; i++) {
        sent += loss->links[i].sent;
        lost += loss->links[i].lost;
    }
    shk_strbuf_printf(sb, "%.0f of %.0f TCP segments between nodes lost", lost, sent);
}

/* The pairs that lose and of which no node is to be named. */
static void loss_pairs(struct shk_strbuf *sb, const struct shk_loss *loss)
{
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < loss->count; i++) {
        const struct shk_loss_link *link = &loss->links[i];
        if (!link->loses || !shk_loss_names(loss->rest, link->from) ||
            !shk_loss_names(loss->rest, link->to))
            continue;
        if (shown == LOSS_NAMES) {
            more++;
            continue;
        }
        shk_strbuf_printf(sb, "%s%s to %s %.2g %%", shown++ ? ", " : "", link->from, link->to,
                          100 * shk_loss_share(link));
    }
    if (more)
        shk_strbuf_printf(sb, " and %zu more", more);
}

static void loss_cost(struct shk_row *row, const struct shk_loss *loss, const char *who)
{
    if (loss->share >= SHK_LOSS_CRIPPLING)
        shk_row_text(
            &row->why,
            "%s; TCP then has about %.0f packets in flight at a time, and waits 200 ms "
            "and more whenever the last one is lost: whatever uses TCP between these nodes "
            "becomes many times slower",
            who, SHK_LOSS_MATHIS / sqrt(loss->share));
    else
        shk_row_text(&row->why,
                     "%s; TCP slows down after each loss: its rate falls with the square root of "
                     "the share that is lost",
                     who);
}

/* What it costs, from the pairs that were measured: "; 1 MiB takes 14.2 ms with it, 1.3 without".
 */
static void loss_measured(struct shk_strbuf *sb, const struct shk_row *row,
                          const struct shk_loss *loss)
{
    const char *dot = strrchr(row->fact, '.');
    char *key = dot ? shk_strf("%.*s.pair_speed", (int)(dot - row->fact), row->fact) : NULL;
    json_t *speed = NULL, *rows = NULL, *pair;
    double sum[2] = {0}, mean = 0;
    unsigned count[2] = {0};
    size_t i;
    if (key && shk_look_object(row->ctx->facts, key, &speed) == SHK_LOOK_PRESENT)
        rows = json_object_get(speed, "rows");
    json_array_foreach(rows, i, pair)
    {
        const char *a = shk_member_words(pair, "a"), *b = shk_member_words(pair, "b");
        if (!a || !b || shk_look_member_number(pair, "mean_ms", &mean) != SHK_LOOK_PRESENT)
            continue;
        bool with = shk_loss_names(loss->nodes, a) || shk_loss_names(loss->nodes, b);
        sum[with] += mean;
        count[with]++;
    }
    if (count[0] && count[1] && sum[1] / count[1] > 1.5 * sum[0] / count[0])
        shk_strbuf_printf(sb, "; 1 MiB takes %.1f ms with it, %.1f without", sum[1] / count[1],
                          sum[0] / count[0]);
    free(key);
}

static void loss_named(struct shk_row *row, const struct shk_loss *loss)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT, who = SHK_STRBUF_INIT;
    bool self = json_array_size(loss->self) == json_array_size(loss->nodes);
    loss_names(&sb, loss->nodes, ", ");
    shk_strbuf_puts(&sb, ": ");
    loss_direction(&sb, loss_way(loss));
    if (loss->others >= 0)
        shk_strbuf_printf(&sb, ", between other nodes %.2g %%", 100 * loss->others);
    loss_waits(&sb, loss);
    loss_measured(&sb, row, loss);
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
    if (self)
        shk_strbuf_puts(&who, "its own kernel drops them before they leave: a packet filter or a "
                              "full queue");
    else
        shk_strbuf_printf(&who,
                          "whoever talks to it loses, in %s; the others among each other do "
                          "not: its filter, port, cable or switch port",
                          loss->measurements > 1 ? "each of several measurements"
                                                 : "the only measurement");
    loss_cost(row, loss, shk_strbuf_text(&who));
    shk_row_fix(row, "loss-node", "node", json_string_value(json_array_get(loss->nodes, 0)), NULL);
    shk_strbuf_free(&sb);
    shk_strbuf_free(&who);
}

static void loss_unnamed(struct shk_row *row, const struct shk_loss *loss)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool two = json_array_size(loss->rest) == 2;
    loss_pairs(&sb, loss);
    shk_strbuf_puts(&sb, " lost");
    loss_waits(&sb, loss);
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
    loss_cost(row, loss,
              two ? "both ends or the path between them may be at fault"
                  : "no node is common to them: a switch, or more traffic than the "
                    "network carries");
    shk_row_fix(row, "loss-ends", NULL);
    shk_strbuf_free(&sb);
}

/* Lost, and too little sent to call it a share; or nothing goes through any more. */
static void loss_untold(struct shk_row *row, const struct shk_loss *loss)
{
    for (size_t i = 0; i < loss->count; i++) {
        const struct shk_loss_link *link = &loss->links[i];
        if (link->stuck > 0)
            shk_row_lacks(row, row->fact,
                          "from %s to %s nothing got through any more when it was checked",
                          link->from, link->to);
        else if (!link->known && link->lost > SHK_LOSS_MUCH * SHK_LOSS_SEGMENTS)
            shk_row_lacks(row, row->fact,
                          "%.0f of %.0f segments from %s to %s lost: too few to "
                          "tell",
                          link->lost, link->sent, link->from, link->to);
    }
}

static void loss_judge(struct shk_row *row, const struct shk_loss *loss)
{
    bool named = json_array_size(loss->nodes) > 0;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    row->source = "ITU-T Y.1541, table 1; Mathis et al. 1997; tcp(7)";
    if (named || json_array_size(loss->rest)) {
        shk_row_verdict(row, loss->share >= SHK_LOSS_CRIPPLING ? SHK_FAIL : SHK_WARN, SHK_TESTED);
        shk_row_text(&row->expected, "less than %g %% lost", 100 * SHK_LOSS_MUCH);
        row->diagnosis = "packet-loss";
        (named ? loss_named : loss_unnamed)(row, loss);
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        loss_total(&sb, loss);
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
        loss_untold(row, loss);
    }
    shk_strbuf_free(&sb);
}

/* Ranks whose sockets nobody could look at. */
static void loss_unread(struct shk_row *row, const char *key, const json_t *runs)
{
    json_t *run, *lost, *item;
    size_t i, k;
    json_array_foreach((json_t *)runs, i, run)
    {
        if (shk_read_member_array(row, key, run, "unread", &lost) != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(lost, k, item)
        {
            const char *why = shk_member_words(item, "why");
            shk_row_lacks(row, key, "the TCP connections of %s were not checked: %s",
                          shk_member_name(item, "node"), why ? why : "no reason was recorded");
        }
    }
}

static void loss_row(struct shk_row *row, struct shk_findings *findings, const char *key)
{
    struct shk_loss loss = {0};
    json_t *runs = NULL, *nodes = NULL;
    int rc = 0;
    if (shk_read_array(row, key, &runs) == SHK_LOOK_PRESENT) {
        loss_unread(row, key, runs);
        rc = shk_loss_of(runs, &loss);
        if (rc < 0)
            shk_row_lacks(row, key, rc == -EINVAL ? "it has an unexpected form" : "out of memory");
    }
    if (runs && rc == 0 && !loss.count) {
        shk_row_na(findings, row, "the ranks had no TCP connections between nodes");
    } else {
        if (runs && rc == 0)
            loss_judge(row, &loss);
        /* A FAIL of which no node can be named speaks of the network: the text names the pairs. */
        nodes = row->verdict == SHK_WARN && !json_array_size(loss.nodes) ? loss.rest : loss.nodes;
        shk_row_end(findings, row);
        if (json_array_size(nodes))
            shk_row_nodes(findings, nodes, NULL);
    }
    shk_loss_clear(&loss);
}

static void eval_loss(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const struct shk_across across = {.check = &shk_check_loss,
                                             .member = "counters",
                                             .setting = "packet loss",
                                             .nodes = 2,
                                             .judge = loss_row};
    shk_across_eval(&across, ctx, findings);
}

const struct shk_check shk_check_loss = {
    .id = "collective.loss",
    .diagnosis = "packet-loss",
    .family = "collectives",
    .of_job = true,
    .title = "TCP loses almost no packets between the nodes",
    .eval = eval_loss,
    .doc = "Fact: collective.<transport>.counters, member flows: what the kernel counted for the "
           "ranks' own sockets during the all-reduce and during the measurements of pairs "
           "(inet_diag). Lost is what was sent again, less what the peer reports to have had "
           "already (DSACK), and what the sender's own kernel dropped.\nWARN: in one direction "
           "between two nodes at least 0.1 % of 300 or more segments, in at least two measurements "
           "where there were several (ITU-T Y.1541 allows a public network 0.1 %). FAIL: 0.5 %, "
           "with which TCP has 17 segments under way at a time (Mathis et al. 1997). Named is the "
           "node with which everybody loses while others among each other lose less than a "
           "quarter of that, or the node whose own kernel drops; else the pairs are named, and no "
           "node. Sockets that nobody looked at are UNKNOWN.",
};
