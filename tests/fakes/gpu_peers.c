/* Pairs of stand-in GPUs that are not like the others. Lists in the environment, by the numbers
 * that the GPUs have on the bus: "0>3" from 0 to 3, "*>3" from any other to 3, "/4" between groups
 * of four.
 *
 *   SHK_FAKE_REFUSED    no peer access
 *   SHK_FAKE_UNMAPPED   the driver offers access, and cannot map
 *   SHK_FAKE_SLOW_PAIRS copies take twenty times as long
 *   SHK_FAKE_NO_COPY    copies end with an error that does not stay */
#include "tests/fakes/gpu_driver.h"

#include <stdlib.h>

/* One end of a pair; what follows it. */
static const char *end_of(const char *at, int device, int *is_p)
{
    char *next = NULL;

    if (*at == '*') {
        *is_p = 1;
        return at + 1;
    }
    *is_p = strtol(at, &next, 10) == device;
    return next;
}

int shk_fake_pair(const char *variable, int from, int to)
{
    const char *at = getenv(variable);

    while (at != NULL && *at != '\0' && from != to) {
        int is_from = 0;
        int is_to = 0;

        if (*at == '/') {
            char *next = NULL;
            long each = strtol(at + 1, &next, 10);

            is_from = is_to = each > 0 && from / each != to / each;
            at = next;
        } else {
            at = end_of(at, from, &is_from);
            at = end_of(*at == '>' ? at + 1 : at, to, &is_to);
        }
        if (is_from && is_to) {
            return 1;
        }
        at += *at != '\0';
    }
    return 0;
}
