/* A child that misses its deadline: did it hang, or was the machine too busy? */
#include "core/run/isolate.h"
#include "core/run/isolate_share.h"
#include "tests/fakes/starve.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>

static struct shk_isolate_result run_beside_others(int (*fn)(void *, json_t **, struct shk_error *),
                                                   unsigned deadline_ms)
{
    const struct shk_isolate_job job = {.name = "t", .fn = fn, .deadline_ms = deadline_ms};
    struct shk_isolate_result r;
    pid_t others[2] = {starve_others(), starve_others()};
    cr_assert_eq(shk_isolate_run(&job, &r, 1, 0, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    return r;
}

static int starved(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)err;
    shk_crumb_library("libvendor.so.1");
    shk_crumb_call("vendor_init");
    starve_become();
    starve_work(0.5);
    *result_p = json_true();
    return 0;
}

Test(isolate_share, a_child_that_nobody_lets_run_is_no_hang, .timeout = 100)
{
    struct shk_isolate_result r = run_beside_others(starved, 3000);
    cr_expect_eq(r.outcome, SHK_CHILD_STARVED, "%s", r.error.text);
    cr_expect_str_eq(shk_isolate_outcome_name(r.outcome), "starved");
    cr_expect_not_null(strstr(r.error.text, "t: the node was too busy: it got 0."), "%s",
                       r.error.text);
    cr_expect_not_null(strstr(r.error.text, " s for it in libvendor.so.1: vendor_init"), "%s",
                       r.error.text);
    shk_isolate_result_clear(&r);
}

/* Alone on its processor it is in time. */
Test(isolate_share, the_same_child_on_an_idle_node, .timeout = 300)
{
    const struct shk_isolate_job job = {.name = "t", .fn = starved, .deadline_ms = 200000};
    struct shk_isolate_result r;
    cr_assert_eq(shk_isolate_run(&job, &r, 1, 0, NULL), 0);
    cr_expect_eq(r.outcome, SHK_CHILD_OK, "%s", r.error.text);
    shk_isolate_result_clear(&r);
}

static int sleeps(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("vendor_wait");
    starve_pin();
    for (;;)
        pause();
    return 0;
}

Test(isolate_share, one_that_sleeps_hangs_although_the_node_is_busy, .timeout = 100)
{
    struct shk_isolate_result r = run_beside_others(sleeps, 3000);
    cr_expect_eq(r.outcome, SHK_CHILD_TIMEOUT, "%s", r.error.text);
    cr_expect_not_null(strstr(r.error.text, "no answer after 3000 ms in vendor_wait"), "%s",
                       r.error.text);
    shk_isolate_result_clear(&r);
}

static int spins(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    starve_never();
    for (;;)
        ;
    return 0;
}

Test(isolate_share, one_that_spins_hangs, .timeout = 100)
{
    const struct shk_isolate_job job = {.name = "t", .fn = spins, .deadline_ms = 1500};
    struct shk_isolate_result r;
    cr_assert_eq(shk_isolate_run(&job, &r, 1, 0, NULL), 0);
    cr_expect_eq(r.outcome, SHK_CHILD_TIMEOUT, "%s", r.error.text);
    shk_isolate_result_clear(&r);
}

/* The inner one ends first, but the outer one has no time to tell. */
static int nests(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct shk_isolate_job job = {.name = "inner", .fn = starved, .deadline_ms = 60000};
    struct shk_isolate_result inner;
    (void)arg;
    starve_become();
    int rc = shk_isolate_run(&job, &inner, 1, 0, err);
    if (!rc)
        *result_p = json_string(inner.error.text);
    shk_isolate_result_clear(&inner);
    return rc;
}

Test(isolate_share, nor_does_one_hang_that_waits_for_a_child_that_nobody_lets_run, .timeout = 100)
{
    struct shk_isolate_result r = run_beside_others(nests, 3000);
    const char *text = r.result ? json_string_value(r.result) : r.error.text;
    cr_expect(r.outcome == SHK_CHILD_STARVED || r.outcome == SHK_CHILD_OK, "%s", text);
    cr_expect_not_null(strstr(text, "the node was too busy"), "%s", text);
    shk_isolate_result_clear(&r);
}

Test(isolate_share, figures)
{
    static const struct {
        const char *what;
        struct isolate_share share;
        bool starved;
    } cases[] = {
        {"nothing was seen", {.seen = 0}, false},
        {"asleep", {.seen = 10000, .ran = 50, .waited = 40, .runnable = 100}, false},
        {"spinning alone", {.seen = 10000, .ran = 9900, .waited = 60, .runnable = 10000}, false},
        {"spinning beside one",
         {.seen = 10000, .ran = 5000, .waited = 5000, .runnable = 10000},
         false},
        {"spinning beside two",
         {.seen = 10000, .ran = 3300, .waited = 6600, .runnable = 10000},
         false},
        {"0.2 of 10 s", {.seen = 10000, .ran = 200, .waited = 9000, .runnable = 9900}, true},
        {"one wait that has not ended",
         {.seen = 10000, .ran = 10, .waited = 2, .runnable = 9900},
         true},
        {"a kernel that keeps no account of waits",
         {.seen = 10000, .ran = 300, .runnable = 9000},
         true},
        {"an account, but states were missed", {.seen = 10000, .ran = 300, .waited = 8000}, true},
        {"many threads of its own that spin",
         {.seen = 10000, .ran = 19000, .waited = 8000, .runnable = 10000},
         false},
        {"a busy start, then asleep",
         {.seen = 10000, .ran = 100, .waited = 3000, .runnable = 3100},
         false},
        {"its child had the time, it had none to tell",
         {.seen = 10000,
          .ran = 100,
          .runnable = 400,
          .nested = true,
          .tail_began = 9700,
          .tail_ran = 100,
          .tail_runnable = 100},
         true},
        {"asleep to the end, with children",
         {.seen = 10000,
          .ran = 100,
          .runnable = 150,
          .nested = true,
          .tail_began = 9700,
          .tail_ran = 100,
          .tail_runnable = 150},
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(shk_isolate_share_starved(&cases[i].share, 10000), cases[i].starved, "%s",
                     cases[i].what);
    cr_expect_eq((int)shk_isolate_share_waited(&cases[5].share, 10000), 9700);
}
