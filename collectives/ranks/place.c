#include "collectives/ranks/place.h"
#include "core/host/netns.h"
#include "core/text/cpulist.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True when another hardware thread of the same core comes first in the allowed set. */
static bool place_sibling(const struct shk_host *host, int cpu, const cpu_set_t *allowed)
{
    char *line = NULL;
    char *at = NULL;
    bool sibling = false;

    if (shk_host_line(host, &line, NULL,
                      "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu) != 0) {
        return false;
    }
    /* "0,64" or "0-1": the first number is enough, lists are in order. */
    at = line;
    while (*at != '\0') {
        char *end = NULL;
        long other = strtol(at, &end, 10);

        if (end == at || other >= cpu)
            break;
        if (other >= 0 && other < CPU_SETSIZE && CPU_ISSET((size_t)other, allowed)) {
            sibling = true;
            break;
        }
        at = *end != '\0' ? end + 1 : end;
    }
    free(line);
    return sibling;
}

/* Allowed CPUs: cores first, then further hardware threads. */
struct place_order {
    int cpu[CPU_SETSIZE];
    unsigned cores;
    unsigned count;
};

static void place_sort(const struct shk_host *host, const cpu_set_t *allowed,
                       struct place_order *order)
{
    order->count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET((size_t)cpu, allowed) &&
                place_sibling(host, cpu, allowed) == (pass == 1)) {
                order->cpu[order->count++] = cpu;
            }
        }
        order->cores = pass == 0 ? order->count : order->cores;
    }
}

/* Spread evenly; `ranks` are no more than there are CPUs. */
static int place_pick(const struct place_order *order, unsigned ranks, unsigned index)
{
    unsigned count = ranks <= order->cores ? order->cores : order->count;

    return order->cpu[(unsigned long)index * count / ranks];
}

bool shk_place_cpus(unsigned ranks, int *cpus)
{
    struct shk_host *host = NULL;
    struct place_order order;
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
        shk_host_open(&host, NULL, NULL) != 0) {
        return false;
    }
    place_sort(host, &allowed, &order);
    shk_host_close(host);
    if (ranks > order.count)
        return false;
    for (unsigned i = 0; i < ranks; i++)
        cpus[i] = place_pick(&order, ranks, i);
    return true;
}

void shk_place_bind(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* Attribute of a device that is -1 where the firmware says nothing. */
static int place_attribute(const struct shk_host *host, const char *folder, const char *name)
{
    long long node = -1;

    if (strchr(name, '/') ||
        shk_host_i64(host, &node, NULL, "%s/%s%s/numa_node", folder, name,
                     strcmp(folder, "/sys/bus/pci/devices") == 0 ? "" : "/device") != 0) {
        return -1;
    }
    return node >= 0 && node < CPU_SETSIZE ? (int)node : -1;
}

int shk_place_device_node(const struct shk_host *host, const char *pci, const char *name)
{
    static const char *const classes[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    int node = pci ? place_attribute(host, "/sys/bus/pci/devices", pci) : -1;

    for (size_t i = 0; i < sizeof classes / sizeof classes[0] && node < 0 && name != NULL; i++)
        node = place_attribute(host, classes[i], name);
    /* of another network namespace the name is that of another interface */
    if (node < 0 && name && !shk_netns_foreign(host))
        node = place_attribute(host, "/sys/class/net", name);
    return node;
}

/* CPUs of a node; empty when it cannot be told. */
static char *place_cpulist(const struct shk_host *host, int node)
{
    char *list = NULL;

    return shk_host_line(host, &list, NULL, "/sys/devices/system/node/node%d/cpulist", node) == 0
               ? list
               : NULL;
}

int shk_place_cpu_node(const struct shk_host *host, int cpu)
{
    char **names = NULL;
    size_t count = 0;
    int found = -1;

    if (shk_host_list(host, &names, &count, NULL, "/sys/devices/system/node") != 0)
        return -1;
    for (size_t i = 0; i < count && found < 0; i++) {
        int node = -1;
        char *list = NULL;

        if (sscanf(names[i], "node%d", &node) != 1 || node < 0)
            continue;
        list = place_cpulist(host, node);
        if (list && shk_cpulist_has(list, cpu))
            found = node;
        free(list);
    }
    shk_host_list_free(names);
    return found;
}

int shk_place_near(const struct shk_host *host, const cpu_set_t *allowed, int node, unsigned ranks,
                   unsigned index)
{
    char *list = place_cpulist(host, node);
    struct place_order order;
    cpu_set_t here;

    if (!list)
        return -1;
    CPU_ZERO(&here);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, allowed) && shk_cpulist_has(list, cpu))
            CPU_SET((size_t)cpu, &here);
    }
    free(list);
    place_sort(host, &here, &order);
    return ranks <= order.count && index < ranks ? place_pick(&order, ranks, index) : -1;
}

/* The one CPU that the calling process is bound to; -1: it may use several. */
static int place_bound(void)
{
    cpu_set_t mine;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) != 1)
        return -1;
    while (!CPU_ISSET((size_t)cpu, &mine))
        cpu++;
    return cpu;
}

void shk_place_rank(const struct shk_host *host, const cpu_set_t *allowed, int nic_node,
                    unsigned ranks, unsigned index, struct shk_place *place)
{
    int cpu = place_bound();
    int near = -1;

    *place = (struct shk_place){.cpu = -1, .node = -1, .nic_node = nic_node};
    if (cpu < 0 || CPU_COUNT(allowed) == 1) {
        snprintf(place->how, sizeof place->how, "left where it was started: on any of %d CPU%s",
                 CPU_COUNT(allowed), CPU_COUNT(allowed) == 1 ? "" : "s");
        return;
    }
    place->cpu = cpu;
    place->node = shk_place_cpu_node(host, cpu);
    if (nic_node < 0 || place->node < 0) {
        snprintf(place->how, sizeof place->how, "the kernel reports no NUMA node for the device");
        return;
    }
    if (place->node == nic_node) {
        snprintf(place->how, sizeof place->how, "on the device's NUMA node");
        return;
    }
    near = shk_place_near(host, allowed, nic_node, ranks, index);
    if (near < 0) {
        snprintf(place->how, sizeof place->how,
                 "the device's NUMA node has too few CPUs for %u ranks", ranks);
        return;
    }
    shk_place_bind(near);
    if (place_bound() != near) {
        snprintf(place->how, sizeof place->how, "the kernel refused CPU %d of the device's node",
                 near);
        return;
    }
    place->cpu = near;
    place->node = nic_node;
    snprintf(place->how, sizeof place->how, "moved from CPU %d to the device's NUMA node", cpu);
}
