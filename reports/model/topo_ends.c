/* What the boxes of the topology say: model, speed, and what is broken, by the facts of the device.
 */
#include "core/text/strbuf.h"
#include "reports/model/topo.h"

#include <stdlib.h>
#include <string.h>

static const char *ends_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* The element of an array of facts whose member is the bus address; NULL: none. */
static json_t *ends_device(const struct topo *topo, const char *key, const char *member,
                           const char *pci)
{
    json_t *device;
    size_t i;
    json_t *list = shk_facts_get_array(topo->facts, key);
    json_array_foreach(list, i, device)
    {
        const char *at = ends_text(device, member);
        if (at && strcasecmp(at, pci) == 0)
            return device;
    }
    return NULL;
}

static void ends_model(const struct topo *topo, struct topo_end *gpu)
{
    static const struct {
        const char *key, *name;
    } sources[] = {
        {"nvml.devices", "name"},
        {"gpu.nvidia.devices", "model"},
        {"cuda.devices", "name"},
        {"gpu.amd.devices", "gfx"},
    };
    for (size_t s = 0; s < sizeof sources / sizeof *sources && !*gpu->model; s++) {
        json_t *device = ends_device(topo, sources[s].key, "pci", gpu->pci);
        const char *name = ends_text(device, sources[s].name);
        json_int_t memory = json_integer_value(json_object_get(device, "memory"));
        if (!name)
            continue;
        if (strncmp(name, "NVIDIA ", 7) == 0)
            name += 7;
        if (memory > 0 && !strstr(name, "GB"))
            snprintf(gpu->model, sizeof gpu->model, "%.20s %lld GiB", name,
                     (long long)((memory + (1 << 29)) >> 30));
        else
            snprintf(gpu->model, sizeof gpu->model, "%.39s", name);
    }
}

static void ends_cxi(struct topo_end *nic, const json_t *device)
{
    const char *speed = ends_text(device, "link_speed"), *state = ends_text(device, "link_state");
    if (speed && strncmp(speed, "BS_", 3) == 0)
        nic->rate = atoi(speed + 3);
    if (nic->rate > 0)
        snprintf(nic->model, sizeof nic->model, "%g Gb/s", nic->rate);
    if (state && strcmp(state, "up") != 0)
        snprintf(nic->wrong, sizeof nic->wrong, "link %.20s", state);
}

/* Broken when none of its ports is active and one was read. */
static void ends_rdma(struct topo_end *nic, const json_t *device)
{
    const json_t *port;
    const char *state = NULL;
    size_t i;
    json_array_foreach(json_object_get(device, "ports"), i, port)
    {
        const char *now = ends_text(port, "state");
        if (!now || (state && strcmp(state, "ACTIVE") == 0))
            continue;
        state = now;
        nic->rate = json_number_value(json_object_get(port, "rate"));
    }
    if (nic->rate > 0)
        snprintf(nic->model, sizeof nic->model, "%g Gb/s", nic->rate);
    if (state && strcmp(state, "ACTIVE") != 0)
        snprintf(nic->wrong, sizeof nic->wrong, "port %.20s", state);
}

static long long ends_int(const json_t *object, const char *member)
{
    return (long long)json_integer_value(json_object_get(object, member));
}

/* A link that trained with fewer lanes than both ends have. Its speed says nothing: it falls while
 * the device is idle. */
static void ends_lanes(const struct topo *topo, struct topo_end *end)
{
    const json_t *device = ends_device(topo, "pci.devices", "addr", end->pci);
    long long width = ends_int(device, "link_width"), most = ends_int(device, "max_link_width");
    if (!*end->wrong && width > 0 && width < most)
        snprintf(end->wrong, sizeof end->wrong, "PCIe x%lld of x%lld", width, most);
}

static bool ends_same_card(const struct topo *topo, const struct topo_end *a,
                           const struct topo_end *b)
{
    const char *const members[] = {"vendor", "device"};
    for (size_t i = 0; i < 2; i++) {
        const char *x = ends_text(ends_device(topo, "pci.devices", "addr", a->pci), members[i]);
        const char *y = ends_text(ends_device(topo, "pci.devices", "addr", b->pci), members[i]);
        if (!x || !y || strcmp(x, y) != 0)
            return false;
    }
    return true;
}

/* Of NICs that GPUs take, cards of one kind run at one speed: their cables go to the same rails. */
static void ends_slow(struct topo *topo)
{
    for (size_t i = 0; i < topo->nic_count; i++) {
        struct topo_end *nic = &topo->nics[i];
        double most = nic->rate;
        for (size_t k = 0; nic->gpus && k < topo->nic_count; k++)
            if (topo->nics[k].gpus && topo->nics[k].rate > most &&
                ends_same_card(topo, nic, &topo->nics[k]))
                most = topo->nics[k].rate;
        if (!*nic->wrong && nic->rate > 0 && most > nic->rate)
            snprintf(nic->wrong, sizeof nic->wrong, "%g of %g Gb/s", nic->rate, most);
    }
}

/* Active links of the GPU between GPUs; 0 also when they were not read. */
static size_t ends_active(const struct topo *topo, const struct topo_end *gpu)
{
    const json_t *link;
    size_t i, active = 0;
    json_array_foreach(json_object_get(ends_device(topo, "nvml.devices", "pci", gpu->pci), "links"),
                       i, link) active += json_is_true(json_object_get(link, "active"));
    return active;
}

/* GPUs of one node have as many links. */
static void ends_links(struct topo *topo)
{
    size_t active[TOPO_GPUS], most = 0;
    for (size_t i = 0; i < topo->gpu_count; i++) {
        active[i] = ends_active(topo, &topo->gpus[i]);
        most = active[i] > most ? active[i] : most;
    }
    for (size_t i = 0; i < topo->gpu_count; i++) {
        const json_t *device = ends_device(topo, "nvml.devices", "pci", topo->gpus[i].pci);
        if (active[i] < most && json_array_size(json_object_get(device, "links")))
            snprintf(topo->gpus[i].wrong, TOPO_WORDS, "%zu of %zu NVLinks", active[i], most);
    }
}

void shk_topo_ends(struct topo *topo)
{
    for (size_t i = 0; i < topo->nic_count; i++) {
        struct topo_end *nic = &topo->nics[i];
        json_t *cxi = ends_device(topo, "cxi.devices", "pci", nic->pci);
        json_t *rdma = ends_device(topo, "rdma.devices", "pci", nic->pci);
        if (cxi)
            ends_cxi(nic, cxi);
        else if (rdma)
            ends_rdma(nic, rdma);
        ends_lanes(topo, nic);
    }
    ends_slow(topo);
    ends_links(topo);
    for (size_t i = 0; i < topo->gpu_count; i++) {
        ends_model(topo, &topo->gpus[i]);
        ends_lanes(topo, &topo->gpus[i]);
    }
}
