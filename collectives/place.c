#include "collectives/place.h"
#include "core/host.h"
#include <sched.h>
#include <stdlib.h>

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

        if (end == at || other >= cpu) {
            break;
        }
        if (other >= 0 && other < CPU_SETSIZE && CPU_ISSET((size_t)other, allowed)) {
            sibling = true;
            break;
        }
        at = *end != '\0' ? end + 1 : end;
    }
    free(line);
    return sibling;
}

bool shk_place_cpus(unsigned ranks, int *cpus)
{
    struct shk_host *host = NULL;
    cpu_set_t allowed;
    int order[CPU_SETSIZE]; /* cores, then further hardware threads */
    unsigned cores = 0;
    unsigned count = 0;
    unsigned i = 0;
    int pass = 0;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        shk_host_open(&host, NULL, NULL) != 0) {
        return false;
    }
    for (pass = 0; pass < 2; pass++) {
        for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET((size_t)cpu, &allowed) &&
                place_sibling(host, cpu, &allowed) == (pass == 1)) {
                order[count++] = cpu;
            }
        }
        cores = pass == 0 ? count : cores;
    }
    shk_host_close(host);
    if (ranks > count) {
        return false;
    }
    count = ranks <= cores ? cores : count;
    for (i = 0; i < ranks; i++) {
        cpus[i] = order[(unsigned long)i * count / ranks];
    }
    return true;
}

void shk_place_bind(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}
