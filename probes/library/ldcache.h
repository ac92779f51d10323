/* /etc/ld.so.cache, the index that ldconfig writes. */
#ifndef SHK_PROBES_LDCACHE_H
#define SHK_PROBES_LDCACHE_H

#include "core/host/host.h"

struct shk_ldcache;

/* -ENOENT: no cache; -EPROTO: not in the glibc 1.1 format, or damaged. */
int shk_ldcache_read(struct shk_ldcache **cache_p, const struct shk_host *host, const char *path,
                     struct shk_error *err) SHK_MUST_CHECK;
void shk_ldcache_destroy(struct shk_ldcache *cache);

/* Calls fn with the path of each entry of exactly that name, in file order, until it returns
 * non-zero (which is returned). Entries for special CPUs (hwcaps) are left out. cache may be
 * NULL. */
int shk_ldcache_each(const struct shk_ldcache *cache, const char *name,
                     int (*fn)(const char *path, void *arg), void *arg);

#endif
