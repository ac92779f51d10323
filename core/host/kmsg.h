/* The kernel's log, record by record (Documentation/ABI/testing/dev-kmsg). */
#ifndef SHK_CORE_KMSG_H
#define SHK_CORE_KMSG_H

#include "core/host/host.h"

struct shk_kmsg {
    long long seq;    /* counts up since boot, without gaps but for what was overwritten */
    long long usec;   /* since boot */
    const char *text; /* one line without its end; borrowed until the callback returns */
};

/* Calls `each` for every record of /dev/kmsg that is still kept, oldest first; a regular file of
 * the same form in a capture. Never waits for more. -ENOENT: there is no such device; -EPERM or
 * -EACCES: the administrator keeps it for root (kernel.dmesg_restrict). A negative return of
 * `each` ends it and is returned. */
int shk_host_kmsg(const struct shk_host *host,
                  int (*each)(const struct shk_kmsg *record, void *arg), void *arg,
                  struct shk_error *err) SHK_MUST_CHECK;

#endif
