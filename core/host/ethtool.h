/* Statistics of a network interface as its driver names them (ethtool -S), without privileges. */
#ifndef SHK_CORE_ETHTOOL_H
#define SHK_CORE_ETHTOOL_H

#include "core/text/error.h"

/* Calls `each` for every counter of the interface, in this network namespace. -EOPNOTSUPP: its
 * driver has none; -ENODEV: no such interface. */
int shk_ethtool_stats(const char *iface,
                      void (*each)(const char *name, unsigned long long value, void *arg),
                      void *arg, struct shk_error *err) SHK_MUST_CHECK;

#endif
