#include "collectives/launch/world_private.h"
#include "collectives/meet/folder.h"
#include "core/run/stop.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Before the secret was seen a peer may send no more than a greeting. */
#define HUB_HELLO_MAX ((size_t)4096)

/* Connections that have not introduced themselves yet: more than this wait in the kernel's queue,
 * and those that say nothing for as long as a starved machine may take to do so are closed. */
#define HUB_STRANGERS_MAX ((size_t)1024)
#define HUB_STRANGER_NS   30000000000ULL

/* When no more files can be opened, until the next look. */
#define HUB_CROWDED_NS 100000000ULL

void world_say(const struct shk_world *world, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (!world->options->progress)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    world->options->progress(text, world->options->progress_arg);
}

void hub_lose(struct shk_world *world, struct hub_member *member, enum crew_loss loss,
              const char *why)
{
    if (member->state == MEMBER_ABSENT || member->state == MEMBER_LOST)
        return;
    if (!world->leaving)
        world_say(world, "rank %u on %s: %s", member->rank, member->host, why);
    if (member->state == MEMBER_RUNNING)
        hub_run_lost(member, loss);
    hub_facts_lost(world, member);
    member->state = MEMBER_LOST;
    member->loss = loss;
    member->lost_ns = member->link.heard_ns;
    shk_link_close(&member->link);
}

struct hub_node *hub_node_of(struct shk_world *world, const char *host)
{
    json_t *known = json_object_get(world->nodes_known, host);
    size_t n = world->nodes_count;
    struct hub_node *more = world->nodes;

    if (known)
        return &world->nodes[json_integer_value(known)];
    if (!world->nodes_known && (world->nodes_known = json_object()) == NULL)
        return NULL;
    if ((n & (n - 1)) == 0)
        more = realloc(world->nodes, (n > 0 ? 2 * n : 1) * sizeof *more);
    if (!more)
        return NULL;
    world->nodes = more;
    if (json_object_set_new(world->nodes_known, host, json_integer((json_int_t)n)) != 0)
        return NULL;
    more[n] = (struct hub_node){.leader = UINT_MAX};
    snprintf(more[n].name, sizeof more[n].name, "%s", host);
    world->nodes_count++;
    return &more[n];
}

/* Names end up on terminals and on command lines: nothing but what a host's name may hold. */
void hub_host_name(char *buf, size_t size, const char *host)
{
    size_t i = 0;

    for (i = 0; i + 1 < size && host[i] != '\0'; i++) {
        bool fine = isalnum((unsigned char)host[i]) || strchr("-._", host[i]);

        buf[i] = fine ? host[i] : '?';
    }
    buf[i] = '\0';
}

/* A stranger says who it is: on success its link belongs to the member. */
static bool hub_hello(struct shk_world *world, struct shk_link *link, const struct shk_frame *frame)
{
    json_t *doc = frame->type == SHK_FRAME_HELLO
                      ? json_loadb((const char *)frame->data, frame->len, 0, NULL)
                      : NULL;
    const char *token = NULL;
    const char *version = NULL;
    const char *host = NULL;
    int rank = -1;
    int pid = 0;
    int local = 0;
    bool known =
        doc &&
        json_unpack(doc, "{s:s, s:s, s:i, s:s, s:i, s:i}", "token", &token, "version", &version,
                    "rank", &rank, "host", &host, "pid", &pid, "local_rank", &local) == 0 &&
        rank >= 0 && (unsigned)rank < world->size &&
        (link->greeting ? hub_greeted(link, (unsigned)rank) : strcmp(token, world->token) == 0) &&
        world->members[rank].state == MEMBER_ABSENT;

    if (known && strcmp(version, world->options->version) != 0) {
        struct hub_member *member = &world->members[rank];

        hub_host_name(member->host, sizeof member->host, host);
        snprintf(member->refused, sizeof member->refused, "it is shakedown %.32s, rank 0 is %.32s",
                 version, world->options->version);
        known = false;
    }
    if (known) {
        struct hub_member *member = &world->members[rank];
        struct hub_node *node = NULL;

        member->pid = pid;
        member->local_rank = (unsigned)local;
        hub_host_name(member->host, sizeof member->host, host);
        member->state = MEMBER_IDLE;
        node = hub_node_of(world, member->host);
        if (node && local == 0)
            node->leader = (unsigned)rank;
        member->refused[0] = '\0';
        free(link->greeting);
        link->greeting = NULL;
        member->link = *link;
        member->link.limit = 0;
    }
    json_decref(doc);
    return known;
}

static void hub_frame(struct shk_world *world, struct hub_member *member,
                      const struct shk_frame *frame)
{
    switch (frame->type) {
    case SHK_FRAME_NODE:
    case SHK_FRAME_NO_FACTS:
    case SHK_FRAME_LIST:
    case SHK_FRAME_SECTION: hub_facts_frame(world, member, frame); break;
    case SHK_FRAME_CLOCK: hub_clock_frame(member, frame); break;
    case SHK_FRAME_RELAY:
    case SHK_FRAME_PARENT:
    case SHK_FRAME_WANT_PUTS: hub_tree_frame(world, member, frame); break;
    default: hub_run_frame(world, member, frame); break;
    }
}

/* No more connections now: the others come when there is room. */
static void hub_crowded(struct shk_world *world)
{
    world->crowded_ns = shk_job_now_ns() + HUB_CROWDED_NS;
    if (world->problem.text[0] == '\0') {
        (void)shk_error_set(&world->problem, EMFILE,
                            "rank 0 cannot have more open files (ulimit -Hn: %d)",
                            world->descriptors);
    }
}

static bool hub_has_room(const struct shk_world *world)
{
    return world->strangers_count < HUB_STRANGERS_MAX && shk_job_now_ns() >= world->crowded_ns;
}

static void hub_accept(struct shk_world *world)
{
    while (hub_has_room(world)) {
        int fd = accept4(world->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        int one = 1;
        struct shk_link *more = NULL;

        if (fd < 0 && errno != EMFILE && errno != ENFILE)
            return;
        if (fd < 0 || (world->descriptors > 0 && fd >= world->descriptors - WORLD_SPARE_FILES))
            hub_crowded(world);
        more = hub_has_room(world)
                   ? realloc(world->strangers, (world->strangers_count + 1) * sizeof *more)
                   : NULL;
        if (!more) {
            if (fd >= 0)
                close(fd);
            return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        world->strangers = more;
        shk_link_open(&more[world->strangers_count], fd);
        hub_greet(world, &more[world->strangers_count]);
        more[world->strangers_count++].limit = HUB_HELLO_MAX;
    }
}

/* Reads strangers' greetings. A link that became a member's keeps what it has already read. */
static void hub_strangers(struct shk_world *world)
{
    size_t kept = 0;

    for (size_t i = 0; i < world->strangers_count; i++) {
        struct shk_link *link = &world->strangers[i];
        struct shk_frame frame;
        bool known = false;

        (void)shk_link_fill(link);
        if (shk_link_next(link, &frame)) {
            if (hub_greeting_frame(world, link, &frame)) {
                world->strangers[kept++] = *link;
                continue;
            }
            known = hub_hello(world, link, &frame);
            if (!known)
                shk_link_close(link);
        } else if (link->fd >= 0 && shk_job_now_ns() - link->heard_ns < HUB_STRANGER_NS) {
            world->strangers[kept++] = *link;
        } else {
            shk_link_close(link);
        }
    }
    world->strangers_count = kept;
}

enum crew_loss hub_loss(const struct shk_world *world, const struct hub_member *member)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    bool told = getsockopt(member->link.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0;

    if (told && info.tcpi_unacked > 0)
        return CREW_LOSS_WAY;
    return hub_host_runs(world, member) ? CREW_LOSS_MUTE : CREW_LOSS_SILENT;
}

/* A rank that says nothing is sent something to acknowledge, and after a while given up. */
static void hub_silence(struct shk_world *world, struct hub_member *member)
{
    uint64_t now = shk_job_now_ns();
    uint64_t silent = now - member->link.heard_ns;

    if (silent > WORLD_SILENT_NS) {
        enum crew_loss loss = hub_loss(world, member);

        hub_lose(world, member, loss,
                 loss == CREW_LOSS_WAY ? "no word from it, and its host does not answer"
                                       : "no word from it, though its host answers");
    } else if (silent > WORLD_SILENT_NS / 2 && now - member->poked_ns > WORLD_SILENT_NS) {
        member->poked_ns = now;
        (void)shk_link_send(&member->link, SHK_FRAME_ALIVE, NULL, 0);
    }
}

static void hub_member_turn(struct shk_world *world, struct hub_member *member, short revents)
{
    struct shk_frame frame;

    if (revents & POLLOUT)
        (void)shk_link_flush(&member->link);
    if (revents & (POLLIN | POLLHUP | POLLERR))
        (void)shk_link_fill(&member->link);
    while (member->state != MEMBER_LOST && shk_link_next(&member->link, &frame))
        hub_frame(world, member, &frame);
    if (member->link.fd < 0)
        hub_lose(world, member, CREW_LOSS_CLOSED, "its connection was closed");
    else if (member->state == MEMBER_RUNNING)
        hub_silence(world, member);
}

void hub_turn(struct shk_world *world, int ms)
{
    size_t max = 1 + world->size + world->strangers_count;
    struct pollfd *fds = calloc(max, sizeof *fds);
    size_t strangers = world->strangers_count;
    unsigned i = 0;

    if (!fds)
        return;
    for (i = 0; i < world->size; i++) {
        struct shk_link *link = &world->members[i].link;
        bool there =
            world->members[i].state == MEMBER_IDLE || world->members[i].state == MEMBER_RUNNING;

        fds[i] = (struct pollfd){.fd = there ? link->fd : -1,
                                 .events = (short)(POLLIN | (link->out.len > 0 ? POLLOUT : 0))};
    }
    fds[i] = (struct pollfd){.fd = hub_has_room(world) ? world->listen_fd : -1, .events = POLLIN};
    for (size_t n = 0; n < strangers; n++) {
        fds[i + 1 + n] = (struct pollfd){.fd = world->strangers[n].fd, .events = POLLIN};
    }
    (void)poll(fds, (nfds_t)max, ms);
    for (i = 0; i < world->size; i++) {
        if (world->members[i].state == MEMBER_IDLE || world->members[i].state == MEMBER_RUNNING)
            hub_member_turn(world, &world->members[i], fds[i].revents);
    }
    hub_accept(world);
    hub_strangers(world);
    free(fds);
}

static void hub_own_agent(struct shk_world *world, int fd, pid_t parent) __attribute__((noreturn));
static void hub_own_agent(struct shk_world *world, int fd, pid_t parent)
{
    struct shk_error err = {{0}};

    shk_stop_release();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    close(world->listen_fd);
    _exit(agent_serve(world, fd, 0, 0, &err) < 0 ? 127 : 0);
}

/* Rank 0's own rank is a child like any other rank: nothing that it meets can harm the report. */
static int hub_start_own(struct shk_world *world, struct shk_error *err)
{
    pid_t parent = getpid();
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return shk_error_sys(err, errno, "socketpair");
    world->agent = fork();
    if (world->agent == 0) {
        close(fds[0]);
        hub_own_agent(world, fds[1], parent);
    }
    close(fds[1]);
    if (world->agent < 0) {
        close(fds[0]);
        return shk_error_sys(err, errno, "fork of rank 0");
    }
    world->strangers = calloc(1, sizeof *world->strangers);
    if (!world->strangers) {
        close(fds[0]);
        return shk_error_set(err, ENOMEM, "out of memory");
    }
    shk_link_open(&world->strangers[0], fds[0]);
    world->strangers[0].limit = HUB_HELLO_MAX;
    world->strangers_count = 1;
    return 0;
}

static unsigned hub_present(const struct shk_world *world)
{
    unsigned present = 0;

    for (unsigned i = 0; i < world->size; i++)
        present += world->members[i].state != MEMBER_ABSENT;
    return present;
}

static int hub_node_order(const void *a, const void *b)
{
    const struct hub_node *x = a;
    const struct hub_node *y = b;

    return (x->leader > y->leader) - (x->leader < y->leader);
}

static void hub_sort_nodes(struct shk_world *world)
{
    if (world->nodes_count == 0)
        return;
    qsort(world->nodes, world->nodes_count, sizeof *world->nodes, hub_node_order);
    for (size_t i = 0; i < world->nodes_count; i++) {
        (void)json_object_set_new(world->nodes_known, world->nodes[i].name,
                                  json_integer((json_int_t)i));
    }
}

int hub_gather(struct shk_world *world, struct shk_error *err)
{
    uint64_t third = (uint64_t)world->options->deadline_ms * 1000000ULL / 3;
    int rc = hub_start_own(world, err);
    uint64_t now = 0;

    while (rc == 0 && shk_stop_signal() == 0) {
        now = shk_job_now_ns();
        if ((hub_present(world) == world->size || now - world->start_ns > third) &&
            hub_facts_complete(world)) {
            break;
        }
        if (now - world->start_ns > 2 * third)
            break;
        hub_turn(world, 50);
        hub_facts_turn(world);
    }
    hub_facts_end(world);
    hub_sort_nodes(world);
    return rc;
}

int shk_world_gather(struct shk_world *world, struct shk_error *err)
{
    int rc = hub_gather(world, err);

    hub_clocks(world);
    world_say(world, "%u of %u ranks are there, on %zu nodes", hub_present(world), world->size,
              world->nodes_count);
    return rc;
}

size_t shk_world_nodes(const struct shk_world *world)
{
    return world->nodes_count;
}

const char *shk_world_node_name(const struct shk_world *world, size_t node)
{
    return world->nodes[node].name;
}

struct shk_facts *shk_world_take_facts(struct shk_world *world, size_t node)
{
    return hub_facts_take(world, &world->nodes[node]);
}

static void hub_goodbye(struct shk_world *world, int32_t code)
{
    uint64_t end = shk_job_now_ns() + 1000000000ULL;
    bool waiting = true;

    world->leaving = true;
    for (unsigned i = 0; i < world->size; i++) {
        if (world->members[i].state == MEMBER_IDLE || world->members[i].state == MEMBER_RUNNING)
            (void)shk_link_send(&world->members[i].link, SHK_FRAME_BYE, &code, sizeof code);
    }
    /* They hang up when they have read it. */
    while (waiting && shk_job_now_ns() < end) {
        waiting = false;
        for (unsigned i = 0; i < world->size; i++) {
            waiting = waiting || world->members[i].state == MEMBER_IDLE ||
                      world->members[i].state == MEMBER_RUNNING;
        }
        if (waiting)
            hub_turn(world, 20);
    }
}

void shk_world_close(struct shk_world *world, int code)
{
    if (!world)
        return;
    if (world->members)
        hub_goodbye(world, code);
    for (size_t i = 0; world->members && i < world->size; i++)
        shk_link_close(&world->members[i].link);
    for (size_t i = 0; i < world->strangers_count; i++)
        shk_link_close(&world->strangers[i]);
    hub_facts_free(world);
    hub_tree_free(world);
    if (world->listen_fd >= 0)
        close(world->listen_fd);
    if (world->agent > 0) {
        (void)kill(world->agent, SIGKILL);
        (void)waitpid(world->agent, NULL, 0);
    }
    if (world->role == SHK_WORLD_ROOT && world->meet.way == SHK_MEET_FOLDER)
        shk_folder_drop(world->meet.folder, world->meet.job);
    shk_pmix_clear(&world->pmix);
    shk_meet_clear(&world->meet);
    free(world->members);
    free(world->strangers);
    free(world->nodes);
    json_decref(world->nodes_known);
    json_decref(world->stuck);
    explicit_bzero(world, sizeof *world); /* keys */
    free(world);
}
