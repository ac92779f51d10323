/* Rank 0 lost others: are they cut off, or its own host? */
#include "collectives/launch/world_private.h"

#include <criterion/criterion.h>
#include <string.h>

#define RANKS_MAX 4U
#define SECOND    1000000000ULL

static const struct cut_case {
    const char *name;
    const char *hosts[RANKS_MAX]; /* of the ranks; the first is rank 0's */
    enum crew_loss loss[RANKS_MAX];
    uint64_t lost_ns[RANKS_MAX]; /* 0: it is there */
    enum hub_cut cut;
    int rank; /* to blame, when it was rank 1 before */
    const char *text;
} cases[] = {
    {"one of three", {"n1", "n2", "n3"}, {0, CREW_LOSS_WAY}, {0, SECOND}, HUB_CUT_NO, 1, "before"},
    {"both others",
     {"n1", "n2", "n3"},
     {0, CREW_LOSS_WAY, CREW_LOSS_WAY},
     {0, 2 * SECOND, SECOND},
     HUB_CUT_OWN,
     0,
     "from that host to all others is cut"},
    {"both others, one long after the other",
     {"n1", "n2", "n3"},
     {0, CREW_LOSS_WAY, CREW_LOSS_WAY},
     {0, SECOND, 9 * SECOND},
     HUB_CUT_NO,
     1,
     "before"},
    {"one is cut off, one is stopped",
     {"n1", "n2", "n3"},
     {0, CREW_LOSS_WAY, CREW_LOSS_MUTE},
     {0, SECOND, SECOND},
     HUB_CUT_NO,
     1,
     "before"},
    {"the only other, two ranks",
     {"n1", "n2", "n2"},
     {0, CREW_LOSS_WAY, CREW_LOSS_WAY},
     {0, SECOND, SECOND},
     HUB_CUT_EITHER,
     -1,
     "one of the two is down"},
    {"ranks beside rank 0 are there",
     {"n1", "n2", "n1", "n3"},
     {0, CREW_LOSS_WAY, 0, CREW_LOSS_WAY},
     {0, SECOND, 0, SECOND},
     HUB_CUT_OWN,
     0,
     "n1"},
};

static void check_case(const struct cut_case *c)
{
    struct shk_world world = {.host = "n1"};
    struct hub_member member[RANKS_MAX] = {{0}};
    struct hub_member *members[RANKS_MAX];
    struct shk_crew_rank ranks[RANKS_MAX] = {{0}};
    struct crew_watch watch[RANKS_MAX] = {{0}};
    struct hub_group group = {.members = members, .crew = {.watch = watch}};
    unsigned i = 0;

    for (i = 0; i < RANKS_MAX && c->hosts[i] != NULL; i++) {
        snprintf(member[i].host, sizeof(member[i].host), "%s", c->hosts[i]);
        snprintf(ranks[i].host, sizeof(ranks[i].host), "%s", c->hosts[i]);
        members[i] = &member[i];
        member[i].state = c->lost_ns[i] != 0 ? MEMBER_LOST : MEMBER_IDLE;
        member[i].loss = watch[i].loss = c->loss[i];
        member[i].lost_ns = c->lost_ns[i];
        watch[i].lost = c->lost_ns[i] != 0;
    }
    world.members = member;
    world.size = group.size = i;
    group.result = (struct shk_crew_result){.rank = 1, .ranks = ranks};
    (void)shk_error_set(&group.result.reason, 1, "before");
    cr_expect_eq(hub_cut(&world), c->cut, "%s", c->name);
    hub_cut_blame(&world, &group);
    cr_expect_eq(group.result.rank, c->rank, "%s: blames %d", c->name, group.result.rank);
    cr_expect_not_null(strstr(group.result.reason.text, c->text), "%s: %s", c->name,
                       group.result.reason.text);
    cr_expect_eq(json_array_size(group.undecided), c->cut == HUB_CUT_EITHER ? 2U : 0U, "%s",
                 c->name);
    json_decref(group.undecided);
}

Test(cut, whose_way_it_is)
{
    size_t i = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i]);
    }
}

/* Rank 1 fell silent at 10 s; when its host's other ranks were heard last. */
static const struct silent_case {
    const char *name;
    const char *hosts[RANKS_MAX];
    uint64_t heard_s[RANKS_MAX];
    bool lost[RANKS_MAX]; /* others that are gone */
    bool runs;
} silent_cases[] = {
    {"alone on its host", {"n1", "n2", "n3"}, {15, 10, 15}, {false}, false},
    {"on rank 0's host", {"n1", "n1", "n3"}, {15, 10, 15}, {false}, true},
    {"the other rank there speaks", {"n1", "n2", "n2"}, {15, 10, 15}, {false}, true},
    {"the other rank there is silent, too", {"n1", "n2", "n2"}, {15, 10, 11}, {false}, false},
    {"the other rank there is gone", {"n1", "n2", "n2"}, {15, 10, 15}, {false, false, true}, false},
};

static void check_silent(const struct silent_case *c)
{
    struct shk_world world = {.host = "n1"};
    struct hub_member member[RANKS_MAX] = {{0}};
    unsigned i = 0;

    for (i = 0; i < RANKS_MAX && c->hosts[i] != NULL; i++) {
        snprintf(member[i].host, sizeof(member[i].host), "%s", c->hosts[i]);
        member[i].state = c->lost[i] ? MEMBER_LOST : MEMBER_RUNNING;
        member[i].link.heard_ns = c->heard_s[i] * SECOND;
    }
    world.members = member;
    world.size = i;
    cr_expect_eq(hub_host_runs(&world, &member[1]), c->runs, "%s", c->name);
}

Test(silent, host_runs)
{
    for (size_t i = 0; i < sizeof(silent_cases) / sizeof(silent_cases[0]); i++) {
        check_silent(&silent_cases[i]);
    }
}

/* Nobody is to blame, and the hosts of all silent ranks are named. */
Test(silent, blames_nobody)
{
    struct shk_crew_rank ranks[4] = {
        {.host = "n1"}, {.host = "n2"}, {.host = "n3"}, {.host = "n3"}};
    struct crew_watch watch[4] = {{.alive = true},
                                  {.lost = true, .loss = CREW_LOSS_SILENT},
                                  {.lost = true, .loss = CREW_LOSS_SILENT},
                                  {.lost = true, .loss = CREW_LOSS_SILENT}};
    struct hub_group group = {.size = 4, .crew = {.watch = watch}};
    json_t *both = json_pack("[s, s]", "n2", "n3");

    group.result = (struct shk_crew_result){.rank = 1, .ranks = ranks};
    hub_silent_blame(&group);
    cr_expect_eq(group.result.rank, -1);
    cr_expect(json_equal(group.undecided, both));
    json_decref(group.undecided);

    group.undecided = NULL;
    group.result.rank = 1;
    watch[1].loss = CREW_LOSS_MUTE;
    hub_silent_blame(&group);
    cr_expect_eq(group.result.rank, 1);
    cr_expect_null(group.undecided);
    json_decref(both);
}
