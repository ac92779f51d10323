#include "collectives/algorithm/bisect.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A fault: when it is in a set of nodes, the set fails. */
struct fault {
    const char *what;
    unsigned nodes; /* of the job */
    bool (*in)(const unsigned *set, unsigned count);
    enum shk_bisect_kind kind;
    unsigned count;
    unsigned named[4]; /* the first of them */
};

static bool has(const unsigned *set, unsigned count, unsigned node)
{
    for (unsigned i = 0; i < count; i++)
        if (set[i] == node)
            return true;
    return false;
}

static bool never(const unsigned *set, unsigned count)
{
    return set == NULL && count > 0;
}
static bool always(const unsigned *set, unsigned count)
{
    return set != NULL && count > 0;
}
static bool node_5(const unsigned *set, unsigned count)
{
    return has(set, count, 5);
}
static bool node_2_or_9(const unsigned *set, unsigned count)
{
    return has(set, count, 2) || has(set, count, 9);
}
static bool node_7_in_company(const unsigned *set, unsigned count)
{
    return has(set, count, 7) && count > 1;
}
static bool node_6_among_four(const unsigned *set, unsigned count)
{
    return has(set, count, 6) && count >= 4;
}
static bool nodes_1_and_8(const unsigned *set, unsigned count)
{
    return has(set, count, 1) && has(set, count, 8);
}
static bool nodes_0_and_1(const unsigned *set, unsigned count)
{
    return has(set, count, 0) && has(set, count, 1);
}
static bool nodes_3_4_11(const unsigned *set, unsigned count)
{
    return has(set, count, 3) && has(set, count, 4) && has(set, count, 11);
}
static bool more_than_three(const unsigned *set, unsigned count)
{
    return set != NULL && count > 3;
}

static const struct fault faults[] = {
    {"it passes this time", 12, never, SHK_BISECT_PASSED, 12, {0}},
    {"every node fails", 12, always, SHK_BISECT_ALL, 12, {0}},
    {"one that fails alone", 12, node_5, SHK_BISECT_ALONE, 1, {5}},
    {"two that fail alone", 13, node_2_or_9, SHK_BISECT_ALONE, 2, {2, 9}},
    {"one that fails with any other", 12, node_7_in_company, SHK_BISECT_NODE, 1, {7}},
    {"one of three that fails with any other", 3, node_2_or_9, SHK_BISECT_ALONE, 1, {2}},
    {"one that needs three others", 12, node_6_among_four, SHK_BISECT_NODE, 1, {6}},
    {"two that fail together", 12, nodes_1_and_8, SHK_BISECT_PAIR, 2, {1, 8}},
    {"two of the same half", 12, nodes_0_and_1, SHK_BISECT_PAIR, 2, {0, 1}},
    {"the only two", 2, nodes_0_and_1, SHK_BISECT_PAIR, 2, {0, 1}},
    {"three together", 12, nodes_3_4_11, SHK_BISECT_GROUP, 3, {3, 4, 11}},
    {"a matter of their number", 12, more_than_three, SHK_BISECT_NUMBER, 4, {0}},
    {"a thousand nodes", 1000, nodes_1_and_8, SHK_BISECT_PAIR, 2, {1, 8}},
};

struct run {
    const struct fault *fault;
    unsigned rounds, limit;
};

static int run_trials(void *arg, struct shk_bisect_trial *trials, unsigned count)
{
    struct run *run = arg;
    bool *taken = calloc(run->fault->nodes, sizeof *taken);

    cr_assert_gt(count, 0);
    for (unsigned t = 0; t < count; t++) {
        cr_assert_gt(trials[t].count, 0);
        for (unsigned i = 0; i < trials[t].count; i++) {
            unsigned node = trials[t].nodes[i];
            cr_assert_lt(node, run->fault->nodes);
            cr_assert_not(taken[node], "node %u takes part twice", node);
            taken[node] = true;
        }
        trials[t].failed = run->fault->in(trials[t].nodes, trials[t].count);
    }
    free(taken);
    return ++run->rounds > run->limit ? -ETIMEDOUT : 0;
}

static int by_number(const void *a, const void *b)
{
    return (int)*(const unsigned *)a - (int)*(const unsigned *)b;
}

Test(bisect, faults)
{
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        const struct fault *fault = &faults[f];
        struct run run = {.fault = fault, .limit = 60};
        struct shk_bisect_result result;

        cr_assert_eq(shk_bisect(fault->nodes, run_trials, &run, &result), 0);
        cr_assert_eq(result.kind, fault->kind, "%s: kind %d", fault->what, result.kind);
        cr_assert_eq(result.count, fault->count, "%s: %u nodes", fault->what, result.count);
        qsort(result.nodes, result.count, sizeof *result.nodes, by_number);
        for (unsigned i = 0; fault->kind != SHK_BISECT_NUMBER && i < 4 && i < fault->count; i++)
            cr_assert(fault->kind == SHK_BISECT_PASSED || fault->kind == SHK_BISECT_ALL ||
                          result.nodes[i] == fault->named[i],
                      "%s: node %u", fault->what, result.nodes[i]);
        cr_assert_leq(run.rounds, 40, "%s: %u rounds", fault->what, run.rounds);
        free(result.nodes);
    }
}

/* Nodes whose failure does not come twice are not named. */
static unsigned calls_of_5;
static bool node_5_at_first(const unsigned *set, unsigned count)
{
    return has(set, count, 5) && ++calls_of_5 < 6;
}
static unsigned calls_together;
static bool together_at_first(const unsigned *set, unsigned count)
{
    return has(set, count, 1) && has(set, count, 2) && ++calls_together < 4;
}

Test(bisect, chance)
{
    static const struct fault chances[] = {
        {"alone", 12, node_5_at_first, SHK_BISECT_CHANCE, 0, {0}},
        {"together", 4, together_at_first, SHK_BISECT_CHANCE, 2, {0}},
    };
    for (size_t f = 0; f < sizeof chances / sizeof *chances; f++) {
        struct run run = {.fault = &chances[f], .limit = 60};
        struct shk_bisect_result result;

        cr_assert_eq(shk_bisect(run.fault->nodes, run_trials, &run, &result), 0);
        cr_assert_eq(result.kind, SHK_BISECT_CHANCE, "%s: kind %d", run.fault->what, result.kind);
        cr_assert_eq(result.count, run.fault->count, "%s: %u", run.fault->what, result.count);
        free(result.nodes);
    }
}

/* Wherever the time runs out, the result is a set that is known to fail. */
Test(bisect, out_of_time)
{
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        struct run all = {.fault = &faults[f], .limit = 1000};
        struct shk_bisect_result result;

        cr_assert_eq(shk_bisect(all.fault->nodes, run_trials, &all, &result), 0);
        free(result.nodes);
        for (unsigned limit = 0; limit < all.rounds; limit++) {
            struct run run = {.fault = &faults[f], .limit = limit};

            cr_assert_eq(shk_bisect(run.fault->nodes, run_trials, &run, &result), 0);
            cr_assert_eq(result.kind, SHK_BISECT_ENDED);
            cr_assert_gt(result.count, 0);
            cr_assert(limit == 0 || run.fault->in(result.nodes, result.count), "%s: after %u",
                      run.fault->what, limit);
            free(result.nodes);
        }
    }
}
