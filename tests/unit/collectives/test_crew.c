#include "collectives/ranks/crew.h"
#include "collectives/ranks/debris.h"
#include "core/run/isolate.h"

#include "tests/fakes/starve.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

typedef int work_fn(struct shk_job *job, void *arg, struct shk_error *err);

/* Everybody meets; rank 1 does something else first. */
static int meet(struct shk_job *job)
{
    shk_job_set_phase(job, SHK_PHASE_ALLREDUCE, 4096);
    return shk_job_barrier(job, 0, NULL, NULL, NULL);
}

static int work_fine(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    printf("hello from %u\n", shk_job_rank(job));
    fflush(stdout);
    return meet(job);
}

static int work_killed(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_REGISTER, 0);
        shk_crumb_library("libvendor.so.1");
        shk_crumb_call("vendor_register");
        (void)!write(2, "last words\n", 11);
        kill(getpid(), SIGKILL);
    }
    return meet(job);
}

/* Every rank is the first that the kernel takes when memory runs out. */
static int work_offers(struct shk_job *job, void *arg, struct shk_error *err)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "re");
    int score = 0;
    int got = file != NULL ? fscanf(file, "%d", &score) : 0;

    (void)arg;
    if (file != NULL) {
        fclose(file);
    }
    if (got != 1 || score != 1000) {
        return shk_error_set(err, EINVAL, "score %d", score);
    }
    return meet(job);
}

static int work_stopped(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_VERIFY, 4096);
        kill(getpid(), SIGSTOP);
    }
    return meet(job);
}

static int work_exits(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_OPEN, 0);
        _exit(0);
    }
    return meet(job);
}

static int work_errs(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_OPEN, 0);
        return shk_error_set(err, ENODEV, "vendor_open: no such device");
    }
    return meet(job);
}

static int work_all_err(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg;
    shk_job_set_phase(job, SHK_PHASE_OPEN, 0);
    return shk_error_set(err, ENODEV, "vendor_open: no such device");
}

static int work_hangs(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_EXCHANGE, 0);
        shk_crumb_call("vendor_connect");
        for (;;) {
            pause();
        }
    }
    return meet(job);
}

/* Rank 0 notices first and says so; rank 1 is the cause. */
static int work_echo(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg;
    shk_job_set_phase(job, SHK_PHASE_ALLREDUCE, 64);
    if (shk_job_rank(job) == 1) {
        usleep(30000);
        kill(getpid(), SIGKILL);
    }
    shk_job_fail(job, ECONNRESET, true, "connection to rank 1 was reset");
    return shk_error_set(err, ECONNRESET, "connection to rank 1 was reset");
}

static int work_spins(struct shk_job *job, void *arg, struct shk_error *err)
{
    uint64_t op = 0;

    (void)arg, (void)err;
    for (;;) {
        shk_job_set_op(job, ++op);
        usleep(1000);
    }
    return 0;
}

static int work_talks(struct shk_job *job, void *arg, struct shk_error *err)
{
    int i = 0;

    (void)arg, (void)err;
    for (i = 0; i < 20000; i++) {
        dprintf(2, "line %d of rank %u\n", i, shk_job_rank(job));
    }
    return 0;
}

static void expect_nobody_left(const struct shk_crew_result *result, unsigned ranks)
{
    unsigned i = 0;

    for (i = 0; i < ranks; i++) {
        cr_expect_eq(kill(result->ranks[i].pid, 0), -1, "rank %u still exists", i);
    }
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
    cr_expect_eq(errno, ECHILD);
}

static const struct fault {
    const char *name;
    work_fn *work;
    unsigned ranks;
    unsigned deadline_ms;
    double limit_s; /* must be over by then, on a busy machine as well */
    enum shk_crew_outcome outcome;
    int rank;
    enum shk_rank_status status; /* of rank 1 */
    const char *phase;
    const char *reason[3]; /* each must be in the text */
} faults[] = {
    {"fine", work_fine, 3, 20000, 10, SHK_CREW_OK, -1, SHK_RANK_OK, "", {""}},
    {"offered to the kernel", work_offers, 2, 20000, 10, SHK_CREW_OK, -1, SHK_RANK_OK, "", {""}},
    {"killed",
     work_killed,
     3,
     20000,
     15,
     SHK_CREW_CRASHED,
     1,
     SHK_RANK_CRASHED,
     "register",
     {"rank 1 (pid", "killed by SIGKILL in phase register, in libvendor.so.1: vendor_register",
      "it wrote: last words"}},
    {"stopped, deadline first",
     work_stopped,
     3,
     600,
     15,
     SHK_CREW_TIMEOUT,
     1,
     SHK_RANK_STOPPED,
     "verify",
     {"rank 1 (pid", "stopped by SIGSTOP in phase verify (at 4096 B)", "(deadline)"}},
    {"stopped, noticed early",
     work_stopped,
     2,
     60000,
     30,
     SHK_CREW_TIMEOUT,
     1,
     SHK_RANK_STOPPED,
     "verify",
     {"rank 1", "stopped by SIGSTOP", "did not continue"}},
    {"exits by itself",
     work_exits,
     2,
     20000,
     15,
     SHK_CREW_CRASHED,
     1,
     SHK_RANK_CRASHED,
     "open",
     {"rank 1", "exited by itself with status 0 in phase open"}},
    {"reports an error",
     work_errs,
     3,
     20000,
     15,
     SHK_CREW_FAILED,
     1,
     SHK_RANK_FAILED,
     "open",
     {"rank 1, phase open: vendor_open: no such device"}},
    {"all report the same",
     work_all_err,
     3,
     20000,
     15,
     SHK_CREW_FAILED,
     -1,
     SHK_RANK_FAILED,
     "open",
     {"all ranks, phase open: vendor_open: no such device"}},
    {"hangs",
     work_hangs,
     3,
     1500,
     15,
     SHK_CREW_TIMEOUT,
     1,
     SHK_RANK_HUNG,
     "exchange",
     {"rank 1", "hangs in phase exchange, in vendor_connect", "1500 ms"}},
    {"echo before the cause",
     work_echo,
     2,
     20000,
     15,
     SHK_CREW_CRASHED,
     1,
     SHK_RANK_CRASHED,
     "allreduce 64 B",
     {"rank 1", "killed by SIGKILL in phase allreduce 64 B"}},
    {"slow, not hung",
     work_spins,
     2,
     700,
     15,
     SHK_CREW_TIMEOUT,
     -1,
     SHK_RANK_ABORTED,
     "start",
     {"not finished after 700 ms, but still moving"}},
};

static void check_fault(const struct fault *fault)
{
    struct shk_crew crew = {
        .name = "test",
        .deadline_ms = fault->deadline_ms,
        .work = fault->work,
    };
    struct shk_crew_result result;
    struct shk_error err = {{0}};
    struct shk_job *job = NULL;
    double start = now_s();
    size_t i = 0;

    cr_assert_eq(shk_job_create(&job, fault->ranks, 0, &err), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, &err), 0, "%s", err.text);
    cr_expect_lt(now_s() - start, fault->limit_s, "%s: took too long", fault->name);
    cr_expect_eq(result.outcome, fault->outcome, "%s: outcome %d: %s", fault->name, result.outcome,
                 result.reason.text);
    cr_expect_eq(result.rank, fault->rank, "%s: blames %d: %s", fault->name, result.rank,
                 result.reason.text);
    cr_expect_str_eq(result.phase, fault->phase, "%s", fault->name);
    cr_expect_eq(result.ranks[1].status, fault->status, "%s: rank 1 is %s", fault->name,
                 shk_rank_status_name(result.ranks[1].status));
    for (i = 0; i < 3 && fault->reason[i] != NULL; i++) {
        cr_expect_not_null(strstr(result.reason.text, fault->reason[i]), "%s: \"%s\" lacks \"%s\"",
                           fault->name, result.reason.text, fault->reason[i]);
    }
    expect_nobody_left(&result, fault->ranks);
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
}

Test(crew, faults_are_named, .timeout = 600)
{
    size_t i = 0;

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        check_fault(&faults[i]);
    }
}

/* Rank 1 comes no further, for others have its processor. */
static int work_starves(struct shk_job *job, void *arg, struct shk_error *err)
{
    (void)arg, (void)err;
    if (shk_job_rank(job) == 1) {
        shk_job_set_phase(job, SHK_PHASE_OPEN, 0);
        starve_become();
        starve_work(60);
    }
    return meet(job);
}

static struct shk_crew_result run_beside_others(work_fn *work)
{
    struct shk_crew crew = {.name = "test", .deadline_ms = 4000, .work = work};
    struct shk_crew_result result;
    struct shk_job *job = NULL;
    pid_t others[2];
    unsigned i = 0;

    cr_assert_eq(shk_job_create(&job, 3, 0, NULL), 0);
    for (i = 0; i < 2; i++) {
        others[i] = starve_others();
    }
    cr_assert_eq(shk_crew_run(&crew, job, &result, NULL), 0);
    for (i = 0; i < 2; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    shk_job_destroy(job);
    return result;
}

Test(crew, a_rank_that_nobody_lets_run_does_not_hang, .timeout = 100)
{
    struct shk_crew_result result = run_beside_others(work_starves);

    cr_expect_eq(result.outcome, SHK_CREW_STARVED, "%s", result.reason.text);
    cr_expect_eq(result.rank, -1, "%s", result.reason.text);
    cr_expect_null(result.cause);
    cr_expect_not_null(strstr(result.reason.text, "the node was too busy: in phase open rank 1"),
                       "%s", result.reason.text);
    shk_crew_result_clear(&result);
}

Test(crew, one_that_sleeps_hangs_although_others_are_busy, .timeout = 100)
{
    struct shk_crew_result result = run_beside_others(work_hangs);

    cr_expect_eq(result.outcome, SHK_CREW_TIMEOUT, "%s", result.reason.text);
    cr_expect_eq(result.rank, 1, "%s", result.reason.text);
    shk_crew_result_clear(&result);
}

static void note_progress(const char *text, void *arg)
{
    char *all = arg;

    strncat(all, text, 1000 - strlen(all));
    strncat(all, "\n", 1000 - strlen(all));
}

Test(crew, output_is_captured_and_progress_tells_pids, .timeout = 300)
{
    char told[1024] = "";
    char want[64];
    struct shk_crew crew = {
        .name = "test",
        .work = work_fine,
        .progress = note_progress,
        .progress_arg = told,
    };
    struct shk_crew_result result;
    struct shk_job *job = NULL;

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, NULL), 0);
    cr_expect_str_eq(result.ranks[0].output, "hello from 0\n");
    cr_expect_str_eq(result.ranks[1].output, "hello from 1\n");
    snprintf(want, sizeof(want), "test: rank 1 pid %d\n", (int)result.ranks[1].pid);
    cr_expect_not_null(strstr(told, want), "%s", told);
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
}

Test(crew, a_talkative_rank_neither_blocks_nor_overflows, .timeout = 300)
{
    struct shk_crew crew = {.name = "test", .work = work_talks, .deadline_ms = 30000};
    struct shk_crew_result result;
    struct shk_job *job = NULL;

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    cr_assert_eq(shk_crew_run(&crew, job, &result, NULL), 0);
    cr_expect_eq(result.outcome, SHK_CREW_OK, "%s", result.reason.text);
    cr_expect_lt(strlen(result.ranks[0].output), SHK_CREW_OUTPUT);
    cr_expect_not_null(strstr(result.ranks[0].output, "line 19999 of rank 0\n"));
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
}

static void touch(const char *dir, const char *name)
{
    char path[256];
    int fd = 0;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    cr_assert_geq(fd, 0, "%s", path);
    close(fd);
}

static bool there(const char *dir, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

Test(debris, only_new_files_of_the_dead_are_removed)
{
    char dir[] = "/tmp/shk-debris-XXXXXX";
    pid_t pids[] = {4242, 0, 77};
    struct shk_debris *debris = NULL;
    const char *keep[] = {"4242:0", "142424:0", "4243", "other"};
    char path[256];
    size_t i = 0;

    cr_assert_not_null(mkdtemp(dir));
    touch(dir, "4242:0"); /* was there before the job */
    debris = shk_debris_create(dir);
    cr_assert_not_null(debris);
    touch(dir, "4242:0:1");
    touch(dir, "seg.77");
    touch(dir, "142424:0");
    touch(dir, "4243");
    touch(dir, "other");
    snprintf(path, sizeof(path), "%s/link-4242", dir);
    cr_assert_eq(symlink("other", path), 0);
    cr_expect_eq(shk_debris_sweep(debris, pids, 3), 2);
    cr_expect_not(there(dir, "4242:0:1"));
    cr_expect_not(there(dir, "seg.77"));
    cr_expect(there(dir, "link-4242"));
    for (i = 0; i < 4; i++) {
        cr_expect(there(dir, keep[i]), "%s was removed", keep[i]);
        snprintf(path, sizeof(path), "%s/%s", dir, keep[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/link-4242", dir);
    unlink(path);
    cr_expect_eq(rmdir(dir), 0);
    shk_debris_destroy(debris);
}

Test(debris, a_missing_directory_does_nothing)
{
    pid_t pid = 1;

    cr_expect_null(shk_debris_create("/nonexistent/shm"));
    shk_debris_note(NULL, 1);
    cr_expect_eq(shk_debris_sweep(NULL, &pid, 1), 0);
    shk_debris_destroy(NULL);
}
