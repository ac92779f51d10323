#include "collectives/algorithm/pairs.h"
#include "collectives/collective.h"
#include "collectives/fabric/fabric.h"
#include "collectives/ranks/crew.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Whoever meets somebody is met by them, nobody twice, and a break is rare. */
Test(pairs, tournament)
{
    for (unsigned count = 1; count <= 40; count++) {
        unsigned rounds = shk_pairs_rounds(count);
        bool *met = calloc((size_t)count * count, sizeof *met);

        cr_assert_leq(rounds, SHK_PAIRS_ROUNDS);
        cr_assert_eq(rounds == 0, count < 2);
        for (unsigned r = 0; r < rounds; r++) {
            unsigned breaks = 0;
            for (unsigned i = 0; i < count; i++) {
                unsigned other = shk_pairs_partner(count, r, i);

                cr_assert_lt(other, count);
                cr_assert_eq(shk_pairs_partner(count, r, other), i, "%u of %u, round %u", i, count,
                             r);
                cr_assert(other == i || !met[i * count + other], "%u meets %u twice", i, other);
                met[i * count + other] = true;
                breaks += other == i;
            }
            cr_assert_eq(breaks, count % 2);
        }
        free(met);
    }
}

/* Few enough nodes: everyone meets everyone. */
Test(pairs, all_of_four)
{
    for (unsigned count = 2; count <= 4; count++) {
        unsigned meetings = 0;
        for (unsigned r = 0; r < shk_pairs_rounds(count); r++)
            for (unsigned i = 0; i < count; i++)
                meetings += shk_pairs_partner(count, r, i) > i;
        cr_assert_eq(meetings, count * (count - 1) / 2);
    }
}

static int work(struct shk_job *job, void *arg, struct shk_error *err)
{
    return shk_transport_fabric.work(job, arg, err);
}

Test(pairs, measured, .timeout = 600)
{
    struct shk_collective_options options = {.ranks = 3,
                                             .min_bytes = SHK_PAIRS_BYTES,
                                             .max_bytes = SHK_PAIRS_BYTES,
                                             .pairs = true,
                                             .provider = "shm"};
    struct shk_crew crew = {.name = "pairs", .work = work, .arg = &options};
    struct shk_crew_result result = {.rank = -1};
    struct shk_error err = {{0}};
    struct shk_job *job = NULL;

    cr_assert_eq(shk_job_create(&job, 3, shk_transport_fabric.result_bytes, &err), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
    cr_assert_eq(result.outcome, SHK_CREW_OK, "%s", result.reason.text);
    for (unsigned i = 0; i < 3; i++) {
        const struct shk_pairs_result *mine = shk_job_result(job, i);

        cr_assert_eq(mine->done, 1);
        for (unsigned part = 0; part < SHK_PAIRS_PARTS; part++) {
            for (unsigned r = 0; r < 3; r++) {
                bool meets = shk_pairs_partner(3, r, i) != i;

                cr_assert_eq(mine->round[part][r].latency_us > 0, meets);
                cr_assert_eq(mine->round[part][r].bandwidth > 0, meets);
            }
        }
    }
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
}
