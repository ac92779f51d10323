#include "checks/value/iface.h"
#include "checks/base/look.h"

#include <string.h>

static const char *const bridges[] = {"docker", "veth",  "virbr", "cni",    "flannel", "cali",
                                      "br-",    "lxc",   "lxd",   "podman", "tun",     "tap",
                                      "kube",   "weave", "vnet",  NULL};

bool shk_iface_is_bridge(const char *name)
{
    for (const char *const *b = bridges; *b; b++)
        if (strncmp(name, *b, strlen(*b)) == 0)
            return true;
    return false;
}

bool shk_iface_is_routable(const json_t *iface)
{
    size_t i;
    json_t *addr;
    json_array_foreach(json_object_get(iface, "addrs"), i, addr)
    {
        const char *text = NULL;
        if (shk_look_member_text(addr, "addr", &text) == SHK_LOOK_PRESENT &&
            strncmp(text, "fe80", 4) != 0 && strncmp(text, "169.254.", 8) != 0)
            return true;
    }
    return false;
}
