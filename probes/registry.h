/* Descriptors of all probes; each is defined in the file of its name. */
#ifndef SHK_PROBES_REGISTRY_H
#define SHK_PROBES_REGISTRY_H

#include "probes/probe.h"

extern const struct shk_probe shk_probe_host;
extern const struct shk_probe shk_probe_container;
extern const struct shk_probe shk_probe_kernel;
extern const struct shk_probe shk_probe_iommu;
extern const struct shk_probe shk_probe_cpufreq;
extern const struct shk_probe shk_probe_limits;
extern const struct shk_probe shk_probe_cgroup;
extern const struct shk_probe shk_probe_net;
extern const struct shk_probe shk_probe_resolve;
extern const struct shk_probe shk_probe_env;
extern const struct shk_probe shk_probe_conffile;
extern const struct shk_probe shk_probe_paths;
extern const struct shk_probe shk_probe_pci;
extern const struct shk_probe shk_probe_rdma;
extern const struct shk_probe shk_probe_devices;
extern const struct shk_probe shk_probe_accelerators;
extern const struct shk_probe shk_probe_kfd;
extern const struct shk_probe shk_probe_launcher;
extern const struct shk_probe shk_probe_libfabric;
extern const struct shk_probe shk_probe_nccl;
extern const struct shk_probe shk_probe_runtimes;
extern const struct shk_probe shk_probe_nvml;
extern const struct shk_probe shk_probe_cuda;
extern const struct shk_probe shk_probe_nvservices;
extern const struct shk_probe shk_probe_peers;
extern const struct shk_probe shk_probe_plugin;
extern const struct shk_probe shk_probe_topofile;
extern const struct shk_probe shk_probe_topology;
extern const struct shk_probe shk_probe_verbs;
extern const struct shk_probe shk_probe_why;

#endif
