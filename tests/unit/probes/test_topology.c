#include "libs_support.h"
#include "probes/registry.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

TestSuite(topology, .init = capture_begin, .fini = capture_end, .timeout = 30);

#define SETS(cpus, nodes)                                                                          \
    "cpuset=\"" cpus "\" complete_cpuset=\"" cpus "\" nodeset=\"" nodes                            \
    "\" complete_nodeset=\"" nodes "\" "
#define OBJECT(type, index, gp, cpus, nodes)                                                       \
    "<object type=\"" type "\" os_index=\"" index "\" " SETS(cpus, nodes) "gp_index=\"" gp "\""
#define HOST_BRIDGE(gp, buses)                                                                     \
    "<object type=\"Bridge\" gp_index=\"" gp "\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\""    \
    "0000:[" buses "]\">"
#define BRIDGE(gp, depth, address, buses)                                                          \
    "<object type=\"Bridge\" gp_index=\"" gp "\" bridge_type=\"1-1\" depth=\"" depth               \
    "\" bridge_pci=\"0000:[" buses "]\" pci_busid=\"0000:" address                                 \
    "\" pci_type=\"0604 [1000:c010] [0000:0000] 00\" pci_link_speed=\"0.0\">"
#define DEVICE(gp, address, type)                                                                  \
    "<object type=\"PCIDev\" gp_index=\"" gp "\" pci_busid=\"0000:" address "\" pci_type=\"" type  \
    " [0000:0000] 00\" pci_link_speed=\"0.0\">"
#define OS_DEVICE(gp, name, type)                                                                  \
    "<object type=\"OSDev\" gp_index=\"" gp "\" name=\"" name "\" osdev_type=\"" type "\"/>"
#define END "</object>"

/* Two packages with one node each. Below the first: a host bridge with a switch of two downstream
 * ports (a GPU and a NIC) beside a second, deeper switch (a GPU), a root port of its own (a NIC),
 * and a board console; below another host bridge a Neuron device. Below the second package: a NIC.
 */
static const char two_packages[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology "
                                   "SYSTEM \"hwloc2.dtd\">\n"
                                   "<topology version=\"2.0\">"
                                   "<object type=\"Machine\" os_index=\"0\" " SETS("0x0000000f", "0"
                                                                                                 "x"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "0"
                                                                                                 "3") "allowed_cpuset=\"0x0000000f\" allowed_nodeset=\"0x00000003\" gp_index=\"1\">" OBJECT("Package",
                                                                                                                                                                                            "0",
                                                                                                                                                                                            "2",
                                                                                                                                                                                            "0x00000003", "0x00000001") ">" OBJECT("NUMANode",
                                                                                                                                                                                                                                   "0", "3", "0x00000003", "0x00000001") " local_memory=\"1073741824\"/>" OBJECT("Core", "0", "4", "0x00000003", "0x00000001") ">" OBJECT("PU",
                                                                                                                                                                                                                                                                                                                                                                          "0", "5", "0x00000001", "0x00000001") "/>" OBJECT("PU",
                                                                                                                                                                                                                                                                                                                                                                                                                            "1",
                                                                                                                                                                                                                                                                                                                                                                                                                            "6",
                                                                                                                                                                                                                                                                                                                                                                                                                            "0x00000002", "0x00000001") "/>" END HOST_BRIDGE("20",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "00-1f") BRIDGE("21",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "1",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "00:01.0", "01-0f") BRIDGE("22",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "2", "01:00.0", "02-0f") BRIDGE("23",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "3",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "02:00.0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "03-03") DEVICE("30",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "03:00.0", "0302 [10de:2330]") OS_DEVICE("31",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "renderD128", "1") END END BRIDGE("24",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "3",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "02:01.0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "04-04") DEVICE("32",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "04:00.0",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "0200 [15b3:1021]")
                                       OS_DEVICE("33", "hsn0", "2") OS_DEVICE("34", "mlx5_0", "3") END END BRIDGE("25", "3", "02:02.0", "05-07") BRIDGE("26", "4", "05:00.0", "06-07") BRIDGE("27", "5", "06:00.0", "07-07") DEVICE(
                                           "35",
                                           "07:00.0",
                                           "0302 [10de:2330]") END END END END END END BRIDGE("28", "1", "00:02.0", "10-10")
                                           DEVICE("36", "10:00.0", "0200 [17db:0501]") END END BRIDGE("29", "1", "00:03.0", "11-11") DEVICE("37", "11:00.0", "0300 [1a03:2000]") END END END HOST_BRIDGE(
                                               "40",
                                               "20-2f") BRIDGE("41", "1", "20:01.0", "21-21")
                                               DEVICE(
                                                   "42",
                                                   "21:00.0",
                                                   "0880 [1d0f:7264]") END END END END
                                                   OBJECT("Package", "1", "50", "0x0000000c", "0x00000002") ">" OBJECT(
                                                       "NUMANode",
                                                       "1", "51",
                                                       "0x0000000c",
                                                       "0x00000002") " local_"
                                                                     "memory="
                                                                     "\"1073741"
                                                                     "824\"/"
                                                                     ">" OBJECT("Core", "1", "52", "0x0000000c", "0x00000002") ">" OBJECT(
                                                                         "PU",
                                                                         "2", "53",
                                                                         "0x00000004",
                                                                         "0x00000002") "/>" OBJECT("PU",
                                                                                                   "3",
                                                                                                   "54",
                                                                                                   "0x00000008",
                                                                                                   "0x00000002") "/>" END
                                                                         HOST_BRIDGE(
                                                                             "60",
                                                                             "80-8f") BRIDGE("6"
                                                                                             "1",
                                                                                             "1",
                                                                                             "8"
                                                                                             "0"
                                                                                             ":"
                                                                                             "0"
                                                                                             "1"
                                                                                             "."
                                                                                             "0",
                                                                                             "8"
                                                                                             "1"
                                                                                             "-"
                                                                                             "8"
                                                                                             "1")
                                                                             DEVICE(
                                                                                 "62", "81:00.0",
                                                                                 "0200 [1d0f:efa2]")
                                                                                 END END END END END
    "</topology>\n";

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
    capture_text(".shakedown/topology.xml", two_packages);
    struct shk_facts *facts = probe_facts(&shk_probe_topology, capture_root, NULL, false, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(distance(facts, cases[i].key, cases[i].gpu, cases[i].other),
                         cases[i].distance, "%s %s: %s", cases[i].gpu, cases[i].other,
                         distance(facts, cases[i].key, cases[i].gpu, cases[i].other));
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "topology.gpu_nic")), 9);
    shk_facts_destroy(facts);
}

Test(topology, devices_and_summary)
{
    capture_environ("{}");
    capture_text(".shakedown/topology.xml", two_packages);
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
        capture_text(".shakedown/topology.xml", cases[i].text);
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
