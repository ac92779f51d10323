/* The all-reduce on GPU memory: what is asked of libfabric, and what it answers. */
#include "collectives/fabric/fabric_private.h"
#include "collectives/gpu/gpu_memory.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* bool, since libfabric 1.18; what older headers end with is the one before. */
#define HMEM_CUDA_PERMITTED ((int)FI_OPT_XPU_TRIGGER + 1)

static const char *const hmem_p2p_names[] = {
    [FI_HMEM_P2P_ENABLED] = "enabled: the provider decides",
    [FI_HMEM_P2P_REQUIRED] = "required",
    [FI_HMEM_P2P_PREFERRED] = "preferred",
    [FI_HMEM_P2P_DISABLED] = "disabled: through host memory",
};

int fabric_hmem_fail(struct shk_job *job, const char *cause, int rc)
{
    char have[32];
    size_t len = 0;

    if (shk_job_get(job, shk_job_rank(job), FABRIC_CAUSE, have, sizeof have, &len, NULL) != 0) {
        int put = shk_job_put(job, FABRIC_CAUSE, cause, strlen(cause) + 1, NULL);

        return put < 0 ? put : rc;
    }
    return rc;
}

void fabric_hmem_want(struct fi_info *hints)
{
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
}

/* The first that is of the provider which host memory uses; else the first. */
static const struct fi_info *hmem_pick(const struct fi_info *list, const char *usual)
{
    const struct fi_info *info = NULL;

    for (info = list; info != NULL; info = info->next) {
        if (strcmp(info->fabric_attr->prov_name, usual) == 0)
            return info;
    }
    return list;
}

/* Name of the provider that host memory uses; "" when none fits that. */
static void hmem_usual(const struct fabric_lib *lib, const char *provider, char *buf, size_t size)
{
    struct fi_info *info = NULL;

    buf[0] = '\0';
    if (fabric_choose(lib, provider, &info, NULL, NULL) == 0) {
        snprintf(buf, size, "%s", info->fabric_attr->prov_name);
        lib->api.freeinfo(info);
    }
}

static int hmem_list(const struct fabric_lib *lib, const char *provider, struct fi_info **list_p)
{
    struct fi_info *hints = fabric_hints(lib, provider);
    int rc = -FI_ENOMEM;

    *list_p = NULL;
    if (hints) {
        fabric_hmem_want(hints);
        shk_crumb_call("fi_getinfo with FI_HMEM");
        rc = lib->api.getinfo(lib->version, NULL, NULL, 0, hints, list_p);
        lib->api.freeinfo(hints);
    }
    return rc == 0 && !*list_p ? -FI_ENODATA : rc;
}

int fabric_hmem_choose(const struct fabric_lib *lib, const char *provider, struct shk_job *job,
                       struct fabric_hmem *hmem, struct fi_info **info_p, struct shk_error *err)
{
    struct fi_info *list = NULL;
    int rc = hmem_list(lib, provider, &list);

    if (rc != 0) {
        return fabric_hmem_fail(job, "na",
                                shk_error_set(err, -rc, "%s%s of libfabric %s offers %sFI_HMEM: %s",
                                              provider ? "provider " : "no provider",
                                              provider ? provider : "", lib->text,
                                              provider ? "no " : "", lib->api.strerror(-rc)));
    }
    hmem_usual(lib, provider, hmem->usual, sizeof hmem->usual);
    *info_p = fabric_lazy(lib, hmem_pick(list, hmem->usual));
    lib->api.freeinfo(list);
    return *info_p ? 0 : shk_error_set(err, FI_ENOMEM, "out of memory");
}

json_t *fabric_hmem_offer(const struct fabric_lib *lib, const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;
    struct fi_info *list = NULL;
    int rc = hmem_list(lib, provider, &list);
    char text[256];

    if (rc == 0) {
        lib->api.freeinfo(list);
        snprintf(text, sizeof text, "provider %.64s offers FI_HMEM: see fabric-hmem", provider);
    } else {
        snprintf(text, sizeof text, "provider %.64s of libfabric %s offers no FI_HMEM: %.64s",
                 provider, lib->text, lib->api.strerror(-rc));
    }
    return json_pack("{s:s, s:o}", "status", rc == 0 ? "offered" : "na", "reason",
                     shk_json_text(text, strlen(text)));
}

/* A provider of one node only, in a job of several? */
static int hmem_reach(struct shk_job *job, const struct fi_info *info, struct shk_error *err)
{
    json_t *devices = shk_gpu_memory_devices(job);
    const char *first = NULL;
    const json_t *row = NULL;
    bool apart = false;
    size_t i = 0;

    json_array_foreach(devices, i, row)
    {
        const char *host = json_string_value(json_object_get(row, "host"));

        first = i == 0 ? host : first;
        apart = apart || (host && first && strcmp(host, first) != 0);
    }
    json_decref(devices);
    if (!apart || strcmp(info->fabric_attr->prov_name, "shm") != 0)
        return 0;
    return fabric_hmem_fail(job, "na",
                            shk_error_set(err, FI_EADDRNOTAVAIL,
                                          "of the providers that offer FI_HMEM the first is shm, "
                                          "which does not leave the node"));
}

int fabric_hmem_open(struct fabric_hmem *hmem, const struct fi_info *info, struct shk_job *job,
                     const struct shk_gpu_tweaks *tweaks, struct shk_error *err)
{
    int rc = shk_gpu_memory_open(&hmem->gpu, job, tweaks, err);

    if (rc < 0)
        return rc;
    hmem->iface = hmem->gpu->hip ? FI_HMEM_ROCR : FI_HMEM_CUDA;
    return hmem_reach(job, info, err);
}

static const char *hmem_iface_name(enum fi_hmem_iface iface)
{
    return iface == FI_HMEM_CUDA ? "FI_HMEM_CUDA" : "FI_HMEM_ROCR";
}

/* Would the provider do without calls of CUDA, as NCCL's plugin asks it to? It may make them here.
 */
static const char *hmem_cuda_calls(struct fid_ep *ep)
{
    bool permitted = false;
    int rc =
        fi_setopt(&ep->fid, FI_OPT_ENDPOINT, HMEM_CUDA_PERMITTED, &permitted, sizeof permitted);

    permitted = true;
    if (rc == 0) {
        rc =
            fi_setopt(&ep->fid, FI_OPT_ENDPOINT, HMEM_CUDA_PERMITTED, &permitted, sizeof permitted);
        return rc == 0 ? "not needed" : "not told";
    }
    return rc == -FI_EOPNOTSUPP ? "needed" : "not told";
}

void fabric_hmem_ask(struct fabric *fabric)
{
    struct fabric_hmem *hmem = fabric->hmem;
    bool cuda =
        hmem->iface == FI_HMEM_CUDA && FI_VERSION_GE(fabric->lib->api.version(), FI_VERSION(1, 18));
    int want = FI_HMEM_P2P_REQUIRED;
    int rc = 0;

    shk_crumb_call("fi_setopt of FI_OPT_FI_HMEM_P2P");
    rc = fi_setopt(&fabric->rail[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &want,
                   sizeof want);
    snprintf(hmem->answer, sizeof hmem->answer, "%s",
             rc == 0 ? "accepted" : fabric->lib->api.strerror(-rc));
    shk_crumb_call("fi_setopt of FI_OPT_CUDA_API_PERMITTED");
    hmem->cuda_calls = cuda ? hmem_cuda_calls(fabric->rail[0].ep) : "not told";
}

void fabric_hmem_answer(struct fabric *fabric)
{
    size_t len = sizeof(int);
    int have = -1;
    int rc = 0;

    shk_crumb_call("fi_getopt of FI_OPT_FI_HMEM_P2P");
    rc = fi_getopt(&fabric->rail[0].ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &have, &len);
    fabric->hmem->p2p = rc == 0 && have >= FI_HMEM_P2P_ENABLED && have <= FI_HMEM_P2P_DISABLED
                            ? hmem_p2p_names[have]
                            : "not told";
}

/* Only then its settings have such names; those of ROCm since 1.20. */
bool fabric_hmem_library_knows(const struct fabric_lib *lib, enum fi_hmem_iface iface)
{
    const struct fabric_api *api = &lib->api;
    const char *part = iface == FI_HMEM_CUDA ? "hmem_cuda" : "rocr_";
    struct fi_param *params = NULL;
    bool found = false;
    int count = 0;

    if (!api->getparams || !api->freeparams || api->getparams(&params, &count) != 0)
        return true;
    for (int i = 0; i < count; i++)
        found = found || (params[i].name && strcasestr(params[i].name, part));
    api->freeparams(params);
    return found;
}

static bool hmem_absent(int rc)
{
    return rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP;
}

bool fabric_hmem_lacks(const struct fabric_lib *lib, enum fi_hmem_iface iface, int rc,
                       struct shk_error *err)
{
    if (!hmem_absent(rc) || fabric_hmem_library_knows(lib, iface))
        return false;
    (void)shk_error_set(err, -rc, "libfabric %s (%s) was built without %s: fi_mr_regattr: %s",
                        lib->text, lib->dynlib.path, hmem_iface_name(iface),
                        lib->api.strerror(-rc));
    return true;
}

static int hmem_refused(const struct fabric *fabric, size_t bytes, int rc, struct shk_error *err)
{
    const struct fabric_lib *lib = fabric->lib;
    struct shk_job *job = fabric->wire.job;

    if (fabric_hmem_lacks(lib, fabric->hmem->iface, rc, err))
        return fabric_hmem_fail(job, "na", rc);
    (void)shk_error_set(err, -rc, "fi_mr_regattr of %zu B on GPU %d (%s, provider %s): %s", bytes,
                        fabric->hmem->gpu->device, hmem_iface_name(fabric->hmem->iface),
                        fabric->rail[0].info->fabric_attr->prov_name, lib->api.strerror(-rc));
    return fabric_hmem_fail(job, hmem_absent(rc) ? "hmem-interface" : "hmem-registration", rc);
}

int fabric_hmem_register(struct fabric *fabric, struct fabric_rail *rail, void *base, size_t bytes,
                         uint64_t access, uint64_t key, struct fid_mr **mr_p, struct shk_error *err)
{
    struct iovec range = {.iov_base = base, .iov_len = bytes};
    struct fi_mr_attr attr = {
        .mr_iov = &range,
        .iov_count = 1,
        .access = access,
        .requested_key = key,
        .iface = fabric->hmem->iface,
    };
    int rc = 0;

    if (fabric->hmem->iface == FI_HMEM_CUDA)
        attr.device.cuda = fabric->hmem->gpu->device;
    shk_crumb_call("fi_mr_regattr");
    rc = fi_mr_regattr(rail->domain, &attr, 0, mr_p);
    return rc == 0 ? 0 : hmem_refused(fabric, bytes, rc, err);
}

json_t *fabric_hmem_json(const struct fabric *fabric)
{
    const struct fabric_hmem *hmem = fabric->hmem;

    return json_pack("{s:s, s:o, s:o, s:s, s:b, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "iface",
                     hmem_iface_name(hmem->iface), "driver",
                     shk_json_text(hmem->gpu->driver, strlen(hmem->gpu->driver)), "host_provider",
                     shk_json_text(hmem->usual, strlen(hmem->usual)), "sums",
                     hmem->gpu->kernels ? "on the GPU" : "on the host, through copies", "flushes",
                     (int)hmem->gpu->flushes, "requested", "p2p", "required", "cuda_calls", "none",
                     "effective", "p2p", hmem->p2p, "answer", hmem->answer, "cuda_calls",
                     hmem->cuda_calls);
}
