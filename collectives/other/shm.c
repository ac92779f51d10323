#include "collectives/other/shm.h"
#include "collectives/algorithm/sweep.h"
#include "collectives/other/shm_private.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Largest message: memory of a rank is about twice as much. */
#define SHM_MAX_BYTES ((size_t)1 << 34)

#define SHM_PAGE ((size_t)4096)

/* What all ranks inherit. Each has a part of its own: board, arrivals, heap. */
struct shm_region {
    unsigned char *base;
    size_t bytes;
    size_t part;     /* bytes of one rank's */
    size_t arrivals; /* offsets in it */
    size_t heap;
    struct shk_allreduce_layout layout;
};

struct shm_run {
    const struct shk_collective_options *options;
    const struct shk_shm_tweaks *tweaks;
    uint64_t deadline_ns;
    struct shm_region region;
};

struct shm {
    struct shk_wire wire; /* first: a struct shk_wire * is a struct shm * */
    uint32_t indices;
    uint8_t **arrivals; /* of each rank: those of even operations, then those of odd ones */
    struct shk_wire_mapped *mapped;
};

static size_t shm_round(size_t bytes)
{
    return (bytes + SHM_PAGE - 1) / SHM_PAGE * SHM_PAGE;
}

static int region_map(struct shm_region *region, unsigned ranks, size_t max_bytes,
                      struct shk_error *err)
{
    size_t heap_bytes = 0;
    void *map = NULL;
    int rc = 0;

    shk_allreduce_layout(ranks, max_bytes / SHK_TYPE_BYTES * SHK_TYPE_BYTES, &region->layout);
    /* Only used by algorithms that need no map. */
    region->layout.length[SHK_AREA_PART0] = 0;
    region->layout.length[SHK_AREA_PART1] = 0;
    rc = shk_heap_bytes(region->layout.length, &heap_bytes, err);
    region->arrivals = shm_round(sizeof(struct shk_wire_board));
    region->heap = region->arrivals + shm_round(2 * (size_t)region->layout.indices);
    if (rc == 0 && (__builtin_add_overflow(region->heap, heap_bytes, &region->part) ||
                    __builtin_mul_overflow(region->part, ranks, &region->bytes))) {
        return shk_error_set(err, EOVERFLOW, "shared memory would not fit an address space");
    }
    if (rc < 0)
        return rc;
    map = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return shk_error_sys(err, errno, "shared memory of %zu bytes", region->bytes);
    (void)madvise(map, region->bytes, MADV_HUGEPAGE); /* a hint: fewer page faults, TLB misses */
    region->base = map;
    return 0;
}

static unsigned char *region_part(const struct shm_region *region, unsigned rank)
{
    return region->base + rank * region->part;
}

/* The data are there before the arrival is seen. */
static void shm_arrive(struct shm *shm, unsigned rank, uint32_t index)
{
    size_t row = shk_wire_parity(&shm->wire) * shm->indices;

    __atomic_store_n(&shm->arrivals[rank][row + index], 1, __ATOMIC_RELEASE);
}

static int shm_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct shm *shm = (struct shm *)wire;

    memcpy(shm->mapped[peer].base + to, wire->heap->base + from, bytes);
    shm_arrive(shm, peer, index);
    return 0;
}

static int shm_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct shm *shm = (struct shm *)wire;

    memcpy(wire->heap->base + to, shm->mapped[peer].base + from, bytes);
    shm_arrive(shm, wire->rank, index);
    return 0;
}

/* Peers set what has arrived. */
static int shm_progress(struct shk_wire *wire)
{
    return wire->status;
}

static const struct shk_wire_ops shm_ops = {
    .put = shm_put, .get = shm_get, .progress = shm_progress};

static void shm_end(struct shm *shm, struct shk_heap *heap)
{
    shk_wire_fini(&shm->wire);
    shk_heap_destroy(heap);
    free(shm->arrivals);
    free(shm->mapped);
}

static int shm_begin(struct shm *shm, const struct shm_region *region, struct shk_job *job,
                     struct shk_heap *heap, struct shk_error *err)
{
    unsigned self = shk_job_rank(job);
    uint8_t *arrived[2] = {NULL, NULL};
    int rc = shk_heap_create_at(heap, region->layout.length,
                                region_part(region, self) + region->heap, err);

    shm->indices = region->layout.indices;
    shm->arrivals = calloc(shk_job_size(job), sizeof *shm->arrivals);
    shm->mapped = calloc(shk_job_size(job), sizeof *shm->mapped);
    if (rc < 0 || !shm->arrivals || !shm->mapped)
        return rc < 0 ? rc : shk_error_set(err, ENOMEM, "out of memory");
    for (unsigned i = 0; i < shk_job_size(job); i++) {
        unsigned char *part = region_part(region, i);

        shm->arrivals[i] = part + region->arrivals;
        shm->mapped[i] = (struct shk_wire_mapped){.base = part + region->heap,
                                                  .board = (struct shk_wire_board *)(void *)part};
    }
    arrived[0] = shm->arrivals[self];
    arrived[1] = shm->arrivals[self] + shm->indices;
    shk_wire_init_at(&shm->wire, &shm_ops, job, heap, shm->indices, arrived);
    shm->wire.mapped = shm->mapped;
    return 0;
}

static void run_phase(const struct shm_run *run, struct shk_job *job, enum shk_phase phase)
{
    shk_job_set_phase(job, phase, 0);
    if (run->tweaks->at_phase)
        run->tweaks->at_phase(job, phase, run->tweaks->at_phase_arg);
}

/* What the ranks can do with plain copies, and which algorithm makes the most of it. */
static int run_tune(const struct shm_run *run, struct shk_wire *wire, struct shk_roofline *roofline,
                    struct shk_tune *tune, struct shk_error *err)
{
    int rc = shk_roofline_run(wire, run->options->max_bytes,
                              shk_tune_share(run->deadline_ns, SHK_ROOFLINE_BUDGET_NS), roofline);

    shk_tune_mapped(tune, wire->size);
    if (rc == 0) {
        rc = shk_tune_run(wire, run->options->min_bytes, run->options->max_bytes,
                          shk_tune_share(run->deadline_ns, SHK_TUNE_BUDGET_NS), tune);
    }
    if (rc < 0) {
        shk_job_fail(wire->job, -rc, wire->by_peer, wire->error.text);
        return shk_error_set(err, -rc, "%s", wire->error.text);
    }
    return 0;
}

static int run_measure(const struct shm_run *run, struct shk_wire *wire, struct shk_error *err)
{
    struct shk_sweep_result *result = shk_job_result(wire->job, wire->rank);
    struct shk_tune tune = {0};
    struct shk_sweep_options options = {
        .min_bytes = run->options->min_bytes,
        .max_bytes = run->options->max_bytes,
        .deadline_ns = run->deadline_ns,
        .tune = &tune,
        .tamper = run->tweaks->tamper,
        .tamper_arg = run->tweaks->tamper_arg,
    };
    int rc = 0;

    run_phase(run, wire->job, SHK_PHASE_WARMUP);
    rc = shk_sweep_warmup(wire, err);
    if (rc == 0)
        rc = run_tune(run, wire, &result->roofline, &tune, err);
    return rc == 0 ? shk_sweep_run(wire, &options, result, err) : rc;
}

/* One rank, in its own process. */
static int run_worker(struct shk_job *job, void *arg, struct shk_error *err)
{
    const struct shm_run *run = arg;
    struct shm shm = {.indices = 0};
    struct shk_heap heap = {0};
    int rc = 0;

    run_phase(run, job, SHK_PHASE_START);
    run_phase(run, job, SHK_PHASE_OPEN);
    rc = shm_begin(&shm, &run->region, job, &heap, err);
    if (rc == 0) {
        run_phase(run, job, SHK_PHASE_EXCHANGE);
        rc = shk_job_fence(job, 0, err); /* peers have filled their heaps */
    }
    if (rc == 0)
        rc = run_measure(run, &shm.wire, err);
    if (rc == 0) {
        run_phase(run, job, SHK_PHASE_TEARDOWN);
        rc = shk_job_fence(job, 0, err);
    }
    shm_end(&shm, &heap);
    return rc;
}

static int run_crew(struct shm_run *run, struct shk_facts *facts, struct shk_error *err)
{
    const struct shk_collective_options *options = run->options;
    struct shk_crew crew = shk_crew_of(options, "shm", run_worker, run);
    struct shk_crew_result result = {.rank = -1};
    struct shk_error why = {{0}};
    struct shk_job *job = NULL;
    int rc = shk_sweep_sizes(options->min_bytes, options->max_bytes, SHM_MAX_BYTES, &why);

    if (rc == 0)
        rc = shk_job_create(&job, options->ranks, sizeof(struct shk_sweep_result), &why);
    if (rc == 0)
        rc = region_map(&run->region, options->ranks, options->max_bytes, &why);
    if (rc == 0)
        rc = shk_crew_run(&crew, job, &result, &why);
    if (rc == 0)
        rc = shm_facts(facts, job, &result, err);
    else
        rc = shm_facts_not_run(facts, options->ranks, why.text, err);
    if (run->region.base)
        munmap(run->region.base, run->region.bytes);
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    return rc;
}

int shk_shm_run(const struct shk_collective_options *options, const struct shk_shm_tweaks *tweaks,
                struct shk_facts *facts, struct shk_error *err)
{
    static const struct shk_shm_tweaks none = {0};
    struct shm_run run = {
        .options = options,
        .tweaks = tweaks ? tweaks : &none,
        .deadline_ns = options->deadline_ms != 0
                           ? shk_job_now_ns() + options->deadline_ms * UINT64_C(1000000)
                           : 0,
    };

    return run_crew(&run, facts, err);
}

static int run_shm(const struct shk_collective_options *options, struct shk_facts *facts,
                   struct shk_error *err)
{
    return shk_shm_run(options, NULL, facts, err);
}

const struct shk_transport shk_transport_shm = {
    .name = "shm",
    .doc = "verified all-reduce on host memory in its own shared memory, without libfabric",
    .run = run_shm,
};
