/* Health of one NVIDIA GPU: memory, clocks, power, mode, links. */
#include "checks/health/gpu_health.h"

#include <string.h>

bool shk_gpu_worst(struct shk_gpu_word *word, enum shk_verdict verdict)
{
    bool worse = shk_gpu_both(verdict, word->verdict) != word->verdict;
    word->verdict = shk_gpu_both(word->verdict, verdict);
    return worse;
}

/* NVIDIA/DCGM:common/DcgmGPUHardwareLimits.h: DCGM_LIMIT_MAX_RETIRED_PAGES, of GPUs before Ampere,
 * and DCGM_LIMIT_MAX_ROW_REMAP_UNCORRECTABLE. */
enum { MOST_PAGES = 63, MOST_ROWS = 512 };

static void worn(const json_t *gpu, struct shk_gpu_word *word)
{
    long long pages = 0, rows = 0;
    enum shk_verdict read = shk_gpu_int(gpu, "retired_pages", &pages);
    read = shk_gpu_both(read, shk_gpu_int(gpu, "remapped_uncorrectable", &rows));
    word->verdict = shk_gpu_both(word->verdict, read);
    if ((pages < MOST_PAGES && rows < MOST_ROWS) || !shk_gpu_worst(word, SHK_FAIL))
        return;
    if (pages >= MOST_PAGES)
        shk_row_text(&word->seen, "%lld pages retired", pages);
    else
        shk_row_text(&word->seen, "%lld rows remapped for uncorrected errors", rows);
    word->diagnosis = "gpu-memory-worn";
    word->expected = pages >= MOST_PAGES ? "fewer than 63 pages" : "fewer than 512 rows";
    word->why = "more memory has failed than NVIDIA's field diagnostic allows";
    word->fix = "gpu-remap-failed";
}

static void remapping(const json_t *gpu, struct shk_gpu_word *word)
{
    bool failure = false, pending = false, retired = false, repair = false;
    enum shk_verdict read = shk_gpu_bool(gpu, "remap_failure", &failure);
    read = shk_gpu_both(read, shk_gpu_bool(gpu, "remap_pending", &pending));
    read = shk_gpu_both(read, shk_gpu_bool(gpu, "retired_pending", &retired));
    read = shk_gpu_both(read, shk_gpu_bool(gpu, "repair_pending", &repair));
    word->verdict = shk_gpu_both(word->verdict, read);
    if (failure && shk_gpu_worst(word, SHK_FAIL)) {
        shk_row_text(&word->seen, "row remapping failed");
        word->diagnosis = "gpu-row-remap-failed";
        word->expected = "no remapping that failed";
        word->why = "the memory has no spare row left where one is needed: errors will recur";
        word->fix = "gpu-remap-failed";
    }
    worn(gpu, word);
    if ((pending || retired || repair) && shk_gpu_worst(word, SHK_WARN)) {
        shk_row_text(&word->seen, "%s waits for a reset",
                     pending   ? "row remapping"
                     : retired ? "page retirement"
                               : "repair of a channel or processor cluster");
        word->diagnosis = "gpu-repair-pending";
        word->expected = "no repair pending";
        word->why = "what is faulty is set aside but not replaced before the next reset";
        word->fix = "gpu-remap-pending";
    }
}

/* False where errors are not counted. The driver's own word about recovery comes before the rule
 * for GPUs that give none. */
static bool uncorrected(const json_t *gpu, struct shk_gpu_word *word)
{
    long long errors = 0;
    const char *action = NULL;
    enum shk_verdict told = shk_gpu_text(gpu, "recovery_action", &action);
    enum shk_verdict read = shk_gpu_int(gpu, "ecc_volatile_uncorrected", &errors);
    word->verdict = shk_gpu_both(word->verdict, read);
    if (errors <= 0)
        return read == SHK_PASS;
    bool recovered = told == SHK_UNKNOWN || (action && strcmp(action, "none") == 0);
    if (shk_gpu_worst(word, recovered ? SHK_WARN : SHK_FAIL)) {
        shk_row_text(&word->seen, "%lld uncorrected memory errors", errors);
        word->diagnosis = "gpu-memory-errors";
        word->expected = "none since the driver was loaded";
        word->why = "data was lost; the process that used it was ended";
        word->fix = recovered ? "gpu-memory-reset-idle" : "gpu-memory-drain";
    }
    return true;
}

static void ecc_mode(const struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    bool on = true, after = true, other = false;
    size_t i;
    json_t *sibling;
    enum shk_verdict read = shk_gpu_bool(gpu, "ecc", &on);
    read = shk_gpu_both(read, shk_gpu_bool(gpu, "ecc_pending", &after));
    word->verdict = shk_gpu_both(word->verdict, read);
    if (read != SHK_PASS)
        return;
    json_array_foreach((json_t *)view->all, i, sibling)
    {
        bool theirs = false;
        (void)shk_gpu_bool(sibling, "ecc", &theirs);
        other |= theirs;
    }
    if (!on && shk_gpu_worst(word, other ? SHK_WARN : SHK_NOTE)) {
        shk_row_text(&word->seen, "ECC off");
        word->diagnosis = NULL;
        word->expected = "on";
        word->why = other ? "errors in the memory of this GPU are not noticed, unlike on the others"
                          : "errors in the memory of these GPUs are not noticed";
        word->fix = "gpu-ecc-on";
    }
    if (on != after && shk_gpu_worst(word, SHK_NOTE)) {
        shk_row_text(&word->seen, after ? "ECC on after a reset" : "ECC off after a reset");
        word->diagnosis = NULL;
        word->expected = "the mode that is set";
        word->why = "the mode was changed; it takes effect with the next reset";
        word->fix = "gpu-ecc-pending";
    }
}

void shk_gpu_judge_memory(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    static const char *const good[] = {"ECC on", "no repair pending or failed",
                                       "no uncorrected error",
                                       "no uncorrected error, no repair pending or failed"};
    remapping(gpu, word);
    unsigned covered = word->verdict != SHK_NA ? 1 : 0;
    covered |= uncorrected(gpu, word) ? 2 : 0;
    ecc_mode(view, gpu, word);
    if (word->verdict == SHK_PASS)
        view->covered &= covered;
    view->good = good[view->covered & 3];
}

static const struct slowdown {
    const char *name, *diagnosis, *why, *fix; /* key in config/fixes */
} slowdowns[] = {
    {"HW thermal", "gpu-thermal-slowdown",
     "the GPU is too hot: the hardware halves its clocks or worse", "gpu-too-hot"},
    {"power brake", "gpu-power-brake",
     "the power supply demands less: the hardware halves the clocks or worse", "gpu-power-brake"},
    {"SW thermal", "gpu-thermal-slowdown",
     "the GPU or its memory is above its highest operating temperature: the driver lowers clocks",
     "gpu-warm"},
    {"hardware slowdown", "gpu-hardware-slowdown",
     "the hardware halves the clocks or worse, for temperature, power brake or power draw",
     "gpu-slowed"},
};

static void reasons(const json_t *gpu, struct shk_gpu_word *word)
{
    json_t *list = NULL, *name;
    size_t k;
    enum shk_look look = shk_look_member_array(gpu, "clock_reasons", &list);
    word->verdict = look == SHK_LOOK_PRESENT  ? SHK_PASS
                    : look == SHK_LOOK_ABSENT ? SHK_NA
                                              : SHK_UNKNOWN;
    for (size_t i = 0; i < sizeof slowdowns / sizeof *slowdowns; i++)
        json_array_foreach(list, k, name)
        {
            const char *text = json_string_value(name);
            if (!text || strcmp(text, slowdowns[i].name) != 0 || !shk_gpu_worst(word, SHK_WARN))
                continue;
            shk_row_text(&word->seen, "%s", text);
            word->diagnosis = slowdowns[i].diagnosis;
            word->expected = "no slowdown";
            word->why = slowdowns[i].why;
            word->fix = slowdowns[i].fix;
        }
    json_array_foreach(list, k, name) if (!json_is_string(name)) word->verdict =
        shk_gpu_both(word->verdict, SHK_UNKNOWN);
}

void shk_gpu_judge_clocks(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    long long now = 0, slow = 0;
    (void)view;
    reasons(gpu, word);
    enum shk_verdict limit = shk_gpu_int(gpu, "temperature_slowdown", &slow);
    enum shk_verdict heat = shk_gpu_int(gpu, "temperature", &now);
    if (word->verdict == SHK_PASS && shk_gpu_pair(limit, heat) == SHK_UNKNOWN)
        word->verdict = SHK_UNKNOWN;
    if (limit == SHK_PASS && heat == SHK_PASS && slow > 0 && now >= slow &&
        shk_gpu_worst(word, SHK_WARN)) {
        shk_row_text(&word->seen, "%lld °C, slowdown at %lld °C", now, slow);
        word->diagnosis = slowdowns[0].diagnosis;
        word->expected = "below the temperature of slowdown";
        word->why = slowdowns[0].why;
        word->fix = slowdowns[0].fix;
    }
}

/* 1 below the default, 0 not, -1 not told. */
static int is_capped(const json_t *gpu)
{
    long long limit = 0, usual = 0;
    return shk_gpu_int(gpu, "power_limit", &limit) != SHK_PASS ||
                   shk_gpu_int(gpu, "power_default", &usual) != SHK_PASS
               ? -1
               : limit < usual;
}

/* A cap that all GPUs have is the site's; so is one of a single GPU, as far as can be told. */
void shk_gpu_judge_power(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    long long limit = 0, usual = 0;
    size_t i, others = 0;
    json_t *sibling;
    word->verdict = shk_gpu_pair(shk_gpu_int(gpu, "power_limit", &limit),
                                 shk_gpu_int(gpu, "power_default", &usual));
    if (is_capped(gpu) != 1)
        return;
    json_array_foreach((json_t *)view->all, i, sibling) others += is_capped(sibling) == 0;
    shk_row_text(&word->seen, "%lld W of %lld W", limit / 1000, usual / 1000);
    word->verdict = others ? SHK_WARN : SHK_NOTE;
    word->diagnosis = others ? "gpu-power-capped" : NULL;
    word->expected = others ? "the default, as on the others" : "the default";
    word->why = others ? "every ring waits for the slowest GPU"
                       : "the clocks under load are lower than this model's usual ones";
    word->fix = "gpu-power-limit";
}

void shk_gpu_judge_mode(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    const char *mode = NULL;
    long long ranks = 0;
    word->verdict = shk_gpu_text(gpu, "compute_mode", &mode);
    if (word->verdict != SHK_PASS || strcmp(mode, "default") == 0)
        return;
    if (strcmp(mode, "prohibited") == 0) {
        shk_row_text(&word->seen, "%s", mode);
        word->verdict = SHK_FAIL;
        word->diagnosis = "gpu-compute-prohibited";
        word->expected = "default";
        word->why = "no process may make a context on it: CUDA finds the device unavailable";
        word->fix = "gpu-compute-default";
        return;
    }
    if (strncmp(mode, "exclusive", 9) != 0) {
        word->verdict = SHK_UNKNOWN;
        return;
    }
    view->good = "default or exclusive";
    if (shk_read_int(view->row, "job.local_ranks", &ranks) == SHK_LOOK_PRESENT &&
        ranks > (long long)json_array_size(view->all)) {
        shk_row_text(&word->seen, "%s", mode);
        word->verdict = SHK_NOTE;
        word->expected = "no more ranks than GPUs, or MPS";
        word->why = "only one process at a time may use the GPU, unless it goes through MPS";
        word->fix = "gpu-compute-mps";
    }
}

/* Links that are up; a speed of 0 is none. */
void shk_gpu_judge_links(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word)
{
    json_t *list = NULL, *link;
    long long most = 0, least = 0, slow = -1;
    size_t i;
    (void)view;
    enum shk_look look = shk_look_member_array(gpu, "links", &list);
    word->verdict = look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT ? SHK_NA : SHK_UNKNOWN;
    json_array_foreach(list, i, link)
    {
        bool active = false;
        long long speed = 0;
        enum shk_verdict read = shk_gpu_bool(link, "active", &active);
        if (active)
            read = shk_gpu_int(link, "speed", &speed);
        else if (read == SHK_PASS)
            continue;
        word->verdict = shk_gpu_both(word->verdict, read);
        most = speed > most ? speed : most;
        if (speed > 0 && (!least || speed < least)) {
            least = speed;
            slow = (long long)i;
        }
    }
    if (!least || least >= most)
        return;
    shk_row_text(&word->seen, "link %lld at %lld of %lld MB/s", slow, least, most);
    word->verdict = SHK_WARN;
    word->diagnosis = "nvlink-slow";
    word->expected = "one speed on all links of a GPU";
    word->why = "traffic is spread over all links: the slowest one holds it up";
    word->fix = "gpu-nvlink-errors";
}
