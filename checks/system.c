/* Policies of the kernel that slow collectives down without a word. */
#include "checks/coded.h"

#include <string.h>

static bool decides_in_hardware(const struct shk_facts *facts)
{
    static const char *const drivers[] = {"intel_pstate", "amd-pstate-epp", "amd_pstate_epp", NULL};
    const json_t *seen = shk_facts_get_object(facts, "host.cpufreq.drivers");
    const char *name;
    json_t *count;
    json_object_foreach((json_t *)seen, name, count)
    {
        if (!shk_list_has(drivers, name))
            return false;
    }
    return json_object_size(seen) > 0;
}

static void eval_governor(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "host.cpufreq.governors";
    struct shk_row row = shk_row_start(&shk_check_governor, "cpu-governor");
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    const json_t *governors = shk_facts_get_object(ctx->facts, key);
    const char *name;
    json_t *count;
    long long slow = 0;
    row.fact = "host.cpufreq.governors, host.cpufreq.drivers";
    row.source = "torvalds/linux:Documentation/admin-guide/pm/cpufreq.rst";
    json_object_foreach((json_t *)governors, name, count)
    {
        shk_strbuf_printf(&seen, "%s%s (%lld)", seen.len ? ", " : "", name,
                          (long long)json_integer_value(count));
        if (strcmp(name, "powersave") == 0 || strcmp(name, "conservative") == 0)
            slow += json_integer_value(count);
    }
    if (shk_look(ctx->facts, key, NULL) == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this system sets no frequencies");
    } else if (!governors) {
        shk_row_unread(findings, &row, ctx->facts, key);
    } else {
        bool hardware = decides_in_hardware(ctx->facts);
        shk_row_verdict(&row, slow && !hardware ? SHK_WARN : SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&seen));
        if (slow && hardware) {
            shk_row_text(&row.why, "with this driver the processor itself raises the frequency");
        } else if (slow) {
            shk_row_text(&row.expected, "performance");
            shk_row_text(&row.why, "processors stay at a low frequency, so the threads that feed "
                                   "the NICs fall behind");
            shk_row_text(&row.fix, "cpupower frequency-set -g performance");
        }
        shk_row_end(findings, &row);
    }
    shk_strbuf_free(&seen);
}

const struct shk_check shk_check_governor = {
    .id = "kernel.governor",
    .family = "kernel",
    .title = "Processors run at full frequency",
    .eval = eval_governor,
    .doc = "Facts: host.cpufreq.governors, host.cpufreq.drivers.\n"
           "powersave and conservative are WARN, except with intel_pstate and amd-pstate-epp, "
           "where powersave leaves the choice to the processor.",
};

static void eval_thp(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_thp, "transparent_hugepage");
    const char *enabled = shk_facts_get_text(ctx->facts, "kernel.thp");
    const char *defrag = shk_facts_get_text(ctx->facts, "kernel.thp_defrag");
    row.fact = "kernel.thp, kernel.thp_defrag";
    row.source = "torvalds/linux:Documentation/admin-guide/mm/transhuge.rst";
    if (shk_look(ctx->facts, "kernel.thp", NULL) == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this kernel has none");
        return;
    }
    if (!enabled) {
        shk_row_unread(findings, &row, ctx->facts, "kernel.thp");
        return;
    }
    bool stalls = strcmp(enabled, "always") == 0 && defrag && strcmp(defrag, "always") == 0;
    shk_row_verdict(&row, stalls ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%s%s%s", enabled, defrag ? ", defrag " : "", defrag ? defrag : "");
    if (stalls) {
        shk_row_text(&row.expected, "defrag madvise or defer");
        shk_row_text(&row.why, "every page fault may stop to compact memory");
        shk_row_text(&row.fix, "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag");
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
    struct shk_row row = shk_row_start(&shk_check_hugepages, "vm.nr_hugepages");
    const json_t *pool = shk_facts_get_object(ctx->facts, key);
    const char *asked = shk_env_get(ctx->facts, "FI_EFA_USE_HUGE_PAGE");
    long long total = shk_member_int(pool, "total", -1), unused = shk_member_int(pool, "free", -1);
    row.fact = key;
    row.source = "ofiwg/libfabric:man/fi_efa.7.md";
    if (!asked || strcmp(asked, "0") == 0) {
        shk_row_na(findings, &row, "nothing here insists on huge pages");
    } else if (total < 0 || unused < 0) {
        shk_row_unread(findings, &row, ctx->facts, key);
    } else {
        shk_row_verdict(&row, unused ? SHK_PASS : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "%lld of %lld free (2 MiB)", unused, total);
        if (!unused) {
            shk_row_text(&row.expected, "some free");
            shk_row_text(&row.why,
                         "FI_EFA_USE_HUGE_PAGE=%s finds none, so the provider falls back "
                         "to small pages",
                         asked);
            shk_row_text(&row.fix, "sysctl -w vm.nr_hugepages=N, or unset FI_EFA_USE_HUGE_PAGE");
        }
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_hugepages = {
    .id = "kernel.hugepages",
    .family = "kernel",
    .title = "Huge pages are there when they are asked for",
    .eval = eval_hugepages,
    .doc = "Facts: hugepages.2048, env.FI_EFA_USE_HUGE_PAGE.\n"
           "Asked for and none free is WARN; n/a when nothing asks.",
};
