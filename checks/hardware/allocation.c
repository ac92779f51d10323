/* What of the node's accelerators this job may use. */
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/value/grammar.h"
#include "checks/value/makers.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

struct allocation {
    const struct shk_maker *maker;
    long long bus, given;
    const char *by; /* who says so; NULL: nobody */
};

/* "0-3,5" -> 5; -1: no such list. */
static long long list_size(const char *text)
{
    const char *start;
    size_t len;
    long long count = 0;
    while (shk_grammar_item(&text, ',', &start, &len)) {
        char *end;
        long first = strtol(start, &end, 10), last = first;
        if (end == start)
            return -1;
        if (*end == '-')
            last = strtol(end + 1, NULL, 10);
        count += last >= first ? last - first + 1 : 1;
    }
    return count;
}

/* Does this item of a mask name a device? Numbers below `bus`, UUIDs of GPUs and of MIG instances.
 */
static bool names_device(const char *item, long long bus)
{
    char *end;
    long long index = strtoll(item, &end, 10);
    if (strncasecmp(item, "GPU-", 4) == 0 || strncasecmp(item, "MIG-", 4) == 0)
        return true;
    return end != item && (*end == ',' || *end == '\0' || *end == ' ') && index >= 0 && index < bus;
}

/* Devices that a mask leaves: the runtimes stop at the first item that names none. */
static long long mask_size(const char *mask, long long bus)
{
    const char *start;
    size_t len;
    long long count = 0;
    while (shk_grammar_item(&mask, ',', &start, &len) && len && names_device(start, bus))
        count++;
    return count;
}

static enum shk_look look_variable(struct shk_row *row, bool remember, const char *name,
                                   const char **text_p)
{
    return remember ? shk_read_env(row, name, text_p) : shk_look_env(row->ctx->facts, name, text_p);
}

long long shk_gpus_allocated(struct shk_row *row, bool remember, const char **by_p)
{
    long long count = -1;
    const char *text = NULL;
    if (look_variable(row, remember, shk_variable("job.slurm.gpus_on_node"), &text) ==
        SHK_LOOK_PRESENT) {
        *by_p = shk_variable("job.slurm.gpus_on_node");
        return list_size(text) < 0 ? -1 : strtoll(text, NULL, 10);
    }
    if (shk_look_int(row->ctx->facts, "job.slurm.gpus_on_node", &count) == SHK_LOOK_PRESENT) {
        *by_p = shk_variable("job.slurm.gpus_on_node");
        return count;
    }
    for (const char *const *v = shk_variables("job-gpus"); *v; v++)
        if (look_variable(row, remember, *v, &text) == SHK_LOOK_PRESENT && list_size(text) >= 0) {
            *by_p = *v;
            return list_size(text);
        }
    return -1;
}

/* What this process is shown: by a device control group, or in a container. */
static long long shown(const struct shk_row *row, const struct allocation *a, const char **by_p)
{
    json_t *list = NULL;
    struct shk_fact lost;
    bool nvidia = strcmp(a->maker->name, "nvidia") == 0;
    const struct shk_facts *facts = row->ctx->facts;
    if (nvidia && shk_look(facts, "nvml.lost", &lost) != SHK_LOOK_PRESENT &&
        shk_look_array(facts, "nvml.devices", &list) == SHK_LOOK_PRESENT) {
        *by_p = "device control group";
        return (long long)shk_list_distinct(list, "pci");
    }
    if (strcmp(a->maker->name, "amd") == 0 &&
        shk_look(facts, "gpu.amd.hidden", NULL) == SHK_LOOK_PRESENT &&
        shk_look_array(facts, a->maker->list, &list) == SHK_LOOK_PRESENT) {
        *by_p = "device control group";
        return (long long)shk_list_distinct(list, "pci");
    }
    return -1;
}

static void say_empty(struct shk_row *row, const char *name, const char *mask)
{
    shk_row_verdict(row, SHK_WARN, SHK_DECLARED);
    row->diagnosis = "visible-devices-mismatch";
    shk_row_text(&row->observed, "%s=%s", name, *mask ? mask : "''");
    shk_row_text(&row->expected, "numbers or UUIDs of devices");
    shk_row_text(&row->why, "%s names no device that is here: programs of this job see no GPU",
                 name);
    shk_row_fix(row, "unset", "name", name, NULL);
}

/* A mask counts for one process only, so beside others it says nothing of the job, unless it leaves
 * nothing. True when it leaves nothing. */
static bool judge_masks(struct shk_row *row, struct allocation *a)
{
    static const enum shk_mask nvidia[] = {SHK_MASK_NVIDIA, SHK_MASK_NONE};
    static const enum shk_mask amd[] = {SHK_MASK_AMD_FIRST, SHK_MASK_AMD, SHK_MASK_NVIDIA,
                                        SHK_MASK_AMD_OLD, SHK_MASK_NONE};
    static const enum shk_mask none[] = {SHK_MASK_NONE};
    const struct shk_masks masks =
        shk_masks(row->ctx->config, strcmp(a->maker->name, "nvidia") == 0 ? nvidia
                                    : strcmp(a->maker->name, "amd") == 0  ? amd
                                                                          : none);
    const char *const *names = masks.names;
    long long ranks = 1;
    (void)shk_look_int(row->ctx->facts, "job.local_ranks", &ranks);
    for (; *names; names++) {
        const char *mask = NULL;
        if (shk_read_env(row, *names, &mask) != SHK_LOOK_PRESENT)
            continue;
        long long left = mask_size(mask, a->bus);
        if (left == 0) {
            say_empty(row, *names, mask);
            return true;
        }
        if (ranks <= 1 && (a->given < 0 || left < a->given)) {
            a->given = left;
            a->by = *names;
        }
    }
    return false;
}

/* May something keep devices from this process: a container, or a scheduler that gave it none by
 * name? Else one that the library does not show is no matter of allocation. */
static bool may_hide(struct shk_row *row, const struct allocation *a)
{
    const char *text = NULL;
    if (shk_read_container(row, &text) == SHK_LOOK_PRESENT)
        return true;
    return a->given < 0 &&
           shk_look_text(row->ctx->facts, "job.scheduler", &text) == SHK_LOOK_PRESENT;
}

static void judge(struct shk_row *row, struct allocation *a)
{
    const char *by = NULL;
    a->given = shk_gpus_allocated(row, true, &a->by);
    bool empty = judge_masks(row, a);
    long long seen = shown(row, a, &by);
    if (empty)
        return;
    if (seen >= 0 && seen < a->bus && (a->given < 0 || seen < a->given)) {
        if (!may_hide(row, a)) {
            shk_row_text(&row->observed, "%lld of %lld shown", seen, a->bus);
            if (a->given >= 0)
                shk_row_text(&row->expected, "%lld, as %s says", a->given, a->by);
            shk_row_lacks(row, "nvml.devices",
                          "nothing says that the others are kept from this process: they may not "
                          "start");
            row->required = 1;
            return;
        }
        a->given = seen;
        a->by = by;
    }
    if (a->given < 0 || a->given >= a->bus) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "%lld of %lld", a->bus, a->bus);
        return;
    }
    shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
    shk_row_text(&row->observed, "%lld of %lld allocated", a->given, a->bus);
    shk_row_text(&row->why, "%s; %lld not tested", a->by, a->bus - a->given);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_allocation, "accelerators of this job");
    struct allocation a = {.bus = 0};
    row.fact = "job.slurm.gpus_on_node";
    for (size_t i = 0; i < SHK_MAKERS && a.bus <= 0; i++) {
        a.maker = &shk_makers[i];
        a.bus = shk_device_count(ctx->facts, a.maker->kind);
    }
    if (a.bus > 0) {
        judge(&row, &a);
        shk_row_end(findings, &row);
        return;
    }
    for (size_t i = 0; i < SHK_MAKERS; i++)
        (void)shk_read_device_count(&row, shk_makers[i].kind);
    shk_row_na(findings, &row, "no accelerator on this node");
}

const struct shk_check shk_check_gpu_allocation = {
    .id = "gpu.allocation",
    .family = "devices",
    .title = "How many of the node's accelerators this job may use",
    .eval = eval,
    .doc = "Facts: pci.count.*, job.slurm.gpus_on_node, the variables that list the GPUs of step "
           "or job,"
           " env.*_VISIBLE_DEVICES, nvml.devices, "
           "gpu.amd.hidden, job.local_ranks.\n"
           "Fewer than on the bus is a note where a job or a container can hide them, else "
           "UNKNOWN. A mask that names no "
           "device is WARN. A mask of one rank among several says nothing of the job.",
};
