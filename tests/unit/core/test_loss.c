#include "core/job/loss.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW(from, to, sent, again, needless, unsent, stuck)                                       \
    "{'from': '" from "', 'to': '" to "', 'sent': " #sent ", 'again': " #again                     \
    ", 'needless': " #needless ", 'unsent': " #unsent ", 'timeouts': 0, 'waited_ms': 0, "          \
    "'stuck': " #stuck "}"
/* From one to another and back. */
#define BOTH(a, b, there, back)                                                                    \
    FLOW(a, b, 10000, there, 0, 0, 0) ", " FLOW(b, a, 10000, back, 0, 0, 0)
#define RUN(flows)   "{'flows': [" flows "]}"
#define TWICE(flows) RUN(flows) ", " RUN(flows)

struct loss_case {
    const char *what, *runs, *nodes, *rest, *self;
    double share; /* least; below twice of it */
};

static const struct loss_case loss_cases[] = {
    {"nothing lost", TWICE(BOTH("a", "b", 0, 0) ", " BOTH("b", "c", 0, 0)), "", "", "", 0},
    {"into one of three: its peers send again",
     TWICE(BOTH("a", "b", 300, 0) ", " BOTH("c", "b", 310, 0) ", " BOTH("a", "c", 1, 2)), "b", "",
     "", 0.03},
    {"out of one of three: it sends again",
     TWICE(BOTH("a", "b", 0, 300) ", " BOTH("c", "b", 0, 310) ", " BOTH("a", "c", 1, 2)), "b", "",
     "", 0.03},
    {"one of three, and the other direction hardly used",
     TWICE(BOTH("a", "b", 300, 0) ", " FLOW("b", "c", 400, 12, 0, 0, 0) ", " BOTH("a", "c", 0, 0)),
     "b", "", "", 0.03},
    {"two nodes: both ends", TWICE(BOTH("a", "b", 300, 0)), "", "a b", "", 0.03},
    {"one pair of three nodes",
     TWICE(BOTH("a", "b", 300, 0) ", " BOTH("c", "b", 0, 0) ", " BOTH("a", "c", 0, 0)), "", "a b",
     "", 0.03},
    {"all of three",
     TWICE(BOTH("a", "b", 300, 0) ", " BOTH("c", "b", 0, 310) ", " BOTH("a", "c", 290, 300)), "",
     "a b c", "", 0.03},
    {"nobody who could witness that the others are well",
     TWICE(BOTH("a", "b", 300, 0) ", " BOTH("c", "b", 310, 0)), "", "a b c", "", 0.03},
    {"two of five",
     TWICE(BOTH("a", "b", 300, 0) ", " BOTH("a", "c", 300, 0) ", " BOTH("a", "e", 0, 300) ", " BOTH(
         "b", "d", 300, 0) ", " BOTH("b", "e", 300, 0) ", " BOTH("c", "d", 1, 0) ", " BOTH("d", "e",
                                                                                           0, 3)),
     "a b", "", "", 0.03},
    {"what the peer already had is not lost",
     TWICE(FLOW("a", "b", 10000, 300, 300, 0, 0) ", " BOTH("b", "c", 0, 0)), "", "", "", 0},
    {"once only, by chance",
     RUN(BOTH("a", "b", 44, 0) ", " BOTH("b", "c", 44, 0) ", " BOTH("a", "c", 0, 0)) ", " RUN(
         BOTH("a", "b", 0, 0) ", " BOTH("b", "c", 0, 0) ", " BOTH("a", "c", 0, 0)),
     "", "", "", 0},
    {"a node that was there once, and lost much",
     RUN(BOTH("a", "c", 0, 0)) ", " RUN(
         BOTH("a", "b", 800, 0) ", " BOTH("c", "b", 700, 0) ", " BOTH("a", "c", 0, 0)),
     "b", "", "", 0.07},
    {"a node that was there once, and lost a large packet",
     RUN(BOTH("a", "c", 0, 0)) ", " RUN(
         BOTH("a", "b", 45, 0) ", " BOTH("c", "b", 45, 0) ", " BOTH("a", "c", 0, 0)),
     "", "", "", 0},
    {"too little was sent",
     TWICE(FLOW("a", "b", 200, 50, 0, 0, 0) ", " FLOW("c", "b", 90, 50, 0, 0, 0)), "", "a b", "",
     0.25},
    {"its own kernel drops, two nodes",
     TWICE(FLOW("a", "b", 10000, 0, 0, 300, 0) ", " FLOW("b", "a", 10000, 0, 0, 0, 0)), "a", "",
     "a", 0.03},
    {"its own kernel drops, three nodes",
     TWICE(FLOW("a", "b", 10000, 2, 2, 300, 0) ", " FLOW("a", "c", 10000, 2, 2, 300,
                                                         0) ", " BOTH("b", "c", 0, 0)),
     "a", "", "a", 0.03},
    {"nothing goes through any more: no loss by chance",
     TWICE(FLOW("a", "b", 500, 20, 0, 0, 1) ", " BOTH("b", "c", 0, 0)), "", "", "", 0},
};

static void check_names(const struct loss_case *c, const json_t *names, const char *want)
{
    char text[64] = "";
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)names, i, name)
    {
        strcat(text, i ? " " : "");
        strcat(text, json_string_value(name));
    }
    cr_assert_str_eq(text, want, "%s: \"%s\", not \"%s\"", c->what, text, want);
}

static json_t *runs_of(const char *text)
{
    char *json = NULL;
    json_t *runs = NULL;

    cr_assert(asprintf(&json, "[%s]", text) > 0);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    runs = json_loads(json, 0, NULL);
    cr_assert_not_null(runs, "%s", json);
    free(json);
    return runs;
}

Test(loss, who)
{
    for (size_t i = 0; i < sizeof loss_cases / sizeof *loss_cases; i++) {
        const struct loss_case *c = &loss_cases[i];
        json_t *runs = runs_of(c->runs);
        struct shk_loss loss;

        cr_assert_eq(shk_loss_of(runs, &loss), 0, "%s", c->what);
        check_names(c, loss.nodes, c->nodes);
        check_names(c, loss.rest, c->rest);
        check_names(c, loss.self, c->self);
        if (c->share == 0)
            cr_assert_lt(loss.share, SHK_LOSS_MUCH, "%s", c->what);
        else
            cr_assert(loss.share >= c->share && loss.share < 2 * c->share, "%s: %g", c->what,
                      loss.share);
        shk_loss_clear(&loss);
        json_decref(runs);
    }
}

/* Every member that is missing or of another type makes the whole unusable, none a guess. */
Test(loss, form)
{
    static const char *const members[] = {"from",   "to",       "sent",      "again", "needless",
                                          "unsent", "timeouts", "waited_ms", "stuck"};

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *runs = runs_of(RUN(FLOW("a", "b", 1000, 1, 0, 0, 0)));
        json_t *flow = json_array_get(json_object_get(json_array_get(runs, 0), "flows"), 0);
        struct shk_loss loss;

        cr_assert_eq(shk_loss_of(runs, &loss), 0);
        shk_loss_clear(&loss);
        json_object_set_new(flow, members[i], json_true());
        cr_assert_eq(shk_loss_of(runs, &loss), -EINVAL, "%s", members[i]);
        json_object_del(flow, members[i]);
        cr_assert_eq(shk_loss_of(runs, &loss), -EINVAL, "%s", members[i]);
        json_decref(runs);
    }
    for (const char *const *bad =
             (const char *const[]){"7", "{}", "{'flows': 3}", "{'flows': [1]}", NULL};
         *bad; bad++) {
        json_t *runs = runs_of(*bad);
        struct shk_loss loss;
        cr_assert_eq(shk_loss_of(runs, &loss), -EINVAL, "%s", *bad);
        json_decref(runs);
    }
}
