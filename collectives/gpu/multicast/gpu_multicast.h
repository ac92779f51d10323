/* Multicast objects of the CUDA driver (NVLink SHARP, NVLS): one address that stands for the same
 * place in the memory of every rank's GPU; switches add up what is read through it and hand out
 * what is written. CUDA 12.1, Hopper or later, NVSwitch.
 *
 * Made by the driver alone rather than by NCCL, which has such pointers for the host from 2.29.2 on
 * only: this works with any NCCL or none, and the call that fails is the one that is named.
 * Declared here, as in gpu_api.h. Nothing of it is looked up, let alone called, before
 * gpu_multicast_open(). */
#ifndef SHK_COLLECTIVES_GPU_MULTICAST_H
#define SHK_COLLECTIVES_GPU_MULTICAST_H

#include "collectives/gpu/gpu_private.h"

/* CUmemLocation, CUmemAllocationProp, CUmemAccessDesc, CUmulticastObjectProp of cuda.h. */
struct gpu_memory_location {
    int type, id;
};

struct gpu_memory_prop {
    int type;
    int handle_types;
    struct gpu_memory_location location;
    void *windows;
    unsigned char flags[8];
};

struct gpu_memory_access {
    struct gpu_memory_location location;
    int flags;
};

struct gpu_multicast_prop {
    unsigned devices;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

struct gpu_multicast_api {
    int (*granularity)(size_t *bytes, const struct gpu_memory_prop *prop, int option);
    int (*create)(uint64_t *handle, size_t bytes, const struct gpu_memory_prop *prop,
                  unsigned long long flags);
    int (*release)(uint64_t handle);
    int (*reserve)(gpu_ptr *at, size_t bytes, size_t alignment, gpu_ptr wish,
                   unsigned long long flags);
    int (*unreserve)(gpu_ptr at, size_t bytes);
    int (*map)(gpu_ptr at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
    int (*unmap)(gpu_ptr at, size_t bytes);
    int (*access)(gpu_ptr at, size_t bytes, const struct gpu_memory_access *access, size_t count);
    int (*to_fd)(int *fd, uint64_t handle, int type, unsigned long long flags);
    int (*from_fd)(uint64_t *handle, void *fd, int type);
    int (*team_granularity)(size_t *bytes, const struct gpu_multicast_prop *prop, int option);
    int (*team_create)(uint64_t *handle, const struct gpu_multicast_prop *prop);
    int (*team_add)(uint64_t handle, int device);
    int (*team_bind)(uint64_t handle, size_t at, uint64_t memory, size_t memory_at, size_t bytes,
                     unsigned long long flags);
    int (*team_unbind)(uint64_t handle, int device, size_t at, size_t bytes);
};

struct gpu_multicast {
    struct shk_dynlib dynlib;
    struct gpu_multicast_api api;
    int socket;         /* for handles, see gpu_post_open() */
    size_t bytes;       /* of each rank's memory, rounded up as memory and object need it */
    size_t granularity; /* of the object */
    uint64_t team;
    bool bound;
    gpu_ptr at; /* the address of all; 0 none */
    uint64_t memory[SHK_GPU_MAX_RANKS];
};

/* Looks up the functions and gets ready for handles of other ranks: a fence must follow. */
int gpu_multicast_open(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err);

/* Memory of this rank for g->heap, mapped by all ranks: fills g->base[]. */
int gpu_multicast_memory(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err);

/* Binds the memory of all ranks to one object and maps it. Once, after gpu_multicast_memory(). */
int gpu_multicast_team(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err);

/* Nobody's work may be in flight. */
void gpu_multicast_close(struct gpu_rank *g, struct gpu_multicast *m);

/* gpu_post.c: descriptors from one rank to another, over a socket that has no name in the file
 * system and that the other rank's key GPU_KEY_POST tells. */
#define GPU_KEY_POST "gpu.post"

/* Opens this rank's; a fence must follow before anyone sends. */
int gpu_post_open(struct gpu_rank *g, int *socket_p, struct shk_error *err);
int gpu_post_send(struct gpu_rank *g, int socket, unsigned peer, int fd, struct shk_error *err);
/* Takes what peer has sent before a fence; the caller closes it. */
int gpu_post_take(struct gpu_rank *g, int socket, unsigned peer, int *fd_p, struct shk_error *err);

#endif
