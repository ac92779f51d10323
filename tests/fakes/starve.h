/* A process that gets hardly any processor time, without privileges and whatever else the machine
 * does: of the lowest class, on one processor that others of the usual class keep busy. */
#ifndef SHK_FAKES_STARVE_H
#define SHK_FAKES_STARVE_H

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* On the first processor that this process may use; children stay there. */
static inline void starve_pin(void)
{
    cpu_set_t may, one;
    CPU_ZERO(&one);
    CPU_ZERO(&may);
    sched_getaffinity(0, sizeof may, &may);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &may)) {
            CPU_SET(i, &one);
            break;
        }
    }
    sched_setaffinity(0, sizeof one, &one);
}

/* SCHED_IDLE: a weight of 3, where others have 1024 (sched(7), kernel/sched/core.c). */
static inline void starve_become(void)
{
    struct sched_param none = {.sched_priority = 0};
    starve_pin();
    sched_setscheduler(0, SCHED_IDLE, &none);
}

/* As root: it runs, whatever else does. */
static inline void starve_never(void)
{
    struct sched_param least = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_RR, &least);
}

static inline void starve_work(double cpu_seconds)
{
    struct timespec t;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < cpu_seconds);
}

/* What keeps the processor busy; ends with the caller or by a signal. */
static inline pid_t starve_others(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        starve_pin();
        for (;;)
            ;
    }
    return pid;
}

#endif
