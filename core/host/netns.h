/* A /sys that was mounted in another network namespace shows the interfaces of that one: in
 * containers with the host's /sys, after nsenter --net, on hosts that a test made. */
#ifndef SHK_CORE_NETNS_H
#define SHK_CORE_NETNS_H

#include "core/host/host.h"
#include <jansson.h>

#define SHK_NETNS_FOREIGN "/sys shows another network namespace than the one of this process"

/* Does /sys/class/net show other interfaces than the kernel tells this process? `answers` is
 * SHK_CALL_IFADDRS's, `names` the list of /sys/class/net. False when it cannot be told (captures
 * without link, no such folder). */
bool shk_netns_differs(const struct shk_host *host, const json_t *answers, char *const *names);

/* The same, asking for both. */
bool shk_netns_foreign(const struct shk_host *host);

#endif
