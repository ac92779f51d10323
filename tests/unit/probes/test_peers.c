/* Links between GPUs by kfd, NCCL's topology file, and the join of all that is known. */
#include "core/text/strbuf.h"
#include "hosttree.h"

#include <stdio.h>
#include <stdlib.h>

TREE_SUITE(kfd);
TREE_SUITE(topofile);
TREE_SUITE(peers);

#define NODES "/sys/class/kfd/kfd/topology/nodes"

static void kfd_node(int node, int bus)
{
    char path[128];
    snprintf(path, sizeof path, NODES "/%d/properties", node);
    tree_put(path, "cpu_cores_count %d\nsimd_count %d\nlocation_id %d\ndomain 0\n", bus ? 0 : 64,
             bus ? 440 : 0, bus << 8);
}

static void kfd_link(int node, const char *folder, int n, int type, int to)
{
    char path[128];
    snprintf(path, sizeof path, NODES "/%d/%s/%d/properties", node, folder, n);
    tree_put(path,
             "type %d\nversion_major 0\nnode_from %d\nnode_to %d\nweight 15\nmin_bandwidth 50000\n"
             "max_bandwidth 100000\n",
             type, node, to);
}

static void two_gpus(void)
{
    kfd_node(0, 0);
    kfd_node(1, 0xc1);
    kfd_node(2, 0xc6);
    kfd_link(1, "io_links", 0, 2, 0); /* to its processor: no peer */
    kfd_link(1, "io_links", 1, 11, 2);
    kfd_link(2, "p2p_links", 0, 2, 1);
}

Test(kfd, links)
{
    two_gpus();
    tree_run(&shk_probe_kfd);
    expect_json("gpu.amd.links",
                "[{\"gpu\":\"0000:c1:00.0\",\"peer\":\"0000:c6:00.0\",\"type\":\"xgmi\",\"p2p\":"
                "false,\"weight\":15,\"min_bandwidth\":50000,\"max_bandwidth\":100000},"
                "{\"gpu\":\"0000:c6:00.0\",\"peer\":\"0000:c1:00.0\",\"type\":\"pcie\",\"p2p\":"
                "true,\"weight\":15,\"min_bandwidth\":50000,\"max_bandwidth\":100000}]");
}

Test(kfd, none_against_hidden)
{
    tree_run(&shk_probe_kfd);
    expect_failed("gpu.amd.links", "/sys/class");
    tree_dir("/sys/class");
    tree_run(&shk_probe_kfd);
    expect_absent("gpu.amd.links");
    kfd_node(0, 0);
    tree_run(&shk_probe_kfd);
    expect_absent("gpu.amd.links");
    tree_put(NODES "/1/properties", "%s", "");
    tree_run(&shk_probe_kfd);
    cr_expect_eq(tree_state("gpu.amd.links"), SHK_FACT_FAILED);
    kfd_node(999999, 0xc1); /* numbers beyond all reason are left out */
    kfd_link(999999, "io_links", 0, 11, 4000000);
    tree_run(&shk_probe_kfd);
    cr_expect_eq(tree_state("gpu.amd.links"), SHK_FACT_FAILED);
}

#define DEFAULT "/var/run/nvidia-topologyd/virtualTopology.xml"

Test(topofile, functions)
{
    tree_dir("/var/run");
    tree_run(&shk_probe_topofile);
    expect_absent("topology.nccl_file");
    tree_put(DEFAULT, "<!-- c --><system version=\"1\"><cpu numaid=\"0\">"
                      "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\"><pci busid=\"0000:10:1c.0\"/>"
                      "</pci></cpu></system>");
    tree_run(&shk_probe_topofile);
    expect_json("topology.nccl_file",
                "{\"path\":\"" DEFAULT "\",\"asked\":false,\"version\":\"1\",\"functions\":["
                "{\"pci\":\"ffff:ff:01.0\",\"class\":\"0x060400\"},{\"pci\":\"0000:10:1c.0\","
                "\"class\":null}]}");
}

Test(topofile, asked_for)
{
    tree_hostcalls("{\"environ\":{\"NCCL_TOPO_FILE\":\"/opt/t.xml\"}}");
    tree_run(&shk_probe_topofile);
    expect_failed("topology.nccl_file", "NCCL_TOPO_FILE=/opt/t.xml: no such file");
    expect_text("topology.nccl_file.problem", "missing");
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"", "line 1"},
        {"not XML", "line 1"},
        {"<graphs></graphs>", "not <system>"},
        {"<system version=\"1\"><cpu>", "line 1"},
        {"<!DOCTYPE system [<!ENTITY a \"aaaa\">]><system>&a;</system>", "declares entities"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_put("/opt/t.xml", "%s", rows[i].text);
        tree_run(&shk_probe_topofile);
        expect_failed("topology.nccl_file", rows[i].reason);
    }
    char deep[4096] = "<system>";
    for (int i = 0; i < 100; i++)
        strcat(deep, "<pci busid=\"0000:01:00.0\">");
    tree_put("/opt/t.xml", "%s", deep);
    tree_run(&shk_probe_topofile);
    expect_failed("topology.nccl_file", "too deep");
    expect_text("topology.nccl_file.problem", "unusable");
    tree_put("/opt/t.xml", "<system version=\"2\"/>");
    tree_run(&shk_probe_topofile);
    expect_json("topology.nccl_file", "{\"path\":\"/opt/t.xml\",\"asked\":true,\"version\":\"2\","
                                      "\"functions\":[]}");
}

static void join(const char *text)
{
    struct shk_facts *known = NULL;
    struct shk_error err = {""};
    char *doc = shk_strf("{'schema': 'shakedown.facts/1', 'facts': {%s}}", text);
    cr_assert_not_null(doc);
    for (char *p = doc; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *json = json_loads(doc, 0, NULL);
    cr_assert_not_null(json, "%s", doc);
    cr_assert_eq(shk_facts_from_json(&known, json, &err), 0, "%s", err.text);
    tree_run_known(&shk_probe_peers, known);
    shk_facts_destroy(known);
    json_decref(json);
    free(doc);
}

#define DEVICES                                                                                    \
    "'topology.devices': [{'kind': 'gpu', 'pci': '0000:c6:00.0', 'numa': 1, 'cpus': '4-7', 'os': " \
    "[]}, {'kind': 'gpu', 'pci': '0000:c1:00.0', 'numa': 0, 'cpus': '0-3', 'os': []}, {'kind': "   \
    "'nic', 'pci': '0000:d1:00.0', 'numa': 0, 'vendor': '0x8086', 'device': '0x1521', 'os': "      \
    "[{'type': 'network', 'name': 'eno1'}]}, {'kind': 'nic', 'pci': '0000:e1:00.0', 'numa': 1, "   \
    "'vendor': '0x17db', 'device': '0x0501', 'os': [{'type': 'network', 'name': 'hsn0'}]}], "      \
    "'topology.gpu_gpu': [{'gpu': '0000:c6:00.0', 'peer': '0000:c1:00.0', 'class': 'SYS'}], "      \
    "'topology.gpu_nic': [{'gpu': '0000:c1:00.0', 'nic': '0000:d1:00.0', 'class': 'PIX'}, "        \
    "{'gpu': '0000:c1:00.0', 'nic': '0000:e1:00.0', 'class': 'SYS'}, {'gpu': '0000:c6:00.0', "     \
    "'nic': '0000:e1:00.0', 'class': 'PHB'}]"

Test(peers, nearest_fabric_nic)
{
    join(DEVICES);
    json_t *gpu = tree_item("topology.gpus", "name", "GPU0");
    cr_expect_str_eq(tree_item_text(gpu, "pci"), "0000:c1:00.0");
    cr_expect_str_eq(tree_item_text(gpu, "nic"), "0000:e1:00.0"); /* eno1 is nearer, and no rail */
    cr_expect_str_eq(tree_item_text(gpu, "class"), "SYS");
    json_t *nic = tree_item("topology.nics", "name", "hsn0");
    cr_expect_eq(json_array_size(json_object_get(nic, "gpus")), 2);
    cr_expect(json_is_false(json_object_get(tree_item("topology.nics", "name", "eno1"), "fabric")));
}

Test(peers, what_joins_two_gpus)
{
    static const struct {
        const char *name, *more, *class, *p2p;
    } rows[] = {
        {"PCIe only", "", "SYS", "(null)"},
        {"XGMI by kfd",
         ", 'gpu.amd.links': [{'gpu': '0000:c6:00.0', 'peer': '0000:c1:00.0', 'type': 'xgmi'}]",
         "XGMI", "ok"},
        {"PCIe peers by kfd",
         ", 'gpu.amd.links': [{'gpu': '0000:c6:00.0', 'peer': '0000:c1:00.0', 'type': 'pcie', "
         "'p2p': true}]",
         "SYS", "ok"},
        {"NVLink by hwloc",
         ", 'topology.links': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'type': 'nvlink', "
         "'bandwidth': 75000}]",
         "NV3", "(null)"},
        {"NVLink of unknown width",
         ", 'topology.links': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'type': 'nvlink', "
         "'bandwidth': 70001}]",
         "NV", "(null)"},
        {"NVLink by NVML",
         ", 'nvml.devices': [{'pci': '0000:c1:00.0', 'links': [{'active': true, 'remote': 'gpu', "
         "'pci': '0000:c6:00.0'}, {'active': false, 'remote': 'gpu', 'pci': '0000:c6:00.0'}]}], "
         "'nvml.p2p': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'read': 'ok', 'write': "
         "'ok'}]",
         "NV1", "ok"},
        {"NVSwitch by NVML",
         ", 'nvml.devices': [{'pci': '0000:c1:00.0', 'links': [{'active': true, 'remote': "
         "'switch'}, {'active': true, 'remote': 'switch'}]}, {'pci': '0000:c6:00.0', 'links': "
         "[{'active': true, 'remote': 'switch'}]}]",
         "NV1", "(null)"},
        {"refused by NVML",
         ", 'nvml.p2p': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'read': 'ok', 'write': "
         "'chipset not supported'}], 'cuda.p2p': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', "
         "'access': true}]",
         "SYS", "chipset not supported"},
        {"refused by CUDA",
         ", 'cuda.p2p': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'access': false}]", "SYS",
         "CUDA offers no access"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s", DEVICES, rows[i].more);
        join(text);
        json_t *pair = json_array_get(tree_value("topology.peers"), 0);
        cr_expect_str_eq(tree_item_text(pair, "class"), rows[i].class, "%s", rows[i].name);
        cr_expect_str_eq(tree_item_text(pair, "p2p"), rows[i].p2p, "%s", rows[i].name);
    }
}

/* A way that lacks access, or was not read, is not made good by the other one. */
Test(peers, each_way)
{
    static const struct {
        const char *there, *back, *p2p, *one_way;
    } rows[] = {
        {"true", "false", "CUDA offers no access", "0000:c6:00.0 to 0000:c1:00.0"},
        {"false", "true", "CUDA offers no access", "0000:c1:00.0 to 0000:c6:00.0"},
        {"true", "null", "(null)", "(null)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%s, 'cuda.p2p': [{'gpu': '0000:c1:00.0', 'peer': '0000:c6:00.0', 'access': %s}, "
                 "{'gpu': '0000:c6:00.0', 'peer': '0000:c1:00.0', 'access': %s}]",
                 DEVICES, rows[i].there, rows[i].back);
        join(text);
        json_t *pair = json_array_get(tree_value("topology.peers"), 0);
        cr_expect_str_eq(tree_item_text(pair, "p2p"), rows[i].p2p);
        cr_expect_str_eq(tree_item_text(pair, "one_way"), rows[i].one_way);
    }
}

Test(peers, no_topology)
{
    join("'topology.devices': {'state': 'failed', 'reason': 'hwloc hung'}");
    expect_failed("topology.gpus", "hwloc hung");
    expect_failed("topology.peers", "hwloc hung");
    join("'host.name': 'x'");
    expect_failed("topology.nics", "not known");
    join("'topology.devices': []");
    expect_json("topology.gpus", "[]");
    expect_json("topology.peers", "[]");
    join("'topology.devices': [], 'pci.count.gpu-nvidia': 2, 'pci.count.gpu-amd': 0");
    expect_failed("topology.gpus", "none of the 2 GPUs");
    expect_failed("topology.peers", "none of the 2 GPUs");
    join("'topology.devices': [], 'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': 0");
    expect_json("topology.peers", "[]");
}
