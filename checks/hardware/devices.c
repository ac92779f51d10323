/* Accelerators: on the bus, served by the driver. */
#include "checks/base/remedy.h"
#include "checks/hardware/pci.h"
#include "checks/job/named.h"
#include "checks/value/makers.h"
#include "core/text/uses.h"

#include <string.h>

static const struct shk_maker *maker_named(const char *name)
{
    for (size_t i = 0; i < SHK_MAKERS; i++)
        if (strcmp(shk_makers[i].name, name) == 0)
            return &shk_makers[i];
    return NULL;
}

/* "8 nvidia, 2 amd"; "none". */
static bool say_found(struct shk_row *row)
{
    struct shk_strbuf have = SHK_STRBUF_INIT;
    for (size_t i = 0; i < SHK_MAKERS; i++) {
        long long count = shk_device_count(row->ctx->facts, shk_makers[i].kind);
        if (count > 0)
            shk_strbuf_printf(&have, "%s%lld %s", have.len ? ", " : "", count, shk_makers[i].name);
    }
    bool any = have.len > 0;
    shk_row_text(&row->observed, "%s", any ? shk_strbuf_text(&have) : "none");
    shk_strbuf_free(&have);
    return any;
}

static void judge_count(struct shk_row *row, const struct shk_maker *maker)
{
    const struct shk_profile *profile = row->ctx->profile;
    long long count = shk_read_bus_count(row, maker);
    row->required = row->ctx->profile_asked ? SHK_ASKED : 1;
    row->fact = maker->count;
    if (count < 0)
        return;
    bool lost = count > 0 && count < profile->gpus && shk_profile_sized(row, NULL) > 0;
    if (count > 0 && !lost) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        return;
    }
    if (!count && row->ctx->profile_doubt) {
        shk_read_profile(row);
        return;
    }
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    if (profile->gpus)
        shk_row_text(&row->expected, "%d %s", profile->gpus, maker->name);
    else
        shk_row_text(&row->expected, "%s", maker->name);
    if (lost) {
        row->diagnosis = "gpu-count-low";
        shk_row_text(&row->observed, "%lld of %d %s on the bus", count, profile->gpus, maker->name);
        shk_row_text(&row->why, "a node of profile %s has %d; the others are not on the PCI bus",
                     profile->name, profile->gpus);
        shk_row_fix(row, "bus-log", NULL);
    } else {
        shk_row_text(&row->why,
                     "profile %s is for nodes with %s accelerators, and none is on the "
                     "PCI bus",
                     profile->name, maker->name);
        shk_row_fix(row, "other-node", NULL);
    }
}

static void eval_presence(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_presence, "accelerators");
    const struct shk_maker *maker = maker_named(ctx->profile->gpu ? ctx->profile->gpu : "any");
    row.fact = "pci.count.*";
    shk_read_profile(&row);
    bool found = say_found(&row);
    if (maker) {
        judge_count(&row, maker);
        shk_row_end(findings, &row);
    } else if (found) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_end(findings, &row);
    } else {
        for (size_t i = 0; i < SHK_MAKERS; i++)
            (void)shk_read_device_count(&row, shk_makers[i].kind);
        shk_row_na(findings, &row, "no accelerator on this node");
    }
}

const struct shk_check shk_check_gpu_presence = {
    .id = "gpu.presence",
    .diagnosis = "gpu-count-low",
    .family = "devices",
    .title = "All accelerators of the profile are on the PCI bus",
    .eval = eval_presence,
    .doc = "Facts: pci.count.*, gpu.*.devices.\n"
           "The profile names the maker and the number: none of that kind, or fewer on the bus, is "
           "FAIL, whatever a job or container hides of them. With 'any' a node without accelerator "
           "is n/a.",
};

/* Of accelerators on the bus, and of those that the driver lists. */
struct served {
    const struct shk_maker *maker;
    long long bus, seen;
};

static void say_lost(struct shk_row *row)
{
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "gpu-lost-by-driver";
    shk_row_text(&row->why, "it is on the bus, but the driver does not list it, and nothing here "
                            "hides it from this process");
    shk_row_fix(row, "driver-log", NULL);
}

static void say_hidden(struct shk_row *row, const struct served *s, const char *by)
{
    shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
    shk_row_text(&row->why, "%lld of %lld were given to this job (%s); %lld not tested", s->seen,
                 s->bus, by, s->bus - s->seen);
}

/* The kernel keeps the list of AMD GPUs from processes that may not use them, and says so. A
 * container toolkit leaves GPUs out of NVIDIA's list. Nothing does so for Neuron. */
static void judge_some(struct shk_row *row, const struct served *s)
{
    struct shk_fact hidden;
    const char *container = NULL, *asked = NULL, *by = NULL;
    enum shk_look look = SHK_LOOK_ABSENT;
    if (shk_gpus_allocated(row, false, &by) > s->seen)
        look = SHK_LOOK_ABSENT; /* more were given than are there */
    else if (strcmp(s->maker->name, "nvidia") == 0 &&
             shk_look_env(row->ctx->facts, shk_variable("visible-devices.container"), &asked) ==
                 SHK_LOOK_PRESENT &&
             strcmp(asked, "all") == 0)
        look = SHK_LOOK_ABSENT; /* the toolkit was to pass all of them in */
    else if (strcmp(s->maker->name, "amd") == 0)
        look = shk_read(row, "gpu.amd.hidden", &hidden);
    else if (strcmp(s->maker->name, "nvidia") == 0)
        look = shk_look(row->ctx->facts, "host.container", NULL) == SHK_LOOK_MISSING
                   ? SHK_LOOK_ABSENT /* nothing shows one */
                   : shk_read_container(row, &container);
    if (look == SHK_LOOK_PRESENT)
        say_hidden(row, s, container ? container : "device control group");
    else if (look == SHK_LOOK_ABSENT)
        say_lost(row);
}

static void judge_none(struct shk_row *row, const struct served *s)
{
    const char *container = NULL;
    struct shk_fact node;
    enum shk_look look = shk_look(row->ctx->facts, s->maker->needed[0], &node);
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    if (shk_read_container(row, &container) == SHK_LOOK_PRESENT && look != SHK_LOOK_PRESENT) {
        row->diagnosis = "gpu-device-not-in-container";
        shk_row_text(&row->why, "the accelerators were not passed into the container");
        shk_row_pass_in(row, container, s->maker->name);
        return;
    }
    row->diagnosis = "accelerator-driver-missing";
    shk_row_text(&row->why, "no driver serves the accelerators");
    shk_row_fix(row, "driver-and-bus-log", NULL);
}

static void judge_driver(struct shk_row *row, struct served *s)
{
    json_t *list = NULL;
    enum shk_look look = shk_read_array(row, s->maker->list, &list);
    if (s->bus <= 0 || (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT))
        return;
    s->seen = (long long)shk_list_distinct(list, "pci");
    if ((size_t)s->seen < json_array_size(list)) {
        shk_row_lacks(row, s->maker->list, "one device is listed twice");
        return;
    }
    shk_row_text(&row->observed, "%lld of %lld on the bus", s->seen, s->bus);
    if (s->seen >= s->bus) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        return;
    }
    shk_row_text(&row->expected, "%lld", s->bus);
    if (s->seen)
        judge_some(row, s);
    else
        judge_none(row, s);
}

/* A row for hardware that is there, or may be: what the driver lists, or what could not be read. */
static bool has_row(const struct shk_check_context *ctx, const struct shk_maker *maker,
                    long long bus)
{
    json_t *list = NULL;
    bool wanted = ctx->profile->gpu && strcmp(ctx->profile->gpu, maker->name) == 0;
    if (bus >= 0)
        return bus > 0;
    return wanted || shk_driver_seen(ctx->facts, maker->kind) ||
           shk_look(ctx->facts, maker->count, NULL) != SHK_LOOK_MISSING ||
           shk_look_array(ctx->facts, maker->list, &list) == SHK_LOOK_PRESENT;
}

static void eval_driver(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < SHK_MAKERS; i++) {
        const struct shk_maker *maker = &shk_makers[i];
        char *setting = shk_strf("%s driver", maker->name);
        struct shk_row row =
            shk_row_begin(ctx, &shk_check_gpu_driver, setting ? setting : "driver");
        struct served s = {.maker = maker, .bus = shk_read_bus_count(&row, maker)};
        row.fact = maker->list;
        row.required = 1;
        if (has_row(ctx, maker, s.bus)) {
            judge_driver(&row, &s);
            shk_row_end(findings, &row);
        }
        free(row.unread_why);
        free(setting);
    }
}

const struct shk_check shk_check_gpu_driver = {
    .id = "gpu.driver",
    .diagnosis = "accelerator-driver-missing",
    .family = "devices",
    .title = "The driver serves every accelerator on the bus",
    .eval = eval_driver,
    .doc = "Facts: pci.count.*, gpu.nvidia.devices, gpu.amd.devices, gpu.amd.hidden, "
           "neuron.devices, host.container.\n"
           "None served is FAIL. Some that are not served are FAIL as well (the driver lost them), "
           "unless something shows that they are kept from this process: nodes that AMD's driver "
           "does not let it read, or a container. That is a note.",
};

static void eval_rocm(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_rocm, "ROCm");
    struct shk_fact fact = {0};
    const char *version = NULL;
    long long amd = shk_read_device_count(&row, "gpu-amd");
    row.fact = "rocm.version";
    if (amd == 0) {
        shk_row_na(findings, &row, "no AMD GPU on this node");
        return;
    }
    enum shk_look look = shk_read_text(&row, "rocm.version", &version);
    (void)shk_look(ctx->facts, "rocm.version", &fact);
    if (look == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s (%s)", version, fact.source);
    } else if (look == SHK_LOOK_ABSENT && amd > 0) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "not found");
        shk_row_text(&row.why,
                     "AMD GPUs are present, but no ROCm installation where it is looked "
                     "for: %s",
                     fact.reason ? fact.reason : fact.source);
        shk_row_fix(&row, "rocm-load", NULL);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_rocm = {
    .id = "rocm.version",
    .family = "devices",
    .title = "ROCm is installed, and which version",
    .eval = eval_rocm,
    .doc = "Fact: rocm.version.\nn/a without AMD GPUs; not found with AMD GPUs is WARN.",
};
