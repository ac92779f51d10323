#include "collectives/launch/world_private.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static bool world_first(const char *const *names, unsigned *value_p)
{
    for (; names && *names; names++) {
        if (shk_meet_number(getenv(*names), value_p))
            return true;
    }
    return false;
}

/* Tasks of this node out of "4(x2),1" and this node's place in the step. */
static unsigned world_local(const struct shk_launch *launch)
{
    const char *list = launch->tasks_per_node ? getenv(*launch->tasks_per_node) : NULL;
    unsigned node = 0;

    return world_first(launch->node_rank, &node) ? shk_launch_tasks_of(list, node) : 0;
}

const char *world_variable(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

/* They did not meet: the first task of each node works on its own. */
static void world_alone(struct shk_world *world)
{
    const struct shk_launch *launch = shk_launch_find(world_variable, NULL);
    unsigned local_rank = 0;

    world->role = SHK_WORLD_ALONE;
    if (!launch || !world_first(launch->ranks, &world->tasks) || world->tasks < 2) {
        world->single = !(launch && launch->allocation) && world->tasks == 1;
        world->tasks = 0;
        return;
    }
    world->launch = launch;
    if (launch->allocation)
        return;
    if (!world_first(launch->local_ranks, &world->local))
        world->local = world_local(launch);
    if (world_first(launch->local_rank, &local_rank) && local_rank > 0)
        world->role = SHK_WORLD_SILENT;
}

/* May this process join through PMIx, as the rank that the launcher gave to it and no other? */
bool world_offered(unsigned *rank_p)
{
    const struct shk_launch *launch = shk_launch_find(world_variable, NULL);

    return (!launch || !launch->inherits) && shk_pmix_offered(rank_p);
}

int shk_world_open(struct shk_world **world_p, const struct shk_world_options *options,
                   struct shk_error *err)
{
    struct shk_world *world = calloc(1, sizeof *world);
    int rc = 0;

    if (!world)
        return shk_error_set(err, ENOMEM, "out of memory");
    world->options = options;
    (void)gethostname(world->host, sizeof world->host - 1);
    world->listen_fd = -1;
    world->start_ns = shk_job_now_ns();
    rc = world_join(world, err);
    if (rc == 0 && world->role == SHK_WORLD_ALONE)
        world_alone(world);
    if (rc < 0) {
        shk_world_close(world, 0);
        return rc;
    }
    *world_p = world;
    return 0;
}

enum shk_world_role shk_world_role(const struct shk_world *world)
{
    return world->role;
}

bool shk_world_speaks(const struct shk_world *world)
{
    unsigned unused = 0;
    bool lost = world->meet.way == SHK_MEET_NONE && world->pmix.status != SHK_PMIX_OK &&
                world_offered(&unused);
    bool sole = !world->launch || world->launch->allocation;

    /* PMIx that was offered and did not answer belongs to a job of unknown size, unless the
     * launcher's own variables tell that this is its only task. */
    return world->role == SHK_WORLD_ROOT ||
           (world->role == SHK_WORLD_ALONE && sole && (!lost || world->single));
}

unsigned shk_world_local_tasks(const struct shk_world *world)
{
    return world->local;
}

unsigned shk_world_most_local(const struct shk_world *world)
{
    unsigned *here = calloc(world->nodes_count + 1, sizeof *here);
    unsigned most = 0;

    for (unsigned i = 0; here && i < world->size; i++) {
        const json_t *node = json_object_get(world->nodes_known, world->members[i].host);

        if (node && world->members[i].state == MEMBER_IDLE) {
            unsigned count = ++here[json_integer_value(node)];

            most = count > most ? count : most;
        }
    }
    free(here);
    return most;
}

int shk_world_serve(struct shk_world *world, struct shk_error *err)
{
    int fd = -1;
    int rc = world_connect(world, world->options->deadline_ms / 3, &fd, err);

    return rc < 0 ? rc
                  : agent_serve(world, fd, world->self.rank, (unsigned)world->self.local_rank, err);
}

/* {rank, host} of each rank that is not there, and why. launch: rank 0 could not take it, or it is
 * another program; nothing is known against its node. either: nor when one other host was lost,
 * which rank 0's own host may have caused, or it fell silent and nothing tells why. */
static json_t *world_missing(const struct shk_world *world)
{
    enum hub_cut cut = hub_cut(world);
    json_t *missing = json_array();
    unsigned i = 0;

    for (i = 0; i < world->size; i++) {
        const struct hub_member *member = &world->members[i];
        bool never = member->state == MEMBER_ABSENT;
        const char *absent = member->refused[0] != '\0'       ? member->refused
                             : world->problem.text[0] != '\0' ? world->problem.text
                                                              : "it never came";

        bool launch = never && (member->refused[0] != '\0' || world->problem.text[0] != '\0');

        if (cut == HUB_CUT_OWN && member->state == MEMBER_LOST)
            continue;
        if (never || member->state == MEMBER_LOST) {
            (void)json_array_append_new(
                missing,
                json_pack("{s:i, s:o, s:o, s:b, s:b}", "rank", (int)i, "host",
                          shk_json_text(member->host, strlen(member->host)), "why",
                          never ? shk_json_text(absent, strlen(absent))
                                : json_string("it was there and is gone"),
                          "launch", launch, "either",
                          !never && (cut == HUB_CUT_EITHER || member->loss == CREW_LOSS_SILENT)));
        }
    }
    if (cut == HUB_CUT_OWN) {
        (void)json_array_append_new(
            missing,
            json_pack("{s:i, s:o, s:s, s:b}", "rank", 0, "host",
                      shk_json_text(world->host, strlen(world->host)), "why",
                      "its host lost its connection to all others at once", "launch", false));
    }
    for (i = 0; i < world->nodes_count; i++) {
        const struct hub_node *node = &world->nodes[i];

        if (node->why.text[0] != '\0') {
            (void)json_array_append_new(
                missing, json_pack("{s:n, s:o, s:o}", "rank", "host",
                                   shk_json_text(node->name, strlen(node->name)), "why",
                                   shk_json_text(node->why.text, strlen(node->why.text))));
        }
    }
    return missing;
}

static json_t *world_layout(const struct shk_world *world)
{
    json_t *layout = json_array();

    for (size_t i = 0; i < world->nodes_count; i++) {
        const char *name = world->nodes[i].name;

        (void)json_array_append_new(
            layout, json_pack("{s:o, s:[]}", "node", shk_json_text(name, strlen(name)), "ranks"));
    }
    for (unsigned rank = 0; rank < world->size; rank++) {
        json_t *node = json_object_get(world->nodes_known, world->members[rank].host);

        if (node) {
            json_t *row = json_array_get(layout, (size_t)json_integer_value(node));

            (void)json_array_append_new(json_object_get(row, "ranks"), json_integer(rank));
        }
    }
    return layout;
}

/* Tasks that found no job together. */
static json_t *world_alone_fact(const struct shk_world *world)
{
    json_t *alone = json_pack("{s:s, s:s, s:b, s:i, s:i}", "launcher", world->launch->title, "name",
                              world->launch->name, "allocation", world->launch->allocation, "tasks",
                              (int)world->tasks, "local", (int)world->local);
    unsigned nodes = 0;

    if (world->meet.why_not[0] != '\0') {
        (void)json_object_set_new(alone, "why",
                                  shk_json_text(world->meet.why_not, strlen(world->meet.why_not)));
    }
    if (world_first(world->launch->nodes, &nodes))
        (void)json_object_set_new(alone, "nodes", json_integer(nodes));
    return alone;
}

/* What came of the PMIx that the launcher offers. */
static int world_pmix_facts(const struct shk_world *world, struct shk_facts *facts)
{
    static const char source[] = "PMIx";
    const struct shk_pmix *pmix = &world->pmix;
    int rc = 0;

    if (pmix->status != SHK_PMIX_OK) {
        if (pmix->version[0] != '\0') { /* that was loaded and failed */
            rc = shk_facts_text(facts, "job.pmix.version", pmix->version, source);
        }
        rc = rc != 0 ? rc : shk_facts_text(facts, "job.pmix.problem", pmix->reason.text, source);
        rc = rc != 0 ? rc
                     : shk_facts_text(facts, "job.pmix.cause",
                                      !shk_pmix_built() ? "not-built"
                                      : pmix->missing   ? "no-library"
                                                        : "failed",
                                      source);
        return rc != 0 ? rc
                       : shk_facts_absent(facts, "job.pmix.library", source, "not joined: %s",
                                          pmix->reason.text);
    }
    rc = shk_facts_text(facts, "job.pmix.library", pmix->library, source);
    return rc != 0 ? rc : shk_facts_text(facts, "job.pmix.version", pmix->version, source);
}

int shk_world_facts(const struct shk_world *world, struct shk_facts *facts)
{
    unsigned unused = 0;
    int rc = 0;

    rc = shk_pmix_built()
             ? shk_facts_bool(facts, "job.pmix.built", true, "build")
             : shk_facts_absent(facts, "job.pmix.built", "build", "built without pmix.h");
    if (rc == 0 && world->launch)
        rc = shk_facts_present(facts, "job.alone", world_alone_fact(world), NULL, "environment");
    if (rc == 0 && world_offered(&unused) && world->pmix.tried)
        rc = world_pmix_facts(world, facts);
    if (world->role == SHK_WORLD_ROOT) {
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.joined", world_joined_fact(world), NULL,
                                         "how the ranks met");
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.missing", world_missing(world), NULL,
                                         "ranks that came to rank 0");
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.layout", world_layout(world), NULL,
                                         "ranks that came to rank 0");
        rc = rc != 0 ? rc
                     : shk_facts_present(facts, "job.clocks", hub_clocks_json(world), NULL,
                                         "half of the shortest round trip to each node");
    }
    return rc;
}
