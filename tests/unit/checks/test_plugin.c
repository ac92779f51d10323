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
#define ASKED "'plugin.requested': '/p/a.so', "
#define ABI   "'bits': 64, 'machine': 'x86_64', 'abi': {'net': [8]}, 'abi_common': [8], "
#define ONE(members)                                                                               \
    "'plugin.candidates': [{'name': '/p/a.so', 'path': '/p/a.so', 'kind': 'net', 'found': true, "  \
    "'considered': true, " members ABI "'reason': 'test'}], "
#define RAN         "'load': {'ok': true}, "
#define CANNOT_LOAD "'load': {'ok': false, 'outcome': 'failed', 'error': 'no libx'}, "
#define LACKS(library)                                                                             \
    "'problems': [{'kind': 'missing', 'library': '" library "', 'text': 'no libx'}], "
#define LACKS_VERSION(version, library, path)                                                      \
    "'problems': [{'kind': 'version', 'version': '" version "', 'library': '" library              \
    "', 'path': '" path "', 'text': 'needs it'}], "
#define UNREADABLE "'error': 'empty file', "
#define CUT_OFF    "'error': 'cut off', 'cut_off': true, "
#define ENDS(step, outcome, error)                                                                 \
    "'" step "': {'ok': false, 'outcome': '" outcome "', 'error': '" error "', 'call': '" step     \
    "', 'log': ['WARN CUDA failed']}, "
#define STARTS "'init': {'ok': true, 'name': 'x', 'version': 8}, "
#define HAS(n) "'devices': {'ok': true, 'count': " #n ", 'rows': [{'rc': 0}]}, "
#define LOOP(members)                                                                              \
    RAN STARTS HAS(4) "'loopback': {'ok': false, 'outcome': 'failed', 'error': 'x', " members "}," \
                      " "

static const struct {
    const char *profile, *setting, *facts;
    enum shk_verdict verdict;
    const char *diagnosis, *says;
} cases[] = {
    {"single-node", "net plugin load", ONE(UNREADABLE), SHK_WARN, "plugin-file-unusable",
     "inferred"}, /* nobody asks for it; nothing was executed */
    {"single-node", "net plugin load",
     ASKED ONE(UNREADABLE "'load': {'ok': false, 'outcome': 'failed', 'error': 'CUDA failed'}, "),
     SHK_FAIL, "plugin-file-unusable", "empty file; CUDA failed; NCCL continues without it"},
    {"test-fabric", "net plugin load", ONE(LACKS("libx.so")), SHK_FAIL, "plugin-dependency-missing",
     "ldd /p/a.so"},
    {"test-fabric", "net plugin load",
     ONE(LACKS_VERSION("FABRIC_1.8", "libfabric.so.1", "/old/libfabric.so.1")), SHK_FAIL,
     "plugin-libfabric-version-mismatch", "export LD_LIBRARY_PATH=/new:$LD_LIBRARY_PATH"},
    {"test-fabric", "net plugin load",
     ONE(LACKS_VERSION("FABRIC_1.10", "libfabric.so.1",
                       "/old/libfabric.so.1")) /* 1.10 is above 1.9 */,
     SHK_FAIL, "plugin-libfabric-version-mismatch", "build the plugin against /old/libfabric.so.1"},
    {"test-fabric", "net plugin load",
     ONE(LACKS_VERSION("GLIBC_2.38", "libc.so.6", "/lib/libc.so.6")), SHK_FAIL,
     "plugin-dependency-missing", "/lib/libc.so.6"},
    {"test-fabric", "net plugin load", ONE(ENDS("load", "timeout", "no answer")), SHK_FAIL,
     "plugin-crashes", "takes the rank with it"},
    {"test-fabric", "net plugin load", ONE(RAN), SHK_PASS, NULL, "/p/a.so loads"},
    {"test-fabric", "net plugin load", ONE(""), SHK_UNKNOWN, NULL, "load: not tried"},
    {"test-fabric", "net plugin load", ONE("'refused': true, 'untried': 'others may write it', "),
     SHK_UNKNOWN, NULL, "--trust-libraries"},
    {"test-fabric", "net plugin use", ONE(RAN ENDS("init", "failed", "init returned 2")), SHK_FAIL,
     "net-plugin-init-failed", "init returned 2; CUDA failed"}, /* GPUs not known */
    {"test-fabric", "net plugin use", GPUS(0) ONE(RAN ENDS("init", "failed", "init returned 2")),
     SHK_NA, NULL, "only on a node with GPUs: CUDA failed"},
    {"test-fabric", "net plugin use", GPUS(8) ONE(RAN ENDS("init", "failed", "init returned 2")),
     SHK_FAIL, "net-plugin-init-failed", NULL},
    {"test-fabric", "net plugin use", GPUS(0) ONE(RAN ENDS("init", "crashed", "died")), SHK_FAIL,
     "plugin-crashes", NULL}, /* a crash is no excuse */
    {"test-fabric", "net plugin use",
     ONE(RAN STARTS "'devices': {'ok': true, 'rc': 0, 'count': 0}, "), SHK_FAIL, "plugin-no-device",
     NULL},
    {"test-fabric", "net plugin use", ONE(LOOP("'step': 'regMr', 'rc': 2")), SHK_FAIL,
     "plugin-transfer-failed", NULL},
    {"test-fabric", "net plugin use", ONE(LOOP("'step': 'verify', 'wrong': 3")), SHK_FAIL,
     "plugin-corrupts-data", NULL},
    {"test-fabric", "net plugin use", ONE(LOOP("'step': 'accept'")), SHK_FAIL,
     "plugin-connection-stall", NULL},
    {"test-fabric", "net plugin use", ONE(LOOP("'step': 'accept', 'rc': 3")), SHK_FAIL,
     "plugin-transfer-failed", NULL},
    {"test-fabric", "net plugin use",
     ONE(RAN
         "'init': {'ok': false, 'outcome': 'failed', 'error': 'x', 'missing_slots': 'listen'}, "),
     SHK_FAIL, "plugin-interface-broken", NULL},
    {"test-fabric", "net plugin use",
     ONE(RAN STARTS "'devices': {'ok': false, 'outcome': 'failed', 'rc': 2, 'count': 0, 'error': "
                    "'x'}, "),
     SHK_FAIL, "net-plugin-init-failed", NULL},
    {"test-fabric", "net plugin load",
     ONE("'load': {'ok': false, 'outcome': 'failed', 'error': \"/l/libfabric.so.1: version "
         "`FABRIC_1.8 not found\"}, "),
     SHK_FAIL, "plugin-libfabric-version-mismatch", NULL},
    {"test-fabric", "net plugin load",
     ONE("'load': {'ok': false, 'outcome': 'failed', 'path': '/p/a.so', 'error': 'x'}, "), SHK_FAIL,
     "plugin-interface-broken", "another release"},
    {"test-fabric", "net plugin load", ONE("'load': {'ok': 'yes'}, "), SHK_UNKNOWN, NULL,
     "could not be read"},
    {"test-fabric", "net plugin use", ONE(LACKS("libx.so")), SHK_NA, NULL, "does not get that far"},
    {"test-fabric", "net plugin use", ONE(RAN "'untried': 'plugin init: no time was left', "),
     SHK_UNKNOWN, NULL, "no time was left"},
    {"test-fabric", "net plugin use",
     ONE(RAN "'untried': 'owned by somebody else', 'refused': true, "), SHK_NA, NULL,
     "owned by somebody else"},
    {"test-fabric", "net plugin use",
     ONE(RAN STARTS HAS(4) "'loopback': {'ok': true, 'bytes': 1048576}, "), SHK_PASS, NULL,
     "4 devices, loopback of 1048576 bytes right"},
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
        "'plugin.candidates': [{'name': '/p/gone.so', 'kind': 'net', 'found': false, 'considered': "
        "true}, {'name': "
        "'/p/a.so', 'kind': 'net', 'path': '/p/a.so', 'found': true, 'considered': true, "
        "'abi': {'net': [4]}, 'abi_common': []}, {'name': '/p/b.so', 'kind': 'net', "
        "'path': "
        "'/p/b.so', 'found': true, 'considered': true, " ABI
        "'load': {'ok': true}}, {'name': '/q/c.so', "
        "'kind': 'net', 'path': '/q/c.so', 'found': "
        "true, "
        "'considered': false, 'abi': {}}]";
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

#define NCCL(v)   "'nccl.version': '" v "', "
#define NO_RDMA   "'rdma.devices': [], 'pci.count.cxi': 0, 'pci.count.efa': 0, "
#define NAMED(n)  "'load': {'ok': true, 'name': '" n "'}, "
#define NET(name) "'env.NCCL_NET': '" name "', "
#define PORT(layer, state)                                                                         \
    "'rdma.devices': [{'name': 'mlx5_0', 'ports': [{'port': 1, 'link_layer': '" layer              \
    "', 'state': '" state "'}]}], "

/* What NCCL does without a plugin that does not work depends on what else it may take. */
static const struct {
    const char *profile, *setting, *facts;
    enum shk_verdict verdict;
    const char *says;
} without[] = {
    {"single-node", "net plugin load", ONE(CANNOT_LOAD), SHK_WARN,
     "NCCL continues without it, over its own IB or Socket network"},
    {"single-node", "net plugin load", NO_RDMA ONE(CANNOT_LOAD), SHK_NOTE,
     "continues without it"}, /* nothing that it could drive */
    {"single-node", "net plugin load", NET("gIB") NCCL("2.28.9") ONE(CANNOT_LOAD), SHK_FAIL,
     "NCCL_NET=\"gIB\" allows no other network, so NCCL 2.28.9 ends the job"},
    {"test-fabric", "net plugin load", NET("socket") NCCL("2.28.9") ONE(CANNOT_LOAD), SHK_NOTE,
     "with NCCL_NET=socket NCCL 2.28.9 does not use it"},
    {"single-node", "net plugin load", ONE(CUT_OFF), SHK_FAIL, "takes the rank with it"},
    {"single-node", "net plugin load", NET("IB") ONE(CUT_OFF), SHK_FAIL,
     "takes the rank with it"}, /* it is loaded all the same */
    {"single-node", "net plugin use",
     NET("IB") NCCL("2.28.9") ONE(RAN ENDS("init", "crashed", "died")), SHK_NOTE,
     "does not use it"}, /* 2.28.7 and later start only what is asked for */
    {"single-node", "net plugin use",
     NET("IB") NCCL("2.27.7") ONE(RAN ENDS("init", "crashed", "died")), SHK_FAIL,
     "takes the rank with it"},
    {"single-node", "net plugin load",
     "'plugin.candidates': [{'name': '/p/a.so', 'path': '/p/a.so', 'kind': 'net', 'found': false, "
     "'considered': true, 'blocked': [{'path': '/p/a.so', 'state': 'denied', 'text': 'no "
     "permission'}]}], ",
     SHK_WARN, "diagnosis plugin-file-unusable"},
};

Test(plugin, what_comes_of_it_depends_on_what_is_asked_for)
{
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        char members[4096];
        snprintf(members, sizeof(members), "%s'host.name': 'x'", without[i].facts);
        struct shk_findings *findings =
            support_run(support_test_config(), without[i].profile, members);
        const struct shk_finding *f = support_find(findings, NULL, without[i].setting);
        cr_assert_not_null(f, "case %zu: no row", i);
        char *text = support_text(f);
        cr_expect_eq(f->verdict, without[i].verdict, "case %zu: %s", i, text);
        cr_expect_not_null(strstr(text, without[i].says), "case %zu: %s", i, text);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* NCCL_NET against the networks that are here. */
static const struct {
    const char *facts;
    enum shk_verdict verdict;
    const char *says;
} networks[] = {
    {NET("IB") NCCL("2.28.9") "'rdma.devices': [], ", SHK_FAIL, "no RDMA device; NCCL 2.28.9"},
    {NET("ib") NCCL("2.28.9") PORT("InfiniBand", "ACTIVE"), SHK_PASS, ""},
    {NET("IB") NCCL("2.28.9") PORT("Ethernet", "DOWN"), SHK_FAIL, "RoCE ports is active"},
    {NET("IB") NCCL("2.28.9") PORT("Unspecified", "ACTIVE"), SHK_FAIL, "InfiniBand or Ethernet"},
    {NET("IB") NCCL("2.28.9") "'rdma.devices': [{'name': 'x'}], ", SHK_UNKNOWN, "not all read"},
    {NET("IB") NCCL("2.28.9"), SHK_UNKNOWN, "RDMA devices this node has was not read"},
    {NET("Socket") NCCL("2.28.9"), SHK_PASS, ""},
    {NET("gIB") NCCL("2.28.9"), SHK_UNKNOWN, "which net plugins are here was not read"},
    {NET("gIB") NCCL("2.28.9") "'plugin.candidates': [], ", SHK_FAIL, "no net plugin was found"},
    {NET("gIB") NCCL("2.28.9") ONE(NAMED("gIB")), SHK_PASS, ""},
    {NET("gib") NCCL("2.28.9") ONE(NAMED("x") "'init': {'ok': true, 'name': 'gIB'}, "), SHK_PASS,
     ""},
    {NET("gIB") NCCL("2.28.9") ONE(NAMED("IBext_v11")), SHK_FAIL,
     "no network calls itself \"gIB\": there are \"IBext_v11\" (/p/a.so), IB and Socket"},
    {NET("gIB") NCCL("2.28.9") ONE(RAN), SHK_UNKNOWN, "call themselves was not read"},
    {NET("gIB") NCCL("2.28.9") ONE(""), SHK_PASS, ""}, /* a capture: not asked */
    {NET("gIB") NCCL("2.28.9") ONE("'load': {'ok': false, 'name': 'gIB', 'error': 'no libx'}, "),
     SHK_FAIL, "no plugin works that could be \"gIB\": no libx"},
    {NET("OFI") NCCL("2.28.9") ONE("'env_names': ['OFI_NCCL_PROTOCOL'], "), SHK_PASS, ""},
    {NET("Libfabrik") NCCL("2.28.9") ONE("'env_names': ['OFI_NCCL_PROTOCOL'], " NAMED("Libfabric")),
     SHK_FAIL, "\"Libfabric\" (/p/a.so)"},
    {NET("") NCCL("2.18.3"), SHK_FAIL, "the name is empty"},
};

Test(plugin, a_forced_network_must_be_there)
{
    const struct shk_config *config = support_config();
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        char members[4096];
        snprintf(members, sizeof(members), "%s'host.name': 'x'", networks[i].facts);
        struct shk_findings *findings = support_run(config, "single-node", members);
        const struct shk_finding *f = support_find(findings, "env.value", "NCCL_NET");
        cr_assert_not_null(f, "case %zu: no row", i);
        char *text = support_text(f);
        cr_expect_eq(f->verdict, networks[i].verdict, "case %zu: %s", i, text);
        cr_expect_not_null(strstr(text, networks[i].says), "case %zu: %s", i, text);
        cr_expect_null(strstr(text, "Slingshot"), "case %zu: %s", i, text);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* A file that nothing asks for is suggested, never listed among those that were looked for. */
#define SEEN(path)                                                                                 \
    "{'name': '" path "', 'path': '" path "', 'kind': 'net', 'found': true, 'considered': false}"
#define TRIED(name) "{'name': '" name "', 'kind': 'net', 'found': false, 'considered': true}"

static const struct {
    const char *facts, *fix;
} meant[] = {
    {"'env.NCCL_NET_PLUGIN': 'aws', 'env.LD_LIBRARY_PATH': '/a:/q', 'plugin.candidates': [" TRIED(
         "aws") ", " TRIED("libnccl-net-aws.so") ", " SEEN("/q/libnccl-net-ofi.so") "]",
     "export NCCL_NET_PLUGIN=ofi"},
    {"'env.NCCL_NET_PLUGIN': 'aws', 'env.HOME': '/', 'plugin.candidates': [" TRIED(
         "aws") ", " TRIED("libnccl-net-aws.so") ", " SEEN("/q/libnccl-net-ofi.so") "]",
     "export NCCL_NET_PLUGIN=/q/libnccl-net-ofi.so"},
    {"'env.NCCL_NET_PLUGIN': 'aws', 'env.HOME': '/', 'plugin.candidates': [" TRIED(
         "libnccl-net-aws.so") ", " SEEN("/q/libnccl-net-ofi.so") "]", /* 2.18 takes no path */
     "export NCCL_NET_PLUGIN=ofi LD_LIBRARY_PATH=/q:$LD_LIBRARY_PATH"},
    {"'env.NCCL_NET_PLUGIN': 'aws', 'env.LD_LIBRARY_PATH': '/q/', 'plugin.candidates': [" TRIED(
         "libnccl-net-aws.so") ", " SEEN("/q/libnccl-net.so") "]",
     "unset NCCL_NET_PLUGIN"},
    {"'env.NCCL_NET_PLUGIN': 'aws', 'env.HOME': '/', 'plugin.candidates': [" TRIED("aws") "]",
     "unset NCCL_NET_PLUGIN"},
};

Test(plugin, did_you_mean)
{
    for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
        struct shk_findings *findings =
            support_run(support_test_config(), "single-node", meant[i].facts);
        const struct shk_finding *f = support_find(findings, "plugin.file", "net plugin file");
        cr_assert_not_null(f);
        cr_expect_eq(f->verdict, SHK_FAIL);
        cr_expect_str_eq(f->fix, meant[i].fix, "case %zu: %s", i, f->fix);
        const char *looked = strstr(f->why, "finds no "), *seen = strstr(f->why, "/q/");
        cr_assert_not_null(looked);
        cr_expect(!seen || strstr(f->why, ". Not requested, but present: ") < seen, "%s", f->why);
        shk_findings_destroy(findings);
    }
}
