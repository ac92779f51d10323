/* What ranks tell each other before an all-reduce, over rank 0: N ranks of one process answer as
 * agents do, each with a card as large as that of libfabric's endpoint, and get those of all
 * others. Greetings, frames and the tree are those of a real run; there are no workers.
 * Prints seconds, rank 0's processor time and memory, and bytes by link; exit 1 when a rank did not
 * get every card, or rank 0 sent more than its part of them.
 * usage: exchange RANKS [WIDTH]    WIDTH: of the tree; 0: none */
#include "collectives/fabric/fabric.h"
#include "collectives/launch/world_private.h"
#include "collectives/meet/card.h"
#include "collectives/meet/connect.h"
#include "core/facts/pack.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FENCES = 4 };

/* A rank without a worker. */
struct mock {
    struct shk_world world; /* what its place in the tree needs of it */
    struct shk_link link;
    struct agent_tree tree;
    uint32_t run, puts; /* frames of the run */
    size_t cards;       /* bytes in those of the first two runs */
    struct world_release_frame held;
    uint64_t held_ns;
};

static struct shk_world world;
static struct shk_world_options options = {.version = "bench", .deadline_ms = 600000};
static struct mock *mocks;
static struct shk_job_slot *card; /* what a rank publishes */

static void die(const char *what)
{
    fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* As large and as alike as those of libfabric over one rail: 1,370 bytes. */
static void make_card(unsigned rank)
{
    static struct shk_job *job;
    static const char *const same[] = {"=libfabric provider", "=layout of the heap", "~FI_PROVIDER",
                                       "~libfabric version", "~libfabric file"};
    struct shk_error err = {""};
    unsigned char address[340] = {0}, rails[420] = {0};
    char text[96];

    if (job == NULL && shk_job_create(&job, 1, 0, &err) < 0)
        die(err.text);
    job->rank = 0;
    card = &job->slots[0];
    atomic_store(&card->used, 0);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(text, sizeof text, "%s of a node like any other", same[i] + 1);
        if (shk_job_put(job, same[i], text, strlen(text) + 1, &err) < 0)
            die(err.text);
    }
    srandom(rank);
    for (unsigned i = 0; i < 24; i++) /* base, key, address and port */
        address[i < 16 ? i : 70 + i] = rails[i] = (unsigned char)random();
    if (shk_job_put(job, "fabric.address", address, sizeof address, &err) < 0 ||
        shk_job_put(job, "fabric.rails", rails, sizeof rails, &err) < 0)
        die(err.text);
}

static void mock_state(struct mock *mock, uint64_t epoch, enum shk_phase phase)
{
    struct world_state_frame state = {
        .run = mock->run, .phase = phase, .epoch = epoch, .waiting = -1, .stopped_ms = -1};

    (void)shk_link_send(&mock->link, SHK_FRAME_STATE, &state, sizeof state);
}

/* One process for all of them is slow to come round: signs of life meanwhile. */
static void mocks_beat(void)
{
    static uint64_t last;
    uint64_t now = shk_job_now_ns();

    for (unsigned i = 0; now - last > 2 * WORLD_BEAT_NS && i < world.size; i++)
        (void)shk_link_send(&mocks[i].link, SHK_FRAME_ALIVE, NULL, 0);
    last = now - last > 2 * WORLD_BEAT_NS ? now : last;
}

static void mock_begin(struct mock *mock, const struct shk_frame *frame)
{
    json_t *doc = json_loadb((const char *)frame->data, frame->len, 0, NULL);
    unsigned char put[4 + SHK_JOB_SPACE];

    mock->puts = 0;
    mock->run = (uint32_t)json_integer_value(json_object_get(doc, "run"));
    json_decref(doc);
    make_card((unsigned)(mock - mocks));
    memcpy(put, &mock->run, 4);
    memcpy(put + 4, card->space, atomic_load(&card->used));
    (void)shk_link_send(&mock->link, SHK_FRAME_PUT, put, 4 + atomic_load(&card->used));
    mock_state(mock, 1, SHK_PHASE_EXCHANGE);
}

static void mock_ended(struct mock *mock)
{
    char text[160];
    int len = snprintf(text, sizeof text,
                       "{\"run\":%u,\"alive\":false,\"code\":1,\"status\":0,\"ago_ms\":0,"
                       "\"seen_ms\":0,\"library\":\"\",\"call\":\"\",\"output\":\"\"}",
                       mock->run);

    mock_state(mock, FENCES, SHK_PHASE_DONE);
    (void)shk_link_send(&mock->link, SHK_FRAME_ENDED, text, (size_t)len);
}

/* As agent.c does. */
static void mock_go_on(struct mock *mock)
{
    if (mock->held.epoch == 0 || mock->puts < mock->held.puts)
        return;
    if (mock->held.epoch < FENCES)
        mock_state(mock, mock->held.epoch + 1, SHK_PHASE_EXCHANGE);
    else
        mock_ended(mock);
    mock->held.epoch = 0;
}

/* One opens what all get: in a real job every rank does so, on its own processor. */
static size_t opened(const struct shk_frame *frame)
{
    static char *first;
    static size_t first_len, cards;
    struct shk_error err = {""};
    size_t head = sizeof(struct world_puts_frame);
    char *text = NULL;

    if (first != NULL && first_len == frame->len && memcmp(first, frame->data, first_len) == 0)
        return cards;
    free(first);
    first = malloc(frame->len);
    first_len = frame->len;
    memcpy(first, frame->data, first_len);
    if (shk_unpack(frame->data + head, frame->len - head, SHK_LINK_MAX, &text, &cards, &err) < 0)
        die(err.text);
    free(text);
    return cards;
}

static void mock_puts(struct mock *mock, const struct shk_frame *frame)
{
    struct world_puts_frame head;

    agent_tree_pass(&mock->tree, frame);
    memcpy(&head, frame->data, sizeof head);
    if (head.run != mock->run || head.number != mock->puts + 1)
        return;
    mock->cards += mock->run <= 2 ? opened(frame) : 0;
    mock->puts++;
    mock_go_on(mock);
}

static void mock_frame(struct mock *mock, const struct shk_frame *frame)
{
    switch (frame->type) {
    case SHK_FRAME_RUN: mock_begin(mock, frame); break;
    case SHK_FRAME_PUTS: mock_puts(mock, frame); break;
    case SHK_FRAME_RELAY:
    case SHK_FRAME_PARENT: agent_tree_frame(&mock->tree, &mock->link, frame); break;
    case SHK_FRAME_RELEASE:
        memcpy(&mock->held, frame->data, sizeof mock->held);
        mock->held_ns = shk_job_now_ns();
        mock_go_on(mock);
        break;
    case SHK_FRAME_BYE:
        agent_tree_close(&mock->tree);
        shk_link_close(&mock->link);
        break;
    default: break;
    }
}

/* The real way in: greeting with the key, then who it is. */
static void mock_connect(unsigned rank, unsigned port)
{
    struct shk_greet_self self = world.self;
    struct shk_greet_welcome welcome;
    json_t *hosts = json_pack("[s]", "127.0.0.1");
    struct shk_connect how = {.self = &self,
                              .hosts = hosts,
                              .port = &port,
                              .ports = 1,
                              .end_ns = shk_job_now_ns() + 60000000000ULL};
    struct shk_error err = {""};
    char text[256];
    int len = 0, fd = 0;

    self.rank = rank;
    self.local_rank = 0;
    snprintf(self.host, sizeof self.host, "nid%06u", rank);
    fd = shk_connect(&how, &welcome, &err);
    json_decref(hosts);
    if (fd < 0)
        die(err.text);
    shk_link_open(&mocks[rank].link, fd);
    mocks[rank].world = (struct shk_world){.self = self, .meet = {.loopback = true}};
    agent_tree_open(&mocks[rank].tree, &mocks[rank].world);
    len = snprintf(text, sizeof text,
                   "{\"host\":\"nid%06u\",\"local_rank\":0,\"pid\":%d,\"rank\":%u,\"token\":\"\","
                   "\"version\":\"bench\"}",
                   rank, (int)getpid(), rank);
    (void)shk_link_send(&mocks[rank].link, SHK_FRAME_HELLO, text, (size_t)len);
}

static void mock_turn(struct mock *mock, bool link, bool tree)
{
    struct shk_frame frame;

    if (link) {
        (void)shk_link_flush(&mock->link);
        (void)shk_link_fill(&mock->link);
        while (shk_link_next(&mock->link, &frame))
            mock_frame(mock, &frame);
    }
    if (tree)
        agent_tree_turn(&mock->tree, &mock->link);
    while (tree && agent_tree_next(&mock->tree, &frame))
        mock_puts(mock, &frame);
}

static void mocks_turn(struct pollfd *fds)
{
    for (unsigned i = 0; i < world.size; i++) {
        fds[2 * i] =
            (struct pollfd){.fd = mocks[i].link.fd,
                            .events = (short)(POLLIN | (mocks[i].link.out.len > 0 ? POLLOUT : 0))};
        fds[2 * i + 1] = (struct pollfd){.fd = mocks[i].tree.epoll, .events = POLLIN};
    }
    (void)poll(fds, 2 * world.size, 20);
    for (unsigned i = 0; i < world.size; i++) {
        mock_turn(&mocks[i], fds[2 * i].revents != 0, fds[2 * i + 1].revents != 0);
        mocks_beat();
    }
}

/* Every rank got what all ranks published, in each of two runs. */
static int mocks_judge(void)
{
    size_t all = 0;

    for (unsigned i = 0; i < world.size; i++) {
        make_card(i);
        all += 2 * (8 + atomic_load(&card->used));
    }
    for (unsigned i = 0; i < world.size; i++)
        if (mocks[i].cards != all)
            return 1;
    return 0;
}

static void be_mocks(unsigned port) __attribute__((noreturn));
static void be_mocks(unsigned port)
{
    struct pollfd *fds = calloc(world.size, 2 * sizeof *fds);
    unsigned open = world.size;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(world.listen_fd);
    for (unsigned i = 0; i < world.size; i++)
        mock_connect(i, port);
    while (open > 0) {
        mocks_turn(fds);
        open = 0;
        for (unsigned i = 0; i < world.size; i++)
            open += mocks[i].link.fd >= 0;
    }
    _exit(mocks_judge());
}

static double seconds(const struct timeval *tv)
{
    return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static double used_cpu(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
}

static double most_mb(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static unsigned there(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < world.size; i++)
        count += world.members[i].state == MEMBER_IDLE;
    return count;
}

static uint64_t sent_by_root(uint64_t *most_p)
{
    uint64_t sum = 0;

    *most_p = 0;
    for (unsigned i = 0; i < world.size; i++) {
        uint64_t bytes = world.members[i].link.sent;

        sum += bytes;
        *most_p = bytes > *most_p ? bytes : *most_p;
    }
    return sum;
}

/* Frames to those that take them from rank 0, and some hundred bytes to everybody. */
static bool lean(const struct hub_group *group, uint64_t sent)
{
    uint64_t frames = 0;
    unsigned direct = world.size - hub_tree_joined(&world);

    for (unsigned i = 0; i < group->puts_count; i++)
        frames += group->puts[i].len;
    return sent < direct * frames + world.size * 1024ULL;
}

/* One all-reduce over all of them, as far as rank 0 has to do with it. */
static bool measure(void)
{
    bool few = false;
    struct shk_collective_options how = {.ranks = world.size, .deadline_ms = 600000};
    struct hub_member **members = calloc(world.size, sizeof(*members));
    struct shk_error err = {""};
    struct hub_group *group = NULL;
    uint64_t most = 0, most_before = 0, before = sent_by_root(&most_before), began = 0;
    double cpu = used_cpu(), mb = 0;

    for (unsigned i = 0; i < world.size; i++)
        members[i] = &world.members[i];
    began = shk_job_now_ns();
    group = hub_group_start(&world, members, world.size, &shk_transport_fabric, &how, &err);
    if (group == NULL)
        die(err.text);
    mb = most_mb();
    hub_groups_finish(&world, &group, 1);
    printf("%7u %8.2f %8.2f %9.0f %9.0f", world.size, (double)(shk_job_now_ns() - began) / 1e9,
           used_cpu() - cpu, mb, most_mb());
    printf(" %12.1f", (double)(sent_by_root(&most) - before) / 1e6);
    printf(" %12.3f %8u\n", (double)(most - most_before) / 1e6, hub_tree_joined(&world));
    fflush(stdout);
    if (group->result.outcome != SHK_CREW_OK)
        die(group->result.reason.text);
    few = lean(group, sent_by_root(&most) - before);
    hub_group_free(group);
    free(members);
    return few;
}

/* Three rounds of all-reduces between two nodes, half as many at once as there are nodes. */
static void measure_pairs(void)
{
    struct shk_collective_options how = {.ranks = world.size, .deadline_ms = 60000};
    struct hub_pairs found;
    uint64_t began = shk_job_now_ns();
    double cpu = used_cpu();
    char *text = NULL;

    if (hub_pairs(&world, &shk_transport_fabric, &how, SHK_PHASE_DONE, UINT64_MAX, &found) < 0)
        die("pairs");
    text = json_dumps(found.rows, JSON_COMPACT);
    printf("%u rounds of %u pairs: %.2f s, %.2f CPU s, %.0f MB most, rows %.2f MB\n", found.rounds,
           world.size / 2, (double)(shk_job_now_ns() - began) / 1e9, used_cpu() - cpu, most_mb(),
           (double)strlen(text) / 1e6);
    free(text);
    json_decref(found.rows);
    json_decref(found.nodes);
}

/* In the first one the ranks find each other. */
static void wait_joined(unsigned joined)
{
    uint64_t end = shk_job_now_ns() + 60000000000ULL;

    while (hub_tree_joined(&world) < joined && shk_job_now_ns() < end)
        hub_turn(&world, 20);
}

static unsigned prepare(unsigned ranks)
{
    unsigned port = 0;

    world = (struct shk_world){.options = &options,
                               .role = SHK_WORLD_ROOT,
                               .size = ranks,
                               .greets = true,
                               .self = {.key = {.there = true}, .size = ranks, .local_rank = -1}};
    memcpy(world.self.key.bytes, "a key that only the ranks know..", 32);
    snprintf(world.self.version, sizeof world.self.version, "bench");
    snprintf(world.host, sizeof world.host, "nid000000");
    world.members = calloc(ranks, sizeof *world.members);
    mocks = calloc(ranks, sizeof *mocks);
    for (unsigned i = 0; i < ranks; i++) {
        world.members[i].rank = i;
        world.members[i].link.fd = -1;
    }
    world_descriptors(&world);
    if ((world.listen_fd = shk_card_listen(NULL, 0, false, &port, NULL)) < 0)
        die("listen");
    return port;
}

int main(int argc, char **argv)
{
    unsigned ranks = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned width = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    unsigned port = 0;
    pid_t child = 0;
    int status = 0;
    uint64_t began = 0;
    bool few = false;

    if (argc < 2 || argc > 3 || ranks < 2) {
        fprintf(stderr, "usage: exchange RANKS [WIDTH]\n");
        return 2;
    }
    options.tree_from = width > 0 ? 2 : UINT_MAX;
    options.tree_width = width;
    port = prepare(ranks);
    child = fork();
    if (child == 0)
        be_mocks(port);
    began = shk_job_now_ns();
    while (there() < ranks)
        hub_turn(&world, 50);
    fprintf(stderr, "greeted in %.2f s, %.2f s of CPU\n", (double)(shk_job_now_ns() - began) / 1e9,
            used_cpu());
    printf("  ranks  seconds    CPU s MB before   MB most  MB from root  MB of a link  joined\n");
    (void)measure();
    wait_joined(width > 0 && ranks > width ? ranks - width : 0);
    few = measure();
    measure_pairs();
    for (unsigned i = 0; i < ranks; i++) {
        int32_t code = 0;

        (void)shk_link_send(&world.members[i].link, SHK_FRAME_BYE, &code, sizeof code);
    }
    (void)waitpid(child, &status, 0);
    return few && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
