/* Settings that the profile wants and that are not set. */
#include "checks/env.h"
#include "checks/grammar.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names with a row even when nobody set them and no profile asks: what people look for first. */
static const char *const audited[] = {"NCCL_DEBUG",
                                      "NCCL_DEBUG_SUBSYS",
                                      "RCCL_TRACE_PLUGIN",
                                      "PLUGIN_DIR",
                                      "LD_LIBRARY_PATH",
                                      "RCCL_ENABLE_OFI",
                                      "FI_PROVIDER",
                                      "FI_PROVIDER_PATH",
                                      "FI_LOG_LEVEL",
                                      "CXI_FORK_SAFE",
                                      "CXI_FORK_SAFE_HP",
                                      "FI_CXI_DISABLE_CQ_HUGETLB",
                                      "FI_HMEM",
                                      "MIOPEN_USER_DB_PATH",
                                      "MIOPEN_CUSTOM_CACHE_DIR",
                                      "MIOPEN_ENABLE_LOGGING",
                                      "RCCL_MSCCL_ENABLE",
                                      "NCCL_SOCKET_IFNAME",
                                      "NCCL_NET_GDR_LEVEL",
                                      "NCCL_DMABUF_ENABLE",
                                      "RCCL_ENABLE_DMABUF_PLUGIN",
                                      "HSA_FORCE_FINE_GRAIN_PCIE",
                                      "HSA_ENABLE_DEBUG",
                                      "HSA_TOOLS_LIB",
                                      "NEURON_RT_ROOT_COMM_ID",
                                      "CPATH",
                                      "LIBRARY_PATH",
                                      "NVSHMEM_BOOTSTRAP",
                                      "NVSHMEM_DISABLE_IB",
                                      "NVSHMEM_REMOTE_TRANSPORT",
                                      "NVSHMEM_SYMMETRIC_SIZE",
                                      "NVSHMEM_DEBUG",
                                      "NVSHMEM_DEBUG_SUBSYS",
                                      "FI_EFA_USE_DEVICE_RDMA",
                                      "FI_EFA_FORK_SAFE",
                                      "FI_EFA_TX_SIZE",
                                      "FI_EFA_RX_SIZE",
                                      "NCCL_CUMEM_ENABLE",
                                      "NCCL_NVLS_ENABLE",
                                      "NCCL_WIN_ENABLE",
                                      NULL};

/* Interfaces: a value is as good as an accepted one when each of its entries begins with one of the
 * accepted entries ("hsn0,hsn1" where "hsn" is accepted). */
static bool same_network(const char *accepted, const char *value)
{
    bool ax, ae, vx, ve;
    accepted = shk_grammar_list_body(accepted, &ax, &ae);
    value = shk_grammar_list_body(value, &vx, &ve);
    if (ax || vx)
        return false;
    const char *item, *want;
    size_t len, want_len;
    while (shk_grammar_item(&value, ',', &item, &len)) {
        bool hit = false;
        for (const char *pos = accepted; !hit && shk_grammar_item(&pos, ',', &want, &want_len);)
            hit = want_len && len >= want_len && strncmp(item, want, want_len) == 0;
        if (!hit)
            return false;
    }
    return true;
}

bool shk_profile_accepts(const struct shk_setting *setting, const struct shk_profile_setting *line,
                         const char *value)
{
    static const struct shk_grammar plain = {.type = SHK_VALUE_STRING};
    const struct shk_grammar *grammar = setting ? &setting->grammar : &plain;
    if (!shk_list_count(line->accepted))
        return true;
    for (const char *const *a = line->accepted; *a; a++) {
        if (shk_grammar_same(grammar, *a, value))
            return true;
        if (grammar->type == SHK_VALUE_INTERFACES && same_network(*a, value))
            return true;
    }
    return false;
}

char *shk_profile_accepted_text(const struct shk_profile_setting *line)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (const char *const *a = line->accepted; a && *a; a++) {
        if (sb.len > 80) {
            shk_strbuf_puts(&sb, " or …");
            break;
        }
        shk_strbuf_printf(&sb, "%s%s", sb.len ? " or " : "", *a);
    }
    return sb.len ? shk_strbuf_take(&sb) : NULL;
}

/* What goes wrong when a recommendation about this name is not followed. */
static const struct {
    const char *name, *diagnosis;
} missed[] = {
    {"NCCL_SOCKET_IFNAME", "socket-ifname-wrong-network"},
    {"NEURON_RT_ROOT_COMM_ID", "neuron-root-comm-id-missing"},
    {"NVSHMEM_REMOTE_TRANSPORT", "nvshmem-transport-wrong"},
    {"NVSHMEM_LIBFABRIC_PROVIDER", "nvshmem-transport-wrong"},
    {"MIOPEN_USER_DB_PATH", "miopen-cache-shared-fs"},
    {"MIOPEN_CUSTOM_CACHE_DIR", "miopen-cache-shared-fs"},
    {"NCCL_NET_PLUGIN", "net-plugin-missing"},
    {"HSA_NO_SCRATCH_RECLAIM", "hsa-scratch-reclaim"},
};

const char *shk_profile_diagnosis(const struct shk_profile *profile, const char *name)
{
    for (size_t i = 0; i < sizeof(missed) / sizeof(missed[0]); i++)
        if (strcmp(missed[i].name, name) == 0)
            return missed[i].diagnosis;
    return shk_profile_wants_provider(profile, "cxi") ? "cxi-recommended-env-missing" : NULL;
}

static void missing_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const struct shk_profile_setting *line, int holds)
{
    static const enum shk_verdict verdicts[] = {
        [SHK_OPTIONAL] = SHK_NA, [SHK_RECOMMENDED] = SHK_WARN, [SHK_REQUIRED] = SHK_FAIL};
    const struct shk_setting *setting = shk_config_setting(ctx->config, line->name);
    struct shk_row row = shk_row_start(&shk_check_env_profile, line->name);
    row.family = setting ? setting->family : row.family;
    row.source = line->source ? line->source : setting ? setting->source : NULL;
    row.required = line->strength == SHK_REQUIRED;
    char *accepted = shk_profile_accepted_text(line);
    shk_row_text(&row.observed, "not set");
    shk_row_text(&row.expected, "%s", accepted ? accepted : "set");
    if (line->strength == SHK_OPTIONAL) {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "not needed: %s", line->why ? line->why : "optional");
    } else if (holds < 0 || !shk_env_known(ctx->facts)) {
        shk_row_text(&row.why,
                     holds < 0 ? "recommended when %s, which is not known here"
                               : "the environment was not read%s",
                     holds < 0 ? line->condition : "");
    } else {
        shk_row_verdict(&row, verdicts[line->strength], SHK_DECLARED);
        shk_row_text(&row.why, "%s: %s",
                     line->strength == SHK_REQUIRED ? "required here" : "recommended here",
                     line->why ? line->why : "see the profile");
        if (shk_list_count(line->accepted))
            shk_row_text(&row.fix, "export %s=\"%s\"", line->name, line->accepted[0]);
        else if (setting && setting->fix)
            shk_row_text(&row.fix, "%s", setting->fix);
        row.diagnosis = shk_profile_diagnosis(ctx->profile, line->name);
    }
    free(accepted);
    shk_row_end(findings, &row);
}

static bool is_set(const struct shk_facts *facts, const char *name)
{
    return shk_env_get(facts, name) != NULL;
}

static void eval_profile(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    const struct shk_profile *profile = ctx->profile;
    for (size_t i = 0; i < profile->settings_count; i++) {
        const char *name = profile->settings[i].name;
        const struct shk_setting *setting = shk_config_setting(ctx->config, name);
        int holds = 1;
        const struct shk_profile_setting *line = shk_profile_line(ctx, name, &holds);
        /* One row per name: the line that applies; kernel parameters are judged by code. */
        if (line != &profile->settings[i] || line->must_be_unset || is_set(ctx->facts, name) ||
            (setting && !setting->variable))
            continue;
        missing_row(ctx, findings, line, holds);
    }
}

static bool in_profile(const struct shk_check_context *ctx, const char *name)
{
    const struct shk_profile_setting *line = shk_profile_line(ctx, name, NULL);
    return line && !line->must_be_unset;
}

static void eval_audit(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (const char *const *name = audited; *name; name++) {
        if (is_set(ctx->facts, *name) || in_profile(ctx, *name))
            continue;
        const struct shk_setting *setting = shk_config_setting(ctx->config, *name);
        const struct shk_profile_setting *line = shk_profile_line(ctx, *name, NULL);
        struct shk_row row = shk_row_start(&shk_check_env_audit, *name);
        row.family = setting ? setting->family : row.family;
        row.source = line && line->source ? line->source : setting ? setting->source : NULL;
        if (!shk_env_known(ctx->facts)) {
            shk_row_text(&row.why, "the environment was not read");
            shk_row_end(findings, &row);
            continue;
        }
        shk_row_text(&row.observed, "not set");
        if (line) {
            shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
            shk_row_text(&row.expected, "unset");
            shk_row_end(findings, &row);
        } else if (setting && setting->kind == SHK_SETTING_FOLKLORE) {
            shk_row_na(findings, &row, "not set; no library reads this name");
        } else {
            shk_row_na(findings, &row, "not set; default: %s",
                       setting && setting->default_value ? setting->default_value : "none needed");
        }
    }
}

const struct shk_check shk_check_env_profile = {
    .id = "env.profile",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Variables that the profile wants and nobody set",
    .eval = eval_profile,
    .doc = "Facts: env.*, env.file.*, and what the conditions of the profile ask (job.nodes, "
           "host.container, versions).\n"
           "Required and missing is FAIL, recommended and missing WARN, optional n/a. When the "
           "condition of a line cannot be decided the row is UNKNOWN. Values that are set are "
           "judged by env.value.",
};

const struct shk_check shk_check_env_audit = {
    .id = "env.audit",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Variables of old guides that are looked for on every node, when not set",
    .eval = eval_audit,
    .doc = "Facts: env.*, env.file.*.\n"
           "So that the matrix says for each of them that it was looked at: n/a with the default "
           "when not set; pass when the profile says that it must be unset.",
};
