/* What the ranks of a run publish goes to all of them: as many bytes as there are ranks, to each
 * rank. Cards of ranks are much alike: packed they are a tenth. */
#include "collectives/launch/world_private.h"
#include "core/facts/pack.h"

#include <stdlib.h>

/* Queued for ranks that have not taken it yet; more is sent when there is room. */
#define SPREAD_QUEUED ((size_t)32 << 20)

/* Everything since the last time, as one more frame. Out of memory: nothing, as if nobody had
 * published. */
void hub_spread_add(struct hub_group *group)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT, packed = SHK_STRBUF_INIT;
    struct world_puts_frame head = {.run = group->run, .number = group->puts_count + 1};
    struct hub_puts *more = NULL;
    for (unsigned i = 0; i < group->size; i++) {
        const struct shk_job_slot *slot = &group->job->slots[i];
        uint32_t part[2] = {i, atomic_load(&slot->used) - group->spread[i]};
        if (part[1] == 0)
            continue;
        shk_strbuf_add(&sb, part, sizeof part);
        shk_strbuf_add(&sb, slot->space + group->spread[i], part[1]);
        group->spread[i] += part[1];
    }
    shk_strbuf_add(&packed, &head, sizeof head);
    if (sb.len > 0)
        shk_pack(&packed, sb.data, sb.len);
    if (sb.len > 0 && !sb.failed && !packed.failed)
        more = realloc(group->puts, (group->puts_count + 1) * sizeof *more);
    if (more) {
        group->puts = more;
        more[group->puts_count].len = packed.len;
        more[group->puts_count++].data = shk_strbuf_take(&packed);
    }
    shk_strbuf_free(&packed);
    shk_strbuf_free(&sb);
}

void hub_spread_turn(const struct shk_world *world, struct hub_group *group)
{
    size_t queued = 0;
    for (unsigned i = 0; i < group->size; i++) {
        struct shk_link *link = &group->members[i]->link;
        queued += group->fed[i] > 0 ? link->out.len : 0;
    }
    for (unsigned i = 0; i < group->size && queued < SPREAD_QUEUED; i++) {
        struct shk_link *link = &group->members[i]->link;
        while (group->members[i]->group == group && group->fed[i] < group->puts_count &&
               link->out.len == 0 && queued < SPREAD_QUEUED) {
            const struct hub_puts *puts = &group->puts[group->fed[i]++];
            if (hub_tree_feeds(world, group->members[i]))
                continue;
            (void)shk_link_send(link, SHK_FRAME_PUTS, puts->data, puts->len);
            queued += link->out.len;
        }
    }
}

void hub_spread_free(struct hub_group *group)
{
    for (unsigned i = 0; i < group->puts_count; i++)
        free(group->puts[i].data);
    free(group->puts);
    free(group->fed);
    free(group->spread);
}
