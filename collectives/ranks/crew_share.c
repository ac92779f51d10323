/* How much processor time a rank had since it last came on: one that nobody lets run does not hang.
 */
#include "collectives/ranks/crew_private.h"

/* Looked at only when it stands still for a moment: measurements are not to be disturbed. */
#define SHARE_STILL_NS 500000000ULL
#define SHARE_EVERY_NS 250000000ULL

/* With this much processor time since its last step it is stuck, however long it waited for it. */
#define SHARE_ENOUGH_MS 2000.0

static uint64_t share_steps(const struct shk_job_slot *slot)
{
    return atomic_load(&slot->op) + (uint64_t)atomic_load(&slot->phase) +
           atomic_load(&slot->bytes) + atomic_load(&slot->epoch);
}

static void share_look(const struct crew_run *run, unsigned rank, uint64_t now)
{
    struct crew_share *share = &run->watch[rank].share;
    double now_ms = (double)now / 1e6;

    /* no deadline: there is no last stretch to be judged by itself */
    shk_isolate_share_look(&share->now, run->result->ranks[rank].pid, now_ms, now_ms, 1e18, 0);
    share->looked_ns = now;
    if (share->since_ns == 0) {
        share->since_ns = now;
        share->before = share->now;
    }
}

void shk_crew_share_turn(struct crew_run *run, unsigned rank)
{
    struct crew_share *share = &run->watch[rank].share;
    uint64_t steps = share_steps(&run->job->slots[rank]);
    uint64_t now = shk_job_now_ns();

    if (steps != share->steps || share->moved_ns == 0) {
        *share = (struct crew_share){.steps = steps, .moved_ns = now};
    } else if (now - share->moved_ns > SHARE_STILL_NS && now - share->looked_ns > SHARE_EVERY_NS) {
        share_look(run, rank, now);
    }
}

void shk_crew_share_end(struct crew_run *run, unsigned rank)
{
    struct crew_watch *watch = &run->watch[rank];
    struct crew_share *share = &watch->share;
    struct isolate_share had = {0};
    uint64_t now = shk_job_now_ns();
    double ms = 0;

    watch->starved = false;
    if (!watch->alive || watch->stopped_ns != 0 || share->since_ns == 0)
        return;
    share_look(run, rank, now);
    had = share->now;
    had.ran -= share->before.ran;
    had.waited -= share->before.waited;
    ms = (double)(now - share->since_ns) / 1e6;
    watch->starved = had.ran < SHARE_ENOUGH_MS && shk_isolate_share_starved(&had, ms);
    watch->still_ms = ms;
    watch->ran_ms = had.ran;
    watch->waited_ms = shk_isolate_share_waited(&had, ms);
}
