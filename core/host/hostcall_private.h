/* Live answers that need a file of their own. */
#ifndef SHK_CORE_HOSTCALL_PRIVATE_H
#define SHK_CORE_HOSTCALL_PRIVATE_H

#include <jansson.h>

int shk_hostcall_ifaddrs(json_t **value_p);
/* {NAME: link as in SHK_CALL_IFADDRS}; a negative errno: incomplete. A new reference either way. */
int shk_netlink_links(json_t **value_p);
int shk_hostcall_resolve(json_t **value_p);

#endif
