/* NVML and the CUDA driver, by stand-ins with one fault each. */
#include "core/run/isolate.h"
#include "libs_support.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(nvidia, .init = capture_begin, .fini = capture_end, .timeout = 300);

static void use(const char *variable, const char *fake, const char *file)
{
    char path[512];
    snprintf(path, sizeof path, FAKES "/%s/%s", fake, file);
    setenv(variable, path, 1);
}

static struct shk_facts *known(const char *state)
{
    struct shk_facts *facts = shk_facts_create();
    if (strcmp(state, "absent") == 0)
        cr_assert_eq(shk_facts_absent(facts, "pci.count.gpu-nvidia", "test", "none"), 0);
    else
        cr_assert_eq(shk_facts_int(facts, "pci.count.gpu-nvidia", 8, NULL, "test"), 0);
    return facts;
}

static struct shk_facts *ask_nvml(const char *fake)
{
    struct shk_facts *gpus = known("present");
    use("SHAKEDOWN_NVML", fake, "libnvidia-ml.so.1");
    struct shk_facts *facts = probe_facts(&shk_probe_nvml, NULL, gpus, false, 0);
    shk_facts_destroy(gpus);
    return facts;
}

Test(nvidia, nvml_healthy)
{
    struct shk_facts *facts = ask_nvml("nvml");
    json_t *gpus = shk_facts_get_array(facts, "nvml.devices"), *gpu = json_array_get(gpus, 7);
    cr_expect_str_eq(fact_text(facts, "nvml.driver"), "\"550.54.15\"");
    cr_assert_eq(json_array_size(gpus), 8);
    cr_expect_str_eq(json_string_value(json_object_get(gpu, "pci")), "0000:df:00.0");
    cr_expect_eq(json_integer_value(json_object_get(gpu, "memory")), 85520809984LL);
    cr_expect(json_is_null(json_object_get(gpu, "mig")));
    cr_expect_eq(json_array_size(json_object_get(gpu, "links")), 18);
    json_t *link = json_array_get(json_object_get(gpu, "links"), 1);
    cr_expect(json_is_true(json_object_get(link, "active")));
    cr_expect_str_eq(json_string_value(json_object_get(link, "remote")), "switch");
    cr_expect_str_eq(json_string_value(json_object_get(link, "pci")), "0000:06:00.0");
    json_t *fabric = json_object_get(gpu, "fabric");
    cr_expect_str_eq(json_string_value(json_object_get(fabric, "state")), "completed");
    cr_expect(json_is_false(json_object_get(fabric, "domain")));
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "nvml.p2p")), 28);
    cr_expect_not_null(strstr(fact_text(facts, "nvml.error"), "absent: it answers"));
    cr_expect_not_null(strstr(fact_text(facts, "nvml.lost"), "absent"));
    shk_facts_destroy(facts);
}

Test(nvidia, nvml_faults)
{
    struct shk_facts *facts = ask_nvml("nvml_init_mismatch");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.devices"),
                              "failed: nvmlInit_v2: Driver/library version mismatch (18)"));
    cr_expect_not_null(strstr(fact_text(facts, "nvml.error"), "\"code\":18"));
    shk_facts_destroy(facts);
    facts = ask_nvml("nvml_lost");
    cr_expect_str_eq(fact_text(facts, "nvml.lost"), "1");
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "nvml.devices")), 7);
    shk_facts_destroy(facts);
    facts = ask_nvml("nvml_old");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.p2p"), "failed: this version cannot tell"));
    cr_expect_not_null(strstr(fact_text(facts, "nvml.devices"), "\"fabric\":null"));
    shk_facts_destroy(facts);
    facts = ask_nvml("nvml_p2p_one_way");
    json_t *ways = shk_facts_get_array(facts, "nvml.p2p");
    cr_expect_eq(json_array_size(ways), 29, "the way back says something else");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.p2p"), "\"chipset not supported\""));
    shk_facts_destroy(facts);
    facts = ask_nvml("nvml_p2p_broken");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.p2p"), "\"topology not supported\""));
    shk_facts_destroy(facts);
    facts = ask_nvml("nowhere");
    cr_expect_not_null(strstr(fact_text(facts, "nvml.devices"), "failed: "));
    shk_facts_destroy(facts);
}

/* A link or a fabric state that NVML does not tell is none that is down. */
Test(nvidia, nvml_unread)
{
    struct shk_facts *facts = ask_nvml("nvml_links_unread");
    json_t *gpus = shk_facts_get_array(facts, "nvml.devices"), *gpu = json_array_get(gpus, 5);
    json_t *links = json_object_get(gpu, "links"), *link = json_array_get(links, 7);
    cr_assert_eq(json_array_size(links), 18);
    cr_expect(json_is_null(json_object_get(link, "active")));
    cr_expect_str_eq(
        json_string_value(json_object_get(json_object_get(link, "problems"), "active")),
        "NVML error 999");
    cr_expect(json_is_null(json_object_get(gpu, "fabric")));
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(gpu, "problems"), "fabric")),
                     "NVML error 15");
    cr_expect_null(json_object_get(json_array_get(gpus, 4), "problems"));
    shk_facts_destroy(facts);
}

/* Without NVIDIA hardware nothing is loaded, however broken it is. */
Test(nvidia, not_asked_without_hardware)
{
    struct shk_facts *none = known("absent");
    use("SHAKEDOWN_NVML", "nvml_init_segv", "libnvidia-ml.so.1");
    use("SHAKEDOWN_CUDA", "cuda_init_abort", "libcuda.so.1");
    struct shk_facts *facts = probe_facts(&shk_probe_nvml, NULL, none, false, 0);
    cr_expect_not_null(strstr(fact_text(facts, "nvml.devices"), "absent: no NVIDIA GPU"));
    shk_facts_destroy(facts);
    facts = probe_facts(&shk_probe_cuda, NULL, none, false, 0);
    cr_expect_not_null(strstr(fact_text(facts, "cuda.p2p"), "absent: no NVIDIA GPU"));
    shk_facts_destroy(facts);
    shk_facts_destroy(none);
}

struct death {
    const struct shk_probe *probe;
    const struct shk_facts *known;
};

static int run_probe(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct death *death = arg;
    struct shk_host *host;
    *result_p = json_null();
    int rc = shk_host_open(&host, NULL, err);
    if (rc)
        return rc;
    struct shk_facts *facts = shk_facts_create();
    struct shk_probe_context ctx = {
        .host = host, .known = death->known, .facts = facts, .executes = true};
    rc = death->probe->run(&ctx, err);
    shk_facts_destroy(facts);
    shk_host_close(host);
    return rc;
}

Test(nvidia, a_dead_library_is_named)
{
    static const struct {
        const struct shk_probe *probe;
        const char *variable, *fake, *file, *call;
        enum shk_isolate_outcome outcome;
    } cases[] = {
        {&shk_probe_nvml, "SHAKEDOWN_NVML", "nvml_init_segv", "libnvidia-ml.so.1", "nvmlInit_v2",
         SHK_CHILD_SIGNALED},
        {&shk_probe_nvml, "SHAKEDOWN_NVML", "nvml_init_hang", "libnvidia-ml.so.1", "nvmlInit_v2",
         SHK_CHILD_TIMEOUT},
        {&shk_probe_cuda, "SHAKEDOWN_CUDA", "cuda_init_abort", "libcuda.so.1", "cuInit",
         SHK_CHILD_SIGNALED},
        {&shk_probe_cuda, "SHAKEDOWN_CUDA", "cuda_init_hang", "libcuda.so.1", "cuInit",
         SHK_CHILD_TIMEOUT},
    };
    struct shk_facts *gpus = known("present");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct death death = {cases[i].probe, gpus};
        struct shk_isolate_job job = {
            .name = "gpu", .fn = run_probe, .arg = &death, .deadline_ms = 20000};
        if (cases[i].outcome == SHK_CHILD_TIMEOUT)
            job.deadline_ms = 1500;
        struct shk_isolate_result result;
        struct shk_error err;
        use(cases[i].variable, cases[i].fake, cases[i].file);
        cr_assert_eq(shk_isolate_run(&job, &result, 1, 0, &err), 0);
        cr_expect_eq(result.outcome, cases[i].outcome, "%s: %s", cases[i].fake, result.error.text);
        cr_expect_str_eq(result.call, cases[i].call, "%s", cases[i].fake);
        cr_expect_not_null(strstr(result.library, cases[i].file), "%s", result.library);
        shk_isolate_result_clear(&result);
    }
    shk_facts_destroy(gpus);
}

Test(nvidia, cuda)
{
    struct shk_facts *gpus = known("present");
    use("SHAKEDOWN_CUDA", "cuda", "libcuda.so.1");
    struct shk_facts *facts = probe_facts(&shk_probe_cuda, NULL, gpus, false, 0);
    cr_expect_str_eq(fact_text(facts, "cuda.driver"), "\"12.4\"");
    cr_expect_str_eq(fact_text(facts, "cuda.p2p"),
                     "[{\"access\":true,\"atomics\":true,\"gpu\":\"0000:1b:00.0\",\"peer\":"
                     "\"0000:4c:00.0\",\"rank\":1}]");
    json_t *gpu = json_array_get(shk_facts_get_array(facts, "cuda.devices"), 1);
    cr_expect_eq(json_integer_value(json_object_get(gpu, "compute_major")), 9);
    cr_expect(json_is_null(json_object_get(gpu, "multicast")));
    shk_facts_destroy(facts);
    use("SHAKEDOWN_CUDA", "cuda_init_not_ready", "libcuda.so.1");
    facts = probe_facts(&shk_probe_cuda, NULL, gpus, false, 0);
    cr_expect_not_null(strstr(fact_text(facts, "cuda.devices"),
                              "failed: cuInit: system not yet initialized (802)"));
    cr_expect_not_null(strstr(fact_text(facts, "cuda.error"), "\"code\":802"));
    shk_facts_destroy(facts);
    use("SHAKEDOWN_CUDA", "cuda_second_mute", "libcuda.so.1");
    facts = probe_facts(&shk_probe_cuda, NULL, gpus, false, 0);
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "cuda.devices")), 1);
    cr_expect_str_eq(fact_text(facts, "cuda.error"),
                     "{\"call\":\"cuDeviceGetPCIBusId(1)\",\"code\":101,\"text\":\"error\"}",
                     "one that is left out is told of");
    shk_facts_destroy(facts);
    facts = probe_facts(&shk_probe_cuda, NULL, gpus, true, 0);
    cr_expect_not_null(strstr(fact_text(facts, "cuda.devices"), "failed: not asked"));
    shk_facts_destroy(facts);
    shk_facts_destroy(gpus);
}
