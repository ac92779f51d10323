#include "reports/model/hardware.h"
#include "core/text/stamp.h"
#include "reports/model/nodefold.h"
#include "reports/model/topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of GPUs or NICs that one line can hold. */
enum { HARDWARE_KINDS = 4, HARDWARE_NAME = 96 };

struct kind {
    char name[HARDWARE_NAME];
    size_t count;
};

static void kind_add(struct kind kinds[HARDWARE_KINDS], const char *name)
{
    for (size_t i = 0; i < HARDWARE_KINDS; i++) {
        if (kinds[i].count && strcmp(kinds[i].name, name) != 0)
            continue;
        snprintf(kinds[i].name, sizeof kinds[i].name, "%s", name);
        kinds[i].count++;
        return;
    }
}

static void kind_put(struct shk_strbuf *out, const struct kind kinds[HARDWARE_KINDS])
{
    for (size_t i = 0; i < HARDWARE_KINDS && kinds[i].count; i++)
        shk_strbuf_printf(out, "%s%zux %s", i || out->len ? ", " : "", kinds[i].count,
                          kinds[i].name);
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* One name for each GPU, by whatever knows its model; memory only where the name has no number of
 * gigabytes in it. */
static void gpu_kinds(const struct shk_facts *facts, struct kind kinds[HARDWARE_KINDS])
{
    static const struct {
        const char *key, *name, *maker;
    } sources[] = {
        {"nvml.devices", "name", ""},       {"gpu.nvidia.devices", "model", ""},
        {"cuda.devices", "name", ""},       {"gpu.amd.devices", "gfx", "AMD "},
        {"neuron.devices", "instance", ""},
    };
    for (size_t s = 0; s < sizeof sources / sizeof *sources && !kinds[0].count; s++) {
        json_t *device;
        size_t i;
        json_array_foreach(shk_facts_get_array(facts, sources[s].key), i, device)
        {
            const char *name = member(device, sources[s].name);
            json_int_t memory = json_integer_value(json_object_get(device, "memory"));
            char text[HARDWARE_NAME], size[32] = "";
            if (memory > 0 && name && !strstr(name, "GB"))
                snprintf(size, sizeof size, " %lld GiB", (long long)((memory + (1 << 29)) >> 30));
            snprintf(text, sizeof text, "%s%.60s%s", sources[s].maker, name ? name : "accelerator",
                     size);
            kind_add(kinds, text);
        }
    }
}

/* What the bus has, where no driver names it. */
static void gpu_count(const struct shk_facts *facts, struct shk_strbuf *out)
{
    static const struct {
        const char *key, *name;
    } counts[] = {
        {"pci.count.gpu-nvidia", "NVIDIA GPU"},
        {"pci.count.gpu-amd", "AMD GPU"},
        {"pci.count.gpu-intel", "Intel GPU"},
        {"pci.count.neuron", "Neuron device"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        long long n = shk_facts_get_int(facts, counts[i].key, 0);
        if (n > 0)
            shk_strbuf_printf(out, "%s%lldx %s", out->len ? ", " : "", n, counts[i].name);
    }
}

static void gpu_part(const struct shk_facts *facts, struct shk_strbuf *out)
{
    struct kind kinds[HARDWARE_KINDS] = {0};
    struct topo *topo = malloc(sizeof *topo);
    gpu_kinds(facts, kinds);
    kind_put(out, kinds);
    if (!out->len)
        gpu_count(facts, out);
    if (!topo)
        out->failed = true;
    else if (out->len && shk_topo_read(topo, facts) && shk_topo_is_link(topo->common))
        shk_strbuf_printf(out, ", %s", topo->common);
    free(topo);
}

/* The port's speed and network. */
static void nic_name(const json_t *nic, char *text, size_t size)
{
    json_t *port = json_array_get(json_object_get(nic, "ports"), 0);
    const char *driver = member(nic, "driver"), *layer = member(port, "link_layer");
    double rate = json_number_value(json_object_get(port, "rate"));
    bool efa = driver && strcmp(driver, "efa") == 0;
    bool roce = layer && strcmp(layer, "Ethernet") == 0;
    const char *kind = efa ? "EFA" : roce ? "RoCE" : layer && !efa ? layer : "RDMA";
    int n = snprintf(text, size, "%.30s", kind);
    if (rate > 0 && n > 0)
        snprintf(text + n, size - (size_t)n, " %g Gb/s", rate);
}

static void nic_part(const struct shk_facts *facts, struct shk_strbuf *out)
{
    struct kind kinds[HARDWARE_KINDS] = {0};
    char text[HARDWARE_NAME];
    json_t *nic;
    size_t i;
    json_array_foreach(shk_facts_get_array(facts, "cxi.devices"), i, nic)
    {
        const char *speed = member(nic, "link_speed");
        unsigned gbit = 0;
        if (speed && sscanf(speed, "BS_%uG", &gbit) == 1)
            snprintf(text, sizeof text, "Slingshot %u Gb/s", gbit);
        else
            snprintf(text, sizeof text, "Slingshot");
        kind_add(kinds, text);
    }
    json_array_foreach(shk_facts_get_array(facts, "rdma.devices"), i, nic)
    {
        nic_name(nic, text, sizeof text);
        kind_add(kinds, text);
    }
    kind_put(out, kinds);
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

/* Product and the first `count` parts, a line for each. */
static char *hardware_lines(const struct shk_facts *facts, size_t count)
{
    void (*const parts[])(const struct shk_facts *, struct shk_strbuf *) = {gpu_part, nic_part,
                                                                            version_part};
    struct shk_strbuf all = SHK_STRBUF_INIT;
    const char *product = shk_facts_get_text(facts, "host.product");
    if (product)
        shk_strbuf_puts(&all, product);
    for (size_t i = 0; i < count; i++) {
        struct shk_strbuf part = SHK_STRBUF_INIT;
        parts[i](facts, &part);
        if (part.len)
            shk_strbuf_printf(&all, "%s%s", all.len ? "\n" : "", shk_strbuf_text(&part));
        all.failed |= part.failed;
        shk_strbuf_free(&part);
    }
    return all.len || all.failed ? shk_strbuf_take(&all) : strdup("");
}

char *shk_hardware_of(const struct shk_facts *facts)
{
    return hardware_lines(facts, 3);
}

char *shk_hardware_kind(const struct shk_facts *facts)
{
    return hardware_lines(facts, 2);
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
    shk_nodefold_each(model->nodes[i], count_one, &n);
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
    static const char *const counts[] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd",
                                         "pci.count.gpu-intel", "pci.count.neuron"};
    for (size_t i = 0; i < model->report->nodes; i++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct shk_fact fact;
            if (!shk_facts_get(model->report->facts[i], counts[c], &fact) ||
                fact.state != SHK_FACT_ABSENT)
                return true;
        }
    }
    return false;
}
