/* Several jobs in the same processes: what each of them comes to, and whose fault it is. */
#include "collectives/ranks/crew.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTS 3U

enum fault { NONE, ERROR, KILLED, HANGS, HANGS_LATE };

static struct parts {
    struct shk_job *job[PARTS];
    enum fault fault;
    unsigned at;     /* part in which rank 1 does it */
    unsigned enough; /* no further part after this one */
    unsigned ended;
    char output[PARTS][64];
    pid_t pid[PARTS];
    char told[2048];
    struct shk_crew_result result;
    unsigned done;
} the;

static void misbehave(struct shk_job *job)
{
    if (the.fault == KILLED) {
        kill(getpid(), SIGKILL);
    }
    while (the.fault == HANGS || the.fault == HANGS_LATE) {
        shk_job_set_phase(job, the.fault == HANGS ? SHK_PHASE_ALLREDUCE : SHK_PHASE_TEARDOWN, 64);
        pause();
    }
}

static int work(struct shk_job *job, void *arg, struct shk_error *err)
{
    unsigned part = 0;
    bool bad = false;
    int rc = 0;

    (void)arg;
    while (the.job[part] != job) {
        part++;
    }
    bad = part == the.at && shk_job_rank(job) == 1 && the.fault != NONE;
    shk_job_set_phase(job, SHK_PHASE_ALLREDUCE, 64);
    printf("part %u", part);
    fflush(stdout);
    ((unsigned *)shk_job_result(job, shk_job_rank(job)))[0] = part + 1;
    if (bad && the.fault == ERROR) {
        return shk_error_set(err, ENODEV, "vendor_call: no such device");
    }
    if (bad && the.fault != HANGS_LATE) {
        misbehave(job);
    }
    rc = shk_job_fence(job, 0, err);
    if (bad && the.fault == HANGS_LATE) {
        misbehave(job);
    }
    return rc;
}

static bool ended(unsigned part, const struct shk_crew_result *result, void *arg)
{
    (void)arg;
    cr_expect_eq(part, the.ended, "in order");
    the.ended++;
    the.pid[part] = result->ranks[1].pid;
    snprintf(the.output[part], sizeof(the.output[part]), "%.60s", result->ranks[1].output);
    cr_expect_eq(result->ranks[0].status, SHK_RANK_OK);
    cr_expect_str_eq(result->ranks[1].phase, "done");
    cr_expect_eq(((unsigned *)shk_job_result(the.job[part], 1))[0], part + 1);
    return part != the.enough;
}

static void tell(const char *text, void *arg)
{
    size_t len = strlen(the.told);

    (void)arg;
    snprintf(the.told + len, sizeof(the.told) - len, "%s\n", text);
}

static void run(enum fault fault, unsigned at)
{
    static const char *const names[PARTS] = {"one", "two", "three"};
    struct shk_crew crew = {.deadline_ms = 3000, .work = work, .progress = tell};
    struct shk_crew_parts parts = {.jobs = the.job, .names = names, .count = PARTS, .ended = ended};
    struct shk_error err = {{0}};
    unsigned i = 0;

    the.fault = fault;
    the.at = at;
    for (i = 0; i < PARTS; i++) {
        cr_assert_eq(shk_job_create(&the.job[i], 2, 64, &err), 0, "%s", err.text);
    }
    cr_assert_eq(shk_crew_run_parts(&crew, &parts, &the.result, &the.done, &err), 0, "%s",
                 err.text);
    for (i = 0; i < PARTS; i++) {
        shk_job_destroy(the.job[i]);
    }
}

static void expect(unsigned done, enum shk_crew_outcome outcome, int rank, const char *reason)
{
    cr_expect_eq(the.done, done, "%u: %s", the.done, the.result.reason.text);
    cr_expect_eq(the.ended, done);
    cr_expect_eq(the.result.outcome, outcome, "%s", the.result.reason.text);
    cr_expect_eq(the.result.rank, rank, "%s", the.result.reason.text);
    cr_expect_not_null(strstr(the.result.reason.text, reason), "%s", the.result.reason.text);
    shk_crew_result_clear(&the.result);
}

Test(parts, all_in_the_same_processes, .timeout = 60)
{
    the.enough = PARTS;
    run(NONE, 0);
    expect(PARTS, SHK_CREW_OK, -1, "");
    cr_expect_eq(the.pid[0], the.pid[1]);
    cr_expect_eq(the.pid[0], the.pid[2]);
    cr_expect_str_eq(the.output[0], "part 0", "each has its own words: %s", the.output[0]);
    cr_expect_str_eq(the.output[1], "part 1");
    cr_expect_str_eq(the.output[2], "part 2");
    cr_expect_not_null(strstr(the.told, "one: rank 1 pid"), "%s", the.told);
    cr_expect_not_null(strstr(the.told, "three: done"), "%s", the.told);
}

Test(parts, no_more_than_wanted, .timeout = 60)
{
    the.enough = 1;
    run(NONE, 0);
    cr_expect_eq(the.done, 2);
    cr_expect_eq(the.ended, 2);
    shk_crew_result_clear(&the.result);
}

Test(parts, an_error_ends_the_part_it_is_in, .timeout = 60)
{
    the.enough = PARTS;
    run(ERROR, 0);
    expect(0, SHK_CREW_FAILED, 1, "vendor_call: no such device");
    the.ended = 0;
    run(ERROR, 2);
    expect(2, SHK_CREW_FAILED, 1, "vendor_call: no such device");
}

Test(parts, so_does_a_death, .timeout = 60)
{
    the.enough = PARTS;
    run(KILLED, 0);
    expect(0, SHK_CREW_CRASHED, 1, "was killed by SIGKILL in phase allreduce 64 B");
    the.ended = 0;
    run(KILLED, 1);
    expect(1, SHK_CREW_CRASHED, 1, "was killed by SIGKILL in phase allreduce 64 B");
}

/* Each part has the whole deadline. */
Test(parts, and_a_hang, .timeout = 60)
{
    the.enough = PARTS;
    run(HANGS, 1);
    expect(1, SHK_CREW_TIMEOUT, 1, "hangs in phase allreduce 64 B; gave up after 3000 ms");
}

/* The others have ended the part, and wait to be let on. */
Test(parts, a_hang_behind_the_last_fence_is_of_its_rank, .timeout = 60)
{
    the.enough = PARTS;
    run(HANGS_LATE, 0);
    expect(0, SHK_CREW_TIMEOUT, 1, "hangs in phase teardown");
}
