/* Health of NVIDIA GPUs as NVML tells it: the rows, and what the driver wants done. */
#include "checks/health/gpu_health.h"
#include "checks/base/remedy.h"

#include "checks/hardware/pci.h"

#include <string.h>

static const char health_key[] = "nvml.health";

static enum shk_verdict from_look(enum shk_look look)
{
    return look == SHK_LOOK_PRESENT ? SHK_PASS : look == SHK_LOOK_ABSENT ? SHK_NA : SHK_UNKNOWN;
}

enum shk_verdict shk_gpu_bool(const json_t *gpu, const char *member, bool *value_p)
{
    return from_look(shk_look_member_bool(gpu, member, value_p));
}

enum shk_verdict shk_gpu_int(const json_t *gpu, const char *member, long long *value_p)
{
    return from_look(shk_look_member_int(gpu, member, value_p));
}

enum shk_verdict shk_gpu_text(const json_t *gpu, const char *member, const char **value_p)
{
    return from_look(shk_look_member_text(gpu, member, value_p));
}

static unsigned weight(enum shk_verdict verdict)
{
    static const unsigned weights[SHK_VERDICT_COUNT] = {
        [SHK_NA] = 0,      [SHK_PASS] = 1, [SHK_NOTE] = 2,
        [SHK_UNKNOWN] = 3, [SHK_WARN] = 4, [SHK_FAIL] = 5,
    };
    return weights[verdict];
}

enum shk_verdict shk_gpu_both(enum shk_verdict a, enum shk_verdict b)
{
    return weight(a) > weight(b) ? a : b;
}

enum shk_verdict shk_gpu_pair(enum shk_verdict a, enum shk_verdict b)
{
    return a == SHK_UNKNOWN || b == SHK_UNKNOWN ? SHK_UNKNOWN
           : a == SHK_NA || b == SHK_NA         ? SHK_NA
                                                : SHK_PASS;
}

/* What the driver asks for, by its word for it. */
static const struct action {
    const char *name, *diagnosis, *why, *fix; /* key in config/fixes */
} actions[] = {
    {"GPU reset", "gpu-reset-required", "a fault that only a reset clears; new work fails on it",
     "gpu-reset"},
    {"bus reset", "gpu-reset-required",
     "a fault that only a reset of its PCIe bus clears; new work fails on it", "gpu-bus-reset"},
    {"node reboot", "gpu-reboot-required",
     "a fault that may have left the operating system inconsistent", "gpu-reboot"},
    {"system reboot", "gpu-reboot-required",
     "a fault that may have left the operating system inconsistent", "gpu-reboot"},
    {"drain P2P", "gpu-peer-drain",
     "peer traffic has to stop before the fault can be recovered from", "gpu-drain-peer"},
    {"drain and reset", "gpu-reset-required",
     "the GPU works at reduced capacity and takes no new work", "gpu-reset"},
    {"reset required", "gpu-reset-required", "NVML does not respond for it until it is reset",
     "gpu-reset"},
    {"lost", "gpu-lost-by-driver", "the GPU no longer responds to its driver", "gpu-lost"},
    {"IMEX domain", "gpu-peer-drain", "the NVLink domain of several nodes has to be recovered",
     "drain the nodes of the domain and restart nvidia-imex on them"},
};

static void judge_action(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    const char *state = NULL, *wanted = NULL;
    (void)view;
    enum shk_verdict told = shk_gpu_text(gpu, "state", &state);
    word->verdict = shk_gpu_text(gpu, "recovery_action", &wanted);
    if (told != SHK_PASS)
        word->verdict = SHK_UNKNOWN;
    else if (strcmp(state, "answers") != 0)
        wanted = state;
    if (!wanted || strcmp(wanted, "none") == 0)
        return;
    word->verdict = SHK_UNKNOWN;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, wanted) == 0) {
            word->verdict = SHK_FAIL;
            word->diagnosis = actions[i].diagnosis;
            word->why = actions[i].why;
            word->fix = actions[i].fix;
        }
    word->expected = "none";
    shk_row_text(&word->seen, "%s", wanted);
}

static const struct view_row {
    const char *setting, *good, *source;
    void (*judge)(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
    const char *key;
} view_rows[] = {
    {"GPU recovery action", "none wanted",
     "NVIDIA NVML API Reference: nvmlDeviceGpuRecoveryAction_t; NVIDIA GPU Memory Error "
     "Management: Error Recovery and Response Flags",
     judge_action, health_key},
    {"GPU memory", NULL, "NVIDIA GPU Memory Error Management; NVIDIA/DCGM:dcgmlib/dcgm_errors.h",
     shk_gpu_judge_memory, health_key},
    {"GPU clocks", "no slowdown", "NVIDIA NVML API Reference: nvmlClocksEventReasons",
     shk_gpu_judge_clocks, health_key},
    {"GPU power limit", "at its default",
     "NVIDIA NVML API Reference: nvmlDeviceGetPowerManagementDefaultLimit", shk_gpu_judge_power,
     health_key},
    {"GPU compute mode", "default", "NVIDIA NVML API Reference: nvmlComputeMode_t",
     shk_gpu_judge_mode, health_key},
    {"NVLink speed", "the same on all links of a GPU",
     "NVIDIA NVML API Reference: NVML_FI_DEV_NVLINK_GET_SPEED", shk_gpu_judge_links, health_key},
    {"GPU processes", "no process holds a GPU",
     "NVIDIA NVML API Reference: nvmlDeviceGetComputeRunningProcesses; proc(5)",
     shk_gpu_judge_processes, health_key},
    {"GPU firmware", "InfoROM intact, one version of VBIOS and InfoROM",
     "NVIDIA NVML API Reference: nvmlDeviceValidateInforom; "
     "NVIDIA/DCGM:dcgmlib/dcgm_errors.h, DCGM_FR_CORRUPT_INFOROM",
     shk_gpu_judge_firmware, health_key},
    {"GPU SRAM", "below the threshold of NVIDIA's field diagnostic",
     "NVIDIA GPU Memory Error Management: RMA Policy Thresholds for SRAM Failure Modes; "
     "NVIDIA/DCGM:dcgmlib/src/dcgm_errors.c, DCGM_FR_SRAM_THRESHOLD",
     shk_gpu_judge_sram, health_key},
    {"vGPU licence", "licensed",
     "NVIDIA Virtual GPU Client Licensing User Guide: How NVIDIA vGPU Software Licensing Is "
     "Enforced; NVIDIA NVML API Reference: nvmlGridLicensableFeatures_t",
     shk_gpu_judge_licence, health_key},
    {"NVLink fabric health", "no fault reported",
     "NVIDIA NVML API Reference: NVML_GPU_FABRIC_HEALTH_MASK; "
     "NVIDIA/DCGM:modules/health/DcgmHealthWatch.cpp",
     shk_gpu_judge_fabric, "nvml.devices"},
};

/* Takes one GPU's word over into the row's. */
static void hear(struct shk_gpu_view *view, const json_t *gpu, const struct shk_gpu_word *word)
{
    const char *pci = shk_member_words(gpu, "pci");
    long long index = -1;
    char *number = NULL;
    bool bad = word->verdict >= SHK_NOTE && word->verdict <= SHK_FAIL;
    if ((bad || !pci) && shk_look_member_int(gpu, "index", &index) == SHK_LOOK_PRESENT)
        number = shk_strf("GPU %lld%s%s", index, pci ? " at " : "", pci ? pci : "");
    const char *name = number ? number : pci ? pci : "?";
    if (word->verdict == SHK_PASS)
        shk_tally_good(&view->tally);
    else if (word->verdict == SHK_UNKNOWN)
        shk_tally_unread(&view->tally, "%s", name);
    else if (word->verdict != SHK_NA)
        shk_tally_bad(&view->tally, "%s: %s", name, word->seen ? word->seen : "?");
    if (word->verdict >= SHK_NOTE && word->verdict <= SHK_FAIL && word->verdict > view->worst) {
        view->worst = word->verdict;
        view->diagnosis = word->diagnosis;
        view->expected = word->expected;
        view->why = word->why;
        view->fix = word->fix;
    }
    free(number);
}

static void tell(struct shk_findings *findings, struct shk_gpu_view *view, size_t gpus)
{
    struct shk_row *row = view->row;
    if (!shk_tally_judge(&view->tally, row, view->worst, SHK_TESTED, row->fact, "GPUs")) {
        if (view->none)
            shk_row_na(findings, row, "%s", view->none);
        else
            shk_row_na(findings, row, "NVML offers it for none of %zu GPUs", gpus);
        return;
    }
    if (view->tally.bad) {
        row->diagnosis = view->diagnosis;
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&view->tally.bad_names));
        shk_row_text(&row->expected, "%s", view->expected);
        shk_row_text(&row->why, "%s", view->why);
        shk_row_fix(row, view->fix, NULL);
    } else if (view->tally.good) {
        shk_row_text(&row->observed, "%s, %u GPUs", view->good, view->tally.good);
    }
    shk_row_end(findings, row);
}

static void one_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                    const struct view_row *def)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_health, def->setting);
    struct shk_gpu_view view = {
        .row = &row, .tally = SHK_TALLY_INIT, .covered = ~0u, .good = def->good};
    json_t *all = NULL, *gpu;
    size_t i;
    row.fact = def->key;
    row.source = def->source;
    if (shk_read_pci_count(&row, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "no NVIDIA GPU on this node");
        return;
    }
    (void)shk_read_array(&row, def->key, &all);
    view.all = all;
    if (all && !json_array_size(all))
        shk_row_lacks(&row, def->key, "NVML shows no GPU here");
    json_array_foreach(all, i, gpu)
    {
        struct shk_gpu_word word = {.verdict = SHK_NA};
        def->judge(&view, gpu, &word);
        hear(&view, gpu, &word);
        free(word.seen);
    }
    tell(findings, &view, json_array_size(all));
    shk_tally_free(&view.tally);
}

static void eval_health(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof view_rows / sizeof *view_rows; i++)
        one_row(ctx, findings, &view_rows[i]);
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_health, "confidential computing");
    shk_gpu_confidential(&row, findings);
}

const struct shk_check shk_check_gpu_health = {
    .id = "gpu.health",
    .diagnosis = "accelerator-hardware-fault",
    .family = "devices",
    .title = "NVIDIA GPUs are in good health",
    .eval = eval_health,
    .doc =
        "Facts: nvml.health, nvml.devices, nvml.confidential, pci.count.gpu-nvidia, "
        "job.local_ranks.\n"
        "Recovery action: any that the driver wants is FAIL, and so is a GPU that is lost or waits "
        "for a reset.\n"
        "Memory: a row that could not be remapped is FAIL, and so are 512 rows remapped for "
        "uncorrected errors and 63 retired pages (DCGM's limits); a row or a repair that waits for "
        "the next reset is WARN, pages that wait to be retired WARN. Uncorrected errors since the "
        "driver was loaded are "
        "FAIL (DCGM: drain and reset), but WARN where the driver says that no recovery is needed "
        "or its word was not read. Corrected errors and old totals are not judged. ECC that is off "
        "on some GPUs only is WARN; off on all, or another mode after the next reset, is a note.\n"
        "Clocks: slowdown by hardware, temperature or the power brake, seen twice 0.1 s apart, is "
        "WARN; so is a temperature at the slowdown threshold. A power cap is not judged.\n"
        "Power limit below the default: WARN on some GPUs, a note when all have it.\n"
        "Compute mode: prohibited is FAIL; exclusive with more ranks than GPUs is a note.\n"
        "NVLink speed: a link slower than another of the same GPU is WARN.\n"
        "Processes: one that has ended and still holds memory is WARN, another one a note.\n"
        "Firmware: an InfoROM that NVML calls corrupt is WARN; another VBIOS or InfoROM than most "
        "GPUs of the same model on the node have is a note.\n"
        "SRAM: uncorrected errors above the threshold of the field diagnostic are FAIL; NVML tells "
        "it to root only.\n"
        "vGPU licence: a vGPU without one is WARN; n/a where no GPU is a vGPU.\n"
        "NVLink fabric health: a route that is unhealthy and a wrong configuration are FAIL, less "
        "bandwidth and a recovery that goes on WARN.\n"
        "Confidential computing: on, and not ready for work, is FAIL; on and ready is a note.\n"
        "PCIe replays and NVLink error counters are facts; their totals are not judged. What NVML "
        "does not offer for a GPU is n/a.",
};
