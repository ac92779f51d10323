/* Giving up what a process may do, before it looks at what strangers wrote. */
#ifndef SHK_CORE_DROP_H
#define SHK_CORE_DROP_H

#include "core/text/error.h"

/* For a child of core/run/isolate.h that has opened all that it needs: as root it becomes the
 * overflow user (65534, as the kernel has it for ids that a namespace does not map), and whoever
 * it was, it opens no further file, starts no process, writes no file, gains no right by running a
 * program and ends after `seconds` of processor time. It still dies with its parent. 0 or a
 * negative errno; then it must not go on. */
int shk_drop_rights(unsigned seconds, struct shk_error *err) SHK_MUST_CHECK;

/* For a child of core/run/isolate.h: it no longer administers the system (CAP_SYS_ADMIN), and as
 * root still reads what root reads. The kernel then gives the standard header of a PCI device's
 * configuration space, as to every user, and not all of it, each word of which costs a virtual
 * machine a trap. Without an effect for who has not that right. */
void shk_drop_admin(void);

#endif
