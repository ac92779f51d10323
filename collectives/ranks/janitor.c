#include "collectives/ranks/janitor.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* SIGKILL takes effect at the next return to user mode; files are removed by name, so it does not
 * matter if a rank takes longer. */
#define JANITOR_WAIT_MS 50

static void janitor_work(const struct shk_job *job, struct shk_debris *debris, int fd)
    __attribute__((noreturn));
static void janitor_work(const struct shk_job *job, struct shk_debris *debris, int fd)
{
    struct timespec nap = {.tv_nsec = JANITOR_WAIT_MS * 1000000L};
    pid_t *pids = calloc(job->ranks, sizeof *pids);
    ssize_t got = 0;
    char c = 0;

    setpgid(0, 0);
    for (int sig = 1; sig < NSIG; sig++) {
        signal(sig, SIG_IGN); /* it ends with the supervisor, not by a signal to the terminal */
    }
    do {
        got = read(fd, &c, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 0 && pids) {
        for (unsigned i = 0; i < job->ranks; i++) {
            pids[i] = atomic_load(&job->slots[i].pid);
            if (pids[i] > 0)
                (void)kill(-pids[i], SIGKILL);
        }
        nanosleep(&nap, NULL);
        (void)shk_debris_sweep(debris, pids, job->ranks);
    }
    _exit(0);
}

void shk_janitor_start(struct shk_janitor *janitor, const struct shk_job *job,
                       struct shk_debris *debris)
{
    int fds[2];

    janitor->pid = 0;
    janitor->fd = -1;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return;
    janitor->pid = fork();
    if (janitor->pid == 0) {
        close(fds[1]);
        janitor_work(job, debris, fds[0]);
    }
    close(fds[0]);
    if (janitor->pid < 0) {
        close(fds[1]);
        janitor->pid = 0;
        return;
    }
    janitor->fd = fds[1];
}

void shk_janitor_forget(const struct shk_janitor *janitor)
{
    if (janitor->fd >= 0)
        close(janitor->fd);
}

void shk_janitor_dismiss(struct shk_janitor *janitor)
{
    if (janitor->pid <= 0)
        return;
    (void)!write(janitor->fd, "q", 1);
    close(janitor->fd);
    while (waitpid(janitor->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    janitor->pid = 0;
    janitor->fd = -1;
}
