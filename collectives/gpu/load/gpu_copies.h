/* Copies by the engines of the GPUs, without any kernel: between host and GPU, within the memory of
 * a GPU, and between every pair of GPUs of a node. One GPU at a time, so that one of them that is
 * slow stands out, and not those that share a switch with another. */
#ifndef SHK_COLLECTIVES_GPU_COPIES_H
#define SHK_COLLECTIVES_GPU_COPIES_H

#include "collectives/gpu/gpu_private.h"
#include "core/host/host.h"

/* The PCIe link with the least bandwidth between a device and its processor. */
struct gpu_link {
    char at[16];   /* address of the device at its lower end; "": not known */
    double speed;  /* GT/s, as it is now */
    int32_t width; /* lanes */
    double most;   /* GT/s that both ends can do; 0 not known */
    double gbs;    /* GB/s that it carries, after encoding, before packet headers */
};

/* Reads it from sysfs for the device at `pci` ("0000:3b:00.0"). False: not known (a virtual machine
 * without the ports above, a device that is not on PCIe). */
bool gpu_link_read(const struct shk_host *host, const char *pci, struct gpu_link *link);

/* GB/s that a link of that speed (GT/s) and width carries each way: 8b/10b up to 5 GT/s, 128b/130b
 * up to 32, 242 of 256 bytes of a flit above (PCI Express Base Specification 6.0, 4.2). */
double gpu_link_rate(double speed, int width);

/* What one rank measured; in GB/s, 0: not measured. */
struct gpu_copies {
    char pci[32];
    char host[64];
    double to_device, to_host; /* pinned host memory */
    double memory;             /* of the GPU: bytes read and bytes written */
    double memory_peak;        /* from its clock and bus width; 0 not known */
    struct gpu_link link;      /* right after copying, when it is awake */
    int32_t node;              /* NUMA node of the GPU; -1 not known */
    int32_t near;              /* the host memory is of that node: 1; 0: no CPU there may be used */
    uint64_t pair_bytes;
    double pair[SHK_GPU_MAX_RANKS]; /* to the memory of that rank */
};

/* Measures on every rank in turn and publishes what came of it. Where the driver lacks a function
 * or memory is short nothing is measured, which is no error. Peers are copied to where g->base has
 * their memory. */
int gpu_copies_measure(struct gpu_rank *g, struct shk_error *err);

/* PCI address of the rank's GPU as sysfs writes it: in lower case. */
void gpu_copies_address(const struct gpu_rank *g, char *buf, size_t size);

/* What a GPU did under load. */
struct gpu_stress_result {
    char pci[32];
    char host[64];
    double seconds;
    uint32_t rounds;
    uint64_t bad;              /* words that arrived otherwise than they were sent */
    double first, last, least; /* GB/s of a round: bytes read and written within the GPU */
};

/* Load for options->stress_ms on all GPUs at once (0: none), in words of gpu_stress.c. */
int gpu_stress_run(struct gpu_rank *g, struct shk_error *err);

/* [{node, gpus: [{rank, pci, seconds, rounds, bad, first, last, least}]}]; NULL: there was none. */
json_t *gpu_stress_json(const struct shk_job *job);

/* [{node, gpus, pairs}] of the ranks; NULL: nothing was measured. See docs/facts.md. */
json_t *gpu_copies_json(const struct shk_job *job);

#endif
