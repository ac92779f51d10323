/* The multimem transport against a stand-in driver: sums and stores through multicast addresses,
 * their faults, and that nothing of multicast is called where it is not to be used. */
#include "collectives/gpu/gpu.h"
#include "collectives/layers.h"
#include "core/facts/facts.h"
#include "tests/unit/collectives/gpu_measure.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const nccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libnccl.so.2", NULL};
/* A driver that is older than multicast: none of its functions. */
static const char *const old[] = {SHK_BUILD_DIR "/tests/fakes/gpu_old/libcuda.so.1", NULL};

static const struct shk_gpu_tweaks fakes = {
    .driver_names = cuda, .nccl_names = nccl, .image = "kernels"};

static struct shk_collective_options options_for(unsigned ranks)
{
    return (struct shk_collective_options){
        .ranks = ranks, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = 60000, .brief = true};
}

static void fake_gpus(const char *multicast, const char *fault)
{
    setenv("SHK_FAKE_GPUS", "4", 1);
    setenv("SHK_FAKE_MULTICAST", multicast, 1);
    setenv("SHK_FAKE_FAULT", fault, 1);
}

static struct shk_facts *run_with(const struct shk_collective_options *options,
                                  const struct shk_gpu_tweaks *tweaks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_eq(shk_gpu_run(&shk_transport_multimem, options, tweaks, facts, &err), 0, "%s",
                 err.text);
    return facts;
}

static const char *text(const struct shk_facts *facts, const char *member)
{
    char key[96];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.%s", member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

/* Every size right, and done through the multicast address. */
static void expect_ok(const struct shk_facts *facts)
{
    json_t *sizes = shk_facts_get_array(facts, "collective.multimem.sizes");
    json_t *row = NULL;
    size_t i = 0;

    cr_assert_str_eq(text(facts, "multimem.status"), "ok", "%s", text(facts, "multimem.reason"));
    cr_assert_gt(json_array_size(sizes), 2);
    json_array_foreach(sizes, i, row)
    {
        cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        cr_expect_eq(json_integer_value(json_object_get(row, "in_place_wrong")), 0);
        cr_expect_str_eq(json_string_value(json_object_get(row, "algorithm")), "multimem");
    }
}

Test(multimem, two_to_four_ranks, .timeout = 1200)
{
    unsigned ranks = 0;

    for (ranks = 2; ranks <= 4; ranks++) {
        struct shk_collective_options options = options_for(ranks);
        struct shk_facts *facts = NULL;
        json_t *proof = NULL;

        fake_gpus("1", "");
        options.brief = ranks != 3;
        facts = run_with(&options, &fakes);
        expect_ok(facts);
        proof = shk_facts_get_object(facts, "collective.multimem.proof");
        cr_assert_not_null(proof);
        cr_expect(json_is_true(json_object_get(proof, "multicast")));
        cr_expect_eq(json_integer_value(json_object_get(proof, "devices")), ranks);
        shk_facts_destroy(facts);
    }
}

static const struct fault {
    const char *name, *status, *cause, *reason;
} faults[] = {
    {"mc-create", "failed", "no-multicast", "cuMulticastCreate for 3 GPUs"},
    {"mc-bind", "failed", "no-multicast", "cuMulticastBindMem for 3 GPUs"},
    {"mc-sum", "failed", "no-multicast", "the sum lacks rank"},
    {"mc-store", "failed", "no-multicast", "no store arrived from rank"},
    {"memory", "failed", "out-of-memory", "out of memory"},
    {"corrupt", "wrong", "wrong-result", "instead of"},
    {"overrun", "wrong", "wrong-result", "outside the result"},
    {"crash", "crashed", "rank-ended", "rank"},
};

Test(multimem, every_fault_has_its_name, .timeout = 1200)
{
    struct shk_collective_options options = options_for(3);
    size_t i = 0;

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct shk_facts *facts = NULL;

        fake_gpus("1", faults[i].name);
        facts = run_with(&options, &fakes);
        cr_expect_str_eq(text(facts, "multimem.status"), faults[i].status, "%s: %s: %s",
                         faults[i].name, text(facts, "multimem.status"),
                         text(facts, "multimem.reason"));
        cr_expect_str_eq(text(facts, "multimem.cause"), faults[i].cause, "%s: %s", faults[i].name,
                         text(facts, "multimem.cause"));
        cr_expect_not_null(strstr(text(facts, "multimem.reason"), faults[i].reason), "%s: %s",
                           faults[i].name, text(facts, "multimem.reason"));
        shk_facts_destroy(facts);
    }
}

Test(multimem, hang_ends_at_the_deadline, .timeout = 300)
{
    struct shk_collective_options options = options_for(3);
    struct shk_facts *facts = NULL;

    options.deadline_ms = 3000;
    fake_gpus("1", "mc-hang");
    facts = run_with(&options, &fakes);
    cr_expect_str_eq(text(facts, "multimem.status"), "timeout", "%s",
                     text(facts, "multimem.reason"));
    shk_facts_destroy(facts);
}

/* A call that is not to be made aborts, and that is seen: the tests after it rely on this one. */
Test(multimem, any_call_would_be_seen, .timeout = 300)
{
    struct shk_collective_options options = options_for(3);
    struct shk_facts *facts = NULL;

    fake_gpus("1", "mc-abort");
    facts = run_with(&options, &fakes);
    cr_expect_str_eq(text(facts, "multimem.status"), "crashed");
    shk_facts_destroy(facts);
}

static const struct gate {
    const char *multicast, *enable, *reason;
    unsigned ranks;
} gates[] = {
    {"0", NULL, "has no multicast", 3},  {"0", "1", "has no multicast", 3},
    {"1", "0", "NCCL_NVLS_ENABLE=0", 3}, {"1", "0x0", "NCCL_NVLS_ENABLE=0x0", 3},
    {"1", NULL, "at least 2 ranks", 1},
};

Test(multimem, nothing_is_called_where_it_is_off, .timeout = 600)
{
    size_t i = 0;

    for (i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
        struct shk_collective_options options = options_for(gates[i].ranks);
        struct shk_facts *facts = NULL;

        fake_gpus(gates[i].multicast, "mc-abort");
        unsetenv("NCCL_NVLS_ENABLE");
        if (gates[i].enable != NULL) {
            setenv("NCCL_NVLS_ENABLE", gates[i].enable, 1);
        }
        facts = run_with(&options, &fakes);
        cr_expect_str_eq(text(facts, "multimem.status"), "na", "case %zu: %s: %s", i,
                         text(facts, "multimem.status"), text(facts, "multimem.reason"));
        cr_expect_not_null(strstr(text(facts, "multimem.reason"), gates[i].reason), "case %zu: %s",
                           i, text(facts, "multimem.reason"));
        shk_facts_destroy(facts);
    }
}

/* What NCCL does not take for "off" is not off here either. */
Test(multimem, other_values_leave_it_on, .timeout = 600)
{
    static const char *const values[] = {"1", "2", "", "off"};
    struct shk_collective_options options = options_for(2);
    size_t i = 0;

    options.max_bytes = 64;
    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct shk_facts *facts = NULL;

        fake_gpus("1", "");
        setenv("NCCL_NVLS_ENABLE", values[i], 1);
        facts = run_with(&options, &fakes);
        cr_expect_str_eq(text(facts, "multimem.status"), "ok", "%s: %s", values[i],
                         text(facts, "multimem.reason"));
        shk_facts_destroy(facts);
    }
}

/* One rank whose GPU lacks it is enough: nobody calls anything. */
static void lacks_it(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (phase == SHK_PHASE_START && shk_job_rank(job) == 2) {
        setenv("SHK_FAKE_MULTICAST", "0", 1);
    }
}

Test(multimem, one_gpu_without_it_is_enough, .timeout = 300)
{
    struct shk_collective_options options = options_for(3);
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    fake_gpus("1", "mc-abort");
    tweaks.at_phase = lacks_it;
    facts = run_with(&options, &tweaks);
    cr_expect_str_eq(text(facts, "multimem.status"), "na", "%s", text(facts, "multimem.reason"));
    cr_expect_not_null(strstr(text(facts, "multimem.reason"), "has no multicast"), "%s",
                       text(facts, "multimem.reason"));
    shk_facts_destroy(facts);
}

Test(multimem, driver_without_the_functions, .timeout = 300)
{
    struct shk_collective_options options = options_for(3);
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    fake_gpus("1", "");
    tweaks.driver_names = old;
    facts = run_with(&options, &tweaks);
    cr_expect_str_eq(text(facts, "multimem.status"), "na", "%s", text(facts, "multimem.reason"));
    cr_expect_not_null(strstr(text(facts, "multimem.reason"), "cuM"), "%s",
                       text(facts, "multimem.reason"));
    shk_facts_destroy(facts);
}

static struct shk_facts *run_layers(unsigned ranks)
{
    struct shk_collective_options options = options_for(ranks);
    struct shk_facts *facts = shk_facts_create();
    struct shk_measure measure = {.run = gpu_measure, .arg = (void *)&fakes};
    struct shk_error err = {{0}};

    options.max_bytes = 64;
    cr_assert_eq(shk_layers_run(&options, &measure, facts, &err), 0, "%s", err.text);
    return facts;
}

Test(multimem_long, layers_use_it_from_three_ranks_on, .timeout = 1200)
{
    struct shk_facts *facts = NULL;

    fake_gpus("1", "mc-abort");
    facts = run_layers(2);
    cr_expect_str_eq(text(facts, "nccl-window.status"), "ok");
    cr_expect_str_eq(text(facts, "multimem.status"), "na");
    cr_expect_not_null(strstr(text(facts, "multimem.reason"), "--transport multimem"));
    shk_facts_destroy(facts);

    fake_gpus("1", "");
    facts = run_layers(3);
    cr_expect_str_eq(text(facts, "multimem.status"), "ok", "%s", text(facts, "multimem.reason"));
    shk_facts_destroy(facts);
}
