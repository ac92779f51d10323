/* GPU transports against stand-in drivers and NCCL that really move data between processes. */
#include "collectives/gpu/gpu.h"
#include "collectives/gpu/kernels/kernels.h"
#include "collectives/layers.h"
#include "core/facts/facts.h"
#include "tests/unit/collectives/gpu_measure.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const hip[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libamdhip64.so", NULL};
static const char *const nccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libnccl.so.2", NULL};
static const char *const rccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/librccl.so.1", NULL};
static const char *const missing[] = {"libshk-there-is-no-such-library.so.1", NULL};

static const struct shk_collective_options small = {
    .ranks = 2,
    .min_bytes = 8,
    .max_bytes = 1024,
    .deadline_ms = 60000,
};

static const struct shk_gpu_tweaks fakes = {
    .driver_names = cuda,
    .nccl_names = nccl,
    .image = "kernels",
};

static const struct shk_transport *transport_of(const char *name)
{
    size_t count = 0;
    const struct shk_transport *const *all = shk_transports(&count);
    size_t i = 0;

    while (i < count && strcmp(all[i]->name, name) != 0) {
        i++;
    }
    cr_assert_lt(i, count, "%s", name);
    return all[i];
}

static struct shk_facts *run_with(const char *transport,
                                  const struct shk_collective_options *options,
                                  const struct shk_gpu_tweaks *tweaks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_not_null(facts);
    cr_assert_eq(shk_gpu_run(transport_of(transport), options, tweaks, facts, &err), 0, "%s",
                 err.text);
    return facts;
}

static const char *text(const struct shk_facts *facts, const char *transport, const char *member)
{
    char key[96];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.%s.%s", transport, member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

static json_t *sizes_of(const struct shk_facts *facts, const char *transport)
{
    char key[96];

    snprintf(key, sizeof(key), "collective.%s.sizes", transport);
    return shk_facts_get_array(facts, key);
}

static void expect_ok(const struct shk_facts *facts, const char *transport)
{
    json_t *row = NULL;
    size_t i = 0;

    cr_assert_str_eq(text(facts, transport, "status"), "ok", "%s: %s: %s", transport,
                     text(facts, transport, "status"), text(facts, transport, "reason"));
    cr_assert_gt(json_array_size(sizes_of(facts, transport)), 8);
    json_array_foreach(sizes_of(facts, transport), i, row)
    {
        cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        cr_expect_eq(json_integer_value(json_object_get(row, "in_place_wrong")), 0);
        cr_expect_gt(json_real_value(json_object_get(row, "time_us")), 0.0);
        cr_expect_gt(json_real_value(json_object_get(row, "graph_us")), 0.0);
        cr_expect_gt(json_real_value(json_object_get(row, "p99_us")), 0.0);
    }
}

static void healthy(const char *transport, unsigned ranks)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;
    char gpus[16];

    snprintf(gpus, sizeof(gpus), "%u", ranks);
    setenv("SHK_FAKE_GPUS", gpus, 1);
    options.ranks = ranks;
    facts = run_with(transport, &options, &fakes);
    expect_ok(facts, transport);
    shk_facts_destroy(facts);
}

Test(gpu, peer_one_to_four_ranks, .timeout = 1200)
{
    unsigned ranks = 0;

    for (ranks = 1; ranks <= 4; ranks++) {
        healthy("peer", ranks);
    }
}

/* Every size with the kernel for large ones. */
static struct shk_facts *run_push(unsigned ranks, size_t from)
{
    struct shk_collective_options options = small;
    struct shk_gpu_tweaks tweaks = fakes;

    options.ranks = ranks;
    tweaks.push_from = from;
    setenv("SHK_FAKE_GPUS", "4", 1);
    return run_with("peer", &options, &tweaks);
}

Test(gpu_long, push_kernel_two_to_four_ranks, .timeout = 1200)
{
    unsigned ranks = 0;

    for (ranks = 2; ranks <= 4; ranks++) {
        struct shk_facts *facts = run_push(ranks, 64);
        json_t *row = NULL;
        size_t i = 0;

        expect_ok(facts, "peer");
        json_array_foreach(sizes_of(facts, "peer"), i, row)
        {
            cr_expect_str_eq(json_string_value(json_object_get(row, "algorithm")),
                             json_integer_value(json_object_get(row, "bytes")) < 64 ? "one-shot"
                                                                                    : "push");
        }
        shk_facts_destroy(facts);
    }
}

Test(gpu, push_kernel_errors_are_found, .timeout = 600)
{
    static const char *const damage[] = {"corrupt", "skip", "overrun", "input"};
    size_t i = 0;

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        struct shk_facts *facts = NULL;

        setenv("SHK_FAKE_FAULT", damage[i], 1);
        facts = run_push(2, 1);
        cr_expect_str_eq(text(facts, "peer", "cause"), "wrong-result", "%s: %s", damage[i],
                         text(facts, "peer", "reason"));
        shk_facts_destroy(facts);
    }
}

Test(gpu, push_kernel_needs_room, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_FREE", "100000", 1);
    facts = run_push(2, 64);
    expect_ok(facts, "peer");
    cr_expect_str_eq(
        json_string_value(json_object_get(json_array_get(sizes_of(facts, "peer"), 7), "algorithm")),
        "one-shot");
    shk_facts_destroy(facts);
}

/* The counter of launches goes round in the middle of a run. */
Test(gpu, launches_beyond_the_counter, .timeout = 600)
{
    static const size_t push_from[] = {0, 64};
    size_t i = 0;

    cr_expect_eq(shk_gpu_next_epoch(0), 1);
    cr_expect_eq(shk_gpu_next_epoch(0xfffffffeU), 0xffffffffU);
    cr_expect_eq(shk_gpu_next_epoch(0xffffffffU), 2);
    for (i = 0; i < sizeof(push_from) / sizeof(push_from[0]); i++) {
        struct shk_collective_options options = small;
        struct shk_gpu_tweaks tweaks = fakes;
        struct shk_facts *facts = NULL;

        options.brief = true;
        tweaks.push_from = push_from[i];
        tweaks.first_epoch = 0xffffffffU - 40;
        facts = run_with("peer", &options, &tweaks);
        cr_expect_str_eq(text(facts, "peer", "status"), "ok", "%s", text(facts, "peer", "reason"));
        shk_facts_destroy(facts);
    }
}

Test(gpu, lsa_nccl_and_windows, .timeout = 1200)
{
    healthy("lsa", 2);
    healthy("nccl", 3);
    healthy("nccl-window", 2);
}

Test(gpu, rccl_on_hip, .timeout = 600)
{
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    tweaks.driver_names = hip;
    tweaks.nccl_names = rccl;
    facts = run_with("rccl", &small, &tweaks);
    expect_ok(facts, "rccl");
    shk_facts_destroy(facts);
}

Test(gpu, bad_sizes_are_refused)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.min_bytes = 4096;
    facts = run_with("peer", &options, &fakes);
    cr_expect_str_eq(text(facts, "peer", "status"), "failed");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "4096:1024"));
    shk_facts_destroy(facts);
}

/* One fault each: what it must be called. */
static const struct fault {
    const char *transport;
    const char *variable;
    const char *value;
    const char *status;
    const char *cause;
    const char *reason; /* part of it */
} faults[] = {
    {"peer", "SHK_FAKE_FAULT", "peer", "na", "", "between the GPUs 0000:01:00.0 and 0000:02:00.0"},
    {"peer", "SHK_FAKE_UNMAPPED", "0>1", "failed", "no-peer-access", "memory cannot be mapped"},
    {"peer", "SHK_FAKE_FAULT", "memory", "failed", "out-of-memory", "out of memory"},
    {"peer", "SHK_FAKE_FAULT", "illegal", "failed", "illegal-access", "illegal memory access"},
    {"peer", "SHK_FAKE_FAULT", "image", "failed", "driver-old", "load of the kernels"},
    {"peer", "SHK_FAKE_FAULT", "init", "failed", "driver-mismatch", "error 803"},
    {"peer", "SHK_FAKE_FAULT", "no-device", "na", "", "no GPU on this node"},
    {"peer", "SHK_FAKE_FAULT", "corrupt", "wrong", "wrong-result", "instead of"},
    {"peer", "SHK_FAKE_FAULT", "skip", "wrong", "wrong-result", "instead of"},
    {"peer", "SHK_FAKE_FAULT", "overrun", "wrong", "wrong-result", "outside the result"},
    {"peer", "SHK_FAKE_FAULT", "input", "wrong", "wrong-result", "input were changed"},
    /* Only operations that follow each other without a wait are wrong; and those that are timed
     * move through memory. */
    {"peer", "SHK_FAKE_FAULT", "tired", "wrong", "wrong-result", "instead of"},
    {"peer", "SHK_FAKE_FAULT", "moved", "failed", "illegal-access", "illegal memory access"},
    {"peer", "SHK_FAKE_FAULT", "crash", "crashed", "rank-ended", "rank"},
    {"peer", "SHK_FAKE_DRIVER", "10020", "failed", "driver-old", "CUDA 10.2"},
    {"peer", "SHK_FAKE_GPUS", "1", "na", "", "1 GPU is visible"},
    {"peer", "CUDA_VISIBLE_DEVICES", "", "failed", "visible-devices", "CUDA_VISIBLE_DEVICES="},
    {"nccl", "SHK_FAKE_NCCL_FAULT", "init", "failed", "nccl-error", "no socket interface found"},
    {"nccl", "SHK_FAKE_NCCL_FAULT", "corrupt", "wrong", "wrong-result", "rank 1: wrong result"},
    {"nccl-window", "SHK_FAKE_NCCL_FAULT", "no-window", "failed", "no-symmetric-memory", "window"},
    {"lsa", "SHK_FAKE_NCCL_FAULT", "no-window", "failed", "no-symmetric-memory", "window"},
    {"nccl-window", "NCCL_CUMEM_ENABLE", "0", "na", "", "NCCL_CUMEM_ENABLE=0 turns it off"},
    {"lsa", "NCCL_CUMEM_ENABLE", "0", "na", "", "NCCL_CUMEM_ENABLE=0 turns it off"},
    {"lsa", "NCCL_CUMEM_ENABLE", "1", "ok", "", ""},
    {"lsa", "SHK_FAKE_NCCL_VERSION", "22705", "na", "", "NCCL 2.27.5"},
};

Test(gpu, every_fault_has_its_name, .timeout = 1200)
{
    size_t i = 0;

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault *fault = &faults[i];
        struct shk_facts *facts = NULL;

        setenv(fault->variable, fault->value, 1);
        facts = run_with(fault->transport, &small, &fakes);
        cr_expect_str_eq(text(facts, fault->transport, "status"), fault->status, "%s=%s: %s, %s",
                         fault->variable, fault->value, text(facts, fault->transport, "status"),
                         text(facts, fault->transport, "reason"));
        cr_expect_str_eq(text(facts, fault->transport, "cause"), fault->cause, "%s=%s",
                         fault->variable, fault->value);
        cr_expect_not_null(strstr(text(facts, fault->transport, "reason"), fault->reason),
                           "%s=%s: %s", fault->variable, fault->value,
                           text(facts, fault->transport, "reason"));
        unsetenv(fault->variable);
        shk_facts_destroy(facts);
    }
}

Test(gpu, hang_ends_at_the_deadline, .timeout = 300)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.deadline_ms = 3000;
    setenv("SHK_FAKE_FAULT", "hang", 1);
    facts = run_with("peer", &options, &fakes);
    cr_expect_str_eq(text(facts, "peer", "status"), "timeout");
    shk_facts_destroy(facts);
}

Test(gpu, missing_libraries_do_not_apply, .timeout = 300)
{
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    tweaks.driver_names = missing;
    facts = run_with("peer", &small, &tweaks);
    cr_expect_str_eq(text(facts, "peer", "status"), "na");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), missing[0]));
    shk_facts_destroy(facts);

    tweaks.driver_names = cuda;
    tweaks.nccl_names = missing;
    facts = run_with("nccl", &small, &tweaks);
    cr_expect_str_eq(text(facts, "nccl", "status"), "na");
    shk_facts_destroy(facts);
}

/* What only one rank has. */
static void set_on_rank_1(struct shk_job *job, enum shk_phase phase, void *arg)
{
    const char *const *setting = arg;

    if (phase == SHK_PHASE_START && shk_job_rank(job) == 1) {
        setenv(setting[0], setting[1], 1);
    }
}

static struct shk_facts *run_uneven(const char *transport, const char *name, const char *value)
{
    const char *setting[] = {name, value};
    struct shk_gpu_tweaks tweaks = fakes;

    tweaks.at_phase = set_on_rank_1;
    tweaks.arg = setting;
    return run_with(transport, &small, &tweaks);
}

Test(gpu, two_ranks_on_one_gpu, .timeout = 300)
{
    struct shk_facts *facts = run_uneven("peer", "CUDA_VISIBLE_DEVICES", "1,0");

    cr_expect_str_eq(text(facts, "peer", "status"), "failed");
    cr_expect_str_eq(text(facts, "peer", "cause"), "same-gpu");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "ranks 0 and 1 both use GPU 0000:01"),
                       "%s", text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
}

Test(gpu, mixed_nccl_versions, .timeout = 300)
{
    struct shk_facts *facts = run_uneven("nccl", "SHK_FAKE_NCCL_VERSION", "22703");

    cr_expect_str_eq(text(facts, "nccl", "status"), "failed");
    cr_expect_str_eq(text(facts, "nccl", "cause"), "nccl-versions");
    cr_expect_not_null(strstr(text(facts, "nccl", "reason"), "2.27.3"));
    shk_facts_destroy(facts);
}

static void die_on_rank_1(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (phase == SHK_PHASE_ALLREDUCE && shk_job_rank(job) == 1) {
        raise(SIGKILL);
    }
}

Test(gpu, killed_rank_is_named, .timeout = 300)
{
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    tweaks.at_phase = die_on_rank_1;
    facts = run_with("peer", &small, &tweaks);
    cr_expect_str_eq(text(facts, "peer", "status"), "crashed");
    cr_expect_eq(shk_facts_get_int(facts, "collective.peer.rank", -1), 1);
    shk_facts_destroy(facts);
}

/* Whether a transport was given facts, and which status. */
static void expect_status(const struct shk_facts *facts, const char *transport, const char *status)
{
    cr_expect_str_eq(text(facts, transport, "status"), status, "%s: %s: %s", transport,
                     text(facts, transport, "status"), text(facts, transport, "reason"));
}

static struct shk_facts *run_layers(const struct shk_gpu_tweaks *tweaks)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    struct shk_measure measure = {
        .run = gpu_measure, .arg = (void *)tweaks, .chain = gpu_measure_chain};

    options.brief = true;
    cr_assert_eq(shk_layers_run(&options, &measure, facts, &err), 0, "%s", err.text);
    return facts;
}

Test(gpu, layers_run_where_gpus_are, .timeout = 600)
{
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = run_layers(&tweaks);

    expect_status(facts, "peer", "ok");
    expect_status(facts, "lsa", "ok");
    expect_status(facts, "nccl", "ok");
    expect_status(facts, "nccl-window", "ok");
    shk_facts_destroy(facts);

    tweaks.driver_names = missing;
    facts = run_layers(&tweaks);
    expect_status(facts, "peer", "na");
    expect_status(facts, "nccl", "");
    shk_facts_destroy(facts);
}

Test(gpu, layers_above_a_crash_are_not_run, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_FAULT", "crash", 1);
    facts = run_layers(&fakes);
    expect_status(facts, "peer", "crashed");
    expect_status(facts, "lsa", "na");
    expect_status(facts, "nccl", "na");
    cr_expect_not_null(strstr(text(facts, "nccl", "reason"), "peer below it ended with crashed"));
    shk_facts_destroy(facts);
}

Test(gpu, wrong_results_are_counted_to_the_end, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_NCCL_FAULT", "corrupt", 1);
    facts = run_with("nccl", &small, &fakes);
    expect_status(facts, "nccl", "wrong");
    cr_expect_not_null(strstr(text(facts, "nccl", "reason"), "combinations of type"), "%s",
                       text(facts, "nccl", "reason"));
    cr_expect_not_null(strstr(text(facts, "nccl", "reason"), "with NCCL 2."), "%s",
                       text(facts, "nccl", "reason"));
    cr_expect_gt(json_array_size(sizes_of(facts, "nccl")), 7);
    shk_facts_destroy(facts);
}

static void flip(struct shk_job *job, void *at, size_t bytes, void *arg)
{
    (void)arg;
    if (shk_job_rank(job) == 1 && bytes == 512) {
        ((unsigned char *)at)[300] ^= 4;
    }
}

Test(gpu, one_flipped_bit_is_found, .timeout = 300)
{
    struct shk_gpu_tweaks tweaks = fakes;
    struct shk_facts *facts = NULL;

    tweaks.tamper = flip;
    facts = run_with("peer", &small, &tweaks);
    cr_expect_str_eq(text(facts, "peer", "status"), "wrong");
    cr_expect_eq(shk_facts_get_int(facts, "collective.peer.rank", -1), 1);
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "element 75 is"), "%s",
                       text(facts, "peer", "reason"));
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "1 of 128 elements"), "%s",
                       text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
}

static struct shk_facts *run_late(enum shk_gpu_arrival arrival, unsigned late_ms,
                                  unsigned timeout_ms)
{
    struct shk_collective_options options = small;
    struct shk_gpu_tweaks tweaks = fakes;

    options.max_bytes = 16;
    tweaks.arrival = arrival;
    tweaks.late_rank = 1;
    tweaks.late_ms = late_ms;
    tweaks.kernel_timeout_ms = timeout_ms;
    return run_with("peer", &options, &tweaks);
}

Test(gpu, a_late_rank_is_waited_for, .timeout = 600)
{
    struct shk_facts *facts = run_late(SHK_ARRIVE_DELAYED, 5, 30000);

    cr_expect_str_eq(text(facts, "peer", "status"), "ok", "%s", text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
    facts = run_late(SHK_ARRIVE_BLOCKED, 5, 30000);
    cr_expect_str_eq(text(facts, "peer", "status"), "ok", "%s", text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
}

Test(gpu, a_rank_that_is_too_late_is_named, .timeout = 600)
{
    struct shk_facts *facts = run_late(SHK_ARRIVE_DELAYED, 3000, 300);

    cr_expect_str_eq(text(facts, "peer", "status"), "failed");
    cr_expect_str_eq(text(facts, "peer", "cause"), "late-peer");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "rank 1 did not start"), "%s",
                       text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
}

Test(gpu, proof_tells_how_each_size_was_done, .timeout = 600)
{
    struct shk_facts *facts = run_with("nccl-window", &small, &fakes);
    json_t *proof = shk_facts_get_object(facts, "collective.nccl-window.proof");
    json_t *choice = NULL;
    size_t symmetric = 0;
    size_t i = 0;

    cr_assert_not_null(proof);
    const char *log = shk_facts_get_text(facts, "collective.nccl-window.log");
    cr_expect(log && strstr(log, "NCCL INFO") && !strstr(log, "Channel "), "%s", log);
    cr_expect_str_eq(json_string_value(json_object_get(proof, "via")), "P2P/CUMEM");
    cr_expect(json_is_true(json_object_get(proof, "symmetric_va")));
    json_array_foreach(json_object_get(proof, "choices"), i, choice)
    {
        symmetric += (size_t)json_is_true(json_object_get(choice, "symmetric"));
    }
    cr_expect_gt(symmetric, 4);
    shk_facts_destroy(facts);

    setenv("SHK_FAKE_NCCL_FAULT", "net", 1);
    facts = run_with("nccl", &small, &fakes);
    proof = shk_facts_get_object(facts, "collective.nccl.proof");
    cr_expect_eq(json_integer_value(json_object_get(proof, "net")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(proof, "net_name")), "NET/Socket/0");
    shk_facts_destroy(facts);
}

static json_t *unaligned_of(const struct shk_facts *facts, const char *transport)
{
    char key[96];

    snprintf(key, sizeof(key), "collective.%s.unaligned", transport);
    return shk_facts_get_object(facts, key);
}

Test(gpu, unaligned_halves_count_apart, .timeout = 600)
{
    struct shk_facts *facts = NULL;
    const char *said = NULL;
    json_t *apart = NULL;

    setenv("SHK_FAKE_NCCL_FAULT", "unaligned", 1);
    facts = run_with("nccl-window", &small, &fakes);
    expect_ok(facts, "nccl-window");
    apart = unaligned_of(facts, "nccl-window");
    cr_assert_not_null(apart);
    said = json_string_value(json_object_get(apart, "text"));
    cr_expect_gt(json_integer_value(json_object_get(apart, "wrong")), 8);
    cr_expect_geq(json_integer_value(json_object_get(apart, "cases")),
                  json_integer_value(json_object_get(apart, "wrong")));
    cr_expect_not_null(strstr(said, "4 B float16 out of place: element 1 is 0"), "%s", said);
    cr_expect_not_null(strstr(said, "with NCCL 2.28.9"), "%s", said);
    shk_facts_destroy(facts);

    facts = run_with("nccl", &small, &fakes);
    apart = unaligned_of(facts, "nccl");
    cr_expect_eq(json_integer_value(json_object_get(apart, "wrong")), 0);
    cr_expect_gt(json_integer_value(json_object_get(apart, "cases")), 8);
    shk_facts_destroy(facts);
}

Test(gpu, aligned_halves_do_not, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_NCCL_FAULT", "narrow", 1);
    facts = run_with("nccl-window", &small, &fakes);
    expect_status(facts, "nccl-window", "wrong");
    shk_facts_destroy(facts);
    unsetenv("SHK_FAKE_NCCL_FAULT");

    /* Our own kernels have no such excuse. */
    setenv("SHK_FAKE_FAULT", "corrupt", 1);
    facts = run_with("peer", &small, &fakes);
    expect_status(facts, "peer", "wrong");
    cr_expect_null(unaligned_of(facts, "peer"));
    shk_facts_destroy(facts);
}
