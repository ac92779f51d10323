#include "collectives/algorithm/pairs.h"
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/ranks/job_private.h"
#include "core/text/order.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Passes over the rounds for each part. */
#define PAIRS_PASSES 5U

#define PAIRS_PINGS 20U

/* For how long this thread could have run and had no CPU, and how often it got one. */
struct pairs_wait {
    uint64_t ns, slices;
};

struct pairs {
    struct shk_wire *wire;
    unsigned rounds, passes, pings;
    uint64_t slowest_ns; /* ping-pong */
    int sched_fd;        /* of this thread's times; -1: none */
    struct pairs_part {
        struct pairs_wait ping_wait[SHK_PAIRS_ROUNDS], put_wait[SHK_PAIRS_ROUNDS]; /* sums */
        uint64_t ping_ns[SHK_PAIRS_ROUNDS]; /* fastest; 0: none */
        uint64_t put_ns[SHK_PAIRS_ROUNDS][PAIRS_PASSES];
    } part[SHK_PAIRS_PARTS];
};

unsigned shk_pairs_rounds(unsigned count)
{
    unsigned all = count < 2 ? 0 : count - 1 + count % 2;

    return all < SHK_PAIRS_ROUNDS ? all : SHK_PAIRS_ROUNDS;
}

/* The circle method: all but one stand on a circle of odd length, and those whose numbers add up to
 * the round meet; who is left meets the one in the middle, or nobody. */
unsigned shk_pairs_partner(unsigned count, unsigned round, unsigned rank)
{
    uint64_t circle = (uint64_t)count - 1 + count % 2;
    uint64_t half = (circle + 1) / 2; /* 1/2 modulo circle */
    uint64_t other = 0;

    if (rank == circle)
        return (unsigned)(round * half % circle);
    other = (round + circle - rank) % circle;
    if (other == rank)
        return circle < count ? (unsigned)circle : rank;
    return (unsigned)other;
}

static int pairs_barrier(struct pairs *p, uint64_t value, uint64_t *max_p)
{
    return shk_job_barrier(p->wire->job, value, max_p, shk_wire_poll, p->wire);
}

/* There and back, or with a rank that has a break nothing. */
static int pairs_ping(struct pairs *p, unsigned peer, uint64_t *ns_p)
{
    struct shk_wire *wire = p->wire;
    size_t from = wire->heap->offset[SHK_AREA_SEND];
    size_t to = 0;
    uint64_t start = shk_job_now_ns();
    int rc = 0;

    shk_wire_begin(wire);
    to = wire->heap->offset[shk_area_by_turn(wire, SHK_AREA_SLOT0)];
    if (wire->rank < peer) {
        rc = shk_wire_put(wire, peer, from, to, SHK_TYPE_BYTES, 0);
        rc = rc == 0 ? shk_wire_wait(wire, peer, 0) : rc;
    } else if (wire->rank > peer) {
        rc = shk_wire_wait(wire, peer, 0);
        rc = rc == 0 ? shk_wire_put(wire, peer, from, to, SHK_TYPE_BYTES, 0) : rc;
    }
    *ns_p = shk_job_now_ns() - start;
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

/* SHK_PAIRS_BYTES there and back at the same time. */
static int pairs_shift(struct pairs *p, unsigned peer, uint64_t *ns_p)
{
    struct shk_wire *wire = p->wire;
    struct shk_cut cut = shk_cut(1, SHK_PAIRS_BYTES / SHK_TYPE_BYTES, 0);
    size_t to = 0;
    uint64_t start = shk_job_now_ns();
    int rc = 0;

    shk_wire_begin(wire);
    to = wire->heap->offset[shk_area_by_turn(wire, SHK_AREA_PART0)];
    for (size_t i = 0; rc == 0 && peer != wire->rank && i < cut.pieces; i++) {
        size_t first = 0;
        size_t last = 0;

        shk_cut_range(&cut, 0, i, &first, &last);
        rc =
            shk_wire_put(wire, peer, wire->heap->offset[SHK_AREA_SEND] + first * SHK_TYPE_BYTES,
                         to + first * SHK_TYPE_BYTES, (last - first) * SHK_TYPE_BYTES, (uint32_t)i);
    }
    for (size_t i = 0; rc == 0 && peer != wire->rank && i < cut.pieces; i++)
        rc = shk_wire_wait(wire, peer, (uint32_t)i);
    rc = rc == 0 ? shk_wire_flush(wire) : rc;
    *ns_p = shk_job_now_ns() - start;
    return rc;
}

/* Documentation/scheduler/sched-stats of the kernel: "time spent waiting on a runqueue" and "# of
 * timeslices run on this cpu". */
static struct pairs_wait pairs_waited(const struct pairs *p)
{
    char text[96];
    ssize_t len = p->sched_fd >= 0 ? pread(p->sched_fd, text, sizeof text - 1, 0) : 0;
    unsigned long long ns = 0;
    unsigned long long slices = 0;

    text[len > 0 ? len : 0] = '\0';
    return sscanf(text, "%*u %llu %llu", &ns, &slices) == 2 ? (struct pairs_wait){ns, slices}
                                                            : (struct pairs_wait){0};
}

static void pairs_wait_add(const struct pairs *p, struct pairs_wait *sum, struct pairs_wait since)
{
    struct pairs_wait now = pairs_waited(p);

    sum->ns += now.ns - since.ns;
    sum->slices += now.slices - since.slices;
}

static int pairs_pass(struct pairs *p, struct pairs_part *part, unsigned pass)
{
    int rc = 0;

    for (unsigned round = 0; round < p->rounds && rc == 0; round++) {
        unsigned peer = shk_pairs_partner(p->wire->size, round, p->wire->rank);
        uint64_t ns = 0;
        struct pairs_wait waited;

        rc = pairs_barrier(p, 0, NULL);
        waited = pairs_waited(p);
        for (unsigned i = 0; i < p->pings && rc == 0; i++) {
            rc = pairs_ping(p, peer, &ns);
            if (part->ping_ns[round] == 0 || ns < part->ping_ns[round])
                part->ping_ns[round] = ns;
            p->slowest_ns = ns > p->slowest_ns ? ns : p->slowest_ns;
        }
        pairs_wait_add(p, &part->ping_wait[round], waited);
        rc = rc == 0 ? pairs_barrier(p, 0, NULL) : rc;
        waited = pairs_waited(p);
        rc = rc == 0 ? pairs_shift(p, peer, &part->put_ns[round][pass]) : rc;
        pairs_wait_add(p, &part->put_wait[round], waited);
    }
    return rc;
}

/* How much fits the time, from what passes with a single ping take on the slowest rank. The first
 * sets up connections. */
static int pairs_plan(struct pairs *p, uint64_t budget_ns)
{
    uint64_t start = 0;
    uint64_t took = 0;
    uint64_t ping = 0;
    uint64_t fit = 0;
    int rc = 0;

    p->pings = 1;
    rc = pairs_pass(p, &p->part[0], 0);
    p->slowest_ns = 0;
    start = shk_job_now_ns();
    rc = rc == 0 ? pairs_pass(p, &p->part[0], 0) : rc;
    rc = rc == 0 ? pairs_barrier(p, shk_job_now_ns() - start, &took) : rc;
    rc = rc == 0 ? pairs_barrier(p, p->slowest_ns, &ping) : rc;
    fit = budget_ns / SHK_PAIRS_PARTS / (took + 1);
    p->passes = fit < 1 ? 1 : fit < PAIRS_PASSES ? (unsigned)fit : PAIRS_PASSES;
    fit = budget_ns / (SHK_PAIRS_PARTS * p->passes * p->rounds * (ping + 1));
    p->pings = fit < 1 ? 1 : fit < PAIRS_PINGS ? (unsigned)fit : PAIRS_PINGS;
    memset(p->part, 0, sizeof p->part);
    return rc;
}

static void pairs_sum_up(const struct pairs *p, struct pairs_part *part, unsigned n,
                         struct shk_pairs_result *result)
{
    for (unsigned round = 0; round < p->rounds; round++) {
        if (shk_pairs_partner(p->wire->size, round, p->wire->rank) != p->wire->rank) {
            uint64_t *put_ns = part->put_ns[round];
            unsigned middle = p->passes / 2;
            uint64_t sum = 0;
            unsigned i = 0;

            for (i = 0; i < p->passes; i++)
                sum += put_ns[i];
            result->round[n][round].mean_us = (double)sum / p->passes / 1000.0;
            result->round[n][round].ping_wait_us = (double)part->ping_wait[round].ns /
                                                   (double)(part->ping_wait[round].slices + 1) /
                                                   1000.0;
            result->round[n][round].put_wait_us =
                (double)part->put_wait[round].ns / p->passes / 1000.0;
            qsort(put_ns, p->passes, sizeof *put_ns, shk_order_u64);
            result->round[n][round].latency_us = (double)part->ping_ns[round] / 2000.0;
            result->round[n][round].bandwidth =
                (double)SHK_PAIRS_BYTES / (double)(put_ns[middle] + 1);
        }
    }
}

int shk_pairs_run(struct shk_wire *wire, uint64_t budget_ns, struct shk_pairs_result *result)
{
    struct pairs p = {.wire = wire, .rounds = shk_pairs_rounds(wire->size)};
    int rc = 0;

    p.sched_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    rc = p.rounds > 0 ? pairs_plan(&p, budget_ns) : 0;

    for (unsigned pass = 0; pass < p.passes && rc == 0; pass++) {
        for (unsigned n = 0; n < SHK_PAIRS_PARTS && rc == 0; n++)
            rc = pairs_pass(&p, &p.part[n], pass);
    }
    rc = rc == 0 ? pairs_barrier(&p, 0, NULL) : rc;
    for (unsigned n = 0; n < SHK_PAIRS_PARTS && rc == 0; n++)
        pairs_sum_up(&p, &p.part[n], n, result);
    if (p.sched_fd >= 0)
        close(p.sched_fd);
    if (rc == 0)
        __atomic_store_n(&result->done, 1U, __ATOMIC_RELEASE);
    return rc;
}
