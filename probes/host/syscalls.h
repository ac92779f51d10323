/* System calls that communication libraries make and a filter or the kernel may refuse. */
#ifndef SHK_PROBES_SYSCALLS_H
#define SHK_PROBES_SYSCALLS_H

#include "probes/base/gather.h"

/* Writes kernel.seccomp: {mode: `none`, `strict` or `filter`, filters: how many, null before Linux
 * 5.9}, and kernel.syscalls: {get_mempolicy, mbind, process_vm_readv, userfaultfd, userfaultfd_user
 * (of faults in user space only): `ok`, `denied`, `missing` (no such call) or `kills` (the filter
 * ends who makes it)}. Each call is made, on this process alone; behind a filter in a child. Failed
 * for a capture. */
void shk_syscalls(struct shk_gather *g);

#endif
