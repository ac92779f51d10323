/* AMD GPUs: heat and power limit as the driver shows them, ECC, bad pages and links as amd_smi
 * does. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"

#include <string.h>

static const char driver_key[] = "amdgpu.health", library_key[] = "amdsmi.health";

/* What one GPU comes to; SHK_NA: it does not offer this. `seen` is of a verdict that is not good.
 */
struct word {
    enum shk_verdict verdict;
    char *seen;
};

struct all {
    const struct shk_facts *facts;
    json_t *gpus;
};

/* Of two things that are needed together. */
static enum shk_verdict pair(enum shk_look a, enum shk_look b)
{
    return !shk_look_told(a) || !shk_look_told(b)           ? SHK_UNKNOWN
           : a == SHK_LOOK_PRESENT && b == SHK_LOOK_PRESENT ? SHK_PASS
                                                            : SHK_NA;
}

static void judge_heat(const struct all *all, const json_t *gpu, struct word *word)
{
    json_t *list = NULL, *sensor;
    size_t i;
    (void)all;
    enum shk_look look = shk_look_member_objects(gpu, "temperatures", &list);
    word->verdict = shk_look_told(look) ? SHK_NA : SHK_UNKNOWN;
    json_array_foreach(list, i, sensor)
    {
        long long now = 0, limit = 0;
        const char *name = shk_member_words(sensor, "sensor");
        enum shk_verdict read = pair(shk_look_member_int(sensor, "now", &now),
                                     shk_look_member_int(sensor, "limit", &limit));
        if (read == SHK_PASS && limit <= 0) /* not filled in: nothing to hold it against */
            read = SHK_NA;
        if (read == SHK_UNKNOWN || (read == SHK_PASS && word->verdict == SHK_NA))
            word->verdict = read;
        if (read != SHK_PASS || now < limit || word->seen)
            continue;
        shk_row_text(&word->seen, "%s %lld °C, limit %lld °C", name ? name : "a sensor", now,
                     limit);
    }
    if (word->seen)
        word->verdict = SHK_WARN;
}

/* 1: below the default, 0: not, -1: not told. */
static int capped(const json_t *gpu, long long *limit_p, long long *usual_p)
{
    return shk_look_member_int(gpu, "power_limit", limit_p) == SHK_LOOK_PRESENT &&
                   shk_look_member_int(gpu, "power_default", usual_p) == SHK_LOOK_PRESENT
               ? *limit_p < *usual_p
               : -1;
}

/* A limit that all have is the site's. */
static void judge_power(const struct all *all, const json_t *gpu, struct word *word)
{
    long long limit = 0, usual = 0, a, b;
    json_t *sibling;
    size_t i, others = 0;
    word->verdict = pair(shk_look_member_int(gpu, "power_limit", &limit),
                         shk_look_member_int(gpu, "power_default", &usual));
    if (word->verdict == SHK_PASS && usual <= 0)
        word->verdict = SHK_NA;
    if (capped(gpu, &limit, &usual) != 1)
        return;
    json_array_foreach(all->gpus, i, sibling) others += capped(sibling, &a, &b) == 0;
    shk_row_text(&word->seen, "%lld W of %lld W", limit / 1000, usual / 1000);
    word->verdict = others ? SHK_WARN : SHK_NOTE;
}

/* Bad pages that the driver has set aside at the GPU of that address. */
static enum shk_look bad_pages(const struct shk_facts *facts, const char *pci, long long *count_p)
{
    json_t *list = NULL, *gpu, *pages = NULL;
    size_t i;
    enum shk_look look = shk_look_objects(facts, driver_key, &list);
    json_array_foreach(list, i, gpu)
    {
        const char *at = shk_member_words(gpu, "pci");
        if (!pci || !at || strcmp(at, pci) != 0)
            continue;
        look = shk_look_member_object(gpu, "bad_pages", &pages);
        return look == SHK_LOOK_PRESENT ? shk_look_member_int(pages, "reserved", count_p) : look;
    }
    return look == SHK_LOOK_PRESENT ? SHK_LOOK_MISSING : look;
}

static void judge_ecc(const struct all *all, const json_t *gpu, struct word *word)
{
    bool on = true, theirs = false;
    long long most = 0, bad = 0;
    json_t *sibling;
    size_t i, others = 0;
    enum shk_look look = shk_look_member_bool(gpu, "ecc", &on);
    enum shk_look limit = shk_look_member_int(gpu, "bad_pages_most", &most);
    enum shk_look pages = limit == SHK_LOOK_PRESENT && most > 0
                              ? bad_pages(all->facts, shk_member_words(gpu, "pci"), &bad)
                              : SHK_LOOK_ABSENT;
    word->verdict = !shk_look_told(look) || !shk_look_told(limit) || !shk_look_told(pages)
                        ? SHK_UNKNOWN
                    : look == SHK_LOOK_ABSENT ? SHK_NA
                                              : SHK_PASS;
    if (pages == SHK_LOOK_PRESENT && bad >= most) {
        shk_row_text(&word->seen, "%lld bad pages, the driver allows %lld", bad, most);
        word->verdict = SHK_WARN;
    } else if (look == SHK_LOOK_PRESENT && !on) {
        json_array_foreach(all->gpus, i, sibling) others +=
            shk_look_member_bool(sibling, "ecc", &theirs) == SHK_LOOK_PRESENT && theirs;
        shk_row_text(&word->seen, "ECC off");
        word->verdict = others ? SHK_WARN : SHK_NOTE;
    }
}

/* Links that are up; -1: not told. */
static int links_up(const json_t *gpu, size_t *count_p)
{
    json_t *list = NULL, *link;
    size_t i;
    int up = 0;
    *count_p = 0;
    if (shk_look_member_texts(gpu, "links", &list) != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(list, i, link) up += strcmp(json_string_value(link), "up") == 0;
    *count_p = json_array_size(list);
    return up;
}

/* How many links a GPU has depends on the board, so they are held against the other GPUs. */
static void judge_links(const struct all *all, const json_t *gpu, struct word *word)
{
    json_t *list = NULL, *sibling;
    size_t i, count = 0, other = 0;
    int most = 0;
    enum shk_look look = shk_look_member_texts(gpu, "links", &list);
    int up = links_up(gpu, &count);
    json_array_foreach(all->gpus, i, sibling)
    {
        int theirs = links_up(sibling, &other);
        most = theirs > most ? theirs : most;
    }
    word->verdict = look == SHK_LOOK_PRESENT && count ? SHK_PASS
                    : shk_look_told(look)             ? SHK_NA
                                                      : SHK_UNKNOWN;
    if (up < 0 || up >= most)
        return;
    shk_row_text(&word->seen, "%d of %d links up", up, most);
    word->verdict = SHK_WARN;
}

static const struct def {
    const char *setting, *key, *good, *expected, *why, *fix, *diagnosis, *source;
    void (*judge)(const struct all *all, const json_t *gpu, struct word *word);
} defs[] = {
    {"AMD GPU temperature", driver_key, "below their limits", "below the limit of the sensor",
     "the GPU lowers its clocks at this temperature: every ring waits for it", "amd-heat",
     "gpu-thermal-slowdown", "torvalds/linux:Documentation/gpu/amdgpu/thermal.rst: temp*_crit",
     judge_heat},
    {"AMD GPU power limit", driver_key, "at their default", "the default, as on the others",
     "clocks under load are lower, and every ring waits for the slowest GPU", "amd-power",
     "gpu-power-capped",
     "torvalds/linux:Documentation/gpu/amdgpu/thermal.rst: power1_cap, power1_cap_default",
     judge_power},
    {"AMD GPU ECC", library_key, "on", "on, with fewer bad pages than the driver allows",
     "errors in the memory of the GPU go unnoticed, or it is about to be refused by the driver",
     "amd-ecc", NULL,
     "ROCm/amdsmi:include/amd_smi/amdsmi.h: amdsmi_get_gpu_ecc_enabled, "
     "amdsmi_get_gpu_bad_page_threshold",
     judge_ecc},
    {"XGMI links", library_key, "as many links up on all", "as many links up as on the other GPUs",
     "traffic between the GPUs goes over fewer links, or a detour", "amd-links", "nvlink-slow",
     "ROCm/amdsmi:include/amd_smi/amdsmi.h: amdsmi_get_gpu_xgmi_link_status", judge_links},
};

static enum shk_verdict judge_all(const struct all *all, const struct def *def,
                                  struct shk_tally *tally)
{
    enum shk_verdict worst = SHK_NOTE;
    const json_t *gpu;
    size_t i;
    json_array_foreach(all->gpus, i, gpu)
    {
        struct word word = {.verdict = SHK_NA};
        const char *pci = shk_member_name(gpu, "pci");
        def->judge(all, gpu, &word);
        if (word.verdict == SHK_PASS)
            shk_tally_good(tally);
        else if (word.verdict == SHK_UNKNOWN)
            shk_tally_unread(tally, "%s", pci);
        else if (word.verdict != SHK_NA)
            shk_tally_bad(tally, "%s: %s", pci, word.seen);
        if (word.verdict == SHK_WARN)
            worst = SHK_WARN;
        free(word.seen);
    }
    return worst;
}

static void one_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                    const struct def *def)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_amd_state, def->setting);
    struct shk_tally tally = SHK_TALLY_INIT;
    struct all all = {.facts = ctx->facts};
    row.fact = def->key;
    row.source = def->source;
    if (shk_read_pci_count(&row, "gpu-amd") == 0) {
        shk_row_na(findings, &row, "no AMD GPU on this node");
        return;
    }
    enum shk_look look = shk_read_objects(&row, def->key, &all.gpus);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "%s",
                   def->key == library_key ? "amd_smi is not installed" : "the driver has no GPU");
        return;
    }
    if (look == SHK_LOOK_PRESENT && json_array_size(all.gpus) == 0)
        shk_row_lacks(&row, def->key, "the list has none of the AMD GPUs on the PCI bus");
    enum shk_verdict worst = judge_all(&all, def, &tally);
    bool any = shk_tally_judge(&tally, &row, worst, SHK_TESTED, def->key, "GPUs");
    if (look == SHK_LOOK_PRESENT && !any && json_array_size(all.gpus)) {
        shk_row_na(findings, &row, "not offered for any of %zu GPUs", json_array_size(all.gpus));
        shk_tally_free(&tally);
        return;
    }
    if (tally.bad) {
        row.diagnosis = worst == SHK_WARN ? def->diagnosis : NULL;
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&tally.bad_names));
        shk_row_text(&row.expected, "%s", def->expected);
        shk_row_text(&row.why, "%s", def->why);
        shk_row_fix(&row, def->fix, NULL);
    } else if (tally.good) {
        shk_row_text(&row.observed, "%s, %u GPUs", def->good, tally.good);
    }
    shk_row_end(findings, &row);
    shk_tally_free(&tally);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++)
        one_row(ctx, findings, &defs[i]);
}

const struct shk_check shk_check_amd_state = {
    .id = "gpu.amd_state",
    .diagnosis = "accelerator-hardware-fault",
    .family = "devices",
    .title = "AMD GPUs are cool, at full power, with ECC and all links up",
    .eval = eval,
    .doc =
        "Facts: amdgpu.health, amdsmi.health, pci.count.gpu-amd.\n"
        "A sensor at its critical temperature is WARN. A power limit below the default is WARN on "
        "some GPUs, a note when all have it. ECC that is off on some GPUs only is WARN, on all a "
        "note; as many bad pages as the driver allows are WARN. A GPU with fewer XGMI links up "
        "than another of the node is WARN. n/a where amd_smi is not installed or a GPU does not "
        "offer it.",
};
