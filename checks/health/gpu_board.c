/* Firmware, SRAM, licence and fabric of one NVIDIA GPU, and confidential computing. */
#include "checks/base/remedy.h"
#include "checks/hardware/pci.h"
#include "checks/health/gpu_health.h"

#include <string.h>

/* Does a sibling of the same model say the same more often than this GPU's text is said? The text
 * that most have, NULL when this GPU has it or as many say otherwise. */
static const char *most_say(const struct shk_gpu_view *view, const json_t *gpu, const char *member)
{
    const char *model = NULL, *mine = NULL, *most = NULL;
    size_t i, k, best = 0, own = 0;
    json_t *one, *other;
    if (shk_gpu_text(gpu, "name", &model) != SHK_PASS ||
        shk_gpu_text(gpu, member, &mine) != SHK_PASS)
        return NULL;
    json_array_foreach((json_t *)view->all, i, one)
    {
        const char *text = NULL, *its = NULL;
        size_t count = 0;
        if (shk_gpu_text(one, member, &text) != SHK_PASS ||
            shk_gpu_text(one, "name", &its) != SHK_PASS || strcmp(its, model) != 0)
            continue;
        json_array_foreach((json_t *)view->all, k, other)
        {
            const char *said = NULL, *theirs = NULL;
            count += shk_gpu_text(other, member, &said) == SHK_PASS && strcmp(said, text) == 0 &&
                     shk_gpu_text(other, "name", &theirs) == SHK_PASS && strcmp(theirs, model) == 0;
        }
        own = strcmp(text, mine) == 0 ? count : own;
        if (count > best) {
            best = count;
            most = text;
        }
    }
    return best > own ? most : NULL;
}

void shk_gpu_judge_firmware(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    static const struct {
        const char *member, *name;
    } versions[] = {{"vbios", "VBIOS"}, {"inforom", "InfoROM"}};
    bool valid = true;
    const char *text = NULL, *model = NULL;
    word->verdict = shk_gpu_bool(gpu, "inforom_valid", &valid);
    if (!valid && shk_gpu_worst(word, SHK_WARN)) {
        shk_row_text(&word->seen, "InfoROM corrupt");
        word->diagnosis = "gpu-inforom-corrupt";
        word->expected = "an InfoROM whose checksums are right";
        word->why = "the GPU keeps its record of failed memory and its settings there: what fails "
                    "later may be forgotten";
        word->fix = "gpu-inforom";
    }
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        enum shk_verdict read = shk_gpu_text(gpu, versions[i].member, &text);
        const char *most = read == SHK_PASS ? most_say(view, gpu, versions[i].member) : NULL;
        if (read == SHK_PASS && shk_gpu_text(gpu, "name", &model) == SHK_UNKNOWN)
            read = SHK_UNKNOWN;
        word->verdict = shk_gpu_both(word->verdict, read);
        if (!most || !shk_gpu_worst(word, SHK_NOTE))
            continue;
        shk_row_text(&word->seen, "%s %s", versions[i].name, text);
        word->diagnosis = NULL;
        word->expected = most;
        word->why = "most GPUs of this model on the node have another version: the board was "
                    "replaced, or left out of an update";
        word->fix = "gpu-firmware";
    }
}

void shk_gpu_judge_sram(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    bool exceeded = false;
    (void)view;
    word->verdict = shk_gpu_bool(gpu, "sram_exceeded", &exceeded);
    if (!exceeded)
        return;
    word->verdict = SHK_FAIL;
    word->diagnosis = "gpu-memory-worn";
    word->expected = "below the threshold of NVIDIA's field diagnostic";
    word->why = "caches and register files have had more uncorrected errors than NVIDIA allows";
    word->fix = "gpu-remap-failed";
    shk_row_text(&word->seen, "uncorrected errors of SRAM above the threshold");
}

void shk_gpu_judge_licence(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    const char *mode = NULL;
    json_t *licence = NULL;
    bool needed = true, licensed = true;
    enum shk_verdict read = shk_gpu_text(gpu, "virtualization", &mode);
    word->verdict = read == SHK_PASS ? SHK_NA : read;
    if (read == SHK_PASS && strcmp(mode, "vGPU") != 0 && !view->none)
        view->none = "no GPU of this node is a vGPU";
    if (read != SHK_PASS || strcmp(mode, "vGPU") != 0)
        return;
    view->none = "no vGPU of this node needs a licence";
    enum shk_look look = shk_look_member_object(gpu, "licence", &licence);
    if (look != SHK_LOOK_PRESENT) {
        word->verdict = SHK_UNKNOWN;
        return;
    }
    read = shk_gpu_bool(licence, "needed", &needed);
    if (read == SHK_PASS && !needed)
        return;
    word->verdict = shk_gpu_both(read, shk_gpu_bool(licence, "licensed", &licensed));
    if (word->verdict == SHK_NA)
        word->verdict = SHK_UNKNOWN;
    if (word->verdict != SHK_PASS || licensed)
        return;
    word->verdict = SHK_WARN;
    word->diagnosis = "vgpu-unlicensed";
    word->expected = "licensed";
    word->why = "a vGPU without a licence works at full speed at first and is then restricted";
    word->fix = "vgpu-licence";
    shk_row_text(&word->seen, "no licence");
}

void shk_gpu_judge_fabric(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    static const struct {
        const char *name;
        enum shk_verdict verdict;
    } faults[] = {
        {"degraded bandwidth", SHK_WARN},
        {"route recovery", SHK_WARN},
        {"route unhealthy", SHK_FAIL},
        {"access timeout recovery", SHK_WARN},
        {"no partition", SHK_FAIL},
        {"wrong system GUID", SHK_FAIL},
        {"wrong chassis serial number", SHK_FAIL},
        {"too few NVLinks", SHK_FAIL},
        {"incompatible GPU firmware", SHK_FAIL},
        {"invalid location", SHK_FAIL},
        {"invalid GPU state", SHK_FAIL},
        {"wrong configuration", SHK_FAIL},
    };
    json_t *fabric = NULL, *health = NULL, *name;
    const char *state = NULL;
    size_t i, k;
    enum shk_look look = shk_look_member_object(gpu, "fabric", &fabric);
    if (look == SHK_LOOK_PRESENT)
        look = shk_look_member_text(fabric, "state", &state);
    word->verdict = look == SHK_LOOK_ABSENT ? SHK_NA : SHK_UNKNOWN;
    if (look != SHK_LOOK_PRESENT)
        return;
    if (strcmp(state, "completed") != 0) { /* the row of the Fabric Manager says so */
        word->verdict = SHK_NA;
        view->none = "no GPU of this node has joined an NVLink fabric";
        return;
    }
    look = shk_look_member_texts(fabric, "health", &health);
    word->verdict = look == SHK_LOOK_PRESENT  ? SHK_PASS
                    : look == SHK_LOOK_ABSENT ? SHK_NA
                                              : SHK_UNKNOWN;
    json_array_foreach(health, k, name)
    {
        enum shk_verdict verdict = SHK_UNKNOWN;
        for (i = 0; i < sizeof faults / sizeof *faults; i++)
            if (strcmp(json_string_value(name), faults[i].name) == 0)
                verdict = faults[i].verdict;
        if (!shk_gpu_worst(word, verdict) || verdict == SHK_UNKNOWN)
            continue;
        shk_row_text(&word->seen, "%s", json_string_value(name));
        word->diagnosis = "nvlink-fabric-unhealthy";
        word->expected = "none";
        word->why = verdict == SHK_FAIL ? "peers over NVLink are not reached, or not all of them"
                                        : "traffic over NVLink is slower, or waits";
        word->fix = "nvlink-fabric";
    }
}

static void is_on(struct shk_row *row, const json_t *state)
{
    const char *multi = shk_member_words(state, "multi_gpu");
    bool ready = false, devtools = false;
    if (!shk_read_told_bool(row, "nvml.confidential", state, "ready", &ready))
        return;
    (void)shk_read_told_bool(row, "nvml.confidential", state, "devtools", &devtools);
    shk_row_verdict(row, ready ? SHK_NOTE : SHK_FAIL, SHK_TESTED);
    if (ready) {
        shk_row_text(&row->observed, "on%s%s%s", multi && strcmp(multi, "none") != 0 ? ", " : "",
                     multi && strcmp(multi, "none") != 0 ? multi : "",
                     devtools ? ", open to developer tools" : "");
        shk_row_text(&row->why, "copies over PCIe are encrypted and slower%s",
                     devtools ? "; what is on the GPU is not protected" : "");
        return;
    }
    row->diagnosis = "confidential-not-ready";
    shk_row_text(&row->observed, "on, and not ready for work");
    shk_row_text(&row->expected, "ready, after attestation");
    shk_row_text(&row->why, "the GPUs accept no work until they are set to ready");
    shk_row_fix(row, "confidential-ready", NULL);
}

void shk_gpu_confidential(struct shk_row *row, struct shk_findings *findings)
{
    static const char key[] = "nvml.confidential";
    json_t *state = NULL;
    bool on = false;
    row->fact = key;
    row->source = "NVIDIA NVML API Reference: nvmlSystemGetConfComputeSettings, "
                  "nvmlSystemGetConfComputeGpusReadyState";
    if (shk_read_pci_count(row, "gpu-nvidia") == 0) {
        shk_row_na(findings, row, "no NVIDIA GPU on this node");
        return;
    }
    if (shk_read_object(row, key, &state) == SHK_LOOK_ABSENT) {
        shk_row_na(findings, row, "these GPUs, or this driver, do not offer it");
        return;
    }
    if (state && shk_read_told_bool(row, key, state, "on", &on)) {
        if (on)
            is_on(row, state);
        else
            shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        if (!on)
            shk_row_text(&row->observed, "off");
    }
    shk_row_end(findings, row);
}
