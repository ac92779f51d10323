/* A communicator of the GPU ranks: opened with NCCL's log going to private memory. */
#ifndef SHK_COLLECTIVES_NCCL_COMM_H
#define SHK_COLLECTIVES_NCCL_COMM_H

#include "collectives/gpu/gpu_private.h"
#include "collectives/gpu/nccl/nccl_api.h"
#include "collectives/gpu/nccl/nccl_log.h"

struct nccl_comm {
    struct nccl_lib lib;
    void *comm;
    void *window;      /* of the whole heap; NULL: none */
    int log_fd;        /* what NCCL wrote; -1 none */
    size_t log_opened; /* its bytes when the communicator was open */
    size_t log_from;   /* … and when the path that is measured now began */
    bool library_memory;
    gpu_ptr unreleased; /* memory of an earlier path, until the communicator is closed; 0 none */
    gpu_ptr pointers;   /* device memory for gpu_lsa_pointers */
};

/* Opens the library, checks that all ranks have the same version, joins the communicator. Sets
 * g->comm. */
int nccl_comm_open(struct gpu_rank *g, struct shk_error *err);

/* 0, or NCCL's error as text with its cause noted. */
int nccl_ok(struct gpu_rank *g, int status, struct shk_error *err, const char *call);

/* Allocates the heap (with ncclMemAlloc where there is one) and clears it. */
int nccl_comm_memory(struct gpu_rank *g, bool slots, struct shk_error *err);

/* Registers the heap as a symmetric window; fails when that has no effect. */
int nccl_comm_window(struct gpu_rank *g, struct shk_error *err);

/* There is none: fails, and does not apply where the driver offers no peer access, the ranks are on
 * several nodes, or a variable turns it off, as nothing is broken then. */
int nccl_comm_no_window(struct gpu_rank *g, struct shk_error *err, const char *why);

int nccl_comm_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err);
void nccl_comm_close(struct gpu_rank *g);

/* Between two paths over one communicator: gives back memory and window; begins the next. */
void nccl_comm_leave(struct gpu_rank *g);
int nccl_comm_again(struct gpu_rank *g, struct shk_error *err);

/* Publishes what the log says, for gpu_facts(). */
int nccl_comm_prove(struct gpu_rank *g, struct shk_error *err);

/* Reads the log so far: what opened the communicator, and what came since the path that is measured
 * now began. Of what lies between, only how its ranks were connected, which NCCL says once. */
void nccl_comm_log(const struct nccl_comm *comm, struct nccl_log *log);

#endif
