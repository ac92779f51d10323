/* Rank 0: who connects says who it is before anything else. */
#include "collectives/launch/world_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hub_greeting {
    struct shk_greet_challenge challenge;
    bool done;
    unsigned rank;
};

void hub_greet(struct shk_world *world, struct shk_link *link)
{
    struct hub_greeting *greeting = world->greets ? calloc(1, sizeof *greeting) : NULL;
    if (!world->greets)
        return;
    link->greeting = greeting;
    if (!greeting || shk_greet_challenge(&greeting->challenge, &world->self) ||
        shk_link_send(link, SHK_FRAME_CHALLENGE, &greeting->challenge, sizeof greeting->challenge))
        shk_link_close(link);
}

/* Which of its host's ranks is it? Where the launcher does not say, in the order of coming. */
static int greet_local_rank(const struct shk_world *world, const char *host, int told)
{
    int before = 0;
    for (unsigned i = 0; i < world->size && told < 0; i++)
        before += world->members[i].greeted && strcmp(world->members[i].host, host) == 0;
    return told < 0 ? before : told;
}

/* Why one that claims to be this rank was not taken; it may still come. */
static void greet_note(struct shk_world *world, const struct shk_greet_proof *proof,
                       enum shk_greet_verdict verdict)
{
    struct hub_member *member = &world->members[proof->rank];
    if (member->state != MEMBER_ABSENT || member->greeted)
        return;
    if (!member->host[0])
        hub_host_name(member->host, sizeof member->host, proof->host);
    bool first = !member->refused[0];
    shk_greet_why(member->refused, sizeof member->refused, &world->self, verdict, proof);
    if (first)
        world_say(world, "rank %u on %s was rejected: %s", member->rank, member->host,
                  member->refused);
}

bool hub_greeting_frame(struct shk_world *world, struct shk_link *link,
                        const struct shk_frame *frame)
{
    struct hub_greeting *greeting = link->greeting;
    struct shk_greet_proof proof;
    struct shk_greet_welcome welcome;
    char host[sizeof proof.host];
    if (!greeting || greeting->done || frame->type != SHK_FRAME_PROOF)
        return false;
    enum shk_greet_verdict verdict =
        shk_greet_judge(&world->self, &greeting->challenge, frame->data, frame->len, &proof);
    if (verdict == SHK_GREET_GARBLED)
        return false;
    struct hub_member *member = proof.rank < world->size ? &world->members[proof.rank] : NULL;
    if (verdict == SHK_GREET_WELCOME && member->state != MEMBER_ABSENT)
        verdict = SHK_GREET_TAKEN;
    hub_host_name(host, sizeof host, proof.host);
    int local = greet_local_rank(world, host, proof.local_rank);
    shk_greet_reply(&world->self, &greeting->challenge, &proof, verdict, local, &welcome);
    int rc = shk_link_send(link, SHK_FRAME_WELCOME, &welcome, sizeof welcome);
    if (verdict != SHK_GREET_WELCOME) {
        if (member && verdict != SHK_GREET_TAKEN && verdict != SHK_GREET_OTHER_JOB)
            greet_note(world, &proof, verdict);
        return false;
    }
    greeting->done = rc == 0;
    greeting->rank = proof.rank;
    memcpy(member->host, host, sizeof member->host);
    member->greeted = true;
    return rc == 0;
}

bool hub_greeted(const struct shk_link *link, unsigned rank)
{
    const struct hub_greeting *greeting = link->greeting;
    return greeting && greeting->done && greeting->rank == rank;
}
