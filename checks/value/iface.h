/* Network interfaces by what their names and addresses tell. */
#ifndef SHK_CHECKS_IFACE_H
#define SHK_CHECKS_IFACE_H

#include <jansson.h>
#include <stdbool.h>

/* Container and VM bridges, tunnels: interfaces that no other node can reach. */
bool shk_iface_is_bridge(const char *name);

/* Does one address of the interface serve other nodes (not link-local)? */
bool shk_iface_is_routable(const json_t *iface);

#endif
