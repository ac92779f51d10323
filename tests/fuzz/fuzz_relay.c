/* Ranks and strangers that lie to a rank that passes on: one that connects to it, and the one that
 * it takes from. The first byte says which of them have the key and greet honestly before they lie;
 * then follow records {u8 who, u8 type, u16 length, bytes}. Nobody is taken without the key. */
#include "collectives/launch/world_private.h"
#include "fuzz.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RELAY_RANKS = 4, RELAY_SELF = 1, RELAY_CHILD = 2 };
enum { RELAY_LISTENS = 1, RELAY_CONNECTS = 2, RELAY_HONEST_CHILD = 4, RELAY_HONEST_PARENT = 8 };
enum { WHO_ROOT, WHO_CHILD, WHO_PARENT, WHO_MANY };

struct relay {
    struct shk_world world;
    struct agent_tree tree;
    struct shk_link root; /* its link to rank 0, and rank 0's end of it */
    struct shk_link hub, child, parent;
    unsigned port;
};

static struct shk_greet_self relay_self(unsigned rank)
{
    struct shk_greet_self self = {
        .rank = rank, .size = RELAY_RANKS, .host = "n", .version = "fuzz"};
    shk_greet_job(self.job, "fuzz");
    shk_key_mix(&self.key, "a key that the fuzzer has when it is honest", "fuzz");
    return self;
}

/* As the ranks know each other. */
static struct shk_greet_self relay_peer(unsigned rank)
{
    struct shk_greet_self self = relay_self(rank);
    shk_key_mix(&self.key, "from rank to rank", "");
    return self;
}

static void relay_turn(struct relay *relay)
{
    struct shk_frame frame;
    agent_tree_turn(&relay->tree, &relay->root);
    while (agent_tree_next(&relay->tree, &frame))
        agent_tree_pass(&relay->tree, &frame);
}

/* The other side's next frame of this type, which must come. */
static bool relay_hear(struct relay *relay, struct shk_link *link, uint32_t type,
                       struct shk_frame *frame)
{
    for (unsigned i = 0; i < 50; i++) {
        relay_turn(relay);
        (void)shk_link_fill(link);
        if (shk_link_next(link, frame))
            return frame->type == type;
    }
    return false;
}

static void relay_listens(struct relay *relay)
{
    static const uint32_t ranks[] = {RELAY_CHILD, 3};
    struct shk_frame frame = {
        .type = SHK_FRAME_RELAY, .len = sizeof ranks, .data = (const unsigned char *)ranks};
    agent_tree_frame(&relay->tree, &relay->root, &frame);
    if (relay_hear(relay, &relay->hub, SHK_FRAME_RELAY, &frame) && frame.len == sizeof(uint32_t))
        memcpy(&relay->port, frame.data, sizeof(uint32_t));
}

static void relay_connect(struct relay *relay)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)relay->port)};
    int fd = relay->port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    shk_link_close(&relay->child);
    relay->child.fd = -1;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        shk_link_open(&relay->child, fd);
    else if (fd >= 0)
        close(fd);
    relay_turn(relay);
}

static void relay_honest_child(struct relay *relay)
{
    struct shk_greet_self self = relay_peer(RELAY_CHILD);
    struct shk_greet_challenge challenge;
    struct shk_greet_proof proof;
    struct shk_greet_welcome welcome;
    struct shk_frame frame;
    if (!relay_hear(relay, &relay->child, SHK_FRAME_CHALLENGE, &frame) ||
        shk_greet_answer(&self, frame.data, frame.len, &challenge, &proof) != SHK_GREET_WELCOME)
        return;
    (void)shk_link_send(&relay->child, SHK_FRAME_PROOF, &proof, sizeof proof);
    if (!relay_hear(relay, &relay->child, SHK_FRAME_WELCOME, &frame) ||
        shk_greet_end(&self, &challenge, &proof, frame.data, frame.len, &welcome) !=
            SHK_GREET_WELCOME)
        abort(); /* it had the key */
}

static void relay_parent(struct relay *relay, bool honest)
{
    static unsigned port;
    static int listener = -1;
    struct shk_greet_self self = relay_peer(0);
    struct world_parent_frame parent = {.address = "127.0.0.1"};
    struct shk_frame frame = {
        .type = SHK_FRAME_PARENT, .len = sizeof parent, .data = (const unsigned char *)&parent};
    struct shk_greet_challenge challenge;
    struct shk_greet_proof proof;
    struct shk_greet_welcome welcome;
    struct shk_error err = {""};
    if (listener < 0)
        listener = shk_card_listen(NULL, 0, true, &port, &err);
    parent.port = port;
    agent_tree_frame(&relay->tree, &relay->root, &frame);
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        return;
    shk_link_open(&relay->parent, fd);
    if (!honest)
        return;
    if (shk_greet_challenge(&challenge, &self))
        abort();
    (void)shk_link_send(&relay->parent, SHK_FRAME_CHALLENGE, &challenge, sizeof challenge);
    if (!relay_hear(relay, &relay->parent, SHK_FRAME_PROOF, &frame) ||
        shk_greet_judge(&self, &challenge, frame.data, frame.len, &proof) != SHK_GREET_WELCOME)
        abort();
    shk_greet_reply(&self, &challenge, &proof, SHK_GREET_WELCOME, 0, &welcome);
    (void)shk_link_send(&relay->parent, SHK_FRAME_WELCOME, &welcome, sizeof welcome);
    for (unsigned i = 0; !relay->tree.joined && i < 50; i++)
        relay_turn(relay);
    if (!relay->tree.joined)
        abort();
}

static void relay_record(struct relay *relay, const uint8_t *head, const uint8_t *data,
                         uint32_t len)
{
    struct shk_frame frame = {
        .type = head[1] % 2 ? SHK_FRAME_RELAY : SHK_FRAME_PARENT, .len = len, .data = data};
    struct shk_link *to = head[0] % WHO_MANY == WHO_CHILD ? &relay->child : &relay->parent;
    if (head[0] % WHO_MANY == WHO_ROOT) {
        agent_tree_frame(&relay->tree, &relay->root, &frame);
    } else {
        if (to == &relay->child && (to->fd < 0 || head[1] == 255))
            relay_connect(relay);            /* again, as a stranger */
        if (to->fd >= 0 && head[1] % 4 == 0) /* bytes, else a whole frame */
            (void)!send(to->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        else if (to->fd >= 0)
            (void)shk_link_send(to, head[1] % 32, data, len);
    }
    relay_turn(relay);
}

static void relay_check(const struct relay *relay, unsigned mode)
{
    for (unsigned i = 0; i < relay->tree.children_max; i++)
        if (relay->tree.children[i].taken && !(mode & RELAY_HONEST_CHILD))
            abort(); /* it came in without the key */
    if (relay->tree.joined && !(mode & RELAY_HONEST_PARENT))
        abort();
}

static void relay_close(struct relay *relay)
{
    agent_tree_close(&relay->tree);
    shk_link_close(&relay->root);
    shk_link_close(&relay->hub);
    shk_link_close(&relay->child);
    shk_link_close(&relay->parent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct relay relay = {.world = {.self = relay_self(RELAY_SELF), .meet = {.loopback = true}},
                          .child = {.fd = -1},
                          .parent = {.fd = -1}};
    int fds[2];
    if (size < 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return 0;
    shk_link_open(&relay.root, fds[0]);
    shk_link_open(&relay.hub, fds[1]);
    agent_tree_open(&relay.tree, &relay.world);
    if (data[0] & RELAY_LISTENS)
        relay_listens(&relay);
    if (data[0] & RELAY_LISTENS && data[0] & RELAY_HONEST_CHILD) {
        relay_connect(&relay);
        relay_honest_child(&relay);
    }
    if (data[0] & RELAY_CONNECTS)
        relay_parent(&relay, data[0] & RELAY_HONEST_PARENT);
    for (size_t at = 1; at + 4 <= size;) {
        uint32_t len = data[at + 2] | (uint32_t)data[at + 3] << 8;
        len = len < size - at - 4 ? len : (uint32_t)(size - at - 4);
        relay_record(&relay, data + at, data + at + 4, len);
        at += 4 + len;
    }
    relay_check(&relay, data[0]);
    relay_close(&relay);
    return 0;
}
