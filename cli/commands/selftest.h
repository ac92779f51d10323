/* The parts of `shakedown selftest`, each a list of faults made on purpose. */
#ifndef SHK_CLI_SELFTEST_H
#define SHK_CLI_SELFTEST_H

#include "core/text/error.h"

#include <stdbool.h>
#include <stdio.h>

struct shk_selftest_report {
    FILE *out;
    bool verbose;
    const char *area;
    unsigned cases, found; /* of the area */
    unsigned missed;       /* of all */
};

/* One fault: was it found? `problem` (may be NULL) is printed when it was not. */
void shk_selftest_count(struct shk_selftest_report *report, const char *name, const char *what,
                        bool found, const char *problem);

/* A child that crashes, aborts, exits, hangs or eats memory ends as such, in time. */
void shk_selftest_isolation(struct shk_selftest_report *report);

/* A FIFO, a dangling link, a loop, a folder and a huge file in place of a file give an error. */
void shk_selftest_files(struct shk_selftest_report *report);

/* Ranks that give wrong elements, write out of bounds, die, stop or hang are named. */
void shk_selftest_ranks(struct shk_selftest_report *report);

/* A full disk under the report is told. */
void shk_selftest_output(struct shk_selftest_report *report);

#endif
