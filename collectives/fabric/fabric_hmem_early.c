/* GPU memory that libfabric cannot serve: learnt in a child, before any rank opens a GPU. */
#include "collectives/fabric/fabric.h"
#include "collectives/fabric/fabric_private.h"
#include "core/run/isolate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loading libfabric with its providers takes tenths of a second; it has been running beside the
 * transports on GPUs when it is waited for. */
#define EARLY_MS 5000U

struct shk_hmem_early {
    const struct shk_collective_options *options;
    const char *const *names;
    bool hip;
    struct shk_isolate_pending *pending;
};

/* Registers a page of the host as if it were a GPU's: what is not there for this kind of memory
 * does not look at the address. 0: it is there. */
static int early_register(const struct fabric_lib *lib, const struct fi_info *info,
                          enum fi_hmem_iface iface)
{
    static _Alignas(4096) char page[4096];
    struct iovec range = {.iov_base = page, .iov_len = sizeof page};
    struct fi_mr_attr attr = {
        .mr_iov = &range,
        .iov_count = 1,
        .access = FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE,
        .requested_key = 1,
        .iface = iface,
    };
    struct fid_fabric *fabric = NULL;
    struct fid_domain *domain = NULL;
    struct fid_mr *mr = NULL;

    shk_crumb_call("fi_fabric");
    if (lib->api.fabric(info->fabric_attr, &fabric, NULL) != 0)
        return 0;
    shk_crumb_call("fi_domain");
    if (fi_domain(fabric, (struct fi_info *)info, &domain, NULL) != 0)
        return 0;
    shk_crumb_call("fi_mr_regattr");
    return fi_mr_regattr(domain, &attr, 0, &mr);
}

/* The text of why not; false: it is there, or cannot be told. The same tests in the same order as
 * of a rank that has opened its GPU. */
static bool early_lacks(const struct shk_hmem_early *early, struct shk_error *err)
{
    enum fi_hmem_iface iface = early->hip ? FI_HMEM_ROCR : FI_HMEM_CUDA;
    struct fi_info *info = NULL;
    struct fabric_hmem hmem = {0};
    struct fabric_lib lib = {0};
    struct shk_job *job = NULL;
    int rc = fabric_lib_open(&lib, early->names, err);

    if (rc == 0) {
        shk_crumb_library(lib.dynlib.path);
        rc = shk_job_create(&job, 1, 0, err);
    }
    if (rc < 0)
        return false;
    shk_job_join(job, 0);
    shk_crumb_attach(NULL, NULL);
    rc = fabric_hmem_choose(&lib, early->options->provider, job, &hmem, &info, err);
    if (rc < 0)
        return rc == -FI_ENODATA;
    if (fabric_hmem_library_knows(&lib, iface))
        return false;
    rc = early_register(&lib, info, iface);
    return fabric_hmem_lacks(&lib, iface, rc, err);
}

/* In the child. */
static int early_ask(void *arg, json_t **result_p, struct shk_error *err)
{
    struct shk_error why = {{0}};

    (void)err;
    *result_p =
        early_lacks(arg, &why) ? shk_json_text(why.text, strlen(why.text)) : json_string("");
    return *result_p ? 0 : -FI_ENOMEM;
}

struct shk_hmem_early *shk_hmem_early_begin(const struct shk_collective_options *options,
                                            const char *const *names, bool hip)
{
    struct shk_hmem_early *early = calloc(1, sizeof *early);
    struct shk_isolate_job job = {
        .name = "FI_HMEM of libfabric", .fn = early_ask, .arg = early, .deadline_ms = EARLY_MS};

    if (!early)
        return NULL;
    *early = (struct shk_hmem_early){.options = options, .names = names, .hip = hip};
    if (shk_isolate_begin(&early->pending, &job, NULL) < 0) {
        free(early);
        return NULL;
    }
    return early;
}

bool shk_hmem_early_end(struct shk_hmem_early *early, char *why, size_t size)
{
    struct shk_isolate_result result = {0};
    const char *text = NULL;

    why[0] = '\0';
    if (!early)
        return false;
    shk_isolate_end(early->pending, &result);
    text = result.outcome == SHK_CHILD_OK ? json_string_value(result.result) : NULL;
    if (text)
        snprintf(why, size, "%s", text);
    shk_isolate_result_clear(&result);
    free(early);
    return why[0] != '\0';
}
