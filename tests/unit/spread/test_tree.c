/* The tree through which large jobs get what their ranks publish: in it, beside it, and when the
 * rank that others take from dies, stops or has another key. */
#include "spread_support.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

TestSuite(tree, .timeout = 120);

static struct spread s;

static void start(unsigned ranks, unsigned width)
{
    s.options.tree_from = 2;
    s.options.tree_width = width;
    spread_start(&s, ranks);
}

static void run(void)
{
    spread_begin(&s);
    spread_finish(&s);
}

/* A first run, in which the ranks find each other. */
static void start_joined(unsigned ranks, unsigned width)
{
    start(ranks, width);
    run();
    spread_expect_right(&s);
    spread_wait_joined(&s, ranks - width);
}

/* Of 14 ranks two take from rank 0, four from these and eight from those; and so on. */
static const struct {
    unsigned ranks, width;
} shapes[] = {{12, 3}, {14, 2}, {15, 2}, {4, 3}, {5, 1}};

Test(tree, shapes)
{
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        memset(&s, 0, sizeof s);
        start_joined(shapes[k].ranks, shapes[k].width);
        run();
        spread_expect_right(&s);
        for (unsigned i = 0; i < shapes[k].ranks; i++)
            cr_expect_eq(spread_direct(&s, i), i < shapes[k].width, "%u ranks, rank %u",
                         shapes[k].ranks, i);
        spread_end(&s);
    }
}

/* The first ranks of the nodes pass on before others do. */
Test(tree, nodes_of_several_ranks)
{
    s.per_node = 3; /* 0, 3, 6 and 9; below 0: 6 and 9, below 3: 1 and 2, below 6: 4 and 5 … */
    start_joined(12, 2);
    run();
    spread_expect_right(&s);
    for (unsigned i = 0; i < 12; i++)
        cr_expect_eq(spread_direct(&s, i), i == 0 || i == 3, "rank %u", i);
    (void)kill(s.pids[6], SIGKILL);
    spread_wait_joined(&s, 7);
    spread_wait_lost(&s, 6);
    run();
    spread_expect_right(&s);
    for (unsigned i = 0; i < 12; i++)
        cr_expect(i == 6 || spread_direct(&s, i) == (i == 0 || i == 3 || i == 4 || i == 5), "%u",
                  i);
    spread_end(&s);
}

/* As wide as it is large: rank 0 alone. */
Test(tree, nobody_to_pass_on_to)
{
    start(4, 8);
    run();
    spread_expect_right(&s);
    spread_wait_ms(&s, 100);
    cr_expect_eq(hub_tree_joined(&s.world), 0);
    spread_end(&s);
}

/* It dies between two runs: those that took from it take from rank 0, others from others. */
Test(tree, a_killed_rank_that_passes_on)
{
    start_joined(14, 2); /* 0: 2 and 3, of these 2: 6 and 7, 3: 8 and 9 */
    (void)kill(s.pids[0], SIGKILL);
    spread_wait_joined(&s, 10);
    spread_wait_lost(&s, 0);
    run();
    spread_expect_right(&s);
    cr_expect_eq(s.group->size, 13);
    for (unsigned i = 1; i < 14; i++)
        cr_expect_eq(spread_direct(&s, i), i <= 3, "rank %u", i);
    spread_end(&s);
}

/* It dies during a run: it is named, as without a tree, and nobody behind it. */
Test(tree, killed_while_it_runs)
{
    start_joined(8, 2);
    s.pause_ms = 300;
    spread_begin(&s);
    spread_wait_ms(&s, 450);
    (void)kill(s.pids[1], SIGKILL);
    spread_finish(&s);
    cr_expect_neq(s.group->result.outcome, SHK_CREW_OK);
    cr_expect_eq(s.group->result.rank, 1, "%d: %s", s.group->result.rank,
                 s.group->result.reason.text);
    for (unsigned i = 0; i < 8; i++)
        cr_expect_eq(s.world.members[i].state, i == 1 ? MEMBER_LOST : MEMBER_IDLE, "rank %u", i);
    s.pause_ms = 0;
    run();
    spread_expect_right(&s);
    spread_end(&s);
}

static bool stopped_once(void)
{
    memset(&s, 0, sizeof s);
    start_joined(8, 2);
    s.pause_ms = 600;
    s.pause_last = true;
    spread_begin(&s);
    uint64_t end = shk_job_now_ns() + 10000000000ULL;
    while (atomic_load(&s.group->job->slots[1].epoch) == 0 && shk_job_now_ns() < end)
        spread_wait_ms(&s, 1);
    (void)kill(s.pids[1], SIGSTOP);
    end = shk_job_now_ns() + 10000000000ULL;
    while (hub_tree_joined(&s.world) > 4 && shk_job_now_ns() < end) /* 4 and 5 are below 1 */
        spread_wait_ms(&s, 20);
    (void)kill(s.pids[1], SIGCONT);
    spread_finish(&s);
    bool right = s.group->result.outcome == SHK_CREW_OK;
    if (right) {
        spread_expect_right(&s);
        cr_expect(spread_direct(&s, 4) && spread_direct(&s, 5));
    }
    spread_end(&s);
    return right;
}

/* It is stopped after it has said that it is at the barrier: those behind it wait a while for what
 * it does not pass on and take it from rank 0. It goes on before its silence counts; on a machine
 * that has other work it may not come to that, and is tried again. */
Test(tree, stopped_for_a_while)
{
    unsigned tries = 0;
    while (tries++ < 4 && !stopped_once()) {
    }
    cr_expect_leq(tries, 4);
}

/* It is stopped for good: named, and nobody behind it is lost. */
Test(tree, stopped_for_good)
{
    start_joined(8, 2);
    s.pause_ms = 300;
    spread_begin(&s);
    spread_wait_ms(&s, 450);
    (void)kill(s.pids[1], SIGSTOP);
    spread_finish(&s);
    cr_expect_neq(s.group->result.outcome, SHK_CREW_OK);
    cr_expect_not_null(s.group->undecided);
    cr_expect_eq(json_array_size(s.group->undecided), 1);
    cr_expect_str_eq(json_string_value(json_array_get(s.group->undecided, 0)), "n1");
    for (unsigned i = 0; i < 8; i++)
        cr_expect_eq(s.world.members[i].state, i == 1 ? MEMBER_LOST : MEMBER_IDLE, "rank %u", i);
    s.pause_ms = 0;
    run();
    spread_expect_right(&s);
    spread_end(&s);
}

/* Ranks do not take from one that has another key, nor does it from them; rank 0 sends to all of
 * these itself, and nothing is missing. */
Test(tree, another_key)
{
    s.bad_key = 1; /* 1: 4 and 5; 4: none */
    start(8, 2);
    run();
    spread_expect_right(&s);
    spread_wait_joined(&s, 4); /* 2 and 3 from 0; 6 and 7 from 2 */
    run();
    spread_expect_right(&s);
    for (unsigned i = 0; i < 8; i++)
        cr_expect_eq(spread_direct(&s, i), i != 2 && i != 3 && i != 6 && i != 7, "rank %u", i);
    spread_end(&s);
    memset(&s, 0, sizeof s);
    s.bad_key = 3;
    start(8, 2);
    run();
    spread_wait_joined(&s, 5);
    run();
    spread_expect_right(&s);
    cr_expect(spread_direct(&s, 3));
    cr_expect_not(spread_direct(&s, 2));
    spread_end(&s);
}
