#include "collectives/ranks/job.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs body(job) in one process per rank; the exit statuses must be 0. */
static void each_rank(unsigned ranks, int (*body)(struct shk_job *job))
{
    struct shk_job *job = NULL;
    struct shk_error err = {{0}};
    pid_t pids[8];
    unsigned i = 0;
    int status = 0;

    cr_assert_eq(shk_job_create(&job, ranks, 64, &err), 0, "%s", err.text);
    for (i = 0; i < ranks; i++) {
        pids[i] = fork();
        cr_assert_geq(pids[i], 0);
        if (pids[i] == 0) {
            alarm(20);
            shk_job_join(job, i);
            _exit(body(job));
        }
    }
    for (i = 0; i < ranks; i++) {
        cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
        cr_expect_eq(status, 0, "rank %u: status %#x", i, status);
    }
    shk_job_destroy(job);
}

static int exchange(struct shk_job *job)
{
    char mine[32];
    char theirs[32];
    size_t len = 0;
    unsigned i = 0;

    snprintf(mine, sizeof(mine), "rank %u", shk_job_rank(job));
    if (shk_job_put(job, "first", "x", 1, NULL) != 0 ||
        shk_job_put(job, "name", mine, strlen(mine) + 1, NULL) != 0 ||
        shk_job_fence(job, 10000, NULL) != 0) {
        return 1;
    }
    for (i = 0; i < shk_job_size(job); i++) {
        snprintf(mine, sizeof(mine), "rank %u", i);
        if (shk_job_get(job, i, "name", theirs, sizeof(theirs), &len, NULL) != 0 ||
            len != strlen(mine) + 1 || strcmp(theirs, mine) != 0) {
            return 2;
        }
    }
    return 0;
}

Test(job, ranks_see_what_others_put)
{
    each_rank(1, exchange);
    each_rank(4, exchange);
}

static int barriers(struct shk_job *job)
{
    uint64_t max = 0;
    uint64_t i = 0;

    for (i = 0; i < 2000; i++) {
        /* The largest comes from a different rank each time. */
        uint64_t mine = 10 * i + (shk_job_rank(job) + i) % shk_job_size(job);

        if (shk_job_barrier(job, mine, &max, NULL, NULL) != 0 ||
            max != 10 * i + shk_job_size(job) - 1) {
            return 1;
        }
    }
    return 0;
}

Test(job, barrier_gives_the_maximum_each_time)
{
    each_rank(1, barriers);
    each_rank(3, barriers);
    each_rank(8, barriers);
}

static int fail_poll(void *arg)
{
    return ++*(int *)arg > 3 ? -EIO : 0;
}

Test(job, barrier_stops_when_progress_fails)
{
    struct shk_job *job = NULL;
    uint64_t max = 99;
    int calls = 0;

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    shk_job_join(job, 0);
    cr_expect_eq(shk_job_barrier(job, 1, &max, fail_poll, &calls), -EIO);
    cr_expect_eq(calls, 4);
    cr_expect_eq(max, 99);
    shk_job_destroy(job);
}

Test(job, fence_names_the_missing_rank)
{
    struct shk_job *job = NULL;
    struct shk_error err = {{0}};

    cr_assert_eq(shk_job_create(&job, 3, 0, NULL), 0);
    shk_job_join(job, 0);
    cr_expect_eq(shk_job_fence(job, 30, &err), -ETIMEDOUT);
    cr_expect_not_null(strstr(err.text, "rank 1 did not arrive"), "%s", err.text);
    shk_job_destroy(job);
}

Test(job, get_refuses_what_is_not_there_or_too_long)
{
    struct shk_job *job = NULL;
    struct shk_error err = {{0}};
    char buf[4];
    size_t len = 0;

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    shk_job_join(job, 1);
    cr_assert_eq(shk_job_put(job, "k", "12345", 5, &err), 0);
    cr_expect_eq(shk_job_get(job, 1, "k", buf, sizeof(buf), &len, &err), -EMSGSIZE);
    cr_expect_eq(shk_job_get(job, 1, "other", buf, sizeof(buf), &len, &err), -ENOENT);
    cr_expect_eq(shk_job_get(job, 0, "k", buf, sizeof(buf), &len, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, "rank 0 published no k"), "%s", err.text);
    shk_job_destroy(job);
}

Test(job, put_is_bounded)
{
    static char big[SHK_JOB_SPACE];
    struct shk_job *job = NULL;
    unsigned stored = 0;
    char key[80];

    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    cr_assert_eq(shk_job_create(&job, 1, 0, NULL), 0);
    shk_job_join(job, 0);
    cr_expect_eq(shk_job_put(job, "k", big, sizeof(big), NULL), -ENOSPC);
    cr_expect_eq(shk_job_put(job, "k", big, SIZE_MAX, NULL), -ENOSPC);
    cr_expect_eq(shk_job_put(job, key, "x", 1, NULL), -EINVAL);
    while (stored < 1000 && shk_job_put(job, "k", big, 1000, NULL) == 0) {
        stored++;
    }
    cr_expect_eq(stored, SHK_JOB_SPACE / (1000 + 40));
    shk_job_destroy(job);
}

Test(job, rank_counts_are_checked)
{
    struct shk_job *job = NULL;
    struct shk_error err = {{0}};

    cr_expect_eq(shk_job_create(&job, 0, 0, &err), -EINVAL);
    cr_expect_eq(shk_job_create(&job, SHK_JOB_MAX_RANKS + 1, 0, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "65537 ranks"), "%s", err.text);
    cr_expect_null(job);
}

Test(job, phases_have_the_names_of_the_contract)
{
    char text[64];

    shk_job_phase_text(SHK_PHASE_ALLREDUCE, 1048576, text, sizeof(text));
    cr_expect_str_eq(text, "allreduce 1048576 B");
    shk_job_phase_text(SHK_PHASE_REGISTER, 0, text, sizeof(text));
    cr_expect_str_eq(text, "register");
}
