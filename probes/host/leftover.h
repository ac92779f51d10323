/* Shared memory that ended programs left behind. */
#ifndef SHK_PROBES_LEFTOVER_H
#define SHK_PROBES_LEFTOVER_H

#include "probes/base/gather.h"

#include <sys/stat.h>

/* Writes shm.leftover: {files: how many were judged, left: [{kind: `file` or `segment` (of System
 * V), uid, count, bytes: of memory, since, last: when the oldest and the newest were last written,
 * name: an example}], unread: count}. A live host only: failed for a capture.
 *
 * A file is left over when no process of this kernel has it open or mapped (the kernel grants a
 * write lease on no other, fcntl(2) F_SETLEASE) and either a communication library made it, which
 * keeps what it uses mapped, or its owner runs nothing here; a segment when nothing is attached and
 * neither who made it nor who used it last runs. What was written within the last minute is in use.
 *
 * names: what /dev/shm holds, ending in NULL; NULL: it is listed here. */
void shk_leftover(struct shk_gather *g, char *const *names);

enum shk_segment { SHK_SEGMENT_NONE, SHK_SEGMENT_USED, SHK_SEGMENT_UNKNOWN, SHK_SEGMENT_LEFT };

/* What a line of /proc/sysvipc/shm tells of a segment at `now` (seconds): its owner, memory and
 * last use in *st, its number in *id_p. NONE: it is of another form. `runs` says whether a process
 * with that number does. */
enum shk_segment shk_segment_of(const char *line, long long now, bool (*runs)(long pid, void *arg),
                                void *arg, struct stat *st, long *id_p);

#endif
