/* Debris: shared memory files that a killed rank's libraries leave in /dev/shm.
 *
 * Libraries unlink their segments when they are closed, which a rank that was killed never does. A
 * file is removed only if it appeared after the job started, belongs to this user, and either was
 * mapped by a rank or bears a rank's process id in its name. */
#ifndef SHK_COLLECTIVES_DEBRIS_H
#define SHK_COLLECTIVES_DEBRIS_H

#include <stddef.h>
#include <sys/types.h>

struct shk_debris;

/* Remembers what is in `dir` now ("/dev/shm"). NULL when out of memory or the directory cannot be
 * read: the functions below then do nothing. */
struct shk_debris *shk_debris_create(const char *dir);
void shk_debris_destroy(struct shk_debris *debris);

/* Notes which new files a process that is about to be killed has mapped. */
void shk_debris_note(struct shk_debris *debris, pid_t pid);

/* Removes the leftovers of these dead processes; returns how many files. */
size_t shk_debris_sweep(struct shk_debris *debris, const pid_t *pids, size_t count);

#endif
