/* PCI functions in the facts (pci.devices), as several checks look at them. */
#ifndef SHK_CHECKS_PCI_H
#define SHK_CHECKS_PCI_H

#include "checks/coded.h"

/* Accelerators; NICs that carry the traffic of collectives (not ena and other plain network
 * functions). Virtual functions count. */
bool shk_pci_is_gpu(const json_t *device);
bool shk_pci_is_fabric_nic(const json_t *device);

/* The function with that address, NULL when the facts have none. */
const json_t *shk_pci_find(const struct shk_facts *facts, const char *addr);

/* Bridges strictly below the nearest bridge that both functions share, in a new array of borrowed
 * texts: where a request from one to the other can be turned away. NULL when they share none. */
json_t *shk_pci_ports_between(const json_t *a, const json_t *b);

/* Why a member of the object is null, NULL when nothing is said. */
const char *shk_pci_problem(const json_t *device, const char *member);

#endif
