/* The chain of a provider, judged: verdict, cause and fix of the first broken link. */
#include "chain_nodes.h"
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define JOB(n)         "'job.nodes': " #n ", "
#define INSIDE         "'host.container': 'docker', "
#define NOT_OFFERED    "'fabric.providers': ['tcp'], "
#define ABSENT         "{'state': 'absent', 'reason': 'none on the PCI bus'}"
#define NO_CXI         "'pci.count.cxi': " ABSENT ", 'cxi.devices': []"
#define NO_EFA         "'pci.count.efa': " ABSENT ", 'rdma.devices': []"
#define WITHOUT_CXI    "'fabric.core_providers': ['efa', 'tcp'], "
#define LOW(bytes)     "'limits.memlock': {'soft': " #bytes ", 'hard': " #bytes "}"
#define ASKS(provider) "'env.FI_PROVIDER': '" provider "', "
#define NODE_GONE      "'dev.cxi0': {'state': 'absent'}"

static const struct {
    const char *profile, *setting;
    const char *node, *facts; /* of a node that works, and what is otherwise */
    enum shk_verdict verdict;
    const char *diagnosis; /* NULL: none */
    const char *says;      /* several texts, separated by '|' */
} cases[] = {
    {"test-fabric", "provider cxi", cxi_node, JOB(2) NOT_OFFERED NO_CXI, SHK_FAIL,
     "cxi-provider-absent",
     "first broken link: pci|no Slingshot NIC|(/sys/bus/pci/devices)|Run on"},
    {"test-fabric", "provider cxi", cxi_node, JOB(1) NOT_OFFERED NO_CXI, SHK_WARN,
     "cxi-provider-absent", NULL},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) NOT_OFFERED "'cxi.devices': [], 'kernel.module.cxi_user': {'state': 'absent'}",
     SHK_FAIL, "cxi-provider-absent", "modprobe"},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) NOT_OFFERED NODE_GONE ", 'dev.cxi1': {'state': 'absent'}", SHK_FAIL,
     "cxi-provider-absent", "/dev/cxi0 does not exist"},
    {"test-fabric", "provider cxi", cxi_node,
     INSIDE JOB(2) NOT_OFFERED NODE_GONE ", 'dev.cxi1': {'state': 'absent'}", SHK_FAIL,
     "rdma-device-not-in-container", "Pass /dev/cxi* into the container"},
    {"test-fabric", "provider cxi", cxi_node, INSIDE JOB(2) NOT_OFFERED NODE_GONE, SHK_FAIL,
     "rdma-device-partially-exposed", NULL},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) NOT_OFFERED "'env.SLINGSHOT_VNIS': {'state': 'absent'}", SHK_FAIL, "cxi-vni-missing",
     "srun"},
    {"test-fabric", "provider cxi", cxi_node, JOB(1) NOT_OFFERED WITHOUT_CXI "'x': 1", SHK_FAIL,
     "provider-not-compiled", "LD_LIBRARY_PATH"}, /* software: also on one node */
    {"test-fabric", "provider cxi", cxi_node,
     JOB(1) NOT_OFFERED WITHOUT_CXI
     "'fabric.path': '/l/libfabric.so.1', 'fabric.copies': [{'path': '/l/libfabric.so.1', "
     "'links': ['efa']}, {'path': '/opt/l.so', 'version': '1.20', 'links': ['cxi']}]",
     SHK_FAIL, "libfabric-wrong-version-loaded", "/opt/l.so (1.20) has it"},
    {"test-fabric", "provider cxi", cxi_node, JOB(2) NOT_OFFERED WITHOUT_CXI NO_CXI, SHK_FAIL,
     "cxi-provider-absent", "(/sys/bus/pci/devices); besides, /opt/cray/lib/libfabric.so.1"},
    {"test-fabric", "provider cxi", cxi_node, JOB(2) NOT_OFFERED ASKS("tcp") "'x': 1", SHK_FAIL,
     "cxi-provider-absent", "add cxi to it"},
    {"test-fabric", "provider cxi", cxi_node, JOB(2) NOT_OFFERED "'x': 1", SHK_FAIL,
     "cxi-provider-absent", "fi_info -p cxi"},
    {"test-fabric", "provider cxi", cxi_node, JOB(2) LOW(65536), SHK_WARN, "memlock-too-low",
     "ulimit -l"},
    {"test-fabric", "provider cxi", cxi_node, JOB(2) NOT_OFFERED LOW(65536), SHK_FAIL,
     "memlock-too-low", NULL}, /* not offered: then that is why */
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) "'fabric.domains': [{'provider': 'cxi', 'domain': 'cxi0', 'mtu': 2048}, {'provider': "
            "'cxi', 'domain': 'cxi1', 'mtu': 4096}]",
     SHK_WARN, "mtu-mismatch", "differs"},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) "'cxi.devices': [{'name': 'cxi0', 'link_state': 'up'}, {'name': 'cxi1', 'link_state': "
            "'down'}]",
     SHK_WARN, "cxi-link-down", "down: cxi1"},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) "'fabric.hints': [{'provider': 'cxi', 'steps': [{'hint': 'FI_HMEM', 'count': 0}]}]",
     SHK_WARN, "hmem-runtime-library-missing", NULL},
    {"test-fabric", "provider cxi", cxi_node,
     JOB(2) "'fabric.hints': [{'provider': 'cxi', 'steps': [{'hint': 'FI_RMA', 'count': 0}]}]",
     SHK_WARN, "cxi-provider-absent", NULL}, /* not what the hint for accelerator memory is about */
    {"test-fabric", "provider cxi", cxi_node, JOB(2) "'x': 1", SHK_PASS, NULL, "offered by"},
    {"test-fabric", "provider cxi", cxi_node,
     "'fabric.providers': {'state': 'failed', 'reason': 'hung'}, 'fabric.core_providers': "
     "{'state': 'failed', 'reason': 'hung'}",
     SHK_UNKNOWN, NULL, "hung"},
    {"test-verbs", "provider verbs", verbs_node, JOB(2) NOT_OFFERED "'rdma.devices': []", SHK_FAIL,
     "verbs-provider-absent", NULL},
    {"test-verbs", "provider verbs", verbs_node, JOB(2) NOT_OFFERED "'verbs.devices': []", SHK_FAIL,
     "verbs-provider-absent", "rdma-core"},
    {"test-verbs", "provider verbs", verbs_node,
     JOB(2) NOT_OFFERED "'fabric.problems': [{'kind': 'missing', 'library': 'libcudart.so.12', "
                        "'text': 'x'}]",
     SHK_FAIL, "hmem-runtime-library-missing", "ldd"},
    {"test-verbs", "provider verbs", verbs_node,
     JOB(2) NOT_OFFERED "'fabric.problems': {'state': 'absent'}, 'fabric.problem': {'text': "
                        "'libfabric.so.1: libhsa-runtime64.so.1: cannot open'}",
     SHK_FAIL, "hmem-runtime-library-missing", "ldd"},
    {"test-verbs", "provider verbs", verbs_node,
     JOB(2) NOT_OFFERED "'fabric.problems': [{'kind': 'missing', 'library': 'libnl-3.so.200', "
                        "'text': 'not libcuda'}]",
     SHK_FAIL, "verbs-provider-absent", "ldd"},
    /* ib_core does not bind who has CAP_IPC_LOCK; root alone says nothing */
    {"test-verbs", "provider verbs", verbs_node,
     JOB(2) LOW(65536) ", 'host.ids': {'euid': 0, 'ipc_lock': true}", SHK_PASS, NULL, NULL},
    {"test-verbs", "provider verbs", verbs_node,
     JOB(2) LOW(65536) ", 'host.ids': {'euid': 0, 'ipc_lock': false}", SHK_WARN, "memlock-too-low",
     NULL},
    {"test-verbs", "provider verbs", verbs_node, JOB(2) LOW(65536) ", 'host.ids': {'euid': 0}",
     SHK_UNKNOWN, NULL, "limits: locked memory: 64 KiB"},
    /* asked for by the environment alone */
    {"single-node", "provider efa", efa_node,
     JOB(2) NOT_OFFERED ASKS("efa") "'dev.infiniband/uverbs0': {'mode': '0600', 'rw': false}",
     SHK_FAIL, "efa-device-open-failure", "cannot open /dev/infiniband/uverbs0: permission denied"},
    {"single-node", "provider efa", efa_node, JOB(2) NOT_OFFERED ASKS("tcp,efa") NO_EFA, SHK_WARN,
     "efa-provider-absent", NULL}, /* tcp works */
    {"single-node", "provider efa", efa_node,
     JOB(2) ASKS("efa") "'fabric.domains': [{'provider': 'efa', 'domain': 'rdmap16s27-rdm'}]",
     SHK_WARN, "efa-nic-count-low", NULL},
    {"single-node", "provider efa", efa_node,
     JOB(2) NOT_OFFERED ASKS("efa") "'verbs.fork': 'needed', 'env.FI_EFA_FORK_SAFE': '1', "
                                    "'env.FI_EFA_USE_HUGE_PAGE': '1'",
     SHK_FAIL, "efa-fork-hugepage-conflict", "FI_EFA_USE_HUGE_PAGE=0"},
    {"single-node", "provider psm9", efa_node, NOT_OFFERED ASKS("psm9") "'x': 1", SHK_FAIL,
     "provider-not-compiled", NULL},
    {"single-node", "provider verbs;ofi_rxm", verbs_node,
     JOB(2) NOT_OFFERED ASKS("verbs;ofi_rxm") "'pci.count.mlx5': " ABSENT ", 'rdma.devices': []",
     SHK_FAIL, "verbs-provider-absent", NULL},
    /* asked for by nobody */
    {"single-node", "provider efa", efa_node, JOB(2) NO_EFA, SHK_NA, NULL,
     "first broken link: pci: no EFA|neither profile"},
    {"single-node", "provider cxi", cxi_node, WITHOUT_CXI NO_CXI, SHK_NA, NULL,
     "first broken link: pci: no Slingshot|; besides, /opt/cray"},
    {"single-node", "provider efa", efa_node, JOB(2) ASKS("^efa") "'x': 1", SHK_NA, NULL,
     "excludes"},
    {"single-node", "provider efa", efa_node, "'x': 1", SHK_NA, NULL, "no broken link"},
    {"single-node", "provider efa", "{}", "'x': 1", SHK_NA, NULL,
     "pci is not known: no probe collected it"},
};

/* As the program would have them: every probe ran. */
static struct shk_findings *judge(const char *profile, const char *node, const char *facts)
{
    char members[8192];
    size_t len = strlen(node) - 2; /* without the braces */
    snprintf(members, sizeof(members),
             "%.*s%s'env.HOME': '/', 'probe.env.status': 'ok', 'probe.pci.status': 'ok', %s",
             (int)len, node + 1, len ? ", " : "", facts);
    return support_run(support_test_config(), profile, members);
}

Test(chain, first_broken_link_becomes_a_finding)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char says[256];
        struct shk_findings *findings = judge(cases[i].profile, cases[i].node, cases[i].facts);
        const struct shk_finding *f = support_find(findings, "fabric.provider", cases[i].setting);
        cr_assert_not_null(f, "case %zu: no row", i);
        char *text = support_text(f), *save = NULL;
        cr_expect_eq(f->verdict, cases[i].verdict, "case %zu: %s: %s", i,
                     shk_verdict_name(f->verdict), text);
        cr_expect_str_eq(f->diagnosis ? f->diagnosis : "none",
                         cases[i].diagnosis ? cases[i].diagnosis : "none", "case %zu: %s", i, text);
        snprintf(says, sizeof(says), "%s", cases[i].says ? cases[i].says : "");
        for (char *t = strtok_r(says, "|", &save); t; t = strtok_r(NULL, "|", &save))
            cr_expect_not_null(strstr(text, t), "case %zu: '%s' is not in: %s", i, t, text);
        cr_expect(cases[i].verdict == SHK_PASS || cases[i].verdict == SHK_NA ||
                      cases[i].verdict == SHK_UNKNOWN || f->fix || f->advice,
                  "case %zu: no fix", i);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* Documents of before hold chains as facts; what they say in words is not taken. */
Test(chain, words_of_older_documents_decide_nothing)
{
    static const char *const chains[] = {
        "'why.cxi': 3",
        "'why.cxi': [{'step': 'pci', 'state': 'broken', 'what': 'no NIC'}]",
        "'why.cxi': [1, null, {'state': 'broken'}]",
        "'why.cxi': {'state': 'failed', 'reason': 'x'}",
    };
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
        struct shk_findings *findings = judge("test-fabric", cxi_node, chains[i]);
        const struct shk_finding *f = support_find(findings, "fabric.provider", "provider cxi");
        cr_assert_not_null(f, "%s", chains[i]);
        cr_expect_eq(f->verdict, SHK_PASS, "%s", chains[i]);
        shk_findings_destroy(findings);
        /* nothing else in it: nothing is known */
        findings = support_run(support_test_config(), "test-fabric", chains[i]);
        f = support_find(findings, "fabric.provider", "provider cxi");
        cr_assert_not_null(f, "%s", chains[i]);
        cr_expect_eq(f->verdict, SHK_UNKNOWN, "%s: %s", chains[i], shk_verdict_name(f->verdict));
        shk_findings_destroy(findings);
    }
}
