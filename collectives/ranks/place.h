/* Placement: which CPU each local rank runs on. Ranks that poll must not share one while others are
 * idle, and the scheduler is slow to see to that; and a rank far from its network device pays for
 * every byte on the way between the sockets. */
#ifndef SHK_COLLECTIVES_PLACE_H
#define SHK_COLLECTIVES_PLACE_H

#include "core/host/host.h"
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Chooses one CPU per rank from those that this process may use, one hardware thread per core
 * first, spread evenly. False (nothing written) when there are fewer CPUs than ranks or they cannot
 * be told. */
bool shk_place_cpus(unsigned ranks, int *cpus);

/* Binds the calling process to one CPU; best effort. */
void shk_place_bind(int cpu);

/* NUMA node of a network device, by its PCI address ("0000:17:00.0", NULL: unknown) or its name
 * ("mlx5_0", "eth0", "cxi0"). -1: the kernel knows of none. */
int shk_place_device_node(const struct shk_host *host, const char *pci, const char *name);

/* NUMA node of a CPU; -1: not known. */
int shk_place_cpu_node(const struct shk_host *host, int cpu);

/* The CPU for rank `index` of `ranks` among those in `allowed` on a node, chosen as by
 * shk_place_cpus(). -1: fewer CPUs than ranks there. */
int shk_place_near(const struct shk_host *host, const cpu_set_t *allowed, int node, unsigned ranks,
                   unsigned index);

/* Where a rank runs, and why. */
struct shk_place {
    int cpu;      /* bound to this one; -1: not bound by us */
    int node;     /* NUMA node of the CPU; -1: not known, or not bound */
    int nic_node; /* of the network device; -1: not known */
    char how[96]; /* what was done, as an end of a sentence */
};

/* Moves the calling rank to a CPU near the device, if whoever started it (a process that may use
 * the CPUs in `allowed`) has bound it to one of several. A launcher's choice is left as it is. */
void shk_place_rank(const struct shk_host *host, const cpu_set_t *allowed, int nic_node,
                    unsigned ranks, unsigned index, struct shk_place *place);

#endif
