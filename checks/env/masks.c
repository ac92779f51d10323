/* Masks of GPUs that count each other's devices. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/value/grammar.h"
#include "checks/value/makers.h"

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

/* The mask that numbers a device which the first one does not leave. */
static bool say_beyond(struct shk_row *row, const char *first, const char *outer, const char *name,
                       const char *mask)
{
    long index = index_beyond(mask, mask_size(outer));
    if (index < 0)
        return false;
    shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
    row->diagnosis = "visible-devices-conflict";
    shk_row_text(&row->observed, "%s=%s, %s=%s", first, outer, name, mask);
    shk_row_text(&row->why, "%s counts what %s leaves (%zu), so there is no device %ld", name,
                 first, mask_size(outer), index);
    shk_row_fix(row, "unset", "name", name, NULL);
    return true;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const enum shk_mask firsts[] = {SHK_MASK_AMD_FIRST, SHK_MASK_NONE};
    static const enum shk_mask inner[] = {SHK_MASK_AMD, SHK_MASK_NVIDIA, SHK_MASK_AMD_OLD,
                                          SHK_MASK_NONE};
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_masks, "GPU masks");
    const struct shk_masks first = shk_masks(ctx->config, firsts),
                           others = shk_masks(ctx->config, inner);
    const char *outer = NULL, *name = first.names[0];
    enum shk_look look = name ? shk_read_env(&row, name, &outer) : SHK_LOOK_ABSENT;
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    char *fact = shk_strf("env.%s", name ? name : "");
    row.fact = fact;
    row.source = setting ? setting->source : NULL;
    if (look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && !*outer)) {
        shk_row_na(findings, &row, "at most one type of mask applies here");
        free(fact);
        return;
    }
    bool beyond = false;
    for (const char *const *other = others.names; outer && *other && !beyond; other++) {
        const char *mask = NULL;
        beyond = shk_read_env(&row, *other, &mask) == SHK_LOOK_PRESENT &&
                 say_beyond(&row, name, outer, *other, mask);
    }
    if (look == SHK_LOOK_PRESENT && !beyond) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "%s=%s", name, outer);
    }
    shk_row_end(findings, &row);
    free(fact);
}

const struct shk_check shk_check_gpu_masks = {
    .id = "gpu.masks",
    .diagnosis = "visible-devices-conflict",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "GPU visibility masks leave devices to use",
    .eval = eval,
    .doc = "Facts: env.* of the settings with a mask.\n"
           "The HSA runtime applies its mask first; the indices of the others count what it "
           "leaves. An index beyond that is FAIL.",
};
