#include "core/job/loss.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Segments lost on a connection that is stuck tell of the path, not of chance: retransmissions of
 * one and the same, at most this many until a run is over. */
#define LOSS_STUCK 32.0

struct loss_node {
    const char *name;
    bool named;
};

struct loss_pair {
    size_t a, b;
    double share;
    bool known, loses, self;
};

struct loss_graph {
    struct loss_node *nodes;
    size_t nodes_count;
    struct loss_pair *pairs;
    size_t pairs_count;
};

double shk_loss_share(const struct shk_loss_link *link)
{
    return link->sent >= SHK_LOSS_SEGMENTS ? link->lost / link->sent : 0;
}

bool shk_loss_names(const json_t *names, const char *name)
{
    json_t *item = NULL;
    size_t i = 0;

    json_array_foreach((json_t *)names, i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0) {
            return true;
        }
    }
    return false;
}

static void loss_name(json_t *names, const char *name)
{
    if (!shk_loss_names(names, name)) {
        (void)json_array_append_new(names, json_string(name));
    }
}

static struct shk_loss_link *loss_link(struct shk_loss *loss, const char *from, const char *to)
{
    struct shk_loss_link *more = loss->links;
    size_t n = loss->count;
    size_t i = 0;

    for (i = 0; i < n; i++) {
        if (strcmp(loss->links[i].from, from) == 0 && strcmp(loss->links[i].to, to) == 0) {
            return &loss->links[i];
        }
    }
    if ((n & (n - 1)) == 0) {
        more = realloc(more, (n > 0 ? 2 * n : 1) * sizeof(*more));
    }
    if (more == NULL) {
        return NULL;
    }
    loss->links = more;
    loss->count++;
    more[n] = (struct shk_loss_link){.from = from, .to = to};
    return &more[n];
}

static int loss_flow(struct shk_loss *loss, json_t *flow)
{
    const char *from = NULL;
    const char *to = NULL;
    json_int_t sent = 0;
    json_int_t again = 0;
    json_int_t needless = 0;
    json_int_t unsent = 0;
    json_int_t timeouts = 0;
    json_int_t waited = 0;
    json_int_t stuck = 0;
    struct shk_loss_link *link = NULL;
    double lost = 0;

    if (json_unpack(flow, "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "from", &from, "to", &to,
                    "sent", &sent, "again", &again, "needless", &needless, "unsent", &unsent,
                    "timeouts", &timeouts, "waited_ms", &waited, "stuck", &stuck) != 0 ||
        sent < 0 || again < 0 || needless < 0 || unsent < 0 || stuck < 0 || strcmp(from, to) == 0) {
        return -EINVAL;
    }
    link = loss_link(loss, from, to);
    if (link == NULL) {
        return -ENOMEM;
    }
    lost = (double)(again > needless ? again - needless : 0) + (double)unsent;
    link->sent += (double)sent;
    link->lost += lost;
    link->unsent += (double)unsent;
    link->timeouts = timeouts < 0 || link->timeouts < 0 ? -1 : link->timeouts + (double)timeouts;
    link->waited_ms = waited < 0 || link->waited_ms < 0 ? -1 : link->waited_ms + (double)waited;
    link->stuck += (double)stuck;
    link->runs++;
    link->lossy += lost > 0;
    return 0;
}

static int loss_gather(const json_t *runs, struct shk_loss *loss)
{
    json_t *run = NULL;
    size_t i = 0;

    if (!json_is_array(runs)) {
        return -EINVAL;
    }
    json_array_foreach((json_t *)runs, i, run)
    {
        json_t *flows = json_object_get(run, "flows");
        json_t *flow = NULL;
        size_t k = 0;

        if (!json_is_array(flows)) {
            return -EINVAL;
        }
        json_array_foreach(flows, k, flow)
        {
            int rc = loss_flow(loss, flow);

            if (rc < 0) {
                return rc;
            }
        }
        loss->measurements += json_array_size(flows) > 0;
    }
    return 0;
}

static size_t loss_node(struct loss_graph *graph, const char *name)
{
    size_t i = 0;

    while (i < graph->nodes_count && strcmp(graph->nodes[i].name, name) != 0) {
        i++;
    }
    if (i == graph->nodes_count) {
        graph->nodes[graph->nodes_count++] = (struct loss_node){.name = name};
    }
    return i;
}

static void loss_judge_link(struct shk_loss_link *link)
{
    bool again = link->runs < 2 ? link->lost > SHK_LOSS_ONCE : link->lossy >= 2;

    link->known = link->sent >= SHK_LOSS_SEGMENTS;
    link->loses = link->known && again && shk_loss_share(link) >= SHK_LOSS_MUCH &&
                  (link->stuck <= 0 || link->lost > LOSS_STUCK * link->stuck);
}

static void loss_pair(struct loss_graph *graph, const struct shk_loss_link *link)
{
    size_t a = loss_node(graph, link->from);
    size_t b = loss_node(graph, link->to);
    double share = shk_loss_share(link);
    struct loss_pair *pair = NULL;
    size_t i = 0;

    while (i < graph->pairs_count && !((graph->pairs[i].a == a && graph->pairs[i].b == b) ||
                                       (graph->pairs[i].a == b && graph->pairs[i].b == a))) {
        i++;
    }
    pair = &graph->pairs[i];
    if (i == graph->pairs_count) {
        *pair = (struct loss_pair){.a = a, .b = b};
        graph->pairs_count++;
    }
    pair->known = pair->known || link->known;
    pair->loses = pair->loses || link->loses;
    pair->share = share > pair->share ? share : pair->share;
}

/* A host that drops its own packets needs no second pair to be named. */
static void loss_self(const struct shk_loss *loss, struct loss_graph *graph)
{
    size_t i = 0;

    for (i = 0; i < loss->count; i++) {
        const struct shk_loss_link *link = &loss->links[i];

        if (link->loses && link->unsent >= SHK_LOSS_MUCH * link->sent) {
            size_t node = loss_node(graph, link->from);

            graph->nodes[node].named = true;
            loss_name(loss->self, link->from);
        }
    }
}

static bool loss_open(const struct loss_graph *graph, const struct loss_pair *pair)
{
    return pair->known && !graph->nodes[pair->a].named && !graph->nodes[pair->b].named;
}

/* The node with most of the pairs that lose and are not explained yet, all of whose pairs lose.
 * False: there is none with two or more. */
static bool loss_next(struct loss_graph *graph)
{
    size_t best = graph->nodes_count;
    double best_share = 0;
    unsigned most = 1;
    size_t n = 0;

    for (n = 0; n < graph->nodes_count; n++) {
        unsigned lose = 0;
        unsigned clean = 0;
        double share = 0;
        size_t i = 0;

        for (i = 0; i < graph->pairs_count; i++) {
            const struct loss_pair *pair = &graph->pairs[i];

            if (loss_open(graph, pair) && (pair->a == n || pair->b == n)) {
                lose += pair->loses;
                clean += !pair->loses;
                share += pair->loses ? pair->share : 0;
            }
        }
        if (clean == 0 && lose >= 2 &&
            (lose > most || (lose == most && best < graph->nodes_count && share > best_share) ||
             best == graph->nodes_count)) {
            best = n;
            best_share = share;
            most = lose;
        }
    }
    if (best == graph->nodes_count) {
        return false;
    }
    graph->nodes[best].named = true;
    return true;
}

/* Mean share of the pairs of the named nodes that lose. */
static double loss_of_named(const struct loss_graph *graph)
{
    double sum = 0;
    unsigned n = 0;
    size_t i = 0;

    for (i = 0; i < graph->pairs_count; i++) {
        const struct loss_pair *pair = &graph->pairs[i];

        if (pair->loses && (graph->nodes[pair->a].named || graph->nodes[pair->b].named)) {
            sum += pair->share;
            n++;
        }
    }
    return n > 0 ? sum / n : 0;
}

/* What the worst pair without a named node loses; -1: no such pair. */
static double loss_of_others(const struct loss_graph *graph)
{
    double others = -1;
    size_t i = 0;

    for (i = 0; i < graph->pairs_count; i++) {
        const struct loss_pair *pair = &graph->pairs[i];

        if (loss_open(graph, pair) && pair->share > others) {
            others = pair->share;
        }
    }
    return others;
}

/* Are there others who talk to each other and lose next to nothing, and are the named few? */
static bool loss_stands_out(const struct loss_graph *graph, double share)
{
    double others = loss_of_others(graph);
    size_t named = 0;
    size_t i = 0;

    for (i = 0; i < graph->nodes_count; i++) {
        named += graph->nodes[i].named;
    }
    return others >= 0 && others < SHK_LOSS_CLEAN * share && 2 * named < graph->nodes_count;
}

static void loss_conclude(struct shk_loss *loss, struct loss_graph *graph)
{
    size_t i = 0;

    loss->share = loss_of_named(graph);
    if (!loss_stands_out(graph, loss->share)) {
        for (i = 0; i < graph->nodes_count; i++) {
            graph->nodes[i].named = shk_loss_names(loss->self, graph->nodes[i].name);
        }
        loss->share = loss_of_named(graph);
    }
    loss->others = loss_of_others(graph);
    for (i = 0; i < graph->nodes_count; i++) {
        if (graph->nodes[i].named) {
            loss_name(loss->nodes, graph->nodes[i].name);
        }
    }
    for (i = 0; i < graph->pairs_count; i++) {
        const struct loss_pair *pair = &graph->pairs[i];

        if (pair->loses && loss_open(graph, pair)) {
            loss_name(loss->rest, graph->nodes[pair->a].name);
            loss_name(loss->rest, graph->nodes[pair->b].name);
            if (json_array_size(loss->nodes) == 0 && pair->share > loss->share) {
                loss->share = pair->share;
            }
        }
    }
}

int shk_loss_of(const json_t *runs, struct shk_loss *loss)
{
    struct loss_graph graph = {0};
    size_t i = 0;
    int rc = 0;

    *loss = (struct shk_loss){.nodes = json_array(), .rest = json_array(), .self = json_array()};
    rc = loss->nodes != NULL && loss->rest != NULL && loss->self != NULL ? loss_gather(runs, loss)
                                                                         : -ENOMEM;
    graph.nodes = calloc(2 * loss->count + 1, sizeof(*graph.nodes));
    graph.pairs = calloc(loss->count + 1, sizeof(*graph.pairs));
    if (rc == 0 && (graph.nodes == NULL || graph.pairs == NULL)) {
        rc = -ENOMEM;
    }
    for (i = 0; rc == 0 && i < loss->count; i++) {
        loss_judge_link(&loss->links[i]);
        loss_pair(&graph, &loss->links[i]);
    }
    if (rc == 0) {
        loss_self(loss, &graph);
        while (loss_next(&graph)) {
        }
        loss_conclude(loss, &graph);
    } else {
        shk_loss_clear(loss);
    }
    free(graph.nodes);
    free(graph.pairs);
    return rc;
}

void shk_loss_clear(struct shk_loss *loss)
{
    free(loss->links);
    json_decref(loss->nodes);
    json_decref(loss->rest);
    json_decref(loss->self);
    *loss = (struct shk_loss){0};
}
