/* Bandwidth of the copy engines: between host and GPU, within a GPU, between GPUs. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"
#include "checks/health/gpu_health.h"

#include <string.h>

/* A GPU is slow below this part of its like in the node, or of what its link carries after packet
 * headers. Like GPUs differ by a few percent; another program that copies at the same time leaves
 * half. */
static const double part_of_siblings = 0.8, part_of_link = 0.7;

/* Of the memory's peak a copy reaches 75 to 92 % when nobody else uses it. */
static const double part_of_peak = 0.6;

/* What packets leave of a PCIe link: 256 bytes of data with 24 bytes of header, sequence number and
 * check sum each (PCI Express Base Specification, 2.2 and 3.5). */
static const double packet_part = 256.0 / (256 + 24);

enum { COPIES_MAX = 1024 };

struct rate {
    const json_t *of; /* GPU or pair */
    const char *node;
    double gbs, expected;
};

struct copies {
    struct shk_row *row;
    struct rate rates[COPIES_MAX];
    size_t count, bad, held; /* of the slow ones, those that another program uses */
    size_t lacking;          /* not measured, while others were */
    struct shk_strbuf lacks;
    json_t *ends;   /* slow pairs of each GPU, by node and address */
    double slow[3]; /* the slow ones: least, most, and what others of the worst have */
    char *holder;   /* the first such program */
    long long pid;
    struct shk_strbuf seen; /* the slow ones */
    json_t *nodes;          /* that have one */
    double low, high;

    char *expectation;
};

static const char key[] = "collective.peer.copies";

static const struct view {
    const char *setting, *members[2], *ways[2], *source, *why, *fix, *diagnosis;
} views[] = {
    {"copies between host and GPU",
     {"to_device", "to_host"},
     {"host to", "to host from"},
     "PCI Express Base Specification 6.0, 4.2 (encoding), 2.2 (packets)",
     "the PCIe link of this GPU is slower than it should be, or something else uses it",
     "copy-slow",
     "gpu-copy-slow"},
    {"GPU memory bandwidth",
     {"memory", NULL},
     {"within", NULL},
     "NVIDIA CUDA Driver API: CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "
     "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH",
     "the memory of this GPU is slower than it should be, or another program uses the GPU",
     "memory-slow",
     "gpu-memory-slow"},
    {"copies between GPUs",
     {"gbs", NULL},
     {"", NULL},
     "the other pairs of the node",
     "the path between these GPUs is slower than between the others of the node",
     "pair-slow",
     "gpu-pair-slow"},
};

/* The rate that a GPU's link carries, and the derivation in words; 0: not known. */
static double link_rate(struct copies *c, const json_t *gpu)
{
    json_t *link = NULL;
    double gbs = 0, speed = 0;
    long long width = 0;
    if (shk_read_member_object(c->row, key, gpu, "link", &link) != SHK_LOOK_PRESENT ||
        shk_read_member_number(c->row, key, link, "gbs", &gbs) != SHK_LOOK_PRESENT || gbs <= 0 ||
        shk_read_member_number(c->row, key, link, "speed", &speed) != SHK_LOOK_PRESENT ||
        shk_read_member_int(c->row, key, link, "width", &width) != SHK_LOOK_PRESENT)
        return 0;
    if (!c->expectation)
        c->expectation = shk_strf("x%lld at %g GT/s carry %.1f GB/s, less packet headers %.1f GB/s",
                                  width, speed, gbs, gbs * packet_part);
    return gbs * packet_part;
}

/* Of the links of a GPU, those that lead to that peer or to a switch: GB/s together, 0 not known.
 */
static double nvlinks(const struct shk_facts *facts, const char *pci, const char *peer)
{
    json_t *devices = NULL, *health = NULL, *gpu, *links = NULL, *link;
    double speed = 0, sum = 0;
    size_t i, k;
    (void)shk_look_array(facts, "nvml.devices", &devices);
    (void)shk_look_array(facts, "nvml.health", &health);
    json_array_foreach(health, i, gpu)
    {
        if (strcmp(shk_member_name(gpu, "pci"), pci) != 0 ||
            shk_look_member_array(gpu, "links", &links) != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(links, k, link)(void) shk_look_member_number(link, "speed", &speed);
    }
    json_array_foreach(devices, i, gpu)
    {
        if (strcmp(shk_member_name(gpu, "pci"), pci) != 0 ||
            shk_look_member_array(gpu, "links", &links) != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(links, k, link)
        {
            bool active = false;
            (void)shk_look_member_bool(link, "active", &active);
            if (active && (strcmp(shk_member_name(link, "remote"), "switch") == 0 ||
                           strcmp(shk_member_name(link, "pci"), peer) == 0))
                sum += speed / 1000;
        }
    }
    return sum;
}

static double pair_rate(struct copies *c, const json_t *pair)
{
    const char *from = shk_member_name(pair, "from"), *to = shk_member_name(pair, "to");
    double a = nvlinks(c->row->ctx->facts, from, to), b = nvlinks(c->row->ctx->facts, to, from);
    double gbs = a < b ? a : b;
    if (gbs > 0 && !c->expectation)
        c->expectation = shk_strf("the active NVLinks carry %.0f GB/s each way", gbs);
    return gbs;
}

static double memory_rate(struct copies *c, const json_t *gpu)
{
    double peak = 0;
    if (shk_read_member_number(c->row, key, gpu, "memory_peak", &peak) != SHK_LOOK_PRESENT ||
        peak <= 0)
        return 0;
    if (!c->expectation)
        c->expectation = shk_strf("clock and bus width give %.0f GB/s, of which a copy reaches "
                                  "75 %% or more",
                                  peak);
    return peak;
}

static char *name_of(const struct rate *rate, const char *way);

static void lack(struct copies *c, const json_t *of, const char *node, const char *member)
{
    struct rate rate = {.of = of, .node = node};
    char *name = name_of(&rate, member);
    if (c->lacking++ < 3)
        shk_strbuf_printf(&c->lacks, "%s%s", c->lacks.len ? ", " : "", name ? name : "?");
    free(name);
}

static void add(struct copies *c, const json_t *of, const char *node, const char *member,
                double expected)
{
    double gbs = 0;
    enum shk_look look = shk_look_member_number(of, member, &gbs);
    if (look == SHK_LOOK_PRESENT && gbs > 0 && c->count < COPIES_MAX)
        c->rates[c->count++] = (struct rate){of, node, gbs, expected};
    else if (look == SHK_LOOK_ABSENT || look == SHK_LOOK_PRESENT)
        lack(c, of, node, member);
    else
        shk_row_lacks(c->row, key, "%s of %s was not read", member, node);
}

/* Each GPU to each other. */
static void count_pairs(struct copies *c, const json_t *node, const char *name, size_t listed)
{
    json_t *gpus = NULL;
    (void)shk_read_member_array(c->row, key, node, "gpus", &gpus);
    size_t n = json_array_size(gpus);
    if (n > 1 && listed < n * (n - 1))
        shk_row_lacks(c->row, key, "%zu of %zu pairs of %s were not measured", n * (n - 1) - listed,
                      n * (n - 1), name);
}

static void gather(struct copies *c, const json_t *nodes, const struct view *view,
                   const char *member)
{
    bool pairs = strcmp(member, "gbs") == 0, memory = strcmp(member, "memory") == 0;
    const json_t *node;
    json_t *list = NULL, *of;
    size_t i, k;
    (void)view;
    c->count = 0;
    json_array_foreach(nodes, i, node)
    {
        const char *name = shk_member_name(node, "node");
        if (shk_read_member_array(c->row, key, node, pairs ? "pairs" : "gpus", &list) !=
            SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(list, k, of) add(c, of, name, member,
                                            pairs    ? pair_rate(c, of)
                                            : memory ? memory_rate(c, of)
                                                     : link_rate(c, of));
        if (pairs)
            count_pairs(c, node, name, json_array_size(list));
    }
}

/* The median of a node's like; of two the faster one. Rates of links that carry differently are not
 * alike. */
static double siblings(const struct copies *c, const struct rate *own)
{
    double like[COPIES_MAX];
    size_t n = 0;
    const char *from = shk_member_words(own->of, "from"), *to = shk_member_words(own->of, "to");
    for (size_t i = 0; i < c->count; i++) {
        const struct rate *r = &c->rates[i];
        if (strcmp(r->node, own->node) != 0 || r->expected > own->expected + 1e-9 ||
            r->expected < own->expected - 1e-9)
            continue;
        /* PCIe paths are of many kinds: only there and back are alike */
        if (from && to && own->expected <= 0 && r != own &&
            (strcmp(shk_member_name(r->of, "from"), to) != 0 ||
             strcmp(shk_member_name(r->of, "to"), from) != 0))
            continue;
        size_t k = n++;
        for (; k > 0 && like[k - 1] > r->gbs; k--)
            like[k] = like[k - 1];
        like[k] = r->gbs;
    }
    return n < 2 ? 0 : n == 2 ? like[1] : like[n / 2];
}

static char *name_of(const struct rate *rate, const char *way)
{
    const char *from = shk_member_words(rate->of, "from"), *to = shk_member_words(rate->of, "to");
    if (from && to)
        return shk_strf("%s: %s to %s", rate->node, from, to);
    return shk_strf("%s: %s %s", rate->node, way, shk_member_name(rate->of, "pci"));
}

/* Facts tell of the processes of one node only. */
static void look_for_holder(struct copies *c, const struct rate *rate)
{
    static const char *const members[] = {"pci", "from", "to"};
    const struct shk_facts *facts = c->row->ctx->facts;
    const char *host = NULL;
    bool held = false;
    if (shk_look_text(facts, "host.name", &host) != SHK_LOOK_PRESENT ||
        strcmp(host, rate->node) != 0)
        return;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *pci = shk_member_words(rate->of, members[i]);
        long long pid = 0;
        char *holder = pci ? shk_gpu_holder(facts, pci, &pid) : NULL;
        held = held || holder;
        if (holder && !c->holder) {
            c->holder = holder;
            c->pid = pid;
        } else {
            free(holder);
        }
    }
    c->held += held;
}

/* Counts a slow pair for both its GPUs. */
static void note_ends(struct copies *c, const struct rate *rate, double like)
{
    static const char *const members[] = {"from", "to"};
    for (size_t i = 0; i < 2; i++) {
        const char *pci = shk_member_words(rate->of, members[i]);
        char *end = pci ? shk_strf("%s: %s", rate->node, pci) : NULL;
        json_int_t have = end ? json_integer_value(json_object_get(c->ends, end)) : 0;
        if (end)
            (void)json_object_set_new(c->ends, end, json_integer(have + 1));
        free(end);
    }
    c->slow[0] = c->slow[0] == 0 || rate->gbs < c->slow[0] ? rate->gbs : c->slow[0];
    c->slow[1] = rate->gbs > c->slow[1] ? rate->gbs : c->slow[1];
    c->slow[2] = like > c->slow[2] ? like : c->slow[2];
}

static void blame(struct copies *c, const struct rate *rate)
{
    c->bad++;
    look_for_holder(c, rate);
    if (!shk_array_has(c->nodes, rate->node, false))
        json_array_append_new(c->nodes, json_string(rate->node));
}

/* A link that is slower than both ends can do, while data goes over it. */
static void judge_link(struct copies *c, const struct rate *rate)
{
    json_t *link = NULL;
    double speed = 0, most = 0;
    (void)shk_look_member_object(rate->of, "link", &link);
    if (!link || shk_look_member_number(link, "speed", &speed) != SHK_LOOK_PRESENT ||
        shk_read_member_number(c->row, key, link, "most", &most) != SHK_LOOK_PRESENT ||
        speed >= most)
        return;
    shk_strbuf_printf(&c->seen, "%s%s: PCIe link of %s at %g GT/s under load, both ends can do %g",
                      c->seen.len ? ", " : "", rate->node, shk_member_name(link, "at"), speed,
                      most);
    blame(c, rate);
}

static void judge(struct copies *c, const struct view *view, int which)
{
    double limit = strcmp(view->members[which], "memory") == 0 ? part_of_peak : part_of_link;
    for (size_t i = 0; i < c->count; i++) {
        const struct rate *rate = &c->rates[i];
        double like = siblings(c, rate);
        if (which == 0)
            judge_link(c, rate);
        c->low = c->low == 0 || rate->gbs < c->low ? rate->gbs : c->low;
        c->high = rate->gbs > c->high ? rate->gbs : c->high;
        if (rate->gbs >= part_of_siblings * like && rate->gbs >= limit * rate->expected)
            continue;
        char *name = name_of(rate, view->ways[which]);
        blame(c, rate);
        note_ends(c, rate, like);
        if (c->bad <= 8)
            shk_strbuf_printf(&c->seen, "%s%s %.1f GB/s", c->seen.len ? ", " : "",
                              name ? name : "?", rate->gbs);
        if (rate->gbs < part_of_siblings * like && c->bad <= 8)
            shk_strbuf_printf(&c->seen, " (others %.1f)", like);
        free(name);
    }
}

/* Is the host memory far from one of the GPUs? Then the processor's own links count. */
static bool is_far(const json_t *nodes)
{
    const json_t *node, *gpu;
    json_t *list = NULL;
    size_t i, k;
    json_array_foreach(nodes, i, node)
    {
        (void)shk_look_member_array(node, "gpus", &list);
        json_array_foreach(list, k, gpu)
        {
            bool near = true;
            if (shk_look_member_bool(gpu, "near", &near) == SHK_LOOK_PRESENT && !near)
                return true;
        }
    }
    return false;
}

/* All that is slow is used by somebody else as well: no word about the hardware. */
static void tell_shared(struct copies *c)
{
    char *pid = shk_strf("%lld", c->pid);
    c->row->diagnosis = "gpu-shared";
    shk_row_text(&c->row->why, "another program uses the GPU at the same time: process %s",
                 c->holder);
    if (pid && c->pid > 0)
        shk_row_fix(c->row, "gpu-shared", "pid", pid, NULL);
    free(pid);
}

/* "node9: 0000:02:00.0 with each of 7 others, 20.0 to 21.0 GB/s (others 40.0)": one GPU is part of
 * all slow pairs, and has no other, at least one way. NULL: it is not so. */
static char *slow_gpu(const struct copies *c, const json_t *nodes)
{
    json_t *gpus = NULL, *n;
    const char *end;
    (void)shk_look_member_array(json_array_get(nodes, 0), "gpus", &gpus);
    size_t others = json_array_size(gpus) > 1 ? json_array_size(gpus) - 1 : 0;
    if (json_array_size(nodes) != 1 || others < 2 || json_object_size(c->ends) != others + 1 ||
        (c->bad != others && c->bad != 2 * others))
        return NULL;
    json_object_foreach(c->ends, end, n)
    {
        if (json_integer_value(n) != (json_int_t)c->bad)
            continue;
        char *like = c->slow[2] > 0 ? shk_strf(" (others %.1f)", c->slow[2]) : NULL;
        char *text = shk_strf("%s with each of %zu others, %s, %.1f to %.1f GB/s%s", end, others,
                              c->bad == others ? "one way" : "both ways", c->slow[0], c->slow[1],
                              like ? like : "");
        free(like);
        return text;
    }
    return NULL;
}

static void tell(struct copies *c, const struct view *view, const json_t *nodes)
{
    struct shk_row *row = c->row;
    bool far = strcmp(view->members[0], "to_device") == 0 && is_far(nodes);
    shk_row_verdict(row, c->bad ? SHK_WARN : SHK_PASS, SHK_TESTED);
    if (!c->bad) {
        shk_row_text(&row->observed, "%.1f to %.1f GB/s", c->low, c->high);
        if (c->expectation)
            shk_row_text(&row->expected, "%s", c->expectation);
        return;
    }
    char *gpu = slow_gpu(c, nodes);
    if (c->bad > 8)
        shk_strbuf_printf(&c->seen, ", and %zu more", c->bad - 8);
    row->diagnosis = view->diagnosis;
    shk_row_text(&row->observed, "%s", gpu ? gpu : shk_strbuf_text(&c->seen));
    free(gpu);
    shk_row_text(&row->expected, "%s%sat least 80 %% of the others",
                 c->expectation ? c->expectation : "", c->expectation ? "; " : "");
    shk_row_text(
        &row->why, "%s%s", view->why,
        far ? "; no CPU next to a GPU may be used, so its host memory is on another NUMA node"
            : "");
    shk_row_fix(row, view->fix, NULL);
    if (c->held == c->bad && c->holder)
        tell_shared(c);
}

static void one_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                    const struct view *view, json_t *nodes)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_copies, view->setting);
    struct copies *c = calloc(1, sizeof *c);
    size_t measured = 0;
    row.fact = key;
    row.source = view->source;
    shk_row_was_read(&row);
    if (!c) {
        shk_row_drop(&row);
        return;
    }
    c->row = &row;
    c->nodes = json_array();
    c->ends = json_object();
    for (int i = 0; i < 2 && view->members[i]; i++) {
        gather(c, nodes, view, view->members[i]);
        judge(c, view, i);
        measured += c->count;
    }
    if (measured && c->lacking)
        shk_row_lacks(&row, key, "%zu not measured: %s%s", c->lacking, shk_strbuf_text(&c->lacks),
                      c->lacking > 3 ? ", …" : "");
    if (measured || shk_row_lacking(&row)) {
        if (measured)
            tell(c, view, nodes);
        shk_row_end(findings, &row);
        if (c->bad)
            shk_row_nodes(findings, c->nodes, NULL);
    } else {
        shk_row_na(findings, &row, "not measured: %s",
                   strcmp(view->members[0], "gbs") == 0 ? "there is one GPU"
                                                        : "memory was short, or the driver cannot");
    }
    json_decref(c->nodes);
    json_decref(c->ends);
    shk_strbuf_free(&c->lacks);
    shk_strbuf_free(&c->seen);
    free(c->expectation);
    free(c->holder);
    free(c);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_fact fact;
    json_t *nodes = NULL;
    if (shk_look(ctx->facts, key, &fact) == SHK_LOOK_MISSING)
        return; /* no GPU copied anything; the rows of the transport say why */
    if (shk_look_array(ctx->facts, key, &nodes) != SHK_LOOK_PRESENT) {
        for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
            struct shk_row row = shk_row_begin(ctx, &shk_check_copies, views[i].setting);
            shk_row_unread(findings, &row, ctx->facts, key);
        }
        return;
    }
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        one_row(ctx, findings, &views[i], nodes);
}

const struct shk_check shk_check_copies = {
    .id = "gpu.copies",
    .diagnosis = "gpu-copy-slow",
    .family = "collectives",
    .of_job = true,
    .title = "The copy engines of the GPUs are as fast as their links and their siblings",
    .eval = eval,
    .doc =
        "Fact: collective.peer.copies: copies of 64 MiB of pinned host memory of the GPU's NUMA "
        "node to the GPU and back, of 256 MiB within a GPU, and between every pair of GPUs, one "
        "GPU at a time, the best of three rounds.\n"
        "Expected between host and GPU: speed x width of the narrowest PCIe link above the GPU "
        "while it copies, less encoding and packet headers; below 70 % is WARN. Memory: below 60 % "
        "of twice its clock times the width of its bus is WARN. Pairs: below 70 % of what their "
        "active NVLinks carry is WARN. Anything below 80 % of the median of its like on the node "
        "(of two the faster one; over PCIe only there and back are alike) is WARN, and so is a "
        "link that is slower under load than both its ends can do. Slow GPUs and pairs are named, "
        "a GPU "
        "that is slow with each other one as such. What was not measured while others were is "
        "unknown. "
        "Where another process holds each of them (nvml.health), that is the cause.",
};
