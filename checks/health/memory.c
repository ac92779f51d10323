/* Memory: errors of the hardware, and processes that were killed for want of it. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

struct errors {
    long long corrupted, checks, uncorrected, corrected;
    bool any; /* one of the counters is there */
};

static bool read_counter(struct shk_row *row, struct errors *errors, const char *key,
                         long long *value_p)
{
    enum shk_look look = shk_read_int(row, key, value_p);
    if (look == SHK_LOOK_PRESENT && *value_p < 0)
        shk_row_lacks(row, key, "%s has an unexpected form", key);
    errors->any |= look == SHK_LOOK_PRESENT;
    return look == SHK_LOOK_PRESENT && *value_p > 0;
}

static void read_controllers(struct shk_row *row, struct errors *errors)
{
    static const char key[] = "memory.controllers";
    json_t *list = NULL, *entry;
    size_t i;
    (void)shk_read_array(row, key, &list);
    json_array_foreach(list, i, entry)
    {
        long long uncorrected = 0, corrected = 0;
        errors->any |= shk_read_told_int(row, key, entry, "uncorrected", &uncorrected);
        (void)shk_look_member_int(entry, "corrected", &corrected);
        errors->uncorrected += uncorrected > 0 ? uncorrected : 0;
        errors->corrected += corrected > 0 ? corrected : 0;
    }
}

static void observe(struct shk_row *row, const struct errors *errors)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    char *size = shk_bytes_text(errors->corrupted);
    if (errors->uncorrected > 0)
        shk_strbuf_printf(&seen, ", %lld uncorrected", errors->uncorrected);
    if (errors->checks > 0)
        shk_strbuf_printf(&seen, ", %lld machine check exceptions", errors->checks);
    if (errors->corrupted > 0)
        shk_strbuf_printf(&seen, ", %s taken out of use", size ? size : "pages");
    if (errors->corrected > 0)
        shk_strbuf_printf(&seen, ", %lld corrected", errors->corrected);
    const char *text = shk_strbuf_text(&seen);
    shk_row_text(&row->observed, "%s", *text ? text + 2 : "none since boot");
    shk_strbuf_free(&seen);
    free(size);
}

static void eval_errors(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_memory_errors, "memory errors");
    struct errors errors = {0};
    row.fact = "memory.corrupted, memory.machine_checks, memory.controllers";
    row.source = "torvalds/linux:Documentation/admin-guide/ras/main.rst";
    bool bad = read_counter(&row, &errors, "memory.corrupted", &errors.corrupted);
    bad |= read_counter(&row, &errors, "memory.machine_checks", &errors.checks);
    read_controllers(&row, &errors);
    bad |= errors.uncorrected > 0;
    if (!errors.any && !shk_row_lacking(&row)) {
        shk_row_na(findings, &row, "this kernel counts no memory errors here");
        return;
    }
    shk_row_verdict(&row, bad ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    observe(&row, &errors);
    if (bad) {
        row.diagnosis = "memory-errors";
        shk_row_text(&row.expected, "none");
        shk_row_text(&row.why, "memory or a processor of this node failed since it was booted: the "
                               "next such error ends a process, or the node");
        shk_row_fix(&row, "memory-test", NULL);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_memory_errors = {
    .id = "memory.errors",
    .diagnosis = "memory-errors",
    .family = "kernel",
    .title = "No hardware memory errors since boot",
    .eval = eval_errors,
    .doc = "Facts: memory.{corrupted, machine_checks, controllers}.\n"
           "Pages that the kernel took out of use, machine check exceptions and uncorrected errors "
           "of a memory controller (EDAC) are WARN. Corrected errors are told and not judged: no "
           "source gives a rate that is too high.",
};

static void killed(struct shk_row *row, long long kills)
{
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = "container-memory-limit-oom";
    shk_row_text(&row->observed, "%lld killed", kills);
    shk_row_text(&row->expected, "none");
    shk_row_text(&row->why,
                 "the kernel killed processes of this control group because its memory limit was "
                 "reached: a rank that vanished without a message was killed so");
    shk_row_fix(row, "more-memory", NULL);
}

static void eval_kills(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "cgroup.memory.oom_kills";
    struct shk_row row = shk_row_begin(ctx, &shk_check_memory_kills, "memory of the control group");
    long long kills = 0;
    row.fact = key;
    row.source = "torvalds/linux:Documentation/admin-guide/cgroup-v2.rst";
    enum shk_look look = shk_read_int(&row, key, &kills);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no control group limits the memory");
        return;
    }
    if (look == SHK_LOOK_PRESENT && kills < 0)
        shk_row_lacks(&row, key, "%s has an unexpected form", key);
    if (look == SHK_LOOK_PRESENT && kills > 0) {
        killed(&row, kills);
    } else if (look == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "none killed");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_memory_kills = {
    .id = "memory.kills",
    .diagnosis = "container-memory-limit-oom",
    .family = "limits",
    .title = "No process of this job was killed by the OOM killer",
    .eval = eval_kills,
    .doc = "Fact: cgroup.memory.oom_kills.\n"
           "A process of this control group, or of the job that it is a step of, that the kernel "
           "killed since the group was made is WARN. n/a without a group that counts.",
};
