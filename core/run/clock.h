/* The clock that nobody sets. */
#ifndef SHK_CORE_CLOCK_H
#define SHK_CORE_CLOCK_H

/* Seconds since any zero (CLOCK_MONOTONIC). */
double shk_clock_s(void);

#endif
