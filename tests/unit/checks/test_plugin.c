/* Net plugins judged by their chain: who asks, what takes over, what needs a GPU. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NODE                                                                                       \
    "'job.nodes': 2, 'fabric.copies': [{'path': '/new/libfabric.so.1', 'abi': 'FABRIC_1.9'}], "
#define GPUS(n)                                                                                    \
    "'pci.count.gpu-nvidia': " #n ", 'pci.count.gpu-amd': 0, 'pci.count.gpu-intel': 0, "           \
    "'pci.count.neuron': 0, "
#define ASKED  "'plugin.requested': '/p/a.so', "
#define LOADED "{'step': 'file', 'state': 'ok'}, {'step': 'load', 'state': 'ok'}"
#define ONE(members, steps)                                                                        \
    "'plugin.candidates': [{'name': '/p/a.so', 'path': '/p/a.so', 'kind': 'net', 'found': true, "  \
    "'considered': true, " members "'steps': [" steps "]}], "
#define BROKEN(step, what)                                                                         \
    "{'step': '" step "', 'state': 'broken', 'what': '" what "', 'detail': 'CUDA failed'}"
#define RAN "'load': {'ok': true}, "

static const struct {
    const char *profile, *setting, *facts;
    enum shk_verdict verdict;
    const char *diagnosis, *says;
} cases[] = {
    {"single-node", "net plugin load", ONE("", BROKEN("format", "empty file")), SHK_WARN,
     "plugin-file-unusable", "inferred"}, /* nobody asks for it; nothing was executed */
    {"single-node", "net plugin load", ASKED ONE(RAN, BROKEN("format", "empty file")), SHK_FAIL,
     "plugin-file-unusable", "empty file; CUDA failed; NCCL goes on without it"},
    {"test-fabric", "net plugin load", ONE("", BROKEN("dependencies", "no libx")), SHK_FAIL,
     "plugin-dependency-missing", "ldd /p/a.so"},
    {"test-fabric", "net plugin load",
     ONE("'problems': [{'kind': 'version', 'version': 'FABRIC_1.8', 'library': 'libfabric.so.1', "
         "'path': '/old/libfabric.so.1'}], ",
         BROKEN("versions", "needs FABRIC_1.8")),
     SHK_FAIL, "plugin-libfabric-version-mismatch", "export LD_LIBRARY_PATH=/new:$LD_LIBRARY_PATH"},
    {"test-fabric", "net plugin load",
     ONE("'problems': [{'kind': 'version', 'version': 'FABRIC_1.10', 'library': 'libfabric.so.1', "
         "'path': '/old/libfabric.so.1'}], ", /* 1.10 is above 1.9 */
         BROKEN("versions", "needs FABRIC_1.10")),
     SHK_FAIL, "plugin-libfabric-version-mismatch", "build the plugin against /old/libfabric.so.1"},
    {"test-fabric", "net plugin load",
     ONE("'problems': [{'kind': 'version', 'version': 'GLIBC_2.38', 'library': 'libc.so.6', "
         "'path': '/lib/libc.so.6'}], ",
         BROKEN("versions", "needs GLIBC_2.38")),
     SHK_FAIL, "plugin-dependency-missing", "/lib/libc.so.6"},
    {"test-fabric", "net plugin load",
     ONE("'load': {'ok': false, 'outcome': 'timeout'}, ", BROKEN("load", "no answer")), SHK_FAIL,
     "plugin-crashes", "takes the rank with it"},
    {"test-fabric", "net plugin load", ONE(RAN, LOADED), SHK_PASS, NULL, "/p/a.so loads"},
    {"test-fabric", "net plugin load", ONE("", "{'step': 'load', 'state': 'unknown', 'what': 'x'}"),
     SHK_UNKNOWN, NULL, "load: x"},
    {"test-fabric", "net plugin use",
     ONE("'init': {'outcome': 'failed'}, " RAN, BROKEN("init", "init returned 2")), SHK_FAIL,
     "net-plugin-init-failed", "init returned 2; CUDA failed"}, /* GPUs not known */
    {"test-fabric", "net plugin use",
     GPUS(0) ONE("'init': {'outcome': 'failed'}, " RAN, BROKEN("init", "init returned 2")), SHK_NA,
     NULL, "only on a node with GPUs: CUDA failed"},
    {"test-fabric", "net plugin use",
     GPUS(8) ONE("'init': {'outcome': 'failed'}, " RAN, BROKEN("init", "init returned 2")),
     SHK_FAIL, "net-plugin-init-failed", NULL},
    {"test-fabric", "net plugin use",
     GPUS(0) ONE("'init': {'outcome': 'crashed'}, " RAN, BROKEN("init", "died")), SHK_FAIL,
     "plugin-crashes", NULL}, /* a crash is no excuse */
    {"test-fabric", "net plugin use",
     ONE("'devices': {'rc': 0, 'count': 0}, " RAN, BROKEN("devices", "0 devices")), SHK_FAIL,
     "plugin-no-device", NULL},
    {"test-fabric", "net plugin use",
     ONE("'loopback': {'step': 'regMr'}, " RAN, BROKEN("loopback", "regMr returned 2")), SHK_FAIL,
     "plugin-transfer-failed", NULL},
    {"test-fabric", "net plugin use",
     ONE("'loopback': {'step': 'verify'}, " RAN, BROKEN("loopback", "3 wrong")), SHK_FAIL,
     "plugin-corrupts-data", NULL},
    {"test-fabric", "net plugin use", ONE("", BROKEN("dependencies", "no libx")), SHK_NA, NULL,
     "does not get that far"},
    {"test-fabric", "net plugin use",
     ONE("'untried': 'plugin init: no time was left', ",
         LOADED ", {'step': 'init', 'state': 'unknown'}"),
     SHK_NA, NULL, "no time was left"},
    {"test-fabric", "net plugin use",
     ONE("'devices': {'count': 4}, 'loopback': {'bytes': 1048576}, " RAN,
         LOADED ", {'step': 'init', 'state': 'ok'}"),
     SHK_PASS, NULL, "4 devices, loopback of 1048576 bytes right"},
};

Test(plugin, chain_becomes_findings)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char members[4096];
        snprintf(members, sizeof(members), NODE "%s'host.name': 'x'", cases[i].facts);
        struct shk_findings *findings =
            support_run(support_test_config(), cases[i].profile, members);
        const struct shk_finding *f = support_find(findings, NULL, cases[i].setting);
        cr_assert_not_null(f, "case %zu: no row", i);
        char *text = support_text(f);
        bool inferred = cases[i].says && strcmp(cases[i].says, "inferred") == 0;
        cr_expect_eq(f->verdict, cases[i].verdict, "case %zu: %s: %s", i,
                     shk_verdict_name(f->verdict), text);
        cr_expect_str_eq(f->diagnosis ? f->diagnosis : "none",
                         cases[i].diagnosis ? cases[i].diagnosis : "none", "case %zu: %s", i, text);
        cr_expect(!cases[i].says || inferred || strstr(text, cases[i].says), "case %zu: %s", i,
                  text);
        cr_expect(!inferred || f->evidence == SHK_EFFECT, "case %zu", i);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* A list: what takes over softens what failed before it. */
Test(plugin, another_plugin_of_the_list)
{
    static const char members[] =
        "'plugin.requested': '/p/gone.so,/p/a.so,/p/b.so', 'plugin.chosen': '/p/b.so', "
        "'plugin.candidates': [{'name': '/p/gone.so', 'found': false, 'considered': true, 'steps': "
        "[{'step': 'file', 'state': 'broken', 'what': '/p/gone.so: no such file'}]}, {'name': "
        "'/p/a.so', 'path': '/p/a.so', 'found': true, 'considered': true, 'steps': [{'step': "
        "'abi', 'state': 'broken', 'what': 'none in common'}]}, {'name': '/p/b.so', 'path': "
        "'/p/b.so', 'found': true, 'considered': true, 'load': {'ok': true}, 'steps': [{'step': "
        "'load', 'state': 'ok'}]}, {'name': '/q/c.so', 'path': '/q/c.so', 'found': true, "
        "'considered': false, 'steps': [{'step': 'abi', 'state': 'broken', 'what': 'x'}]}]";
    static const struct {
        const char *setting;
        enum shk_verdict verdict;
        const char *diagnosis;
    } rows[] = {{"net plugin load (/p/gone.so)", SHK_WARN, "net-plugin-name-wrong"},
                {"net plugin load (/p/a.so)", SHK_WARN, "plugin-abi-mismatch"},
                {"net plugin load (/p/b.so)", SHK_PASS, "none"}};
    struct shk_findings *findings = support_run(support_test_config(), "test-fabric", members);
    for (size_t i = 0; i < 3; i++) {
        const struct shk_finding *f = support_find(findings, "plugin.load", rows[i].setting);
        cr_assert_not_null(f, "%s", rows[i].setting);
        cr_expect_eq(f->verdict, rows[i].verdict, "%s: %s", f->setting, f->why);
        cr_expect_str_eq(f->diagnosis ? f->diagnosis : "none", rows[i].diagnosis);
    }
    cr_expect_null(support_find(findings, NULL, "net plugin load (/q/c.so)"));
    shk_findings_destroy(findings);
}

/* Every cause that the chains can name has an entry. */
Test(plugin, causes_have_entries)
{
    static const char *const keys[] = {"net-plugin-name-wrong",
                                       "plugin-file-unusable",
                                       "plugin-abi-mismatch",
                                       "plugin-dependency-missing",
                                       "plugin-libfabric-version-mismatch",
                                       "plugin-crashes",
                                       "plugin-interface-broken",
                                       "net-plugin-init-failed",
                                       "plugin-no-device",
                                       "plugin-corrupts-data",
                                       "plugin-connection-stall",
                                       "plugin-transfer-failed",
                                       "efa-provider-absent",
                                       "cxi-provider-absent",
                                       "verbs-provider-absent",
                                       "provider-not-compiled",
                                       "libfabric-wrong-version-loaded",
                                       "rdma-device-not-in-container",
                                       "rdma-device-partially-exposed",
                                       "efa-device-open-failure",
                                       "memlock-too-low",
                                       "efa-fork-hugepage-conflict",
                                       "cxi-vni-missing",
                                       "efa-nic-count-low",
                                       "mtu-mismatch",
                                       "hmem-runtime-library-missing"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        cr_expect_not_null(shk_config_diagnosis(support_config(), keys[i]), "%s", keys[i]);
}
