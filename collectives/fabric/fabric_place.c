#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fabric_pci(const struct fi_info *info, char *buf, size_t size)
{
    const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;

    if (!bus || bus->bus_type != FI_BUS_PCI)
        return false;
    snprintf(buf, size, "%04x:%02x:%02x.%x", bus->attr.pci.domain_id, bus->attr.pci.bus_id,
             bus->attr.pci.device_id, bus->attr.pci.function_id);
    return true;
}

/* What the process that started this rank may use: all that was left of it here is one CPU. */
static bool place_allowed(cpu_set_t *allowed)
{
    return sched_getaffinity(getppid(), sizeof *allowed, allowed) == 0 && CPU_COUNT(allowed) > 0;
}

static int place_publish(struct shk_job *job, const struct shk_place *place, struct shk_error *err)
{
    json_t *row = json_pack("{s:i, s:i, s:i, s:s}", "cpu", place->cpu, "node", place->node,
                            "nic_node", place->nic_node, "how", place->how);
    char *text = row ? json_dumps(row, JSON_COMPACT) : NULL;
    int rc = text ? shk_job_put(job, FABRIC_PLACE, text, strlen(text), err)
                  : shk_error_set(err, FI_ENOMEM, "out of memory");

    free(text);
    json_decref(row);
    return rc;
}

int fabric_place(const struct fi_info *info, struct shk_job *job, struct shk_error *err)
{
    struct shk_host *host = NULL;
    struct shk_place place = {.cpu = -1, .node = -1, .nic_node = -1};
    cpu_set_t allowed;
    char pci[32];
    bool known = fabric_pci(info, pci, sizeof pci);

    if (!place_allowed(&allowed) || shk_host_open(&host, NULL, NULL) != 0) {
        snprintf(place.how, sizeof place.how, "the allowed CPUs are not known");
    } else {
        int node = shk_place_device_node(host, known ? pci : NULL, info->domain_attr->name);

        shk_place_rank(host, &allowed, node, shk_job_size(job), shk_job_rank(job), &place);
        shk_host_close(host);
    }
    return place_publish(job, &place, err);
}
