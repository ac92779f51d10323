#include "collectives/meet/link.h"
#include "collectives/meet/pmix.h"
#include "collectives/ranks/job_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(link, .timeout = 100);

static void pair(struct shk_link *a, struct shk_link *b)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    shk_link_open(a, fds[0]);
    shk_link_open(b, fds[1]);
}

/* More than the socket holds: the rest waits, and arrives whole. */
Test(link, large_frames)
{
    static char big[3 << 20];
    struct shk_link a, b;
    struct shk_frame frame;
    bool got = false;

    pair(&a, &b);
    memset(big, 'x', sizeof(big));
    cr_assert_eq(shk_link_send(&a, SHK_FRAME_PUT, big, sizeof(big)), 0);
    cr_assert_gt(a.out.len, 0);
    cr_assert_eq(shk_link_send(&a, SHK_FRAME_STOP, NULL, 0), 0);
    while (!got) {
        cr_assert_eq(shk_link_fill(&b), 0);
        cr_assert_eq(shk_link_flush(&a), 0);
        got = shk_link_next(&b, &frame);
    }
    cr_assert_eq(frame.type, SHK_FRAME_PUT);
    cr_assert_eq(frame.len, sizeof(big));
    cr_assert_eq(memcmp(frame.data, big, sizeof(big)), 0);
    while (!shk_link_next(&b, &frame)) {
        cr_assert_eq(shk_link_flush(&a), 0);
        cr_assert_eq(shk_link_fill(&b), 0);
    }
    cr_assert_eq(frame.type, SHK_FRAME_STOP);
    cr_assert_eq(frame.len, 0);
    shk_link_close(&a);
    shk_link_close(&b);
}

/* What was sent before the end still arrives; a frame above the limit ends the link. */
Test(link, ends)
{
    struct shk_link a, b;
    struct shk_frame frame;

    pair(&a, &b);
    cr_assert_eq(shk_link_send(&a, SHK_FRAME_HELLO, "hi", 2), 0);
    shk_link_close(&a);
    (void)shk_link_fill(&b);
    cr_assert(shk_link_next(&b, &frame));
    cr_assert_eq(frame.len, 2);
    cr_assert_eq(shk_link_fill(&b), -EPIPE);
    cr_assert_eq(shk_link_send(&b, SHK_FRAME_HELLO, "hi", 2), -EPIPE);
    shk_link_close(&b);

    pair(&a, &b);
    b.limit = 8;
    cr_assert_eq(shk_link_send(&a, SHK_FRAME_HELLO, "longer than 8", 13), 0);
    cr_assert_eq(shk_link_fill(&b), 0);
    cr_assert_not(shk_link_next(&b, &frame));
    cr_assert_eq(b.fd, -1);
    shk_link_close(&a);
    shk_link_close(&b);
}

/* A barrier with ranks elsewhere: the supervisor is woken, and its release carries the maximum. */
Test(link, barrier_of_a_remote_job)
{
    struct shk_job *job = NULL;
    uint64_t woken = 0;
    uint64_t max = 0;

    cr_assert_eq(shk_job_create(&job, 3, 0, NULL), 0);
    cr_assert_eq(shk_job_make_remote(job, 1, NULL), 0);
    shk_job_join(job, 1);
    shk_job_release(job, 1, 1, 42); /* the others were faster */
    cr_assert_eq(shk_job_barrier(job, 7, &max, NULL, NULL), 0);
    cr_assert_eq(max, 42);
    cr_assert_eq(read(job->wake_fd, &woken, sizeof(woken)), (ssize_t)sizeof(woken));
    cr_assert_eq(woken, 1);
    shk_job_destroy(job);
}

static int never_moves(void *polls)
{
    ++*(unsigned *)polls;
    return 0;
}

/* The supervisor may share the rank's only CPU: a rank that waits leaves it alone, yet goes on at
 * once when the others are there, and moves data along meanwhile. */
static void wait_for_release(unsigned pause_ms, bool progress)
{
    struct shk_job *job = NULL;
    struct rusage used;
    unsigned polls = 0;
    uint64_t max = 0;
    int status = 0;
    pid_t pid = -1;

    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    cr_assert_eq(shk_job_make_remote(job, 1, NULL), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        shk_job_join(job, 1);
        status = shk_job_barrier(job, 7, &max, progress ? never_moves : NULL, &polls);
        _exit(status == 0 && max == 42 && (!progress || polls > 100) ? 0 : 1);
    }
    usleep(pause_ms * 1000);
    shk_job_release(job, 1, 1, 42);
    cr_assert_eq(wait4(pid, &status, 0, &used), pid);
    cr_assert_eq(status, 0);
    cr_assert_lt(used.ru_utime.tv_sec * 1000000L + used.ru_utime.tv_usec +
                     used.ru_stime.tv_sec * 1000000L + used.ru_stime.tv_usec,
                 (long)pause_ms * 500);
    shk_job_destroy(job);
}

Test(link, waiting_leaves_the_cpu_to_the_supervisor)
{
    wait_for_release(400, false);
    wait_for_release(400, true);
}

/* A launcher that offers PMIx on a node without the library. */
Test(link, pmix_without_a_library)
{
    static const char *const names[] = {"libpmix-is-not-here.so.2", NULL};
    struct shk_pmix pmix;
    unsigned rank = 0;

    unsetenv("PMIX_NAMESPACE");
    cr_assert_not(shk_pmix_offered(&rank));
    setenv("PMIX_NAMESPACE", "job", 1);
    setenv("PMIX_RANK", "x", 1);
    cr_assert_not(shk_pmix_offered(&rank));
    setenv("PMIX_RANK", "3", 1);
    cr_assert(shk_pmix_offered(&rank));
    cr_assert_eq(rank, 3);
    shk_pmix_join(&pmix, NULL, 1000, names);
    cr_assert_eq(pmix.status, SHK_PMIX_FAILED);
    cr_assert_neq(pmix.reason.text[0], '\0');
    shk_pmix_clear(&pmix);
}
