/* Policies of the kernel that slow collectives down without a word. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/readers/readers_together.h"
#include "core/text/uses.h"

#include <string.h>

static bool is_slow(const char *governor)
{
    return strcmp(governor, "powersave") == 0 || strcmp(governor, "conservative") == 0;
}

/* Drivers with which the processor itself chooses, so that powersave is only a hint. */
static bool decides_in_hardware(struct shk_row *row)
{
    static const char *const drivers[] = {"intel_pstate", "amd-pstate-epp", "amd_pstate_epp", NULL};
    json_t *seen = NULL, *count;
    const char *name;
    if (shk_read_object(row, "host.cpufreq.drivers", &seen) != SHK_LOOK_PRESENT ||
        !json_object_size(seen)) {
        shk_row_lacks(row, "host.cpufreq.drivers", "the driver of the frequencies was not read");
        return false;
    }
    json_object_foreach(seen, name, count)
    {
        long long policies = 0;
        if (!shk_read_told_int(row, "host.cpufreq.drivers", seen, name, &policies) ||
            !shk_list_has(drivers, name))
            return false;
    }
    return true;
}

static void stays_slow(struct shk_row *row)
{
    bool hardware = decides_in_hardware(row);
    if (hardware) {
        shk_row_text(&row->why, "with this driver the processor itself raises the frequency");
    } else if (!shk_row_lacking(row)) {
        row->verdict = SHK_WARN;
        shk_row_text(&row->expected, "performance");
        shk_row_text(&row->why, "processors stay at a low frequency, so the threads that feed "
                                "the NICs fall behind");
        shk_row_fix(row, "governor", NULL);
    }
}

/* Policies by governor, "powersave (4)"; true: one of them keeps the frequency low. */
static bool sum_governors(struct shk_row *row, const char *key, json_t *governors,
                          struct shk_strbuf *seen)
{
    bool slow = false;
    const char *name;
    json_t *count;
    json_object_foreach(governors, name, count)
    {
        long long n = 0;
        if (shk_read_told_int(row, key, governors, name, &n))
            shk_strbuf_printf(seen, "%s%s (%lld)", seen->len ? ", " : "", name, n);
        slow |= is_slow(name) && n > 0;
    }
    return slow;
}

static void eval_governor(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "host.cpufreq.governors";
    struct shk_row row = shk_row_begin(ctx, &shk_check_governor, "cpu-governor");
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    json_t *governors = NULL;
    row.fact = "host.cpufreq.governors, host.cpufreq.drivers";
    row.source = "torvalds/linux:Documentation/admin-guide/pm/cpufreq.rst";
    enum shk_look look = shk_read_object(&row, key, &governors);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this system sets no frequencies");
        return;
    }
    if (look == SHK_LOOK_PRESENT && !json_object_size(governors)) {
        shk_row_lacks(&row, key, "%s names no governor", key);
    } else if (look == SHK_LOOK_PRESENT) {
        bool slow = sum_governors(&row, key, governors, &seen);
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        if (seen.len)
            shk_row_text(&row.observed, "%s", shk_strbuf_text(&seen));
        if (slow)
            stays_slow(&row);
    }
    shk_row_end(findings, &row);
    shk_strbuf_free(&seen);
}

const struct shk_check shk_check_governor = {
    .id = "kernel.governor",
    .family = "kernel",
    .title = "CPUs run at full frequency",
    .eval = eval_governor,
    .doc = "Facts: host.cpufreq.governors, host.cpufreq.drivers.\n"
           "powersave and conservative are WARN, except with intel_pstate and amd-pstate-epp, "
           "where powersave leaves the choice to the processor.",
};

static void eval_thp(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_thp, "transparent_hugepage");
    const char *enabled = NULL, *defrag = NULL;
    row.fact = "kernel.thp, kernel.thp_defrag";
    row.source = "torvalds/linux:Documentation/admin-guide/mm/transhuge.rst";
    enum shk_look look = shk_read_text(&row, "kernel.thp", &enabled);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this kernel has none");
        return;
    }
    if (look == SHK_LOOK_PRESENT) {
        /* only for those that every allocation gets does it matter how they are made */
        bool always = strcmp(enabled, "always") == 0;
        if (always)
            (void)shk_read_text(&row, "kernel.thp_defrag", &defrag);
        bool stalls = defrag && strcmp(defrag, "always") == 0;
        shk_row_verdict(&row, stalls ? SHK_WARN : SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s%s%s", enabled, defrag ? ", defrag " : "",
                     defrag ? defrag : "");
        if (stalls) {
            shk_row_text(&row.expected, "defrag madvise or defer");
            shk_row_text(&row.why, "every page fault may stop to compact memory");
            shk_row_fix(&row, "thp-defrag", NULL);
        }
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_thp = {
    .id = "kernel.thp",
    .family = "kernel",
    .title = "Transparent huge pages do not stall page faults",
    .eval = eval_thp,
    .doc = "Facts: kernel.thp, kernel.thp_defrag.\n"
           "always with defrag always is WARN: allocations then compact memory directly.",
};

static void eval_hugepages(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "hugepages.2048";
    struct shk_row row = shk_row_begin(ctx, &shk_check_hugepages, "vm.nr_hugepages");
    json_t *pool = NULL;
    const char *asked = NULL;
    long long total = -1, unused = -1;
    row.fact = key;
    row.source = "ofiwg/libfabric:man/fi_efa.7.md";
    enum shk_look env = shk_read_env_used(&row, shk_variable("huge-pages"), &asked);
    if (env != SHK_LOOK_PRESENT || strcmp(asked, "0") == 0) {
        shk_row_na(findings, &row, "nothing here insists on huge pages");
        return;
    }
    if (shk_read_object(&row, key, &pool) == SHK_LOOK_ABSENT)
        shk_row_lacks(&row, key, "this kernel shows no pool of 2 MiB pages");
    (void)shk_read_member_int(&row, key, pool, "total", &total);
    (void)shk_read_member_int(&row, key, pool, "free", &unused);
    if (total >= 0 && unused >= 0) {
        shk_row_verdict(&row, unused ? SHK_PASS : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "%lld of %lld free (2 MiB)", unused, total);
        if (!unused) {
            shk_row_text(&row.expected, "some free");
            shk_row_text(&row.why,
                         "%s=%s finds none, so the provider falls back "
                         "to small pages",
                         shk_variable("huge-pages"), asked);
            shk_row_fix(&row, "huge-pages", NULL);
        }
    } else {
        shk_row_lacks(&row, key, "%s has an unexpected form", key);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_hugepages = {
    .id = "kernel.hugepages",
    .family = "kernel",
    .title = "Huge pages are available if they are needed",
    .eval = eval_hugepages,
    .doc = "Facts: hugepages.2048, env.{huge-pages}.\n"
           "Asked for and none free is WARN; n/a when nothing asks.",
};
