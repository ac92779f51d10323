#include "spread_support.h"
#include "collectives/meet/connect.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Values that pack badly and are of different lengths. */
static size_t exchange_value(unsigned rank, int fence, unsigned char value[256])
{
    size_t len = 40 + (rank * 7 + (unsigned)fence * 31) % 200;
    for (size_t i = 0; i < len; i++)
        value[i] = (unsigned char)((rank * 2654435761U + (unsigned)fence * 40503U) >> i % 24) ^
                   (unsigned char)(i * 29);
    return len;
}

static int exchange_once(struct shk_job *job, int fence, struct spread_result *result,
                         struct shk_error *err)
{
    unsigned char mine[256], theirs[256], wanted[256];
    char key[16];
    size_t len = exchange_value(shk_job_rank(job), fence, mine);
    snprintf(key, sizeof key, "value %d", fence);
    int rc = shk_job_put(job, key, mine, len, err);
    rc = rc ? rc : shk_job_fence(job, 0, err);
    for (unsigned i = 0; !rc && i < shk_job_size(job); i++) {
        size_t got = 0, want = exchange_value(i, fence, wanted);
        bool right = shk_job_get(job, i, key, theirs, sizeof theirs, &got, NULL) == 0 &&
                     got == want && memcmp(theirs, wanted, want) == 0;
        result->right += right;
        result->wrong += !right;
    }
    return rc;
}

static int exchange_work(struct shk_job *job, const struct shk_collective_options *options,
                         struct shk_error *err)
{
    struct spread_result *result = shk_job_result(job, shk_job_rank(job));
    int rc = 0;
    shk_job_set_phase(job, SHK_PHASE_EXCHANGE, 0);
    for (int fence = 0; !rc && fence < SPREAD_FENCES; fence++) {
        if (!options->brief || shk_job_rank(job) + 1 == shk_job_size(job))
            usleep((useconds_t)options->min_bytes * 1000);
        rc = exchange_once(job, fence, result, err);
    }
    if (!rc)
        shk_job_set_phase(job, SHK_PHASE_DONE, 0);
    return rc;
}

static int exchange_facts(const struct shk_job *job, struct shk_crew_result *result,
                          const struct shk_collective_options *options, struct shk_facts *facts,
                          struct shk_error *err)
{
    (void)job, (void)options, (void)err;
    return shk_facts_text(facts, "collective.exchange.status",
                          result->outcome == SHK_CREW_OK ? "ok" : "failed", "test");
}

const struct shk_transport spread_exchange = {.name = "exchange",
                                              .doc = "exchanges values",
                                              .work = exchange_work,
                                              .result_bytes = sizeof(struct spread_result),
                                              .facts = exchange_facts};

/* In place of collectives/registry.c. */
const struct shk_transport *const *shk_transports(size_t *count_p)
{
    static const struct shk_transport *const all[] = {&spread_exchange};
    *count_p = 1;
    return all;
}

static void be_rank(struct spread *s, unsigned rank, unsigned port) __attribute__((noreturn));
static void be_rank(struct spread *s, unsigned rank, unsigned port)
{
    struct shk_world world = {.options = &s->options, .listen_fd = -1, .self = s->world.self};
    struct shk_greet_welcome welcome;
    struct shk_error err = {""};
    json_t *hosts = json_pack("[s]", "127.0.0.1");
    struct shk_connect how = {.self = &world.self,
                              .hosts = hosts,
                              .port = &port,
                              .ports = 1,
                              .end_ns = shk_job_now_ns() + 60000000000ULL};
    close(s->world.listen_fd);
    world.self.rank = rank;
    unsigned per_node = s->per_node ? s->per_node : 1, local = rank % per_node;
    world.self.local_rank = (int)local;
    world.meet.loopback = true;
    snprintf(world.host, sizeof world.host, "n%u", rank / per_node);
    snprintf(world.self.host, sizeof world.self.host, "n%u", rank / per_node);
    int fd = shk_connect(&how, &welcome, &err);
    json_decref(hosts);
    if (rank == s->bad_key && rank)
        world.self.key.bytes[0] ^= 1; /* rank 0 took it; other ranks are not to */
    int rc = fd < 0 ? fd : agent_serve(&world, fd, rank, local, &err);
    _exit(rc < 0 ? 1 : rc);
}

void spread_start(struct spread *s, unsigned ranks)
{
    struct shk_world *world = &s->world;
    struct shk_error err = {""};
    unsigned port = 0, came = 0;
    cr_assert_leq(ranks, SPREAD_MOST);
    s->options.version = "test";
    s->options.deadline_ms = 60000;
    *world = (struct shk_world){.options = &s->options,
                                .role = SHK_WORLD_ROOT,
                                .size = ranks,
                                .greets = true,
                                .self = {.key = {.there = true}, .size = ranks}};
    memcpy(world->self.key.bytes, "a key that only the ranks know..", 32);
    snprintf(world->self.version, sizeof world->self.version, "test");
    snprintf(world->host, sizeof world->host, "n0");
    world->members = calloc(ranks, sizeof *world->members);
    cr_assert_not_null(world->members);
    world->listen_fd = shk_card_listen(NULL, 0, true, &port, &err);
    cr_assert_geq(world->listen_fd, 0, "%s", err.text);
    for (unsigned i = 0; i < ranks; i++) {
        world->members[i].rank = i;
        world->members[i].link.fd = -1;
        s->pids[i] = fork();
        cr_assert_geq(s->pids[i], 0);
        if (s->pids[i] == 0)
            be_rank(s, i, port);
    }
    for (unsigned turns = 0; came < ranks && turns < 3000; turns++) {
        hub_turn(world, 20);
        came = 0;
        for (unsigned i = 0; i < ranks; i++)
            came += world->members[i].state == MEMBER_IDLE;
    }
    cr_assert_eq(came, ranks);
}

void spread_begin(struct spread *s)
{
    struct shk_collective_options how = {.ranks = s->world.size,
                                         .deadline_ms = 60000,
                                         .min_bytes = s->pause_ms,
                                         .brief = s->pause_last};
    struct hub_member *members[SPREAD_MOST];
    struct shk_error err = {""};
    unsigned count = 0;
    hub_group_free(s->group);
    for (unsigned i = 0; i < s->world.size; i++) {
        s->sent[i] = s->world.members[i].link.sent;
        if (s->world.members[i].state == MEMBER_IDLE)
            members[count++] = &s->world.members[i];
    }
    s->group = hub_group_start(&s->world, members, count, &spread_exchange, &how, &err);
    cr_assert_not_null(s->group, "%s", err.text);
}

static void spread_turn(struct spread *s)
{
    hub_turn(&s->world, 10);
    if (s->group)
        hub_spread_turn(&s->world, s->group);
}

void spread_wait_joined(struct spread *s, unsigned ranks)
{
    uint64_t end = shk_job_now_ns() + 10000000000ULL;
    while (hub_tree_joined(&s->world) != ranks && shk_job_now_ns() < end)
        spread_turn(s);
    cr_expect_eq(hub_tree_joined(&s->world), ranks, "%u", hub_tree_joined(&s->world));
}

void spread_wait_lost(struct spread *s, unsigned rank)
{
    uint64_t end = shk_job_now_ns() + 10000000000ULL;
    while (s->world.members[rank].state != MEMBER_LOST && shk_job_now_ns() < end)
        spread_turn(s);
    cr_assert_eq(s->world.members[rank].state, MEMBER_LOST);
}

void spread_wait_ms(struct spread *s, unsigned ms)
{
    uint64_t end = shk_job_now_ns() + ms * 1000000ULL;
    while (shk_job_now_ns() < end)
        spread_turn(s);
}

bool spread_direct(const struct spread *s, unsigned rank)
{
    size_t frames = 0;
    for (unsigned i = 0; i < s->group->puts_count; i++)
        frames += s->group->puts[i].len;
    return s->world.members[rank].link.sent - s->sent[rank] >= frames;
}

void spread_finish(struct spread *s)
{
    hub_groups_finish(&s->world, &s->group, 1);
}

void spread_expect_right(struct spread *s)
{
    cr_expect_eq(s->group->result.outcome, SHK_CREW_OK, "%s", s->group->result.reason.text);
    for (unsigned i = 0; i < s->group->size; i++) {
        const struct spread_result *result = shk_job_result(s->group->job, i);
        cr_expect_eq(result->right, SPREAD_FENCES * s->group->size, "rank %u", i);
        cr_expect_eq(result->wrong, 0, "rank %u", i);
    }
}

void spread_end(struct spread *s)
{
    int32_t code = 0;
    hub_group_free(s->group);
    s->group = NULL;
    for (unsigned i = 0; i < s->world.size; i++) {
        (void)shk_link_send(&s->world.members[i].link, SHK_FRAME_BYE, &code, sizeof code);
        (void)kill(s->pids[i], SIGCONT);
    }
    for (unsigned i = 0; i < s->world.size; i++) {
        (void)waitpid(s->pids[i], NULL, 0);
        shk_link_close(&s->world.members[i].link);
    }
    hub_facts_free(&s->world);
    hub_tree_free(&s->world);
    free(s->world.members);
    free(s->world.strangers);
    free(s->world.nodes);
    json_decref(s->world.nodes_known);
    close(s->world.listen_fd);
}
