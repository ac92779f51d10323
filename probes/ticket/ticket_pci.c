/* lspci: which accelerators and network devices there are. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By the words of lspci (pci.ids): class and vendor. Kinds as in docs/facts.md. */
static const struct {
    const char *kind, *class, *vendor;
} kinds[] = {
    {"gpu-nvidia", "3D controller", "NVIDIA"},
    {"gpu-nvidia", "VGA compatible controller", "NVIDIA"},
    {"nvswitch", "Bridge", "NVIDIA"},
    {"gpu-amd", "Processing accelerators", "Advanced Micro Devices"},
    {"gpu-amd", "Display controller", "Advanced Micro Devices"},
    {"gpu-amd", "VGA compatible controller", "Advanced Micro Devices"},
    {"efa", "Ethernet controller", "Elastic Fabric Adapter"},
    {"neuron", "System peripheral", "Neuron"},
    {"neuron", "", "NeuronDevice"},
    {"cxi", "Ethernet controller", "Cassini"},
    {"cxi", "Network controller", "Cassini"},
    {"mlx5", "Infiniband controller", "ConnectX-"},
    {"mlx5", "Ethernet controller", "ConnectX-"},
    {"mlx5", "Infiniband controller", "BlueField"},
    {"mlx5", "Ethernet controller", "BlueField"},
};
static const char *const counted[] = {"gpu-nvidia", "nvswitch", "gpu-amd", "neuron",
                                      "efa",        "cxi",      "mlx5"};
enum { COUNTED = sizeof counted / sizeof *counted };

/* "3b:00.0 3D controller: NVIDIA Corporation … (rev a1)": the text behind the address. */
static const char *pci_line(const char *line, char addr[16])
{
    if (!isxdigit((unsigned char)line[0]) || !ticket_pci(addr, line))
        return NULL;
    const char *p = line + strcspn(line, " ");
    return *p == ' ' && strchr(p, ':') ? p + 1 : NULL;
}

static const char *kind_of(const char *text)
{
    const char *colon = strchr(text, ':');
    if (strstr(text, "Virtual Function") || strstr(text, "ConnectX-2") ||
        strstr(text, "ConnectX-3"))
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ticket_after(text, kinds[i].class) && strstr(colon, kinds[i].vendor))
            return kinds[i].kind;
    return NULL;
}

static bool lspci_starts(char *const *lines, size_t left)
{
    char addr[16];
    const char *text = pci_line(lines[0], addr);
    (void)left;
    return text &&
           (ticket_after(text, "Host bridge") || kind_of(text) || ticket_after(text, "PCI bridge"));
}

static void put_counts(struct ticket_out *out, const long long *count, bool whole)
{
    char key[64];
    for (size_t k = 0; k < COUNTED; k++) {
        snprintf(key, sizeof key, "pci.count.%s", counted[k]);
        if (count[k])
            ticket_put_int(out, key, count[k], NULL);
        else if (whole)
            ticket_absent(out, key, "not in the output of lspci");
    }
}

/* Details of -vv: "LnkCap: Port #0, Speed 16GT/s, Width x16", "LnkSta: …", "NUMA node: 0". */
static void detail(struct ticket_out *out, json_t *entry, const char *line)
{
    const char *p, *v = ticket_skip(line);
    double speed;
    int width, node;
    char word[64];
    bool max = ticket_after(v, "LnkCap:") != NULL;
    if ((max || ticket_after(v, "LnkSta:")) && (p = strstr(v, "Speed ")) &&
        sscanf(p, "Speed %lfGT/s", &speed) == 1) {
        ticket_member(out, entry, max ? "max_link_speed" : "link_speed", json_real(speed));
        p = strstr(v, "Width x");
        if (p && sscanf(p, "Width x%d", &width) == 1)
            ticket_member(out, entry, max ? "max_link_width" : "link_width", json_integer(width));
    } else if ((p = ticket_value(v, "NUMA node")) && sscanf(p, "%d", &node) == 1) {
        ticket_member(out, entry, "numa", json_integer(node));
    } else if ((p = ticket_value(v, "Kernel driver in use")) &&
               ticket_word(word, sizeof word, p, "")) {
        ticket_member(out, entry, "driver", json_string(word));
    } else if ((p = ticket_value(v, "IOMMU group")) && sscanf(p, "%d", &node) == 1) {
        ticket_member(out, entry, "iommu_group", json_integer(node));
    } else if ((p = ticket_after(v, "ACSCtl:"))) {
        static const char *const bits[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                           "UpstreamFwd", "EgressCtrl", "DirectTrans"};
        int control = 0;
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
            const char *at = strstr(p, bits[b]);
            control |= at && at[strlen(bits[b])] == '+' ? 1 << b : 0;
        }
        ticket_member(out, entry, "acs", json_pack("{s:i}", "control", control));
    }
}

/* The list of devices is written only with their details (-v), as they are what is looked at. */
static void put_devices(struct ticket_out *out, const struct ticket_block *block)
{
    char addr[16];
    json_t *entry = NULL;
    for (size_t i = 0; i < block->count; i++) {
        const char *text = pci_line(block->lines[i], addr);
        if (!text) {
            if (entry && *block->lines[i] == '\t')
                detail(out, entry, block->lines[i]);
            continue;
        }
        bool bridge = ticket_after(text, "PCI bridge") != NULL;
        const char *kind = bridge ? "bridge" : kind_of(text);
        entry = kind ? ticket_device(out, "pci.devices", "addr", json_string(addr)) : NULL;
        if (entry)
            ticket_member(out, entry, "kind", json_string(kind));
    }
}

static void lspci_read(struct ticket_out *out, const struct ticket_block *block)
{
    long long count[COUNTED] = {0};
    bool host = false, verbose = false;
    char addr[16];
    for (size_t i = 0; i < block->count; i++) {
        const char *text = pci_line(block->lines[i], addr);
        verbose |= !text && strstr(block->lines[i], "LnkSta:");
        host |= text && ticket_after(text, "Host bridge");
        const char *kind = text ? kind_of(text) : NULL;
        for (size_t k = 0; kind && k < COUNTED; k++)
            count[k] += strcmp(kind, counted[k]) == 0;
    }
    bool some = block->command && (strstr(block->command, " -s") || strstr(block->command, " -d"));
    bool whole = host && !block->part && block->ended && !some;
    if (!whole && !(block->command && strstr(block->command, "grep"))) {
        out->note = "not all devices, left out";
        return;
    }
    put_counts(out, count, whole);
    if (whole && verbose)
        put_devices(out, block);
}

const struct ticket_reader ticket_reader_lspci = {
    .name = "lspci", .commands = "lspci", .starts = lspci_starts, .read = lspci_read};
