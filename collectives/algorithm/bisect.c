#include "collectives/algorithm/bisect.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Members of a group that are replaced one by one: a larger group says more by its size. */
#define BISECT_REPLACED_MAX 8U

struct bisect {
    shk_bisect_try run;
    void *arg;
    unsigned all;
    unsigned *order; /* nodes; every set is a range of it */
    int rc;          /* not 0: ended */
};

/* nodes[first] to nodes[first + count - 1] of the order. */
struct bisect_range {
    unsigned first, count;
};

static bool bisect_fails(struct bisect *b, const unsigned *nodes, unsigned count)
{
    struct shk_bisect_trial trial = {.nodes = nodes, .count = count};

    if (b->rc == 0)
        b->rc = b->run(b->arg, &trial, 1);
    return b->rc == 0 && trial.failed;
}

static void bisect_keep(struct shk_bisect_result *result, enum shk_bisect_kind kind,
                        const unsigned *nodes, unsigned count)
{
    memmove(result->nodes, nodes, count * sizeof *nodes);
    result->count = count;
    result->kind = kind;
}

/* Both halves of each set, at once. Sets that fail replace the old ones; *whole_p becomes a set of
 * which neither half failed. */
static int bisect_halve(struct bisect *b, struct bisect_range *sets, unsigned *count_p,
                        struct bisect_range *whole_p)
{
    struct shk_bisect_trial *trials = calloc(2 * (size_t)*count_p, sizeof *trials);
    struct bisect_range *next = calloc(2 * (size_t)*count_p, sizeof *next);
    unsigned tried = 0;
    unsigned kept = 0;
    unsigned i = 0;

    for (i = 0; trials && next && i < *count_p; i++) {
        unsigned half = sets[i].count / 2;
        const unsigned *nodes = &b->order[sets[i].first];

        if (sets[i].count > 1) {
            trials[tried++] = (struct shk_bisect_trial){.nodes = nodes, .count = half};
            trials[tried++] =
                (struct shk_bisect_trial){.nodes = nodes + half, .count = sets[i].count - half};
        }
    }
    if (!trials || !next) {
        free(trials);
        free(next);
        return -ENOMEM;
    }
    b->rc = b->run(b->arg, trials, tried);
    for (i = 0, tried = 0; b->rc == 0 && i < *count_p; i++) {
        unsigned before = kept;
        unsigned h = 0;

        if (sets[i].count == 1) {
            next[kept++] = sets[i];
            continue;
        }
        for (h = 0; h < 2; h++, tried++) {
            if (trials[tried].failed) {
                next[kept++] =
                    (struct bisect_range){.first = (unsigned)(trials[tried].nodes - b->order),
                                          .count = trials[tried].count};
            }
        }
        if (kept == before && whole_p->count == 0)
            *whole_p = sets[i];
    }
    if (b->rc == 0) {
        memcpy(sets, next, kept * sizeof *sets);
        *count_p = kept;
    }
    free(trials);
    free(next);
    return 0;
}

/* Makes `part` as small as the failure together with `rest` allows. `joint` has room for both. */
static void bisect_shrink(struct bisect *b, const unsigned *rest, unsigned rest_count,
                          unsigned *part, unsigned *count_p, unsigned *joint)
{
    while (*count_p > 1 && b->rc == 0) {
        unsigned half = *count_p / 2;

        memcpy(joint, rest, rest_count * sizeof *rest);
        memcpy(joint + rest_count, part, half * sizeof *part);
        if (bisect_fails(b, joint, rest_count + half)) {
            *count_p = half;
            continue;
        }
        memcpy(joint + rest_count, part + half, (*count_p - half) * sizeof *part);
        if (!bisect_fails(b, joint, rest_count + *count_p - half))
            return;
        memmove(part, part + half, (*count_p - half) * sizeof *part);
        *count_p -= half;
    }
}

static bool bisect_has(const unsigned *nodes, unsigned count, unsigned node)
{
    unsigned i = 0;

    while (i < count && nodes[i] != node)
        i++;
    return i < count;
}

/* Puts a node from outside in the place of each member in turn: a group that still fails did not
 * need it. */
static void bisect_replace(struct bisect *b, struct shk_bisect_result *result, unsigned *joint)
{
    unsigned *group = result->nodes;
    unsigned needed[BISECT_REPLACED_MAX];
    unsigned count = 0;
    unsigned outsider = 0;

    while (outsider < b->all && bisect_has(group, result->count, outsider))
        outsider++;
    result->kind = result->count == 2 ? SHK_BISECT_PAIR : SHK_BISECT_GROUP;
    if (outsider == b->all || result->count > BISECT_REPLACED_MAX)
        return;
    for (unsigned i = 0; i < result->count && b->rc == 0; i++) {
        memcpy(joint, group, result->count * sizeof *group);
        joint[i] = outsider;
        if (!bisect_fails(b, joint, result->count))
            needed[count++] = group[i];
    }
    if (b->rc != 0)
        return;
    if (count == 0) {
        result->kind = SHK_BISECT_NUMBER;
    } else {
        bisect_keep(result,
                    count == 1   ? SHK_BISECT_NODE
                    : count == 2 ? SHK_BISECT_PAIR
                                 : SHK_BISECT_GROUP,
                    needed, count);
    }
}

/* A set that fails, and neither of its halves. */
static int bisect_joint(struct bisect *b, struct bisect_range whole,
                        struct shk_bisect_result *result)
{
    unsigned *set = malloc(whole.count * sizeof *set);
    unsigned *joint = malloc(whole.count * sizeof *joint);
    unsigned left = whole.count / 2;
    unsigned right = whole.count - left;

    if (!set || !joint) {
        free(set);
        free(joint);
        return -ENOMEM;
    }
    memcpy(set, &b->order[whole.first], whole.count * sizeof *set);
    bisect_shrink(b, set, left, set + left, &right, joint);
    bisect_shrink(b, set + whole.count / 2, right, set, &left, joint);
    memmove(set + left, set + whole.count / 2, right * sizeof *set);
    bisect_keep(result, SHK_BISECT_GROUP, set, left + right);
    if (b->rc == 0) {
        bool again = bisect_fails(b, set, left + right);

        if (b->rc == 0 && again)
            bisect_replace(b, result, joint);
        else if (b->rc == 0)
            result->kind = SHK_BISECT_CHANCE;
    }
    free(set);
    free(joint);
    return 0;
}

/* Singles that are left fail alone, if they do so again. */
static int bisect_alone(struct bisect *b, const struct bisect_range *sets, unsigned count,
                        struct shk_bisect_result *result)
{
    struct shk_bisect_trial *trials = calloc(count, sizeof *trials);

    if (!trials)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        trials[i] =
            (struct shk_bisect_trial){.nodes = &b->order[sets[i].first], .count = sets[i].count};
    }
    b->rc = b->run(b->arg, trials, count);
    if (b->rc == 0) {
        result->count = 0;
        for (unsigned i = 0; i < count; i++) {
            if (trials[i].failed)
                result->nodes[result->count++] = trials[i].nodes[0];
        }
        result->kind = result->count == 0        ? SHK_BISECT_CHANCE
                       : result->count == b->all ? SHK_BISECT_ALL
                                                 : SHK_BISECT_ALONE;
    }
    free(trials);
    return 0;
}

static bool bisect_divisible(const struct bisect_range *sets, unsigned count)
{
    unsigned i = 0;

    while (i < count && sets[i].count == 1)
        i++;
    return i < count;
}

static int bisect_search(struct bisect *b, struct bisect_range *sets,
                         struct shk_bisect_result *result)
{
    struct bisect_range whole = {0};
    unsigned count = 1;
    int rc = 0;

    sets[0] = (struct bisect_range){.count = b->all};
    while (rc == 0 && b->rc == 0 && bisect_divisible(sets, count)) {
        rc = bisect_halve(b, sets, &count, &whole);
        if (rc == 0 && b->rc == 0 && count > 0)
            bisect_keep(result, SHK_BISECT_ENDED, &b->order[sets[0].first], sets[0].count);
    }
    if (rc == 0 && b->rc == 0 && count > 0)
        rc = bisect_alone(b, sets, count, result);
    else if (rc == 0 && b->rc == 0)
        rc = bisect_joint(b, whole, result);
    return rc;
}

int shk_bisect(unsigned count, shk_bisect_try run, void *arg, struct shk_bisect_result *result)
{
    struct bisect b = {.run = run, .arg = arg, .all = count};
    struct bisect_range *sets = calloc(count, sizeof *sets);
    int rc = 0;

    *result = (struct shk_bisect_result){.nodes = calloc(count, sizeof *result->nodes)};
    b.order = calloc(count, sizeof *b.order);
    if (!sets || !result->nodes || !b.order)
        rc = -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        b.order[i] = result->nodes[i] = i;
    if (rc == 0) {
        result->count = count;
        if (bisect_fails(&b, b.order, count))
            rc = bisect_search(&b, sets, result);
        else
            result->kind = SHK_BISECT_PASSED;
    }
    if (rc == 0 && b.rc != 0)
        result->kind = SHK_BISECT_ENDED;
    free(sets);
    free(b.order);
    if (rc < 0) {
        free(result->nodes);
        *result = (struct shk_bisect_result){0};
    }
    return rc;
}
