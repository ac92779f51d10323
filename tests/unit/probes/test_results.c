/* Results of other tools: each format, healthy and with a fault, and files that lie on a node. */
#include "hosttree.h"
#include "probes/tools/results.h"

TREE_SUITE(results);

#define CXI(word)                                                                                  \
    "cxi1\n---------- Health Check Summary ----------\nCheck: pci_check  Result: Pass\n"           \
    "Check: link_flap_check  Result: " word "\nCheck: ping_check  Result: Skip\n"
#define DCGM(root, where, word)                                                                    \
    "{\"" root "\": {\"test_categories\": [{\"tests\": [{\"name\": \"software\", \"results\": "    \
    "[{" where ", \"status\": \"" word                                                             \
    "\", \"warnings\": [{\"warning\": \"mode is off\"}]}]}]}]}}"

static const struct {
    const char *text, *id, *result;
    size_t count;
} cases[] = {
    {CXI("Pass"), "cxi_healthcheck/link_flap_check/cxi1", "pass", 3},
    {CXI("Fail"), "cxi_healthcheck/link_flap_check/cxi1", "fail", 3},
    {DCGM("DCGM Diagnostic", "\"entity_group\": \"GPU\", \"entity_id\": 1", "Pass"),
     "dcgmi diag/software/GPU 1", "pass", 1},
    {DCGM("DCGM Diagnostic", "\"entity_group\": \"GPU\", \"entity_id\": 1", "Fail"),
     "dcgmi diag/software/GPU 1", "fail", 1},
    {DCGM("DCGM GPU Diagnostic", "\"gpu_ids\": \"0,1\"", "Warn"), "dcgmi diag/software/GPU 0,1",
     "warn", 1},
    /* what dcgmi/Diag.cpp of DCGM 4 writes: of each GPU, and in the summary of none */
    {"{\n\t\"DCGM Diagnostic\" : \n\t{\n\t\t\"test_categories\" : \n\t\t[\n\t\t\t{\n\t\t\t\t"
     "\"category\" : \"Deployment\",\n\t\t\t\t\"tests\" : \n\t\t\t\t[\n\t\t\t\t\t{\n\t\t\t\t\t\t"
     "\"name\" : \"software\",\n\t\t\t\t\t\t\"results\" : \n\t\t\t\t\t\t[\n\t\t\t\t\t\t\t{\n"
     "\"entity_group\" : \"GPU\",\n\"entity_group_id\" : 1,\n\"entity_id\" : 0,\n\"status\" : "
     "\"Pass\"\n}\n],\n\"test_summary\" : \n{\n\"status\" : \"Fail\",\n\"warnings\" : \n[\n{\n"
     "\"error_category\" : 7,\n\"error_id\" : 37,\n\"error_severity\" : 2,\n\"warning\" : \"Fabric "
     "Manager is not running.\"\n}\n]\n}\n}\n]\n}\n]\n},\n\"entity_groups\" : \n[\n{\n\"entities\" "
     ": "
     "[],\n\"entity_group\" : \"GPU\"\n}\n],\n\"metadata\" : \n{\n\"Driver Version Detected\" : "
     "\"580.65.06\",\n\"version\" : \"4.4.1\"\n}\n}\n",
     "dcgmi diag/software/", "fail", 2},
    /* all of its tests on several nodes, dcgmi/MnDiag.cpp */
    {"{\"DCGM Diagnostic\": \"DCGM Multi-Node Diagnostic\", \"hosts\": [], \"test_categories\": "
     "[{\"category\": \"Multi-Node Tests\", \"tests\": [{\"name\": \"mnubergemm\", \"status\": "
     "\"Fail\", \"test_summary\": {\"status\": \"Fail\"}, \"mpi_error\": {\"warning\": \"Error: no "
     "route\"}}]}]}",
     "dcgmi diag/mnubergemm/", "fail", 1},
    {"{\"iterations\": [" DCGM("DCGM Diagnostic", "\"entity_group\": \"GPU\", \"entity_id\": 1",
                               "Pass") ", " DCGM("DCGM Diagnostic",
                                                 "\"entity_group\": \"GPU\", \"entity_id\": 1",
                                                 "Fail") "]}",
     "dcgmi diag/software/GPU 1", "fail", 1},
    /* rvs since 1.0: gst, tst and edp */
    {"[RESULT] [ 74412.123456] Action name :gst-581Tflops-4K4K8K-trig-fp8\n"
     "[RESULT] [ 74413.123456] [gst-581Tflops-4K4K8K-trig-fp8] [GPU:: 21423] GFLOPS 601234 Target "
     "GFLOPS: 581000 met: TRUE\n",
     "rvs/gst-581Tflops-4K4K8K-trig-fp8/21423", "pass", 1},
    {"[RESULT] [ 74413.123456] [gst-581Tflops] [GPU::  9743] GFLOPS 401234 Target GFLOPS: 581000 "
     "met: FALSE\n",
     "rvs/gst-581Tflops/9743", "fail", 1},
    {"[RESULT] [ 74413.123456] [tst-1] [GPU:: 21423] pass: FALSE\n", "rvs/tst-1/21423", "fail", 1},
    {"[RESULT] [ 74413.123456] [edp-1] [GPU:: 21423] Target stress : 9.5 met :TRUE\n",
     "rvs/edp-1/21423", "pass", 1},
    {"-I- Stage                     Warnings   Errors     Comment\n"
     "-I- Discovery                 3          0\n-I- Links Check               0          1\n\n"
     "-I- You can find detailed errors in: x\n",
     "ibdiagnet/Links Check/", "fail", 2},
    {"-I- Stage                     Warnings   Errors     Comment\n"
     "-I- Discovery                 3          0\n",
     "ibdiagnet/Discovery/", "warn", 1},
    {"[RESULT] [497544.637462] [action_1] gst 50599 pass: TRUE\n", "rvs/gst action_1/50599", "pass",
     1},
    {"[RESULT] [497544.637462] [action_1] gst 50599 pass: TRUE\n"
     "[RESULT] [497545.637462] [action_1] gst 50599 pass: FALSE\n",
     "rvs/gst action_1/50599", "fail", 1},
    {"# TYPE smartmon_device_smart_healthy gauge\nsmartmon_device_smart_healthy{disk=\"sda\"} 0\n",
     "node_exporter/smartmon_device_smart_healthy/disk=\"sda\"", "fail", 1},
    {"# TYPE nvme_critical_warning_total counter\nnvme_critical_warning_total{d=\"nvme0\"} 0\n",
     "node_exporter/nvme_critical_warning_total/d=\"nvme0\"", "pass", 1},
};

Test(results, formats)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *list = json_array(), *entry, *found = NULL;
        size_t k;
        cr_expect_eq(shk_results_read(list, cases[i].text, strlen(cases[i].text)), cases[i].count,
                     "%s", cases[i].text);
        json_array_foreach(list, k, entry) if (strcmp(tree_item_text(entry, "id"), cases[i].id) ==
                                               0) found = entry;
        cr_assert_not_null(found, "%s in %s", cases[i].id, cases[i].text);
        cr_expect_str_eq(tree_item_text(found, "result"), cases[i].result, "%s", cases[i].text);
        json_decref(list);
    }
}

Test(results, nothing)
{
    static const char *const others[] = {"[RESULT]",
                                         "[RESULT] [1] [a] pass",
                                         "[RESULT] [1] [a] [GPU:: pass: TRUE",
                                         "[[[[",
                                         "{\"iterations\": 7}",
                                         "{\"DCGM Diagnostic\": []}",
                                         "{\"DCGM Diagnostic\": {\"test_categories\": [[{}], 5]}}",
                                         "",
                                         "{",
                                         "{\"a\": 1}",
                                         "Check: the cable",
                                         "up_healthy 0\n",
                                         "-I- Discovery  3 0\n"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_eq(shk_results_read(list, others[i], strlen(others[i])), 0, "%s", others[i]);
    json_decref(list);
}

/* What a tool found is in the list, however much passed before it. */
Test(results, a_full_list_keeps_what_is_bad)
{
    json_t *list = json_array();
    char text[256];
    for (int i = 0; i < SHK_RESULTS_MOST + 9; i++) {
        snprintf(text, sizeof text, "[RESULT] [1.5] [action_%d] gst 50599 pass: TRUE\n", i);
        (void)shk_results_read(list, text, strlen(text));
    }
    static const char bad[] = "[RESULT] [1.5] [last] gst 50599 pass: FALSE\n";
    (void)shk_results_read(list, bad, strlen(bad));
    cr_expect_eq(json_array_size(list), SHK_RESULTS_MOST);
    json_t *entry, *found = NULL;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "result")), "fail") == 0)
            found = entry;
    }
    cr_assert_not_null(found);
    cr_expect_str_eq(json_string_value(json_object_get(found, "test")), "gst last");
    json_decref(list);
}

Test(results, that_are_cut_are_not_none)
{
    tree_dir("/var/lib");
    tree_put("/var/lib/shakedown/results/diag.json", "%s",
             "{\"DCGM Diagnostic\": {\"test_categories\": [");
    tree_put("/var/tmp/ibdiagnet2/ibdiagnet2.log", "%s", "-I- Stage  Warnings  Errors\n");
    tree_run(&shk_probe_tools);
    const json_t *list = tree_value("tools.results"), *entry;
    size_t i;
    cr_assert_eq(json_array_size(list), 2);
    json_array_foreach((json_t *)list, i, entry)
        cr_expect_not_null(json_object_get(entry, "problems"));
}

/* Why nothing was run is no result. */
Test(results, that_could_not_be_had)
{
    json_t *list = json_array();
    static const char text[] = "{\n\"DCGM Diagnostic\" : \n{\n\"runtime_error\" : \"Unable to "
                               "connect to host engine.\",\n\"version\" : \"4.4.1\"\n}\n}\n";
    cr_assert_eq(shk_results_read(list, text, strlen(text)), 1);
    json_t *entry = json_array_get(list, 0);
    cr_expect(json_is_null(json_object_get(entry, "result")));
    cr_expect_str_eq(tree_item_text(json_object_get(entry, "problems"), "result"),
                     "Unable to connect to host engine.");
    json_decref(list);
}

Test(results, on_a_node)
{
    tree_dir("/var/lib");
    tree_run(&shk_probe_tools);
    expect_absent("tools.results");
    tree_put("/var/lib/shakedown/results/cxi.txt", "%s", CXI("Fail"));
    tree_put("/var/lib/shakedown/results/notes.txt", "%s", "nothing of ours\n");
    tree_run(&shk_probe_tools);
    json_t *entry = tree_item("tools.results", "id", "cxi_healthcheck/link_flap_check/cxi1");
    cr_expect_str_eq(tree_item_text(entry, "result"), "fail");
    cr_expect_str_eq(tree_item_text(entry, "file"), "/var/lib/shakedown/results/cxi.txt");
    cr_expect_eq(tree_item_int(entry, "age_h"), 0);
    tree_mode("/var/lib/shakedown/results/cxi.txt", 0);
    const struct shk_facts *facts = tree_run_unprivileged(&shk_probe_tools);
    const json_t *list = facts ? tree_value("tools.results") : NULL;
    cr_assert_eq(json_array_size(list), 1);
    cr_expect_not_null(json_object_get(json_array_get(list, 0), "problems"));
}
