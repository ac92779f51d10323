/* May this process lock as much memory as registering buffers with a NIC takes? One rule, for the
 * limit's own row and for the chain of a provider. */
#ifndef SHK_CHECKS_LIMITS_H
#define SHK_CHECKS_LIMITS_H

#include "checks/base/row.h"

/* NCCL registers 4 MiB (NCCL_BUFFSIZE) for each of some 16 channels. The defaults of distributions,
 * 64 KiB and 8 MiB (since Linux 5.16), fail at the first. */
#define SHK_MEMLOCK_LEAST (64LL << 20)

enum shk_memlock {
    SHK_MEMLOCK_UNLIMITED,
    SHK_MEMLOCK_EXEMPT, /* finite, and does not bind this process */
    SHK_MEMLOCK_ENOUGH, /* at least SHK_MEMLOCK_LEAST: enough to start with */
    SHK_MEMLOCK_UNTOLD, /* too low, but root may be exempt: that was not read */
    SHK_MEMLOCK_LOW,
};

/* soft: bytes, -1 for unlimited. Only ib_core lets CAP_IPC_LOCK exceed the limit (ib_umem_get() in
 * drivers/infiniband/core/umem.c asks capable(), so in the initial user namespace only: root in a
 * rootless container is bound, and so is root without that capability, as in Docker by default).
 * ib_core: does the memory get registered through it (efa, verbs; not cxi)? */
enum shk_memlock shk_memlock_judge(const struct shk_facts *facts, long long soft, bool ib_core);

#endif
