#include "collectives/fabric/fabric.h"
#include "collectives/algorithm/pairs.h"
#include "collectives/algorithm/sweep.h"
#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/crew.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Largest message: memory of a rank is about four times as much. */
#define FABRIC_MAX_BYTES ((size_t)1 << 34)

/* What the workers need from the caller. */
struct fabric_run {
    const char *transport;
    bool hmem; /* heaps in GPU memory */
    const struct shk_collective_options *options;
    const struct shk_fabric_tweaks *tweaks;
    uint64_t deadline_ns;
};

static void run_phase(const struct fabric_run *run, struct shk_job *job, enum shk_phase phase)
{
    shk_job_set_phase(job, phase, 0);
    if (run->tweaks->at_phase)
        run->tweaks->at_phase(job, phase, run->tweaks->at_phase_arg);
}

static int run_put_json(struct shk_job *job, const char *key, json_t *value, struct shk_error *err)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    int rc = text ? shk_job_put(job, key, text, strlen(text), err)
                  : shk_error_set(err, ENOMEM, "out of memory");

    free(text);
    json_decref(value);
    return rc;
}

/* The supervisor reads it from the job, also when this rank ends badly later. */
static int run_publish(struct shk_job *job, const struct fabric *fabric, struct shk_error *err)
{
    const struct fi_info *info = fabric->rail[0].info;
    const char *provider = info->fabric_attr->prov_name;
    int rc = run_put_json(job, FABRIC_IDENTITY, fabric_identity(fabric->lib, info), err);

    if (rc == 0 && fabric->queues.most != 0 && fabric->queues.universe != 0 && provider &&
        strstr(provider, "ofi_rxm")) {
        char text[320];

        fabric_queues_text(&fabric->queues, text, sizeof text);
        rc = shk_job_put(job, FABRIC_QUEUES, text, strlen(text), err);
    }
    if (rc == 0 && fabric->hmem)
        return run_put_json(job, FABRIC_HMEM, fabric_hmem_json(fabric), err);
    if (rc == 0 && shk_job_rank(job) == 0)
        rc = run_put_json(job, FABRIC_HMEM, fabric_hmem_offer(fabric->lib, info), err);
    return rc;
}

/* What the ranks can do with plain puts, and which algorithm makes the most of it. */
static int run_tune(const struct fabric_run *run, struct fabric *fabric,
                    struct shk_roofline *roofline, struct shk_tune *tune, struct shk_error *err)
{
    int rc = shk_roofline_run(&fabric->wire, run->options->max_bytes,
                              shk_tune_share(run->deadline_ns, SHK_ROOFLINE_BUDGET_NS), roofline);

    if (rc == 0) {
        rc = fabric_rails_measure(fabric, run->options->max_bytes,
                                  shk_tune_share(run->deadline_ns, SHK_ROOFLINE_BUDGET_NS));
    }
    if (rc == 0) {
        rc = shk_tune_run(&fabric->wire, run->options->min_bytes, run->options->max_bytes,
                          shk_tune_share(run->deadline_ns, SHK_TUNE_BUDGET_NS), tune);
    }
    if (rc < 0) {
        shk_job_fail(fabric->wire.job, -rc, fabric->wire.by_peer, fabric->wire.error.text);
        return shk_error_set(err, -rc, "%s", fabric->wire.error.text);
    }
    return 0;
}

_Static_assert(sizeof(struct shk_pairs_result) <= sizeof(struct shk_sweep_result), "result space");

/* Pairs of ranks instead of an all-reduce. */
static int run_pairs(const struct fabric_run *run, struct fabric *fabric, struct shk_error *err)
{
    int rc = shk_pairs_run(&fabric->wire, shk_tune_share(run->deadline_ns, SHK_PAIRS_BUDGET_NS),
                           shk_job_result(fabric->wire.job, fabric->wire.rank));

    if (rc < 0) {
        shk_job_fail(fabric->wire.job, -rc, fabric->wire.by_peer, fabric->wire.error.text);
        return shk_error_set(err, -rc, "%s", fabric->wire.error.text);
    }
    return 0;
}

static int run_measure(const struct fabric_run *run, struct fabric *fabric, struct shk_job *job,
                       struct shk_error *err)
{
    struct shk_sweep_result *result = shk_job_result(job, shk_job_rank(job));
    struct shk_tune tune = {0};
    struct shk_sweep_options options = {
        .min_bytes = run->options->min_bytes,
        .max_bytes = run->options->max_bytes,
        .deadline_ns = run->deadline_ns,
        .tune = &tune,
        .few = run->hmem && run->options->brief,
        .tamper = run->tweaks->tamper,
        .tamper_arg = run->tweaks->tamper_arg,
    };
    const char *mode = fabric->notify == SHK_NOTIFY_CQ_DATA ? "remote CQ data"
                                                            : "delivery complete, then a message";
    int rc = shk_job_put(job, FABRIC_NOTIFY, mode, strlen(mode) + 1, err);

    shk_crumb_call("%s", fabric->notify == SHK_NOTIFY_CQ_DATA ? "fi_writedata, fi_cq_read"
                                                              : "fi_writemsg, fi_cq_read");
    if (rc == 0) {
        run_phase(run, job, SHK_PHASE_WARMUP);
        rc = shk_sweep_warmup(&fabric->wire, err);
    }
    if (rc == 0 && run->options->pairs)
        return run_pairs(run, fabric, err);
    if (rc == 0)
        rc = run_tune(run, fabric, &result->roofline, &tune, err);
    if (rc == 0)
        rc = shk_sweep_run(&fabric->wire, &options, result, err);
    return rc;
}

static int run_connected(const struct fabric_run *run, struct fabric *fabric, struct shk_job *job,
                         const struct shk_allreduce_layout *layout, struct shk_error *err)
{
    enum fabric_step step = FABRIC_STEP_OTHER;
    int rc = 0;

    rc = fabric_open(fabric, err);
    if (rc == 0)
        rc = run_publish(job, fabric, err);
    if (rc == 0) {
        step = FABRIC_STEP_REGISTER;
        run_phase(run, job, SHK_PHASE_REGISTER);
        rc = fabric_register(fabric, layout->max_put, err);
    }
    if (rc < 0) {
        (void)fabric_refused(fabric, run->options->provider, step, rc, err);
        return rc;
    }
    run_phase(run, job, SHK_PHASE_EXCHANGE);
    rc = fabric_exchange(fabric, run->tweaks->notify, err);
    if (rc == 0)
        rc = run_measure(run, fabric, job, err);
    if (rc == 0) {
        run_phase(run, job, SHK_PHASE_TEARDOWN);
        rc = shk_job_fence(job, 0, err); /* a peer that closes early breaks what others still do */
    }
    return rc;
}

/* The devices to use. Pairs of ranks are compared with each other: over the first device alone, and
 * so are heaps in GPU memory. */
static unsigned run_rails(const struct fabric_run *run, const struct shk_job *job)
{
    unsigned wanted = run->options->rails;

    if (run->hmem || run->options->pairs || shk_job_size(job) == 1)
        return 1;
    return wanted == 0 || wanted > SHK_RAILS_MAX ? SHK_RAILS_MAX : wanted;
}

static int run_choose(const struct fabric_run *run, struct fabric *fabric,
                      const struct fabric_lib *lib, struct shk_job *job, struct shk_error *err)
{
    struct fabric_result *result = shk_job_result(job, shk_job_rank(job));
    const char *provider = run->options->provider;
    struct fi_info **first = &fabric->rail[0].info;
    struct fi_info *list = NULL;
    struct shk_host *host = NULL;
    int rc = fabric->hmem ? fabric_hmem_choose(lib, provider, job, fabric->hmem, first, err)
                          : fabric_choose(lib, provider, first, &list, err);

    if (rc < 0) {
        if (!fabric->hmem && rc != -FI_ENOMEM)
            (void)!shk_job_put(job, FABRIC_NO_OFFER, "", 0, NULL);
        (void)fabric_refused(fabric, provider, FABRIC_STEP_OFFER, rc, err);
        return rc;
    }
    fabric->lib = lib;
    fabric->report = &result->rails;
    if (shk_host_open(&host, NULL, NULL) != 0)
        host = NULL;
    rc = fabric_rails_select(fabric, host, list, run_rails(run, job), err);
    shk_host_close(host);
    if (list)
        lib->api.freeinfo(list);
    return rc == 0 ? fabric_place(*first, job, err) : rc;
}

static int run_heap(const struct fabric_run *run, struct fabric *fabric,
                    const struct fabric_lib *lib, struct shk_job *job,
                    const struct shk_allreduce_layout *layout, struct shk_heap *heap,
                    struct shk_error *err)
{
    int rc = 0;

    if (!fabric->hmem)
        return shk_heap_create(heap, layout->length, err);
    rc = fabric_hmem_open(fabric->hmem, fabric->rail[0].info, job, run->tweaks->gpu, err);
    shk_crumb_library(lib->dynlib.path);
    return rc == 0 ? shk_heap_create_in(heap, layout->length, &fabric->hmem->gpu->memory, err) : rc;
}

/* What libfabric has to be told before it is loaded, from what the RDMA devices here can do. */
static void run_prepare(const struct fabric_run *run, struct fabric *fabric, struct shk_job *job)
{
    const char *provider = run->options->provider;
    struct shk_host *host = NULL;

    if (shk_host_open(&host, NULL, NULL) == 0) {
        (void)fabric_queues_fit(host, run->tweaks->verbs_names, provider, shk_job_size(job),
                                &fabric->queues);
        fabric_gid_choose(host, provider);
        shk_host_close(host);
    }
    fabric->wire.job = job; /* what fails before the wire is made leaves its cause there */
}

/* One rank, in its own process. */
static int run_worker(struct shk_job *job, void *arg, struct shk_error *err)
{
    const struct fabric_run *run = arg;
    struct fabric_hmem hmem = {0};
    struct fabric fabric = {.hmem = run->hmem ? &hmem : NULL};
    struct fabric_lib lib = {0};
    struct shk_heap heap = {0};
    struct shk_allreduce_layout layout;
    int rc = 0;

    fabric.direct.deaf = run->tweaks->deaf_direct == shk_job_rank(job) + 1;
    fabric.direct.off = run->options->pairs || run->tweaks->no_direct == shk_job_rank(job) + 1;
    run_phase(run, job, SHK_PHASE_START);
    shk_allreduce_layout(shk_job_size(job),
                         run->options->max_bytes / SHK_TYPE_BYTES * SHK_TYPE_BYTES, &layout);
    layout.length[SHK_AREA_RAIL] = FABRIC_TOKEN_BYTES;
    run_phase(run, job, SHK_PHASE_OPEN);
    run_prepare(run, &fabric, job);
    rc = fabric_lib_open(&lib, run->tweaks->library_names, err);
    if (rc == -ENOEXEC)
        (void)!shk_job_put(job, FABRIC_REFUSED, FABRIC_NOT_LOADED, strlen(FABRIC_NOT_LOADED), NULL);
    if (rc == 0) {
        shk_crumb_library(lib.dynlib.path);
        fabric_log_keep(&lib);
        rc = run_choose(run, &fabric, &lib, job, err);
    }
    if (rc == 0)
        rc = run_heap(run, &fabric, &lib, job, &layout, &heap, err);
    if (rc == 0)
        rc = shk_wire_init(&fabric.wire, &fabric_wire_ops, job, &heap, layout.indices, err);
    if (rc == 0)
        rc = run_connected(run, &fabric, job, &layout, err);
    /* After an error closing may hang or crash, and hide the cause: the process ends instead. */
    if (rc == 0) {
        fabric_close(&fabric);
        shk_heap_destroy(&heap);
        fabric_lib_close(&lib);
    }
    return rc;
}

static struct fabric_run run_make(bool hmem, const struct shk_collective_options *options,
                                  const struct shk_fabric_tweaks *tweaks)
{
    static const struct shk_fabric_tweaks none = {0};

    return (struct fabric_run){
        .transport = hmem ? "fabric-hmem" : "fabric",
        .hmem = hmem,
        .options = options,
        .tweaks = tweaks ? tweaks : &none,
        .deadline_ns = options->deadline_ms != 0
                           ? shk_job_now_ns() + options->deadline_ms * UINT64_C(1000000)
                           : 0,
    };
}

static int run_crew(struct fabric_run *run, struct shk_facts *facts, struct shk_error *err)
{
    const struct shk_collective_options *options = run->options;
    struct shk_crew crew = shk_crew_of(options, run->transport, run_worker, run);
    struct shk_crew_result result = {.rank = -1};
    struct shk_error why = {{0}};
    struct shk_job *job = NULL;
    int rc = shk_sweep_sizes(options->min_bytes, options->max_bytes, FABRIC_MAX_BYTES, &why);

    if (rc == 0)
        rc = shk_job_create(&job, options->ranks, sizeof(struct fabric_result), &why);
    if (rc == 0)
        rc = shk_crew_run(&crew, job, &result, &why);
    if (rc == 0) {
        fabric_explain(run->tweaks->library_names, options->provider, job, &result);
        rc = fabric_facts(run->transport, facts, job, &result, err);
    } else {
        rc = fabric_facts_not_run(run->transport, facts, options->ranks, "failed", why.text, err);
    }
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    return rc;
}

int shk_fabric_run(const struct shk_collective_options *options,
                   const struct shk_fabric_tweaks *tweaks, struct shk_facts *facts,
                   struct shk_error *err)
{
    struct fabric_run run = run_make(false, options, tweaks);

    return run_crew(&run, facts, err);
}

int shk_fabric_hmem_run(const struct shk_collective_options *options,
                        const struct shk_fabric_tweaks *tweaks, struct shk_facts *facts,
                        struct shk_error *err)
{
    struct fabric_run run = run_make(true, options, tweaks);

    return run_crew(&run, facts, err);
}

static int transport_run(bool hmem, const struct shk_collective_options *options,
                         struct shk_facts *facts, struct shk_error *err)
{
    struct fabric_run run = run_make(hmem, options, NULL);
    struct shk_error why = {{0}};

    if (shk_dynlib_permitted("libfabric.so.1", &why) != 0)
        return fabric_facts_not_run(run.transport, facts, options->ranks, "na", why.text, err);
    return run_crew(&run, facts, err);
}

static int transport_work(bool hmem, struct shk_job *job,
                          const struct shk_collective_options *options, struct shk_error *err)
{
    struct fabric_run run = run_make(hmem, options, NULL);
    int rc = shk_sweep_sizes(options->min_bytes, options->max_bytes, FABRIC_MAX_BYTES, err);

    return rc == 0 ? run_worker(job, &run, err) : rc;
}

#define TRANSPORT(prefix_, hmem_, name_)                                                           \
    static int prefix_##_run(const struct shk_collective_options *options,                         \
                             struct shk_facts *facts, struct shk_error *err)                       \
    {                                                                                              \
        return transport_run(hmem_, options, facts, err);                                          \
    }                                                                                              \
    static int prefix_##_work(struct shk_job *job, const struct shk_collective_options *options,   \
                              struct shk_error *err)                                               \
    {                                                                                              \
        return transport_work(hmem_, job, options, err);                                           \
    }                                                                                              \
    static int prefix_##_facts(const struct shk_job *job, struct shk_crew_result *result,          \
                               const struct shk_collective_options *options,                       \
                               struct shk_facts *facts, struct shk_error *err)                     \
    {                                                                                              \
        if (result->rank < 0) {                                                                    \
            fabric_explain(NULL, options->provider, job, result);                                  \
        }                                                                                          \
        return fabric_facts(name_, facts, job, result, err);                                       \
    }

TRANSPORT(host, false, "fabric")
TRANSPORT(hmem, true, "fabric-hmem")

const struct shk_transport shk_transport_fabric = {
    .name = "fabric",
    .doc = "verified all-reduce on host memory over libfabric (one-sided writes between processes)",
    .run = host_run,
    .work = host_work,
    .result_bytes = sizeof(struct fabric_result),
    .pairs = true,
    .facts = host_facts,
};

const struct shk_transport shk_transport_fabric_hmem = {
    .name = "fabric-hmem",
    .doc = "the same on GPU memory (FI_HMEM), where the provider and libfabric offer it",
    .run = hmem_run,
    .work = hmem_work,
    .result_bytes = sizeof(struct fabric_result),
    .per_gpu = true,
    .facts = hmem_facts,
};
