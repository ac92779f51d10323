/* The layers of an all-reduce between accelerators, from the network up to NCCL's windows and the
 * switches: which one is the first that fails, or that falls far behind the one below it. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/health/gpu_health.h"
#include "checks/job/slots.h"

#include <string.h>

/* Small messages measure latency; from here on it is bandwidth. */
#define LAYER_BYTES (4LL << 20)

/* A layer has at least this share of the busbw of the one below. Healthy ones are above a half. */
#define LAYER_SHARE (1.0 / 3.0)

/* What stands on what: all on the host's fabric, else each on those before it of its own kind. */
enum kind { KIND_HOST, KIND_HMEM, KIND_CUDA, KIND_HIP, KIND_NEURON };

static const struct {
    const char *name;
    enum kind kind;
} layer_table[] = {
    {"fabric", KIND_HOST},      {"fabric-hmem", KIND_HMEM}, {"peer copy", KIND_CUDA},
    {"peer", KIND_CUDA},        {"lsa", KIND_CUDA},         {"nccl", KIND_CUDA},
    {"nccl-window", KIND_CUDA}, {"multimem", KIND_CUDA},    {"nvshmem", KIND_CUDA},
    {"rccl", KIND_HIP},         {"neuron", KIND_NEURON},
};
enum { LAYER_COPY = 2, LAYERS = sizeof(layer_table) / sizeof(layer_table[0]) };

struct layer {
    const char *name;
    const char *status; /* NULL: not run, or it does not apply */
    const char *unread; /* why its outcome is not known */
    const json_t *sizes;
    double copy; /* GB/s, of the peer copy; 0: none */
    long long ranks;
};

static enum shk_look layer_fact(const struct shk_facts *facts, const char *name, const char *member,
                                struct shk_fact *fact_p)
{
    char *key = shk_strf("collective.%s.%s", name, member);
    enum shk_look look = key ? shk_look(facts, key, fact_p) : SHK_LOOK_MISSING;
    free(key);
    return look;
}

static const char *unread_reason(enum shk_look look, const struct shk_fact *fact)
{
    return look == SHK_LOOK_FAILED && fact->reason ? fact->reason : "not known";
}

/* What the copies between GPUs reach, told by the layer above it. */
static void layer_copy(const struct shk_facts *facts, struct layer *layer)
{
    struct shk_fact fact;
    enum shk_look look = layer_fact(facts, "peer", "copy", &fact);
    if (look == SHK_LOOK_FAILED || (look == SHK_LOOK_PRESENT && !json_is_object(fact.value))) {
        layer->unread = unread_reason(look, &fact);
    } else if (look == SHK_LOOK_PRESENT) {
        if (shk_look_member_number(fact.value, "both_ways_gbs", &layer->copy) != SHK_LOOK_PRESENT)
            layer->unread = "its bandwidth is not known";
        layer->status = layer->copy > 0 ? "ok" : NULL;
    }
}

static struct layer layer_of(const struct shk_facts *facts, int i)
{
    struct layer layer = {.name = layer_table[i].name, .ranks = -1};
    const char *name = i == LAYER_COPY ? "peer" : layer.name;
    struct shk_fact status, sizes, ranks;
    enum shk_look status_look = layer_fact(facts, name, "status", &status);
    enum shk_look sizes_look = layer_fact(facts, name, "sizes", &sizes);
    enum shk_look ranks_look = layer_fact(facts, name, "ranks", &ranks);
    if (ranks_look == SHK_LOOK_PRESENT && json_is_integer(ranks.value))
        layer.ranks = json_integer_value(ranks.value);
    if (i == LAYER_COPY) {
        layer_copy(facts, &layer);
        return layer;
    }
    if (status_look == SHK_LOOK_MISSING && sizes_look == SHK_LOOK_MISSING)
        return layer;
    layer.status = status_look == SHK_LOOK_PRESENT ? json_string_value(status.value) : NULL;
    if (layer.status && strcmp(layer.status, "starved") == 0)
        layer.status = NULL, layer.unread = "the node was too busy";
    else if (!layer.status)
        layer.unread = unread_reason(status_look, &status);
    else if (strcmp(layer.status, "na") == 0)
        layer.status = NULL;
    if (!layer.status || strcmp(layer.status, "ok") != 0)
        return layer;
    if (sizes_look == SHK_LOOK_PRESENT && json_is_array(sizes.value))
        layer.sizes = sizes.value;
    else
        layer.unread = "its sizes are not known";
    if (layer.ranks < 0 && ranks_look != SHK_LOOK_MISSING)
        layer.unread = "how many ranks it had is not known";
    return layer;
}

static bool layer_below(int below, int i)
{
    return below < i &&
           (layer_table[below].kind == KIND_HOST || layer_table[below].kind == layer_table[i].kind);
}

static bool layer_ok(const struct layer *layer)
{
    return layer->status && strcmp(layer->status, "ok") == 0 && !layer->unread;
}

/* One size of a layer; false when a member was not read. */
struct size {
    long long bytes;
    const char *type; /* NULL: the layer has one only */
    double busbw;
};

static bool size_of(const json_t *row, struct size *size)
{
    *size = (struct size){.type = NULL};
    enum shk_look type = shk_look_member_text(row, "type", &size->type);
    return shk_look_member_int(row, "bytes", &size->bytes) == SHK_LOOK_PRESENT &&
           shk_look_member_number(row, "busbw", &size->busbw) == SHK_LOOK_PRESENT &&
           (type == SHK_LOOK_PRESENT || type == SHK_LOOK_MISSING);
}

/* busbw of the same size and type; 0: not measured. */
static double layer_busbw(const struct layer *layer, const struct size *like)
{
    size_t i;
    json_t *row;
    struct size size;
    if (layer->copy > 0)
        return layer->copy;
    json_array_foreach(layer->sizes, i, row)
    {
        if (size_of(row, &size) && size.bytes == like->bytes && size.type && like->type &&
            strcmp(size.type, like->type) == 0)
            return size.busbw;
    }
    return 0;
}

/* Where a layer falls furthest behind the one below it. */
struct drop {
    double share; /* 0: nothing to compare */
    double busbw, below;
    long long bytes;
};

static struct drop layer_drop(const struct layer *below, const struct layer *layer)
{
    struct drop drop = {0};
    size_t i;
    json_t *row;
    struct size size;
    json_array_foreach(layer->sizes, i, row)
    {
        if (!size_of(row, &size))
            continue;
        double least = size.bytes < LAYER_BYTES ? 0 : layer_busbw(below, &size);
        if (size.busbw > 0 && least > 0 && (drop.share <= 0 || size.busbw / least < drop.share))
            drop = (struct drop){size.busbw / least, size.busbw, least, size.bytes};
    }
    return drop;
}

/* Could every size of the layer be read? */
static bool sizes_read(const struct layer *layer)
{
    size_t i;
    json_t *row;
    struct size size;
    json_array_foreach(layer->sizes, i, row) if (!size_of(row, &size)) return false;
    return true;
}

/* May the layer be held against that one? Host memory on one node says nothing about GPUs, and a
 * copy between two GPUs nothing about more of them that share a bus. What the fabric does on GPU
 * memory is told beside host memory, and judged by nobody. */
static bool layer_comparable(const struct shk_facts *facts, const struct layer *below,
                             const struct layer *layer)
{
    if (strcmp(layer->name, "fabric-hmem") == 0 || !layer_ok(below) || !layer_ok(layer) ||
        layer->ranks < 2 || below->ranks != layer->ranks)
        return false;
    if (below->copy > 0)
        return layer->ranks == 2;
    return strcmp(below->name, "fabric") != 0 || shk_job_nodes(facts) > 1;
}

static void say_suspect(struct shk_row *row, const struct layer *layers, int suspect)
{
    struct shk_strbuf right = SHK_STRBUF_INIT;
    for (int i = 0; i < suspect; i++)
        if (layer_below(i, suspect) && layer_ok(&layers[i]))
            shk_strbuf_printf(&right, "%s%s", right.len ? ", " : "", layers[i].name);
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row->observed, "suspect: %s (%s)", layers[suspect].name, layers[suspect].status);
    shk_row_text(&row->expected, "every layer right");
    shk_row_text(&row->why, "%s is the first layer that fails; right below it: %s",
                 layers[suspect].name, right.len ? shk_strbuf_text(&right) : "none was run");
    shk_strbuf_free(&right);
}

/* Another program on one of the GPUs that the layer used on this node; NULL: none that is known. */
static char *layer_holder(const struct shk_facts *facts, const char *layer)
{
    const char *host = NULL;
    struct shk_fact devices;
    json_t *device;
    char *holder = NULL;
    long long pid = 0;
    size_t i;
    if (shk_look_text(facts, "host.name", &host) != SHK_LOOK_PRESENT ||
        layer_fact(facts, layer, "devices", &devices) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(devices.value, i, device)
    {
        const char *pci = shk_member_words(device, "pci"), *at = shk_member_words(device, "host");
        if (!holder && pci && at && strcmp(at, host) == 0)
            holder = shk_gpu_holder(facts, pci, &pid);
    }
    return holder;
}

/* What makes every layer slow that needs its GPU and its processor at the right moment. */
static void say_crowded(struct shk_row *row, const char *layer, double share)
{
    long long ranks = 0, cpus = 0;
    char *holder = layer_holder(row->ctx->facts, layer);
    if (holder) {
        row->diagnosis = "gpu-shared";
        shk_row_text(
            &row->why,
            "%s is the first layer whose bandwidth drops (to %.2f of the layer below it), while "
            "another program uses a GPU: process %s",
            layer, share, holder);
    } else if (shk_local_slots(row->ctx->facts, &ranks, &cpus) && ranks > cpus) {
        row->diagnosis = "ranks-share-processors";
        shk_row_text(&row->why,
                     "%s is the first layer whose bandwidth drops (to %.2f of the layer below it): "
                     "%lld ranks "
                     "take turns on %lld processor%s",
                     layer, share, ranks, cpus, cpus == 1 ? "" : "s");
    }
    free(holder);
}

static void say_slow(struct shk_row *row, const struct layer *below, const struct layer *layer,
                     const struct drop *drop)
{
    char *bytes = shk_bytes_text(drop->bytes);
    shk_row_verdict(row, SHK_WARN, SHK_TESTED);
    shk_row_text(&row->observed, "suspect: %s, %.2f GB/s at %s", layer->name, drop->busbw,
                 bytes ? bytes : "");
    shk_row_text(&row->expected, "at least a third of the %.2f GB/s of %s", drop->below,
                 below->name);
    shk_row_text(&row->why,
                 "%s is the first layer whose bandwidth drops: to %.2f of the layer below it",
                 layer->name, drop->share);
    say_crowded(row, layer->name, drop->share);
    free(bytes);
}

/* False: nothing fell off. *compared_p: pairs that were compared. */
static bool find_slow(const struct shk_facts *facts, const struct layer *layers,
                      struct shk_row *row, unsigned *compared_p)
{
    for (int i = 0; i < LAYERS; i++) {
        int k = i - 1;
        while (k >= 0 && !(layer_below(k, i) && layer_ok(&layers[k])))
            k--;
        if (k < 0 || i == LAYER_COPY || !layer_comparable(facts, &layers[k], &layers[i]))
            continue;
        struct drop drop = layer_drop(&layers[k], &layers[i]);
        *compared_p += drop.share > 0;
        if (drop.share > 0 && drop.share < LAYER_SHARE) {
            say_slow(row, &layers[k], &layers[i], &drop);
            return true;
        }
    }
    return false;
}

static void say_right(struct shk_row *row, const struct layer *layers, unsigned compared)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    for (int i = 0; i < LAYERS; i++)
        if (layer_ok(&layers[i]) && i != LAYER_COPY)
            shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", layers[i].name);
    shk_row_verdict(row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row->observed, "%s right; %s", shk_strbuf_text(&names),
                 compared ? "none drops" : "no bandwidths to compare");
    shk_strbuf_free(&names);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char *const failures[] = {"wrong", "failed", "timeout", "crashed", NULL};
    struct layer layers[LAYERS];
    struct shk_row row = shk_row_begin(ctx, &shk_check_layers, "layers of the all-reduce");
    unsigned run = 0, compared = 0;
    int suspect = -1, unread = -1;
    bool gpus = false;
    for (int i = 0; i < LAYERS; i++) {
        layers[i] = layer_of(ctx->facts, i);
        bool known = layers[i].status || layers[i].unread;
        run += known;
        gpus = gpus || (known && i > 0 && i != LAYER_COPY);
        bool failed = layers[i].status && shk_list_has(failures, layers[i].status);
        if (suspect < 0 && failed)
            suspect = i;
        if (known && !failed && !layers[i].unread && !sizes_read(&layers[i]))
            layers[i].unread = "one of its sizes was not read completely";
        if (unread < 0 && known && !failed && !layer_ok(&layers[i]))
            unread = i;
    }
    if (!gpus || run < 2)
        return;
    if (suspect >= 0)
        say_suspect(&row, layers, suspect);
    else if (unread >= 0)
        shk_row_text(&row.why, "%s: %s", layers[unread].name,
                     layers[unread].unread ? layers[unread].unread : "unknown status");
    else if (!find_slow(ctx->facts, layers, &row, &compared))
        say_right(&row, layers, compared);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_layers = {
    .id = "collective.layers",
    .diagnosis = "all-reduce-failed",
    .family = "collectives",
    .of_job = true,
    .title = "Which layer of the all-reduce fails or loses bandwidth first",
    .eval = eval,
    .doc =
        "Facts: collective.<layer>.{status, sizes, ranks}, collective.peer.copy. Layers, from "
        "below: fabric, peer copy, peer, lsa, nccl, nccl-window, multimem, nvshmem; fabric-hmem, "
        "rccl and neuron stand on the fabric.\n"
        "fail: the first layer that ends badly is the suspect. warn: at some size of 4 MiB or "
        "more a layer has less than a third of the busbw of the layer below it, on as many "
        "ranks; the fabric counts for jobs of several nodes, the peer copy for two ranks, and "
        "fabric-hmem and nvshmem only ever fail. No row when no layer above the fabric "
        "ran, or nothing beside it.",
};
