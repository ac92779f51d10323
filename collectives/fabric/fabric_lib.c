#include "collectives/fabric/fabric_private.h"
#include "core/run/isolate.h"
#include <stdio.h>
#include <string.h>

static const char *const lib_names[] = {"libfabric.so.1", NULL};

#define LIB_SYMBOL(member_, name_, optional_)                                                      \
    {                                                                                              \
        .name = (name_), .offset = offsetof(struct fabric_api, member_), .optional = (optional_)   \
    }

static const struct shk_symbol lib_symbols[] = {
    LIB_SYMBOL(getinfo, "fi_getinfo", false),
    LIB_SYMBOL(freeinfo, "fi_freeinfo", false),
    LIB_SYMBOL(dupinfo, "fi_dupinfo", false),
    LIB_SYMBOL(fabric, "fi_fabric", false),
    LIB_SYMBOL(strerror, "fi_strerror", false),
    LIB_SYMBOL(version, "fi_version", false),
    LIB_SYMBOL(tostr, "fi_tostr", true),
    LIB_SYMBOL(getparams, "fi_getparams", true),
    LIB_SYMBOL(freeparams, "fi_freeparams", true),
    LIB_SYMBOL(open, "fi_open", true),
    {0},
};

int fabric_lib_open(struct fabric_lib *lib, const char *const *names, struct shk_error *err)
{
    struct shk_library desc = {
        .names = names ? names : lib_names,
        .symbols = lib_symbols,
    };
    uint32_t ours = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
    int rc = 0;

    memset(lib, 0, sizeof *lib);
    rc = shk_dynlib_open(&lib->dynlib, &desc, &lib->api, err);
    if (rc < 0)
        return rc;
    lib->version = lib->api.version();
    snprintf(lib->text, sizeof lib->text, "%u.%u", FI_MAJOR(lib->version), FI_MINOR(lib->version));
    if (FI_VERSION_GE(lib->version, ours))
        lib->version = ours;
    return 0;
}

void fabric_lib_close(struct fabric_lib *lib)
{
    shk_dynlib_close(&lib->dynlib, false);
}

int fabric_error(const struct fabric_lib *lib, const char *call, ssize_t rc, struct shk_error *err)
{
    int errnum = rc < 0 ? (int)-rc : FI_EOTHER;

    return shk_error_set(err, errnum, "%s: %s", call, lib->api.strerror(errnum));
}
