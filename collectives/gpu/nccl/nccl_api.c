#include "collectives/gpu/nccl/nccl_api.h"
#include <errno.h>
#include <stdio.h>

#define AT(member_) offsetof(struct nccl_api, member_)

static const struct shk_symbol symbols[] = {
    {.name = "ncclGetVersion", .offset = AT(get_version)},
    {.name = "ncclGetUniqueId", .offset = AT(unique_id)},
    {.name = "ncclCommInitRank", .offset = AT(init_rank)},
    {.name = "ncclCommDestroy", .offset = AT(destroy)},
    {.name = "ncclAllReduce", .offset = AT(all_reduce)},
    {.name = "ncclGetErrorString", .offset = AT(error_string)},
    {.name = "ncclCommGetAsyncError", .offset = AT(async_error)},
    {.name = "ncclGetLastError", .offset = AT(last_error), .optional = true, .since = "2.13"},
    {.name = "ncclMemAlloc", .offset = AT(alloc), .optional = true, .since = "2.19"},
    {.name = "ncclMemFree", .offset = AT(release), .optional = true, .since = "2.19"},
    {.name = "ncclCommWindowRegister",
     .offset = AT(window_register),
     .optional = true,
     .since = "2.27"},
    {.name = "ncclCommWindowDeregister",
     .offset = AT(window_deregister),
     .optional = true,
     .since = "2.27"},
    {.name = "ncclGetLsaDevicePointer",
     .offset = AT(lsa_pointer),
     .optional = true,
     .since = "2.29.2"},
    {.name = "ncclTeamLsa", .offset = AT(team_lsa), .optional = true, .since = "2.28"},
    {.name = NULL},
};

int nccl_lib_open(struct nccl_lib *lib, bool rccl, const char *const *names, struct shk_error *err)
{
    static const char *const nccl_names[] = {"libnccl.so.2", NULL};
    static const char *const rccl_names[] = {"librccl.so.1", NULL};
    struct shk_library desc = {
        .names = names  ? names
                 : rccl ? rccl_names
                        : nccl_names,
        .symbols = symbols,
    };
    int rc = shk_dynlib_open(&lib->dynlib, &desc, &lib->api, err);

    if (rc == 0 && lib->api.get_version(&lib->version) != NCCL_OK)
        rc = shk_error_set(err, EIO, "%s: ncclGetVersion failed", lib->dynlib.path);
    return rc;
}

bool nccl_window_fits(int headers, int library)
{
    return headers >= 22803 && headers < 23100 && library >= 22803 && library < 22902;
}

void nccl_version_text(int version, char *buf, size_t size)
{
    snprintf(buf, size, "%d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
}
