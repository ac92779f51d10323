#include "reports/model/hardware.h"
#include "core/text/nodefold.h"
#include "core/text/stamp.h"
#include "reports/model/topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of GPUs or NICs that one line can hold. */
enum { HARDWARE_KINDS = 4 };

/* Where accelerators are told of, by what knows their model first. */
static const struct source {
    const char *key, *name, *maker;
} sources[] = {
    {"nvml.devices", "name", ""},       {"gpu.nvidia.devices", "model", ""},
    {"cuda.devices", "name", ""},       {"gpu.amd.devices", "gfx", "AMD "},
    {"neuron.devices", "instance", ""},
};

/* What the bus has, where no driver names it. */
static const struct source counts[] = {
    {"pci.count.gpu-nvidia", "NVIDIA GPU", ""},
    {"pci.count.gpu-amd", "AMD GPU", ""},
    {"pci.count.gpu-intel", "Intel GPU", ""},
    {"pci.count.neuron", "Neuron device", ""},
};

/* What EFA, RoCE and Slingshot are called; of other networks the name is that of the link layer. */
static const struct source networks[] = {
    {"efa", "EFA", ""}, {"Ethernet", "RoCE", ""}, {"cxi", "Slingshot", ""}};

static const struct source *source_find(const struct source *all, size_t count, const char *key)
{
    for (size_t i = 0; key && i < count; i++)
        if (strcmp(all[i].key, key) == 0)
            return &all[i];
    return NULL;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* One more of these, which it takes: those that are alike have one entry with their count. */
static void kind_add(json_t *kinds, json_t *kind)
{
    json_t *had;
    size_t i;
    json_array_foreach(kinds, i, had)
    {
        json_t *count = json_object_get(had, "count");
        json_object_set(kind, "count", count);
        if (json_equal(had, kind)) {
            json_integer_set(count, json_integer_value(count) + 1);
            json_decref(kind);
            return;
        }
    }
    json_object_set_new(kind, "count", json_integer(1));
    if (json_array_size(kinds) < HARDWARE_KINDS)
        json_array_append(kinds, kind);
    json_decref(kind);
}

/* [{of, name, gib, count}] */
static json_t *gpu_kinds(const struct shk_facts *facts)
{
    json_t *kinds = json_array(), *device;
    for (size_t s = 0; s < sizeof sources / sizeof *sources && !json_array_size(kinds); s++) {
        size_t i;
        json_t *list = shk_facts_get_array(facts, sources[s].key);
        json_array_foreach(list, i, device)
        {
            json_int_t memory = json_integer_value(json_object_get(device, "memory"));
            json_t *kind = json_pack("{s:s, s:s*}", "of", sources[s].key, "name",
                                     member(device, sources[s].name));
            if (memory > 0)
                json_object_set_new(kind, "gib", json_integer((memory + (1 << 29)) >> 30));
            kind_add(kinds, kind);
        }
    }
    bool named = json_array_size(kinds) > 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !named; i++) {
        json_int_t n = shk_facts_get_int(facts, counts[i].key, 0);
        if (n > 0)
            json_array_append_new(kinds, json_pack("{s:s, s:I}", "of", counts[i].key, "count", n));
    }
    return kinds;
}

/* [{net, gbits, count}]: the network and the port's speed. */
static json_t *nic_kinds(const struct shk_facts *facts)
{
    json_t *kinds = json_array(), *nic;
    size_t i;
    json_t *devices = shk_facts_get_array(facts, "cxi.devices");
    json_array_foreach(devices, i, nic)
    {
        const char *speed = member(nic, "link_speed");
        unsigned gbit = 0;
        (void)(speed && sscanf(speed, "BS_%uG", &gbit));
        kind_add(kinds, json_pack("{s:s, s:f}", "net", "cxi", "gbits", (double)gbit));
    }
    json_t *nics = shk_facts_get_array(facts, "rdma.devices");
    json_array_foreach(nics, i, nic)
    {
        json_t *port = json_array_get(json_object_get(nic, "ports"), 0);
        const char *driver = member(nic, "driver"), *layer = member(port, "link_layer");
        bool efa = driver && strcmp(driver, "efa") == 0;
        kind_add(kinds, json_pack("{s:s*, s:f}", "net", efa ? "efa" : layer, "gbits",
                                  json_number_value(json_object_get(port, "rate"))));
    }
    return kinds;
}

/* {product, gpus, link, nics}: what stays when software is changed. NULL: out of memory. */
static json_t *hardware_parts(const struct shk_facts *facts)
{
    struct topo *topo = malloc(sizeof *topo);
    json_t *gpus = gpu_kinds(facts);
    bool link = topo && json_array_size(gpus) && shk_topo_read(topo, facts) &&
                shk_topo_is_link(topo->common);
    json_t *parts =
        json_pack("{s:s*, s:o, s:s*, s:o}", "product", shk_facts_get_text(facts, "host.product"),
                  "gpus", gpus, "link", link ? topo->common : NULL, "nics", nic_kinds(facts));
    if (!topo) {
        json_decref(parts);
        parts = NULL;
    }
    free(topo);
    return parts;
}

/* Memory only where the name has no number of gigabytes in it. */
static void gpu_words(const json_t *gpu, struct shk_strbuf *out)
{
    const char *of = member(gpu, "of"), *name = member(gpu, "name");
    const struct source *counted = source_find(counts, sizeof counts / sizeof *counts, of);
    const struct source *source = source_find(sources, sizeof sources / sizeof *sources, of);
    json_int_t gib = json_integer_value(json_object_get(gpu, "gib"));
    if (counted) {
        shk_strbuf_puts(out, counted->name);
        return;
    }
    shk_strbuf_printf(out, "%s%.60s", source ? source->maker : "", name ? name : "accelerator");
    if (gib > 0 && name && !strstr(name, "GB"))
        shk_strbuf_printf(out, " %lld GiB", (long long)gib);
}

static void nic_words(const json_t *nic, struct shk_strbuf *out)
{
    const char *net = member(nic, "net");
    const struct source *known = source_find(networks, sizeof networks / sizeof *networks, net);
    double gbits = json_number_value(json_object_get(nic, "gbits"));
    shk_strbuf_printf(out, "%.30s", known ? known->name : net ? net : "RDMA");
    if (gbits > 0)
        shk_strbuf_printf(out, " %g Gb/s", gbits);
}

/* "8x NVIDIA H100 80GB HBM3, 2x …" */
static void kinds_words(const json_t *kinds, void (*words)(const json_t *, struct shk_strbuf *),
                        struct shk_strbuf *out)
{
    json_t *kind;
    size_t i;
    json_array_foreach((json_t *)kinds, i, kind)
    {
        shk_strbuf_printf(out, "%s%lldx ", i ? ", " : "",
                          (long long)json_integer_value(json_object_get(kind, "count")));
        words(kind, out);
    }
}

static void version_part(const struct shk_facts *facts, struct shk_strbuf *out)
{
    static const struct {
        const char *word, *key, *other;
    } parts[] = {
        {"driver", "nvml.driver", NULL},       {"ROCm", "rocm.version", NULL},
        {"NCCL", "nccl.version", NULL},        {"RCCL", "rccl.version", NULL},
        {"libfabric", "fabric.version", NULL},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *text = shk_facts_get_text(facts, parts[i].key);
        if (!text && i == 0)
            text = member(shk_facts_get_object(facts, "gpu.nvidia.driver"), "version");
        if (text)
            shk_strbuf_printf(out, "%s%s %s", out->len ? "\n" : "", parts[i].word, text);
    }
}

/* Product, accelerators and NICs, a line for each. */
static void parts_words(const json_t *parts, struct shk_strbuf *out)
{
    const char *product = member(parts, "product"), *link = member(parts, "link");
    const json_t *gpus = json_object_get(parts, "gpus"), *nics = json_object_get(parts, "nics");
    if (product)
        shk_strbuf_puts(out, product);
    if (json_array_size(gpus)) {
        shk_strbuf_puts(out, out->len ? "\n" : "");
        kinds_words(gpus, gpu_words, out);
        if (link)
            shk_strbuf_printf(out, ", %s", link);
    }
    if (json_array_size(nics)) {
        shk_strbuf_puts(out, out->len ? "\n" : "");
        kinds_words(nics, nic_words, out);
    }
}

static char *words_take(struct shk_strbuf *out)
{
    return out->len || out->failed ? shk_strbuf_take(out) : strdup("");
}

char *shk_hardware_of(const struct shk_facts *facts)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    json_t *parts = hardware_parts(facts);
    parts_words(parts, &out);
    version_part(facts, &out);
    out.failed |= !parts;
    json_decref(parts);
    return words_take(&out);
}

char *shk_hardware_kind(const struct shk_facts *facts)
{
    json_t *parts = hardware_parts(facts);
    char *kind = json_dumps(parts, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(parts);
    return kind;
}

char *shk_hardware_words(const char *kind)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    json_t *parts = json_loads(kind, 0, NULL);
    if (parts)
        parts_words(parts, &out);
    else
        shk_strbuf_puts(&out, kind);
    json_decref(parts);
    return words_take(&out);
}

static void count_one(const char *name, void *arg)
{
    (void)name;
    ++*(size_t *)arg;
}

static void say_parts(char *parts, void (*fn)(const char *part, void *arg), void *arg)
{
    for (char *end; parts && *parts; parts = end) {
        end = parts + strcspn(parts, "\n");
        if (*end)
            *end++ = '\0';
        fn(parts, arg);
    }
}

/* Adds the nodes of one entry to those that have its parts. */
static bool count_kind(json_t *kinds, const struct shk_model *model, size_t i, size_t *total_p)
{
    char *parts = shk_hardware_of(model->report->facts[i]);
    size_t n = 0;
    (void)shk_nodefold_each(model->nodes[i], SHK_NODEFOLD_MAX, count_one, &n);
    n = n ? n : 1;
    json_int_t had = parts ? json_integer_value(json_object_get(kinds, parts)) : 0;
    bool bad =
        !parts || json_object_set_new_nocheck(kinds, parts, json_integer(had + (json_int_t)n));
    *total_p += n;
    free(parts);
    return !bad;
}

int shk_hardware_each(const struct shk_model *model, void (*fn)(const char *part, void *arg),
                      void *arg)
{
    json_t *kinds = json_object(), *value;
    const char *parts, *best = NULL;
    size_t total = 0, most = 0;
    bool whole = kinds != NULL;
    for (size_t i = 0; whole && i < model->report->nodes; i++)
        whole = count_kind(kinds, model, i, &total);
    json_object_foreach(whole ? kinds : NULL, parts, value)
    {
        if ((size_t)json_integer_value(value) > most) {
            most = (size_t)json_integer_value(value);
            best = parts;
        }
    }
    char *text = best ? strdup(best) : NULL;
    char *differ = most < total
                       ? shk_strf("%zu node%s differ%s", total - most, total - most == 1 ? "" : "s",
                                  total - most == 1 ? "s" : "")
                       : NULL;
    whole = whole && (text || !best) && (differ || most == total);
    say_parts(text, fn, arg);
    if (differ && text && *text)
        fn(differ, arg);
    free(text);
    free(differ);
    json_decref(kinds);
    return whole ? 0 : -ENOMEM;
}

static void line_part(const char *part, void *arg)
{
    struct shk_strbuf *line = arg;
    shk_strbuf_printf(line, "%s%s", line->len ? "; " : "", part);
}

int shk_hardware_line(const struct shk_model *model, struct shk_strbuf *out)
{
    int rc = shk_hardware_each(model, line_part, out);
    return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* The time of a fact, in RFC 3339 and UTC; false when it has none. */
static bool date_of(const struct shk_facts *facts, const char *key, char text[SHK_STAMP])
{
    long long seconds = shk_stamp_read(shk_facts_get_text(facts, key));
    shk_stamp(text, seconds);
    return seconds >= 0 && *text;
}

char *shk_hardware_date(const struct shk_model *model)
{
    char best[SHK_STAMP] = "", text[SHK_STAMP];
    for (size_t i = 0; i < model->report->nodes; i++)
        if (date_of(model->report->facts[i], "run.start", text) &&
            (!*best || strcmp(text, best) < 0))
            memcpy(best, text, sizeof best);
    for (size_t i = 0; !*best && i < model->report->nodes; i++)
        if (date_of(model->report->facts[i], "clock.time", text))
            memcpy(best, text, sizeof best);
    return *best ? strdup(best) : NULL;
}

double shk_hardware_seconds(const struct shk_facts *const *facts, size_t nodes)
{
    double most = -1;
    for (size_t i = 0; i < nodes; i++) {
        struct shk_fact fact;
        if (shk_facts_get(facts[i], "run.seconds", &fact) && json_is_number(fact.value) &&
            json_number_value(fact.value) > most)
            most = json_number_value(fact.value);
    }
    return most;
}

char *shk_hardware_job(const struct shk_model *model)
{
    for (size_t i = 0; i < model->report->nodes; i++) {
        const char *name = shk_facts_get_text(model->report->facts[i], "job.id");
        long long id = shk_facts_get_int(model->report->facts[i], "job.slurm.job_id", -1);
        if (name || id >= 0)
            return name ? shk_strf("%.64s", name) : shk_strf("%lld", id);
    }
    return NULL;
}

bool shk_hardware_has_gpu(const struct shk_model *model)
{
    for (size_t i = 0; i < model->report->nodes; i++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct shk_fact fact;
            if (!shk_facts_get(model->report->facts[i], counts[c].key, &fact) ||
                fact.state != SHK_FACT_ABSENT)
                return true;
        }
    }
    return false;
}
