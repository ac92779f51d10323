#include "collectives/algorithm/allreduce.h"
#include "collectives/algorithm/sweep.h"
#include "collectives/algorithm/tune.h"
#include "collectives/ranks/crew.h"
#include "tests/unit/collectives/hidden.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* A wire between processes through one shared mapping, so that the algorithms are tested without
 * libfabric. Puts may be delivered late and out of order, which a network may do as well. */

#define MAX_BYTES ((size_t)3 << 20)
#define HELD      8U

struct held_put {
    unsigned peer;
    size_t from, to, bytes;
    uint32_t index;
};

struct shared_wire {
    struct shk_wire wire;
    unsigned char *region;  /* heaps of all ranks */
    _Atomic uint8_t *flags; /* [rank][parity][index] */
    struct held_put held[HELD];
    unsigned count;
};

static struct {
    struct shk_heap heap;
    struct shk_allreduce_layout layout;
    unsigned char *region;
    _Atomic uint8_t *flags;
    struct shk_wire_board *boards; /* of all ranks, as many as there are most */
    bool hidden;                   /* the heaps' addresses are not where their memory is */
    unsigned fail_after;
} world;

static unsigned char *shared_own(const struct shared_wire *self)
{
    return self->region + self->wire.rank * self->wire.heap->bytes;
}

static void shared_deliver(struct shared_wire *self, unsigned which)
{
    struct held_put put = self->held[which];
    size_t bytes = self->wire.heap->bytes;
    size_t flag = (put.peer * 2 + shk_wire_parity(&self->wire)) * self->wire.indices + put.index;

    self->held[which] = self->held[--self->count];
    memcpy(self->region + put.peer * bytes + put.to, shared_own(self) + put.from, put.bytes);
    if (atomic_exchange(&self->flags[flag], 1) != 0) {
        (void)shk_wire_fail(&self->wire, 1, false, "index %u overrun", put.index);
    }
    self->wire.pending = self->count;
}

static int shared_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                      uint32_t index)
{
    struct shared_wire *self = (struct shared_wire *)wire;

    if (index >= wire->indices || from + bytes > wire->heap->bytes ||
        to + bytes > wire->heap->bytes || bytes > world.layout.max_put) {
        return shk_wire_fail(wire, 1, false, "put out of bounds");
    }
    if (self->count == HELD) {
        shared_deliver(self, HELD / 2);
    }
    self->held[self->count++] = (struct held_put){peer, from, to, bytes, index};
    wire->pending = self->count;
    return 0;
}

/* A peer that ends the operation before this copy would show as a wrong sum. */
static int shared_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                      uint32_t index)
{
    struct shared_wire *self = (struct shared_wire *)wire;

    if (index >= wire->indices || from + bytes > wire->heap->bytes ||
        to + bytes > wire->heap->bytes || bytes > world.layout.max_put) {
        return shk_wire_fail(wire, 1, false, "get out of bounds");
    }
    memcpy(shared_own(self) + to, self->region + peer * wire->heap->bytes + from, bytes);
    return shk_wire_arrived(wire, (uint8_t)wire->op, index);
}

/* The stamp is there before what it speaks of. */
static int shared_drop(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes)
{
    unsigned char *at = ((struct shared_wire *)wire)->region + peer * wire->heap->bytes + to;
    const unsigned char *data = wire->heap->base + from;

    memcpy(at + bytes - 8, data + bytes - 8, 8);
    sched_yield();
    memcpy(at, data, bytes);
    return 0;
}

static int shared_progress(struct shk_wire *wire)
{
    struct shared_wire *self = (struct shared_wire *)wire;
    int events = 0;
    uint32_t i = 0;
    unsigned ahead = 0;

    if (self->count > 0) {
        shared_deliver(self, self->count - 1); /* the youngest first */
    }
    for (ahead = 0; ahead < 2; ahead++) {
        uint64_t op = wire->op + ahead;
        _Atomic uint8_t *flags = &self->flags[(wire->rank * 2 + (op & 1)) * wire->indices];

        for (i = 0; i < wire->indices; i++) {
            /* An arrival of the next operation stays until this one is over: same parity rows. */
            if (atomic_load(&flags[i]) != 0) {
                atomic_store(&flags[i], 0);
                (void)shk_wire_arrived(wire, (uint8_t)op, i);
                events++;
            }
        }
    }
    return wire->status != 0 ? wire->status : events;
}

static const struct shk_wire_ops shared_ops = {
    .put = shared_put, .get = shared_get, .drop = shared_drop, .progress = shared_progress};

static const size_t counts[] = {1,     2,     3,     7,      15,     16,     17,
                                100,   1000,  2048,  2049,   4096,   8191,   8193,
                                10000, 65536, 65537, 100003, 262144, 786431, 786432};

/* With more ranks than this machine may have processors: 16 pieces of the largest size are enough.
 */
enum { MANY_RANKS_COUNT = 262144 };

static const size_t pieces[] = {0, 4096, 65536};

static int check_count(struct shared_wire *self, const struct shk_algorithm *algorithm,
                       size_t count, enum shk_type type, uint32_t seed, struct shk_error *err)
{
    struct shk_allreduce_args args = {
        .type = type, .count = count, .piece_bytes = pieces[seed % 3]};
    struct shk_heap *heap = self->wire.heap;
    struct shk_mismatch bad = {0};
    int rc = 0;

    shk_data_fill(type, shk_wire_stage(&self->wire, SHK_AREA_SEND), count, self->wire.rank,
                  self->wire.size, seed);
    rc = shk_wire_store(&self->wire, SHK_AREA_SEND, count * SHK_TYPE_BYTES);
    rc = rc == 0 ? shk_wire_poison(&self->wire, SHK_AREA_RECV, 0, MAX_BYTES) : rc;
    rc = rc == 0 ? shk_allreduce(&self->wire, algorithm, &args) : rc;
    rc = rc == 0 ? shk_wire_load(&self->wire, SHK_AREA_RECV, count * SHK_TYPE_BYTES) : rc;
    if (rc != 0) {
        return shk_error_set(err, 1, "%s", self->wire.error.text);
    }
    if (!shk_data_verify(type, shk_wire_stage(&self->wire, SHK_AREA_RECV), count, self->wire.size,
                         seed, &bad)) {
        return shk_error_set(err, 1, "%s, %zu elements: %zu wrong, first %zu is %g, not %g",
                             algorithm->name, count, bad.wrong, bad.index, bad.got, bad.expected);
    }
    rc = shk_heap_poisoned(heap, SHK_AREA_RECV, count * SHK_TYPE_BYTES, err);
    return rc != 0 ? rc : shk_heap_check(heap, err);
}

enum { BOARDS = 16 };

/* Heaps that every rank sees: where nothing hides them, and there is a board for each. */
static void map_heaps(struct shared_wire *self, struct shk_wire_mapped mapped[BOARDS])
{
    unsigned i = 0;

    for (i = 0; i < self->wire.size && i < BOARDS; i++) {
        mapped[i] = (struct shk_wire_mapped){.base = world.region + i * self->wire.heap->bytes,
                                             .board = &world.boards[i]};
    }
    self->wire.mapped = !world.hidden && self->wire.size <= BOARDS ? mapped : NULL;
}

static int work_allreduce(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct hidden_memory hidden = {.memory = hidden_ops};
    struct shk_heap heap = world.heap;
    struct shared_wire self = {.region = world.region, .flags = world.flags};
    struct shk_wire_mapped mapped[BOARDS] = {{0}};
    uint32_t seed = 0;
    size_t i = 0;
    int rc = 0;

    (void)arg;
    heap.base = world.region + shk_job_rank(job) * heap.bytes;
    if (world.hidden) {
        hidden.behind = heap.base;
        hidden.fail_after = shk_job_rank(job) == 0 ? world.fail_after : 0;
        rc = shk_heap_create_in(&heap, world.layout.length, &hidden.memory, err);
        rc = rc == 0 ? shk_job_fence(job, 0, err) : rc; /* it was filled where others put to */
    }
    if (rc == 0) {
        rc = shk_wire_init(&self.wire, &shared_ops, job, &heap, world.layout.indices, err);
        map_heaps(&self, mapped);
    }
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]) && rc == 0;
         i += shk_job_size(job) > 5 ? 3 : 1) {
        unsigned a = 0;

        if (shk_job_size(job) > 4 && counts[i] > MANY_RANKS_COUNT) {
            break;
        }
        for (a = 0; shk_algorithms[a] != NULL && rc == 0; a++) {
            if (shk_algorithms[a]->fits(shk_job_size(job), counts[i]) &&
                (!shk_algorithms[a]->maps || self.wire.mapped != NULL) &&
                (!shk_algorithms[a]->drops || !world.hidden)) {
                enum shk_type type = (seed & 1) != 0 ? SHK_INT32 : SHK_FLOAT32;

                rc = check_count(&self, shk_algorithms[a], counts[i], type, ++seed, err);
            }
        }
    }
    shk_wire_fini(&self.wire);
    if (world.hidden) {
        shk_heap_destroy(&heap);
    }
    return rc;
}

static size_t world_flags(unsigned ranks)
{
    return (size_t)ranks * 2 * world.layout.indices;
}

static void world_make(unsigned ranks)
{
    struct shk_error err = {{0}};
    unsigned i = 0;

    shk_allreduce_layout(ranks, MAX_BYTES, &world.layout);
    cr_assert_eq(shk_heap_create(&world.heap, world.layout.length, &err), 0, "%s", err.text);
    world.region = mmap(NULL, ranks * world.heap.bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    world.flags =
        mmap(NULL, world_flags(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)world.region, MAP_FAILED);
    world.boards = mmap(NULL, BOARDS * sizeof(*world.boards), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)world.flags, MAP_FAILED);
    cr_assert_neq((void *)world.boards, MAP_FAILED);
    for (i = 0; i < ranks; i++) {
        memcpy(world.region + i * world.heap.bytes, world.heap.base, world.heap.bytes);
    }
}

static void world_clear(unsigned ranks)
{
    munmap(world.region, ranks * world.heap.bytes);
    munmap((void *)world.flags, world_flags(ranks));
    munmap(world.boards, BOARDS * sizeof(*world.boards));
    shk_heap_destroy(&world.heap);
}

static void all_counts(unsigned ranks)
{
    struct shk_crew crew = {.name = "test", .work = work_allreduce, .deadline_ms = 60000};
    struct shk_crew_result result;
    struct shk_error err = {{0}};
    struct shk_job *job = NULL;

    world_make(ranks);
    cr_assert_eq(shk_job_create(&job, ranks, 0, &err), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
    cr_expect_eq(result.outcome, SHK_CREW_OK, "%u ranks: %s", ranks, result.reason.text);
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    world_clear(ranks);
}

static void all_counts_of(const unsigned *ranks, size_t n)
{
    size_t i = 0;

    for (i = 0; i < n; i++) {
        all_counts(ranks[i]);
    }
}

Test(allreduce, right_for_any_count_and_ranks, .timeout = 1500)
{
    static const unsigned ranks[] = {1, 3};

    all_counts_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
}

Test(allreduce_long, right_for_any_count_and_ranks, .timeout = 1500)
{
    static const unsigned ranks[] = {2, 4, 5, 6, 16};

    all_counts_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
}

/* Nothing may follow an address of the heap where its memory is not the host's. */
Test(allreduce, right_in_memory_that_is_not_the_hosts, .timeout = 1500)
{
    static const unsigned ranks[] = {1, 3};

    world.hidden = true;
    all_counts_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
}

Test(allreduce_long, right_in_memory_that_is_not_the_hosts, .timeout = 1500)
{
    static const unsigned ranks[] = {4};

    world.hidden = true;
    all_counts_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
}

Test(allreduce, memory_that_fails_is_named, .timeout = 600)
{
    struct shk_crew crew = {.name = "test", .work = work_allreduce, .deadline_ms = 60000};
    struct shk_crew_result result;
    struct shk_error err = {{0}};

    world.hidden = true;
    for (world.fail_after = 5; world.fail_after < 60; world.fail_after += 7) {
        struct shk_job *job = NULL;

        world_make(2);
        cr_assert_eq(shk_job_create(&job, 2, 0, &err), 0);
        cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
        cr_expect_eq(result.outcome, SHK_CREW_FAILED);
        cr_expect_eq(result.rank, 0);
        cr_expect_not_null(strstr(result.reason.text, "the memory is gone"), "%s",
                           result.reason.text);
        shk_crew_result_clear(&result);
        shk_job_destroy(job);
        world_clear(2);
    }
}

Test(allreduce, algorithm_by_size_and_ranks)
{
    static const struct {
        unsigned ranks;
        size_t count;
        const char *name;
    } rows[] = {{1, 1000000, "single"},
                {2, 1, "one-shot"},
                {4, 1, "one-shot"},
                {2, 4U << 20, "ring"},
                {1000, 4U << 20, "ring"}};
    size_t i = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned a = shk_algorithm_default(rows[i].ranks, rows[i].count);

        cr_expect_str_eq(shk_algorithms[a]->name, rows[i].name);
        cr_expect(shk_algorithms[a]->fits(rows[i].ranks, rows[i].count));
    }
}

Test(allreduce, layout_grows_with_the_message_not_the_square_of_the_ranks)
{
    struct shk_allreduce_layout layout;
    size_t total = 0;
    int i = 0;

    shk_allreduce_layout(64, (size_t)16 << 20, &layout);
    for (i = 0; i < SHK_AREA_COUNT; i++) {
        total += layout.length[i];
    }
    cr_expect_leq(total, ((size_t)16 << 20) * 4 + ((size_t)2 << 20));
    cr_expect_lt(layout.indices, 1U << 24, "must fit a notification");
    shk_allreduce_layout(1, 4096, &layout);
    cr_expect_eq(layout.length[SHK_AREA_SLOT0], 0);
    cr_expect_eq(layout.length[SHK_AREA_PART0], 0);
}

Test(wire, arrivals_out_of_turn_are_refused)
{
    struct shk_job *job = NULL;
    struct shk_heap heap = {0};
    struct shared_wire self = {0};

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    shk_job_join(job, 0);
    cr_assert_eq(shk_wire_init(&self.wire, &shared_ops, job, &heap, 10, NULL), 0);
    shk_wire_begin(&self.wire);
    cr_expect_eq(shk_wire_arrived(&self.wire, 1, 3), 0, "this operation");
    cr_expect_eq(shk_wire_arrived(&self.wire, 2, 3), 0, "the next one");
    cr_expect_eq(shk_wire_wait(&self.wire, 1, 3), 0);
    cr_expect_lt(shk_wire_arrived(&self.wire, 2, 3), 0, "twice");
    cr_expect_not_null(strstr(self.wire.error.text, "arrived twice"), "%s", self.wire.error.text);
    shk_wire_fini(&self.wire);
    memset(&self, 0, sizeof(self));
    cr_assert_eq(shk_wire_init(&self.wire, &shared_ops, job, &heap, 10, NULL), 0);
    shk_wire_begin(&self.wire);
    cr_expect_lt(shk_wire_arrived(&self.wire, 3, 3), 0, "two ahead");
    cr_expect_lt(shk_wire_wait(&self.wire, 1, 3), 0, "errors stick");
    shk_wire_fini(&self.wire);
    memset(&self, 0, sizeof(self));
    cr_assert_eq(shk_wire_init(&self.wire, &shared_ops, job, &heap, 10, NULL), 0);
    cr_expect_lt(shk_wire_arrived(&self.wire, 0, 10), 0, "index out of range");
    shk_wire_fini(&self.wire);
    shk_job_destroy(job);
}

Test(sweep, plan_covers_powers_of_two_and_a_second_type)
{
    struct shk_sweep_row rows[SHK_SWEEP_MAX];
    unsigned n = shk_sweep_plan(4, (size_t)16 << 20, false, rows);
    unsigned i = 0;

    cr_assert_eq(n, 25);
    for (i = 0; i < 23; i++) {
        cr_expect_eq(rows[i].bytes, (uint64_t)4 << i);
        cr_expect_eq(rows[i].type, SHK_FLOAT32);
    }
    cr_expect_eq(rows[23].type, SHK_INT32);
    cr_expect_eq(rows[23].bytes, 4);
    cr_expect_eq(rows[24].bytes, 1U << 20);
    n = shk_sweep_plan(4, (size_t)1 << 20, true, rows);
    cr_expect_eq(n, 9, "4 B to 1 MiB in steps of eight, and int32 twice");
    cr_expect_eq(rows[1].bytes, 32);
    cr_expect_eq(rows[6].bytes, (size_t)1 << 20, "the largest is always there");
    n = shk_sweep_plan(100, 100, false, rows);
    cr_assert_eq(n, 2);
    cr_expect_eq(rows[0].bytes, 64);
    n = shk_sweep_plan(4, SIZE_MAX, false, rows);
    cr_expect_leq(n, SHK_SWEEP_MAX);
}

Test(sweep, bandwidth_is_that_of_nccl_tests)
{
    struct shk_sweep_result *result = NULL;
    struct shk_job *job = NULL;
    json_t *sizes = NULL;
    json_t *row = NULL;
    unsigned rank = 0;

    cr_assert_eq(shk_job_create(&job, 4, sizeof(*result), NULL), 0);
    for (rank = 0; rank < 4; rank++) {
        result = shk_job_result(job, rank);
        result->rows = 2;
        result->row[0] = (struct shk_sweep_row){
            .bytes = 1000000, .iterations = 7, .done = 1, .time_us = 100.0 + 100.0 * rank};
        result->row[1] = (struct shk_sweep_row){.bytes = 4, .done = rank != 2};
    }
    sizes = shk_sweep_json(job);
    cr_assert_eq(json_array_size(sizes), 1, "a row that a rank did not finish is left out");
    row = json_array_get(sizes, 0);
    cr_expect_eq(json_real_value(json_object_get(row, "time_us")), 400.0);
    cr_expect_float_eq(json_real_value(json_object_get(row, "algbw")), 2.5, 1e-9);
    cr_expect_float_eq(json_real_value(json_object_get(row, "busbw")), 3.75, 1e-9);
    cr_expect_eq(json_integer_value(json_object_get(row, "iterations")), 7);
    json_decref(sizes);
    shk_job_destroy(job);
}

/* A transport on which some operations are slow, to see that tuning notices. */
static struct {
    size_t slow_above; /* bytes of a put */
    struct shk_tune tune;
} tuned;

static int slow_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                    uint32_t index)
{
    struct timespec nap = {.tv_nsec = 3000000};

    if (bytes > tuned.slow_above) {
        nanosleep(&nap, NULL);
    }
    return shared_put(wire, peer, from, to, bytes, index);
}

static const struct shk_wire_ops slow_ops = {.put = slow_put, .progress = shared_progress};

static int work_roofline(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct shk_heap heap = world.heap;
    struct shared_wire self = {.region = world.region, .flags = world.flags};
    int rc = 0;

    (void)arg;
    heap.base = world.region + shk_job_rank(job) * heap.bytes;
    rc = shk_wire_init(&self.wire, &slow_ops, job, &heap, world.layout.indices, err);
    if (rc == 0) {
        rc = shk_roofline_run(&self.wire, (size_t)1 << 20, UINT64_C(5000000000),
                              shk_job_result(job, shk_job_rank(job)));
    }
    shk_wire_fini(&self.wire);
    return rc;
}

Test(roofline, slow_puts_show, .timeout = 600)
{
    struct shk_crew crew = {.name = "test", .work = work_roofline, .deadline_ms = 60000};
    struct shk_crew_result result;
    struct shk_roofline *roof = NULL;
    struct shk_error err = {{0}};
    struct shk_job *job = NULL;

    tuned.slow_above = 65536;
    world_make(3);
    cr_assert_eq(shk_job_create(&job, 3, sizeof(*roof), &err), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
    cr_assert_eq(result.outcome, SHK_CREW_OK, "%s", result.reason.text);
    roof = shk_job_result(job, 1);
    cr_assert_eq(roof->rows, 3, "64 KiB, 256 KiB, 1 MiB");
    cr_expect_gt(roof->latency_us, 0.0);
    cr_expect_gt(shk_roofline_bandwidth(roof, 65536), 0.0);
    /* Two puts of 3 ms each, at best. */
    cr_expect_lt(shk_roofline_bandwidth(roof, 262144), 262144 / 3e6);
    cr_expect_eq(shk_roofline_bandwidth(roof, 200000), roof->row[0].bandwidth);
    cr_expect_eq(shk_roofline_bandwidth(roof, 65535), 0.0);
    cr_expect_arr_eq(roof, shk_job_result(job, 2), sizeof(*roof), "ranks disagree");
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    world_clear(3);
}

static int work_tune(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct shk_heap heap = world.heap;
    struct shared_wire self = {.region = world.region, .flags = world.flags};
    struct shk_tune tune = {0};
    const uint64_t *budget = arg;
    int rc = 0;

    heap.base = world.region + shk_job_rank(job) * heap.bytes;
    rc = shk_wire_init(&self.wire, &slow_ops, job, &heap, world.layout.indices, err);
    if (rc == 0) {
        rc = shk_tune_run(&self.wire, 4, 65536, *budget, &tune);
    }
    if (rc == 0) {
        rc = shk_heap_poisoned(&heap, SHK_AREA_RECV, 0, err);
    }
    memcpy(shk_job_result(job, shk_job_rank(job)), &tune, sizeof(tune));
    shk_wire_fini(&self.wire);
    return rc;
}

static void run_tune(size_t slow_above, uint64_t budget)
{
    struct shk_crew crew = {
        .name = "test", .work = work_tune, .arg = &budget, .deadline_ms = 60000};
    struct shk_crew_result result;
    struct shk_error err = {{0}};
    struct shk_job *job = NULL;

    tuned.slow_above = slow_above;
    world_make(3);
    cr_assert_eq(shk_job_create(&job, 3, sizeof(struct shk_tune), &err), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
    cr_assert_eq(result.outcome, SHK_CREW_OK, "%s", result.reason.text);
    tuned.tune = *(struct shk_tune *)shk_job_result(job, 0);
    cr_expect_arr_eq(shk_job_result(job, 2), &tuned.tune, sizeof(tuned.tune),
                     "ranks disagree on the choice");
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    world_clear(3);
}

Test(tune, what_is_slow_is_not_chosen, .timeout = 600)
{
    struct shk_tune_choice choice;

    run_tune(8192, UINT64_C(5000000000));
    choice = shk_tune_choose(&tuned.tune, 3, 16384 / SHK_TYPE_BYTES);
    cr_expect(choice.measured);
    cr_expect(shk_algorithms[choice.algorithm]->pipelined,
              "%s puts the whole vector, which takes 3 ms", shk_algorithms[choice.algorithm]->name);
    cr_expect(!shk_algorithms[choice.algorithm]->gets, "the wire has no get");
}

Test(tune, budget_ends_it_and_the_default_is_used, .timeout = 600)
{
    struct shk_tune_choice choice;
    unsigned k = 0;
    unsigned measured = 0;

    run_tune(0, 1);
    for (k = 0; k < 64; k++) {
        measured += tuned.tune.choice[k].measured;
    }
    cr_expect_eq(measured, 0, "%u small sizes chosen for after one round", measured);
    choice = shk_tune_choose(NULL, 3, 1000000);
    cr_expect(!choice.measured);
    cr_expect_str_eq(shk_algorithms[choice.algorithm]->name, "ring");
    tuned.tune.choice[2].measured = true; /* of the first algorithm: for one rank */
    choice = shk_tune_choose(&tuned.tune, 3, (size_t)64 << 20);
    cr_expect(shk_algorithms[choice.algorithm]->fits(3, (size_t)64 << 20),
              "the choice for 4 bytes must not be used where it does not fit");
}
