/* All GPUs of a node at once, for a while: copies within each, to the next one, and over PCIe both
 * ways. What arrives is compared word by word; how fast it goes is noted from round to round. */
#include "collectives/gpu/load/gpu_copies.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRESS_KEY "gpu.stress"

#define STRESS_DEVICE ((size_t)256 << 20)
#define STRESS_HOST   ((size_t)64 << 20)

/* Copies of one round: within the GPU as many as take about so long. */
#define STRESS_ROUND_NS 100000000U
#define STRESS_WITHIN   1024U
#define STRESS_PEER     16U
#define STRESS_BUS      4U

struct stress {
    struct gpu_rank *g;
    gpu_ptr from, to, bus; /* memory of the GPU */
    uint32_t *host;        /* pinned */
    size_t bytes, host_bytes;
    void *stream;    /* of the copies over PCIe */
    unsigned within; /* copies of a round */
    struct gpu_stress_result out;
};

static int stress_open(struct stress *s, struct shk_error *err)
{
    struct gpu_rank *g = s->g;
    const struct gpu_api *api = &g->gpu.api;
    size_t left = 0;
    size_t total = 0;
    void *host = NULL;
    int rc = gpu_ok(g, api->memory_info(&left, &total), err, "memory");

    s->host_bytes = STRESS_HOST >> g->run->tweaks->copies_shift;
    s->bytes =
        (left < 4 * STRESS_DEVICE ? STRESS_HOST : STRESS_DEVICE) >> g->run->tweaks->copies_shift;
    if (rc == 0)
        rc = gpu_ok(g, api->alloc(&s->from, s->bytes), err, "%zu bytes", s->bytes);
    if (rc == 0)
        rc = gpu_ok(g, api->alloc(&s->to, s->bytes), err, "%zu bytes", s->bytes);
    if (rc == 0)
        rc = gpu_ok(g, api->alloc(&s->bus, s->host_bytes), err, "%zu bytes", s->host_bytes);
    if (rc == 0)
        rc = gpu_ok(g, api->stream_create(&s->stream, GPU_STREAM_FREE), err, "stream");
    if (rc == 0) {
        rc = gpu_ok(g, api->host_alloc(&host, s->host_bytes, 0), err, "%zu bytes of pinned memory",
                    s->host_bytes);
        s->host = host;
    }
    return rc;
}

static void stress_close(struct stress *s)
{
    const struct gpu_api *api = &s->g->gpu.api;
    const gpu_ptr all[] = {s->from, s->to, s->bus};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] != 0)
            (void)api->release(all[i]);
    }
    if (s->host)
        (void)api->host_free(s->host);
    if (s->stream)
        (void)api->stream_destroy(s->stream);
}

static uint64_t stress_wrong(const uint32_t *at, size_t words, uint32_t want)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < words; i++)
        wrong += at[i] != want;
    return wrong;
}

/* How many copies within the GPU a round has. */
static int stress_plan(struct stress *s, struct shk_error *err)
{
    struct gpu_rank *g = s->g;
    uint64_t start = 0;
    uint64_t ns = 0;
    int status = g->gpu.api.copy(s->to, s->from, s->bytes, g->stream);

    status = status == GPU_SUCCESS ? g->gpu.api.stream_wait(g->stream) : status;
    start = shk_job_now_ns();
    status = status == GPU_SUCCESS ? g->gpu.api.copy(s->to, s->from, s->bytes, g->stream) : status;
    status = status == GPU_SUCCESS ? g->gpu.api.stream_wait(g->stream) : status;
    ns = shk_job_now_ns() - start;
    s->within =
        ns * STRESS_WITHIN > STRESS_ROUND_NS ? (unsigned)(STRESS_ROUND_NS / ns) + 1 : STRESS_WITHIN;
    return gpu_ok(g, status, err, "copies under load");
}

/* Starts everything, waits for it, and looks at what came over. */
static int stress_round(struct stress *s, uint32_t word, struct shk_error *err)
{
    struct gpu_rank *g = s->g;
    const struct gpu_api *api = &g->gpu.api;
    unsigned next = (g->rank + 1) % g->ranks;
    size_t pair = g->heap.area_bytes < s->bytes ? g->heap.area_bytes : s->bytes;
    size_t words = s->host_bytes / sizeof(uint32_t);
    uint64_t start = shk_job_now_ns();
    double gbs = 0;
    int status = api->set_words(s->from, word, s->bytes / sizeof(uint32_t), g->stream);

    for (unsigned i = 0; i < s->within && status == GPU_SUCCESS; i++)
        status = api->copy(s->to, s->from, s->bytes, g->stream);
    for (unsigned i = 0;
         i < STRESS_PEER && status == GPU_SUCCESS && g->base[next] != 0 && g->ranks > 1; i++) {
        status = api->copy(g->base[next] + g->heap.recv, s->to, pair, g->stream);
    }
    for (unsigned i = 0; i < STRESS_BUS && status == GPU_SUCCESS; i++) {
        status = api->to_device_async(s->bus, s->host, s->host_bytes, s->stream);
        if (status == GPU_SUCCESS)
            status = api->to_host_async(s->host, s->bus, s->host_bytes, s->stream);
    }
    status = status == GPU_SUCCESS ? api->stream_wait(s->stream) : status;
    status = status == GPU_SUCCESS ? api->stream_wait(g->stream) : status;
    gbs = 2.0 * (double)s->bytes * s->within / (double)(shk_job_now_ns() - start);
    if (status == GPU_SUCCESS) {
        s->out.bad += stress_wrong(s->host, words, s->out.rounds == 0 ? 0 : word - 1);
        status = api->to_host(s->host, s->to, s->host_bytes);
    }
    if (status == GPU_SUCCESS)
        s->out.bad += stress_wrong(s->host, words, word);
    s->out.first = s->out.rounds == 0 ? gbs : s->out.first;
    s->out.least = s->out.rounds == 0 || gbs < s->out.least ? gbs : s->out.least;
    s->out.last = gbs;
    s->out.rounds++;
    return gpu_ok(g, status, err, "copies under load");
}

int gpu_stress_run(struct gpu_rank *g, struct shk_error *err)
{
    struct stress s = {.g = g};
    const struct gpu_api *api = &g->gpu.api;
    uint64_t start = 0;
    uint64_t end = 0;
    int rc = 0;

    if (g->run->options->stress_ms == 0)
        return 0;
    if (!api->host_alloc || !api->host_free || !api->to_device_async || !api->to_host_async) {
        return gpu_fail(g, GPU_CAUSE_DRIVER_OLD,
                        shk_error_set(err, ENOSYS, "the driver lacks copies of pinned memory"));
    }
    shk_crumb_call("load for %u ms", g->run->options->stress_ms);
    rc = stress_open(&s, err);
    if (rc == 0) {
        memset(s.host, 0, s.host_bytes);
        gpu_copies_address(g, s.out.pci, sizeof s.out.pci);
        (void)gethostname(s.out.host, sizeof s.out.host - 1);
        rc = stress_plan(&s, err);
    }
    if (rc == 0)
        rc = gpu_barrier(g, err);
    start = shk_job_now_ns();
    end = start + (uint64_t)g->run->options->stress_ms * 1000000U;
    while (rc == 0 && shk_job_now_ns() < end)
        rc = stress_round(&s, s.out.rounds + 1, err);
    s.out.seconds = (double)(shk_job_now_ns() - start) / 1e9;
    rc = rc == 0 ? gpu_barrier(g, err) : rc;
    stress_close(&s);
    return rc == 0 ? shk_job_put(g->job, STRESS_KEY, &s.out, sizeof s.out, err) : rc;
}

json_t *gpu_stress_json(const struct shk_job *job)
{
    struct gpu_stress_result one = {.rounds = 0};
    json_t *gpus = json_array();
    char host[64] = "?";
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (shk_job_get(job, rank, STRESS_KEY, &one, sizeof one, &len, NULL) != 0 ||
            len != sizeof one) {
            continue;
        }
        one.pci[sizeof one.pci - 1] = '\0';
        one.host[sizeof one.host - 1] = '\0';
        snprintf(host, sizeof host, "%s", one.host);
        (void)json_array_append_new(gpus, json_pack("{s:i, s:s, s:f, s:i, s:I, s:f, s:f, s:f}",
                                                    "rank", (int)rank, "pci", one.pci, "seconds",
                                                    one.seconds, "rounds", (int)one.rounds, "bad",
                                                    (json_int_t)one.bad, "first", one.first, "last",
                                                    one.last, "least", one.least));
    }
    if (json_array_size(gpus) == 0) {
        json_decref(gpus);
        return NULL;
    }
    return json_pack("[{s:s, s:o}]", "node", host, "gpus", gpus);
}
