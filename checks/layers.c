/* The layers of an all-reduce between accelerators, from the network up to NCCL's windows and the
 * switches: which one is the first that fails, or that falls far behind the one below it. */
#include "checks/coded.h"

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

static bool layer_fact(const struct shk_facts *facts, const char *name, const char *member,
                       struct shk_fact *fact_p)
{
    char *key = shk_strf("collective.%s.%s", name, member);
    bool found = key && shk_facts_get(facts, key, fact_p);
    free(key);
    return found;
}

static struct layer layer_of(const struct shk_facts *facts, int i)
{
    struct layer layer = {.name = layer_table[i].name, .ranks = -1};
    const char *name = i == LAYER_COPY ? "peer" : layer.name;
    struct shk_fact fact;
    if (layer_fact(facts, name, "ranks", &fact) && json_is_integer(fact.value))
        layer.ranks = json_integer_value(fact.value);
    if (i == LAYER_COPY) {
        if (layer_fact(facts, name, "copy", &fact) && fact.state == SHK_FACT_PRESENT) {
            layer.copy = json_number_value(json_object_get(fact.value, "both_ways_gbs"));
            layer.status = layer.copy > 0 ? "ok" : NULL;
        }
        return layer;
    }
    if (!layer_fact(facts, name, "status", &fact))
        return layer;
    layer.status = fact.state == SHK_FACT_PRESENT ? json_string_value(fact.value) : NULL;
    if (!layer.status)
        layer.unread = fact.reason ? fact.reason : "no reason given";
    else if (strcmp(layer.status, "na") == 0)
        layer.status = NULL;
    if (layer_fact(facts, name, "sizes", &fact) && fact.state == SHK_FACT_PRESENT)
        layer.sizes = fact.value;
    else if (layer.status && strcmp(layer.status, "ok") == 0)
        layer.unread = "its sizes are not known";
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

/* busbw of the same size and type; 0: not measured. */
static double layer_busbw(const struct layer *layer, long long bytes, const char *type)
{
    size_t i;
    json_t *row;
    if (layer->copy > 0)
        return layer->copy;
    json_array_foreach(layer->sizes, i, row)
    {
        const char *its = shk_member_text(row, "type");
        if (shk_member_int(row, "bytes", -1) == bytes && its && type && strcmp(its, type) == 0)
            return json_number_value(json_object_get(row, "busbw"));
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
    json_array_foreach(layer->sizes, i, row)
    {
        long long bytes = shk_member_int(row, "bytes", 0);
        double busbw = json_number_value(json_object_get(row, "busbw"));
        double least =
            bytes < LAYER_BYTES ? 0 : layer_busbw(below, bytes, shk_member_text(row, "type"));
        if (busbw > 0 && least > 0 && (drop.share <= 0 || busbw / least < drop.share))
            drop = (struct drop){busbw / least, busbw, least, bytes};
    }
    return drop;
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

static void say_slow(struct shk_row *row, const struct layer *below, const struct layer *layer,
                     const struct drop *drop)
{
    char *bytes = shk_bytes_text(drop->bytes);
    shk_row_verdict(row, SHK_WARN, SHK_TESTED);
    shk_row_text(&row->observed, "suspect: %s, %.2f GB/s at %s", layer->name, drop->busbw,
                 bytes ? bytes : "");
    shk_row_text(&row->expected, "at least a third of the %.2f GB/s of %s", drop->below,
                 below->name);
    shk_row_text(&row->why, "%s is the first layer that falls off: %.2f of the layer below it",
                 layer->name, drop->share);
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
        if (layer_ok(&layers[i]))
            shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", layers[i].name);
    shk_row_verdict(row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row->observed, "%s right; %s", shk_strbuf_text(&names),
                 compared ? "none falls off" : "no bandwidths to compare");
    shk_strbuf_free(&names);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char *const failures[] = {"wrong", "failed", "timeout", "crashed", NULL};
    struct layer layers[LAYERS];
    struct shk_row row = shk_row_start(&shk_check_layers, "layers of the all-reduce");
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
    .family = "collectives",
    .of_job = true,
    .title = "Which layer of the all-reduce fails or falls off first",
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
