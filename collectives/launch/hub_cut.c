/* What rank 0 can tell of ranks that fell silent. It sees all others from its own host: when the
 * way to all of them is cut at once, it is the way of that host that they have in common. When a
 * host answers and nothing on it speaks, a stopped process looks like one without processor time.
 */
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ranks speak every WORLD_BEAT_NS: one cut is heard by all of them within a few of these. */
#define CUT_SPREAD_NS (4 * WORLD_BEAT_NS)

static bool cut_elsewhere(const struct shk_world *world, const struct hub_member *member)
{
    return member->state != MEMBER_ABSENT && strcmp(member->host, world->host) != 0;
}

enum hub_cut hub_cut(const struct shk_world *world)
{
    const struct hub_member *first = NULL;
    bool several = false;

    for (unsigned i = 0; i < world->size; i++) {
        const struct hub_member *member = &world->members[i];
        uint64_t apart = 0;

        if (!cut_elsewhere(world, member))
            continue;
        first = first ? first : member;
        apart = member->lost_ns > first->lost_ns ? member->lost_ns - first->lost_ns
                                                 : first->lost_ns - member->lost_ns;
        if (member->state != MEMBER_LOST || member->loss != CREW_LOSS_WAY ||
            apart > CUT_SPREAD_NS) {
            return HUB_CUT_NO;
        }
        several = several || strcmp(member->host, first->host) != 0;
    }
    return !first ? HUB_CUT_NO : several ? HUB_CUT_OWN : HUB_CUT_EITHER;
}

static int cut_rank_here(const struct shk_world *world, const struct hub_group *group)
{
    unsigned i = 0;

    while (i < group->size && strcmp(group->members[i]->host, world->host) != 0)
        i++;
    return i < group->size ? (int)i : -1;
}

void hub_cut_blame(const struct shk_world *world, struct hub_group *group)
{
    struct shk_crew_result *result = &group->result;
    enum hub_cut cut = hub_cut(world);
    const struct crew_watch *watch = result->rank >= 0 ? &group->crew.watch[result->rank] : NULL;
    int here = cut_rank_here(world, group);
    unsigned long long ms = 0;

    if (!watch || !watch->lost || watch->loss != CREW_LOSS_WAY || cut == HUB_CUT_NO || here < 0) {
        return;
    }
    ms = (unsigned long long)((shk_job_now_ns() - watch->ended_ns) / 1000000U);
    if (cut == HUB_CUT_OWN) {
        result->rank = here;
        (void)shk_error_set(&result->reason, EHOSTDOWN,
                            "no word from any other host for %llu ms, and none acknowledges what "
                            "rank 0 on %s sends: the way from that host to all others is cut",
                            ms, world->host);
        return;
    }
    group->undecided = json_pack("[s, s]", world->host, result->ranks[result->rank].host);
    (void)shk_error_set(&result->reason, EHOSTDOWN,
                        "no word from %s for %llu ms, and nothing that rank 0 on %s sends is "
                        "acknowledged: one of the two is down or the way between them is cut",
                        result->ranks[result->rank].host, ms, world->host);
    result->rank = -1;
}

bool hub_host_runs(const struct shk_world *world, const struct hub_member *member)
{
    if (strcmp(member->host, world->host) == 0) {
        return true; /* this process runs there */
    }
    for (unsigned i = 0; i < world->size; i++) {
        const struct hub_member *other = &world->members[i];

        if (other != member && strcmp(other->host, member->host) == 0 &&
            (other->state == MEMBER_IDLE || other->state == MEMBER_RUNNING) &&
            other->link.heard_ns > member->link.heard_ns + WORLD_SILENT_NS / 2) {
            return true;
        }
    }
    return false;
}

void hub_silent_blame(struct hub_group *group)
{
    struct shk_crew_result *result = &group->result;
    const struct crew_watch *watch = group->crew.watch;

    if (group->undecided || result->rank < 0 || !watch[result->rank].lost ||
        watch[result->rank].loss != CREW_LOSS_SILENT) {
        return;
    }
    group->undecided = json_array();
    for (unsigned i = 0; i < group->size; i++) {
        if (watch[i].lost && watch[i].loss == CREW_LOSS_SILENT &&
            !shk_loss_names(group->undecided, result->ranks[i].host)) {
            (void)json_array_append_new(group->undecided, json_string(result->ranks[i].host));
        }
    }
    result->rank = -1;
}
