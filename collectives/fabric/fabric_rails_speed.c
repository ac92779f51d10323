/* How fast each rail is alone: one that is slower than the others holds all of them up. */
#include "collectives/algorithm/roofline.h"
#include "collectives/fabric/fabric_private.h"

/* Large enough to fill a link, small enough for a slow one. */
#define SPEED_BYTES ((size_t)4 << 20)

/* A moment in which the machine does something else must not make a rail slow: the rails are
 * measured in turns, the best of the turns counts, and what seems slow gets more of them. */
#define SPEED_TURNS     3U
#define SPEED_TURNS_MAX 9U

/* Share of the fastest, above what the check warns at. */
#define SPEED_DOUBT 0.8

static bool speed_doubt(const struct fabric *fabric)
{
    double least = fabric->lane[0]->report->bandwidth;
    double most = least;

    for (unsigned i = 1; i < fabric->lanes; i++) {
        double bandwidth = fabric->lane[i]->report->bandwidth;

        least = bandwidth < least ? bandwidth : least;
        most = bandwidth > most ? bandwidth : most;
    }
    return least < SPEED_DOUBT * most;
}

static int speed_turn(struct fabric *fabric, size_t bytes, uint64_t budget_ns)
{
    int rc = 0;

    for (unsigned i = 0; i < fabric->lanes && rc == 0; i++) {
        struct fabric_rail_report *report = fabric->lane[i]->report;
        double bandwidth = 0;

        fabric->only = fabric->lane[i];
        rc = shk_roofline_own(&fabric->wire, bytes, budget_ns, &bandwidth);
        report->bandwidth = bandwidth > report->bandwidth ? bandwidth : report->bandwidth;
    }
    return rc;
}

int fabric_rails_measure(struct fabric *fabric, size_t max_bytes, uint64_t budget_ns)
{
    size_t bytes = max_bytes < SPEED_BYTES ? max_bytes : SPEED_BYTES;
    uint64_t doubt = 1;
    int rc = 0;

    if (fabric->lanes < 2 || bytes < SHK_ROOFLINE_MIN_BYTES)
        return 0;
    fabric->wire.lanes = 1;
    for (unsigned turn = 0; turn < SPEED_TURNS_MAX && doubt != 0 && rc == 0; turn++) {
        rc = speed_turn(fabric, bytes, budget_ns / SPEED_TURNS / fabric->lanes);
        if (rc == 0 && turn + 1 >= SPEED_TURNS) {
            rc = shk_job_barrier(fabric->wire.job, speed_doubt(fabric), &doubt, shk_wire_poll,
                                 &fabric->wire);
        }
    }
    fabric->only = NULL;
    fabric->wire.lanes = fabric->lanes;
    return rc;
}
