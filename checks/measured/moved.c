/* Counters of GPUs, PCIe, memory and the kernel's log that moved while collectives ran, over all
 * transports: one row for each kind of hardware. */
#include "checks/measured/moved.h"
#include "checks/base/remedy.h"

#include "checks/base/coded.h"

#include <string.h>

enum { MOVED_SHOWN = 8 };

static const struct view {
    const char *setting, *class, *none, *source;
} views[] = {
    {"GPU counters during the collectives", "gpu", "no GPU on this node",
     "NVIDIA/DCGM:dcgmlib/dcgm_gpu_hardware_limits.h; NVIDIA NVML API Reference: "
     "nvmlDeviceGetPcieReplayCounter, nvmlFieldValueEnums; torvalds/linux:drivers/gpu/drm/amd/"
     "amdgpu/amdgpu_ras.c"},
    {"PCIe errors during the collectives", "pci", "the kernel counts no PCIe errors here",
     "torvalds/linux:Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats; "
     "NVIDIA/DCGM:dcgmlib/dcgm_gpu_hardware_limits.h"},
    {"memory errors during the collectives", "memory", "no memory controller counts errors here",
     "torvalds/linux:Documentation/admin-guide/ras/main.rst"},
    {"kernel log during the collectives", "log", "the kernel's log is not kept here",
     "NVIDIA XID Errors: Xid Catalog; torvalds/linux:Documentation/ABI/testing/dev-kmsg"},
    {"network counters of this node", "network", "no network device here",
     "NVIDIA, Understanding mlx5 Linux Counters and Status Parameters; InfiniBand Architecture "
     "Specification, PortCounters"},
};

struct moved {
    const struct view *view;
    struct shk_row *row;
    const char *transport, *node;
    size_t facts, devices, shown, more;
    struct shk_moved_word worst;
    struct shk_strbuf bad, noted; /* of WARN and FAIL, of notes */
    json_t *nodes;                /* with the worst */
};

static bool is_for(const struct view *view, const struct shk_moved_item *item)
{
    if (shk_moved_is_event(item))
        return strcmp(view->class, "log") == 0;
    /* interfaces carry other traffic, too; what the ranks of one node use is a port of a NIC */
    if (strcmp(item->class, "network") == 0 && !strchr(item->scope, '/') &&
        strncmp(item->scope, "cxi", 3) != 0)
        return false;
    return strcmp(view->class, item->class) == 0;
}

static void hear(struct moved *m, const struct shk_moved_item *item)
{
    struct shk_moved_word word = shk_moved_judge(m->row->ctx->config, item);
    if (word.verdict == SHK_PASS)
        return;
    struct shk_strbuf *to = word.verdict == SHK_NOTE ? &m->noted : &m->bad;
    char *by = shk_moved_by(item);
    if (m->shown == MOVED_SHOWN)
        m->more++;
    else
        shk_strbuf_printf(to, "%s%s: %s %s %s during %s", to->len ? "; " : "", m->node, item->scope,
                          item->counter, by ? by : "", m->transport);
    m->shown += m->shown < MOVED_SHOWN;
    free(by);
    if (word.verdict < m->worst.verdict)
        return;
    if (word.verdict > m->worst.verdict) {
        m->worst = word;
        json_array_clear(m->nodes);
    }
    if (!shk_array_has(m->nodes, m->node, false))
        json_array_append_new(m->nodes, json_string(m->node));
}

/* Of the same device: how many cycles its firmware counted. */
static long long cycles_of(const json_t *list, const char *scope)
{
    const json_t *item;
    long long by = 0;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (strcmp(shk_member_name(item, "kind"), "cycles") == 0 &&
            strcmp(shk_member_name(item, "scope"), scope) == 0)
            (void)shk_look_member_int(item, "by", &by);
    }
    return by;
}

static void one_item(struct moved *m, const char *key, const json_t *list, const json_t *object,
                     double seconds)
{
    struct shk_moved_item item = {.seconds = seconds};
    if (shk_read_member_text(m->row, key, object, "scope", &item.scope) != SHK_LOOK_PRESENT ||
        shk_read_member_text(m->row, key, object, "class", &item.class) != SHK_LOOK_PRESENT ||
        shk_read_member_text(m->row, key, object, "counter", &item.counter) != SHK_LOOK_PRESENT ||
        shk_read_member_text(m->row, key, object, "kind", &item.kind) != SHK_LOOK_PRESENT ||
        shk_read_member_int(m->row, key, object, "by", &item.by) != SHK_LOOK_PRESENT)
        return;
    item.cycles = cycles_of(list, item.scope);
    if (item.by > 0 && is_for(m->view, &item))
        hear(m, &item);
}

/* A scope without a class may be of any: no row can be sure then. */
static bool of_class(const struct moved *m, const char *key, const json_t *classes,
                     const char *scope)
{
    const char *class = NULL;
    return shk_read_member_text(m->row, key, classes, scope, &class) == SHK_LOOK_PRESENT &&
           strcmp(class, m->view->class) == 0;
}

static void one_node(struct moved *m, const char *key, const json_t *node)
{
    json_t *list = NULL, *classes = NULL, *item;
    double seconds = 0;
    size_t i;
    m->node = shk_member_name(node, "node");
    (void)shk_read_member_object(m->row, key, node, "classes", &classes);
    (void)shk_read_member_number(m->row, key, node, "seconds", &seconds);
    if (shk_read_member_array(m->row, key, node, "moved", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item) one_item(m, key, list, item, seconds);
    if (shk_read_member_texts(m->row, key, node, "read", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item) m->devices +=
            json_is_string(item) && of_class(m, key, classes, json_string_value(item));
    if (shk_read_member_array(m->row, key, node, "unread", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item)
        {
            const char *why = shk_member_words(item, "why");
            const char *scope = shk_member_name(item, "scope");
            if (of_class(m, key, classes, scope))
                shk_row_lacks(m->row, key, "%s on %s: %s", scope, m->node,
                              why ? why : "no reason was recorded");
        }
}

static void one_run(struct moved *m, const char *key, const json_t *run)
{
    json_t *list = NULL, *node, *devices = NULL;
    long long quiet = 0, count = 0;
    size_t i;
    if (shk_read_member_array(m->row, key, run, "nodes", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, node) one_node(m, key, node);
    if (shk_look_member_int(run, "quiet", &quiet) != SHK_LOOK_PRESENT || quiet <= 0)
        return;
    if (shk_read_member_object(m->row, key, run, "devices", &devices) == SHK_LOOK_PRESENT &&
        shk_look_member_int(devices, m->view->class, &count) == SHK_LOOK_PRESENT && count > 0)
        m->devices += (size_t)count;
}

/* collective.<transport>.moved */
static int one_fact(const struct shk_fact *fact, void *arg)
{
    struct moved *m = arg;
    const char *name = fact->key + strlen("collective."), *dot = strchr(name, '.');
    json_t *runs = NULL, *run;
    size_t i;
    if (!dot || strcmp(dot, ".moved") != 0)
        return 0;
    char *transport = shk_strf("%.*s", (int)(dot - name), name);
    m->facts++;
    m->transport = transport ? transport : "?";
    if (shk_read_array(m->row, fact->key, &runs) == SHK_LOOK_PRESENT)
        json_array_foreach(runs, i, run) one_run(m, fact->key, run);
    m->transport = NULL;
    free(transport);
    return 0;
}

static void tell_bad(struct moved *m)
{
    struct shk_row *row = m->row;
    bool bad = m->worst.verdict > SHK_NOTE;
    struct shk_strbuf *seen = bad ? &m->bad : &m->noted;
    if (m->more)
        shk_strbuf_printf(seen, "; and %zu more", m->more);
    shk_row_verdict(row, m->worst.verdict, SHK_TESTED);
    shk_row_text(&row->observed, "%s", shk_strbuf_text(seen));
    if (bad) {
        row->diagnosis = m->worst.diagnosis;
        shk_row_text(&row->expected, "nothing of it while a collective runs");
        shk_row_text(&row->why, "%s", m->worst.why);
        shk_row_fix(row, m->worst.fix, NULL);
    }
}

/* Nothing of this class was read: is there none? */
static bool tell_none(struct moved *m, struct shk_findings *findings)
{
    bool gpu = strcmp(m->view->class, "gpu") == 0;
    long long gpus = gpu ? shk_read_gpu_count(m->row) : 0;
    if (gpus > 0)
        shk_row_lacks(m->row, "collective.*.moved", "no counter of a GPU was read");
    if (gpus || shk_row_lacking(m->row))
        return false;
    shk_row_na(findings, m->row, "%s", m->view->none);
    return true;
}

static void one_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                    const struct view *view)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_moved, view->setting);
    struct moved m = {.view = view,
                      .row = &row,
                      .worst = {.verdict = SHK_PASS},
                      .bad = SHK_STRBUF_INIT,
                      .noted = SHK_STRBUF_INIT,
                      .nodes = json_array()};
    bool told = false;
    row.fact = "collective.*.moved";
    row.source = view->source;
    (void)shk_facts_each(ctx->facts, "collective.", one_fact, &m);
    if (!m.facts) {
        shk_row_drop(&row); /* nothing ran, or nobody looked at counters */
        told = true;
    } else if (m.shown) {
        tell_bad(&m);
    } else if (m.devices) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "nothing moved in %zu collective%s", m.facts,
                     m.facts == 1 ? "" : "s");
    } else {
        told = tell_none(&m, findings);
    }
    if (!told) {
        shk_row_end(findings, &row);
        if (m.shown)
            shk_row_nodes(findings, m.nodes, NULL);
    }
    json_decref(m.nodes);
    shk_strbuf_free(&m.bad);
    shk_strbuf_free(&m.noted);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        one_row(ctx, findings, &views[i]);
}

const struct shk_check shk_check_moved = {
    .id = "collective.moved",
    .diagnosis = "accelerator-hardware-fault",
    .family = "collectives",
    .of_job = true,
    .title = "No device counts errors during the collectives",
    .eval = eval,
    .doc =
        "Fact: collective.<transport>.moved: counters of GPUs, PCIe, memory controllers and lines "
        "of the kernel's log, before and after each collective; only what moved counts.\n"
        "Uncorrected errors of GPU or memory are FAIL, of PCIe WARN (fatal ones FAIL). PCIe "
        "replays and damaged transfers are WARN above 8 per minute, the maximum that NVIDIA's DCGM "
        "allows, else a note. NVLink replays and recoveries are WARN from the first on, damaged "
        "flits above 100 per second (both DCGM). Clocks lowered by heat or the power brake are "
        "WARN from 0.2 s on; a power cap is not judged. Corrected errors are a note.\n"
        "Xid and SXid that came during the run: FAIL or WARN where NVIDIA's catalogue asks for a "
        "reset or a repair, else a note. A link that went down during the run is WARN.\n"
        "Network devices have a row here when the ranks share one node, and are noted only; across "
        "nodes see collective.counters. A counter that was not read is UNKNOWN.",
};
