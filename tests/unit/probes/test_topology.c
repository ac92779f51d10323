#include "libs_support.h"
#include "probes/base/registry.h"
#include "probes/topology/topology_xml.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(topology, .init = capture_begin, .fini = capture_end, .timeout = 150);

/* Two packages with one node each. Below the first: a host bridge with a switch of two downstream
 * ports (a GPU and a NIC) beside a second, deeper switch (a GPU), a root port of its own (a NIC),
 * and a board console; below another host bridge a Neuron device. Below the second package: a NIC.
 */
#define TWO_PACKAGES SHK_TESTS_DIR "/unit/probes/two_packages.xml"
#define CAPTURED     ".shakedown/topology.xml"

static const char *distance(const struct shk_facts *facts, const char *key, const char *gpu,
                            const char *other)
{
    size_t i;
    json_t *row;
    json_array_foreach(shk_facts_get_array(facts, key), i, row)
    {
        const char *peer = json_string_value(json_object_get(row, "nic"));
        if (!peer)
            peer = json_string_value(json_object_get(row, "peer"));
        if (strcmp(json_string_value(json_object_get(row, "gpu")), gpu) == 0 && peer &&
            strcmp(peer, other) == 0)
            return json_string_value(json_object_get(row, "class"));
    }
    return "no such pair";
}

Test(topology, distances_between_gpus_and_nics)
{
    static const struct {
        const char *key, *gpu, *other, *distance;
    } cases[] = {
        {.key = "topology.gpu_nic",
         .gpu = "0000:03:00.0",
         .other = "0000:04:00.0",
         .distance = "PIX"},
        {.key = "topology.gpu_nic",
         .gpu = "0000:07:00.0",
         .other = "0000:04:00.0",
         .distance = "PXB"},
        {.key = "topology.gpu_nic",
         .gpu = "0000:03:00.0",
         .other = "0000:10:00.0",
         .distance = "PHB"},
        {.key = "topology.gpu_nic",
         .gpu = "0000:21:00.0",
         .other = "0000:04:00.0",
         .distance = "NODE"},
        {.key = "topology.gpu_nic",
         .gpu = "0000:03:00.0",
         .other = "0000:81:00.0",
         .distance = "SYS"},
        {.key = "topology.gpu_gpu",
         .gpu = "0000:03:00.0",
         .other = "0000:07:00.0",
         .distance = "PXB"},
        {.key = "topology.gpu_gpu",
         .gpu = "0000:03:00.0",
         .other = "0000:21:00.0",
         .distance = "NODE"},
        {.key = "topology.gpu_nic",
         .gpu = "0000:11:00.0",
         .other = "0000:04:00.0",
         .distance = "no such pair"},
    };
    capture_environ("{}");
    capture_copy(CAPTURED, TWO_PACKAGES);
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(distance(facts, cases[i].key, cases[i].gpu, cases[i].other),
                         cases[i].distance, "%s %s: %s", cases[i].gpu, cases[i].other,
                         distance(facts, cases[i].key, cases[i].gpu, cases[i].other));
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "topology.gpu_nic")), 9);
    shk_facts_destroy(facts);
}

/* The same machine as hwloc 3 writes it: other version, device types as bits, unknown elements. */
Test(topology, xml_of_hwloc_3)
{
    capture_environ("{}");
    capture_copy(CAPTURED, SHK_TESTS_DIR "/unit/probes/two_packages_v3.xml");
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    cr_assert_eq(json_array_size(shk_facts_get_array(facts, "topology.devices")), 6, "%s",
                 fact_text(facts, "topology.devices"));
    char was[8192];
    snprintf(was, sizeof was, "%s", fact_text(facts, "topology.devices"));
    shk_facts_destroy(facts);
    capture_copy(CAPTURED, TWO_PACKAGES);
    facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    cr_expect_str_eq(was, fact_text(facts, "topology.devices"));
    shk_facts_destroy(facts);
}

Test(topology, lowered_only_from_3_to_2)
{
    char xml[] = "<topology version=\"3.1\"><o osdev_type=\"12\"/><o osdev_type=\"48\"/>"
                 "<o osdev_type=\"x\"/><o osdev_type=\"1\"/><o osdev_type=\"8\"/></topology>";
    char older[] = "<topology version=\"2.0\"><o osdev_type=\"5\"/></topology>";
    char newer[] = "<topology version=\"4.0\"></topology>";
    char *untouched = strdup(xml);
    cr_expect_not(shk_topology_xml_lower(xml, 3));
    cr_expect_str_eq(xml, untouched);
    free(untouched);
    cr_expect(shk_topology_xml_lower(xml, 2));
    cr_expect_str_eq(xml,
                     "<topology version=\"2.1\"><o osdev_type=\"1 \"/><o osdev_type=\"3 \"/>"
                     "<o osdev_type=\"x\"/><o osdev_type=\"0\"/><o osdev_type=\"5\"/></topology>");
    cr_expect_not(shk_topology_xml_lower(older, 2));
    cr_expect_str_eq(older, "<topology version=\"2.0\"><o osdev_type=\"5\"/></topology>");
    cr_expect_not(shk_topology_xml_lower(newer, 2));
}

Test(topology, devices_and_summary)
{
    capture_environ("{}");
    capture_copy(CAPTURED, TWO_PACKAGES);
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "topology.summary"),
                     "{\"bridges\":14,\"cores\":2,\"memory\":2147483648,\"numa_nodes\":2,"
                     "\"packages\":2,\"pci_devices\":7,\"pus\":4}");
    json_t *devices = shk_facts_get_array(facts, "topology.devices");
    cr_assert_eq(json_array_size(devices), 6);
    json_t *nic = json_array_get(devices, 1);
    cr_expect_str_eq(json_string_value(json_object_get(nic, "kind")), "nic");
    cr_expect_str_eq(json_string_value(json_object_get(nic, "vendor")), "0x15b3");
    cr_expect_str_eq(json_string_value(json_object_get(nic, "cpus")), "0-1");
    cr_expect_eq(json_integer_value(json_object_get(nic, "numa")), 0);
    cr_expect_str_eq(
        json_string_value(json_object_get(json_array_get(json_object_get(nic, "os"), 1), "name")),
        "mlx5_0");
    cr_expect_str_eq(fact_text(facts, "topology.source"), "\"/.shakedown/topology.xml\"");
    cr_expect_not_null(strstr(fact_text(facts, "topology.xml"), "<topology version="));
    shk_facts_destroy(facts);
}

Test(topology, broken_xml_never_means_this_machine)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {.name = "empty", .text = ""},
        {.name = "text", .text = "not XML at all\n"},
        {.name = "cut", .text = "<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><object type="},
        {.name = "no objects", .text = "<topology version=\"2.0\"></topology>"},
        {.name = "far future", .text = "<topology version=\"9.0\"></topology>"},
    };
    capture_environ("{}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        capture_text(CAPTURED, cases[i].text);
        struct shk_facts *facts =
            probe_facts(&shk_probe_topology, capture_root, NULL, false, -EINVAL);
        cr_expect_not_null(strstr(fact_text(facts, "topology.devices"), "failed: /.shakedown/"),
                           "%s: %s", cases[i].name, fact_text(facts, "topology.devices"));
        cr_expect_str_eq(fact_text(facts, "topology.xml"), "missing");
        shk_facts_destroy(facts);
    }
}

Test(topology, capture_without_one)
{
    capture_environ("{}");
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    cr_expect_not_null(strstr(fact_text(facts, "topology.summary"), "failed: the capture has"));
    cr_expect_not_null(strstr(fact_text(facts, "topology.gpu_nic"), "failed: the capture has"));
    shk_facts_destroy(facts);
}

Test(topology, captured_sysfs)
{
    capture_environ("{}");
    capture_text("sys/devices/system/cpu/online", "0-1\n");
    capture_text("sys/devices/system/cpu/possible", "0-1\n");
    for (int cpu = 0; cpu < 2; cpu++) {
        static const char *const names[] = {"core_cpus", "thread_siblings", "package_cpus",
                                            "core_siblings"};
        char name[128], mask[8];
        for (size_t k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/%s", cpu, names[k]);
            snprintf(mask, sizeof mask, "%x\n", k < 2 ? 1u << cpu : 3u);
            capture_text(name, mask);
        }
    }
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "topology.source"), "\"/sys\"");
    json_t *summary = shk_facts_get_object(facts, "topology.summary");
    cr_expect_eq(json_integer_value(json_object_get(summary, "pus")), 2);
    cr_expect_eq(json_integer_value(json_object_get(summary, "pci_devices")), 0);
    cr_expect_str_eq(fact_text(facts, "topology.devices"), "[]");
    shk_facts_destroy(facts);
}

Test(topology, live_host_without_the_job_s_settings)
{
    /* meant for the job's own hwloc, not for ours */
    setenv("HWLOC_SYNTHETIC", "pack:7 core:3 pu:1", 1);
    setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
    struct shk_facts *facts = probe_facts(&shk_probe_topology, NULL, NULL, false, 0);
    json_t *summary = shk_facts_get_object(facts, "topology.summary");
    cr_expect_neq(json_integer_value(json_object_get(summary, "pus")), 21);
    cr_expect_gt(json_integer_value(json_object_get(summary, "pus")), 0);
    shk_facts_destroy(facts);
}
