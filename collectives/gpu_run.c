#include "collectives/gpu_private.h"
#include "collectives/job_private.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Memory of a rank is more than twice as much. */
#define GPU_MAX_BYTES ((size_t)1 << 35)

static const struct gpu_path *const paths[] = {
    &gpu_path_peer,        &gpu_path_lsa,  &gpu_path_nccl,
    &gpu_path_nccl_window, &gpu_path_rccl, &gpu_path_multimem,
};

static void run_phase(const struct gpu_rank *g, enum shk_phase phase)
{
    shk_job_set_phase(g->job, phase, 0);
    if (g->run->tweaks->at_phase != NULL) {
        g->run->tweaks->at_phase(g->job, phase, g->run->tweaks->arg);
    }
}

static int run_measure(struct gpu_rank *g, struct shk_error *err)
{
    struct gpu_result *result = shk_job_result(g->job, g->rank);
    struct gpu_op op = {.type = SHK_GPU_I32, .count = 1, .in = g->heap.send, .out = g->heap.recv};
    struct gpu_wrong wrong = {0};
    int rc = 0;

    run_phase(g, SHK_PHASE_WARMUP);
    rc = gpu_once(g, &op, &wrong, err);
    run_phase(g, SHK_PHASE_ALLREDUCE);
    if (rc == 0 && !g->run->proof) {
        rc = gpu_conform(g, result, err);
    }
    if (rc == 0) {
        rc = gpu_sweep(g, result, err);
    }
    if (rc == 0 && g->run->path->extra != NULL) {
        rc = g->run->path->extra(g, err);
    }
    return rc;
}

static int run_opened(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_path *path = g->run->path;
    int rc = path->open != NULL ? path->open(g, err) : 0;

    if (rc == 0) {
        run_phase(g, SHK_PHASE_REGISTER);
        rc = path->memory(g, err);
    }
    if (rc == 0) {
        rc = run_measure(g, err);
    }
    if (rc == 0) {
        run_phase(g, SHK_PHASE_TEARDOWN);
        rc = shk_job_fence(g->job, 0, err); /* no work of anyone is in flight after this */
    }
    if (rc == 0) {
        path->close(g);
    }
    return rc;
}

/* A kernel must give up, and say for whom it waited, before the supervisor ends everything. */
static uint64_t run_kernel_timeout(const struct gpu_run *run)
{
    uint64_t ms = run->options->deadline_ms / 3;

    if (run->tweaks->kernel_timeout_ms != 0) {
        ms = run->tweaks->kernel_timeout_ms;
    } else if (ms == 0 || ms > 20000) {
        ms = 20000;
    }
    return ms * 1000000;
}

/* One rank, in its own process. */
static int run_worker(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct gpu_rank g = {
        .run = arg, .job = job, .rank = shk_job_rank(job), .ranks = shk_job_size(job)};
    int rc = 0;

    g.kernel_timeout_ns = run_kernel_timeout(g.run);
    run_phase(&g, SHK_PHASE_START);
    run_phase(&g, SHK_PHASE_OPEN);
    rc = gpu_device_open(&g, err);
    return rc == 0 ? run_opened(&g, err) : rc;
}

static int run_check(const struct shk_collective_options *options, struct shk_error *err)
{
    if (options->min_bytes < 4 || options->min_bytes > options->max_bytes ||
        options->max_bytes > GPU_MAX_BYTES) {
        return shk_error_set(err, EINVAL, "sizes %zu:%zu: from 4 to %zu bytes are possible",
                             options->min_bytes, options->max_bytes, GPU_MAX_BYTES);
    }
    return 0;
}

static int run_crew(struct gpu_run *run, struct shk_facts *facts, struct shk_error *err)
{
    const struct shk_collective_options *options = run->options;
    struct shk_crew crew = {
        .name = run->path->name,
        .deadline_ms = options->deadline_ms,
        .work = run_worker,
        .arg = run,
        .progress = options->progress,
        .progress_arg = options->progress_arg,
    };
    struct shk_crew_result result = {.rank = -1};
    struct shk_error why = {{0}};
    struct shk_job *job = NULL;
    int rc = run_check(options, &why);

    if (rc == 0) {
        rc = shk_job_create(&job, options->ranks, sizeof(struct gpu_result), &why);
    }
    if (rc == 0) {
        rc = shk_crew_run(&crew, job, &result, &why);
    }
    if (rc == 0) {
        rc = gpu_facts(run, facts, job, &result, err);
    } else {
        rc = gpu_facts_not_run(run, facts, "failed", why.text, err);
    }
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    return rc;
}

/* How the library did each size, from a second run whose log says so: the line per operation would
 * have cost time in the first. */
static int run_proof(struct gpu_run *run, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_facts *second = NULL;
    struct shk_fact proof;
    char key[64];
    int rc = 0;

    snprintf(key, sizeof(key), "collective.%s.status", run->path->name);
    if (!run->path->nccl || run->path->kernels || run->options->brief ||
        shk_facts_get_text(facts, key) == NULL ||
        strcmp(shk_facts_get_text(facts, key), "ok") != 0) {
        return 0;
    }
    second = shk_facts_create();
    if (second == NULL) {
        return shk_error_set(err, ENOMEM, "out of memory");
    }
    run->proof = true;
    rc = run_crew(run, second, err);
    snprintf(key, sizeof(key), "collective.%s.proof", run->path->name);
    if (rc == 0 && shk_facts_get(second, key, &proof) && proof.state == SHK_FACT_PRESENT) {
        rc = shk_facts_present(facts, key, json_incref(proof.value), NULL, proof.source);
    } else if (rc == 0) {
        char reason[64];

        snprintf(reason, sizeof(reason), "collective.%s.reason", run->path->name);
        rc = shk_facts_failed(facts, key, "NCCL_DEBUG_FILE", "second run: %s",
                              shk_facts_get_text(second, reason) != NULL
                                  ? shk_facts_get_text(second, reason)
                                  : "no log");
    }
    shk_facts_destroy(second);
    return rc;
}

int shk_gpu_run(const char *name, const struct shk_collective_options *options,
                const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts, struct shk_error *err)
{
    static const struct shk_gpu_tweaks none = {0};
    struct gpu_run run = {
        .options = options,
        .tweaks = tweaks != NULL ? tweaks : &none,
        .deadline_ns = options->deadline_ms != 0
                           ? shk_job_now_ns() + options->deadline_ms * UINT64_C(1000000)
                           : 0,
    };
    size_t i = 0;
    int rc = 0;

    for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (strcmp(paths[i]->name, name) == 0) {
            run.path = paths[i];
        }
    }
    if (run.path == NULL) {
        return shk_error_set(err, EINVAL, "there is no GPU transport %s", name);
    }
    rc = run_crew(&run, facts, err);
    return rc == 0 ? run_proof(&run, facts, err) : rc;
}

#define TRANSPORT(symbol_, path_)                                                                  \
    static int run_##symbol_(const struct shk_collective_options *options,                         \
                             struct shk_facts *facts, struct shk_error *err)                       \
    {                                                                                              \
        return shk_gpu_run(path_, options, NULL, facts, err);                                      \
    }

TRANSPORT(peer, "peer")
TRANSPORT(lsa, "lsa")
TRANSPORT(nccl, "nccl")
TRANSPORT(nccl_window, "nccl-window")
TRANSPORT(rccl, "rccl")
TRANSPORT(multimem, "multimem")

const struct shk_transport shk_transport_peer = {
    .name = "peer",
    .doc = "verified all-reduce on GPUs by own kernels through CUDA IPC, without NCCL",
    .run = run_peer,
};
const struct shk_transport shk_transport_lsa = {
    .name = "lsa",
    .doc = "the same kernels through the pointers of an NCCL symmetric window",
    .run = run_lsa,
};
const struct shk_transport shk_transport_nccl = {
    .name = "nccl",
    .doc = "verified ncclAllReduce as frameworks call it",
    .run = run_nccl,
};
const struct shk_transport shk_transport_nccl_window = {
    .name = "nccl-window",
    .doc = "verified ncclAllReduce on symmetric windows",
    .run = run_nccl_window,
};
const struct shk_transport shk_transport_rccl = {
    .name = "rccl",
    .doc = "verified ncclAllReduce of RCCL on AMD GPUs",
    .run = run_rccl,
};
const struct shk_transport shk_transport_multimem = {
    .name = "multimem",
    .doc = "verified all-reduce by NVLink switches (NVLS), through multicast memory",
    .run = run_multimem,
};
