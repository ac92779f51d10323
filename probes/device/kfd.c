/* XGMI and PCIe links between AMD GPUs, and which GPUs the driver lets access each other, as the
 * amdgpu driver lists them. */
#include "probes/device/kfd.h"

#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool shk_kfd_property(const char *text, const char *name, unsigned long long *value_p)
{
    size_t n = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || line[n] != ' ')
            continue;
        char *end;
        errno = 0;
        *value_p = strtoull(line + n + 1, &end, 10);
        return !errno && end != line + n + 1;
    }
    return false;
}

/* location_id is bus, device, function as in PCI: 8, 5 and 3 bits. */
json_t *shk_kfd_pci(const char *text)
{
    char addr[32];
    unsigned long long domain = 0, location;
    if (!shk_kfd_property(text, "location_id", &location))
        return json_null();
    shk_kfd_property(text, "domain", &domain);
    snprintf(addr, sizeof addr, "%04llx:%02llx:%02llx.%llx", domain, location >> 8 & 0xff,
             location >> 3 & 0x1f, location & 7);
    return json_string(addr);
}

enum { KFD_MAX_NODES = 256 };

struct kfd {
    const struct shk_host *host;
    json_t *pci[KFD_MAX_NODES]; /* address of GPU node N, NULL for processors and hidden nodes */
    json_t *links;
    unsigned hidden;
    struct shk_error why;
};

static int kfd_number(const char *name)
{
    char *end;
    long n = strtol(name, &end, 10);
    return *name && !*end && n >= 0 && n < KFD_MAX_NODES ? (int)n : -1;
}

static void kfd_node(struct kfd *kfd, const char *name)
{
    char path[96], *text = NULL;
    unsigned long long simds = 0;
    int number = kfd_number(name);
    snprintf(path, sizeof path, SHK_KFD_NODES "/%.16s/properties", name);
    int rc = shk_host_read(kfd->host, path, &text, NULL, &kfd->why);
    if (rc || !*text)
        kfd->hidden++;
    else if (number >= 0 && shk_kfd_property(text, "simd_count", &simds) && simds)
        kfd->pci[number] = shk_kfd_pci(text);
    free(text);
}

/* Types of links that matter here, as crat.h of the driver numbers them. */
static json_t *kfd_type(unsigned long long type)
{
    return type == 11  ? json_string("xgmi")
           : type == 2 ? json_string("pcie")
                       : json_sprintf("%llu", type);
}

static void kfd_link(struct kfd *kfd, const char *path, bool p2p)
{
    static const char *const names[] = {"weight", "min_bandwidth", "max_bandwidth"};
    char *text = NULL;
    unsigned long long from = 0, to = 0, type = 0, value;
    if (shk_host_read(kfd->host, path, &text, NULL, &kfd->why) != 0) {
        kfd->hidden++;
        return;
    }
    bool known = shk_kfd_property(text, "node_from", &from) &&
                 shk_kfd_property(text, "node_to", &to) && shk_kfd_property(text, "type", &type) &&
                 from < KFD_MAX_NODES && to < KFD_MAX_NODES;
    if (known && kfd->pci[from] && kfd->pci[to]) {
        json_t *row = json_pack("{s:O,s:O,s:o,s:b}", "gpu", kfd->pci[from], "peer", kfd->pci[to],
                                "type", kfd_type(type), "p2p", p2p);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            json_object_set_new(row, names[i],
                                shk_kfd_property(text, names[i], &value)
                                    ? json_integer((json_int_t)value)
                                    : json_null());
        json_array_append_new(kfd->links, row);
    }
    free(text);
}

/* io_links are links of the hardware; p2p_links (Linux 6.0 and later) pairs over PCIe that the
 * driver lets access each other. */
static void kfd_links(struct kfd *kfd, const char *node, const char *folder, bool p2p)
{
    char **names = NULL, path[128];
    if (shk_host_list(kfd->host, &names, NULL, NULL, SHK_KFD_NODES "/%s/%s", node, folder) != 0)
        return;
    for (char **n = names; *n; n++) {
        snprintf(path, sizeof path, SHK_KFD_NODES "/%.16s/%s/%.16s/properties", node, folder, *n);
        kfd_link(kfd, path, p2p);
    }
    shk_host_list_free(names);
}

static int kfd_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const char key[] = "gpu.amd.links";
    struct shk_gather g = shk_gather_begin(ctx);
    struct kfd kfd = {.host = ctx->host, .links = json_array()};
    struct shk_error why;
    char **names = NULL;
    int rc = shk_host_list(ctx->host, &names, NULL, &why, SHK_KFD_NODES);
    for (char **n = names; n && *n; n++)
        kfd_node(&kfd, *n);
    for (char **n = names; n && *n; n++) {
        int number = kfd_number(*n);
        if (number < 0 || !kfd.pci[number])
            continue;
        kfd_links(&kfd, *n, "io_links", false);
        kfd_links(&kfd, *n, "p2p_links", true);
    }
    if (rc)
        shk_gather_unread(&g, key, SHK_KFD_NODES, "/sys/class", rc, &why);
    else if (json_array_size(kfd.links) == 0 && kfd.hidden)
        shk_gather_failed(&g, key, SHK_KFD_NODES, "%s", kfd.why.text);
    else if (json_array_size(kfd.links) == 0)
        shk_gather_absent(&g, key, SHK_KFD_NODES, "no link between two GPUs");
    else
        shk_gather_present(&g, key, json_incref(kfd.links), NULL, SHK_KFD_NODES);
    for (size_t i = 0; i < KFD_MAX_NODES; i++)
        json_decref(kfd.pci[i]);
    json_decref(kfd.links);
    shk_host_list_free(names);
    return shk_gather_end(&g, err);
}

static const char *const kfd_provides[] = {"gpu.amd.links", NULL};

const struct shk_probe shk_probe_kfd = {
    .name = "kfd",
    .phase = SHK_PHASE_HOST,
    .doc = "links between AMD GPUs: XGMI, PCIe, peer access",
    .provides = kfd_provides,
    .deadline_ms = 5000,
    .run = kfd_run,
};
