/* Where a test puts files. */
#ifndef SHK_TESTS_SCRATCH_H
#define SHK_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A folder of its own, its path in buf; in memory where that can be had: a thousand small files
 * take a disk longer than the test. Aborts where there is no place at all. */
static inline void scratch_make(char *buf, size_t size, const char *name)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(buf, size, "%s/shk-%s-XXXXXX", places[i], name);
        if (access(places[i], W_OK) == 0 && mkdtemp(buf) != NULL) {
            return;
        }
    }
    abort();
}

#endif
