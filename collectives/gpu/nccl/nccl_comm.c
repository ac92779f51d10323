#include "collectives/gpu/nccl/nccl_comm.h"
#include "collectives/ranks/agree.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMM_KEY_ID "nccl.id"

/* Log files are read up to this size: initialisation of a large node writes some hundred KiB. */
#define COMM_LOG_MAX ((size_t)8 << 20)

static struct nccl_comm the_comm = {.log_fd = -1};

/* TUNING writes a line per operation, REG one per operation whose buffer is registered, which would
 * cost time where figures are measured that are to be compared. */
static int comm_log_start(const struct gpu_rank *g)
{
    const char *level = getenv(shk_variable("nccl-log"));
    char path[64];
    int fd = memfd_create("nccl-log", 0);

    if (fd < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!level || strcmp(level, "TRACE") != 0)
        (void)setenv(shk_variable("nccl-log"), "INFO", 1);
    (void)setenv(shk_variable("nccl-log-parts"),
                 g->run->options->proof   ? "INIT,ENV,GRAPH,P2P,SHM,NET,NVLS,REG,TUNING"
                 : g->run->options->brief ? "INIT,ENV,GRAPH,P2P,SHM,NET,NVLS,REG"
                                          : "INIT,ENV,GRAPH,P2P,SHM,NET,NVLS",
                 1);
    (void)setenv(shk_variable("nccl-log-file"), path, 1);
    return fd;
}

int nccl_ok(struct gpu_rank *g, int status, struct shk_error *err, const char *call)
{
    const struct nccl_api *api = &g->comm->lib.api;
    const char *last = NULL;
    struct nccl_log log;

    if (status == NCCL_OK || status == NCCL_IN_PROGRESS)
        return 0;
    nccl_comm_log(g->comm, &log);
    if (api->last_error)
        last = api->last_error(g->comm->comm);
    if (log.warning[0] != '\0')
        last = log.warning;
    (void)shk_error_set(err, EIO, "%s: %s%s%.200s", call, api->error_string(status),
                        last && *last != '\0' ? ": " : "", last ? last : "");
    return gpu_fail(g, GPU_CAUSE_NCCL, -EIO);
}

static int comm_versions(struct gpu_rank *g, struct shk_error *err)
{
    bool hip = g->run->path->vendor == GPU_HIP;
    char version[24];
    int rc = 0;

    nccl_version_text(g->comm->lib.version, version, sizeof version);
    rc = shk_agree_put(g->job, hip ? "RCCL version" : "NCCL version", version, err);

    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    if (rc == 0 && shk_agree_check(g->job, err) != 0)
        rc = gpu_fail(g, GPU_CAUSE_NCCL_VERSIONS, -EPROTO);
    return rc;
}

static int comm_join(struct gpu_rank *g, struct shk_error *err)
{
    const struct nccl_api *api = &g->comm->lib.api;
    struct nccl_id id;
    size_t len = 0;
    int rc = 0;

    memset(&id, 0, sizeof id);
    if (g->rank == 0) {
        shk_crumb_call("ncclGetUniqueId");
        rc = nccl_ok(g, api->unique_id(&id), err, "ncclGetUniqueId");
        if (rc == 0)
            rc = shk_job_put(g->job, COMM_KEY_ID, &id, sizeof id, err);
    }
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    if (rc == 0)
        rc = shk_job_get(g->job, 0, COMM_KEY_ID, &id, sizeof id, &len, err);
    if (rc == 0) {
        shk_crumb_call("ncclCommInitRank");
        rc = nccl_ok(g, api->init_rank(&g->comm->comm, (int)g->ranks, id, (int)g->rank), err,
                     "ncclCommInitRank");
    }
    shk_crumb_call("ncclAllReduce");
    return rc;
}

static int comm_publish(struct gpu_rank *g, struct shk_error *err)
{
    char version[24];
    char text[640];

    nccl_version_text(g->comm->lib.version, version, sizeof version);
    snprintf(text, sizeof text, "%s\n%s", version, g->comm->lib.dynlib.path);
    return shk_job_put(g->job, GPU_KEY_LIBRARY, text, strlen(text) + 1, err);
}

static size_t comm_log_bytes(const struct nccl_comm *comm)
{
    struct stat st;

    return comm->log_fd >= 0 && fstat(comm->log_fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size
                                                                                : 0;
}

int nccl_comm_open(struct gpu_rank *g, struct shk_error *err)
{
    int rc = 0;

    g->comm = &the_comm;
    g->comm->log_fd = comm_log_start(g);
    rc = nccl_lib_open(&g->comm->lib, g->run->path->vendor == GPU_HIP, g->run->tweaks->nccl_names,
                       err);
    if (rc == -ENOENT)
        return gpu_fail(g, GPU_CAUSE_NA, rc);
    if (rc < 0)
        return gpu_fail(g, GPU_CAUSE_NCCL, rc);
    shk_crumb_library(g->comm->lib.dynlib.path);
    rc = comm_publish(g, err);
    if (rc == 0)
        rc = comm_versions(g, err);
    if (rc == 0)
        rc = comm_join(g, err);
    g->comm->log_opened = comm_log_bytes(g->comm);
    g->comm->log_from = g->comm->log_opened;
    return rc;
}

/* What was before in these ranks may not have needed NCCL. */
int nccl_comm_again(struct gpu_rank *g, struct shk_error *err)
{
    if (!the_comm.comm)
        return nccl_comm_open(g, err);
    g->comm = &the_comm;
    g->comm->log_from = comm_log_bytes(g->comm);
    shk_crumb_library(g->comm->lib.dynlib.path);
    shk_crumb_call("ncclAllReduce");
    return comm_publish(g, err);
}

int nccl_comm_memory(struct gpu_rank *g, bool slots, struct shk_error *err)
{
    const struct nccl_api *api = &g->comm->lib.api;
    void *at = NULL;
    int rc = gpu_heap_plan(g, slots, err);

    if (rc == 0 && api->alloc && api->release) {
        shk_crumb_call("ncclMemAlloc");
        rc = nccl_ok(g, api->alloc(&at, g->heap.bytes), err, "ncclMemAlloc");
        g->base[g->rank] = (gpu_ptr)(uintptr_t)at;
        g->comm->library_memory = true;
    } else if (rc == 0) {
        rc = gpu_ok(g, g->gpu.api.alloc(&g->base[g->rank], g->heap.bytes), err,
                    "%zu bytes on GPU %d", g->heap.bytes, g->ordinal);
    }
    return rc == 0 ? gpu_heap_prepare(g, err) : rc;
}

/* The variable by which somebody turned symmetric memory off; NULL: none did. */
static const char *comm_turned_off(const char **value_p)
{
    static const char *const uses[][2] = {{"symmetric-memory.wanted", "0"},
                                          {"symmetric-memory.prevented", "1"}};

    for (size_t i = 0; i < 2; i++) {
        for (const char *const *v = shk_variables(uses[i][0]); *v; v++) {
            *value_p = getenv(*v);
            if (*value_p && strcmp(*value_p, uses[i][1]) == 0)
                return *v;
        }
    }
    return NULL;
}

int nccl_comm_no_window(struct gpu_rank *g, struct shk_error *err, const char *why)
{
    char pairs[400];
    unsigned hosts = gpu_device_hosts(g->job);
    const char *value = NULL, *off = comm_turned_off(&value);

    if (hosts > 1) {
        return gpu_fail(
            g, GPU_CAUSE_NA,
            shk_error_set(err, ENOTSUP, "no symmetric memory across %u nodes: %s", hosts, why));
    }
    if (gpu_access_lacking(g, GPU_ACCESS_REFUSED, pairs, sizeof pairs) > 0) {
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, ENOTSUP,
                                      "no symmetric memory: the driver offers no peer access "
                                      "between the GPUs %s",
                                      pairs));
    }
    if (off) {
        return gpu_fail(
            g, GPU_CAUSE_NA,
            shk_error_set(err, ENOTSUP, "no symmetric memory: %s=%s turns it off", off, value));
    }
    return gpu_fail(g, GPU_CAUSE_NO_WINDOW,
                    shk_error_set(err, ENOTSUP, "no symmetric memory: %s", why));
}

/* Ranks that reach each other by load and store must be all. */
static int comm_team(struct gpu_rank *g, struct shk_error *err)
{
    int ranks =
        g->comm->lib.api.team_lsa ? g->comm->lib.api.team_lsa(g->comm->comm).ranks : (int)g->ranks;
    char why[128];

    if (ranks == (int)g->ranks) {
        return 0;
    }
    snprintf(why, sizeof why,
             "NCCL makes teams of %d of the %u ranks that reach each other by load and store",
             ranks, g->ranks);
    return nccl_comm_no_window(g, err, why);
}

int nccl_comm_window(struct gpu_rank *g, struct shk_error *err)
{
    struct nccl_comm *comm = g->comm;
    struct nccl_log log;
    char version[24];
    int rc = 0;

    if (!comm->lib.api.window_register || !comm->lib.api.window_deregister) {
        nccl_version_text(comm->lib.version, version, sizeof version);
        return gpu_fail(
            g, GPU_CAUSE_NA,
            shk_error_set(err, ENOSYS, "NCCL %s has no windows: they came with 2.27", version));
    }
    rc = gpu_access_tell(g, err);
    if (rc < 0)
        return rc;
    shk_crumb_call("ncclCommWindowRegister");
    rc = nccl_ok(g,
                 comm->lib.api.window_register(comm->comm, (void *)(uintptr_t)g->base[g->rank],
                                               g->heap.bytes, &comm->window, NCCL_WINDOW_SYMMETRIC),
                 err, "ncclCommWindowRegister");
    if (rc < 0)
        return rc;
    nccl_comm_log(comm, &log);
    if (!comm->window)
        return nccl_comm_no_window(g, err, "the registration succeeded without a window");
    if (log.symmetric_no)
        return nccl_comm_no_window(g, err, "NCCL's log says that it is not supported");
    return comm_team(g, err);
}

int nccl_comm_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err)
{
    static const int types[SHK_GPU_TYPE_COUNT] = {
        [SHK_GPU_F32] = 7, [SHK_GPU_F16] = 6, [SHK_GPU_BF16] = 9, [SHK_GPU_I32] = 2};
    gpu_ptr base = g->base[g->rank];
    int status = g->comm->lib.api.all_reduce((const void *)(uintptr_t)(base + op->in),
                                             (void *)(uintptr_t)(base + op->out), op->count,
                                             types[op->type], NCCL_SUM, g->comm->comm, g->stream);

    return status == NCCL_OK ? 0 : nccl_ok(g, status, err, "ncclAllReduce");
}

static void comm_release(struct gpu_rank *g, gpu_ptr at)
{
    shk_crumb_call("ncclMemFree");
    if (at != 0 && g->comm->library_memory)
        (void)g->comm->lib.api.release((void *)(uintptr_t)at);
    else if (at != 0)
        (void)g->gpu.api.release(at);
}

/* Memory that ncclAllReduce was given while a graph was captured is registered with the
 * communicator until the graph is gone, which NCCL notices later: other memory must not get its
 * address before. */
void nccl_comm_leave(struct gpu_rank *g)
{
    struct nccl_comm *comm = g->comm;
    bool window = comm->window;

    if (window) {
        shk_crumb_call("ncclCommWindowDeregister");
        (void)comm->lib.api.window_deregister(comm->comm, comm->window);
        comm->window = NULL;
    }
    if (window || comm->unreleased != 0)
        comm_release(g, g->base[g->rank]);
    else
        comm->unreleased = g->base[g->rank];
    if (comm->pointers != 0) {
        (void)g->gpu.api.release(comm->pointers);
        comm->pointers = 0;
    }
}

void nccl_comm_close(struct gpu_rank *g)
{
    nccl_comm_leave(g);
    comm_release(g, g->comm->unreleased);
    shk_crumb_call("ncclCommDestroy");
    (void)g->comm->lib.api.destroy(g->comm->comm);
}

void nccl_comm_log(const struct nccl_comm *comm, struct nccl_log *log)
{
    size_t len = comm_log_bytes(comm);
    size_t from = 0;
    size_t opened = 0;
    char *text = MAP_FAILED;

    memset(log, 0, sizeof *log);
    if (len == 0)
        return;
    len = len < COMM_LOG_MAX ? len : COMM_LOG_MAX;
    from = comm->log_from < len ? comm->log_from : len;
    opened = comm->log_opened < from ? comm->log_opened : from;
    text = mmap(NULL, len, PROT_READ, MAP_PRIVATE, comm->log_fd, 0);
    if (text != MAP_FAILED) {
        nccl_log_add(log, text, opened, NCCL_LOG_ALL);
        nccl_log_add(log, text + opened, from - opened,
                     comm->window ? NCCL_LOG_WINDOWS : NCCL_LOG_CONNECTION);
        nccl_log_add(log, text + from, len - from, NCCL_LOG_ALL);
        munmap(text, len);
    }
}

static json_t *prove_choices(const struct nccl_log *log)
{
    json_t *choices = json_array();

    for (unsigned i = 0; i < log->choices; i++) {
        const struct nccl_log_choice *choice = &log->choice[i];

        (void)json_array_append_new(choices, json_pack("{s:I, s:b, s:s}", "bytes",
                                                       (json_int_t)choice->bytes, "symmetric",
                                                       (int)choice->symmetric, "how", choice->how));
    }
    return choices;
}

int nccl_comm_prove(struct gpu_rank *g, struct shk_error *err)
{
    struct nccl_log log;
    json_t *proof = NULL;
    char *text = NULL;
    int rc = 0;

    nccl_comm_log(g->comm, &log);
    proof =
        json_pack("{s:i, s:i, s:i, s:i, s:s, s:s, s:b, s:b, s:b, s:i, s:s, s:o}", "p2p",
                  (int)log.p2p, "shm", (int)log.shm, "net", (int)log.net, "gdr", (int)log.gdr,
                  "via", log.via, "net_name", log.net_name, "symmetric_va", (int)log.symmetric_va,
                  "all_p2p", (int)log.all_p2p, "nvls", (int)log.nvls, "registered",
                  (int)log.registered, "warning", log.warning, "choices", prove_choices(&log));
    text = proof ? json_dumps(proof, JSON_COMPACT) : NULL;
    if (!text)
        rc = shk_error_set(err, ENOMEM, "out of memory");
    else
        rc = shk_job_put(g->job, GPU_KEY_PROOF, text, strlen(text) + 1, err);
    if (rc == 0 && log.kept_len > 0) {
        /* of no use without the proof, and no loss when there is no room beside it */
        (void)!shk_job_put(g->job, GPU_KEY_LOG, log.kept, log.kept_len + 1, NULL);
    }
    free(text);
    json_decref(proof);
    return rc;
}
