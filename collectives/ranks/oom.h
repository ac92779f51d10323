/* A rank has no memory limit of its own: what GPU and network libraries map is no measure of what
 * they use. The kernel watches instead, and takes a rank before anything else of the node. */
#ifndef SHK_COLLECTIVES_OOM_H
#define SHK_COLLECTIVES_OOM_H

#include <stdint.h>

/* Makes this process the first to be killed when memory runs out. */
void shk_oom_offer(void);

/* How many processes the kernel has killed for memory since it started; UINT64_MAX: unknown. */
uint64_t shk_oom_kills(void);

#endif
