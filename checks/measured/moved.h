/* What counters that moved during a collective mean: the rules, apart from the rows. */
#ifndef SHK_CHECKS_MOVED_H
#define SHK_CHECKS_MOVED_H

#include <stdbool.h>

#include "checks/base/read.h"

/* One counter of one device that moved, as collective.<t>.moved has it. */
struct shk_moved_item {
    const char *scope, *class, *counter, *kind;
    long long by;
    double seconds;   /* between the two readings */
    long long cycles; /* of the device's firmware meanwhile; 0 not known */
};

struct shk_moved_word {
    enum shk_verdict verdict; /* SHK_PASS: as it should be, nothing to tell */
    const char *diagnosis;    /* NULL: none is known */
    const char *why, *fix;    /* of WARN and FAIL */
};

/* config: for the numbers that a driver logs (config/codes). */
struct shk_moved_word shk_moved_judge(const struct shk_config *config,
                                      const struct shk_moved_item *item);

/* A line of the kernel's log, not a counter. */
bool shk_moved_is_event(const struct shk_moved_item *item);

/* "+12", or "for 1.5 s" of a time; a new string. */
char *shk_moved_by(const struct shk_moved_item *item);

#endif
