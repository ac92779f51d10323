#include "collectives/algorithm/roofline.h"
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/ranks/job_private.h"
#include "core/text/order.h"
#include <stdlib.h>

/* Ping-pongs timed together, and how often; the least counts. */
#define ROOF_PINGS   20U
#define ROOF_BATCHES 10U

#define ROOF_ROUNDS 15U
#define ROOF_GROWTH ((size_t)4)

#define ROOF_WARM_BYTES ((size_t)1 << 20)

/* Bytes of one put: what the pipelined algorithms are tried with; 0: a rank's whole chunk. With
 * few the cost of a put shows, with many the two sides wait for each other. The best counts. */
static const size_t roof_pieces[] = {131072, 524288, 0};

#define ROOF_PIECES (sizeof roof_pieces / sizeof roof_pieces[0])

struct roof {
    struct shk_wire *wire;
    size_t count; /* elements */
};

static int roof_barrier(struct shk_wire *wire, uint64_t value, uint64_t *max_p)
{
    return shk_job_barrier(wire->job, value, max_p, shk_wire_poll, wire);
}

/* There and back between ranks 2 i and 2 i + 1; a rank without a partner looks on. */
static int roof_ping(struct shk_wire *wire)
{
    unsigned peer = wire->rank ^ 1U;
    size_t from = wire->heap->offset[SHK_AREA_SEND];
    size_t to = wire->heap->offset[shk_area_by_turn(wire, SHK_AREA_SLOT0)];
    int rc = 0;

    if (peer >= wire->size)
        return 0;
    if (wire->rank < peer) {
        rc = shk_wire_put(wire, peer, from, to, SHK_TYPE_BYTES, 0);
        return rc == 0 ? shk_wire_wait(wire, peer, 0) : rc;
    }
    rc = shk_wire_wait(wire, peer, 0);
    return rc == 0 ? shk_wire_put(wire, peer, from, to, SHK_TYPE_BYTES, 0) : rc;
}

static int roof_latency(struct shk_wire *wire, uint64_t budget_ns, double *latency_us_p)
{
    uint64_t start = shk_job_now_ns();
    uint64_t spent = 0;
    uint64_t best = UINT64_MAX;
    int rc = 0;

    for (unsigned b = 0; b < ROOF_BATCHES && rc == 0 && spent <= budget_ns; b++) {
        unsigned pings = b == 0 ? 1 : ROOF_PINGS; /* the first shows how slow it is */
        uint64_t from = 0;
        uint64_t took = 0;

        rc = roof_barrier(wire, 0, NULL);
        from = shk_job_now_ns();
        for (unsigned i = 0; i < pings && rc == 0; i++) {
            shk_wire_begin(wire);
            rc = roof_ping(wire);
            rc = rc == 0 ? shk_wire_flush(wire) : rc;
        }
        took = (shk_job_now_ns() - from) / pings;
        best = took < best ? took : best;
        /* What the next batch would take counts as spent, lest a slow network be pinged for long.
         */
        rc =
            rc == 0 ? roof_barrier(wire, shk_job_now_ns() - start + took * ROOF_PINGS, &spent) : rc;
    }
    rc = rc == 0 ? roof_barrier(wire, best, &best) : rc;
    *latency_us_p = (double)best / 2000.0;
    return rc;
}

static int roof_put(const struct roof *roof, const struct shk_cut *cut, size_t p)
{
    struct shk_heap *heap = roof->wire->heap;
    size_t from = 0;
    size_t to = 0;

    shk_cut_range(cut, 0, p, &from, &to);
    return shk_wire_put(roof->wire, (roof->wire->rank + 1) % roof->wire->size,
                        heap->offset[SHK_AREA_SEND] + from * SHK_TYPE_BYTES,
                        heap->offset[SHK_AREA_RECV] + from * SHK_TYPE_BYTES,
                        (to - from) * SHK_TYPE_BYTES, (uint32_t)p);
}

/* Every rank puts the whole message to the next and waits for that of the one before. */
static int roof_shift(const struct roof *roof, size_t piece_bytes)
{
    struct shk_wire *wire = roof->wire;
    struct shk_cut cut = shk_cut(1, roof->count, piece_bytes);
    size_t ahead = shk_cut_ahead(wire, &cut);
    int rc = 0;

    for (size_t p = 0; p < ahead && p < cut.pieces && rc == 0; p++)
        rc = roof_put(roof, &cut, p);
    for (size_t p = 0; p < cut.pieces && rc == 0; p++) {
        rc = shk_wire_wait(wire, (wire->rank + wire->size - 1) % wire->size, (uint32_t)p);
        if (rc == 0 && p + ahead < cut.pieces)
            rc = roof_put(roof, &cut, p + ahead);
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

/* One round with one size of the pieces. */
static int roof_round(const struct roof *roof, size_t piece_bytes, uint64_t *ns_p)
{
    struct shk_wire *wire = roof->wire;
    size_t chunk = shk_cut_chunk(wire->size, roof->count) * SHK_TYPE_BYTES;
    size_t piece = piece_bytes != 0 ? piece_bytes : chunk;
    uint64_t start = 0;
    int rc = 0;

    /* Both buffers as the sweep has them before an operation: the caches hold the same. */
    shk_data_fill(SHK_FLOAT32, shk_wire_stage(wire, SHK_AREA_SEND), roof->count, wire->rank,
                  wire->size, 0);
    rc = shk_wire_store(wire, SHK_AREA_SEND, roof->count * SHK_TYPE_BYTES);
    rc = rc == 0 ? shk_wire_poison(wire, SHK_AREA_RECV, 0, roof->count * SHK_TYPE_BYTES) : rc;
    rc = rc == 0 ? roof_barrier(wire, 0, NULL) : rc;
    start = shk_job_now_ns();
    shk_wire_begin(wire);
    if (rc == 0) {
        rc = wire->mapped ? shk_mapped_copy(wire, roof->count, piece) : roof_shift(roof, piece);
    }
    *ns_p = shk_job_now_ns() - start;
    return rc;
}

/* Median of the rounds on the slowest rank, for the best piece. Of copies in memory the best round:
 * what makes one longer is that a rank had no processor. */
static int roof_bandwidth(const struct roof *roof, uint64_t budget_ns, uint64_t *ns_p)
{
    uint64_t times[ROOF_PIECES][ROOF_ROUNDS];
    uint64_t start = shk_job_now_ns();
    uint64_t spent = 0;
    unsigned rounds = 0;
    int rc = 0;

    *ns_p = UINT64_MAX;
    while (rounds < ROOF_ROUNDS && rc == 0 && spent <= budget_ns) {
        for (size_t i = 0; i < ROOF_PIECES && rc == 0; i++)
            rc = roof_round(roof, roof_pieces[i], &times[i][rounds]);
        rounds++;
        rc = rc == 0 ? roof_barrier(roof->wire, shk_job_now_ns() - start, &spent) : rc;
    }
    for (size_t i = 0; i < ROOF_PIECES && rc == 0; i++) {
        uint64_t slowest = 0;

        qsort(times[i], rounds, sizeof times[i][0], shk_order_u64);
        rc = roof_barrier(roof->wire, times[i][roof->wire->mapped ? 0 : rounds / 2], &slowest);
        *ns_p = slowest < *ns_p ? slowest : *ns_p;
    }
    return rc;
}

int shk_roofline_own(struct shk_wire *wire, size_t bytes, uint64_t budget_ns, double *bandwidth_p)
{
    struct roof roof = {.wire = wire, .count = bytes / SHK_TYPE_BYTES};
    uint64_t start = shk_job_now_ns();
    uint64_t spent = 0;
    uint64_t best = UINT64_MAX;
    unsigned rounds = 0;
    int rc = 0;

    while (rounds < ROOF_ROUNDS && rc == 0 && spent <= budget_ns) {
        for (size_t i = 0; i < ROOF_PIECES && rc == 0; i++) {
            uint64_t ns = 0;

            rc = roof_round(&roof, roof_pieces[i], &ns);
            best = ns < best ? ns : best;
        }
        rounds++;
        rc = rc == 0 ? roof_barrier(wire, shk_job_now_ns() - start, &spent) : rc;
    }
    *bandwidth_p = (double)bytes / (double)(best != 0 ? best : 1);
    return rc;
}

/* Connections that are new, as those of TCP, are slow at first. */
static int roof_warm(struct shk_wire *wire, size_t max_bytes, uint64_t budget_ns)
{
    size_t bytes = max_bytes < ROOF_WARM_BYTES ? max_bytes : ROOF_WARM_BYTES;
    struct roof roof = {.wire = wire, .count = bytes / SHK_TYPE_BYTES};
    uint64_t ns = 0;

    return roof_bandwidth(&roof, budget_ns, &ns);
}

/* What a rank gives and takes of a message, by its length, as busbw counts it: a shift is all of
 * it, copies of parts are what an all-reduce moves. */
static double roof_share(const struct shk_wire *wire)
{
    return wire->mapped ? 2.0 * (wire->size - 1) / wire->size : 1.0;
}

int shk_roofline_run(struct shk_wire *wire, size_t max_bytes, uint64_t budget_ns,
                     struct shk_roofline *roof)
{
    uint64_t start = shk_job_now_ns();
    uint64_t spent = 0;
    uint64_t ns = 0;
    size_t bytes = SHK_ROOFLINE_MIN_BYTES;
    int rc = 0;

    roof->rows = 0;
    if (wire->size < 2)
        return 0;
    rc = roof_latency(wire, budget_ns / ROOF_GROWTH, &roof->latency_us);
    rc = rc == 0 ? roof_warm(wire, max_bytes, budget_ns / (2 * ROOF_GROWTH)) : rc;
    while (rc == 0 && bytes <= max_bytes && roof->rows < SHK_ROOFLINE_ROWS && spent <= budget_ns) {
        struct roof one = {.wire = wire, .count = bytes / SHK_TYPE_BYTES};

        rc = roof_bandwidth(&one, budget_ns / ROOF_GROWTH, &ns);
        roof->row[roof->rows].bytes = bytes;
        roof->row[roof->rows].bandwidth =
            roof_share(wire) * (double)bytes / (double)(ns != 0 ? ns : 1);
        roof->rows++;
        bytes *= ROOF_GROWTH;
        /* With what the next, larger size will take. */
        rc = rc == 0 ? roof_barrier(wire, shk_job_now_ns() - start + ns * ROOF_GROWTH, &spent) : rc;
    }
    return rc;
}

double shk_roofline_bandwidth(const struct shk_roofline *roof, uint64_t bytes)
{
    uint32_t rows = roof->rows < SHK_ROOFLINE_ROWS ? roof->rows : SHK_ROOFLINE_ROWS;
    double found = 0;
    uint32_t i = 0;

    for (i = 0; i < rows && roof->row[i].bytes <= bytes; i++)
        found = roof->row[i].bandwidth;
    if (i > 0 && i < rows && roof->row[i - 1].bytes < bytes && roof->row[i].bandwidth > found)
        found = roof->row[i].bandwidth;
    return found;
}
