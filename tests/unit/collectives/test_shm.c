#include "collectives/algorithm/allreduce_private.h"
#include "collectives/algorithm/sweep.h"
#include "collectives/other/shm.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The all-reduce in shared memory of our own, between processes. */

static const struct shk_collective_options small = {
    .ranks = 2,
    .min_bytes = 4,
    .max_bytes = 131072,
    .deadline_ms = 60000,
};

static struct shk_facts *run(const struct shk_collective_options *options,
                             const struct shk_shm_tweaks *tweaks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_not_null(facts);
    cr_assert_eq(shk_shm_run(options, tweaks, facts, &err), 0, "%s", err.text);
    return facts;
}

static const char *text(const struct shk_facts *facts, const char *key)
{
    const char *value = shk_facts_get_text(facts, key);

    return value != NULL ? value : "";
}

#define STATUS(f_) text((f_), "collective.shm.status")
#define REASON(f_) text((f_), "collective.shm.reason")
#define PHASE(f_)  text((f_), "collective.shm.phase")
#define RANK(f_)   shk_facts_get_int((f_), "collective.shm.rank", -1)

static void expect_sizes(const struct shk_facts *facts, unsigned ranks)
{
    struct shk_sweep_row rows[SHK_SWEEP_MAX];
    json_t *sizes = shk_facts_get_array(facts, "collective.shm.sizes");
    json_t *row = NULL;
    size_t i = 0;

    cr_assert_eq(json_array_size(sizes),
                 shk_sweep_plan(small.min_bytes, small.max_bytes, false, rows));
    json_array_foreach(sizes, i, row)
    {
        const char *algorithm = json_string_value(json_object_get(row, "algorithm"));

        cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        cr_expect_geq(json_integer_value(json_object_get(row, "iterations")), 1);
        cr_expect(strcmp(algorithm, ranks == 1 ? "single" : "read-all") == 0 ||
                      (ranks > 1 && strcmp(algorithm, "read-part") == 0),
                  "%s", algorithm);
    }
}

/* With up to eight ranks: more than this machine may have processors. */
Test(shm, one_to_eight_ranks, .timeout = 600)
{
    static const unsigned ranks[] = {1, 2, 3, 5, 8};
    size_t i = 0;

    for (i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct shk_collective_options options = small;
        struct shk_facts *facts = NULL;
        json_t *lines = NULL;

        options.ranks = ranks[i];
        facts = run(&options, NULL);
        cr_assert_str_eq(STATUS(facts), "ok", "%u ranks: %s", ranks[i], REASON(facts));
        cr_expect_eq(shk_facts_get_int(facts, "collective.shm.ranks", 0), ranks[i]);
        cr_expect_eq(json_array_size(shk_facts_get_array(facts, "collective.shm.ranks_state")),
                     ranks[i]);
        expect_sizes(facts, ranks[i]);
        lines = shk_facts_get_array(facts, "collective.shm.evidence");
        cr_expect_not_null(
            strstr(json_string_value(json_array_get(lines, 0)), "libfabric was not loaded"));
        cr_expect_eq(shk_facts_get_object(facts, "collective.shm.roofline") != NULL, ranks[i] > 1);
        shk_facts_destroy(facts);
    }
}

static void is_loaded(struct shk_job *job, enum shk_phase phase, void *arg)
{
    char line[512];
    FILE *maps = phase == SHK_PHASE_TEARDOWN ? fopen("/proc/self/maps", "re") : NULL;

    (void)arg;
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        bool criterion = strstr(line, "/bxf_arena_") != NULL;

        if (strstr(line, "libfabric") != NULL ||
            (strstr(line, "/dev/shm/") != NULL && !criterion)) {
            shk_job_fail(job, 1, false, line);
            _exit(1);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

Test(shm, neither_libfabric_nor_a_named_file_is_mapped, .timeout = 300)
{
    struct shk_shm_tweaks tweaks = {.at_phase = is_loaded};
    struct shk_facts *facts = run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "ok", "%s", REASON(facts));
    shk_facts_destroy(facts);
}

static void spoil_result(struct shk_wire *wire, size_t bytes, void *arg)
{
    float *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);

    if (wire->rank == 1 && bytes == *(size_t *)arg) {
        recv[bytes / 4 - 1] += 1.0F;
    }
}

static void spoil_guard(struct shk_wire *wire, size_t bytes, void *arg)
{
    if (wire->rank == 0 && bytes == *(size_t *)arg) {
        wire->mapped[1].base[wire->heap->offset[SHK_AREA_RECV] - 1] = 0; /* of its peer */
    }
}

Test(shm, wrong_elements_and_stray_writes_are_wrong, .timeout = 300)
{
    size_t at = 4096;
    struct shk_shm_tweaks tweaks = {.tamper = spoil_result, .tamper_arg = &at};
    struct shk_facts *facts = run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "wrong", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 1);
    cr_expect_not_null(
        strstr(REASON(facts), "rank 1: wrong result of 4096 B float32: element 1023"), "%s",
        REASON(facts));
    shk_facts_destroy(facts);
    tweaks.tamper = spoil_guard;
    facts = run(&small, &tweaks);
    cr_expect_str_eq(STATUS(facts), "wrong", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 1, "whose memory it is");
    cr_expect_not_null(strstr(REASON(facts), "guard zone"), "%s", REASON(facts));
    shk_facts_destroy(facts);
}

/* What the roofline is of: after it each rank's vector lies in its own receive area, wherever the
 * parts begin, and nothing else was written. */
static void copy_parts(struct shk_wire *wire, size_t bytes, void *arg)
{
    unsigned char *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    size_t whole = bytes - bytes % SHK_TYPE_BYTES;
    unsigned char *before = malloc(bytes + 1);
    int rc = 0;

    (void)arg;
    memcpy(before, recv, bytes);
    shk_wire_begin(wire);
    memset(recv, 0x55, whole);
    rc = shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire);
    rc = rc == 0 ? shk_mapped_copy(wire, whole / SHK_TYPE_BYTES, 4096) : rc;
    if (rc != 0 || memcmp(recv, shk_heap_at(wire->heap, SHK_AREA_SEND), whole) != 0) {
        shk_job_fail(wire->job, 1, false, "parts were not copied");
        _exit(1);
    }
    (void)!shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire);
    memcpy(recv, before, bytes);
    free(before);
}

Test(shm, the_roofline_copies_all_parts, .timeout = 300)
{
    struct shk_shm_tweaks tweaks = {.tamper = copy_parts};
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;
    json_t *row = NULL;
    size_t i = 0;

    options.ranks = 3;
    facts = run(&options, &tweaks);
    cr_expect_str_eq(STATUS(facts), "ok", "%s", REASON(facts));
    json_array_foreach(shk_facts_get_array(facts, "collective.shm.sizes"), i, row)
    {
        double part = json_real_value(json_object_get(row, "efficiency"));
        bool large = json_integer_value(json_object_get(row, "bytes")) >= 65536;

        cr_expect_eq(part > 0, large, "%f", part);
    }
    shk_facts_destroy(facts);
}

Test(shm, a_size_between_two_has_the_higher_roof)
{
    struct shk_roofline roof = {.rows = 2, .row = {{65536, 3.0}, {262144, 5.0}}};

    cr_expect_eq(shk_roofline_bandwidth(&roof, 65535), 0.0);
    cr_expect_eq(shk_roofline_bandwidth(&roof, 65536), 3.0);
    cr_expect_eq(shk_roofline_bandwidth(&roof, 131072), 5.0);
    roof.row[1].bandwidth = 2.0;
    cr_expect_eq(shk_roofline_bandwidth(&roof, 131072), 3.0);
    cr_expect_eq(shk_roofline_bandwidth(&roof, 262144), 2.0);
    cr_expect_eq(shk_roofline_bandwidth(&roof, (uint64_t)1 << 30), 2.0);
}

struct lost {
    enum shk_phase phase;
    int sig; /* 0: hangs */
};

static void lose(struct shk_job *job, enum shk_phase phase, void *arg)
{
    const struct lost *lost = arg;

    if (shk_job_rank(job) != 1 || phase != lost->phase) {
        return;
    }
    while (lost->sig == 0) {
        pause();
    }
    raise(lost->sig);
}

Test(shm, killed_stopped_and_hung_ranks_are_named, .timeout = 600)
{
    static const struct {
        struct lost lost;
        const char *status, *cause, *how;
    } rows[] = {
        {{SHK_PHASE_START, SIGKILL}, "crashed", "rank-ended", "killed by SIGKILL"},
        {{SHK_PHASE_EXCHANGE, SIGKILL}, "crashed", "rank-ended", "killed by SIGKILL"},
        {{SHK_PHASE_WARMUP, SIGSTOP}, "timeout", "rank-stopped", "stopped by SIGSTOP"},
        {{SHK_PHASE_WARMUP, 0}, "timeout", "rank-hung", ""},
    };
    size_t i = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lost lost = rows[i].lost;
        struct shk_shm_tweaks tweaks = {.at_phase = lose, .at_phase_arg = &lost};
        struct shk_collective_options options = small;
        struct shk_facts *facts = NULL;

        options.ranks = 3;
        options.deadline_ms = lost.sig == 0 ? 8000 : 30000;
        facts = run(&options, &tweaks);
        cr_expect_str_eq(STATUS(facts), rows[i].status, "%zu: %s", i, REASON(facts));
        cr_expect_eq(RANK(facts), 1, "%zu: %s", i, REASON(facts));
        cr_expect_str_eq(text(facts, "collective.shm.cause"), rows[i].cause, "%zu", i);
        cr_expect_not_null(strstr(REASON(facts), rows[i].how), "%zu: %s", i, REASON(facts));
        cr_expect_str_neq(PHASE(facts), "");
        shk_facts_destroy(facts);
    }
}

static bool gives_all(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
    int mode = file != NULL ? fgetc(file) : '1';

    if (file != NULL) {
        fclose(file);
    }
    return mode == '1';
}

Test(shm, impossible_sizes_and_memory_are_failed_facts, .timeout = 120)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.min_bytes = 2;
    facts = run(&options, NULL);
    cr_expect_str_eq(STATUS(facts), "failed");
    cr_expect_not_null(strstr(REASON(facts), "sizes 2:131072"), "%s", REASON(facts));
    shk_facts_destroy(facts);
    options = small;
    options.ranks = 1024;
    options.max_bytes = (size_t)1 << 34; /* 1024 times twice 16 GiB: more than there is */
    if (gives_all()) {
        cr_skip_test("the kernel gives memory that is not there (vm.overcommit_memory)");
    }
    facts = run(&options, NULL);
    cr_expect_str_eq(STATUS(facts), "failed", "%s", REASON(facts));
    cr_expect_not_null(strstr(REASON(facts), "shared memory of"), "%s", REASON(facts));
    cr_expect_str_eq(PHASE(facts), "start");
    cr_expect_eq(RANK(facts), -1);
    shk_facts_destroy(facts);
}
