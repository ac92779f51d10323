#include "collectives/launch/world_private.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(clock, .timeout = 150);

/* A rank that answers as the real one does, `ahead_ns` later on its clock, after a nap; a silent
 * one never answers. */
struct fake {
    int64_t ahead_ns;
    unsigned nap_ms;
    bool silent;
};

static void fake_serve(int fd, const struct fake *fake) __attribute__((noreturn));
static void fake_serve(int fd, const struct fake *fake)
{
    struct shk_link in, out;
    struct shk_frame frame;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        _exit(1);
    }
    shk_link_open(&in, fd);
    shk_link_open(&out, pair[0]);
    while (in.fd >= 0) {
        struct pollfd ready = {.fd = in.fd, .events = POLLIN};
        struct {
            uint32_t head[2];
            struct world_clock_frame clock;
        } answer;

        (void)poll(&ready, 1, 1000);
        (void)shk_link_fill(&in);
        while (shk_link_next(&in, &frame) && !fake->silent) {
            world_clock_answer(&out, &frame);
            if (read(pair[1], &answer, sizeof(answer)) != (ssize_t)sizeof(answer)) {
                _exit(1);
            }
            answer.clock.wall_ns += fake->ahead_ns;
            (void)usleep(fake->nap_ms * 1000);
            (void)shk_link_send(&in, answer.head[0], &answer.clock, sizeof(answer.clock));
        }
    }
    _exit(0);
}

static json_t *clocks_of(const struct fake *fakes, unsigned count)
{
    struct shk_world_options options = {.deadline_ms = 1000};
    struct hub_member members[4];
    struct hub_node nodes[4];
    struct shk_world world = {.options = &options,
                              .listen_fd = -1,
                              .members = members,
                              .size = count,
                              .nodes = nodes,
                              .nodes_count = count};
    pid_t pids[4];
    json_t *rows = NULL;
    unsigned i = 0;

    memset(members, 0, sizeof(members));
    memset(nodes, 0, sizeof(nodes));
    for (i = 0; i < count; i++) {
        int pair[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        pids[i] = fork();
        if (pids[i] == 0) {
            close(pair[0]);
            fake_serve(pair[1], &fakes[i]);
        }
        close(pair[1]);
        shk_link_open(&members[i].link, pair[0]);
        members[i].state = MEMBER_IDLE;
        nodes[i].leader = i;
        snprintf(nodes[i].name, sizeof(nodes[i].name), "n%u", i);
    }
    hub_clocks(&world);
    rows = hub_clocks_json(&world);
    for (i = 0; i < count; i++) {
        shk_link_close(&members[i].link);
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    return rows;
}

static long long number(const json_t *rows, unsigned i, const char *name)
{
    const json_t *value = json_object_get(json_array_get(rows, i), name);

    cr_assert(json_is_integer(value), "%s of %u", name, i);
    return json_integer_value(value);
}

/* The true offset lies within the error, and the error covers a slow answer. */
Test(clock, offset_and_error)
{
    static const struct fake fakes[] = {
        {.ahead_ns = 0}, {.ahead_ns = 5000000000LL}, {.ahead_ns = -70000000, .nap_ms = 20}};
    json_t *rows = clocks_of(fakes, 3);
    unsigned i = 0;

    for (i = 0; i < 3; i++) {
        long long off = number(rows, i, "offset_us") - fakes[i].ahead_ns / 1000;
        long long error = number(rows, i, "error_us");

        cr_assert_leq(llabs(off), error + 1, "node %u: %lld us, error %lld us", i, off, error);
        cr_assert_geq(error, fakes[i].nap_ms * 1000 / 2);
    }
    json_decref(rows);
}

/* One that does not answer is waited for once, and said so; the others are known. */
Test(clock, silence)
{
    static const struct fake fakes[] = {{.ahead_ns = 0}, {.silent = true}};
    json_t *rows = clocks_of(fakes, 2);

    cr_assert_geq(number(rows, 0, "error_us"), 1);
    cr_assert_null(json_object_get(json_array_get(rows, 1), "offset_us"));
    cr_assert_not_null(json_object_get(json_array_get(rows, 1), "why"));
    json_decref(rows);
}
