/* Errors that PCIe reports (Advanced Error Reporting), by function. */
#include "probes/counters/counters_private.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_BUS "/sys/bus/pci/devices"

/* Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats: what is sent again, or comes damaged,
 * on the link itself. */
static const char *const replays[] = {"RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", NULL};

/* "0000:9b:00.0 (mlx5_3)": the kernel's names say more than the address. */
static void pci_scope(struct counters *c, const char *addr, char *buf, size_t size)
{
    static const char *const kinds[] = {"infiniband", "cxi", "net"};
    snprintf(buf, size, "PCIe of %.16s", addr);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char **names = NULL;
        if (shk_host_list(c->host, &names, NULL, NULL, PCI_BUS "/%s/%s", addr, kinds[i]) != 0)
            continue;
        if (*names)
            snprintf(buf, size, "PCIe of %.16s (%.32s)", addr, *names);
        bool found = *names;
        shk_host_list_free(names);
        if (found)
            return;
    }
}

static const char *pci_kind(const char *file, const char *name)
{
    if (strcmp(file, "correctable") != 0)
        return "uncorrected";
    for (const char *const *r = replays; *r; r++)
        if (strcmp(*r, name) == 0)
            return "replay";
    return "corrected";
}

/* Lines "NAME COUNT"; totals are sums of the others. Names are the same in the three files, so the
 * file goes in front of those that are not corrected. */
static bool pci_file(struct counters *c, const char *scope, const char *file, char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[32], full[64];
        unsigned long long count = 0;
        if (sscanf(line, "%31s %llu", name, &count) != 2)
            return false;
        /* UnsupReq: what a scan of the bus leaves behind */
        if (strncmp(name, "TOTAL_", 6) == 0 || strcmp(name, "UnsupReq") == 0)
            continue;
        bool plain = strcmp(file, "correctable") == 0;
        snprintf(full, sizeof full, "%s%s%s", plain ? "" : file, plain ? "" : " ", name);
        counters_set(c, scope, full, pci_kind(file, name), count);
    }
    return true;
}

static void pci_function(struct counters *c, const char *addr)
{
    static const char *const files[] = {"correctable", "nonfatal", "fatal"};
    char scope[80] = "";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct shk_error err = {""};
        char path[96], *text = NULL;
        snprintf(path, sizeof path, PCI_BUS "/%.16s/aer_dev_%s", addr, files[i]);
        int rc = shk_host_read(c->host, path, &text, NULL, &err);
        if (rc == -ENOENT)
            continue;
        if (!*scope) {
            pci_scope(c, addr, scope, sizeof scope);
            counters_begin(c, scope, "pci");
        }
        if (rc || !pci_file(c, scope, files[i], text))
            counters_unread(c, scope, rc ? err.text : "not lines of NAME COUNT");
        free(text);
    }
}

void counters_pci(struct counters *c)
{
    char **addrs = counters_list(c, PCI_BUS, "PCI devices", "pci");
    for (size_t i = 0; addrs && addrs[i]; i++)
        pci_function(c, addrs[i]);
    shk_host_list_free(addrs);
}
