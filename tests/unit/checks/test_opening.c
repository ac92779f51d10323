/* Device nodes of which a container has some, devices that open for some, and a /dev/shm that this
 * user may not write to. */
#include "support.h"

#include <criterion/criterion.h>

#define HERE     "'pci.count.mlx5': 2, 'dev.infiniband/uverbs0': {'rw': true}"
#define DOCKER   "'host.container': 'docker', "
#define BARE     "'host.container': 'none', "
#define GONE     ", 'dev.infiniband/uverbs1': {'state': 'absent'}"
#define UNREAD   ", 'dev.infiniband/uverbs1': {'state': 'failed', 'reason': 'no way'}"
#define CLOSED   "'pci.count.mlx5': 1, 'dev.infiniband/uverbs0': {'mode': '0600', 'rw': false}"
#define OPEN     "{'name': 'mlx5_0', 'opens': true}"
#define NOT(why) "{'name': 'mlx5_1', 'opens': false" why "}"
#define NODES(name, facts, verdict, says)                                                          \
    {                                                                                              \
        name, "generic-ib", "devices.access", "/dev/infiniband/uverbs", facts, verdict,            \
            SHK_EFFECT, says                                                                       \
    }
#define OPENS(name, facts, verdict, says)                                                          \
    {                                                                                              \
        name, "single-node", "nic.opens", "opening RDMA devices", facts, verdict, SHK_TESTED, says \
    }

static const struct support_case cases[] = {
    NODES("all in a container", DOCKER HERE ", 'dev.infiniband/uverbs1': {'rw': true}", SHK_PASS,
          NULL),
    NODES("some in a container", DOCKER HERE GONE, SHK_WARN, "rdma-device-partially-exposed"),
    NODES("some, and no container", BARE HERE GONE, SHK_PASS, NULL),
    {"one unread in a container", "generic-ib", "devices.access", "/dev/infiniband/uverbs",
     DOCKER HERE UNREAD, SHK_UNKNOWN, SHK_NOT_COVERED, "uverbs1"},
    NODES("closed on a node", BARE CLOSED, SHK_FAIL, "rdma-device-no-permission"),
    NODES("closed in a container", DOCKER CLOSED, SHK_FAIL, "rdma-device-not-in-container"),
    OPENS("all open", "'verbs.devices': [" OPEN "]", SHK_PASS, "1 open"),
    OPENS("denied by its words", "'verbs.devices': [" NOT(", 'error': 'Permission denied'") "]",
          SHK_WARN, "rdma-device-no-permission"),
    OPENS("denied by its number", "'verbs.devices': [" NOT(", 'errno': 13") "]", SHK_WARN,
          "rdma-device-no-permission"),
    OPENS("one denied in a container",
          DOCKER "'verbs.devices': [" OPEN ", " NOT(", 'errno': 1") "]", SHK_WARN,
          "rdma-device-partially-exposed"),
    OPENS("another error", "'verbs.devices': [" NOT(", 'error': 'No such device'") "]", SHK_WARN,
          "nic-driver-failed"),
    {"not told whether it opens", "single-node", "nic.opens", "opening RDMA devices",
     "'verbs.devices': [{'name': 'mlx5_0'}]", SHK_UNKNOWN, SHK_NOT_COVERED, "mlx5_0"},
    {"closed, and its size not read", "single-node", "shm.size", "/dev/shm",
     "'dev.shm': {'mode': '0755', 'rw': false}", SHK_WARN, SHK_EFFECT, "shm-permission"},
    {"open, and its size not read", "single-node", "shm.size", "/dev/shm",
     "'dev.shm': {'mode': '1777', 'rw': true}", SHK_UNKNOWN, SHK_NOT_COVERED, "shm.size"},
};

Test(opening, cases)
{
    support_cases(cases, sizeof cases / sizeof *cases);
}
