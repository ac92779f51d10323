/* Nodes of the amdgpu compute driver (kfd) below /sys/class/kfd. */
#ifndef SHK_PROBES_KFD_H
#define SHK_PROBES_KFD_H

#include <jansson.h>
#include <stdbool.h>

#define SHK_KFD_NODES "/sys/class/kfd/kfd/topology/nodes"

/* The number of a "name value" line of a properties file; false when there is none. */
bool shk_kfd_property(const char *text, const char *name, unsigned long long *value_p);

/* PCI address of a GPU node out of its properties; JSON null when they do not tell. */
json_t *shk_kfd_pci(const char *text);

#endif
