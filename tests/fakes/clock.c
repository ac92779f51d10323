/* Preloaded: a node whose wall clock is 400 s ahead. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);
    if (rc == 0 && clock == CLOCK_REALTIME)
        ts->tv_sec += 400;
    return rc;
}
