/* Picture and tree of the topology. */
#include "core/text/strbuf.h"
#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(topo, .timeout = 300);

static void put(struct shk_facts *facts, const char *key, const char *json)
{
    json_t *value = json_loads(json, 0, NULL);
    cr_assert_not_null(value, "%s", json);
    cr_assert_eq(shk_facts_present(facts, key, value, NULL, "test"), 0);
}

/* Two GPUs on two NUMA nodes, one fabric NIC, one that is none; `name` is that of the NIC. */
static void topology(struct shk_facts *facts, const char *class, const char *name)
{
    json_t *nics =
        json_pack("[{s:s,s:s,s:b,s:i,s:[s,s]},{s:s,s:s,s:b,s:i,s:[]}]", "name", name, "pci",
                  "0000:e0:00.0", "fabric", 1, "numa", 0, "gpus", "0000:03:00.0", "0000:83:00.0",
                  "name", "eno1", "pci", "0000:e1:00.0", "fabric", 0, "numa", 0, "gpus");
    cr_assert_eq(shk_facts_present(facts, "topology.nics", nics, NULL, "test"), 0);
    put(facts, "topology.gpus",
        "[{\"name\": \"GPU0\", \"pci\": \"0000:03:00.0\", \"numa\": 0, \"class\": \"PIX\", "
        "\"nic\": \"0000:e0:00.0\"}, {\"name\": \"GPU1\", \"pci\": \"0000:83:00.0\", \"numa\": 1, "
        "\"class\": \"SYS\", \"nic\": \"0000:e0:00.0\"}]");
    put(facts, "topology.gpu_nic",
        "[{\"gpu\": \"0000:03:00.0\", \"nic\": \"0000:e0:00.0\", \"class\": \"PIX\"}]");
    json_t *peers =
        json_pack("[{s:s,s:s,s:s}]", "gpu", "0000:03:00.0", "peer", "0000:83:00.0", "class", class);
    cr_assert_eq(shk_facts_present(facts, "topology.peers", peers, NULL, "test"), 0);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

Test(topo, tree_and_matrix)
{
    struct sample s;
    sample_healthy(&s);
    topology(s.facts[0], "NV18", "hsn0");
    s.options.unicode = true;
    char *text = sample_render(&s, "term");
    cr_expect_null(strstr(text, "Topology"), "only on request: %s", text);
    free(text);
    s.options.verbose = true;
    text = sample_render(&s, "term");
    static const char *const parts[] = {
        "\nTopology  ",
        "  NUMA 0\n",
        "\u251c\u2500 GPU0  0000:03:00.0  PIX to hsn0\n",
        "\u2514\u2500 hsn0  0000:e0:00.0\n",
        "\u2514\u2500 GPU1  0000:83:00.0  SYS to hsn0\n",
        "  GPU0  X     NV18  PIX",
        "  GPU1  NV18  X     -",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect_not_null(strstr(text, parts[i]), "no '%s' in %s", parts[i], text);
    cr_expect_null(strstr(text, "eno1"), "%s", text);
    free(text);
    sample_free(&s);
}

Test(topo, picture)
{
    static const struct {
        const char *class, *has, *lacks;
    } rows[] = {
        {"NV18", "NV18 between all GPUs", "over PCIe"},
        {"XGMI", "<path class=\"bar\"", "over PCIe"},
        {"SYS", "GPUs over PCIe: SYS", "<path class=\"bar\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample s;
        sample_healthy(&s);
        topology(s.facts[0], rows[i].class, "hsn0");
        char *text = sample_render(&s, "html");
        cr_expect_not_null(strstr(text, "aria-label=\"Topology of 2 GPUs and 1 NICs\""), "%s",
                           rows[i].class);
        cr_expect_not_null(strstr(text, rows[i].has), "%s", rows[i].class);
        cr_expect_null(strstr(text, rows[i].lacks), "%s", rows[i].class);
        cr_expect_eq(count(text, "<path class=\"rail near\""), 1);
        cr_expect_eq(count(text, "<path class=\"rail far\""), 1);
        cr_expect_eq(count(text, "<rect class=\"gpu\""), 2);
        cr_expect_eq(count(text, "<rect class=\"nic\""), 1);
        free(text);
        sample_free(&s);
    }
}

/* What is broken is red, and says what; what was not read is neither. */
Test(topo, broken_links_are_red)
{
    static const struct {
        const char *key, *value, *has;
    } rows[] = {
        {"cxi.devices", "[{\"pci\": \"0000:e0:00.0\", \"link_state\": \"down\"}]", "link down"},
        {"rdma.devices",
         "[{\"pci\": \"0000:e0:00.0\", \"ports\": [{\"state\": \"INIT\", \"rate\": 400}]}]",
         "port INIT"},
        {"pci.devices", "[{\"addr\": \"0000:03:00.0\", \"link_width\": 8, \"max_link_width\": 16}]",
         "PCIe x8 of x16"},
        {"nvml.devices",
         "[{\"pci\": \"0000:03:00.0\", \"links\": [{\"active\": true}, {\"active\": true}]},"
         " {\"pci\": \"0000:83:00.0\", \"links\": [{\"active\": true}, {\"active\": false}]}]",
         "1 of 2 NVLinks"},
        {"cxi.devices",
         "[{\"pci\": \"0000:e0:00.0\", \"link_state\": \"up\", \"link_speed\": \"BS_200G\"}]",
         NULL},
        {"rdma.devices", "[{\"pci\": \"0000:e0:00.0\", \"ports\": [{\"rate\": 400}]}]", NULL},
        {"rdma.devices",
         "[{\"pci\": \"0000:e0:00.0\", \"ports\": [{\"state\": \"DOWN\"}, {\"state\": "
         "\"ACTIVE\", \"rate\": 200}]}]",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample s;
        sample_healthy(&s);
        topology(s.facts[0], "NV2", "hsn0");
        shk_facts_present(s.facts[0], rows[i].key, json_loads(rows[i].value, 0, NULL), NULL,
                          "test");
        char *text = sample_render(&s, "html");
        if (rows[i].has)
            cr_expect_not_null(strstr(text, rows[i].has), "%s", rows[i].has);
        cr_expect_eq(count(text, " broken\" x=") > 0, rows[i].has != NULL, "%s", rows[i].value);
        free(text);
        sample_free(&s);
    }
}

Test(topo, nodes_that_are_alike_are_drawn_once)
{
    struct sample s;
    sample_cluster(&s);
    cr_assert_eq(s.report.nodes, 3);
    topology(s.facts[0], "NV18", "hsn0");
    topology(s.facts[1], "NV12", "hsn0");
    topology(s.facts[2], "NV18", "hsn0");
    char *text = sample_render(&s, "html");
    cr_expect_eq(count(text, "<svg class=\"topology\""), 2);
    cr_expect_eq(count(text, "<p>2 nodes: nid[001234,001236]</p>"), 1, "%s", text);
    free(text);
    sample_free(&s);
}

Test(topo, nothing_without_gpus)
{
    struct sample s;
    sample_healthy(&s);
    s.options.verbose = true;
    for (int i = 0; i < 2; i++) {
        char *term = sample_render(&s, "term"), *html = sample_render(&s, "html");
        cr_expect_null(strstr(term, "Topology"));
        cr_expect_null(strstr(html, "class=\"topology\""));
        free(term);
        free(html);
        put(s.facts[0], "topology.gpus", "[{\"name\": 7}, null, {}, {\"pci\": []}]");
        put(s.facts[0], "topology.peers", "[{\"gpu\": 1, \"peer\": {}}, 4]");
        put(s.facts[0], "topology.nics", "[[], {\"name\": \"x\"}]");
    }
    sample_free(&s);
}

Test(topo, hostile_names)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_healthy(&s);
        s.options.verbose = true;
        json_t *probe = json_string(hostile_texts[i].text);
        bool utf8 = probe != NULL;
        json_decref(probe);
        topology(s.facts[0], utf8 ? hostile_texts[i].text : "NV18",
                 utf8 ? hostile_texts[i].text : "hsn0");
        char *term = sample_render(&s, "term"), *html = sample_render(&s, "html");
        hostile_expect_clean(hostile_texts[i].name, term);
        hostile_expect_clean(hostile_texts[i].name, html);
        cr_expect_eq(count(html, "<script"), 1, "%s", hostile_texts[i].name);
        free(term);
        free(html);
        sample_free(&s);
    }
}

Test(topo, more_than_any_machine_has)
{
    struct sample s;
    sample_healthy(&s);
    json_t *gpus = json_array(), *nics = json_array();
    for (int i = 0; i < 100; i++) {
        json_array_append_new(
            gpus, json_pack("{s:o,s:o,s:i,s:n,s:n}", "name", json_sprintf("GPU%d", i), "pci",
                            json_sprintf("0000:%02x:00.0", i), "numa", i, "class", "nic"));
        json_array_append_new(
            nics, json_pack("{s:o,s:o,s:b,s:i,s:[]}", "name", json_sprintf("nic%d", i), "pci",
                            json_sprintf("0001:%02x:00.0", i), "fabric", 1, "numa", i, "gpus"));
    }
    cr_assert_eq(shk_facts_present(s.facts[0], "topology.gpus", gpus, NULL, "test"), 0);
    cr_assert_eq(shk_facts_present(s.facts[0], "topology.nics", nics, NULL, "test"), 0);
    s.options.verbose = true;
    char *term = sample_render(&s, "term"), *html = sample_render(&s, "html");
    cr_expect_not_null(strstr(html, "Topology of 32 GPUs and 64 NICs"));
    cr_expect_not_null(strstr(term, "no NIC"));
    free(term);
    free(html);
    sample_free(&s);
}

/* Of two cards of one kind that GPUs take, the slower one is red. */
Test(topo, slow_links_are_red)
{
    static const struct {
        const char *second; /* device number of the second card */
        bool taken, red;
    } rows[] = {{"0x0501", true, true}, {"0x1021", true, false}, {"0x0501", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample s;
        sample_healthy(&s);
        topology(s.facts[0], "NV2", "hsn0");
        put(s.facts[0], "topology.nics",
            "[{\"name\": \"hsn0\", \"pci\": \"0000:e0:00.0\", \"fabric\": true, \"numa\": 0},"
            " {\"name\": \"hsn1\", \"pci\": \"0000:e1:00.0\", \"fabric\": true, \"numa\": 1}]");
        if (rows[i].taken)
            put(s.facts[0], "topology.gpus",
                "[{\"name\": \"GPU0\", \"pci\": \"0000:03:00.0\", \"numa\": 0, \"class\": "
                "\"PIX\", \"nic\": \"0000:e0:00.0\"}, {\"name\": \"GPU1\", \"pci\": "
                "\"0000:83:00.0\", \"numa\": 1, \"class\": \"PIX\", \"nic\": \"0000:e1:00.0\"}]");
        put(s.facts[0], "cxi.devices",
            "[{\"pci\": \"0000:e0:00.0\", \"link_state\": \"up\", \"link_speed\": \"BS_100G\"},"
            " {\"pci\": \"0000:e1:00.0\", \"link_state\": \"up\", \"link_speed\": \"BS_200G\"}]");
        json_t *pci = json_pack("[{s:s,s:s,s:s},{s:s,s:s,s:s}]", "addr", "0000:e0:00.0", "vendor",
                                "0x17db", "device", "0x0501", "addr", "0000:e1:00.0", "vendor",
                                "0x17db", "device", rows[i].second);
        cr_assert_eq(shk_facts_present(s.facts[0], "pci.devices", pci, NULL, "test"), 0);
        char *text = sample_render(&s, "html");
        cr_expect_eq(strstr(text, "100 of 200 Gb/s") != NULL, rows[i].red, "case %zu: %s", i, text);
        cr_expect_eq(count(text, "<rect class=\"nic broken\""), rows[i].red, "case %zu", i);
        cr_expect_eq(count(text, "<path class=\"rail broken\""), rows[i].red, "case %zu", i);
        free(text);
        sample_free(&s);
    }
}
