/* NCCL and RCCL: the calls that the collectives need, as one table. Declared here, as in gpu_api.h,
 * so that every build can use every version. */
#ifndef SHK_COLLECTIVES_NCCL_API_H
#define SHK_COLLECTIVES_NCCL_API_H

#include "core/run/dynlib.h"
#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

#define NCCL_OK          0
#define NCCL_IN_PROGRESS 7

#define NCCL_SUM 0

/* ncclCommWindowRegister: symmetric, so that collectives may use it. */
#define NCCL_WINDOW_SYMMETRIC 1

struct nccl_id {
    char bytes[128];
};

/* ncclTeam_t */
struct nccl_team {
    int ranks, rank, stride;
};

struct nccl_api {
    int (*get_version)(int *version); /* 10000 * major + 100 * minor + patch from 2.9 on */
    int (*unique_id)(struct nccl_id *id);
    int (*init_rank)(void **comm, int ranks, struct nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                      void *stream);
    const char *(*error_string)(int status);
    int (*async_error)(void *comm, int *status);
    /* The rest may be NULL. */
    const char *(*last_error)(void *comm);
    int (*alloc)(void **at, size_t bytes);
    int (*release)(void *at);
    int (*window_register)(void *comm, void *at, size_t bytes, void **window, int flags);
    int (*window_deregister)(void *comm, void *window);
    int (*lsa_pointer)(void *window, size_t offset, int rank, void **at);
    struct nccl_team (*team_lsa)(void *comm);
};

struct nccl_lib {
    struct shk_dynlib dynlib;
    struct nccl_api api;
    int version;
};

/* names NULL: libnccl.so.2, or librccl.so.1 when rccl. */
int nccl_lib_open(struct nccl_lib *lib, bool rccl, const char *const *names,
                  struct shk_error *err) SHK_MUST_CHECK;

/* Whether a kernel built with these headers may read a window of this library: the start of that
 * structure is the same from 2.28.3 to 2.30, and in 2.27 a window was host memory. From 2.29.2 on
 * the library gives the pointers itself. Versions as get_version(). ncclDevComm is never used: its
 * layout differs even between 2.28.3 and 2.28.7. */
bool nccl_window_fits(int headers, int library);

/* "2.28.3" */
void nccl_version_text(int version, char *buf, size_t size);

#endif
