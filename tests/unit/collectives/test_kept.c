/* A reading of counters that serves two runs: as the end of one and the beginning of the next. */
#include "collectives/counters/counters.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *next(void *arg)
{
    int *reads = arg;
    return json_integer(++*reads);
}

static json_t *none(void *arg)
{
    int *reads = arg;
    ++*reads;
    return NULL;
}

static long long value(json_t *counters)
{
    long long n = json_integer_value(counters);
    json_decref(counters);
    return n;
}

Test(kept, the_end_of_one_run_is_the_beginning_of_the_next)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 1);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 2, "no run ended between");
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 4, "the end is always read");
    shk_counters_forget(&kept);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 5);
}

Test(kept, an_old_reading_does_not_count)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 1);
    kept.read_ns -= 3000000000ULL;
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 2);
    shk_counters_forget(&kept);
}

Test(kept, what_could_not_be_read_is_not_kept)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 1);
    cr_expect_null(shk_counters_after(&kept, none, &reads));
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_before(NULL, next, &reads)), 4, "nobody keeps anything");
    cr_expect_eq(value(shk_counters_after(NULL, next, &reads)), 5);
}

/* A source whose readings go on: begun is counted, ended is told by what they say. */
struct node {
    int begun, ended;
    bool broken; /* the next reading cannot be begun */
    long long corrected;
};

struct going {
    struct node *node;
    long long corrected;
    double time;
};

static void *going_begin(void *arg)
{
    struct node *node = arg;
    struct going *going = calloc(1, sizeof *going);
    if (node->broken) {
        free(going);
        return NULL;
    }
    *going = (struct going){node, node->corrected, ++node->begun};
    return going;
}

static json_t *going_end(void *reading)
{
    struct going *going = reading;
    json_t *read =
        json_pack("{s:f, s:{s:{s:I}}, s:{s:s}, s:{s:s}, s:{}, s:{s:i, s:[]}}", "time", going->time,
                  "values", "gpu0", "ECC", (json_int_t)going->corrected, "kinds", "ECC",
                  "corrected", "classes", "gpu0", "gpu", "unread", "log", "last", 0, "events");
    going->node->ended++;
    free(going);
    return read;
}

struct layers {
    struct node node;
    struct shk_counters_source source;
    struct shk_counters_kept kept;
    struct shk_collective_options options;
    struct shk_facts *facts;
};

static void layers_begin(struct layers *l)
{
    *l = (struct layers){.facts = shk_facts_create()};
    l->source = (struct shk_counters_source){going_begin, going_end, &l->node};
    l->options = (struct shk_collective_options){.counters = &l->source, .kept = &l->kept};
}

static void layers_end(struct layers *l)
{
    shk_counters_forget(&l->kept);
    shk_facts_destroy(l->facts);
    cr_expect_eq(l->node.begun, l->node.ended, "every reading that was begun was ended");
}

/* One layer in which `moved` errors come in. */
static void layer(struct layers *l, const char *name, long long moved, bool ran)
{
    struct shk_counters_span span;
    struct shk_error err = {{0}};
    shk_counters_enter(&l->options, &span);
    l->node.corrected += moved;
    cr_expect_eq(shk_counters_leave(&l->options, &span, name, ran, l->facts, &err), 0, "%s",
                 err.text);
}

/* By how much the counter moved in a layer; -1: there is no such fact, 0: it did not move. */
static long long moved_in(const struct layers *l, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "collective.%s.moved", name);
    const json_t *fact = json_array_get(shk_facts_get_array(l->facts, key), 0);
    const json_t *node = json_array_get(json_object_get(fact, "nodes"), 0);
    const json_t *row = json_array_get(json_object_get(node, "moved"), 0);
    return !node ? -1 : json_integer_value(json_object_get(row, "by"));
}

Test(kept, the_reading_after_a_layer_goes_on_while_the_next_one_runs)
{
    struct layers l;
    layers_begin(&l);
    layer(&l, "peer", 3, true);
    cr_expect_eq(l.node.begun, 2);
    cr_expect_eq(l.node.ended, 1, "it goes on");
    cr_expect_eq(moved_in(&l, "peer"), -1);
    layer(&l, "lsa", 0, true);
    cr_expect_eq(l.node.begun, 3, "the end of one is the beginning of the next");
    cr_expect_eq(moved_in(&l, "peer"), 3);
    layer(&l, "nccl", 5, true);
    cr_expect_eq(moved_in(&l, "lsa"), 0);
    cr_expect_eq(moved_in(&l, "nccl"), -1);
    cr_expect_eq(shk_counters_settle(&l.kept, NULL), 0);
    cr_expect_eq(moved_in(&l, "nccl"), 5);
    cr_expect_eq(l.node.ended, 4);
    cr_expect_eq(shk_counters_settle(&l.kept, NULL), 0, "nothing is under way");
    cr_expect_eq(shk_counters_settle(NULL, NULL), 0);
    layers_end(&l);
}

Test(kept, a_layer_that_did_not_run_has_no_fact_and_costs_no_reading)
{
    struct layers l;
    layers_begin(&l);
    layer(&l, "peer", 1, true);
    layer(&l, "lsa", 0, false);
    cr_expect_eq(moved_in(&l, "peer"), 1);
    layer(&l, "nccl", 2, true);
    cr_expect_eq(shk_counters_settle(&l.kept, NULL), 0);
    cr_expect_eq(l.node.begun, 3);
    cr_expect_eq(moved_in(&l, "lsa"), -1);
    cr_expect_eq(moved_in(&l, "nccl"), 2);
    layers_end(&l);
}

Test(kept, an_old_reading_under_way_is_ended_and_read_again)
{
    struct layers l;
    layers_begin(&l);
    layer(&l, "peer", 1, true);
    l.kept.begun_ns -= 3000000000ULL;
    l.node.corrected += 7; /* of nobody's */
    layer(&l, "lsa", 2, true);
    cr_expect_eq(shk_counters_settle(&l.kept, NULL), 0);
    cr_expect_eq(moved_in(&l, "peer"), 1);
    cr_expect_eq(moved_in(&l, "lsa"), 2);
    cr_expect_eq(l.node.begun, 4);
    layers_end(&l);
}

/* Ranks of a launcher read at once: what is under way is ended first, and serves them, too. */
Test(kept, a_reading_at_once_ends_the_one_under_way)
{
    struct layers l;
    int reads = 0;
    layers_begin(&l);
    layer(&l, "peer", 4, true);
    json_t *before = shk_counters_before(&l.kept, next, &reads);
    cr_expect_eq(reads, 0);
    cr_expect_eq(json_real_value(json_object_get(before, "time")), 2.0);
    cr_expect_eq(moved_in(&l, "peer"), 4);
    json_decref(before);
    layer(&l, "lsa", 6, true);
    cr_expect_eq(value(shk_counters_after(&l.kept, next, &reads)), 1);
    cr_expect_eq(moved_in(&l, "lsa"), 6);
    layers_end(&l);
}

Test(kept, without_anyone_to_keep_it_the_fact_is_there_at_once)
{
    struct layers l;
    layers_begin(&l);
    l.options.kept = NULL;
    layer(&l, "peer", 2, true);
    cr_expect_eq(moved_in(&l, "peer"), 2);
    cr_expect_eq(l.node.ended, 2);
    l.options.counters = NULL;
    layer(&l, "lsa", 2, true);
    cr_expect_eq(moved_in(&l, "lsa"), -1, "nobody wants to know");
    cr_expect_eq(l.node.begun, 2);
    layers_end(&l);
}

/* The counters are unread then, and the fact says so. */
Test(kept, a_reading_that_cannot_be_begun_loses_no_fact)
{
    struct layers l;
    layers_begin(&l);
    layer(&l, "peer", 2, true);
    l.node.broken = true;
    layer(&l, "lsa", 2, true);
    cr_expect_eq(moved_in(&l, "peer"), 2);
    cr_expect_eq(moved_in(&l, "lsa"), 0);
    cr_expect_not_null(shk_facts_get_array(l.facts, "collective.lsa.moved"));
    layers_end(&l);
}
