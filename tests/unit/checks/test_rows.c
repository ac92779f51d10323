/* The rows that users of the known guides look for: each is there with verdict and evidence when it
 * is set, when it is not, and when a profile wants it and it is missing. */
#include "core/text/strbuf.h"
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NODE                                                                                       \
    "'probe.env.status': 'ok', 'job.nodes': 1, 'host.container': 'none', 'net.ifaces': "           \
    "[{'name': 'hsn0', 'up': true, 'running': true, 'addrs': [{'family': 'inet', 'addr': "         \
    "'10.0.0.1', 'prefix': 16, 'scope': 'global'}]}], "

/* Variables, a value that somebody would set, and what that is worth without a library around. */
static const struct {
    const char *name, *value;
    enum shk_verdict verdict;
    const char *facts; /* more of them, or NULL */
} set[] = {
    {"NCCL_DEBUG", "WARN", SHK_PASS, NULL},
    {"NCCL_DEBUG", "TRACE", SHK_WARN, NULL},
    {"NCCL_DEBUG_SUBSYS", "INIT,NET", SHK_PASS, NULL},
    {"NCCL_DEBUG_SUBSYS", "INIT,NETT", SHK_WARN, NULL},
    {"RCCL_TRACE_PLUGIN", "1", SHK_WARN, NULL},
    {"PLUGIN_DIR", "/opt/plugin", SHK_WARN, NULL},
    {"LD_LIBRARY_PATH", "/opt/lib", SHK_PASS,
     "'path.LD_LIBRARY_PATH': {'entries': [{'path': '/opt/lib', 'exists': true, 'kind': 'dir'}]}"},
    {"LD_LIBRARY_PATH", "/no/lib", SHK_NOTE,
     "'path.LD_LIBRARY_PATH': {'entries': [{'path': '/no/lib', 'exists': false, 'kind': null}]}"},
    {"RCCL_ENABLE_OFI", "1", SHK_WARN, NULL},
    {"FI_PROVIDER", "cxi", SHK_PASS,
     "'fabric.version': '1.22.0', 'fabric.providers': ['cxi'], 'fabric.core_providers': ['cxi']"},
    {"FI_PROVIDER", "cxi", SHK_FAIL,
     "'fabric.version': '1.22.0', 'fabric.providers': ['tcp'], 'fabric.core_providers': ['tcp']"},
    {"FI_PROVIDER_PATH", "/opt/prov", SHK_PASS,
     "'path.FI_PROVIDER_PATH': {'entries': [{'path': "
     "'/opt/prov', 'exists': true, 'kind': 'dir'}]}"},
    {"FI_LOG_LEVEL", "warn", SHK_PASS, NULL},
    {"FI_LOG_LEVEL", "debug", SHK_WARN, NULL},
    {"CXI_FORK_SAFE", "1", SHK_PASS, NULL},
    {"CXI_FORK_SAFE_HP", "1", SHK_PASS, NULL},
    {"FI_CXI_DISABLE_CQ_HUGETLB", "1", SHK_NOTE, NULL}, /* there is a new name */
    {"FI_HMEM", "rocr", SHK_PASS, NULL},
    {"FI_HMEM", "cuda", SHK_PASS, NULL},
    {"FI_HMEM", "1", SHK_FAIL, NULL},
    {"MIOPEN_USER_DB_PATH", "/tmp/me", SHK_PASS,
     "'path.MIOPEN_USER_DB_PATH': {'exists': true, 'kind': 'dir', 'type': 'tmpfs'}"},
    {"MIOPEN_USER_DB_PATH", "/home/me", SHK_FAIL,
     "'path.MIOPEN_USER_DB_PATH': {'exists': true, 'type': 'nfs4'}"},
    {"MIOPEN_CUSTOM_CACHE_DIR", "/scratch/me", SHK_FAIL,
     "'path.MIOPEN_CUSTOM_CACHE_DIR': {'exists': true, 'type': 'lustre'}"},
    {"MIOPEN_ENABLE_LOGGING", "1", SHK_WARN, NULL},
    {"RCCL_MSCCL_ENABLE", "1", SHK_PASS, NULL},
    {"NCCL_SOCKET_IFNAME", "hsn", SHK_PASS, NULL},
    {"NCCL_SOCKET_IFNAME", "hns0", SHK_FAIL, NULL},
    {"NCCL_NET_GDR_LEVEL", "PHB", SHK_PASS, NULL},
    {"NCCL_DMABUF_ENABLE", "1", SHK_PASS, NULL},
    {"RCCL_ENABLE_DMABUF_PLUGIN", "1", SHK_WARN, NULL},
    {"HSA_FORCE_FINE_GRAIN_PCIE", "1", SHK_PASS, NULL},
    {"HSA_ENABLE_DEBUG", "1", SHK_PASS, NULL}, /* it prints nothing */
    {"HSA_TOOLS_LIB", "librocprofiler.so", SHK_WARN, NULL},
    {"NEURON_RT_ROOT_COMM_ID", "10.0.0.1:46820", SHK_PASS, NULL},
    {"NEURON_RT_ROOT_COMM_ID", "10.0.0.1", SHK_FAIL, NULL},
    {"CPATH", "/opt/include", SHK_PASS,
     "'path.CPATH': {'entries': [{'path': '/opt/include', 'exists': true, 'kind': 'dir'}]}"},
    {"LIBRARY_PATH", "/opt/lib", SHK_PASS,
     "'path.LIBRARY_PATH': {'entries': [{'path': '/opt/lib', 'exists': true, 'kind': 'dir'}]}"},
    {"NVSHMEM_BOOTSTRAP", "PMI", SHK_PASS, NULL},
    {"NVSHMEM_BOOTSTRAP", "PIM", SHK_FAIL, NULL},
    {"NVSHMEM_DISABLE_IB", "1", SHK_WARN, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "none", SHK_PASS, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "libfabric", SHK_NOTE, NULL}, /* on one node */
    {"NVSHMEM_REMOTE_TRANSPORT", "efa", SHK_FAIL, NULL},
    {"NVSHMEM_SYMMETRIC_SIZE", "4G", SHK_PASS, NULL},
    {"NVSHMEM_SYMMETRIC_SIZE", "4 GB of it", SHK_FAIL, NULL},
    {"NVSHMEM_DEBUG", "WARN", SHK_PASS, NULL},
    {"NVSHMEM_DEBUG_SUBSYS", "INIT", SHK_PASS, NULL},
    {"FI_EFA_USE_DEVICE_RDMA", "1", SHK_PASS, NULL},
    {"FI_EFA_FORK_SAFE", "1", SHK_PASS, NULL},
    {"FI_EFA_TX_SIZE", "8192", SHK_PASS, NULL},
    {"FI_EFA_RX_SIZE", "8k", SHK_FAIL, NULL},
    {"NCCL_CUMEM_ENABLE", "1", SHK_PASS, NULL},
    {"NCCL_NVLS_ENABLE", "1", SHK_PASS, NULL},
    {"NCCL_WIN_ENABLE", "1", SHK_PASS, NULL},
};

static const struct shk_finding *row_of(const struct shk_findings *findings, const char *id,
                                        const char *setting)
{
    const struct shk_finding *row = support_find(findings, id, setting);
    if (row && row->verdict == SHK_PASS)
        cr_expect_neq(row->evidence, SHK_NOT_COVERED, "%s", setting);
    if (row && (row->verdict == SHK_FAIL || row->verdict == SHK_WARN))
        cr_expect(row->why && *row->why && (row->fix || row->advice), "%s", setting);
    return row;
}

Test(rows, set)
{
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        char *json = shk_strf(NODE "%s%s'env.%s': '%s'", set[i].facts ? set[i].facts : "",
                              set[i].facts ? ", " : "", set[i].name, set[i].value);
        struct shk_findings *findings = support_run(support_config(), "single-node", json);
        const struct shk_finding *row = row_of(findings, "env.value", set[i].name);
        char *text = row ? support_text(row) : NULL;
        cr_expect(row && row->verdict == set[i].verdict, "%s=%s: want %s\n  %s", set[i].name,
                  set[i].value, shk_verdict_name(set[i].verdict), text ? text : "no row");
        cr_expect(row && row->source && *row->source, "%s has no source", set[i].name);
        cr_expect_not_null(shk_config_setting(support_config(), set[i].name), "%s", set[i].name);
        free(text);
        free(json);
        shk_findings_destroy(findings);
    }
}

Test(rows, not_set)
{
    struct shk_findings *findings =
        support_run(support_config(), "single-node", NODE "'env.HOME': '/'");
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        const struct shk_finding *row = row_of(findings, NULL, set[i].name);
        cr_expect(row && row->observed && strstr(row->observed, "not set"), "%s", set[i].name);
        cr_expect(row && row->verdict != SHK_FAIL && row->verdict != SHK_WARN, "%s", set[i].name);
    }
    shk_findings_destroy(findings);
}

/* What is no variable. */
Test(rows, host_and_hardware)
{
    static const struct {
        const char *id, *setting;
    } rows[] = {
        {"rocm.version", "ROCm"},
        {"container.kind", "container"},
        {"plugin.file", "net plugin file"},
        {"collective.allreduce", "all-reduce"},
        {"kernel.iommu", "amd_iommu, iommu=pt"},
    };
    struct shk_findings *findings = support_run(support_config(), "lumi-g", NODE "'env.X': ''");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_expect_not_null(row_of(findings, rows[i].id, rows[i].setting), "%s", rows[i].setting);
    shk_findings_destroy(findings);
}

/* Every line of every profile that asks for a variable: a row says that it is missing. */
Test(rows, missing_in_each_profile)
{
    size_t count, seen = 0;
    const struct shk_profile *profiles = shk_config_profiles(support_config(), &count);
    for (size_t p = 0; p < count; p++) {
        if (profiles[p].abstract)
            continue;
        struct shk_findings *findings =
            support_run(support_config(), profiles[p].name,
                        "'probe.env.status': 'ok', 'job.nodes': 2, 'host.container': 'none'");
        for (size_t i = 0; i < profiles[p].settings_count; i++) {
            const struct shk_profile_setting *line = &profiles[p].settings[i];
            const struct shk_setting *setting = shk_config_setting(support_config(), line->name);
            if (line->must_be_unset || line->condition || !setting || !setting->variable)
                continue;
            const struct shk_finding *row = row_of(findings, "env.profile", line->name);
            enum shk_verdict want = line->strength == SHK_REQUIRED      ? SHK_FAIL
                                    : line->strength == SHK_RECOMMENDED ? SHK_WARN
                                                                        : SHK_NA;
            cr_expect(row && row->verdict == want, "%s: %s", profiles[p].name, line->name);
            seen++;
        }
        shk_findings_destroy(findings);
    }
    cr_expect_gt(seen, 100, "%zu", seen);
}
