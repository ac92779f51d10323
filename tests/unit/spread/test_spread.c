/* What the ranks of a run publish reaches all of them. */
#include "core/facts/pack.h"
#include "spread_support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(spread, .timeout = 120);

static struct spread s;

/* Twice: the second run begins anew. */
Test(spread, every_value_of_every_rank)
{
    spread_start(&s, 12);
    for (int run = 0; run < 2; run++) {
        spread_begin(&s);
        spread_finish(&s);
        spread_expect_right(&s);
    }
    for (unsigned i = 0; i < 12; i++) /* 12 ranks make no tree */
        cr_expect(spread_direct(&s, i));
    spread_end(&s);
}

/* Rank 0 alone, with links that nobody reads. */
static void group_make(struct hub_group *group, struct hub_member *members, struct hub_member **all,
                       int *ends, unsigned ranks)
{
    *group = (struct hub_group){.run = 7, .size = ranks, .members = all};
    cr_assert_eq(shk_job_create(&group->job, ranks, 0, NULL), 0);
    group->spread = calloc(ranks, sizeof *group->spread);
    group->fed = calloc(ranks, sizeof *group->fed);
    for (unsigned i = 0; i < ranks; i++) {
        int fds[2], small = 4096;
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        members[i] = (struct hub_member){.rank = i, .group = group, .index = i};
        shk_link_open(&members[i].link, fds[0]);
        ends[i] = fds[1];
        all[i] = &members[i];
    }
}

static void group_clear(struct hub_group *group, int *ends)
{
    for (unsigned i = 0; i < group->size; i++) {
        shk_link_close(&group->members[i]->link);
        close(ends[i]);
    }
    shk_job_destroy(group->job);
    hub_spread_free(group);
}

static size_t group_queued(const struct hub_group *group)
{
    size_t queued = 0;
    for (unsigned i = 0; i < group->size; i++)
        queued += group->members[i]->link.out.len;
    return queued;
}

/* Ranks that read nothing cost rank 0 a bounded part of its memory, and those that read get all. */
Test(spread, no_more_is_queued_than_fits)
{
    enum { RANKS = 100 };
    static struct hub_member members[RANKS], *all[RANKS];
    static int ends[RANKS];
    static char buf[1 << 16];
    struct hub_group group;
    size_t got[RANKS] = {0}, most = 0, frame = 0;
    bool more = true;
    group_make(&group, members, all, ends, RANKS);
    for (unsigned i = 0; i < RANKS; i++) { /* random: it does not pack */
        for (unsigned k = 0; k < SHK_JOB_SPACE; k++)
            group.job->slots[i].space[k] = (char)random();
        group.job->slots[i].used = SHK_JOB_SPACE;
    }
    hub_spread_add(&group);
    hub_spread_add(&group); /* nothing new: no frame */
    cr_assert_eq(group.puts_count, 1);
    frame = group.puts[0].len + 8;
    cr_assert_gt(frame, RANKS * SHK_JOB_SPACE * 9 / 10);
    hub_spread_turn(&s.world, &group);
    cr_expect_lt(group_queued(&group), ((size_t)32 << 20) + frame);
    cr_expect_gt(group_queued(&group), frame);
    while (more) {
        more = false;
        for (unsigned i = 0; i < RANKS; i++) {
            ssize_t n = recv(ends[i], buf, sizeof buf, MSG_DONTWAIT);
            got[i] += n > 0 ? (size_t)n : 0;
            (void)shk_link_flush(&members[i].link);
            more = more || got[i] < frame;
        }
        hub_spread_turn(&s.world, &group);
        most = group_queued(&group) > most ? group_queued(&group) : most;
    }
    cr_expect_lt(most, ((size_t)32 << 20) + frame);
    for (unsigned i = 0; i < RANKS; i++)
        cr_expect_eq(got[i], frame, "rank %u", i);
    group_clear(&group, ends);
}

/* The frame says whose each part is, and a rank that is lost is left out. */
Test(spread, a_frame_of_parts)
{
    static struct hub_member members[3], *all[3];
    int ends[3];
    struct hub_group group;
    char buf[512], *text = NULL;
    struct world_puts_frame head;
    uint32_t frame[2], part[2];
    size_t len = 0;
    group_make(&group, members, all, ends, 3);
    memcpy(group.job->slots[1].space, "one", 3);
    memcpy(group.job->slots[2].space, "three", 5);
    group.job->slots[1].used = 3;
    group.job->slots[2].used = 5;
    members[2].group = NULL;
    hub_spread_add(&group);
    hub_spread_turn(&s.world, &group);
    ssize_t n = recv(ends[0], buf, sizeof buf, MSG_DONTWAIT);
    cr_assert_gt(n, 16);
    memcpy(frame, buf, sizeof frame);
    memcpy(&head, buf + 8, sizeof head);
    cr_expect_eq(frame[0], SHK_FRAME_PUTS);
    cr_expect_eq(head.run, 7);
    cr_expect_eq(head.number, 1);
    cr_assert_eq(shk_unpack(buf + 16, (size_t)n - 16, 1000, &text, &len, NULL), 0);
    cr_assert_eq(len, 8 + 3 + 8 + 5);
    memcpy(part, text + 11, sizeof part);
    cr_expect_eq(part[0], 2);
    cr_expect_eq(part[1], 5);
    cr_expect_eq(memcmp(text + 19, "three", 5), 0);
    cr_expect_lt(recv(ends[2], buf, sizeof buf, MSG_DONTWAIT), 0);
    free(text);
    group_clear(&group, ends);
}
