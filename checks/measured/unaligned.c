/* NCCL's reductions of 16-bit data at odd places: healthy hardware, a fault of the library. What
 * happens only inside symmetric windows matters to jobs that use them. */
#include "checks/measured/unaligned.h"
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/log/log.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

/* The tuning line of NCCL that names a kernel for windows. */
static const char symmetric_kernel[] = "nccl-symmetric-kernel";

static bool is_off(const char *value)
{
    static const char *const words[] = {"", "0", "false", "off", "no", "none"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

/* NCCL's own, and what frameworks call theirs: …SYMM_MEM…, …SYMMMEM…; not what switches
 * a part of it off. */
static bool asks_for_windows(const char *name)
{
    if (strstr(name, "DISABLE") || strstr(name, "_NO_"))
        return false;
    return shk_variable_has("symmetric-windows", name) || strstr(name, "SYMM_MEM") ||
           strstr(name, "SYMMMEM");
}

static int find_variable(const struct shk_fact *fact, void *arg)
{
    const char **name_p = arg, *name = fact->key + strlen("env.");
    if (fact->state != SHK_FACT_PRESENT || !json_is_string(fact->value) ||
        !asks_for_windows(name) || is_off(json_string_value(fact->value)))
        return 0;
    *name_p = name;
    return 1;
}

/* What shows that symmetric windows are used here: a new string, NULL when nothing does. */
static char *windows_used(const struct shk_facts *facts)
{
    const char *asked, *name = NULL;
    if (shk_look_text(facts, "collective.asked", &asked) == SHK_LOOK_PRESENT &&
        strcmp(asked, "nccl-window") == 0)
        return strdup("--transport nccl-window needs windows");
    (void)shk_facts_each(facts, "env.", find_variable, &name);
    if (name)
        return shk_strf("%s requests symmetric memory", name);
    char *place = shk_log_place(facts, symmetric_kernel);
    char *text = place ? shk_strf("a log shows a kernel for windows (%s)", place) : NULL;
    free(place);
    return text;
}

static void judge(struct shk_row *row, const char *key, const json_t *result, const char *version,
                  bool window)
{
    const char *text = NULL;
    long long wrong = 0, cases = 0;
    if (shk_read_member_int(row, key, result, "wrong", &wrong) != SHK_LOOK_PRESENT ||
        shk_read_member_int(row, key, result, "cases", &cases) != SHK_LOOK_PRESENT)
        return;
    if (wrong < 0 || cases <= 0) {
        shk_row_text(&row->why, "no case was counted");
        return;
    }
    (void)shk_look_member_text(result, "text", &text);
    char *used = wrong && window ? windows_used(row->ctx->facts) : NULL;
    enum shk_verdict bad = window && !used ? SHK_NOTE : SHK_WARN;
    shk_row_verdict(row, wrong ? bad : SHK_PASS, SHK_TESTED);
    shk_row_text(&row->observed, "%lld of %lld cases wrong%s%s", wrong, cases,
                 version ? ", version " : "", version ? version : "");
    if (!wrong)
        return;
    shk_row_text(&row->expected, "every element right on every rank");
    shk_row_text(&row->why, "%s%s%s", text ? text : "no case was recorded",
                 !window ? ""
                 : used  ? "; "
                         : "; nothing here needs windows, and outside them the sums are correct",
                 used ? used : "");
    shk_row_fix(row, "aligned", NULL);
    row->diagnosis = "symm-mem-unaligned-16bit";
    free(used);
}

void shk_unaligned_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *transport, bool ran)
{
    char *key = shk_strf("collective.%s.unaligned", transport);
    char *version_key = shk_strf("collective.%s.version", transport);
    bool window = strcmp(transport, "nccl-window") == 0;
    char *setting = window ? shk_strf("symmetric window, unaligned 16-bit data")
                           : shk_strf("all-reduce (%s), unaligned 16-bit data", transport);
    json_t *result = NULL;
    const char *version = NULL;
    enum shk_look look = key ? shk_look_object(ctx->facts, key, &result) : SHK_LOOK_MISSING;
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED ||
        (look == SHK_LOOK_MISSING && window && ran)) {
        struct shk_row row =
            shk_row_begin(ctx, &shk_check_collective, setting ? setting : transport);
        row.fact = key;
        if (version_key)
            (void)shk_look_text(ctx->facts, version_key, &version);
        if (shk_read_object(&row, key, &result) == SHK_LOOK_PRESENT)
            judge(&row, key, result, version, window);
        shk_row_end(findings, &row);
    }
    free(setting);
    free(version_key);
    free(key);
}
