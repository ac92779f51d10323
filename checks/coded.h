/* The coded checks, one descriptor each; checks/registry.c has their order. */
#ifndef SHK_CHECKS_CODED_H
#define SHK_CHECKS_CODED_H

#include "checks/row.h"
#include <stdlib.h>

extern const struct shk_check shk_check_probe_health;
extern const struct shk_check shk_check_collective, shk_check_pair_speed, shk_check_by_node,
    shk_check_loss, shk_check_counters, shk_check_layers, shk_check_rails;
extern const struct shk_check shk_check_plugin_file, shk_check_plugin_load, shk_check_plugin_abi,
    shk_check_plugin_use;
extern const struct shk_check shk_check_memlock, shk_check_nofile, shk_check_stack, shk_check_shm;
extern const struct shk_check shk_check_iommu, shk_check_modules, shk_check_peermem,
    shk_check_dmabuf, shk_check_numa_balancing;
extern const struct shk_check shk_check_acs, shk_check_pci_link, shk_check_pci_errors,
    shk_check_pci_numa, shk_check_gpu_bar;
extern const struct shk_check shk_check_governor, shk_check_thp, shk_check_hugepages,
    shk_check_sysctl;
extern const struct shk_check shk_check_gpu_library, shk_check_nvlink, shk_check_peer_access;
extern const struct shk_check shk_check_nearest_nic, shk_check_topo_file, shk_check_levels,
    shk_check_binding;
extern const struct shk_check shk_check_fabric_manager, shk_check_imex, shk_check_gdrcopy;
extern const struct shk_check shk_check_gpu_presence, shk_check_gpu_driver,
    shk_check_gpu_allocation, shk_check_dev_access, shk_check_rocm, shk_check_gpu_masks;
extern const struct shk_check shk_check_nic_count, shk_check_nic_link, shk_check_nic_rate;
extern const struct shk_check shk_check_hostname, shk_check_socket_choice;
extern const struct shk_check shk_check_job_pmix, shk_check_job_missing, shk_check_job_spread,
    shk_check_job_slots, shk_check_job_clocks;
extern const struct shk_check shk_check_log_setting;
extern const struct shk_check shk_check_container, shk_check_job, shk_check_vni;

/* GPUs of any maker on the node: -1 unknown. */
long long shk_gpu_count(const struct shk_facts *facts);

/* Is this a virtual machine? False when not known. */
bool shk_is_guest(const struct shk_facts *facts);

/* Diagnosis of a collective.<t>.cause; NULL: none. */
const char *shk_collective_cause_key(const char *cause);

/* Diagnosis and scope of a row about transport `t` (of that length) that did not end well, `rank`:
 * to blame, -1 none. */
void shk_collective_why(struct shk_row *row, const struct shk_facts *facts, const char *t, int len,
                        long long rank);

/* "docker" …; NULL when not in a container or not known. */
const char *shk_container(const struct shk_facts *facts);

#endif
