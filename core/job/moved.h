/* Counters of a node before and after a measurement: what moved. probes/counters/counters.h has the
 * form of a reading, and what the counters mean. */
#ifndef SHK_CORE_MOVED_H
#define SHK_CORE_MOVED_H

#include <jansson.h>
#include <stdbool.h>

/* What came in between two readings: {seconds, classes: {scope: class}, read: [scope], moved:
 * [{scope, class, counter, kind, by, line?}], unread: [{scope, why}]}. A scope that was read only
 * once, or whose counter went back (the device was reset), is unread. Lines of the kernel's log
 * count as counters of the device that they name. NULL: out of memory. */
json_t *shk_moved(const json_t *before, const json_t *after);

/* The part of it about devices of the network, or about all others: {seconds, read, moved, unread};
 * NULL: out of memory. */
json_t *shk_moved_part(const json_t *moved, bool network);

/* Is there nothing to tell: nothing moved (but for TCP's own counters), all was read? */
bool shk_moved_quiet(const json_t *part);

#endif
