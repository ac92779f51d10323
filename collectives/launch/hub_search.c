/* When an all-reduce over all ranks fails and no rank stands out: pairs of nodes, then parts of the
 * nodes with all their ranks, until a node or a pair is left or the time is used up. */
#include "collectives/algorithm/bisect.h"
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include "core/run/stop.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A search may take as long as the all-reduce was allowed to, or without a deadline this long. */
#define SEARCH_MS 60000U

/* One all-reduce of the search: enough to connect and exchange some messages, also on a crowded
 * machine. Of the whole search a fifth at most, so that several fit. */
#define SEARCH_PAIR_MS  5000U
#define SEARCH_PART_MS  10000U
#define SEARCH_SHARE    5U
#define SEARCH_LEAST_MS 3000U

/* Measuring who is slow is all there is to do after an all-reduce that was getting on, twice: each
 * time gets this share. */
#define SEARCH_SLOW_SHARE 3U

/* Of the deadline for finding slow pairs after an all-reduce that passed: a half. */
#define SEARCH_SPEED_MS 10000U

#define SEARCH_MIN_BYTES ((uint64_t)65536)
#define SEARCH_MAX_BYTES ((uint64_t)4 << 20)

/* A set of nodes is written out up to this size, else as its number, first and last. */
#define SEARCH_NAMES 8U

struct search {
    struct shk_world *world;
    const struct shk_transport *transport;
    struct shk_collective_options options; /* of one all-reduce over a part of the nodes */
    uint64_t end_ns;
    bool moving;       /* the all-reduce was getting on, too slowly */
    bool hang;         /* the all-reduce that failed had to be ended */
    enum shk_phase at; /* while it was there; see hub_group_late() */
    bool undecided;    /* a part was late, also by itself */
    unsigned *node_of; /* by rank */
    bool *in;          /* by node: takes part in the trial */
    json_t *tried;     /* [{nodes, first, last, ranks, ok, ms, reason}] */
    unsigned trials;
};

static unsigned search_share(unsigned budget_ms, unsigned most_ms)
{
    unsigned share = budget_ms / SEARCH_SHARE;

    share = share < most_ms ? share : most_ms;
    return share > SEARCH_LEAST_MS ? share : SEARCH_LEAST_MS;
}

static int search_set(struct shk_facts *facts, const struct shk_transport *transport,
                      const char *member, json_t *value)
{
    char *key = shk_strf("collective.%s.%s", transport->name, member);
    int rc = -ENOMEM;

    if (key && value)
        rc = shk_facts_present(facts, key, value, NULL, "all-reduces over some of the nodes");
    else
        json_decref(value);
    free(key);
    return rc;
}

/* Every rank that is idle on one of the nodes. */
static struct hub_group *search_start(struct search *search, const struct shk_bisect_trial *trial)
{
    struct shk_world *world = search->world;
    struct hub_member **members = calloc(world->size, sizeof *members);
    struct hub_group *group = NULL;
    unsigned count = 0;

    memset(search->in, 0, world->nodes_count * sizeof *search->in);
    for (unsigned i = 0; i < trial->count; i++)
        search->in[trial->nodes[i]] = true;
    for (unsigned rank = 0; members && rank < world->size; rank++) {
        unsigned node = search->node_of[rank];

        if (node < world->nodes_count && search->in[node] &&
            world->members[rank].state == MEMBER_IDLE) {
            members[count++] = &world->members[rank];
        }
    }
    if (count > 0)
        group = hub_group_start(world, members, count, search->transport, &search->options, NULL);
    if (group)
        group->hasty = true;
    free(members);
    return group;
}

static void search_note(struct search *search, const struct shk_bisect_trial *trial,
                        const struct hub_group *group)
{
    const struct hub_node *nodes = search->world->nodes;
    const char *first = nodes[trial->nodes[0]].name;
    const char *last = nodes[trial->nodes[trial->count - 1]].name;

    search->trials++;
    (void)json_array_append_new(
        search->tried,
        json_pack("{s:i, s:o, s:o, s:i, s:b, s:f, s:s}", "nodes", (int)trial->count, "first",
                  shk_json_text(first, strlen(first)), "last", shk_json_text(last, strlen(last)),
                  "ranks", (int)group->size, "ok", !trial->failed, "ms",
                  (double)(group->over_ns - group->crew.start_ns) / 1e6, "reason",
                  group->result.reason.text));
}

static void search_run(struct search *search, struct shk_bisect_trial *trials, unsigned count,
                       struct hub_group **groups)
{
    for (unsigned i = 0; i < count; i++)
        groups[i] = search_start(search, &trials[i]);
    hub_groups_finish(search->world, groups, count);
    for (unsigned i = 0; i < count; i++) {
        trials[i].failed =
            groups[i] && hub_group_failed(groups[i], search->transport, &search->options);
        if (groups[i])
            search_note(search, &trials[i], groups[i]);
    }
}

static bool search_late(const struct search *search, const struct shk_bisect_trial *trial,
                        const struct hub_group *group)
{
    return trial->failed && group && hub_group_late(group, search->at);
}

/* A trial whose end in time says nothing: again, by itself, with more time. False: it still says
 * nothing. */
static bool search_again(struct search *search, struct shk_bisect_trial *trial,
                         struct hub_group **group)
{
    unsigned deadline_ms = search->options.deadline_ms;
    bool late = search_late(search, trial, *group);

    hub_group_free(*group);
    *group = NULL;
    if (late && shk_job_now_ns() + 2 * deadline_ms * 1000000ULL < search->end_ns) {
        search->options.deadline_ms = 2 * deadline_ms;
        search_run(search, trial, 1, group);
        search->options.deadline_ms = deadline_ms;
        late = search_late(search, trial, *group);
        hub_group_free(*group);
        *group = NULL;
    }
    return !late;
}

static int search_try(void *arg, struct shk_bisect_trial *trials, unsigned count)
{
    struct search *search = arg;
    struct hub_group **groups = calloc(count, sizeof *groups);

    if (!groups)
        return -ENOMEM;
    if (shk_stop_signal() != 0 ||
        shk_job_now_ns() + search->options.deadline_ms * 1000000ULL > search->end_ns) {
        free(groups);
        return -ETIMEDOUT;
    }
    world_say(search->world, "parts of the nodes, %u at once, of %u nodes and more", count,
              trials[0].count);
    search_run(search, trials, count, groups);
    for (unsigned i = 0; i < count; i++)
        search->undecided = !search_again(search, &trials[i], &groups[i]) || search->undecided;
    free(groups);
    return search->undecided ? -ETIMEDOUT : 0;
}

static json_t *search_names(const struct search *search, const struct shk_bisect_result *result)
{
    json_t *names = json_array();

    for (unsigned i = 0; i < result->count; i++) {
        const char *name = search->world->nodes[result->nodes[i]].name;

        (void)json_array_append_new(names, shk_json_text(name, strlen(name)));
    }
    return names;
}

static void search_list(struct shk_strbuf *sb, const json_t *names)
{
    size_t count = json_array_size(names);

    if (count > SEARCH_NAMES) {
        shk_strbuf_printf(sb, "%zu nodes (%s to %s)", count,
                          json_string_value(json_array_get(names, 0)),
                          json_string_value(json_array_get(names, count - 1)));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        shk_strbuf_printf(sb, "%s%s",
                          i == 0           ? ""
                          : i + 1 == count ? " and "
                                           : ", ",
                          json_string_value(json_array_get(names, i)));
    }
}

/* What came of it, as words; *named_p: the nodes are at fault. */
static void search_say(const struct search *search, struct shk_strbuf *sb,
                       const struct shk_bisect_result *result, const json_t *names, bool *named_p)
{
    *named_p = false;
    switch (result->kind) {
    case SHK_BISECT_PASSED: shk_strbuf_puts(sb, "all nodes together passed this time"); break;
    case SHK_BISECT_ALL:
        shk_strbuf_puts(sb, "every node fails with its own ranks alone: it is not the network "
                            "between them");
        break;
    case SHK_BISECT_NUMBER:
        shk_strbuf_printf(sb,
                          "any %u nodes fail together, fewer do not: no single node is at fault",
                          result->count);
        break;
    case SHK_BISECT_CHANCE:
        shk_strbuf_puts(sb, "what failed passed when tried again: it fails intermittently");
        break;
    case SHK_BISECT_ENDED:
        if (search->undecided) {
            shk_strbuf_puts(sb, "one timed out without a hang: inconclusive");
            break;
        }
        shk_strbuf_puts(sb, "the time ran out at a set that fails: ");
        search_list(sb, names);
        break;
    case SHK_BISECT_ALONE:
        search_list(sb, names);
        shk_strbuf_printf(sb, " fail%s with its own ranks alone, other nodes do not",
                          result->count == 1 ? "s" : "");
        *named_p = true;
        break;
    case SHK_BISECT_NODE:
        search_list(sb, names);
        shk_strbuf_puts(sb, " makes others fail, which pass with another node in its place");
        *named_p = true;
        break;
    case SHK_BISECT_PAIR:
    case SHK_BISECT_GROUP:
        search_list(sb, names);
        shk_strbuf_puts(sb, " fail together, each of them passes without the other");
        shk_strbuf_puts(sb, result->count > 2 ? "s" : "");
        *named_p = result->count <= SEARCH_NAMES;
        break;
    }
}

/* Parts of the nodes. Adds to `sb` what was found, and the nodes at fault to *names_p. */
static int search_parts(struct search *search, struct shk_strbuf *sb, json_t **names_p)
{
    struct shk_bisect_result result;
    json_t *names = NULL;
    bool named = false;

    if (shk_bisect((unsigned)search->world->nodes_count, search_try, search, &result) < 0)
        return -ENOMEM;
    names = search_names(search, &result);
    shk_strbuf_printf(sb, "; %u all-reduce%s over parts of the nodes with all their ranks: ",
                      search->trials, search->trials == 1 ? "" : "s");
    search_say(search, sb, &result, names, &named);
    free(result.nodes);
    if (named)
        *names_p = names;
    else
        json_decref(names);
    return 0;
}

/* Who loses packets, from the sockets of all runs so far: the measurement of pairs tells more, and
 * need not come to its end for that. */
static int search_loss(struct search *search, struct shk_strbuf *sb, json_t **names_p)
{
    struct shk_loss loss;
    int rc = shk_loss_of(search->world->net, &loss);

    if (rc == -EINVAL)
        return 0;
    if (rc == 0 && json_array_size(loss.nodes) > 0) {
        shk_strbuf_puts(sb, "; packets are lost at ");
        search_list(sb, loss.nodes);
        json_decref(*names_p);
        *names_p = json_incref(loss.nodes);
    }
    if (rc == 0)
        shk_loss_clear(&loss);
    return rc;
}

/* What the speeds of pairs say. A slow pair is no node at fault: either end may be. */
static void search_speed(struct shk_strbuf *sb, const struct hub_speed *speed, json_t **names_p)
{
    if (json_array_size(speed->judged.nodes) > 0) {
        shk_strbuf_puts(sb, "; slower than the others: ");
        search_list(sb, speed->judged.nodes);
        json_decref(*names_p);
        *names_p = json_incref(speed->judged.nodes);
    } else if (json_array_size(speed->judged.ends) > 0) {
        shk_strbuf_puts(sb, "; slower than between others: ");
        search_list(sb, speed->judged.ends);
    } else {
        shk_strbuf_puts(sb, speed->summary ? ", none of them much slower than the others"
                                           : "; how fast they are was not measured");
    }
}

static int search_slow(struct search *search, unsigned deadline_ms, struct shk_facts *facts,
                       struct shk_strbuf *sb, json_t **names_p)
{
    struct shk_collective_options options = search->options;
    struct hub_speed speed;
    int rc = 0;

    if (!search->transport->pairs)
        return search_loss(search, sb, names_p);
    options.deadline_ms = deadline_ms;
    rc = hub_speed(search->world, search->transport, &options, search->end_ns, &speed);
    if (rc == 0 && (speed.summary || search->moving))
        search_speed(sb, &speed, names_p);
    if (rc == 0 && speed.summary)
        rc = search_set(facts, search->transport, "pair_speed", json_incref(speed.summary));
    hub_speed_clear(&speed);
    return rc == 0 ? search_loss(search, sb, names_p) : rc;
}

static int search_pairs(struct search *search, unsigned budget_ms, struct shk_facts *facts,
                        struct shk_strbuf *sb, json_t **names_p)
{
    struct shk_collective_options options = search->options;
    struct hub_pairs pairs;
    int rc = 0;

    options.deadline_ms = search_share(budget_ms, SEARCH_PAIR_MS);
    if (hub_pairs(search->world, search->transport, &options, search->at, search->end_ns, &pairs) <
        0) {
        return -ENOMEM;
    }
    shk_strbuf_printf(sb, "; tried then: %u round%s of pairs of nodes", pairs.rounds,
                      pairs.rounds == 1 ? "" : "s");
    if (pairs.how) {
        shk_strbuf_puts(sb, ": ");
        search_list(sb, pairs.nodes);
        shk_strbuf_printf(sb, " %s", pairs.how);
        *names_p = json_incref(pairs.nodes);
    }
    json_decref(pairs.nodes);
    rc = search_set(facts, search->transport, "pairs", pairs.rows);
    return rc;
}

/* Which node each rank is on. */
static int search_index(struct search *search)
{
    struct shk_world *world = search->world;
    json_t *known = json_object();

    search->node_of = calloc(world->size, sizeof *search->node_of);
    search->in = calloc(world->nodes_count, sizeof *search->in);
    for (size_t i = 0; i < world->nodes_count; i++)
        (void)json_object_set_new(known, world->nodes[i].name, json_integer((json_int_t)i));
    for (size_t i = 0; search->node_of && i < world->size; i++) {
        const json_t *node = json_object_get(known, world->members[i].host);

        search->node_of[i] = node ? (unsigned)json_integer_value(node) : UINT_MAX;
    }
    json_decref(known);
    return known && search->node_of && search->in ? 0 : -ENOMEM;
}

static uint64_t search_bytes(uint64_t bytes)
{
    bytes = bytes < SEARCH_MIN_BYTES ? SEARCH_MIN_BYTES : bytes;
    return bytes > SEARCH_MAX_BYTES ? SEARCH_MAX_BYTES : bytes;
}

static int search_finish(struct search *search, struct shk_facts *facts, struct shk_strbuf *sb,
                         json_t *names)
{
    char *key = shk_strf("collective.%s.reason", search->transport->name);
    const char *was = key ? shk_facts_get_text(facts, key) : NULL;
    char *text = shk_strf("%s%s", was ? was : "failed", shk_strbuf_text(sb));
    int rc = key && text && !sb->failed
                 ? shk_facts_text(facts, key, text, "all-reduces over some of the nodes")
                 : -ENOMEM;

    if (rc == 0 && json_array_size(search->tried) > 0)
        rc = search_set(facts, search->transport, "search", json_incref(search->tried));
    if (rc == 0 && names)
        rc = search_set(facts, search->transport, "nodes", json_incref(names));
    free(key);
    free(text);
    return rc;
}

int hub_search(struct shk_world *world, const struct shk_transport *transport,
               const struct shk_collective_options *options, const struct hub_group *failed,
               uint64_t bytes, struct shk_facts *facts)
{
    const struct shk_crew_result *result = &failed->result;
    unsigned budget_ms = options->deadline_ms != 0 ? options->deadline_ms : SEARCH_MS;
    struct search search = {
        .world = world,
        .transport = transport,
        .options = *options,
        .end_ns = shk_job_now_ns() + budget_ms * 1000000ULL,
        .tried = json_array(),
    };
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    json_t *names = NULL;
    int rc = search.tried ? search_index(&search) : -ENOMEM;

    search.hang = result->outcome == SHK_CREW_TIMEOUT || result->outcome == SHK_CREW_STARVED;
    search.at = search.hang ? hub_group_phase(failed) : SHK_PHASE_DONE;
    search.moving = result->moving;
    search.options.progress = NULL;
    search.options.min_bytes = search.options.max_bytes = (size_t)search_bytes(bytes);
    search.options.deadline_ms = search_share(budget_ms, SEARCH_PART_MS);
    if (rc == 0 && search.moving)
        rc = search_slow(&search, budget_ms / SEARCH_SLOW_SHARE, facts, &sb, &names);
    if (rc == 0 && !names)
        rc = search_pairs(&search, budget_ms, facts, &sb, &names);
    /* Slow enough looks like a hang. */
    if (rc == 0 && !names && search.hang && !search.moving)
        rc = search_slow(&search, search.options.deadline_ms, facts, &sb, &names);
    if (rc == 0 && !names && !search.moving)
        rc = search_parts(&search, &sb, &names);
    rc = rc == 0 ? search_finish(&search, facts, &sb, names) : rc;
    json_decref(names);
    json_decref(search.tried);
    free(search.node_of);
    free(search.in);
    shk_strbuf_free(&sb);
    return rc;
}

int hub_speed_facts(struct shk_world *world, const struct shk_transport *transport,
                    const struct shk_collective_options *options, struct shk_facts *facts)
{
    struct shk_collective_options how = *options;
    unsigned budget_ms = (options->deadline_ms != 0 ? options->deadline_ms : SEARCH_MS) / 2;
    struct hub_speed speed = {0};
    char *key = shk_strf("collective.%s.pair_speed", transport->name);
    int rc = key ? 0 : -ENOMEM;

    how.deadline_ms = budget_ms / 2 < SEARCH_SPEED_MS ? budget_ms / 2 : SEARCH_SPEED_MS;
    if (rc == 0)
        rc = hub_speed(world, transport, &how, shk_job_now_ns() + budget_ms * 1000000ULL, &speed);
    if (rc == 0 && speed.summary)
        rc = search_set(facts, transport, "pair_speed", json_incref(speed.summary));
    else if (rc == 0 && speed.why.text[0] != '\0')
        rc = shk_facts_failed(facts, key, "pairs of nodes", "%s", speed.why.text);
    hub_speed_clear(&speed);
    free(key);
    return rc < 0 ? -ENOMEM : 0;
}
