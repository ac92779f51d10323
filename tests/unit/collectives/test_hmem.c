/* The fabric all-reduce on GPU memory: a stand-in driver whose memory other processes can reach,
 * and a libfabric that offers FI_HMEM on top of the real one. */
#include "collectives/algorithm/sweep.h"
#include "collectives/fabric/fabric.h"
#include "collectives/gpu/gpu.h"
#include "collectives/layers.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fabric[] = {SHK_BUILD_DIR "/tests/fakes/fabric_hmem/libfabric.so.1", NULL};
static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const hip[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libamdhip64.so", NULL};
static const char *const missing[] = {"libshk-there-is-no-such-library.so.1", NULL};

static const struct shk_gpu_tweaks with_kernels = {.driver_names = cuda, .image = "kernels"};
static const struct shk_gpu_tweaks with_hip = {.driver_names = hip, .hip = true};

static const struct shk_fabric_tweaks fakes = {.library_names = fabric, .gpu = &with_kernels};

static const struct shk_collective_options small = {
    .ranks = 2,
    .min_bytes = 8,
    .max_bytes = 131072,
    .deadline_ms = 60000,
    .provider = "tcp",
};

static struct shk_facts *run_with(const struct shk_collective_options *options,
                                  const struct shk_fabric_tweaks *tweaks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_not_null(facts);
    cr_assert_eq(shk_fabric_hmem_run(options, tweaks, facts, &err), 0, "%s", err.text);
    return facts;
}

static const char *text(const struct shk_facts *facts, const char *member)
{
    const char *value = NULL;
    char key[96];

    snprintf(key, sizeof(key), "collective.fabric-hmem.%s", member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

static const char *hmem_text(const struct shk_facts *facts, const char *object, const char *member)
{
    const json_t *hmem = shk_facts_get_object(facts, "collective.fabric-hmem.hmem");
    const char *value = json_string_value(
        json_object_get(object != NULL ? json_object_get(hmem, object) : hmem, member));

    return value != NULL ? value : "";
}

static bool has_evidence(const struct shk_facts *facts, const char *part)
{
    const json_t *lines = shk_facts_get_array(facts, "collective.fabric-hmem.evidence");
    const json_t *line = NULL;
    bool found = false;
    size_t i = 0;

    json_array_foreach(lines, i, line)
    {
        found = found || strstr(json_string_value(line), part) != NULL;
    }
    return found;
}

static void expect_ok(const struct shk_facts *facts, unsigned ranks)
{
    struct shk_sweep_row rows[SHK_SWEEP_MAX];
    const json_t *sizes = shk_facts_get_array(facts, "collective.fabric-hmem.sizes");
    const json_t *row = NULL;
    size_t i = 0;

    cr_assert_str_eq(text(facts, "status"), "ok", "%s: %s", text(facts, "status"),
                     text(facts, "reason"));
    cr_expect_eq(json_array_size(sizes),
                 shk_sweep_plan(small.min_bytes, small.max_bytes, false, rows));
    json_array_foreach(sizes, i, row)
    {
        cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        cr_expect_gt(json_real_value(json_object_get(row, "time_us")), 0.0);
    }
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "collective.fabric-hmem.devices")),
                 ranks);
    cr_expect(has_evidence(facts, "elements verified"));
}

static void expect_failed(const struct shk_facts *facts, const char *status, const char *cause,
                          const char *phase, const char *reason)
{
    cr_expect_str_eq(text(facts, "status"), status, "%s", text(facts, "reason"));
    cr_expect_str_eq(text(facts, "cause"), cause, "%s", text(facts, "reason"));
    cr_expect_str_eq(text(facts, "phase"), phase, "%s", text(facts, "reason"));
    cr_expect_not_null(strstr(text(facts, "reason"), reason), "%s", text(facts, "reason"));
}

static void healthy(const char *provider, unsigned ranks)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.provider = provider;
    options.ranks = ranks;
    facts = run_with(&options, &fakes);
    expect_ok(facts, ranks);
    cr_expect_str_eq(hmem_text(facts, NULL, "iface"), "FI_HMEM_CUDA");
    cr_expect_str_eq(hmem_text(facts, NULL, "sums"), "on the GPU");
    cr_expect_eq(strncmp(hmem_text(facts, NULL, "host_provider"), provider, 3), 0, "%s",
                 hmem_text(facts, NULL, "host_provider"));
    shk_facts_destroy(facts);
}

Test(hmem_long, tcp_one_to_three_ranks, .timeout = 1200)
{
    unsigned ranks = 0;

    setenv("SHK_FAKE_GPUS", "3", 1);
    for (ranks = 1; ranks <= 3; ranks++) {
        healthy("tcp", ranks);
    }
}

Test(hmem_long, shm_between_two_ranks, .timeout = 600)
{
    healthy("shm", 2);
}

Test(hmem, ranks_share_a_gpu, .timeout = 600)
{
    setenv("SHK_FAKE_GPUS", "1", 1);
    healthy("tcp", 2);
}

Test(hmem_long, notified_by_message, .timeout = 600)
{
    struct shk_collective_options patient = small; /* it takes 20 s on a machine that is not busy */
    struct shk_fabric_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    patient.deadline_ms = 300000;
    tweaks.notify = SHK_NOTIFY_DELIVERY;
    facts = run_with(&patient, &tweaks);
    expect_ok(facts, 2);
    shk_facts_destroy(facts);
}

/* No kernels, as on AMD GPUs and in builds without nvcc. */
Test(hmem, sums_on_the_host_without_kernels, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    tweaks.gpu = &with_hip;
    facts = run_with(&small, &tweaks);
    expect_ok(facts, 2);
    cr_expect_str_eq(hmem_text(facts, NULL, "iface"), "FI_HMEM_ROCR");
    cr_expect_str_eq(hmem_text(facts, NULL, "sums"), "on the host, through copies");
    cr_expect_not_null(strstr(hmem_text(facts, NULL, "driver"), "libamdhip64"));
    cr_expect_str_eq(hmem_text(facts, "effective", "cuda_calls"), "not told");
    shk_facts_destroy(facts);
}

Test(hmem, few_sizes_when_brief, .timeout = 600)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.brief = true;
    facts = run_with(&options, &fakes);
    cr_expect_str_eq(text(facts, "status"), "ok", "%s", text(facts, "reason"));
    /* 8, 64, 512, 4096, 32768, 131072, and int32 twice */
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "collective.fabric-hmem.sizes")), 8);
    shk_facts_destroy(facts);
}

/* What is asked for, and what the provider says to it. */
Test(hmem, requested_and_effective, .timeout = 600)
{
    struct shk_facts *facts = run_with(&small, &fakes);

    expect_ok(facts, 2);
    cr_expect_str_eq(hmem_text(facts, "requested", "p2p"), "required");
    cr_expect_str_eq(hmem_text(facts, "effective", "answer"), "Operation not supported");
    cr_expect_str_eq(hmem_text(facts, "effective", "p2p"), "enabled: the provider decides");
    cr_expect_str_eq(hmem_text(facts, "effective", "cuda_calls"), "needed");
    shk_facts_destroy(facts);
    setenv("SHK_FAKE_HMEM_P2P", "1", 1);
    facts = run_with(&small, &fakes);
    expect_ok(facts, 2);
    cr_expect_str_eq(hmem_text(facts, "effective", "answer"), "accepted");
    cr_expect_str_eq(hmem_text(facts, "effective", "p2p"), "required");
    cr_expect_str_eq(hmem_text(facts, "effective", "cuda_calls"), "not needed");
    cr_expect(has_evidence(facts, "FI_HMEM_CUDA; peer to peer requested: required (accepted)"));
    shk_facts_destroy(facts);
}

/* Nothing to test here: with the reason, and no failure. */

static void expect_na(const struct shk_fabric_tweaks *tweaks, const char *reason)
{
    struct shk_facts *facts = run_with(&small, tweaks);

    expect_failed(facts, "na", "", "", reason);
    shk_facts_destroy(facts);
}

Test(hmem, provider_without_it, .timeout = 600)
{
    setenv("SHK_FAKE_HMEM", "none", 1);
    expect_na(&fakes, "provider tcp of libfabric 1.22 offers no FI_HMEM: No data available");
}

Test(hmem, no_driver, .timeout = 600)
{
    struct shk_gpu_tweaks gpu = {.driver_names = missing};
    struct shk_fabric_tweaks tweaks = {.library_names = fabric, .gpu = &gpu};

    expect_na(&tweaks, missing[0]);
}

Test(hmem, no_gpu, .timeout = 600)
{
    setenv("SHK_FAKE_GPUS", "0", 1);
    expect_na(&fakes, "the driver finds no GPU on this node");
}

Test(hmem, library_that_was_built_without_cuda, .timeout = 600)
{
    setenv("SHK_FAKE_HMEM", "nosys", 1);
    expect_na(&fakes, "was built without FI_HMEM_CUDA: fi_mr_regattr: Function not implemented");
}

/* The real library here, without a GPU of its own: whatever it answers is a reason. */
Test(hmem, real_library_without_cuda, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = {.gpu = &with_kernels};

    expect_na(&tweaks, "FI_HMEM");
}

/* Planted faults. */

static const struct refusal {
    const char *fault;
    const char *known; /* the library was built for CUDA */
    const char *status;
    const char *cause;
    const char *reason;
} refusals[] = {
    {"refuse", "0", "failed", "hmem-registration", "fi_mr_regattr of "},
    {"nosys", "1", "failed", "hmem-interface", "(FI_HMEM_CUDA, provider tcp"},
    {"crash", "0", "crashed", "hmem-failed", "libfabric.so.1: fi_mr_regattr"},
    {"hang", "0", "timeout", "hmem-failed", "fi_mr_regattr"},
};

Test(hmem, registration_that_fails_is_named, .timeout = 1200)
{
    size_t i = 0;

    setenv("SHK_FAKE_HMEM_RANK", "1", 1);
    for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct shk_collective_options options = small;
        struct shk_facts *facts = NULL;

        setenv("SHK_FAKE_HMEM", refusals[i].fault, 1);
        setenv("SHK_FAKE_HMEM_KNOWN", refusals[i].known, 1);
        options.deadline_ms = strcmp(refusals[i].fault, "hang") == 0 ? 8000 : 60000;
        facts = run_with(&options, &fakes);
        expect_failed(facts, refusals[i].status, refusals[i].cause, "register", refusals[i].reason);
        cr_expect_eq(shk_facts_get_int(facts, "collective.fabric-hmem.rank", -1), 1, "%s",
                     text(facts, "reason"));
        cr_expect_str_eq(hmem_text(facts, NULL, "iface"), "FI_HMEM_CUDA");
        shk_facts_destroy(facts);
    }
}

Test(hmem, wrong_sums_are_wrong, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_FAULT", "corrupt", 1);
    facts = run_with(&small, &fakes);
    expect_failed(facts, "wrong", "hmem-wrong", "verify", "wrong result of 8 B float32: element 0");
    shk_facts_destroy(facts);
}

static void spoil(struct shk_wire *wire, size_t bytes, void *arg)
{
    size_t at = 0;

    memcpy(&at, arg, sizeof(at));
    if (wire->rank == 1 && bytes == 4096) {
        wire->heap->base[wire->heap->offset[SHK_AREA_RECV] + at] = 0x55; /* in no pattern */
    }
}

/* The stand-in's GPU memory is host memory: it can be spoiled like that. */
Test(hmem, damage_in_gpu_memory_is_seen, .timeout = 600)
{
    static const struct {
        size_t at;
        const char *reason;
    } damage[] = {
        {1000, "rank 1: wrong result of 4096 B float32: element 250"},
        {4096, "receive buffer was written to at byte 4096"},
        {131072, "guard zone after the receive buffer overwritten, 0 bytes"},
    };
    size_t i = 0;

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        size_t at = damage[i].at;
        struct shk_fabric_tweaks tweaks = fakes;
        struct shk_facts *facts = NULL;

        tweaks.tamper = spoil;
        tweaks.tamper_arg = &at;
        facts = run_with(&small, &tweaks);
        expect_failed(facts, "wrong", "hmem-wrong", "verify", damage[i].reason);
        shk_facts_destroy(facts);
    }
}

Test(hmem, gpu_that_fails_is_named, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_FAULT", "illegal", 1);
    facts = run_with(&small, &fakes);
    cr_expect_str_eq(text(facts, "status"), "failed");
    cr_expect_str_eq(text(facts, "cause"), "illegal-access", "%s", text(facts, "reason"));
    shk_facts_destroy(facts);
    setenv("SHK_FAKE_FAULT", "memory", 1);
    facts = run_with(&small, &fakes);
    expect_failed(facts, "failed", "out-of-memory", "open", "out of memory");
    shk_facts_destroy(facts);
}

/* Each has a run and facts of its own. */
Test(hmem, crash_leaves_the_result_of_host_memory, .timeout = 600)
{
    struct shk_facts *facts = shk_facts_create();

    setenv("SHK_FAKE_HMEM", "crash", 1);
    cr_assert_eq(shk_fabric_run(&small, &fakes, facts, NULL), 0);
    cr_assert_eq(shk_fabric_hmem_run(&small, &fakes, facts, NULL), 0);
    cr_expect_str_eq(shk_facts_get_text(facts, "collective.fabric.status"), "ok");
    cr_expect_gt(json_array_size(shk_facts_get_array(facts, "collective.fabric.sizes")), 8);
    cr_expect_str_eq(text(facts, "status"), "crashed");
    shk_facts_destroy(facts);
}

/* Writes of network devices that the GPU would not see in time. */
Test(hmem_long, writes_are_flushed_where_the_driver_says_so, .timeout = 600)
{
    struct shk_facts *facts = run_with(&small, &fakes);
    const json_t *hmem = shk_facts_get_object(facts, "collective.fabric-hmem.hmem");

    cr_expect(json_is_false(json_object_get(hmem, "flushes")));
    shk_facts_destroy(facts);
    setenv("SHK_FAKE_FLUSH", "1", 1);
    facts = run_with(&small, &fakes);
    expect_ok(facts, 2);
    hmem = shk_facts_get_object(facts, "collective.fabric-hmem.hmem");
    cr_expect(json_is_true(json_object_get(hmem, "flushes")));
    shk_facts_destroy(facts);
    setenv("SHK_FAKE_FAULT", "flush", 1);
    facts = run_with(&small, &fakes);
    cr_expect_str_eq(text(facts, "status"), "failed");
    cr_expect_not_null(strstr(text(facts, "reason"), "cuFlushGPUDirectRDMAWrites"), "%s",
                       text(facts, "reason"));
    shk_facts_destroy(facts);
}

/* What the transports on GPUs come to, one of them with another status than the others. */
struct outcome {
    const char *transport, *status;
    int devices;
    bool asked; /* was fabric-hmem run? */
};

static int give_outcome(const struct shk_transport *transport,
                        const struct shk_collective_options *options, struct shk_facts *facts,
                        void *arg, struct shk_error *err)
{
    struct outcome *outcome = arg;
    bool odd = strcmp(transport->name, outcome->transport) == 0;
    json_t *devices = json_array();
    char key[64];
    int d = 0;

    (void)options;
    (void)err;
    if (transport == &shk_transport_fabric_hmem) {
        outcome->asked = true;
        json_decref(devices);
        return 0;
    }
    for (d = 0; d < outcome->devices; d++) {
        json_array_append_new(devices, json_integer(d));
    }
    snprintf(key, sizeof(key), "collective.%s.devices", transport->name);
    cr_assert_eq(shk_facts_present(facts, key, devices, NULL, "test"), 0);
    snprintf(key, sizeof(key), "collective.%s.status", transport->name);
    return shk_facts_text(facts, key, odd ? outcome->status : "ok", "test");
}

/* In `auto`: where a rank found a GPU, and none of the transports on GPUs broke. */
Test(hmem, when_auto_wants_it)
{
    static const struct {
        const char *transport, *status;
        int devices;
        bool want;
        const char *reason;
    } rows[] = {
        {"peer", "na", 0, false, ""},
        {"peer", "ok", 2, true, ""},
        {"nccl", "failed", 2, true, ""},
        {"peer", "wrong", 2, true, ""},
        {"peer", "crashed", 2, false, "not run: peer on the same GPUs ended with crashed"},
        {"nccl", "timeout", 2, false, "not run: nccl on the same GPUs ended with timeout"},
    };
    size_t i = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome outcome = {rows[i].transport, rows[i].status, rows[i].devices, false};
        struct shk_measure measure = {.run = give_outcome, .arg = &outcome};
        struct shk_facts *facts = shk_facts_create();

        cr_assert_eq(shk_layers_run(&small, &measure, facts, NULL), 0);
        cr_expect_eq(outcome.asked, rows[i].want, "row %zu", i);
        cr_expect_str_eq(text(facts, "status"), rows[i].reason[0] != '\0' ? "na" : "");
        cr_expect_str_eq(text(facts, "reason"), rows[i].reason);
        shk_facts_destroy(facts);
    }
}

/* What can be told before any GPU is opened: in the words of a rank, or nothing. */
Test(hmem, what_libfabric_lacks_is_known_early, .timeout = 600)
{
    static const struct {
        const char *fault, *known;
        const char *why; /* NULL: the ranks have to find out */
    } rows[] = {
        {"none", "0", "provider tcp of libfabric 1.22 offers no FI_HMEM: No data available"},
        {"nosys", "0", "was built without FI_HMEM_CUDA: fi_mr_regattr: Function not implemented"},
        {"nosys", "1", NULL},  /* built for it: something else is wrong */
        {"", "0", NULL},       /* settings do not tell, but it works */
        {"refuse", "0", NULL}, /* for another reason */
        {"crash", "0", NULL},
        {"hang", "0", NULL},
    };
    size_t i = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct shk_hmem_early *early = NULL;
        char why[512];

        setenv("SHK_FAKE_HMEM", rows[i].fault, 1);
        setenv("SHK_FAKE_HMEM_KNOWN", rows[i].known, 1);
        early = shk_hmem_early_begin(&small, fabric, false);
        cr_assert_not_null(early);
        cr_expect_eq(shk_hmem_early_end(early, why, sizeof(why)), rows[i].why != NULL,
                     "row %zu: %s", i, why);
        cr_expect_not_null(strstr(why, rows[i].why != NULL ? rows[i].why : ""), "%s", why);
        cr_expect_eq(why[0] != '\0', rows[i].why != NULL, "%s", why);
    }
}

Test(hmem, what_cannot_be_asked_early_is_left_to_the_ranks, .timeout = 600)
{
    char why[512];

    cr_expect_not(
        shk_hmem_early_end(shk_hmem_early_begin(&small, missing, false), why, sizeof(why)));
    cr_expect_str_eq(why, "");
    cr_expect_not(shk_hmem_early_end(NULL, why, sizeof(why)));
}

/* The same words, whoever found out: of the real library, which has no CUDA here. */
Test(hmem, early_and_late_say_the_same, .timeout = 600)
{
    static const char *const names[] = {"libfabric.so.1", NULL};
    struct shk_fabric_tweaks tweaks = {.gpu = &with_kernels};
    struct shk_facts *facts = run_with(&small, &tweaks);
    char why[512];

    cr_expect(shk_hmem_early_end(shk_hmem_early_begin(&small, names, false), why, sizeof(why)));
    cr_expect_not_null(strstr(text(facts, "reason"), why), "%s: %s", text(facts, "reason"), why);
    shk_facts_destroy(facts);
}

/* What host memory says of it. */
Test(hmem, offer_is_told_beside_host_memory, .timeout = 600)
{
    struct shk_fabric_tweaks tweaks = {.library_names = fabric};
    struct shk_facts *facts = shk_facts_create();
    const json_t *offer = NULL;

    cr_assert_eq(shk_fabric_run(&small, &tweaks, facts, NULL), 0);
    offer = shk_facts_get_object(facts, "collective.fabric.hmem");
    cr_expect_str_eq(json_string_value(json_object_get(offer, "status")), "offered");
    cr_expect_not_null(strstr(json_string_value(json_object_get(offer, "reason")), "tcp"));
    shk_facts_destroy(facts);
}
