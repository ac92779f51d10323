/* The chain of a provider, judged: verdict, cause and fix of the first broken link. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define LIB     "'fabric.version': '1.17.0', 'fabric.path': '/l/libfabric.so.1', "
#define CORE(p) "'fabric.core_providers': ['tcp', '" p "'], 'fabric.providers': ['tcp'], "
#define USABLE(p)                                                                                  \
    "'fabric.core_providers': ['tcp', '" p "'], 'fabric.providers': ['tcp', '" p "'], "
#define JOB(n)    "'job.nodes': " #n ", "
#define OK(s)     "{'step': '" s "', 'state': 'ok', 'what': 'fine'}, "
#define BAD(s, w) "{'step': '" s "', 'state': 'broken', 'what': '" w "', 'where': '/there'}, "
#define UNKNOWN(s)                                                                                 \
    "{'step': '" s "', 'state': 'unknown', 'what': 'nobody looked', 'where': '/there'}"
#define CHAIN(p, rows) "'why." p "': [" rows "{'step': 'end', 'state': 'na', 'what': ''}], "
#define INSIDE         "'host.container': 'docker', "

static const struct {
    const char *profile, *setting, *facts;
    enum shk_verdict verdict;
    const char *diagnosis; /* NULL: none */
    const char *says;      /* several texts, separated by '|' */
} cases[] = {
    {"test-fabric", "provider cxi", LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("pci", "no NIC")),
     SHK_FAIL, "cxi-provider-absent", "first broken link: pci|no NIC (/there)|Slingshot"},
    {"test-fabric", "provider cxi", LIB JOB(1) CORE("cxi") CHAIN("cxi", BAD("pci", "no NIC")),
     SHK_WARN, "cxi-provider-absent", NULL},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", OK("pci") BAD("module", "no cxi_user")), SHK_FAIL,
     "cxi-provider-absent", "modprobe"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", OK("pci") BAD("node", "/dev/cxi0 does not exist")),
     SHK_FAIL, "cxi-provider-absent", "/dev/cxi0 does not exist"},
    {"test-fabric", "provider cxi",
     LIB INSIDE JOB(2) CORE("cxi") CHAIN("cxi", OK("pci") BAD("node", "/dev/cxi0 does not exist")),
     SHK_FAIL, "rdma-device-not-in-container", "pass /dev/cxi* into the container"},
    {"test-fabric", "provider cxi",
     LIB INSIDE JOB(2) CORE("cxi") "'why.cxi': [{'step': 'node', 'state': 'broken', 'what': "
                                   "'/dev/cxi3 does not exist', 'usable': 3}], ",
     SHK_FAIL, "rdma-device-partially-exposed", NULL},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("service", "no SLINGSHOT_VNIS")), SHK_FAIL,
     "cxi-vni-missing", "srun"},
    {"test-fabric", "provider cxi",
     LIB JOB(1) CORE("efa") CHAIN("cxi", OK("pci") BAD("library", "it has no provider cxi")),
     SHK_FAIL, "provider-not-compiled", "LD_LIBRARY_PATH"}, /* software: also on one node */
    {"test-fabric", "provider cxi",
     LIB JOB(1) CORE("efa") "'why.cxi': [{'step': 'library', 'state': 'broken', 'what': 'not in "
                            "it', 'detail': '/opt/l.so (1.20) has it'}], 'fabric.copies': "
                            "[{'path': '/l/libfabric.so.1', 'links': ['efa']}, {'path': "
                            "'/opt/l.so', 'links': ['cxi']}], ",
     SHK_FAIL, "libfabric-wrong-version-loaded", "/opt/l.so (1.20) has it"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("pci", "no NIC") BAD("library", "nor a provider")),
     SHK_FAIL, "cxi-provider-absent", "no NIC (/there); besides, nor a provider"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("filter", "FI_PROVIDER=tcp leaves it out")), SHK_FAIL,
     "cxi-provider-absent", "add cxi to it"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("getinfo", "offers nothing")), SHK_FAIL,
     "cxi-provider-absent", "fi_info -p cxi"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) USABLE("cxi") CHAIN("cxi", BAD("limits", "locked memory: 64 KiB")), SHK_WARN,
     "memlock-too-low", "ulimit -l"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) CORE("cxi") CHAIN("cxi", BAD("limits", "locked memory: 64 KiB")), SHK_FAIL,
     "memlock-too-low", NULL}, /* not offered: then that is why */
    {"test-fabric", "provider cxi", LIB JOB(2) USABLE("cxi") CHAIN("cxi", BAD("mtu", "differs")),
     SHK_WARN, "mtu-mismatch", NULL},
    {"test-fabric", "provider cxi", LIB JOB(2) USABLE("cxi") CHAIN("cxi", BAD("link", "down: x")),
     SHK_WARN, NULL, "down: x"},
    {"test-fabric", "provider cxi",
     LIB JOB(2) USABLE("cxi") CHAIN("cxi", BAD("hints", "nothing is left when asked for FI_HMEM")),
     SHK_WARN, "hmem-runtime-library-missing", NULL},
    {"test-fabric", "provider cxi", LIB JOB(2) USABLE("cxi") CHAIN("cxi", OK("pci")), SHK_PASS,
     NULL, "offered by"},
    {"test-fabric", "provider cxi",
     LIB "'fabric.providers': {'state': 'failed', 'reason': 'hung'}, 'why.cxi': "
         "[" UNKNOWN("getinfo") "], ",
     SHK_UNKNOWN, NULL, "hung"},
    {"test-verbs", "provider verbs",
     LIB JOB(2) CORE("verbs") CHAIN("verbs", BAD("device", "none made")), SHK_FAIL,
     "verbs-provider-absent", NULL},
    {"test-verbs", "provider verbs",
     LIB JOB(2) CORE("verbs") CHAIN("verbs", BAD("userlib", "not listed")), SHK_FAIL,
     "verbs-provider-absent", "rdma-core"},
    {"test-verbs", "provider verbs",
     LIB JOB(2) CORE("verbs")
         CHAIN("verbs", BAD("dependencies", "it needs libcudart.so.12, which is nowhere")),
     SHK_FAIL, "hmem-runtime-library-missing", "ldd"},
    /* asked for by the environment alone */
    {"single-node", "provider efa",
     LIB JOB(2) CORE("efa") "'env.FI_PROVIDER': 'efa', " CHAIN(
         "efa", BAD("node", "/dev/infiniband/uverbs0 may not be opened")),
     SHK_FAIL, "efa-device-open-failure", "uverbs"},
    {"single-node", "provider efa",
     LIB JOB(2) CORE("efa") "'env.FI_PROVIDER': 'tcp,efa', " CHAIN("efa", BAD("pci", "none")),
     SHK_WARN, "efa-provider-absent", NULL}, /* tcp works */
    {"single-node", "provider efa",
     LIB JOB(2) USABLE("efa") "'env.FI_PROVIDER': 'efa', " CHAIN("efa", BAD("domains", "1")),
     SHK_WARN, "efa-nic-count-low", NULL},
    {"single-node", "provider efa",
     LIB JOB(2) CORE("efa") "'env.FI_PROVIDER': 'efa', " CHAIN("efa", BAD("fork", "exclude")),
     SHK_FAIL, "efa-fork-hugepage-conflict", "FI_EFA_USE_HUGE_PAGE=0"},
    {"single-node", "provider psm9",
     LIB CORE("efa") "'env.FI_PROVIDER': 'psm9', " CHAIN("psm9",
                                                         BAD("library", "it has no provider psm9")),
     SHK_FAIL, "provider-not-compiled", NULL},
    {"single-node", "provider verbs;ofi_rxm",
     LIB JOB(2) CORE("x") "'env.FI_PROVIDER': 'verbs;ofi_rxm', " CHAIN("verbs_ofi_rxm",
                                                                       BAD("pci", "none")),
     SHK_FAIL, "verbs-provider-absent", NULL},
    /* asked for by nobody */
    {"single-node", "provider efa", LIB JOB(2) CORE("efa") CHAIN("efa", BAD("pci", "no EFA")),
     SHK_NA, NULL, "first broken link: pci: no EFA (/there)|neither profile"},
    {"single-node", "provider cxi",
     LIB CORE("efa") CHAIN("cxi", BAD("pci", "no NIC") BAD("library", "not in it")), SHK_NA, NULL,
     "first broken link: pci: no NIC (/there); besides, not in it"},
    {"single-node", "provider efa",
     LIB JOB(2) CORE("efa") "'env.FI_PROVIDER': '^efa', " CHAIN("efa", BAD("filter", "excludes")),
     SHK_NA, NULL, "excludes"},
    {"single-node", "provider efa", LIB USABLE("efa") CHAIN("efa", OK("pci")), SHK_NA, NULL,
     "no broken link"},
    {"single-node", "provider efa", LIB "'why.efa': [" UNKNOWN("pci") "], ", SHK_NA, NULL,
     "pci is not known: nobody looked"},
    {"single-node", "provider", LIB CORE("x"), SHK_NA, NULL, "needs no particular provider"},
    /* a chain that was not read */
    {"test-fabric", "provider cxi", LIB USABLE("cxi") "'why.cxi': 7, ", SHK_UNKNOWN, NULL,
     "in the way of provider cxi was not read"},
    {"test-fabric", "provider cxi", LIB USABLE("cxi") CHAIN("efa", OK("pci")), SHK_UNKNOWN, NULL,
     "in the way of provider cxi was not read"},
    {"test-fabric", "provider cxi", LIB USABLE("cxi"), SHK_PASS, NULL, "offered by libfabric"},
    {"single-node", "provider verbs", LIB USABLE("cxi") CHAIN("efa", OK("pci")), SHK_UNKNOWN, NULL,
     "in the way of provider verbs was not read"},
};

Test(chain, first_broken_link_becomes_a_finding)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char members[4096], says[256];
        snprintf(members, sizeof(members), "%s'env.HOME': '/', 'probe.env.status': 'ok'",
                 cases[i].facts);
        struct shk_findings *findings =
            support_run(support_test_config(), cases[i].profile, members);
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
                      cases[i].verdict == SHK_UNKNOWN || f->fix,
                  "case %zu: no fix", i);
        free(text);
        shk_findings_destroy(findings);
    }
}

Test(chain, rows_of_the_wrong_form_do_no_harm)
{
    static const char *const chains[] = {
        "'why.cxi': 3",
        "'why.cxi': []",
        "'why.cxi': [1, null, {'state': 'broken'}]",
        "'why.cxi': [{'state': 'broken', 'step': 5, 'what': []}]",
        "'why.cxi': {'state': 'failed', 'reason': 'x'}",
    };
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
        struct shk_findings *findings =
            support_run(support_test_config(), "test-fabric", chains[i]);
        const struct shk_finding *f = support_find(findings, "fabric.provider", "provider cxi");
        cr_assert_not_null(f, "%s", chains[i]);
        cr_expect_neq(f->verdict, SHK_PASS, "%s", chains[i]);
        shk_findings_destroy(findings);
    }
}
