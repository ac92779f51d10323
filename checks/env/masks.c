/* Masks of GPUs that count each other's devices. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/env/grammar.h"

#include <string.h>

static size_t mask_size(const char *mask)
{
    const char *start;
    size_t len, n = 0;
    while (shk_grammar_item(&mask, ',', &start, &len))
        n += len > 0;
    return n;
}

/* First index of the mask that is not below n; -1 when there is none. */
static long index_beyond(const char *mask, size_t n)
{
    const char *start;
    size_t len;
    while (shk_grammar_item(&mask, ',', &start, &len)) {
        char *end;
        long index = strtol(start, &end, 10);
        if (end != start && (*end == ',' || *end == '\0') && index >= 0 && (size_t)index >= n)
            return index;
    }
    return -1;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char *const inner[] = {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
                                        "GPU_DEVICE_ORDINAL", NULL};
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_masks, "GPU masks");
    const char *outer = NULL;
    enum shk_look look = shk_read_env(&row, "ROCR_VISIBLE_DEVICES", &outer);
    row.fact = "env.ROCR_VISIBLE_DEVICES";
    row.source = "ROCm/rocm-systems:projects/rocr-runtime";
    if (look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && !*outer)) {
        shk_row_na(findings, &row, "at most one kind of mask counts here");
        return;
    }
    for (const char *const *name = inner; outer && *name; name++) {
        const char *mask = NULL;
        long index = shk_read_env(&row, *name, &mask) == SHK_LOOK_PRESENT
                         ? index_beyond(mask, mask_size(outer))
                         : -1;
        if (index < 0)
            continue;
        shk_row_verdict(&row, SHK_FAIL, SHK_DECLARED);
        row.diagnosis = "visible-devices-conflict";
        shk_row_text(&row.observed, "ROCR_VISIBLE_DEVICES=%s, %s=%s", outer, *name, mask);
        shk_row_text(&row.why,
                     "%s counts what ROCR_VISIBLE_DEVICES leaves (%zu), so there is no device %ld",
                     *name, mask_size(outer), index);
        shk_row_text(&row.fix, "unset %s", *name);
        shk_row_end(findings, &row);
        return;
    }
    if (look == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "ROCR_VISIBLE_DEVICES=%s", outer);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_gpu_masks = {
    .id = "gpu.masks",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "Masks of GPUs leave devices to use",
    .eval = eval,
    .doc = "Facts: env.ROCR_VISIBLE_DEVICES, env.HIP_VISIBLE_DEVICES, env.CUDA_VISIBLE_DEVICES, "
           "env.GPU_DEVICE_ORDINAL.\n"
           "The HSA runtime applies its mask first; the indices of the others count what it "
           "leaves. An index beyond that is FAIL.",
};
