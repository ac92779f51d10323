#include "collectives/algorithm/sweep.h"
#include "collectives/gpu/gpu_private.h"
#include "collectives/ranks/job_private.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (g->run->tweaks->at_phase)
        g->run->tweaks->at_phase(g->job, phase, g->run->tweaks->arg);
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
    if (rc == 0 && !g->run->options->proof)
        rc = gpu_conform(g, result, err);
    if (rc == 0)
        rc = gpu_sweep(g, result, err);
    if (rc == 0 && g->run->path->extra)
        rc = g->run->path->extra(g, err);
    return rc;
}

int gpu_run_open(struct gpu_rank *g, struct shk_error *err)
{
    int rc = 0;

    run_phase(g, SHK_PHASE_START);
    run_phase(g, SHK_PHASE_OPEN);
    g->base = calloc(g->ranks, sizeof *g->base);
    if (!g->base)
        return shk_error_sys(err, ENOMEM, "%u ranks", g->ranks);
    rc = gpu_device_open(g, err);
    return rc == 0 && g->run->path->open ? g->run->path->open(g, err) : rc;
}

int gpu_run_again(struct gpu_rank *g, struct shk_error *err)
{
    int rc = 0;

    run_phase(g, SHK_PHASE_START);
    run_phase(g, SHK_PHASE_OPEN);
    memset(g->base, 0, g->ranks * sizeof *g->base);
    rc = gpu_device_again(g, err);
    return rc == 0 ? g->run->path->again(g, err) : rc;
}

int gpu_run_opened(struct gpu_rank *g, struct shk_error *err)
{
    int rc = 0;

    run_phase(g, SHK_PHASE_REGISTER);
    rc = g->run->path->memory(g, err);
    if (rc == 0)
        rc = run_measure(g, err);
    if (rc == 0) {
        run_phase(g, SHK_PHASE_TEARDOWN);
        rc = shk_job_fence(g->job, 0, err); /* no work of anyone is in flight after this */
    }
    return rc;
}

/* A kernel must give up, and say for whom it waited, before the supervisor ends everything. */
static uint64_t run_kernel_timeout(const struct gpu_run *run)
{
    uint64_t ms = run->options->deadline_ms / 3;

    if (run->tweaks->kernel_timeout_ms != 0)
        ms = run->tweaks->kernel_timeout_ms;
    else if (ms == 0 || ms > 20000)
        ms = 20000;
    return ms * 1000000;
}

struct gpu_rank gpu_run_rank(const struct gpu_run *run, struct shk_job *job)
{
    return (struct gpu_rank){.run = run,
                             .job = job,
                             .rank = shk_job_rank(job),
                             .ranks = shk_job_size(job),
                             .kernel_timeout_ns = run_kernel_timeout(run)};
}

/* One rank, in its own process. */
static int run_worker(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct gpu_rank g = gpu_run_rank(arg, job);
    int rc = gpu_run_open(&g, err);

    if (rc == 0)
        rc = gpu_run_opened(&g, err);
    if (rc == 0)
        g.run->path->close(&g);
    free(g.base);
    return rc;
}

int gpu_run_check(const struct shk_collective_options *options, struct shk_error *err)
{
    return shk_sweep_sizes(options->min_bytes, options->max_bytes, GPU_MAX_BYTES, err);
}

static int run_crew(struct gpu_run *run, struct shk_facts *facts, struct shk_error *err)
{
    const struct shk_collective_options *options = run->options;
    struct shk_crew crew = shk_crew_of(options, run->path->name, run_worker, run);
    struct shk_crew_result result = {.rank = -1};
    struct shk_error why = {{0}};
    struct shk_job *job = NULL;
    int rc = gpu_run_check(options, &why);

    if (rc == 0)
        rc = shk_job_create(&job, options->ranks, sizeof(struct gpu_result), &why);
    if (rc == 0)
        rc = shk_crew_run(&crew, job, &result, &why);
    if (rc == 0)
        rc = gpu_facts(run, facts, job, &result, err);
    else
        rc = gpu_facts_not_run(run, facts, "failed", why.text, err);
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    return rc;
}

const struct gpu_path *gpu_run_path(const char *name)
{
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (strcmp(paths[i]->name, name) == 0)
            return paths[i];
    }
    return NULL;
}

static bool run_wants_proof(const char *name, const struct shk_collective_options *options,
                            const struct shk_facts *facts)
{
    const struct gpu_path *path = gpu_run_path(name);
    const char *status = NULL;
    char key[64];

    snprintf(key, sizeof key, "collective.%s.status", name);
    status = shk_facts_get_text(facts, key);
    return path && path->nccl && !path->kernels && !options->brief && !options->proof && status &&
           strcmp(status, "ok") == 0;
}

/* Takes the proof of the second run over to the facts of the first. */
static int run_take_proof(const char *name, const struct shk_facts *second, struct shk_facts *facts)
{
    struct shk_fact proof;
    const char *why = NULL;
    char reason[64];
    char key[64];

    snprintf(key, sizeof key, "collective.%s.proof", name);
    if (shk_facts_get(second, key, &proof) && proof.state == SHK_FACT_PRESENT)
        return shk_facts_present(facts, key, json_incref(proof.value), NULL, proof.source);
    snprintf(reason, sizeof reason, "collective.%s.reason", name);
    why = shk_facts_get_text(second, reason);
    return shk_facts_failed(facts, key, shk_variable("nccl-log-file"), "second run: %s",
                            why ? why : "no log");
}

int shk_gpu_prove(const struct shk_transport *transport,
                  const struct shk_collective_options *options, const struct shk_measure *measure,
                  struct shk_facts *facts, struct shk_error *err)
{
    struct shk_collective_options again = *options;
    struct shk_facts *second = NULL;
    int rc = 0;

    if (!run_wants_proof(transport->name, options, facts))
        return 0;
    again.proof = true;
    second = shk_facts_create();
    if (!second)
        return shk_error_set(err, ENOMEM, "out of memory");
    rc = measure->run(transport, &again, second, measure->arg, err);
    if (rc == 0 && run_take_proof(transport->name, second, facts) < 0)
        rc = shk_error_set(err, ENOMEM, "out of memory");
    shk_facts_destroy(second);
    return rc;
}

static const struct shk_gpu_tweaks run_no_tweaks;

void gpu_run_init(struct gpu_run *run, const struct gpu_path *path,
                  const struct shk_collective_options *options, const struct shk_gpu_tweaks *tweaks)
{
    *run = (struct gpu_run){
        .path = path,
        .options = options,
        .tweaks = tweaks ? tweaks : &run_no_tweaks,
        .deadline_ns = options->deadline_ms != 0
                           ? shk_job_now_ns() + options->deadline_ms * UINT64_C(1000000)
                           : 0,
    };
}

/* struct shk_measure of ranks of this process. */
static int run_here(const struct shk_transport *transport,
                    const struct shk_collective_options *options, struct shk_facts *facts,
                    void *arg, struct shk_error *err)
{
    struct gpu_run run;

    gpu_run_init(&run, gpu_run_path(transport->name), options, arg);
    return run_crew(&run, facts, err);
}

int shk_gpu_run(const struct shk_transport *transport, const struct shk_collective_options *options,
                const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_measure here = {.run = run_here, .arg = (void *)tweaks};
    int rc = run_here(transport, options, facts, (void *)tweaks, err);

    return rc == 0 ? shk_gpu_prove(transport, options, &here, facts, err) : rc;
}

static int run_rank(const struct gpu_path *path, struct shk_job *job,
                    const struct shk_collective_options *options, struct shk_error *err)
{
    struct gpu_run run;
    int rc = gpu_run_check(options, err);

    gpu_run_init(&run, path, options, NULL);
    return rc == 0 ? run_worker(job, &run, err) : rc;
}

static int run_facts(const struct gpu_path *path, const struct shk_job *job,
                     const struct shk_crew_result *result,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err)
{
    struct gpu_run run;

    gpu_run_init(&run, path, options, NULL);
    return gpu_facts(&run, facts, job, result, err);
}

#define TRANSPORT(symbol_, name_, within_node_, doc_)                                              \
    static int run_##symbol_(const struct shk_collective_options *options,                         \
                             struct shk_facts *facts, struct shk_error *err)                       \
    {                                                                                              \
        return shk_gpu_run(&shk_transport_##symbol_, options, NULL, facts, err);                   \
    }                                                                                              \
    static int work_##symbol_(struct shk_job *job, const struct shk_collective_options *options,   \
                              struct shk_error *err)                                               \
    {                                                                                              \
        return run_rank(&gpu_path_##symbol_, job, options, err);                                   \
    }                                                                                              \
    static int facts_##symbol_(const struct shk_job *job, struct shk_crew_result *result,          \
                               const struct shk_collective_options *options,                       \
                               struct shk_facts *facts, struct shk_error *err)                     \
    {                                                                                              \
        return run_facts(&gpu_path_##symbol_, job, result, options, facts, err);                   \
    }                                                                                              \
    const struct shk_transport shk_transport_##symbol_ = {                                         \
        .name = name_,                                                                             \
        .doc = doc_,                                                                               \
        .run = run_##symbol_,                                                                      \
        .work = work_##symbol_,                                                                    \
        .result_bytes = sizeof(struct gpu_result),                                                 \
        .per_gpu = true,                                                                           \
        .within_node = within_node_,                                                               \
        .facts = facts_##symbol_,                                                                  \
    };
TRANSPORT(peer, "peer", true,
          "verified all-reduce on GPUs by own kernels through CUDA IPC, without NCCL")
TRANSPORT(lsa, "lsa", true, "the same kernels through the pointers of an NCCL symmetric window")
TRANSPORT(nccl, "nccl", false, "verified ncclAllReduce as frameworks call it")
TRANSPORT(nccl_window, "nccl-window", false, "verified ncclAllReduce on symmetric windows")
TRANSPORT(rccl, "rccl", false, "verified ncclAllReduce of RCCL on AMD GPUs")
TRANSPORT(multimem, "multimem", true,
          "verified all-reduce by NVLink switches (NVLS), through multicast memory")
