/* The clocks of the nodes against rank 0's: a question with an answer, some times over. The answer
 * was written somewhere between question and receipt, so half of the round trip bounds the error
 * however unevenly it divides; the shortest round trip counts. */
#include "collectives/launch/world_private.h"
#include <string.h>
#include <time.h>

#define CLOCK_ROUNDS 8U

/* A node that does not answer is waited for this long, once. */
#define CLOCK_WAIT_NS 1000000000ULL

static int64_t clock_wall_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void world_clock_answer(struct shk_link *link, const struct shk_frame *frame)
{
    struct world_clock_frame clock;

    if (frame->len == sizeof clock) {
        memcpy(&clock, frame->data, sizeof clock);
        clock.wall_ns = clock_wall_ns();
        (void)shk_link_send(link, SHK_FRAME_CLOCK, &clock, sizeof clock);
    }
}

void hub_clock_frame(struct hub_member *member, const struct shk_frame *frame)
{
    struct hub_clock *clock = &member->clock;
    uint64_t now = shk_job_now_ns();
    struct world_clock_frame answer;
    uint64_t trip = 0;

    if (frame->len != sizeof answer)
        return;
    memcpy(&answer, frame->data, sizeof answer);
    if (answer.round != clock->asked || clock->answered == clock->asked)
        return;
    clock->answered = answer.round;
    trip = now - clock->sent_ns;
    if (!clock->known || trip < clock->trip_ns) {
        clock->known = true;
        clock->trip_ns = trip;
        clock->offset_ns = answer.wall_ns - (clock->sent_wall_ns + (int64_t)(trip / 2));
    }
}

static struct hub_member *clock_leader(const struct shk_world *world, size_t node)
{
    unsigned leader = world->nodes[node].leader;

    return leader < world->size ? &world->members[leader] : NULL;
}

/* One question to each node that answered the one before. */
static void clock_ask(struct shk_world *world, uint32_t round)
{
    for (size_t i = 0; i < world->nodes_count; i++) {
        struct hub_member *member = clock_leader(world, i);
        struct world_clock_frame question = {.round = round};

        if (member && member->state == MEMBER_IDLE && member->clock.answered == round - 1) {
            member->clock.asked = round;
            member->clock.sent_wall_ns = clock_wall_ns();
            member->clock.sent_ns = shk_job_now_ns();
            (void)shk_link_send(&member->link, SHK_FRAME_CLOCK, &question, sizeof question);
        }
    }
}

static bool clock_waiting(const struct shk_world *world, uint32_t round)
{
    for (size_t i = 0; i < world->nodes_count; i++) {
        const struct hub_member *member = clock_leader(world, i);

        if (member && member->state == MEMBER_IDLE && member->clock.asked == round &&
            member->clock.answered != round) {
            return true;
        }
    }
    return false;
}

void hub_clocks(struct shk_world *world)
{
    for (uint32_t round = 1; round <= CLOCK_ROUNDS; round++) {
        uint64_t end = shk_job_now_ns() + CLOCK_WAIT_NS;

        clock_ask(world, round);
        while (clock_waiting(world, round) && shk_job_now_ns() < end)
            hub_turn(world, 20);
    }
}

json_t *hub_clocks_json(const struct shk_world *world)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < world->nodes_count; i++) {
        const struct hub_member *member = clock_leader(world, i);
        json_t *name = shk_json_text(world->nodes[i].name, strlen(world->nodes[i].name));

        (void)json_array_append_new(
            rows, member && member->clock.known
                      ? json_pack("{s:o, s:I, s:I}", "node", name, "offset_us",
                                  (json_int_t)(member->clock.offset_ns / 1000), "error_us",
                                  (json_int_t)(member->clock.trip_ns / 2000 + 1))
                      : json_pack("{s:o, s:s}", "node", name, "why", "it did not tell its time"));
    }
    return rows;
}
