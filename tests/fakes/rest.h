/* Waiting for other processes where they may need this processor. */
#ifndef SHK_TESTS_FAKES_REST_H
#define SHK_TESTS_FAKES_REST_H

#include <sched.h>
#include <time.h>

/* Once around a loop that waits; *turns counts them, from 0. */
static void rest(unsigned *turns)
{
    static const struct timespec nap = {.tv_nsec = 50000};

    if (++*turns < 100) {
        sched_yield();
    } else {
        nanosleep(&nap, 0);
    }
}

#endif
