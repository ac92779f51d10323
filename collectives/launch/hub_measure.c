/* An all-reduce over every rank, and what its outcome says: which node is at fault, and when that
 * is open, what a search over parts of the nodes finds out. */
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include "core/run/stop.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What the ranks of the run do not agree about although they must; NULL. */
static const json_t *measure_disagreement(const struct hub_group *group)
{
    const json_t *row = json_array_get(group->result.disagree, 0);

    return json_is_true(json_object_get(row, "must")) ? row : NULL;
}

/* Did another rank meet the same as the one to blame, of itself? A connection that is closed, or a
 * crash, may be what the first one's end led to; what somebody kills, stops or cuts off is not. */
static bool measure_same(const struct hub_group *group, unsigned i)
{
    const struct shk_crew_result *result = &group->result;
    const struct crew_watch *watch = &group->crew.watch[i];
    const struct crew_watch *first = &group->crew.watch[result->rank];

    if (result->ranks[i].status != result->ranks[result->rank].status)
        return false;
    switch (result->ranks[i].status) {
    case SHK_RANK_STOPPED: return true;
    case SHK_RANK_LOST:
        return watch->loss == first->loss && watch->loss != CREW_LOSS_CLOSED &&
               watch->loss != CREW_LOSS_UNKNOWN;
    case SHK_RANK_CRASHED:
        return watch->code == CLD_KILLED && watch->status == SIGKILL && first->code == CLD_KILLED &&
               first->status == SIGKILL;
    default: return false;
    }
}

/* Names of the hosts of the rank to blame and of those that met the same. */
static json_t *measure_hosts(const struct hub_group *group)
{
    json_t *names = json_pack("[s]", group->result.ranks[group->result.rank].host);

    for (unsigned i = 0; i < group->size; i++) {
        if (measure_same(group, i) && !shk_loss_names(names, group->result.ranks[i].host))
            (void)json_array_append_new(names, json_string(group->result.ranks[i].host));
    }
    return names;
}

/* collective.<t>.nodes: hosts of the ranks to blame, or nodes that do not agree. */
static int measure_name_nodes(const struct hub_group *group, const struct shk_transport *transport,
                              struct shk_facts *facts, struct shk_error *err)
{
    json_t *odd = json_object_get(measure_disagreement(group), "odd");
    char *key = NULL;
    json_t *nodes = NULL;
    int rc = 0;

    if (group->undecided)
        odd = group->undecided;
    else if (group->result.rank < 0 && !odd)
        return 0;
    key = shk_strf("collective.%s.nodes", transport->name);
    nodes = odd ? json_incref(odd) : measure_hosts(group);
    rc = key ? shk_facts_present(facts, key, nodes, NULL, "ranks") : -ENOMEM;
    free(key);
    if (rc == 0 && group->undecided) {
        key = shk_strf("collective.%s.undecided", transport->name);
        rc = key ? shk_facts_bool(facts, key, true, "ranks") : -ENOMEM;
        free(key);
    }
    return rc < 0 ? shk_error_sys(err, -rc, "facts of the all-reduce") : 0;
}

/* Largest message that a rank was at. */
static uint64_t measure_bytes(const struct hub_group *group)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < group->size; i++) {
        uint64_t bytes = atomic_load(&group->job->slots[i].bytes);

        most = bytes > most ? bytes : most;
    }
    return most;
}

/* One of several nodes is at fault: the runs over pairs and parts may have shown which. */
static int measure_decide(struct shk_world *world, const struct hub_group *group,
                          const struct shk_transport *transport, struct shk_facts *facts)
{
    static const char source[] = "all-reduces over some of the nodes";
    char *nodes = shk_strf("collective.%s.nodes", transport->name);
    char *undecided = shk_strf("collective.%s.undecided", transport->name);
    char *reason = shk_strf("collective.%s.reason", transport->name);
    bool memory = nodes && undecided && reason;
    const char *was = memory ? shk_facts_get_text(facts, reason) : NULL;
    json_t *names = NULL;
    char *common = hub_path_common(world, &names);
    char *text = NULL;
    int rc = memory ? 0 : -ENOMEM;

    if (rc == 0 && common) {
        text = shk_strf(json_array_size(names) == 1
                            ? "%s; all pairs of nodes whose data is stuck have %s in common"
                            : "%s; in each pair of nodes whose data is stuck there is one of %s",
                        was ? was : "", common);
        rc = text ? shk_facts_text(facts, reason, text, source) : -ENOMEM;
        rc = rc != 0 ? rc : shk_facts_present(facts, nodes, json_incref(names), NULL, source);
    }
    if (rc == 0 && (common || json_array_size(shk_facts_get_array(facts, nodes)) <
                                  json_array_size(group->undecided))) {
        rc = shk_facts_bool(facts, undecided, false, source);
    }
    json_decref(names);
    free(common);
    free(text);
    free(nodes);
    free(undecided);
    free(reason);
    return rc;
}

/* Every rank hung, and only a run over some of the nodes showed on which node's way the data is
 * stuck: in the run over all of them it stood still too late, or was not seen. */
static int measure_path(const struct shk_world *world, const struct hub_group *group,
                        const struct shk_transport *transport, struct shk_facts *facts)
{
    static const char source[] = "all-reduces over some of the nodes";
    const char *was = group->result.cause ? group->result.cause : "";
    char *nodes = shk_strf("collective.%s.nodes", transport->name);
    char *cause = shk_strf("collective.%s.cause", transport->name);
    char *reason = shk_strf("collective.%s.reason", transport->name);
    json_t *names = NULL;
    char *common = hub_path_common(world, &names);
    char *text = NULL;
    char *all = NULL;
    int rc = nodes && cause && reason ? 0 : -ENOMEM;

    if (rc == 0 && common && (*was == '\0' || strcmp(was, "all-hang") == 0)) {
        const char *found = hub_path_cause(world, common, &text);
        const char *said = shk_facts_get_text(facts, reason);

        all = shk_strf("%s; there %s", said ? said : "", text ? text : "");
        rc = all ? shk_facts_text(facts, reason, all, source) : -ENOMEM;
        rc = rc != 0 ? rc : shk_facts_text(facts, cause, found, source);
        rc = rc != 0 ? rc : shk_facts_present(facts, nodes, json_incref(names), NULL, source);
    }
    json_decref(names);
    free(common);
    free(all);
    free(text);
    free(nodes);
    free(cause);
    free(reason);
    return rc;
}

/* May a search over parts of the nodes find out who is at fault? */
static bool measure_is_open(const struct shk_world *world, const struct hub_group *group)
{
    return group->result.rank < 0 && !measure_disagreement(group) &&
           (!group->undecided || world->nodes_count > 2);
}

/* A node had no processor for a rank, but runs over some of the nodes showed who is at fault. */
static int measure_known_after_all(const struct shk_transport *transport, struct shk_facts *facts)
{
    char *status = shk_strf("collective.%s.status", transport->name);
    char *nodes = shk_strf("collective.%s.nodes", transport->name);
    int rc = status && nodes ? 0 : -ENOMEM;

    if (rc == 0 && json_array_size(shk_facts_get_array(facts, nodes)) > 0)
        rc = shk_facts_text(facts, status, "timeout", "all-reduces over some of the nodes");
    free(status);
    free(nodes);
    return rc;
}

/* What more there is to find out: who is at fault, or who is slow. */
static int measure_look_closer(struct shk_world *world, const struct hub_group *group,
                               const struct shk_transport *transport,
                               const struct shk_collective_options *options,
                               struct shk_facts *facts)
{
    char *key = shk_strf("collective.%s.status", transport->name);
    const char *status = key ? shk_facts_get_text(facts, key) : NULL;
    int rc = key ? 0 : -ENOMEM;

    if (status && world->nodes_count > 1 && strcmp(status, "na") != 0 && !options->proof) {
        if (strcmp(status, "ok") == 0) {
            rc = !transport->pairs ? 0 : hub_speed_facts(world, transport, options, facts);
        } else if (shk_stop_signal() == 0 && measure_is_open(world, group)) {
            rc = hub_search(world, transport, options, group, measure_bytes(group), facts);
            if (rc == 0 && group->undecided)
                rc = measure_decide(world, group, transport, facts);
            else if (rc == 0)
                rc = measure_path(world, group, transport, facts);
            if (rc == 0 && group->result.outcome == SHK_CREW_STARVED)
                rc = measure_known_after_all(transport, facts);
        }
    }
    free(key);
    return rc;
}

int shk_world_measure(struct shk_world *world, const struct shk_transport *transport,
                      const struct shk_collective_options *options, struct shk_facts *facts,
                      struct shk_error *err)
{
    struct hub_member **members = calloc(world->size, sizeof *members);
    struct hub_group *group = NULL;
    unsigned count = 0;
    int rc = 0;

    if (transport->within_node) {
        free(members);
        return hub_nodes_measure(world, transport, options, facts, err);
    }
    for (unsigned i = 0; members && i < world->size; i++) {
        if (world->members[i].state == MEMBER_IDLE)
            members[count++] = &world->members[i];
    }
    if (!members || count == 0) {
        free(members);
        return shk_error_set(err, !members ? ENOMEM : ESRCH, "no rank is there");
    }
    group = hub_group_start(world, members, count, transport, options, err);
    free(members);
    if (!group)
        return -ENOMEM;
    json_decref(world->stuck);
    world->stuck = NULL;
    world->stuck_how = (struct hub_stuck){0};
    hub_groups_finish(world, &group, 1);
    hub_net_add(world, group, "all-reduce");
    rc = transport->facts(group->job, &group->result, options, facts, err);
    if (rc == 0)
        rc = measure_name_nodes(group, transport, facts, err);
    if (rc == 0 && measure_look_closer(world, group, transport, options, facts) < 0)
        rc = shk_error_set(err, ENOMEM, "out of memory");
    if (hub_net_facts(world, transport, facts) < 0 && rc == 0)
        rc = shk_error_set(err, ENOMEM, "out of memory");
    hub_group_free(group);
    return rc;
}
