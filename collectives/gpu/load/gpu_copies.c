#include "collectives/gpu/load/gpu_copies.h"
#include "collectives/ranks/job_private.h"
#include "collectives/ranks/place.h"
#include "core/run/isolate.h"
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPIES_KEY "gpu.copies"

/* Host memory of a copy, and memory of the GPU: several times what its caches hold (50 MB on H100,
 * 126 MB on B200). */
#define COPIES_HOST   ((size_t)64 << 20)
#define COPIES_DEVICE ((size_t)256 << 20)

/* Copies to a peer: from here on the links are full. */
#define COPIES_PAIR     ((size_t)256 << 20)
#define COPIES_PAIR_MIN ((size_t)1 << 20)

/* The best of so many rounds, each of about so long. */
#define COPIES_ROUNDS   3U
#define COPIES_ROUND_MS 4.0F
#define COPIES_REPEATS  64U

/* A copy that takes as long is not repeated: a link that is as slow is slow, awake or not; and of
 * one that is slower than any healthy one a single copy tells. */
#define COPIES_LONG_MS 200.0F
#define COPIES_SLOW_MS 25.0F

/* All pairs together, which take 15 ms each over NVLink 4 and 55 over PCIe 4: their number grows
 * with the square of the GPUs. Those that are left are not measured. */
#define COPIES_PAIRS_NS UINT64_C(4000000000)

/* CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE (kHz), …_GLOBAL_MEMORY_BUS_WIDTH (bits). */
#define ATTR_MEMORY_CLOCK 36
#define ATTR_MEMORY_WIDTH 37

struct copies {
    struct gpu_rank *g;
    void *host;        /* pinned; NULL: none */
    gpu_ptr device[2]; /* 0: none */
    size_t host_bytes, device_bytes;
    bool room; /* for copies that no cache holds */
    void *event[2];
    struct gpu_copies out;
};

enum copies_kind { COPY_TO_DEVICE, COPY_TO_HOST, COPY_WITHIN, COPY_TO_PEER };

static int copies_one(const struct copies *c, enum copies_kind kind, unsigned peer)
{
    const struct gpu_rank *g = c->g;

    switch (kind) {
    case COPY_TO_DEVICE:
        return g->gpu.api.to_device_async(c->device[0], c->host, c->host_bytes, g->stream);
    case COPY_TO_HOST:
        return g->gpu.api.to_host_async(c->host, c->device[0], c->host_bytes, g->stream);
    case COPY_WITHIN:
        return g->gpu.api.copy(c->device[1], c->device[0], c->device_bytes, g->stream);
    default:
        return g->gpu.api.copy(g->base[peer] + g->heap.recv, g->base[g->rank] + g->heap.send,
                               c->out.pair_bytes, g->stream);
    }
}

/* Milliseconds for n copies; negative: the driver refused. */
static float copies_time(const struct copies *c, enum copies_kind kind, unsigned peer, unsigned n)
{
    const struct gpu_api *api = &c->g->gpu.api;
    float ms = -1;
    int status = api->event_record(c->event[0], c->g->stream);

    for (unsigned i = 0; i < n && status == GPU_SUCCESS; i++)
        status = copies_one(c, kind, peer);
    if (status == GPU_SUCCESS)
        status = api->event_record(c->event[1], c->g->stream);
    if (status == GPU_SUCCESS)
        status = api->stream_wait(c->g->stream);
    if (status == GPU_SUCCESS)
        status = api->event_elapsed(&ms, c->event[0], c->event[1]);
    return status == GPU_SUCCESS ? ms : -1;
}

/* GB/s at best; 0: could not be measured. */
static double copies_rate(const struct copies *c, enum copies_kind kind, unsigned peer,
                          size_t bytes)
{
    float once = copies_time(c, kind, peer, 1); /* the first one wakes the link */
    unsigned repeats = COPIES_REPEATS;
    double best = 0;

    once = once > 0 && once < COPIES_LONG_MS ? copies_time(c, kind, peer, 1) : once;
    if (once <= 0)
        return 0;
    if (once > COPIES_SLOW_MS)
        return (double)bytes / once / 1e6;
    if (once * COPIES_REPEATS > COPIES_ROUND_MS)
        repeats = (unsigned)(COPIES_ROUND_MS / once) + 1;
    for (unsigned i = 0; i < COPIES_ROUNDS; i++) {
        float ms = copies_time(c, kind, peer, repeats);
        double rate = ms > 0 ? (double)bytes * repeats / ms / 1e6 : 0;

        best = rate > best ? rate : best;
    }
    return best;
}

void gpu_copies_address(const struct gpu_rank *g, char *buf, size_t size)
{
    snprintf(buf, size, "%.31s", g->pci);
    for (size_t i = 0; buf[i] != '\0'; i++)
        buf[i] = (char)tolower((unsigned char)buf[i]);
}

/* Host memory is taken where the calling thread runs: moves it next to the GPU for that. */
static void copies_host(struct copies *c, const struct shk_host *host)
{
    const struct gpu_api *api = &c->g->gpu.api;
    cpu_set_t was;
    bool known = sched_getaffinity(0, sizeof was, &was) == 0;
    int node = c->out.node;
    int cpu = known && node >= 0 && host ? shk_place_near(host, &was, node, 1, 0) : -1;

    c->out.near = cpu >= 0 || node < 0;
    if (cpu >= 0)
        shk_place_bind(cpu);
    shk_crumb_call("%zu bytes of pinned host memory", c->host_bytes);
    if (api->host_alloc(&c->host, c->host_bytes, 0) != GPU_SUCCESS)
        c->host = NULL;
    else
        memset(c->host, 1, c->host_bytes);
    if (known)
        (void)sched_setaffinity(0, sizeof was, &was);
}

static void copies_open(struct copies *c, const struct shk_host *host)
{
    const struct gpu_api *api = &c->g->gpu.api;
    size_t left = 0;
    size_t total = 0;
    unsigned smaller = c->g->run->tweaks->copies_shift;

    /* another program may need what is left */
    c->room = api->memory_info(&left, &total) != GPU_SUCCESS || left >= 4 * COPIES_DEVICE;
    c->host_bytes = COPIES_HOST >> smaller;
    c->device_bytes = (c->room ? COPIES_DEVICE : COPIES_HOST) >> smaller;
    for (unsigned i = 0; i < 2; i++) {
        if (api->alloc(&c->device[i], c->device_bytes) != GPU_SUCCESS)
            c->device[i] = 0;
        if (api->event_create(&c->event[i], 0) != GPU_SUCCESS)
            c->event[i] = NULL;
    }
    copies_host(c, host);
}

static void copies_close(struct copies *c)
{
    const struct gpu_api *api = &c->g->gpu.api;

    for (unsigned i = 0; i < 2; i++) {
        if (c->device[i] != 0)
            (void)api->release(c->device[i]);
        if (c->event[i])
            (void)api->event_destroy(c->event[i]);
    }
    if (c->host)
        (void)api->host_free(c->host);
}

static void copies_peak(struct copies *c)
{
    struct gpu_rank *g = c->g;
    int khz = 0;
    int bits = 0;

    /* a slice of a GPU has part of its bandwidth, and the attributes are those of the whole */
    if (g->gpu.vendor == GPU_CUDA && !strstr(g->name, "MIG") && !strstr(g->name, "GRID") &&
        g->gpu.api.device_attribute(&khz, ATTR_MEMORY_CLOCK, g->device) == GPU_SUCCESS &&
        g->gpu.api.device_attribute(&bits, ATTR_MEMORY_WIDTH, g->device) == GPU_SUCCESS) {
        c->out.memory_peak = 2.0 * khz * bits / 8 / 1e6; /* two transfers per clock */
    }
}

static void copies_own(struct copies *c, const struct shk_host *host)
{
    uint64_t begin_ns = 0;

    if (!c->event[0] || !c->event[1])
        return;
    if (c->host && c->device[0] != 0) {
        c->out.to_device = copies_rate(c, COPY_TO_DEVICE, 0, c->host_bytes);
        c->out.to_host = copies_rate(c, COPY_TO_HOST, 0, c->host_bytes);
        if (host)
            (void)gpu_link_read(host, c->out.pci, &c->out.link);
    }
    if (c->device[0] != 0 && c->device[1] != 0 && c->room)
        c->out.memory = copies_rate(c, COPY_WITHIN, 0, 2 * c->device_bytes);
    begin_ns = shk_job_now_ns();
    for (unsigned i = 1; i < c->g->ranks; i++) {
        unsigned peer = (c->g->rank + i) % c->g->ranks;
        bool left = i == 1 || shk_job_now_ns() - begin_ns < COPIES_PAIRS_NS / c->g->ranks;

        if (left && c->g->base[peer] != 0 && c->out.pair_bytes >= COPIES_PAIR_MIN)
            c->out.pair[peer] = copies_rate(c, COPY_TO_PEER, peer, c->out.pair_bytes);
    }
}

int gpu_copies_measure(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    size_t area = g->heap.area_bytes < COPIES_PAIR ? g->heap.area_bytes : COPIES_PAIR;
    struct copies c = {.g = g, .out = {.node = -1, .pair_bytes = area}};
    struct shk_host *host = NULL;
    int rc = 0;

    if (g->run->options->max_bytes < COPIES_PAIR_MIN || !api->to_device_async ||
        !api->to_host_async || !api->host_alloc || !api->host_free) {
        return 0;
    }
    if (shk_host_open(&host, NULL, NULL) < 0)
        host = NULL;
    gpu_copies_address(g, c.out.pci, sizeof c.out.pci);
    (void)gethostname(c.out.host, sizeof c.out.host - 1);
    c.out.node = host ? shk_place_device_node(host, c.out.pci, NULL) : -1;
    copies_open(&c, host);
    copies_peak(&c);
    for (unsigned turn = 0; turn < g->ranks && rc == 0; turn++) {
        rc = gpu_barrier(g, err);
        if (rc == 0 && turn == g->rank)
            copies_own(&c, host);
    }
    rc = rc == 0 ? gpu_barrier(g, err) : rc;
    copies_close(&c);
    shk_host_close(host);
    return rc == 0 ? shk_job_put(g->job, COPIES_KEY, &c.out, sizeof c.out, err) : rc;
}

static json_t *copies_number(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *copies_link(const struct gpu_link *link)
{
    return link->at[0] == '\0' ? json_null()
                               : json_pack("{s:s, s:f, s:i, s:f, s:o}", "at", link->at, "speed",
                                           link->speed, "width", (int)link->width, "gbs", link->gbs,
                                           "most", copies_number(link->most));
}

static json_t *copies_gpu(const struct gpu_copies *own, unsigned rank)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:b, s:o}", "rank", (int)rank, "pci",
                     shk_json_text(own->pci, strnlen(own->pci, sizeof own->pci)), "to_device",
                     copies_number(own->to_device), "to_host", copies_number(own->to_host),
                     "memory", copies_number(own->memory), "memory_peak",
                     copies_number(own->memory_peak), "numa", (int)own->node, "near", own->near,
                     "link", copies_link(&own->link));
}

static void copies_pairs(json_t *pairs, const struct gpu_copies *all, unsigned from, unsigned ranks)
{
    for (unsigned to = 0; to < ranks && to < SHK_GPU_MAX_RANKS; to++) {
        if (to != from && all[from].pair_bytes >= COPIES_PAIR_MIN && all[to].pci[0] != '\0') {
            (void)json_array_append_new(pairs, json_pack("{s:s, s:s, s:o}", "from", all[from].pci,
                                                         "to", all[to].pci, "gbs",
                                                         copies_number(all[from].pair[to])));
        }
    }
}

json_t *gpu_copies_json(const struct shk_job *job)
{
    struct gpu_copies *all = calloc(SHK_GPU_MAX_RANKS, sizeof *all);
    unsigned ranks = shk_job_size(job);
    json_t *gpus = json_array();
    json_t *pairs = json_array();
    json_t *fact = NULL;
    size_t len = 0;

    for (unsigned rank = 0; all && rank < ranks && rank < SHK_GPU_MAX_RANKS; rank++) {
        if (shk_job_get(job, rank, COPIES_KEY, &all[rank], sizeof all[rank], &len, NULL) == 0 &&
            len == sizeof all[rank]) {
            all[rank].pci[sizeof all[rank].pci - 1] = '\0';
            all[rank].host[sizeof all[rank].host - 1] = '\0';
            all[rank].link.at[sizeof all[rank].link.at - 1] = '\0';
            (void)json_array_append_new(gpus, copies_gpu(&all[rank], rank));
        }
    }
    for (unsigned rank = 0; json_array_size(gpus) > 0 && rank < ranks && rank < SHK_GPU_MAX_RANKS;
         rank++)
        copies_pairs(pairs, all, rank, ranks);
    if (json_array_size(gpus) > 0) {
        fact = json_pack("[{s:s, s:O, s:O}]", "node", all[0].host, "gpus", gpus, "pairs", pairs);
    }
    json_decref(gpus);
    json_decref(pairs);
    free(all);
    return fact;
}
