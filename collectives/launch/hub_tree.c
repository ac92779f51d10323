/* The tree through which large jobs get what their ranks publish: rank 0 sends it to some ranks,
 * each of which passes it on to some. Every rank keeps its own link to rank 0: a rank that is not
 * joined to the tree, or whose parent fails it, gets the frames there. */
#include "collectives/launch/world_private.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* From this many ranks on a tree is made. Below it rank 0 sends 40 MB at most, 0.3 s on a network
 * of 1 Gb/s; docs/dev/performance.md has what it would be for more. */
#define TREE_FROM 1024U

/* Ranks that one passes on to: 4,096 are two levels, 266,304 three. */
#define TREE_WIDTH 64U

struct hub_branch {
    unsigned rank;
    bool asked; /* to pass on, it has not said yet where */
    bool fed;   /* it takes frames from its parent */
};

struct hub_tree {
    unsigned width, count;
    struct hub_branch *branches; /* those of i are width * (i + 1) and the width - 1 after it */
    unsigned *places;            /* by rank: index of its branch; UINT_MAX: none */
};

static unsigned tree_parent(const struct hub_tree *tree, unsigned at)
{
    return at < tree->width ? UINT_MAX : at / tree->width - 1;
}

static struct hub_branch *tree_branch(const struct shk_world *world, unsigned rank)
{
    unsigned at = world->tree ? world->tree->places[rank] : UINT_MAX;
    return at != UINT_MAX ? &world->tree->branches[at] : NULL;
}

/* How the others reach the host of a rank: as rank 0 sees it. False: it is on no network. */
static bool tree_address(const struct hub_member *member, char *text, size_t size)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&peer;
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *to = (struct sockaddr *)&peer;
    if (member->link.fd < 0 || getpeername(member->link.fd, to, &len) ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
        return false;
    if (peer.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
        to = (struct sockaddr *)&four;
        len = sizeof four;
    }
    return getnameinfo(to, len, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0;
}

/* Asks a branch to pass on to its own ones; false: it has none. */
static bool tree_ask(struct shk_world *world, unsigned at)
{
    struct hub_tree *tree = world->tree;
    uint32_t ranks[TREE_WIDTH_MAX];
    unsigned count = 0;
    while (count < tree->width && tree->width * (at + 1) + count < tree->count) {
        ranks[count] = tree->branches[tree->width * (at + 1) + count].rank;
        count++;
    }
    if (count == 0)
        return false;
    tree->branches[at].asked = true;
    (void)shk_link_send(&world->members[tree->branches[at].rank].link, SHK_FRAME_RELAY, ranks,
                        count * sizeof ranks[0]);
    return true;
}

/* Ranks that others can reach, and that are there: of those with the most to pass on none shares
 * its node with another. */
static void tree_fill(const struct shk_world *world, struct hub_tree *tree, bool leaders)
{
    char address[NI_MAXHOST];
    for (unsigned i = 0; i < world->size; i++) {
        const struct hub_member *member = &world->members[i];
        bool there = member->state == MEMBER_IDLE || member->state == MEMBER_RUNNING;
        if (!there || (member->local_rank == 0) != leaders ||
            !tree_address(member, address, sizeof address))
            continue;
        tree->places[i] = tree->count;
        tree->branches[tree->count++].rank = i;
    }
}

static int tree_make(struct shk_world *world, unsigned width)
{
    struct hub_tree *tree = calloc(1, sizeof *tree);
    world->tree = tree;
    if (!tree)
        return -ENOMEM;
    tree->width = width < TREE_WIDTH_MAX ? width : TREE_WIDTH_MAX;
    tree->branches = calloc(world->size, sizeof *tree->branches);
    tree->places = calloc(world->size, sizeof *tree->places);
    if (!tree->branches || !tree->places)
        return -ENOMEM;
    for (unsigned i = 0; i < world->size; i++)
        tree->places[i] = UINT_MAX;
    tree_fill(world, tree, true);
    tree_fill(world, tree, false);
    return 0;
}

void hub_tree_begin(struct shk_world *world, const struct hub_group *group)
{
    const struct shk_world_options *options = world->options;
    unsigned from = options->tree_from ? options->tree_from : TREE_FROM;
    if (world->tree || !world->greets || group->size < from)
        return;
    if (tree_make(world, options->tree_width ? options->tree_width : TREE_WIDTH)) {
        hub_tree_free(world);
        return;
    }
    unsigned asked = 0;
    while (asked < world->tree->count && tree_ask(world, asked))
        asked++;
    world_say(world, "what the ranks publish is passed on by %u of them", asked);
}

void hub_tree_free(struct shk_world *world)
{
    if (world->tree) {
        free(world->tree->branches);
        free(world->tree->places);
    }
    free(world->tree);
    world->tree = NULL;
}

/* A rank listens: those that it is to pass on to are told where. */
static void tree_listens(struct shk_world *world, struct hub_member *member, uint32_t port)
{
    struct hub_tree *tree = world->tree;
    struct hub_branch *branch = tree_branch(world, member->rank);
    struct world_parent_frame parent = {.port = port};
    if (!branch || !branch->asked || port == 0 || port > 65535 ||
        !tree_address(member, parent.address, sizeof parent.address))
        return;
    branch->asked = false;
    unsigned first = tree->width * (unsigned)(branch - tree->branches + 1);
    for (unsigned at = first; at < first + tree->width && at < tree->count; at++)
        (void)shk_link_send(&world->members[tree->branches[at].rank].link, SHK_FRAME_PARENT,
                            &parent, sizeof parent);
}

/* What it has not got it gets from rank 0, now and from now on. */
static void tree_wants(struct shk_world *world, struct hub_member *member,
                       const struct world_puts_frame *have)
{
    struct hub_branch *branch = tree_branch(world, member->rank);
    struct hub_group *group = member->group;
    bool fed = branch && branch->fed;
    if (branch)
        branch->fed = false;
    if (fed && group && have->run == group->run && have->number < group->fed[member->index])
        group->fed[member->index] = have->number;
}

void hub_tree_frame(struct shk_world *world, struct hub_member *member,
                    const struct shk_frame *frame)
{
    struct hub_branch *branch = tree_branch(world, member->rank);
    struct world_puts_frame have;
    uint32_t value = 0;
    if (frame->type == SHK_FRAME_WANT_PUTS && frame->len == sizeof have) {
        memcpy(&have, frame->data, sizeof have);
        tree_wants(world, member, &have);
    } else if (branch && frame->len == sizeof value) {
        memcpy(&value, frame->data, sizeof value);
        if (frame->type == SHK_FRAME_RELAY)
            tree_listens(world, member, value);
        else if (frame->type == SHK_FRAME_PARENT)
            branch->fed = branch - world->tree->branches >= world->tree->width;
    }
}

bool hub_tree_feeds(const struct shk_world *world, const struct hub_member *member)
{
    const struct hub_branch *branch = tree_branch(world, member->rank);
    if (!branch || !branch->fed)
        return false;
    unsigned parent = tree_parent(world->tree, (unsigned)(branch - world->tree->branches));
    const struct hub_member *from =
        parent != UINT_MAX ? &world->members[world->tree->branches[parent].rank] : NULL;
    return from && from->state == MEMBER_RUNNING && from->group == member->group;
}

unsigned hub_tree_joined(const struct shk_world *world)
{
    unsigned joined = 0;
    for (unsigned i = 0; world->tree && i < world->tree->count; i++) {
        const struct hub_branch *branch = &world->tree->branches[i];
        joined += branch->fed && world->members[branch->rank].state != MEMBER_LOST;
    }
    return joined;
}
