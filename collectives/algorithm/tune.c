#include "collectives/algorithm/tune.h"
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/ranks/job_private.h"
#include <limits.h>
#include <stdlib.h>

/* Sizes below this are tried in steps of four only: nothing changes between but where injects
 * end. */
#define TUNE_FINE_LOG 10U

/* Small messages differ by a tenth and take microseconds, of which a busy moment is many. */
#define TUNE_ROUNDS       6U
#define TUNE_ROUNDS_SMALL 40U
#define TUNE_SMALL_BYTES  ((size_t)16384)
/* Where busy processors leave time for fewer rounds than TUNE_ROUNDS, nothing is concluded of up to
 * so many bytes between up to so many ranks: there the default is known to be near the best. */
#define TUNE_KNOWN_BYTES ((size_t)32768)
#define TUNE_KNOWN_RANKS 8U
/* Rounds of one size end when they took this share of the budget. */
#define TUNE_SHARE 8U

/* What won for the size before, and at first what is known to be good, wins unless another is
 * better by more than noise. */
#define TUNE_STICKY 0.97

#define TUNE_CANDIDATES 24U

/* Longer than any chunk: not cut at all. */
#define TUNE_WHOLE ((size_t)1 << 40)

/* Beside the usual piece: a page, which providers copy rather than map, as long as that makes no
 * more than a few; a large one, where a put costs more; and the whole chunk, where nothing is
 * gained by adding up while more arrives, since the same processor moves the data. */
static const struct tune_piece {
    size_t bytes;
    size_t chunk_above;
    size_t chunk_most;
} tune_pieces[] = {
    {4096, 4096, 16384},
    {524288, SHK_PIECE_BYTES, SIZE_MAX},
    {TUNE_WHOLE, 524288, SIZE_MAX},
};

struct tune_candidate {
    uint32_t algorithm;
    size_t piece_bytes;
    uint64_t took_ns[TUNE_ROUNDS_SMALL]; /* of this rank */
    uint64_t typical_ns;                 /* of the slowest rank */
};

struct tune_trial {
    struct shk_wire *wire;
    size_t count;
    size_t max_drop; /* of all ranks' wires */
    unsigned rounds; /* had */
    unsigned candidates;
    struct tune_candidate candidate[TUNE_CANDIDATES];
};

uint64_t shk_tune_share(uint64_t deadline_ns, uint64_t want_ns)
{
    uint64_t now = shk_job_now_ns(), share = deadline_ns > now ? (deadline_ns - now) / 10 : 0;
    return deadline_ns && share < want_ns ? share : want_ns;
}

static void tune_add(struct tune_trial *trial, uint32_t algorithm, size_t piece_bytes)
{
    if (trial->candidates < TUNE_CANDIDATES) {
        trial->candidate[trial->candidates++] =
            (struct tune_candidate){.algorithm = algorithm, .piece_bytes = piece_bytes};
    }
}

static void tune_candidates(struct tune_trial *trial)
{
    unsigned ranks = trial->wire->size;
    size_t chunk = shk_cut_chunk(ranks, trial->count) * SHK_TYPE_BYTES;

    for (uint32_t a = 0; shk_algorithms[a] != NULL; a++) {
        const struct shk_algorithm *algorithm = shk_algorithms[a];

        if (!algorithm->fits(ranks, trial->count) || (algorithm->gets && !trial->wire->ops->get) ||
            (algorithm->drops && algorithm->drops(trial->count) > trial->max_drop) ||
            algorithm->maps != (trial->wire->mapped != NULL)) {
            continue;
        }
        tune_add(trial, a, 0);
        for (size_t i = 0; algorithm->pipelined && i < sizeof tune_pieces / sizeof *tune_pieces;
             i++) {
            if (chunk > tune_pieces[i].chunk_above && chunk <= tune_pieces[i].chunk_most)
                tune_add(trial, a, tune_pieces[i].bytes);
        }
    }
}

/* One operation on fresh data, as in the sweep: what a rank has just written costs its peers more.
 */
static int tune_once(struct tune_trial *trial, const struct tune_candidate *candidate,
                     uint64_t *took_ns_p)
{
    struct shk_wire *wire = trial->wire;
    struct shk_allreduce_args args = {
        .type = SHK_FLOAT32, .count = trial->count, .piece_bytes = candidate->piece_bytes};
    uint64_t start = 0;
    int rc = 0;

    shk_data_fill(SHK_FLOAT32, shk_wire_stage(wire, SHK_AREA_SEND), trial->count, wire->rank,
                  wire->size, candidate->algorithm);
    rc = shk_wire_store(wire, SHK_AREA_SEND, trial->count * SHK_TYPE_BYTES);
    rc = rc == 0 ? shk_wire_poison(wire, SHK_AREA_RECV, 0, trial->count * SHK_TYPE_BYTES) : rc;
    rc = rc == 0 ? shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire) : rc;
    start = shk_job_now_ns();
    rc = rc == 0 ? shk_allreduce(wire, shk_algorithms[candidate->algorithm], &args) : rc;
    *took_ns_p = shk_job_now_ns() - start;
    return rc;
}

static bool tune_small(const struct tune_trial *trial)
{
    return trial->count * SHK_TYPE_BYTES <= TUNE_SMALL_BYTES;
}

/* One round: every candidate in turn, so that a busy moment does not hit one alone. Small ones
 * twice, and the second counts: what is still on its way of another algorithm (TCP's
 * acknowledgements, say) costs the first. */
static int tune_round(struct tune_trial *trial)
{
    for (unsigned i = 0; i < trial->candidates; i++) {
        struct tune_candidate *candidate = &trial->candidate[i];
        uint64_t took = 0;
        int rc = tune_small(trial) ? tune_once(trial, candidate, &took) : 0;

        rc = rc == 0 ? tune_once(trial, candidate, &took) : rc;
        if (rc < 0)
            return rc;
        candidate->took_ns[trial->rounds] = took;
    }
    trial->rounds++;
    return 0;
}

static bool tune_conclusive(const struct tune_trial *trial)
{
    return trial->rounds >= TUNE_ROUNDS || trial->wire->size > TUNE_KNOWN_RANKS ||
           trial->count * SHK_TYPE_BYTES > TUNE_KNOWN_BYTES;
}

static int tune_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The lower quartile: the least is one lucky moment of ranks that began together, and the upper
 * half says more of what else runs here. */
static uint64_t tune_typical(struct tune_candidate *candidate, unsigned rounds)
{
    qsort(candidate->took_ns, rounds, sizeof candidate->took_ns[0], tune_order);
    return candidate->took_ns[(rounds - 1) / 4];
}

/* Several rounds; *spent_p grows by the time of the slowest rank. */
static int tune_rounds(struct tune_trial *trial, uint64_t budget_ns, uint64_t *spent_p)
{
    unsigned rounds = tune_small(trial) ? TUNE_ROUNDS_SMALL : TUNE_ROUNDS;
    uint64_t start = shk_job_now_ns();
    uint64_t spent = 0;
    int rc = 0;

    for (unsigned i = 0; i < rounds && rc == 0 && spent <= budget_ns / TUNE_SHARE; i++) {
        rc = tune_round(trial);
        if (rc == 0) {
            rc = shk_job_barrier(trial->wire->job, shk_job_now_ns() - start, &spent, shk_wire_poll,
                                 trial->wire);
        }
    }
    for (unsigned i = 0; i < trial->candidates && rc == 0; i++) {
        struct tune_candidate *candidate = &trial->candidate[i];

        candidate->typical_ns = tune_typical(candidate, trial->rounds);
        rc = shk_job_barrier(trial->wire->job, candidate->typical_ns, &candidate->typical_ns,
                             shk_wire_poll, trial->wire);
    }
    *spent_p += spent;
    return rc;
}

static struct shk_tune_choice tune_winner(const struct tune_trial *trial,
                                          const struct shk_tune_choice *before)
{
    const struct tune_candidate *winner = &trial->candidate[0];
    double least = 0;

    for (unsigned i = 0; i < trial->candidates; i++) {
        const struct tune_candidate *candidate = &trial->candidate[i];
        bool same = candidate->algorithm == before->algorithm &&
                    candidate->piece_bytes == before->piece_bytes;
        double ns = (double)candidate->typical_ns * (same ? TUNE_STICKY : 1.0);

        if (i == 0 || ns < least) {
            least = ns;
            winner = candidate;
        }
    }
    return (struct shk_tune_choice){
        .measured = true, .algorithm = winner->algorithm, .piece_bytes = winner->piece_bytes};
}

static unsigned tune_log(size_t bytes)
{
    return 63U - (unsigned)__builtin_clzll(bytes);
}

/* Of all ranks' values: the barrier's maximum of the complement. */
static int tune_least(struct shk_wire *wire, size_t value, size_t *least_p)
{
    uint64_t lacking = UINT64_MAX - value;
    int rc = shk_job_barrier(wire->job, lacking, &lacking, shk_wire_poll, wire);

    *least_p = (size_t)(UINT64_MAX - lacking);
    return rc;
}

/* Where nothing was measured. */
static uint32_t tune_default(const struct shk_tune *tune, unsigned ranks, size_t count)
{
    for (uint32_t a = 0; tune && shk_algorithms[a] != NULL; a++) {
        const struct shk_algorithm *algorithm = shk_algorithms[a];

        if (algorithm->drops && algorithm->fits(ranks, count) &&
            algorithm->drops(count) <= tune->free_drop) {
            return a;
        }
    }
    return shk_algorithm_default(ranks, count);
}

int shk_tune_run(struct shk_wire *wire, size_t min_bytes, size_t max_bytes, uint64_t budget_ns,
                 struct shk_tune *tune)
{
    size_t most = max_bytes < SHK_TUNE_MAX_BYTES ? max_bytes : SHK_TUNE_MAX_BYTES;
    unsigned first = tune_log(min_bytes < most ? min_bytes : most);
    struct shk_tune_choice before = {0};
    size_t inject = 0;
    uint64_t spent = 0;
    int rc = tune_least(wire, wire->max_drop, &tune->max_drop);

    rc = rc == 0 ? tune_least(wire, wire->free_drop, &tune->free_drop) : rc;
    rc = rc == 0 ? tune_least(wire, wire->max_inject, &inject) : rc;
    before.algorithm = tune_default(tune, wire->size, ((size_t)1 << first) / SHK_TYPE_BYTES);
    for (unsigned k = first; k <= tune_log(most) && rc == 0 && spent < budget_ns && wire->size > 1;
         k++) {
        struct tune_trial trial = {
            .wire = wire, .count = ((size_t)1 << k) / SHK_TYPE_BYTES, .max_drop = tune->max_drop};

        if (k < TUNE_FINE_LOG && (k - first) % 2 != 0 && (inject == 0 || k != tune_log(inject)))
            continue;
        tune_candidates(&trial);
        rc = tune_rounds(&trial, budget_ns, &spent);
        if (rc == 0 && tune_conclusive(&trial)) {
            before = tune_winner(&trial, &before);
            tune->choice[k] = before;
        }
    }
    rc = rc == 0 ? shk_wire_poison(wire, SHK_AREA_RECV, 0, wire->heap->length[SHK_AREA_RECV]) : rc;
    return rc < 0 ? rc : shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire);
}

void shk_tune_mapped(struct shk_tune *tune, unsigned ranks)
{
    for (unsigned k = tune_log(SHK_TYPE_BYTES); ranks > 1 && k < sizeof(size_t) * CHAR_BIT; k++) {
        for (uint32_t a = 0; shk_algorithms[a] != NULL; a++) {
            if (shk_algorithms[a]->maps &&
                shk_algorithms[a]->fits(ranks, ((size_t)1 << k) / SHK_TYPE_BYTES)) {
                tune->choice[k] = (struct shk_tune_choice){.measured = true, .algorithm = a};
                break;
            }
        }
    }
}

struct shk_tune_choice shk_tune_choose(const struct shk_tune *tune, unsigned ranks, size_t count)
{
    unsigned k = tune_log(count * SHK_TYPE_BYTES);

    while (k > 0 && tune && !tune->choice[k].measured)
        k--;
    if (tune && tune->choice[k].measured) {
        const struct shk_algorithm *algorithm = shk_algorithms[tune->choice[k].algorithm];

        if (algorithm->fits(ranks, count) &&
            (!algorithm->drops || algorithm->drops(count) <= tune->max_drop)) {
            return tune->choice[k];
        }
    }
    return (struct shk_tune_choice){.algorithm = tune_default(tune, ranks, count)};
}
