#include "checks/coded.h"
#include "checks/env.h"
#include "checks/fabric.h"

#include <errno.h>

/* Order of the matrix: how the look went, what was tested, then from the hardware up to the
 * variables. One a line, whatever columns clang-format would make of them. */
/* clang-format off */
static const struct shk_check *const checks[] = {
    &shk_check_probe_health,
    &shk_check_collective,
    &shk_check_loss,
    &shk_check_counters,
    &shk_check_pair_speed,
    &shk_check_by_node,
    &shk_check_rails,
    &shk_check_layers,
    &shk_check_gpu_presence,
    &shk_check_gpu_driver,
    &shk_check_gpu_allocation,
    &shk_check_rocm,
    &shk_check_gpu_masks,
    &shk_check_gpu_library,
    &shk_check_nvlink,
    &shk_check_peer_access,
    &shk_check_dev_access,
    &shk_check_nic_count,
    &shk_check_nic_link,
    &shk_check_nic_rate,
    &shk_check_nearest_nic,
    &shk_check_topo_file,
    &shk_check_levels,
    &shk_check_binding,
    &shk_check_fabric_library,
    &shk_check_fabric_provider,
    &shk_check_fabric_copies,
    &shk_check_plugin_file,
    &shk_check_plugin_load,
    &shk_check_plugin_abi,
    &shk_check_plugin_use,
    &shk_check_hostname,
    &shk_check_socket_choice,
    &shk_check_iommu,
    &shk_check_acs,
    &shk_check_pci_link,
    &shk_check_pci_errors,
    &shk_check_pci_numa,
    &shk_check_gpu_bar,
    &shk_check_modules,
    &shk_check_peermem,
    &shk_check_dmabuf,
    &shk_check_gdrcopy,
    &shk_check_fabric_manager,
    &shk_check_imex,
    &shk_check_numa_balancing,
    &shk_check_governor,
    &shk_check_thp,
    &shk_check_hugepages,
    &shk_check_sysctl,
    &shk_check_memlock,
    &shk_check_nofile,
    &shk_check_stack,
    &shk_check_shm,
    &shk_check_container,
    &shk_check_job,
    &shk_check_job_pmix,
    &shk_check_job_missing,
    &shk_check_job_spread,
    &shk_check_job_slots,
    &shk_check_job_clocks,
    &shk_check_vni,
    &shk_check_env_file,
    &shk_check_env_conflict,
    &shk_check_env_value,
    &shk_check_env_profile,
    &shk_check_env_audit,
    &shk_check_log_setting,
};
/* clang-format on */

const struct shk_check *const *shk_checks(size_t *count_p)
{
    *count_p = sizeof(checks) / sizeof(checks[0]);
    return checks;
}

/* Said once, however many rows are unknown because of it. */
static void misformed_row(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_probe_health, "form of the facts");
    struct shk_strbuf keys = SHK_STRBUF_INIT;
    shk_strbuf_array(&keys, ctx->misformed, 8);
    shk_row_text(&row.observed, "%zu of another type than expected: %s",
                 json_array_size(ctx->misformed), shk_strbuf_text(&keys));
    shk_row_text(&row.why, "these facts were not written by this program, or not by this version; "
                           "they count as not read");
    shk_strbuf_free(&keys);
    shk_row_end(findings, &row);
}

static const struct shk_check evidence_check = {.id = "node.evidence", .family = "shakedown"};

/* A document with a name and nothing else, a capture of an empty folder: not a good node. `first`:
 * where the rows of this node begin. */
static void evidence_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         size_t first)
{
    for (size_t i = first; i < shk_findings_count(findings); i++) {
        enum shk_verdict verdict = shk_findings_at(findings, i)->verdict;
        if (verdict != SHK_UNKNOWN && verdict != SHK_NA)
            return;
    }
    struct shk_row row = shk_row_begin(ctx, &evidence_check, "evidence");
    row.required = SHK_ASKED;
    shk_row_text(&row.why, "nothing here tells anything of the node: no check could judge it");
    shk_row_end(findings, &row);
}

int shk_checks_run(const struct shk_check_context *ctx, struct shk_findings *findings,
                   struct shk_error *err)
{
    if (!ctx->profile)
        return shk_error_set(err, EINVAL, "no profile to judge by");
    struct shk_check_context mine = *ctx;
    mine.misformed = json_array();
    size_t first = shk_findings_count(findings);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (ctx->part == SHK_CHECK_ALL || checks[i]->of_job == (ctx->part == SHK_CHECK_JOB))
            checks[i]->eval(&mine, findings);
    if (json_array_size(mine.misformed))
        misformed_row(&mine, findings);
    if (ctx->part != SHK_CHECK_JOB)
        evidence_row(ctx, findings, first);
    json_decref(mine.misformed);
    if (shk_findings_status(findings) < 0)
        return shk_error_set(err, ENOMEM, "out of memory while judging");
    return 0;
}
