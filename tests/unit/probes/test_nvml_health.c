/* What NVML says of the health of its GPUs: every fault of the stand-in reaches its member, what it
 * does not offer is null, and what it refuses is null with a problem. */
#include "libs_support.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(nvml_health, .init = capture_begin, .fini = capture_end, .timeout = 60);

static struct shk_facts *ask(const char *fake, const char *fault)
{
    char path[512];
    struct shk_facts *gpus = shk_facts_create();
    cr_assert_eq(shk_facts_int(gpus, "pci.count.gpu-nvidia", 8, NULL, "test"), 0);
    snprintf(path, sizeof path, FAKES "/%s/libnvidia-ml.so.1", fake);
    setenv("SHAKEDOWN_NVML", path, 1);
    setenv("NVML_FAULT", fault, 1);
    struct shk_facts *facts = probe_facts(&shk_probe_nvml_health, NULL, gpus, false, 0);
    shk_facts_destroy(gpus);
    return facts;
}

static json_t *gpu_of(struct shk_facts *facts, size_t index)
{
    json_t *gpus = shk_facts_get_array(facts, "nvml.health");
    cr_assert_eq(json_array_size(gpus), 8, "%s", fact_text(facts, "nvml.health"));
    return json_array_get(gpus, index);
}

static char *member_text(const json_t *gpu, const char *member)
{
    const json_t *value = json_object_get(gpu, member);
    return value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("missing");
}

static void expect(struct shk_facts *facts, size_t index, const char *member, const char *want,
                   const char *what)
{
    char *text = member_text(gpu_of(facts, index), member);
    cr_expect_str_eq(text, want, "%s: GPU %zu: %s is %s, not %s", what, index, member, text, want);
    free(text);
}

static const struct {
    const char *fault, *member, *healthy, *broken;
} faults[] = {
    {"dram-errors", "ecc_volatile_uncorrected", "0", "3"},
    {"dram-errors", "ecc_volatile_uncorrected_dram", "0", "3"},
    {"sram-errors", "ecc_volatile_uncorrected_sram", "0", "3"},
    {"sram-errors", "ecc_aggregate_uncorrected", "2", "3"},
    {"remap-pending", "remap_pending", "false", "true"},
    {"remap-failure", "remap_failure", "false", "true"},
    {"retired", "retired_pending", "null", "true"},
    {"wants-reset", "recovery_action", "\"none\"", "\"GPU reset\""},
    {"wants-reboot", "recovery_action", "\"none\"", "\"node reboot\""},
    {"wants-peers", "recovery_action", "\"none\"", "\"drain P2P\""},
    {"wants-drain", "recovery_action", "\"none\"", "\"drain and reset\""},
    {"wants-unheard-of", "recovery_action", "\"none\"", "null"},
    {"hw-thermal", "clock_reasons", "[\"idle\"]", "[\"hardware slowdown\",\"HW thermal\"]"},
    {"sw-thermal", "clock_reasons", "[\"idle\"]", "[\"SW thermal\"]"},
    {"power-brake", "clock_reasons", "[\"idle\"]", "[\"hardware slowdown\",\"power brake\"]"},
    {"hw-slowdown", "clock_reasons", "[\"idle\"]", "[\"hardware slowdown\"]"},
    {"power-cap", "clock_reasons", "[\"idle\"]", "[\"power cap\"]"},
    {"changing-clock", "clock_reasons", "[\"idle\"]", "[]"},
    {"hot", "temperature", "34", "90"},
    {"hot", "temperature_margin", "53", "-3"},
    {"power-limit", "power_limit", "700000", "400000"},
    {"prohibited", "compute_mode", "\"default\"", "\"prohibited\""},
    {"exclusive", "compute_mode", "\"default\"", "\"exclusive process\""},
    {"pcie-width", "pcie_width", "16", "8"},
    {"ecc-off", "ecc", "true", "false"},
    {"ecc-off-next", "ecc_pending", "true", "false"},
    {"other-vbios", "vbios", "\"96.00.99.00.01\"", "\"96.00.30.00.01\""},
    {"other-inforom", "inforom", "\"G520.0200.00.05\"", "\"G520.0200.00.03\""},
    {"inforom", "inforom_valid", "true", "false"},
    {"no-gsp", "gsp", "\"550.54.15\"", "null"},
    {"worn-sram", "sram_exceeded", "false", "true"},
    {"worn-sram", "sram_parity", "0", "6"},
    {"repair-channel", "repair_pending", "false", "true"},
    {"repair-tpc", "repair_pending", "false", "true"},
    {"worn-pages", "retired_pages", "null", "63"},
    {"mode-unheard-of", "virtualization", "\"passthrough\"", "null"},
    {"vgpu-licensed", "virtualization", "\"passthrough\"", "\"vGPU\""},
    {"vgpu-licensed", "licence", "null",
     "{\"needed\":true,\"licensed\":true,\"product\":\"NVIDIA Virtual Compute Server\",\"expires\":"
     "\"2026-12-24T18:00:00Z\"}"},
    {"vgpu-unlicensed", "licence", "null",
     "{\"needed\":true,\"licensed\":false,\"product\":\"NVIDIA Virtual Compute "
     "Server\",\"expires\":"
     "null}"},
    {"vgpu-licence-unread", "licence", "null", "null"},
    {"reset-required", "state", "\"answers\"", "\"reset required\""},
    {"lost-later", "state", "\"answers\"", "\"lost\""},
};

Test(nvml_health, faults)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct shk_facts *facts = ask("nvml", faults[i].fault);
        expect(facts, 2, faults[i].member, faults[i].broken, faults[i].fault);
        expect(facts, 5, faults[i].member, faults[i].healthy, faults[i].fault);
        shk_facts_destroy(facts);
    }
}

Test(nvml_health, healthy)
{
    struct shk_facts *facts = ask("nvml", "");
    expect(facts, 7, "pci", "\"0000:df:00.0\"", "healthy");
    expect(facts, 7, "pcie_gen", "1", "healthy");
    expect(facts, 7, "pcie_gen_max", "5", "healthy");
    expect(facts, 7, "pcie_replays", "3", "healthy");
    expect(facts, 7, "remapped_uncorrectable", "1", "healthy");
    expect(facts, 7, "temperature_slowdown", "87", "healthy");
    json_t *links = json_object_get(gpu_of(facts, 7), "links");
    cr_assert_eq(json_array_size(links), 18);
    expect(facts, 7, "problems", "missing", "healthy");
    char *link = json_dumps(json_array_get(links, 4), JSON_COMPACT | JSON_SORT_KEYS);
    cr_expect_str_eq(link, "{\"active\":true,\"crc\":0,\"link\":4,\"recoveries\":0,"
                           "\"recoveries_failed\":null,\"replays\":0,\"speed\":26562}");
    free(link);
    shk_facts_destroy(facts);
}

/* Which link, and how many. */
Test(nvml_health, links)
{
    struct shk_facts *facts = ask("nvml", "slow-link");
    json_t *links = json_object_get(gpu_of(facts, 2), "links");
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(links, 4), "speed")), 12500);
    shk_facts_destroy(facts);
    facts = ask("nvml", "link-errors");
    links = json_object_get(gpu_of(facts, 2), "links");
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(links, 4), "recoveries")), 12);
    shk_facts_destroy(facts);
    facts = ask("nvml_link_down", "");
    links = json_object_get(gpu_of(facts, 5), "links");
    cr_expect(json_is_false(json_object_get(json_array_get(links, 7), "active")));
    shk_facts_destroy(facts);
}

Test(nvml_health, not_offered_and_unread)
{
    static const char *const members[] = {
        "ecc",           "ecc_volatile_uncorrected",
        "remap_pending", "clock_reasons",
        "temperature",   "temperature_margin",
        "power_limit",   "compute_mode",
        "pcie_gen",      "recovery_action",
        "remap_failure", "ecc_pending",
        "power_default", "ecc_volatile_corrected",
        "pcie_replays",  "temperature_slowdown",
        "vbios",         "inforom",
        "inforom_valid", "gsp",
        "sram_exceeded", "repair_pending",
        "retired_pages", "virtualization",
    };
    struct shk_facts *none = ask("nvml", "not-offered"), *old = ask("nvml_old", "");
    struct shk_facts *unread = ask("nvml", "unread");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *problems = json_object_get(gpu_of(unread, 2), "problems");
        const char *why = json_string_value(json_object_get(problems, members[i]));
        expect(none, 2, members[i], "null", "not offered");
        expect(old, 2, members[i], "null", "old driver");
        expect(unread, 2, members[i], "null", "unread");
        cr_expect_str_eq(why ? why : "", "NVML error 999", "%s", members[i]);
    }
    expect(none, 2, "problems", "missing", "not offered");
    expect(old, 2, "problems", "missing", "old driver");
    expect(unread, 3, "problems", "missing", "unread");
    shk_facts_destroy(none);
    shk_facts_destroy(old);
    shk_facts_destroy(unread);
}

Test(nvml_health, a_gpu_without_a_handle_is_lost)
{
    struct shk_facts *facts = ask("nvml_lost", "");
    expect(facts, 3, "state", "\"lost\"", "lost");
    expect(facts, 3, "pci", "null", "lost");
    expect(facts, 3, "ecc", "missing", "lost");
    expect(facts, 4, "state", "\"answers\"", "lost");
    shk_facts_destroy(facts);
    facts = ask("nvml_init_mismatch", "");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.health"),
                              "failed: nvmlInit_v2: Driver/library version mismatch (18)"));
    shk_facts_destroy(facts);
}

/* The longest text that the one function without a length may write has no end of its own. */
Test(nvml_health, a_text_without_an_end)
{
    struct shk_facts *facts = ask("nvml", "endless-gsp");
    const char *text = json_string_value(json_object_get(gpu_of(facts, 2), "gsp"));
    cr_expect_eq(strlen(text ? text : ""), 64);
    shk_facts_destroy(facts);
}

/* What root alone is told is unread for others, and said so. */
Test(nvml_health, told_to_root_only)
{
    setenv("NVML_NOT_ROOT", "1", 1);
    struct shk_facts *facts = ask("nvml", "");
    const json_t *problems = json_object_get(gpu_of(facts, 2), "problems");
    const char *why = json_string_value(json_object_get(problems, "sram_exceeded"));
    cr_expect_str_eq(why ? why : "", "NVML tells it to root only");
    expect(facts, 2, "sram_exceeded", "null", "not root");
    expect(facts, 2, "inforom_valid", "true", "not root");
    shk_facts_destroy(facts);
}

Test(nvml_health, confidential_computing)
{
    static const struct {
        const char *fake, *mode, *want;
    } cases[] = {
        {"nvml", NULL, "absent: these GPUs, or this driver, do not offer it"},
        {"nvml_old", "on", "absent: these GPUs, or this driver, do not offer it"},
        {"nvml", "unread", "failed: NVML error 999"},
        {"nvml", "off",
         "{\"devtools\":false,\"environment\":\"production\",\"multi_gpu\":\"none\",\"on\":"
         "false,\"ready\":null}"},
        {"nvml", "on",
         "{\"devtools\":false,\"environment\":\"production\",\"multi_gpu\":\"none\",\"on\":"
         "true,\"ready\":true}"},
        {"nvml", "devtools", "\"devtools\":true"},
        {"nvml", "not-ready", "\"on\":true,\"ready\":false"},
        {"nvml", "pcie", "\"multi_gpu\":\"protected PCIe\",\"on\":true,\"ready\":true"},
        {"nvml", "ready-unread", "\"ready\":\"NVML error 999\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].mode)
            setenv("NVML_CC", cases[i].mode, 1);
        struct shk_facts *facts = ask(cases[i].fake, "");
        const char *text = fact_text(facts, "nvml.confidential");
        cr_expect_not_null(strstr(text, cases[i].want), "%s: %s", cases[i].mode, text);
        shk_facts_destroy(facts);
    }
}
