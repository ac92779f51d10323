/* A profile and a provider that were named on the command line: they must be there. Lists that
 * leave something out, or hold it twice. */
#include "support.h"

#include <criterion/criterion.h>
#include <string.h>

#define PORTS(layer) "'rdma.devices': [{'name': 'mlx5_0', 'ports': [{'port': 1, " layer "}]}]"
#define FAILED(key)  "'" key "': {'state': 'failed', 'reason': 'denied'}"
#define ABSENT(key)  "'" key "': {'state': 'absent', 'reason': 'none'}"

struct named {
    const char *profile, *provider, *id, *setting, *facts;
    enum shk_verdict verdict;
};

static void named_expect(const struct named *n)
{
    struct shk_facts *facts = support_facts(n->facts);
    struct shk_findings *findings = shk_findings_create();
    struct shk_error err = {""};
    struct shk_check_context ctx = {.facts = facts,
                                    .config = support_config(),
                                    .profile = shk_config_profile(support_config(), n->profile),
                                    .profile_asked = true,
                                    .provider_asked = n->provider};
    cr_assert_not_null(ctx.profile, "%s", n->profile);
    cr_assert_eq(shk_checks_run(&ctx, findings, &err), 0, "%s", err.text);
    const struct shk_finding *f = support_find(findings, n->id, n->setting);
    if (n->verdict == SHK_VERDICT_COUNT) {
        cr_expect_null(f, "%s, %s: no row was expected", n->profile, n->facts);
    } else {
        cr_expect(f && f->verdict == n->verdict && f->required == SHK_ASKED, "%s %s, %s: %s",
                  n->profile, n->setting, n->facts, f ? shk_verdict_name(f->verdict) : "no row");
    }
    shk_findings_destroy(findings);
    shk_facts_destroy(facts);
}

Test(named, profile)
{
    static const char hardware[] = "profile.hardware", ib[] = "InfiniBand ports";
    static const struct named cases[] = {
        {"generic-ib", NULL, hardware, ib, PORTS("'link_layer': 'InfiniBand'"), SHK_PASS},
        {"dgx-ib", NULL, hardware, ib, PORTS("'link_layer': 'Ethernet'"), SHK_FAIL},
        {"dgx-ib", NULL, hardware, ib, PORTS("'link_layer': null"), SHK_UNKNOWN},
        {"dgx-ib", NULL, hardware, ib, FAILED("rdma.devices"), SHK_UNKNOWN},
        {"dgx-ib", NULL, hardware, ib, "'host.name': 'n'", SHK_UNKNOWN},
        {"dgx-roce", NULL, hardware, "RDMA ports over Ethernet", PORTS("'link_layer': 'Ethernet'"),
         SHK_PASS},
        {"gcp-a3-ultra", NULL, hardware, "a machine of Google Cloud", "'host.vendor': 'LENOVO'",
         SHK_FAIL},
        {"gcp-a4x", NULL, hardware, "Grace CPUs (aarch64)", "'host.arch': 'x86_64'", SHK_FAIL},
        {"aws-p6-b200", NULL, hardware, "an instance of type p6-b200",
         "'host.product': 'p5.48xlarge'", SHK_FAIL},
        {"aws-efa", NULL, "nic.count", "NICs", ABSENT("pci.count.efa"), SHK_FAIL},
        {"single-node", NULL, hardware, ib, "'host.name': 'n'", SHK_VERDICT_COUNT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        named_expect(&cases[i]);
}

Test(named, provider)
{
    static const char id[] = "collective.allreduce", row[] = "provider asked for";
    static const struct named cases[] = {
        {"single-node", "cxi", id, row, "'fabric.providers': ['tcp', 'shm']", SHK_FAIL},
        {"single-node", "verbs", id, row, "'fabric.providers': ['verbs;ofi_rxm']", SHK_UNKNOWN},
        {"single-node", "cxi", id, row, FAILED("fabric.providers"), SHK_UNKNOWN},
        {"single-node", "cxi", id, row, "'fabric.providers': [null]", SHK_UNKNOWN},
        {"single-node", "tcp", id, row, "'collective.fabric.status': 'na'", SHK_UNKNOWN},
        {"single-node", "tcp", id, row, "'collective.fabric.status': 'ok'", SHK_VERDICT_COUNT},
        {"single-node", NULL, id, row, "'host.name': 'n'", SHK_VERDICT_COUNT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        named_expect(&cases[i]);
}

#define GPUS                                                                                       \
    "'pci.count.gpu-nvidia': 3, 'pci.count.neuron': 0, "                                           \
    "'topology.gpus': [{'pci': 'a'}, {'pci': 'b'}, {'pci': 'c'}]"
#define PAIR(a, b)        "{'gpu': '" a "', 'peer': '" b "', 'class': 'NV18', 'p2p': 'ok'}"
#define LINKS(pci, links) "{'pci': '" pci "', 'name': 'H100', 'mig': false, 'links': [" links "]}"
#define UP                "{'link': 0, 'active': true}"
#define TO(pci)           "{'link': 0, 'active': true, 'remote': 'gpu', 'pci': '" pci "'}"
#define LIST              "'pci.count.gpu-nvidia': 2, 'gpu.nvidia.devices': "

Test(named, lists_that_leave_something_out)
{
    static const struct support_case cases[] = {
        {"all pairs", "single-node", "gpu.peer_access", "GPU peer access",
         GPUS ", 'topology.peers': [" PAIR("a", "b") "," PAIR("a", "c") "," PAIR("b", "c") "]",
         SHK_PASS, SHK_EFFECT, "all 3 pairs"},
        {"a pair is missing", "single-node", "gpu.peer_access", "GPU peer access",
         GPUS ", 'topology.peers': [" PAIR("a", "b") "," PAIR("a", "c") "]", SHK_UNKNOWN,
         SHK_NOT_COVERED, "2 of 3 pairs"},
        {"a GPU of the bus that hwloc does not show", "single-node", "gpu.peer_access",
         "GPU peer access",
         "'pci.count.gpu-nvidia': 4, 'pci.count.neuron': 0, 'topology.gpus': [{'pci': 'a'}, "
         "{'pci': "
         "'b'}, {'pci': 'c'}], 'topology.peers': [" PAIR("a", "b") "," PAIR("a", "c") "," PAIR(
             "b", "c") "]",
         SHK_UNKNOWN, SHK_NOT_COVERED, "3 of 6 pairs"},
        {"a pair is there twice", "single-node", "gpu.peer_access", "GPU peer access",
         GPUS ", 'topology.peers': [" PAIR("a", "b") "," PAIR("a", "c") "," PAIR("c", "a") "]",
         SHK_UNKNOWN, SHK_NOT_COVERED, "2 of 3 pairs"},
        {"no link at one GPU", "single-node", "gpu.nvlink", "nvlink-state",
         "'pci.count.gpu-nvidia': 2, 'pci.count.nvswitch': 4, 'nvml.devices': [" LINKS(
             "a", UP) "," LINKS("b", "") "]",
         SHK_WARN, SHK_EFFECT, "1 links down"},
        {"no link at one GPU, and where the other one's leads is not told", "single-node",
         "gpu.nvlink", "nvlink-state",
         "'pci.count.gpu-nvidia': 2, 'pci.count.nvswitch': 0, 'nvml.devices': [" LINKS(
             "a", UP) "," LINKS("b", "") "]",
         SHK_UNKNOWN, SHK_NOT_COVERED, "could not be read: b"},
        {"no bridge at one GPU of three", "single-node", "gpu.nvlink", "nvlink-state",
         "'pci.count.gpu-nvidia': 3, 'pci.count.nvswitch': 0, 'nvml.devices': [" LINKS(
             "a", TO("c")) "," LINKS("b", "") "," LINKS("c", TO("a")) "]",
         SHK_PASS, SHK_EFFECT, NULL},
        {"both served", "single-node", "gpu.driver", "nvidia driver",
         LIST "[{'pci': 'a'}, {'pci': 'b'}]", SHK_PASS, SHK_EFFECT, NULL},
        {"one served twice", "single-node", "gpu.driver", "nvidia driver",
         LIST "[{'pci': 'a'}, {'pci': 'a'}]", SHK_UNKNOWN, SHK_NOT_COVERED, "twice"},
        {"a NIC without a port", "dgx-ib", "nic.link", "NIC links",
         "'rdma.devices': [{'name': 'mlx5_0', 'driver': 'mlx5_core', 'ports': []}]", SHK_UNKNOWN,
         SHK_NOT_COVERED, "no port of mlx5_0"},
    };
    support_cases(cases, sizeof cases / sizeof *cases);
}
