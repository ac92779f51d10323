/* PCI functions in the facts (pci.devices), as several checks look at them. */
#ifndef SHK_CHECKS_PCI_H
#define SHK_CHECKS_PCI_H

#include "checks/base/coded.h"
#include "checks/base/read.h"

/* Accelerators; NICs that carry the traffic of collectives (not ena and other plain network
 * functions). Virtual functions count. Facts without kinds: a display or accelerator class (0x03,
 * 0x12) is a GPU. */
bool shk_pci_is_gpu(const json_t *device);
bool shk_pci_is_fabric_nic(const json_t *device);

enum shk_pci_role {
    SHK_PCI_OTHER, /* a bridge, a plain NIC … */
    SHK_PCI_GPU,
    SHK_PCI_FABRIC_NIC,
    SHK_PCI_UNTOLD /* its kind was not read */
};

/* What the function is, remembered for the row when it cannot be told. */
enum shk_pci_role shk_read_pci_role(struct shk_row *row, const json_t *device);

/* The functions of the bus, remembered: NULL when they were not read. That one of them could not be
 * read (pci.unreadable) is remembered, too. Borrowed. */
json_t *shk_read_pci_devices(struct shk_row *row);

/* How many of `kind` the bus has, remembered: out of pci.count.<kind>, else out of pci.devices,
 * else out of the driver's list. -1: not known. */
long long shk_read_pci_count(struct shk_row *row, const char *kind);

/* Is a kernel module loaded, or a device bound to a driver, that such hardware needs? Then there is
 * some, whether the bus was read or not. False when nothing shows it. */
bool shk_driver_seen(const struct shk_facts *facts, const char *kind);

/* Was the kernel booted with an option by which it refuses to load that module
 * (module_blacklist=A,B; Documentation/admin-guide/kernel-parameters.txt)? False when the command
 * line was not read. */
bool shk_module_forbidden(const struct shk_facts *facts, const char *module);

/* Is there anything that a GPU of this node may exchange data with over PCIe, without the
 * processor? */
enum shk_pci_party {
    SHK_PARTY_NONE, /* known: no two GPUs of one maker, and no NIC that reads GPU memory */
    SHK_PARTY_GPUS, /* several GPUs of one maker (two of different models are none) */
    SHK_PARTY_NIC,  /* a NIC of a fabric, or an RDMA device of an mlx5 or bnxt adapter */
    SHK_PARTY_UNTOLD
};

/* Remembered for the row. With several GPUs and a NIC it says SHK_PARTY_NIC; several GPUs beside
 * NICs that were not read are SHK_PARTY_GPUS. */
enum shk_pci_party shk_read_pci_party(struct shk_row *row);

/* May these two exchange data over PCIe? False for two GPUs that are joined by NVLink or XGMI, or
 * that the driver gives no peer access. Remembered for the row when topology.peers does not tell
 * (then *untold_p is true). */
bool shk_read_pci_pair(struct shk_row *row, const json_t *gpu, const json_t *other, bool *untold_p);

/* The function with that address, NULL when the facts have none. */
const json_t *shk_pci_find(const struct shk_facts *facts, const char *addr);

/* Bridges strictly below the nearest bridge that both functions share, in a new array of borrowed
 * texts: where a request from one to the other can be turned away. NULL when they share none. */
json_t *shk_pci_ports_between(const json_t *a, const json_t *b);

#endif
