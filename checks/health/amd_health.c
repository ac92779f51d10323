/* Health of AMD GPUs: errors, bad pages, partitions, firmware. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>

static const char key[] = "amdgpu.health";

/* Uncorrected errors of all blocks; false: one was not read. */
static bool uncorrected(const json_t *gpu, long long *count_p, struct shk_strbuf *blocks)
{
    json_t *ras = NULL, *problems = NULL, *counts;
    const char *block;
    bool read = true;
    enum shk_look look = shk_look_member_object(gpu, "ras", &ras);
    json_object_foreach(ras, block, counts)
    {
        long long count = 0;
        read &= shk_look_member_int(counts, "ue", &count) == SHK_LOOK_PRESENT;
        if (count > 0) {
            *count_p += count;
            shk_strbuf_printf(blocks, "%s%s", blocks->len ? ", " : "", block);
        }
    }
    /* some blocks were read, another one was not */
    (void)shk_look_member_object(gpu, "problems", &problems);
    return read && look != SHK_LOOK_FAILED && look != SHK_LOOK_MISSING &&
           !json_object_get(problems, "ras");
}

struct memory {
    struct shk_tally tally;
    long long reserved, pending;
    bool offered, lost, failed;
};

static void one_memory(struct memory *m, const json_t *gpu)
{
    const char *pci = shk_member_name(gpu, "pci");
    struct shk_strbuf blocks = SHK_STRBUF_INIT;
    json_t *pages = NULL, *ras = NULL;
    long long errors = 0, reserved = 0, pending = 0, failed = 0;
    bool read = uncorrected(gpu, &errors, &blocks);
    enum shk_look look = shk_look_member_object(gpu, "bad_pages", &pages);
    read &= look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT;
    if (look == SHK_LOOK_PRESENT)
        read &= shk_look_member_int(pages, "reserved", &reserved) == SHK_LOOK_PRESENT &&
                shk_look_member_int(pages, "pending", &pending) == SHK_LOOK_PRESENT &&
                shk_look_member_int(pages, "failed", &failed) == SHK_LOOK_PRESENT;
    m->reserved += reserved;
    m->pending += pending;
    m->lost |= errors > 0;
    m->failed |= failed > 0;
    if (errors > 0)
        shk_tally_bad(&m->tally, "%s: %lld uncorrected (%s)", pci, errors,
                      shk_strbuf_text(&blocks));
    else if (failed > 0)
        shk_tally_bad(&m->tally, "%s: %lld bad pages could not be set aside", pci, failed);
    else if (!read)
        shk_tally_unread(&m->tally, "%s", pci);
    else if (look == SHK_LOOK_PRESENT ||
             shk_look_member_object(gpu, "ras", &ras) == SHK_LOOK_PRESENT)
        shk_tally_good(&m->tally);
    shk_strbuf_free(&blocks);
}

static void memory_row(struct shk_row *row, struct shk_findings *findings, const json_t *gpus)
{
    struct memory m = {.tally = SHK_TALLY_INIT};
    const json_t *gpu;
    size_t i;
    row->source = "torvalds/linux:drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c";
    json_array_foreach(gpus, i, gpu) one_memory(&m, gpu);
    if (!shk_tally_judge(&m.tally, row, SHK_WARN, SHK_TESTED, key, "GPUs")) {
        shk_row_na(findings, row, "these GPUs count no errors (RAS)");
        shk_tally_free(&m.tally);
        return;
    }
    if (m.tally.bad) {
        row->diagnosis = "amd-gpu-uncorrected";
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&m.tally.bad_names));
        shk_row_text(&row->expected, "none since the driver was loaded");
        shk_row_text(&row->why, m.lost ? "data was lost in the GPU since the driver was loaded"
                                       : "memory that is known to be bad is still in use");
        shk_row_fix(row, "amd-memory", NULL);
    } else if (m.tally.good && (m.pending || m.reserved)) {
        shk_row_text(&row->observed, "no uncorrected error; %lld bad pages set aside, %lld to be",
                     m.reserved, m.pending);
    } else if (m.tally.good) {
        shk_row_text(&row->observed, "no uncorrected error, no bad page, %u GPUs", m.tally.good);
    }
    shk_row_end(findings, row);
    shk_tally_free(&m.tally);
}

/* What must be the same on all GPUs of a node: the member's values, and how many have each. */
static const struct same {
    const char *setting, *members[2];
    enum shk_verdict verdict;
    const char *why, *fix, *source;
} same[] = {
    {"AMD GPU partitions",
     {"compute_partition", "memory_partition"},
     SHK_WARN,
     "GPUs of different partition modes have different memory and speed; every ring waits for the "
     "slowest",
     "amd-partitions",
     "torvalds/linux:Documentation/gpu/amdgpu/driver-misc.rst; ROCm/amdsmi: partition"},
    {"AMD GPU firmware",
     {"vbios", NULL},
     SHK_NOTE,
     "firmware of different releases on the GPUs of one node",
     "amd-firmware",
     "torvalds/linux:drivers/gpu/drm/amd/amdgpu/amdgpu_atombios.c, vbios_version"},
};

/* "SPX, NPS1"; NULL: one of them was not read. "": not offered. */
static char *value_of(const json_t *gpu, const struct same *def)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    bool read = true;
    for (int i = 0; i < 2 && def->members[i]; i++) {
        const char *value = NULL;
        enum shk_look look = shk_look_member_text(gpu, def->members[i], &value);
        read &= look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT;
        if (value)
            shk_strbuf_printf(&text, "%s%s", text.len ? ", " : "", value);
    }
    char *taken = shk_strbuf_take(&text);
    if (!read) {
        free(taken);
        return NULL;
    }
    return taken;
}

static void same_row(struct shk_row *row, struct shk_findings *findings, const json_t *gpus,
                     const struct same *def)
{
    struct shk_tally tally = SHK_TALLY_INIT;
    const json_t *gpu;
    char *first = NULL, *firsts = NULL;
    size_t i;
    row->source = def->source;
    json_array_foreach(gpus, i, gpu)
    {
        char *value = value_of(gpu, def);
        const char *pci = shk_member_name(gpu, "pci");
        if (!value) {
            shk_tally_unread(&tally, "%s", pci);
        } else if (*value && !first) {
            first = strdup(value);
            firsts = shk_strf("%s", pci);
            shk_tally_good(&tally);
        } else if (*value && strcmp(value, first) != 0) {
            shk_tally_bad(&tally, "%s: %s", pci, value);
        } else if (*value) {
            shk_tally_good(&tally);
        }
        free(value);
    }
    if (!shk_tally_judge(&tally, row, def->verdict, SHK_TESTED, key, "GPUs")) {
        shk_row_na(findings, row, "the driver does not report it for these GPUs");
    } else {
        if (tally.bad) {
            shk_row_text(&row->observed, "%s; %s: %s", shk_strbuf_text(&tally.bad_names),
                         firsts ? firsts : "?", first ? first : "?");
            shk_row_text(&row->expected, "the same on all GPUs of the node");
            shk_row_text(&row->why, "%s", def->why);
            shk_row_fix(row, def->fix, NULL);
        } else if (tally.good) {
            shk_row_text(&row->observed, "%s, %u GPUs", first ? first : "?", tally.good);
        }
        shk_row_end(findings, row);
    }
    free(first);
    free(firsts);
    shk_tally_free(&tally);
}

static json_t *begin(struct shk_row *row, struct shk_findings *findings)
{
    json_t *gpus = NULL;
    row->fact = key;
    enum shk_look look = shk_read_array(row, key, &gpus);
    if (look == SHK_LOOK_ABSENT)
        shk_row_na(findings, row, "no AMD GPU on this node");
    else if (look != SHK_LOOK_PRESENT)
        shk_row_end(findings, row);
    return look == SHK_LOOK_PRESENT ? gpus : NULL;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_amd_health, "AMD GPU memory");
    json_t *gpus = begin(&row, findings);
    if (gpus)
        memory_row(&row, findings, gpus);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        row = shk_row_begin(ctx, &shk_check_amd_health, same[i].setting);
        if ((gpus = begin(&row, findings)))
            same_row(&row, findings, gpus, &same[i]);
    }
}

const struct shk_check shk_check_amd_health = {
    .id = "gpu.amd_health",
    .diagnosis = "accelerator-hardware-fault",
    .family = "devices",
    .title = "AMD GPUs are in good health",
    .eval = eval,
    .doc = "Fact: amdgpu.health.\n"
           "An uncorrected error of any hardware block since the driver was loaded, or a bad page "
           "that cannot be set aside, is WARN. Corrected errors and pages that are set aside are "
           "told and not judged: no source gives a number that is too high. Partition modes that "
           "differ between the GPUs of a node are WARN, firmware that differs is a note. What the "
           "driver does not offer for a GPU is n/a.",
};
