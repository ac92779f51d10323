/* What sysfs says about one PCI function beyond its identity: link, windows, errors, ACS. Each
 * function adds members to the JSON object of the function (docs/facts.md, pci.devices). */
#ifndef SHK_PROBES_PCIDETAIL_H
#define SHK_PROBES_PCIDETAIL_H

#include "core/host/host.h"

#include <jansson.h>

#define SHK_PCI_BUS "/sys/bus/pci/devices"

/* link_speed, link_width, max_link_speed, max_link_width: null when there is no link. */
void shk_pci_link(const struct shk_host *host, json_t *dev, const char *addr);

/* bars: sizes in bytes of the six base address registers, 0 for one that is not used; null when
 * not readable. */
void shk_pci_bars(const struct shk_host *host, json_t *dev, const char *addr);

/* aer: {correctable, nonfatal, fatal: {NAME: count, only those above 0}}; null when the function
 * or the kernel counts none. */
void shk_pci_aer(const struct shk_host *host, json_t *dev, const char *addr);

/* acs: {"control": bits} of a bridge, false when it has no such capability, null when that cannot
 * be read. */
void shk_pci_acs(const struct shk_host *host, json_t *dev, const char *addr);

#endif
