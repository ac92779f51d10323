/* A rank's place in the tree through which rank 0 spreads what the ranks publish: it takes such
 * frames from one rank and passes them on to some. All that is between them is that: what a rank
 * says, and everything else that rank 0 says, stays on their own link. Whoever connects here, or is
 * connected to, proves that it has the job's key. */
#include "collectives/launch/world_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection between two ranks that does not come about in this time is given up. */
#define TREE_GREET_NS 10000000000ULL

/* Before a peer is known it may send no more than a greeting. */
#define TREE_GREET_MAX ((size_t)512)

/* Connections beyond those that are expected: a port is open to anybody. */
#define TREE_STRANGERS 8U

/* Events that are no child's. */
enum { TREE_LISTEN = UINT32_MAX - 1, TREE_PARENT };

static void tree_watch(struct agent_tree *tree, int op, int fd, uint32_t what, bool out)
{
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.u32 = what};
    (void)epoll_ctl(tree->epoll, op, fd, &event);
}

void agent_tree_open(struct agent_tree *tree, const struct shk_world *world)
{
    *tree = (struct agent_tree){.world = world, .epoll = -1, .listen_fd = -1, .parent.fd = -1};
}

/* What ranks prove to each other is not what they prove to rank 0. */
static bool tree_ready(struct agent_tree *tree)
{
    if (tree->epoll >= 0)
        return true;
    tree->self = tree->world->self;
    if (tree->self.key.there)
        shk_key_mix(&tree->self.key, "from rank to rank", "");
    tree->epoll = epoll_create1(EPOLL_CLOEXEC);
    return tree->epoll >= 0;
}

static bool tree_expects(const struct agent_tree *tree, unsigned rank)
{
    for (unsigned i = 0; i < tree->expected_count; i++)
        if (tree->expected[i] == rank)
            return true;
    return false;
}

static void tree_drop(struct agent_child *child)
{
    shk_link_close(&child->link);
    *child = (struct agent_child){.link.fd = -1};
}

/* Rank 0's order to pass on to these ranks: answers with the port at which they find it. */
static void tree_listen(struct agent_tree *tree, struct shk_link *root,
                        const struct shk_frame *frame)
{
    struct shk_error err = {""};
    unsigned port = 0, count = frame->len / sizeof(uint32_t);
    if (tree->listen_fd >= 0 || count == 0 || count > TREE_WIDTH_MAX || !tree_ready(tree))
        return;
    tree->children_max = count + TREE_STRANGERS;
    tree->children = calloc(tree->children_max, sizeof *tree->children);
    int fd = tree->children ? shk_card_listen(NULL, 0, tree->world->meet.loopback, &port, &err)
                            : -ENOMEM;
    if (fd < 0) {
        free(tree->children);
        tree->children = NULL;
        tree->children_max = 0;
        return;
    }
    for (unsigned i = 0; i < tree->children_max; i++)
        tree->children[i].link.fd = -1;
    memcpy(tree->expected, frame->data, count * sizeof(uint32_t));
    tree->expected_count = count;
    tree->listen_fd = fd;
    tree_watch(tree, EPOLL_CTL_ADD, fd, TREE_LISTEN, false);
    (void)shk_link_send(root, SHK_FRAME_RELAY, &(uint32_t){port}, sizeof(uint32_t));
}

static int tree_dial(const char *address, unsigned port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    char service[16];
    snprintf(service, sizeof service, "%u", port);
    if (port == 0 || port > 65535 || getaddrinfo(address, service, &hints, &info))
        return -1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        shk_card_segments(fd);
        if (connect(fd, info->ai_addr, info->ai_addrlen) && errno != EINPROGRESS) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(info);
    return fd;
}

void agent_tree_leave(struct agent_tree *tree)
{
    shk_link_close(&tree->parent);
    tree->proven = tree->joined = false;
}

/* Rank 0's order to take frames from this rank. */
static void tree_connect(struct agent_tree *tree, const struct shk_frame *frame)
{
    struct world_parent_frame parent;
    if (frame->len != sizeof parent || tree->parent.fd >= 0 || !tree_ready(tree))
        return;
    memcpy(&parent, frame->data, sizeof parent);
    parent.address[sizeof parent.address - 1] = '\0';
    if (tree->world->meet.loopback && strncmp(parent.address, "127.", 4) != 0)
        return; /* a job of this host alone */
    int fd = tree_dial(parent.address, parent.port);
    if (fd < 0)
        return;
    agent_tree_leave(tree); /* what is left of one before */
    shk_link_open(&tree->parent, fd);
    tree->parent.limit = TREE_GREET_MAX;
    tree->parent_since_ns = shk_job_now_ns();
    tree_watch(tree, EPOLL_CTL_ADD, fd, TREE_PARENT, false);
}

void agent_tree_frame(struct agent_tree *tree, struct shk_link *root, const struct shk_frame *frame)
{
    if (frame->type == SHK_FRAME_RELAY)
        tree_listen(tree, root, frame);
    else if (frame->type == SHK_FRAME_PARENT)
        tree_connect(tree, frame);
}

static void tree_accept(struct agent_tree *tree)
{
    struct shk_greet_challenge challenge;
    int fd = accept4(tree->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    unsigned i = 0;
    while (i < tree->children_max && tree->children[i].link.fd >= 0)
        i++;
    if (fd >= 0 && (i == tree->children_max || shk_greet_challenge(&challenge, &tree->self))) {
        close(fd);
        return;
    }
    if (fd < 0)
        return;
    struct agent_child *child = &tree->children[i];
    *child = (struct agent_child){.since_ns = shk_job_now_ns(), .challenge = challenge};
    shk_link_open(&child->link, fd);
    child->link.limit = TREE_GREET_MAX;
    tree_watch(tree, EPOLL_CTL_ADD, fd, i, false);
    (void)shk_link_send(&child->link, SHK_FRAME_CHALLENGE, &challenge, sizeof challenge);
}

/* One of ours, and none that is here already? */
static bool tree_welcome(struct agent_tree *tree, struct agent_child *child,
                         const struct shk_frame *frame)
{
    struct shk_greet_proof proof;
    struct shk_greet_welcome welcome;
    enum shk_greet_verdict verdict =
        frame->type == SHK_FRAME_PROOF
            ? shk_greet_judge(&tree->self, &child->challenge, frame->data, frame->len, &proof)
            : SHK_GREET_GARBLED;
    if (verdict == SHK_GREET_GARBLED)
        return false;
    if (verdict == SHK_GREET_WELCOME && !tree_expects(tree, proof.rank))
        verdict = SHK_GREET_OTHER_JOB;
    for (unsigned i = 0; verdict == SHK_GREET_WELCOME && i < tree->children_max; i++)
        if (tree->children[i].taken && tree->children[i].rank == proof.rank)
            verdict = SHK_GREET_TAKEN;
    shk_greet_reply(&tree->self, &child->challenge, &proof, verdict, proof.local_rank, &welcome);
    child->taken = verdict == SHK_GREET_WELCOME;
    child->rank = proof.rank;
    return shk_link_send(&child->link, SHK_FRAME_WELCOME, &welcome, sizeof welcome) == 0 &&
           child->taken;
}

/* A child says who it is, once; then it only listens. */
static void tree_child(struct agent_tree *tree, struct agent_child *child, uint32_t events)
{
    struct shk_frame frame;
    if (events & EPOLLOUT)
        (void)shk_link_flush(&child->link);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        (void)shk_link_fill(&child->link);
    if (child->link.fd >= 0 && shk_link_next(&child->link, &frame) &&
        (child->taken || !tree_welcome(tree, child, &frame)))
        tree_drop(child);
    if (child->link.fd < 0)
        tree_drop(child);
    else
        tree_watch(tree, EPOLL_CTL_MOD, child->link.fd, (uint32_t)(child - tree->children),
                   child->link.out.len > 0);
}

/* The parent's side of the greeting; true: it is over, and well. */
static bool tree_greeting(struct agent_tree *tree, const struct shk_frame *frame)
{
    struct shk_greet_welcome welcome;
    if (frame->type == SHK_FRAME_CHALLENGE &&
        shk_greet_answer(&tree->self, frame->data, frame->len, &tree->challenge, &tree->proof) ==
            SHK_GREET_WELCOME) {
        (void)shk_link_send(&tree->parent, SHK_FRAME_PROOF, &tree->proof, sizeof tree->proof);
        tree->proven = true;
        return false;
    }
    bool welcomed = frame->type == SHK_FRAME_WELCOME && tree->proven &&
                    shk_greet_end(&tree->self, &tree->challenge, &tree->proof, frame->data,
                                  frame->len, &welcome) == SHK_GREET_WELCOME;
    if (!welcomed)
        agent_tree_leave(tree);
    return welcomed;
}

static void tree_parent(struct agent_tree *tree, struct shk_link *root)
{
    struct shk_frame frame;
    (void)shk_link_flush(&tree->parent);
    (void)shk_link_fill(&tree->parent);
    while (tree->parent.fd >= 0 && !tree->joined && shk_link_next(&tree->parent, &frame)) {
        if (!tree_greeting(tree, &frame))
            continue;
        tree->joined = true;
        tree->parent.limit = 0;
        (void)shk_link_send(root, SHK_FRAME_PARENT, &(uint32_t){1}, sizeof(uint32_t));
    }
}

/* Those who do not say who they are in time. */
static void tree_overdue(struct agent_tree *tree)
{
    uint64_t now = shk_job_now_ns();
    for (unsigned i = 0; i < tree->children_max; i++) {
        struct agent_child *child = &tree->children[i];
        if (child->link.fd >= 0 && !child->taken && now - child->since_ns > TREE_GREET_NS)
            tree_drop(child);
    }
    if (tree->parent.fd >= 0 && !tree->joined && now - tree->parent_since_ns > TREE_GREET_NS)
        agent_tree_leave(tree);
}

void agent_tree_turn(struct agent_tree *tree, struct shk_link *root)
{
    struct epoll_event events[16];
    int n = tree->epoll >= 0 ? epoll_wait(tree->epoll, events, 16, 0) : 0;
    for (int i = 0; i < n; i++) {
        uint32_t what = events[i].data.u32;
        if (what == TREE_LISTEN)
            tree_accept(tree);
        else if (what == (uint32_t)TREE_PARENT)
            tree_parent(tree, root);
        else if (what < tree->children_max && tree->children[what].link.fd >= 0)
            tree_child(tree, &tree->children[what], events[i].events);
    }
    if (tree->epoll >= 0)
        tree_overdue(tree);
}

bool agent_tree_next(struct agent_tree *tree, struct shk_frame *frame)
{
    while (tree->joined && shk_link_next(&tree->parent, frame))
        if (frame->type == SHK_FRAME_PUTS)
            return true;
    return false;
}

void agent_tree_pass(struct agent_tree *tree, const struct shk_frame *frame)
{
    for (unsigned i = 0; i < tree->children_max; i++) {
        struct agent_child *child = &tree->children[i];
        if (!child->taken || child->link.fd < 0)
            continue;
        (void)shk_link_send(&child->link, SHK_FRAME_PUTS, frame->data, frame->len);
        if (child->link.fd < 0)
            tree_drop(child);
        else if (child->link.out.len > 0)
            tree_watch(tree, EPOLL_CTL_MOD, child->link.fd, i, true);
    }
}

void agent_tree_close(struct agent_tree *tree)
{
    for (unsigned i = 0; i < tree->children_max; i++)
        shk_link_close(&tree->children[i].link);
    free(tree->children);
    shk_link_close(&tree->parent);
    if (tree->listen_fd >= 0)
        close(tree->listen_fd);
    if (tree->epoll >= 0)
        close(tree->epoll);
    explicit_bzero(&tree->self, sizeof tree->self);
    agent_tree_open(tree, tree->world);
}
