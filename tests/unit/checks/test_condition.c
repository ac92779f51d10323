#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char node[] =
    "'probe.env.status': 'ok', 'job.nodes': 2, 'job.launcher': 'slurm', 'host.kernel': "
    "'5.14.21-150500', "
    "'host.container': 'none', 'pci.count.gpu-amd': 8, 'pci.count.gpu-nvidia': 0, "
    "'pci.count.neuron': 0, 'env.NCCL_NET': 'Socket', 'fabric.version': '1.22.0', "
    "'nccl.version': {'state': 'absent'}, 'plugin.candidates': [{'name': 'libnccl-net.so', "
    "'found': true, 'version': '1.14.2', 'load': {'ok': true}}]";

static const struct {
    const char *condition, *facts;
    int holds;
} cases[] = {
    {NULL, "", 1},
    {"", "", 1},
    {"nodes>1", node, 1},
    {"nodes>2", node, 0},
    {"nodes>=2", node, 1},
    {"nodes=1", node, 0},
    {"nodes<=2", node, 1},
    {"nodes!=2", node, 0},
    {"nodes > 1", node, 1},
    {"nodes>1", "", -1},
    {"nodes>1", "'job.launcher': 'local'", 0},
    {"container", node, 0},
    {"!container", node, 1},
    {"container", "'host.container': 'apptainer'", 1},
    {"inside_container", "'host.container': {'state': 'failed', 'reason': 'x'}", -1},
    {"gpu=amd", node, 1},
    {"gpu=nvidia", node, 0},
    {"gpu!=nvidia", node, 1},
    {"gpu=amd", "", -1},
    {"gpu=amd", "'pci.count.gpu-amd': 4, 'pci.count.gpu-nvidia': 1", 1},
    {"kernel<5.15", node, 1},
    {"kernel>=5.15", node, 0},
    {"plugin<1.15", node, 1},
    {"plugin<1.15", "", -1},
    {"libfabric>=1.20", node, 1},
    {"nccl<2.28", node, -1},
    {"nodes>1, gpu=amd", node, 1},
    {"nodes>1 && gpu=nvidia", node, 0},
    {"nodes>1 && plugin<1.15", "'job.nodes': 4", -1},
    {"nodes>1 && plugin<1.15", "'job.nodes': 1", 0},
    {"env.NCCL_NET", node, 1},
    {"env.NCCL_NET=socket", node, 1},
    {"env.NCCL_DEBUG", node, 0},
    {"env.NCCL_DEBUG", "", -1},
    {"limits.memlock.soft=-1", "'limits.memlock': {'soft': -1, 'hard': -1}", 1},
    {"limits.memlock.soft<65537", "'limits.memlock': {'soft': 65536, 'hard': -1}", 1},
    {"limits.memlock.soft=-1", "'limits.memlock': {'soft': 65536, 'hard': -1}", 0},
    {"limits.memlock.soft=-1", "'limits.memlock': {'hard': -1}", -1},
    {"limits.memlock.soft=-1", "'limits.memlock': {'soft': null}", -1},
    {"limits.memlock.soft=-1", "'limits.memlock': {'state': 'failed', 'reason': 'x'}", -1},
    {"limits.memlock.soft=-1", "", -1},
    {"moonphase=full", node, -1},
    {"nodes~1", node, -1},
    {">1", node, -1},
    {"!", node, -1},
    {"gpu<amd", node, -1},
};

Test(condition, cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_facts *facts = support_facts(cases[i].facts);
        cr_expect_eq(shk_condition_holds(cases[i].condition, facts), cases[i].holds,
                     "\"%s\" with {%s}", cases[i].condition ? cases[i].condition : "NULL",
                     cases[i].facts);
        shk_facts_destroy(facts);
    }
}

static const struct {
    const char *name, *facts, *profile, *why;
} nodes[] = {
    {"nothing known", "", "single-node", "no site profile"},
    {"one weak signal", "'pci.count.testnic': 4", "single-node", "no site profile"},
    {"a count of none", "'pci.count.testnic': 0", "single-node", "no site profile"},
    {"strong signal", "'host.name': 'testnid001'", "test-fabric", "host.name = testnid001"},
    {"both", "'host.name': 'testnid001', 'pci.count.testnic': 4", "test-fabric",
     "pci.count.testnic = 4"},
    {"failed fact", "'host.name': {'state': 'failed', 'reason': 'testnid1'}", "single-node", "no"},
};

Test(detect, cases)
{
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct shk_facts *facts = support_facts(nodes[i].facts);
        char *why = NULL;
        const struct shk_profile *profile =
            shk_profile_detect(support_test_config(), facts, &why, NULL);
        cr_expect_not_null(profile, "%s", nodes[i].name);
        cr_expect_str_eq(profile->name, nodes[i].profile, "%s: %s", nodes[i].name, why);
        cr_expect(strstr(why, nodes[i].why), "%s: %s", nodes[i].name, why);
        free(why);
        shk_facts_destroy(facts);
    }
}

/* Machines that have no profile of their own: what they share with one is no more than that. */
Test(detect, of_the_built_in_profiles)
{
    static const struct {
        const char *facts, *profile;
    } machines[] = {
        {"'host.arch': 'aarch64', 'host.vendor': 'QEMU'", "single-node"},
        {"'host.arch': 'aarch64', 'host.vendor': 'Supermicro', 'pci.count.mlx5': 4", "single-node"},
        {"'host.arch': 'aarch64', 'host.vendor': 'Google', 'pci.count.mlx5': 4", "gcp-a4x"},
        {"'host.arch': 'x86_64', 'host.vendor': 'Google', 'pci.count.mlx5': 8, 'env.NCCL_NET': "
         "'gIB'",
         "gcp-a3-ultra"},
        {"'host.arch': 'aarch64', 'host.vendor': {'state': 'failed', 'reason': 'x'}",
         "single-node"},
        {"'host.arch': 'aarch64', 'host.name': 'nid005001', 'env.SLURM_CLUSTER_NAME': 'lumi'",
         "single-node"},
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct shk_facts *facts = support_facts(machines[i].facts);
        char *why = NULL, *doubt = NULL;
        const struct shk_profile *profile =
            shk_profile_detect(support_config(), facts, &why, &doubt);
        cr_expect_str_eq(profile->name, machines[i].profile, "%s: %s", machines[i].facts, why);
        free(doubt);
        free(why);
        shk_facts_destroy(facts);
    }
}

Test(detect, reason_is_optional)
{
    struct shk_facts *facts = support_facts("");
    cr_expect_not_null(shk_profile_detect(support_config(), facts, NULL, NULL));
    shk_facts_destroy(facts);
}
