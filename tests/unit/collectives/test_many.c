/* GPU transports on three, four, five and eight stand-in GPUs: right sums, and what becomes of
 * pairs that do not reach each other, are slow, or cannot be copied between. */
#include "collectives/gpu/gpu.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const nccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libnccl.so.2", NULL};

static struct shk_collective_options options = {
    .ranks = 8, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = 300000, .brief = true};
static struct shk_gpu_tweaks tweaks = {
    .driver_names = cuda, .nccl_names = nccl, .image = "kernels", .copies_shift = 6};

TestSuite(many, .timeout = 1200);
TestSuite(many_long, .timeout = 1200);

static const struct shk_transport *transport_of(const char *name)
{
    size_t count = 0, i = 0;
    const struct shk_transport *const *all = shk_transports(&count);
    while (i < count && strcmp(all[i]->name, name) != 0)
        i++;
    cr_assert_lt(i, count, "%s", name);
    return all[i];
}

static struct shk_facts *run(const char *name, unsigned ranks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};
    char gpus[16];
    snprintf(gpus, sizeof gpus, "%u", ranks);
    setenv("SHK_FAKE_GPUS", gpus, 1);
    options.ranks = ranks;
    cr_assert_eq(shk_gpu_run(transport_of(name), &options, &tweaks, facts, &err), 0, "%s",
                 err.text);
    return facts;
}

static const char *text(const struct shk_facts *facts, const char *name, const char *member)
{
    char key[96];
    snprintf(key, sizeof key, "collective.%s.%s", name, member);
    const char *value = shk_facts_get_text(facts, key);
    return value ? value : "";
}

static void expect_right(const struct shk_facts *facts, const char *name, unsigned ranks)
{
    char key[96];
    size_t i;
    json_t *row;
    snprintf(key, sizeof key, "collective.%s.sizes", name);
    json_t *sizes = shk_facts_get_array(facts, key);
    cr_assert_str_eq(text(facts, name, "status"), "ok", "%s on %u: %s", name, ranks,
                     text(facts, name, "reason"));
    cr_assert_geq(json_array_size(sizes), 1, "%s on %u", name, ranks);
    json_array_foreach(sizes, i, row)
    {
        cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0, "%s on %u", name, ranks);
        cr_expect_eq(json_integer_value(json_object_get(row, "in_place_wrong")), 0);
    }
    snprintf(key, sizeof key, "collective.%s.devices", name);
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, key)), ranks);
}

static void right(const char *name, unsigned ranks)
{
    struct shk_facts *facts = run(name, ranks);
    expect_right(facts, name, ranks);
    shk_facts_destroy(facts);
}

/* Before the sizes: combinations of type, odd count, offset and place. */
static const unsigned many[] = {3, 4, 5, 8};

Test(many, kernels_of_our_own)
{
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        right("peer", many[i]);
        right("lsa", many[i]);
    }
}

Test(many, library)
{
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        right("nccl", many[i]);
        right("nccl-window", many[i]);
    }
}

/* Which kernel does which size: of more than two ranks none exchanges. */
Test(many, two_ranks_exchange_middle_sizes)
{
    static const char *const expected[][3] = {{"one-shot", "exchange", "exchange"},
                                              {"two-shot", "two-shot", "two-shot"}};
    options.brief = false;
    options.min_bytes = 262144;
    options.max_bytes = 1048576;
    for (unsigned i = 0; i < 2; i++) {
        struct shk_facts *facts = run("peer", i == 0 ? 2 : 4);
        json_t *row, *sizes = shk_facts_get_array(facts, "collective.peer.sizes");
        size_t k;
        expect_right(facts, "peer", options.ranks);
        cr_assert_eq(json_array_size(sizes), 3);
        json_array_foreach(sizes, k, row)
        {
            cr_expect_str_eq(json_string_value(json_object_get(row, "algorithm")), expected[i][k],
                             "%u ranks, size %zu", options.ranks, k);
        }
        shk_facts_destroy(facts);
    }
}

/* A link that hands over whole lines is for the kernel with a flag in each; nothing is known of one
 * that the driver does not tell about. */
Test(many, whole_lines_over_nvlink)
{
    static const char *const faults[] = {"", "attribute"};
    options.brief = false;
    options.min_bytes = 32768;
    options.max_bytes = 131072;
    setenv("SHK_FAKE_NVLINK", "1", 1);
    setenv("SHK_FAKE_CAPABILITY", "9", 1);
    for (unsigned i = 0; i < 2; i++) {
        setenv("SHK_FAKE_FAULT", faults[i], 1);
        struct shk_facts *facts = run("peer", 2);
        json_t *row, *sizes = shk_facts_get_array(facts, "collective.peer.sizes");
        size_t k;
        expect_right(facts, "peer", 2);
        cr_assert_geq(json_array_size(sizes), 3);
        json_array_foreach(sizes, k, row)
        {
            bool lines = i == 0 && json_integer_value(json_object_get(row, "bytes")) >= 65536;
            cr_expect_str_eq(json_string_value(json_object_get(row, "algorithm")),
                             lines ? "exchange-ll128" : "one-shot", "'%s', size %zu", faults[i], k);
        }
        shk_facts_destroy(facts);
    }
}

/* Two ranks whose data goes over the link by copy engines, but not where only one can do that. */
static struct shk_facts *run_engines(size_t from)
{
    options.brief = false;
    options.max_bytes = 65536;
    tweaks.push_from = 64;
    tweaks.engines_from = from;
    setenv("SHK_FAKE_NVLINK", "1", 1);
    return run("peer", 2);
}

static void expect_engines(size_t from)
{
    struct shk_facts *facts = run_engines(from);
    json_t *row, *sizes = shk_facts_get_array(facts, "collective.peer.sizes");
    size_t k;

    expect_right(facts, "peer", 2);
    json_array_foreach(sizes, k, row)
    {
        size_t bytes = (size_t)json_integer_value(json_object_get(row, "bytes"));
        const char *type = json_string_value(json_object_get(row, "type"));
        bool sums = strcmp(type, "float32") == 0 || strcmp(type, "int32") == 0;
        cr_expect_str_eq(json_string_value(json_object_get(row, "algorithm")),
                         bytes >= from && sums ? "copy-engines"
                         : bytes >= 64         ? "push"
                                               : "one-shot",
                         "%s, %zu B from %zu", type, bytes, from);
    }
    shk_facts_destroy(facts);
}

static void lacks_in_rank_1(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (phase == SHK_PHASE_OPEN && shk_job_rank(job) == 1)
        setenv("SHK_FAKE_STREAM_OPS", "0", 1);
}

Test(many, copy_engines)
{
    expect_engines(1024);
    expect_engines(1); /* and messages that have no second half, or no first */
    tweaks.first_epoch = 0xffffffffU - 40;
    expect_engines(1024);
    setenv("SHK_FAKE_STREAM_OPS", "0", 1);
    expect_engines(SIZE_MAX);
    unsetenv("SHK_FAKE_STREAM_OPS");
    tweaks.at_phase = lacks_in_rank_1;
    expect_engines(SIZE_MAX);
}

Test(many, copy_engines_errors_are_found)
{
    setenv("SHK_FAKE_FAULT", "corrupt", 1);
    struct shk_facts *facts = run_engines(1);
    cr_expect_str_eq(text(facts, "peer", "cause"), "wrong-result", "%s",
                     text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
    setenv("SHK_FAKE_FAULT", "", 1);
    setenv("SHK_FAKE_NO_COPY", "0>1", 1);
    facts = run_engines(1024);
    cr_expect_str_eq(text(facts, "peer", "status"), "failed");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "all-reduce by copy engines"), "%s",
                       text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
    unsetenv("SHK_FAKE_NO_COPY");
}

/* A stream that waits for another rank never gives up by itself. */
Test(many, copy_engines_name_a_late_rank)
{
    tweaks.arrival = SHK_ARRIVE_DELAYED;
    tweaks.late_rank = 1;
    tweaks.late_ms = 4000;
    tweaks.kernel_timeout_ms = 1000;
    setenv("SHK_FAKE_STREAM_MS", "500", 1);
    options.min_bytes = 1024;
    struct shk_facts *facts = run_engines(1);
    cr_expect_str_eq(text(facts, "peer", "status"), "failed");
    cr_expect_str_eq(text(facts, "peer", "cause"), "late-peer");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "rank 1 did not start the operation"),
                       "%s", text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
    unsetenv("SHK_FAKE_STREAM_MS");
}

/* Launches overlap where the GPU and the driver can do that, and only there. */
Test(many, launches_that_overlap)
{
    static const char *const drivers[] = {"13000", "12020"};
    setenv("SHK_FAKE_CAPABILITY", "9", 1);
    for (unsigned i = 0; i < 2; i++) {
        setenv("SHK_FAKE_DRIVER", drivers[i], 1);
        setenv("SHK_FAKE_FAULT", "overlap", 1);
        struct shk_facts *facts = run("peer", 2);
        cr_expect_str_eq(text(facts, "peer", "status"), i == 0 ? "failed" : "ok", "driver %s: %s",
                         drivers[i], text(facts, "peer", "reason"));
        shk_facts_destroy(facts);
    }
    setenv("SHK_FAKE_FAULT", "", 1);
    setenv("SHK_FAKE_DRIVER", "13000", 1);
    right("peer", 2);
    right("peer", 4);
}

/* Two-shot, and the kernel for large messages. */
Test(many_long, large_ones)
{
    options.max_bytes = 1 << 20;
    right("peer", 8);
    tweaks.push_from = 64;
    options.max_bytes = 1024;
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        right("peer", many[i]);
}

/* NCCL is for more ranks than our own kernels are: a rank's memory is its own then, too. */
Test(many, more_ranks_than_kernels_are_for)
{
    right("nccl", 20);
    struct shk_facts *facts = run("peer", 20);
    cr_expect_str_eq(text(facts, "peer", "status"), "na");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "up to 16 ranks"), "%s",
                       text(facts, "peer", "reason"));
    shk_facts_destroy(facts);
}

/* Another order of the GPUs, and one that is hidden. */
Test(many, another_order)
{
    setenv("CUDA_VISIBLE_DEVICES", "3,1,7,0,2,6,5", 1);
    struct shk_facts *facts = run("peer", 7);
    expect_right(facts, "peer", 7);
    json_t *devices = shk_facts_get_array(facts, "collective.peer.devices");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(devices, 2), "pci")),
                     "0000:08:00.0");
    shk_facts_destroy(facts);
    setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6", 1);
    facts = run("peer", 8);
    cr_expect_str_eq(text(facts, "peer", "status"), "na");
    cr_expect_not_null(strstr(text(facts, "peer", "reason"), "7 GPUs are visible"));
    shk_facts_destroy(facts);
}

/* What is refused is of the machine, what cannot be mapped is not; the pair is named, not a rank.
 */
static const struct {
    const char *name, *variable, *pairs;
    unsigned ranks;
    const char *status, *cause, *reason;
} lacking[] = {
    {"peer", "SHK_FAKE_REFUSED", "2>5,5>2", 8, "na", "",
     "no peer access between the GPUs 0000:03:00.0 and 0000:06:00.0"},
    {"peer", "SHK_FAKE_REFUSED", "5>2", 8, "na", "", "GPUs 0000:06:00.0 to 0000:03:00.0"},
    {"peer", "SHK_FAKE_REFUSED", "/4", 8, "na", "",
     "0000:01:00.0, 0000:02:00.0, 0000:03:00.0, 0000:04:00.0 and 0000:05:00.0, 0000:06:00.0, "
     "0000:07:00.0, 0000:08:00.0"},
    {"peer", "SHK_FAKE_REFUSED", "3>*,*>3", 4, "na", "",
     "0000:01:00.0, 0000:02:00.0, 0000:03:00.0 and 0000:04:00.0"},
    {"peer", "SHK_FAKE_REFUSED", "0>7,7>0,1>6,6>1,2>5,5>2,3>4,4>3,0>2,2>0", 8, "na", "",
     "and 1 more of 28 pairs"},
    {"peer", "SHK_FAKE_UNMAPPED", "2>5", 8, "failed", "no-peer-access",
     "memory cannot be mapped between the GPUs 0000:03:00.0 to 0000:06:00.0"},
    {"nccl-window", "SHK_FAKE_NCCL_TEAM", "4", 8, "failed", "no-symmetric-memory",
     "teams of 4 of the 8 ranks"},
    {"lsa", "SHK_FAKE_NCCL_TEAM", "4", 8, "failed", "no-symmetric-memory",
     "teams of 4 of the 8 ranks"},
};

Test(many, pairs_that_lack_access)
{
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        const char *name = lacking[i].name;
        setenv(lacking[i].variable, lacking[i].pairs, 1);
        struct shk_facts *facts = run(name, lacking[i].ranks);
        char key[96];
        snprintf(key, sizeof key, "collective.%s.rank", name);
        cr_expect_str_eq(text(facts, name, "status"), lacking[i].status, "%s: %s", lacking[i].pairs,
                         text(facts, name, "reason"));
        cr_expect_str_eq(text(facts, name, "cause"), lacking[i].cause, "%s", lacking[i].pairs);
        cr_expect_not_null(strstr(text(facts, name, "reason"), lacking[i].reason), "%s: %s",
                           lacking[i].pairs, text(facts, name, "reason"));
        cr_expect(strcmp(name, "peer") != 0 || shk_facts_get_int(facts, key, -1) == -1);
        unsetenv(lacking[i].variable);
        shk_facts_destroy(facts);
    }
}

/* Teams of NCCL are of the machine where the driver refuses. */
Test(many, windows_of_islands)
{
    setenv("SHK_FAKE_REFUSED", "/4", 1);
    setenv("SHK_FAKE_NCCL_TEAM", "4", 1);
    struct shk_facts *facts = run("nccl-window", 8);
    cr_expect_str_eq(text(facts, "nccl-window", "status"), "na");
    cr_expect_not_null(strstr(text(facts, "nccl-window", "reason"), "no peer access between"), "%s",
                       text(facts, "nccl-window", "reason"));
    shk_facts_destroy(facts);
    right("nccl", 8);
}

static double pair_rate(json_t *node, size_t i)
{
    json_t *pair = json_array_get(json_object_get(node, "pairs"), i);
    return json_number_value(json_object_get(pair, "gbs"));
}

static json_t *slowest(json_t *node)
{
    json_t *pairs = json_object_get(node, "pairs");
    size_t least = 0;
    for (size_t i = 1; i < json_array_size(pairs); i++)
        least = pair_rate(node, i) < pair_rate(node, least) ? i : least;
    return json_array_get(pairs, least);
}

/* Times are those of a machine that may have other work: tried again before it counts. */
Test(many_long, all_pairs_and_the_slow_one)
{
    unsigned tries = 0;
    bool found = false;
    setenv("SHK_FAKE_FREE", "536870912", 1);
    setenv("SHK_FAKE_SLOW_PAIRS", "3>1", 1);
    options.min_bytes = options.max_bytes = 1 << 20;
    while (!found && ++tries < 6) {
        struct shk_facts *facts = run("peer", 5);
        json_t *node = json_array_get(shk_facts_get_array(facts, "collective.peer.copies"), 0);
        json_t *least = slowest(node);
        cr_expect_eq(json_array_size(json_object_get(node, "gpus")), 5);
        cr_assert_eq(json_array_size(json_object_get(node, "pairs")), 20);
        found = strcmp(json_string_value(json_object_get(least, "from")), "0000:04:00.0") == 0 &&
                strcmp(json_string_value(json_object_get(least, "to")), "0000:02:00.0") == 0;
        shk_facts_destroy(facts);
    }
    cr_expect(found);
}

/* What could not be copied between was not measured, and is in the list all the same. */
Test(many_long, a_pair_that_is_not_copied)
{
    setenv("SHK_FAKE_FREE", "536870912", 1);
    setenv("SHK_FAKE_NO_COPY", "2>0", 1);
    options.min_bytes = options.max_bytes = 1 << 20;
    struct shk_facts *facts = run("peer", 4);
    json_t *node = json_array_get(shk_facts_get_array(facts, "collective.peer.copies"), 0);
    size_t i, unmeasured = 0;
    json_t *pair;
    expect_right(facts, "peer", 4);
    cr_assert_eq(json_array_size(json_object_get(node, "pairs")), 12);
    json_array_foreach(json_object_get(node, "pairs"), i, pair)
    {
        if (!json_is_null(json_object_get(pair, "gbs")))
            continue;
        unmeasured++;
        cr_expect_str_eq(json_string_value(json_object_get(pair, "from")), "0000:03:00.0");
        cr_expect_str_eq(json_string_value(json_object_get(pair, "to")), "0000:01:00.0");
    }
    cr_expect_eq(unmeasured, 1);
    shk_facts_destroy(facts);
}

static int hurt_with;

static void hurt_rank_5(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (shk_job_rank(job) == 5 && phase == SHK_PHASE_ALLREDUCE)
        raise(hurt_with);
}

/* Of eight, the one that was killed or stopped is named, not one that waits for it. */
Test(many, killed_and_stopped)
{
    static const struct {
        const char *name, *status, *cause;
        int sig;
    } rows[] = {
        {"peer", "crashed", "rank-ended", SIGKILL},
        {"peer", "timeout", "rank-stopped", SIGSTOP},
        {"nccl", "crashed", "rank-ended", SIGKILL},
        {"nccl-window", "timeout", "rank-stopped", SIGSTOP},
    };
    tweaks.at_phase = hurt_rank_5;
    options.deadline_ms = 30000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[96];
        hurt_with = rows[i].sig;
        struct shk_facts *facts = run(rows[i].name, 8);
        snprintf(key, sizeof key, "collective.%s.rank", rows[i].name);
        cr_expect_eq(shk_facts_get_int(facts, key, -1), 5, "%s: %s", rows[i].name,
                     text(facts, rows[i].name, "reason"));
        cr_expect_str_eq(text(facts, rows[i].name, "status"), rows[i].status, "%s: %s",
                         rows[i].name, text(facts, rows[i].name, "reason"));
        cr_expect_str_eq(text(facts, rows[i].name, "cause"), rows[i].cause);
        shk_facts_destroy(facts);
    }
}
