/* Ranks that lie to rank 0. The input is a list of records {u8 whom and what, u8, u16 length,
 * bytes}: frames of three ranks and of strangers, and what happens between them; with the second
 * bit of the first byte over TCP, so that there is a tree. At the end an all-reduce must have its
 * result, in facts that can be stored. */
#include "collectives/fabric/fabric.h"
#include "collectives/launch/world_private.h"
#include "fuzz.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HUB_RANKS = 3, HUB_PEERS = 4, HUB_FRAME_MAX = 16384 };
enum { HUB_HANG_UP = 14, HUB_MEASURE = 15 };
#define HUB_TOKEN "00112233445566778899aabbccddeeff"

struct hub {
    struct shk_world *world;
    struct hub_group *group;
    int peer[HUB_PEERS]; /* the other end of a rank's or a stranger's link; -1 closed */
    bool tcp;
};

static const struct shk_world_options hub_options = {
    .version = "fuzz", .deadline_ms = 1000, .tree_from = 2, .tree_width = 1};
static const struct shk_collective_options hub_sweep = {
    .ranks = HUB_RANKS, .min_bytes = 4, .max_bytes = 64, .deadline_ms = 1000};

/* Two ends of a connection of this host. */
static int hub_tcp(int fds[2])
{
    static unsigned port;
    static int listener = -1;
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct linger now = {.l_onoff = 1}; /* nothing that ends waits for its port */
    struct shk_error err = {""};
    int one = 1;

    if (listener < 0)
        listener = shk_card_listen(NULL, 0, true, &port, &err);
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fds[1] < 0 || connect(fds[1], (struct sockaddr *)&to, sizeof(to)) != 0)
        return -1;
    (void)setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void)setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fds[0] = accept(listener, NULL, NULL);
    return fds[0] < 0 ? -1 : 0;
}

static void hub_connect(struct hub *hub, unsigned peer)
{
    struct shk_world *world = hub->world;
    struct shk_link *more = NULL;
    int fds[2];

    if (hub->peer[peer] >= 0)
        close(hub->peer[peer]);
    more = realloc(world->strangers, (world->strangers_count + 1) * sizeof(*more));
    if (more == NULL ||
        (hub->tcp ? hub_tcp(fds) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) != 0)
        abort();
    world->strangers = more;
    more[world->strangers_count] = (struct shk_link){0};
    shk_link_open(&more[world->strangers_count], fds[0]);
    more[world->strangers_count++].limit = 4096;
    hub->peer[peer] = fds[1];
}

static void hub_say(struct hub *hub, unsigned peer, uint32_t type, const void *data, uint32_t len)
{
    uint32_t head[2] = {type, len};

    if (hub->peer[peer] < 0 ||
        send(hub->peer[peer], head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        hub_connect(hub, peer); /* it was shown the door: again, as a stranger */
        (void)!send(hub->peer[peer], head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    (void)!send(hub->peer[peer], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    hub_turn(hub->world, 0);
    hub_facts_turn(hub->world);
}

/* The honest way in, so that most inputs get past it. */
static void hub_introduce(struct hub *hub)
{
    char text[256];
    unsigned i = 0;

    for (i = 0; i < HUB_RANKS; i++) {
        int len = snprintf(text, sizeof(text),
                           "{\"token\": \"" HUB_TOKEN "\", \"version\": \"fuzz\", \"rank\": %u, "
                           "\"host\": \"n%u\", \"pid\": %u, \"local_rank\": 0}",
                           i, i, 100 + i);

        hub_say(hub, i, SHK_FRAME_HELLO, text, (uint32_t)len);
    }
}

static void hub_measure(struct hub *hub)
{
    struct hub_member *members[HUB_RANKS];
    unsigned count = 0;
    unsigned i = 0;

    for (i = 0; i < HUB_RANKS; i++)
        if (hub->world->members[i].state == MEMBER_IDLE)
            members[count++] = &hub->world->members[i];
    if (hub->group != NULL || count == 0)
        return;
    hub->world->greets = hub->tcp; /* a job that has a key may have a tree */
    hub->group =
        hub_group_start(hub->world, members, count, &shk_transport_fabric, &hub_sweep, NULL);
    hub->world->greets = false;
    if (hub->group == NULL)
        abort();
}

static void hub_record(struct hub *hub, uint8_t what, const uint8_t *data, uint32_t len)
{
    unsigned peer = what % HUB_PEERS;
    unsigned type = what / HUB_PEERS % 32;

    if (type == HUB_MEASURE) {
        hub_measure(hub);
    } else if (type == HUB_HANG_UP) {
        if (hub->peer[peer] >= 0)
            close(hub->peer[peer]);
        hub->peer[peer] = -1;
        hub_turn(hub->world, 0);
        hub_facts_turn(hub->world);
    } else { /* above: the types whose numbers stand for something else here */
        hub_say(hub, peer, type > HUB_MEASURE ? type - 2 : type, data, len);
    }
}

/* As shk_world_measure() does it when every rank has answered or is given up. */
static void hub_result(struct hub *hub)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create(), *copy = NULL;
    json_t *doc = NULL;

    hub->group->over = true;
    hub->group->over_ns = 0;
    hub_groups_finish(hub->world, &hub->group, 1);
    if (hub->group->result.outcome != SHK_CREW_OK && !*hub->group->result.reason.text)
        abort();
    if (shk_transport_fabric.facts(hub->group->job, &hub->group->result, &hub_sweep, facts, &err) !=
            0 ||
        shk_world_facts(hub->world, facts) != 0)
        abort();
    doc = shk_facts_to_json(facts);
    if (shk_facts_from_json(&copy, doc, &err) != 0)
        abort();
    json_decref(doc);
    shk_facts_destroy(copy);
    shk_facts_destroy(facts);
    hub_group_free(hub->group);
}

/* What is printed, and named to a batch system, cannot hold anything but a host's name. */
static void hub_check_hosts(const struct shk_world *world)
{
    unsigned i = 0;

    for (i = 0; i < world->size; i++)
        for (const char *p = world->members[i].host; *p; p++)
            if (!isalnum((unsigned char)*p) && !strchr("-._?", *p))
                abort();
}

/* Facts that rank 0 has are such that can be stored. */
static void hub_check_facts(struct shk_world *world)
{
    hub_facts_end(world);
    for (size_t i = 0; i < world->nodes_count; i++) {
        struct shk_facts *facts = NULL, *copy = NULL;
        json_t *doc = NULL;

        if (shk_world_like(world, i) > i)
            abort();
        if ((facts = shk_world_take_facts(world, i)) == NULL)
            continue;
        doc = shk_facts_to_json(facts);
        if (shk_facts_from_json(&copy, doc, NULL) != 0)
            abort();
        json_decref(doc);
        shk_facts_destroy(copy);
        shk_facts_destroy(facts);
    }
}

static void hub_close(struct hub *hub)
{
    size_t i = 0;

    for (i = 0; i < HUB_PEERS; i++)
        if (hub->peer[i] >= 0)
            close(hub->peer[i]);
    shk_world_close(hub->world, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hub hub = {.world = calloc(1, sizeof(*hub.world)), .peer = {-1, -1, -1, -1}};
    struct shk_world *world = hub.world;
    size_t at = 1;

    if (size < 1 || world == NULL) {
        free(world);
        return 0;
    }
    hub.tcp = data[0] & 2;
    world->options = &hub_options;
    world->role = SHK_WORLD_ROOT;
    world->size = HUB_RANKS;
    world->members = calloc(HUB_RANKS, sizeof(*world->members));
    for (unsigned i = 0; i < HUB_RANKS; i++) {
        world->members[i].rank = i;
        world->members[i].link.fd = -1;
    }
    memcpy(world->token, HUB_TOKEN, sizeof(HUB_TOKEN));
    world->listen_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* always ready: nobody waits */
    if (data[0] & 1)
        hub_introduce(&hub);
    while (at + 4 <= size) {
        uint32_t len = data[at + 2] | (uint32_t)data[at + 3] << 8;
        const uint8_t *body = data + at + 4;

        len %= HUB_FRAME_MAX;
        len = len < size - at - 4 ? len : (uint32_t)(size - at - 4);
        hub_record(&hub, data[at], body, len);
        at += 4 + len;
    }
    hub_check_hosts(world);
    hub_check_facts(world);
    if (hub.group != NULL)
        hub_result(&hub);
    hub_close(&hub);
    return 0;
}
