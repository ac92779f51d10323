#include "core/run/isolate.h"
#include "core/run/stop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fine(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)err;
    printf("a vendor library talks");
    *result_p = json_pack("{s:i}", "n", *(int *)arg);
    return 0;
}

static int fails(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg;
    *result_p = json_string("partial");
    return shk_error_set(err, ENOENT, "thing is not there");
}

static void enter(const char *call)
{
    shk_crumb_library("libvendor.so.1");
    shk_crumb_call("%s", call);
}

static int crashes(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    enter("vendor_init");
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 0;
}

static int aborts(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    enter("vendor_abort");
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    return 0;
}

static int exits(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    enter("vendor_exit");
    _exit(3);
}

Test(isolate, beside_others)
{
    static int seven = 7;
    const struct shk_isolate_job early = {.name = "early", .fn = fine, .arg = &seven};
    struct shk_isolate_job job = {.name = "other", .fn = fine, .arg = &seven};
    struct shk_isolate_pending *pending = NULL;
    struct shk_isolate_result result, other;
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_begin(&pending, &early, &err), 0, "%s", err.text);
    cr_assert_eq(shk_isolate_run(&job, &other, 1, 1, &err), 0);
    shk_isolate_end(pending, &result);
    cr_expect_eq(other.outcome, SHK_CHILD_OK);
    cr_expect_eq(result.outcome, SHK_CHILD_OK);
    cr_expect_eq(json_integer_value(json_object_get(result.result, "n")), 7);
    cr_expect_str_eq(result.output, "a vendor library talks");
    shk_isolate_result_clear(&result);
    shk_isolate_result_clear(&other);
}

static int slow(void *arg, json_t **result_p, struct shk_error *err)
{
    usleep(500000);
    return fine(arg, result_p, err);
}

static int hangs(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    enter("vendor_wait");
    if (fork() == 0) /* a helper process that must not survive either */
        pause();
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
    return 0;
}

static const struct shk_isolate_job early_hang = {.name = "early", .fn = hangs, .deadline_ms = 200};

/* Its deadline holds while others are waited for, and when nobody waited. */
Test(isolate, beside_others_and_hanging)
{
    struct shk_isolate_pending *pending = NULL;
    struct shk_isolate_result result;
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_begin(&pending, &early_hang, &err), 0, "%s", err.text);
    shk_isolate_end(pending, &result);
    cr_expect(result.outcome == SHK_CHILD_TIMEOUT || result.outcome == SHK_CHILD_STARVED);
    shk_isolate_result_clear(&result);
}

/* … and when the caller waits for something of its own. */
Test(isolate, beside_a_caller_that_looks_now_and_then, .timeout = 100)
{
    struct shk_isolate_pending *pending = NULL;
    struct shk_isolate_result result;
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_begin(&pending, &early_hang, &err), 0, "%s", err.text);
    for (int i = 0; i < 400; i++) {
        shk_isolate_turn();
        usleep(10000);
    }
    shk_isolate_end(pending, &result);
    cr_expect(result.outcome == SHK_CHILD_TIMEOUT || result.outcome == SHK_CHILD_STARVED);
    cr_expect_lt(result.ms, 3000.0, "ended at its deadline, not when it was asked for");
    shk_isolate_result_clear(&result);
    shk_isolate_turn(); /* with nothing begun */
}

/* A rank forked meanwhile knows of the job, and must neither wait for it nor kill it. */
Test(isolate, a_fork_of_the_caller_leaves_it_alone, .timeout = 100)
{
    int seven = 7, status = 0;
    const struct shk_isolate_job early = {.name = "early", .fn = slow, .arg = &seven};
    struct shk_isolate_pending *pending = NULL;
    struct shk_isolate_result result;
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_begin(&pending, &early, &err), 0, "%s", err.text);
    pid_t pid = fork();
    if (pid == 0) {
        const struct shk_isolate_job job = {.name = "own", .fn = fine, .arg = &seven};
        shk_isolate_turn();
        int rc = shk_isolate_run(&job, &result, 1, 1, &err);
        _exit(rc || result.outcome != SHK_CHILD_OK);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    shk_isolate_end(pending, &result);
    cr_expect_eq(result.outcome, SHK_CHILD_OK, "%s", result.error.text);
    shk_isolate_result_clear(&result);
}

static int eats(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    enter("vendor_cache");
    for (size_t i = 0; i < 2048; i++) {
        char *p = malloc(1 << 20);
        if (p)
            memset(p, 1, 1 << 20);
        usleep(100);
    }
    return 0;
}

static struct shk_isolate_result run_one(struct shk_isolate_job job)
{
    struct shk_isolate_result r;
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_run(&job, &r, 1, 0, &err), 0, "%s", err.text);
    return r;
}

Test(isolate, results_and_output_arrive, .timeout = 100)
{
    int n = 5;
    struct shk_isolate_result r =
        run_one((struct shk_isolate_job){.name = "t", .fn = fine, .arg = &n});
    cr_expect_eq(r.outcome, SHK_CHILD_OK);
    cr_expect_eq(json_integer_value(json_object_get(r.result, "n")), 5);
    cr_expect_str_eq(r.output, "a vendor library talks");
    cr_expect_str_eq(r.error.text, "");
    shk_isolate_result_clear(&r);
}

Test(isolate, an_error_keeps_the_partial_result, .timeout = 100)
{
    struct shk_isolate_result r = run_one((struct shk_isolate_job){.name = "t", .fn = fails});
    cr_expect_eq(r.outcome, SHK_CHILD_FAILED);
    cr_expect_str_eq(r.error.text, "thing is not there");
    cr_expect_str_eq(json_string_value(r.result), "partial");
    shk_isolate_result_clear(&r);
}

Test(isolate, deaths_name_library_and_call, .timeout = 300)
{
    static const struct {
        int (*fn)(void *, json_t **, struct shk_error *);
        enum shk_isolate_outcome outcome;
        const char *says;
    } rows[] = {
        {crashes, SHK_CHILD_SIGNALED, "t: died of SIGSEGV in libvendor.so.1: vendor_init"},
        {aborts, SHK_CHILD_SIGNALED, "t: died of SIGABRT in libvendor.so.1: vendor_abort"},
        {exits, SHK_CHILD_EXITED, "t: called exit(3) by itself in libvendor.so.1: vendor_exit"},
        {hangs, SHK_CHILD_TIMEOUT, "t: no answer after 300 ms in libvendor.so.1: vendor_wait"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_isolate_result r =
            run_one((struct shk_isolate_job){.name = "t", .fn = rows[i].fn, .deadline_ms = 300});
        cr_expect_eq(r.outcome, rows[i].outcome, "%zu: %s", i, r.error.text);
        cr_expect_str_eq(r.error.text, rows[i].says);
        cr_expect_null(r.result);
        shk_isolate_result_clear(&r);
    }
}

Test(isolate, runaway_memory_is_stopped, .timeout = 300)
{
    struct shk_isolate_result r = run_one((struct shk_isolate_job){
        .name = "t", .fn = eats, .deadline_ms = 30000, .memory_limit = (size_t)300 << 20});
    cr_expect_eq(r.outcome, SHK_CHILD_MEMORY, "%s", r.error.text);
    cr_expect_str_eq(r.error.text,
                     "t: took more than 300 MiB of memory in libvendor.so.1: vendor_cache");
    shk_isolate_result_clear(&r);
}

Test(isolate, one_death_does_not_touch_the_others_and_deadlines_run_side_by_side, .timeout = 300)
{
    int n = 7;
    struct shk_isolate_job jobs[6] = {
        {.name = "a", .fn = fine, .arg = &n},
        {.name = "b", .fn = crashes},
        {.name = "c", .fn = hangs, .deadline_ms = 4000},
        {.name = "d", .fn = hangs, .deadline_ms = 4000},
        {.name = "e", .fn = hangs, .deadline_ms = 4000},
        {.name = "f", .fn = fine, .arg = &n},
    };
    struct shk_isolate_result r[6];
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    cr_assert_eq(shk_isolate_run(jobs, r, 6, 6, NULL), 0);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    cr_expect_eq(r[0].outcome, SHK_CHILD_OK);
    cr_expect_eq(r[1].outcome, SHK_CHILD_SIGNALED);
    cr_expect_eq(r[2].outcome, SHK_CHILD_TIMEOUT);
    cr_expect_eq(r[4].outcome, SHK_CHILD_TIMEOUT);
    cr_expect_eq(r[5].outcome, SHK_CHILD_OK);
    /* one after the other it would be 12 s */
    cr_expect_lt((double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9, 11.5);
    for (int i = 0; i < 6; i++)
        shk_isolate_result_clear(&r[i]);
    cr_expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left");
}

/* A child that waits for a child of its own, which would take longer than it may itself. */
static int nests(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct shk_isolate_job job = {.name = "inner", .fn = hangs, .deadline_ms = 60000};
    struct shk_isolate_result inner;
    (void)arg;
    int rc = shk_isolate_run(&job, &inner, 1, 0, err);
    if (!rc)
        *result_p = json_string(inner.error.text);
    shk_isolate_result_clear(&inner);
    return rc;
}

Test(isolate, a_nested_child_ends_in_time_for_its_parent_to_tell, .timeout = 100)
{
    struct shk_isolate_result r =
        run_one((struct shk_isolate_job){.name = "outer", .fn = nests, .deadline_ms = 1500});
    cr_assert_eq(r.outcome, SHK_CHILD_OK, "%s", r.error.text);
    const char *text = json_string_value(r.result);
    cr_expect_not_null(strstr(text, "inner: no answer after"), "%s", text);
    shk_isolate_result_clear(&r);
}

static int tells_its_time(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)err;
    usleep(300000);
    *result_p = json_real(shk_isolate_left_ms());
    return 0;
}

Test(isolate, a_child_knows_how_much_time_is_left, .timeout = 100)
{
    cr_expect_lt(shk_isolate_left_ms(), 0, "no deadline here");
    struct shk_isolate_result r =
        run_one((struct shk_isolate_job){.name = "t", .fn = tells_its_time, .deadline_ms = 30000});
    double left = json_real_value(r.result);
    cr_expect(left > 500 && left <= 29700, "%g", left);
    shk_isolate_result_clear(&r);
    r = run_one((struct shk_isolate_job){.name = "t", .fn = tells_its_time});
    cr_expect_lt(json_real_value(r.result), 0);
    shk_isolate_result_clear(&r);
}

static int floods(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)err;
    fputs("HEAD", stdout);
    for (int i = 0; i < 100000; i++)
        fputs("0123456789", stdout);
    fputs("TAIL", stdout);
    *result_p = json_true();
    return 0;
}

Test(isolate, output_keeps_head_and_tail, .timeout = 100)
{
    struct shk_isolate_result r = run_one((struct shk_isolate_job){.name = "t", .fn = floods});
    size_t len = strlen(r.output);
    cr_expect_eq(r.outcome, SHK_CHILD_OK);
    cr_expect_leq(len, 64 << 10);
    cr_expect_eq(strncmp(r.output, "HEAD", 4), 0);
    cr_expect_str_eq(r.output + len - 4, "TAIL");
    shk_isolate_result_clear(&r);
}

Test(isolate, breadcrumbs_outside_a_child_are_harmless)
{
    shk_crumb_library("x");
    shk_crumb_call("y");
    shk_crumb_clear();
    cr_expect_str_eq(shk_isolate_outcome_name(SHK_CHILD_TIMEOUT), "timeout");
}

static int sleep_long(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_library("libslow.so");
    sleep(60);
    return 0;
}

/* As a time limit does it: what runs is ended, what waits is not begun, and neither is a fault. */
Test(isolate, a_signal_that_asks_to_end, .timeout = 300)
{
    struct shk_isolate_job jobs[] = {
        {.name = "first", .fn = sleep_long, .deadline_ms = 50000},
        {.name = "second", .fn = sleep_long, .deadline_ms = 50000},
    };
    struct shk_isolate_result r[2];
    cr_expect_null(shk_stop_name());
    shk_stop_catch();
    pid_t other = fork();
    if (other == 0) {
        usleep(300000);
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    cr_assert_eq(shk_isolate_run(jobs, r, 2, 1, NULL), 0);
    cr_expect_eq(shk_stop_signal(), SIGTERM);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(r[i].outcome, SHK_CHILD_NOT_RUN);
        cr_expect_not_null(strstr(r[i].error.text, "interrupted by SIGTERM"), "%s",
                           r[i].error.text);
        cr_expect_lt(r[i].ms, 30000);
        shk_isolate_result_clear(&r[i]);
    }
    waitpid(other, NULL, 0);
    shk_stop_release();
}
