/* Connected endpoints below ofi_rxm (collectives/fabric/fabric_direct.c): drops that take them,
 * mixed with puts that do not; a rank without; lost ranks. Where libfabric's tcp needs no ofi_rxm
 * (1.18 and later) the same runs go without them. */
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/ranks/job.h"
#include "core/facts/facts.h"
#include "tests/unit/collectives/fabric_run.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define EVIDENCE "connected endpoints of tcp"

static const struct shk_collective_options small = {
    .ranks = 3,
    .min_bytes = 4,
    .max_bytes = 16384,
    .deadline_ms = 60000,
    .provider = "tcp",
};

static bool layered(const struct shk_facts *facts)
{
    return strcmp(fabric_text(facts, "collective.fabric.provider"), "tcp;ofi_rxm") == 0;
}

static bool told(const struct shk_facts *facts)
{
    json_t *line = NULL;
    size_t i = 0;

    json_array_foreach(shk_facts_get_array(facts, "collective.fabric.evidence"), i, line)
    {
        if (strstr(json_string_value(line), EVIDENCE) != NULL) {
            return true;
        }
    }
    return false;
}

static unsigned char saved[16384];

/* One more all-reduce; whether every element is right. */
static bool sums(struct shk_wire *wire, const struct shk_algorithm *algorithm, size_t count)
{
    const struct shk_allreduce_args args = {.type = SHK_INT32, .count = count};
    int32_t *send = shk_heap_at(wire->heap, SHK_AREA_SEND);
    const int32_t *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    uint64_t base = wire->op * 1000;
    bool right = true;
    size_t i = 0;

    for (i = 0; i < count; i++) {
        send[i] = (int32_t)(base + i * (wire->rank + 1));
    }
    if (shk_allreduce(wire, algorithm, &args) != 0) {
        return false;
    }
    for (i = 0; i < count; i++) {
        right &= recv[i] == (int32_t)(wire->size * base + i * (wire->size * (wire->size + 1) / 2));
    }
    return right;
}

/* After an operation of the sweep: others, with and without drops, in turns. A wrong one shows as a
 * wrong result of the sweep. */
static void mixed(struct shk_wire *wire, size_t bytes, void *arg)
{
    static const size_t counts[] = {1, 14, 15, 31, 100, 2000, 2062};
    unsigned char *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    bool right = true;
    size_t i = 0;

    (void)arg;
    if (bytes != 4) {
        return;
    }
    memcpy(saved, recv, sizeof(saved));
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        right &= sums(wire, &shk_allreduce_stamped, counts[i]);
        right &= sums(wire, &shk_allreduce_stamped, counts[i]);
        right &= sums(wire, &shk_allreduce_oneshot, counts[i]);
        right &= sums(wire, &shk_allreduce_stamped, 2062);
        right &= sums(wire, &shk_allreduce_ring, 2 * counts[i] < 4096 ? 2 * counts[i] : 4096);
        right &= sums(wire, &shk_allreduce_doubling, counts[i]);
    }
    memcpy(recv, saved, sizeof(saved));
    recv[0] ^= right ? 0 : 1;
}

Test(direct, drops_and_puts_in_turns, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = {.tamper = mixed};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(fabric_text(facts, "collective.fabric.status"), "ok", "%s",
                     fabric_text(facts, "collective.fabric.reason"));
    cr_expect_eq(told(facts), layered(facts));
    shk_facts_destroy(facts);
}

Test(direct, a_rank_without_them_makes_all_do_without, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = {.tamper = mixed};
    unsigned rank = 0;

    for (rank = 0; rank < 3; rank += 2) {
        struct shk_facts *facts = NULL;

        tweaks.no_direct = rank + 1;
        facts = fabric_run(&small, &tweaks);
        cr_expect_str_eq(fabric_text(facts, "collective.fabric.status"), "ok", "%s",
                         fabric_text(facts, "collective.fabric.reason"));
        cr_expect_not(told(facts));
        shk_facts_destroy(facts);
    }
}

Test(direct, a_rank_that_accepts_nobody_makes_all_do_without, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = {.tamper = mixed, .deaf_direct = 1};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(fabric_text(facts, "collective.fabric.status"), "ok", "%s",
                     fabric_text(facts, "collective.fabric.reason"));
    cr_expect_not(told(facts));
    shk_facts_destroy(facts);
}

static void lose(struct shk_wire *wire, size_t bytes, void *arg)
{
    static unsigned calls;

    (void)bytes;
    if (wire->rank == 1 && ++calls == 20) {
        raise(*(const int *)arg);
    }
}

static void expect_lost(int sig, const char *status, const char *how)
{
    struct shk_fabric_tweaks tweaks = {.tamper = lose, .tamper_arg = &sig};
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;
    struct timespec a, b;

    options.max_bytes = 1024;
    options.deadline_ms = 30000;
    clock_gettime(CLOCK_MONOTONIC, &a);
    facts = fabric_run(&options, &tweaks);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_expect_str_eq(fabric_text(facts, "collective.fabric.status"), status, "%s",
                     fabric_text(facts, "collective.fabric.reason"));
    cr_expect_eq(shk_facts_get_int(facts, "collective.fabric.rank", -1), 1);
    cr_expect_not_null(strstr(fabric_text(facts, "collective.fabric.reason"), how), "%s",
                       fabric_text(facts, "collective.fabric.reason"));
    cr_expect_lt(b.tv_sec - a.tv_sec, 20);
    shk_facts_destroy(facts);
}

Test(direct, a_rank_killed_among_small_sizes_is_named, .timeout = 600)
{
    expect_lost(SIGKILL, "crashed", "killed by SIGKILL");
}

Test(direct, a_rank_stopped_among_small_sizes_is_named, .timeout = 600)
{
    expect_lost(SIGSTOP, "timeout", "stopped by SIGSTOP");
}
