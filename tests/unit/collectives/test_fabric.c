#include "collectives/algorithm/sweep.h"
#include "core/facts/facts.h"
#include "tests/unit/collectives/fabric_run.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct shk_collective_options small = {
    .ranks = 2,
    .min_bytes = 4,
    .max_bytes = 131072,
    .deadline_ms = 60000,
    .provider = "tcp",
};

#define STATUS(f_) fabric_text((f_), "collective.fabric.status")
#define REASON(f_) fabric_text((f_), "collective.fabric.reason")
#define RANK(f_)   shk_facts_get_int((f_), "collective.fabric.rank", -1)

static long long wrong_elements(const struct shk_facts *facts)
{
    json_t *sizes = shk_facts_get_array(facts, "collective.fabric.sizes");
    long long wrong = 0;
    json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(sizes, i, row)
    {
        wrong += json_integer_value(json_object_get(row, "wrong"));
    }
    return wrong;
}

/* From 64 KiB, in steps of four; an efficiency where there is a bandwidth to compare with. */
static void expect_roofline(const struct shk_facts *facts, unsigned ranks)
{
    json_t *roof = shk_facts_get_object(facts, "collective.fabric.roofline");
    json_t *sizes = json_object_get(roof, "sizes");
    json_t *row = NULL;
    size_t i = 0;

    if (ranks == 1) {
        cr_expect_null(roof, "nobody to put to");
        return;
    }
    cr_assert_not_null(roof);
    cr_expect_gt(json_real_value(json_object_get(roof, "latency_us")), 0.0);
    cr_expect_eq(json_array_size(sizes), 1);
    row = json_array_get(sizes, 0);
    cr_expect_eq(json_integer_value(json_object_get(row, "bytes")), 65536);
    cr_expect_gt(json_real_value(json_object_get(row, "bandwidth")), 0.0);
    json_array_foreach(shk_facts_get_array(facts, "collective.fabric.sizes"), i, row)
    {
        bool large = json_integer_value(json_object_get(row, "bytes")) >= 65536;

        cr_expect_eq(json_object_get(row, "efficiency") != NULL, large);
    }
}

static void expect_ok(const struct shk_facts *facts, unsigned ranks, const char *what)
{
    struct shk_sweep_row rows[SHK_SWEEP_MAX];
    json_t *sizes = shk_facts_get_array(facts, "collective.fabric.sizes");
    json_t *states = shk_facts_get_array(facts, "collective.fabric.ranks_state");
    json_t *places = shk_facts_get_array(facts, "collective.fabric.placement");
    json_t *hmem = NULL;
    json_t *row = NULL;
    size_t i = 0;

    cr_assert_str_eq(STATUS(facts), "ok", "%s, %u ranks: %s: %s", what, ranks, STATUS(facts),
                     REASON(facts));
    cr_expect_eq(json_array_size(sizes),
                 shk_sweep_plan(small.min_bytes, small.max_bytes, false, rows));
    cr_expect_eq(json_array_size(states), ranks);
    cr_expect_eq(shk_facts_get_int(facts, "collective.fabric.ranks", 0), ranks);
    cr_expect_eq(wrong_elements(facts), 0);
    json_array_foreach(sizes, i, row)
    {
        cr_expect_gt(json_real_value(json_object_get(row, "time_us")), 0.0);
        cr_expect_geq(json_integer_value(json_object_get(row, "iterations")), 1);
    }
    cr_expect_not_null(strstr(fabric_text(facts, "collective.fabric.library"), "libfabric.so.1"));
    cr_expect_str_neq(fabric_text(facts, "collective.fabric.version"), "");
    cr_expect_str_neq(fabric_text(facts, "collective.fabric.domain"), "");
    cr_expect_str_neq(fabric_text(facts, "collective.fabric.protocol"), "");
    hmem = shk_facts_get_object(facts, "collective.fabric.hmem");
    cr_expect_str_eq(
        json_string_value(json_object_get(hmem, "status")),
        strcmp(fabric_text(facts, "collective.fabric.provider"), "shm") == 0 ? "offered" : "na");
    cr_expect_not_null(strstr(json_string_value(json_object_get(hmem, "reason")), "FI_HMEM"));
    cr_expect_eq(json_array_size(places), ranks);
    json_array_foreach(places, i, row)
    {
        cr_expect_eq(json_integer_value(json_object_get(row, "rank")), (json_int_t)i);
        cr_expect_str_neq(json_string_value(json_object_get(row, "how")), "");
    }
    expect_roofline(facts, ranks);
}

static const struct combination {
    const char *provider;
    const char *expected; /* start of the name that is reported */
    enum shk_fabric_notify notify;
} combinations[] = {
    {"tcp", "tcp", SHK_NOTIFY_AUTO},
    {"shm", "shm", SHK_NOTIFY_AUTO},
    {"tcp", "tcp", SHK_NOTIFY_DELIVERY},
    {"shm", "shm", SHK_NOTIFY_DELIVERY},
};

static void all_ranks(const struct combination *combination)
{
    unsigned ranks = 0;

    for (ranks = 1; ranks <= 4; ranks++) {
        struct shk_collective_options options = small;
        struct shk_fabric_tweaks tweaks = {.notify = combination->notify};
        struct shk_facts *facts = NULL;

        options.ranks = ranks;
        options.provider = combination->provider;
        facts = fabric_run(&options, &tweaks);
        expect_ok(facts, ranks, combination->provider);
        cr_expect_eq(strncmp(fabric_text(facts, "collective.fabric.provider"),
                             combination->expected, strlen(combination->expected)),
                     0, "%s", fabric_text(facts, "collective.fabric.provider"));
        shk_facts_destroy(facts);
    }
}

Test(fabric_long, tcp_one_to_four_ranks, .timeout = 1200)
{
    all_ranks(&combinations[0]);
}

Test(fabric, shm_one_to_four_ranks, .timeout = 1200)
{
    all_ranks(&combinations[1]);
}

Test(fabric_long, tcp_notified_by_message, .timeout = 1200)
{
    all_ranks(&combinations[2]);
}

Test(fabric_long, shm_notified_by_message, .timeout = 1200)
{
    all_ranks(&combinations[3]);
}

Test(fabric, libfabric_chooses_when_not_told, .timeout = 600)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    unsetenv("FI_PROVIDER");
    options.provider = NULL;
    facts = shk_facts_create();
    cr_assert_eq(shk_transport_fabric.run(&options, facts, NULL), 0);
    expect_ok(facts, 2, "libfabric's choice");
    shk_facts_destroy(facts);
}

/* Planted faults of the data. */

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
        wire->heap->base[wire->heap->offset[SHK_AREA_SEND] - 1] = 0;
    }
}

static void spoil_beyond(struct shk_wire *wire, size_t bytes, void *arg)
{
    if (wire->rank == 1 && bytes == *(size_t *)arg) {
        ((unsigned char *)shk_heap_at(wire->heap, SHK_AREA_RECV))[bytes] = 0;
    }
}

Test(fabric, one_wrong_element_is_wrong, .timeout = 600)
{
    size_t at = 4096;
    struct shk_fabric_tweaks tweaks = {.tamper = spoil_result, .tamper_arg = &at};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "wrong", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 1);
    cr_expect_gt(wrong_elements(facts), 0);
    cr_expect_not_null(
        strstr(REASON(facts), "rank 1: wrong result of 4096 B float32: element 1023"), "%s",
        REASON(facts));
    cr_expect_str_eq(fabric_text(facts, "collective.fabric.phase"), "verify");
    shk_facts_destroy(facts);
}

Test(fabric, broken_guard_is_wrong, .timeout = 600)
{
    size_t at = 64;
    struct shk_fabric_tweaks tweaks = {.tamper = spoil_guard, .tamper_arg = &at};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "wrong", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 0);
    cr_expect_not_null(strstr(REASON(facts), "memory corrupted by 64 B"), "%s", REASON(facts));
    shk_facts_destroy(facts);
}

Test(fabric, write_beyond_the_message_is_wrong, .timeout = 600)
{
    size_t at = 32;
    struct shk_fabric_tweaks tweaks = {.tamper = spoil_beyond, .tamper_arg = &at};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "wrong", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 1);
    cr_expect_not_null(strstr(REASON(facts), "receive buffer was written to at byte 32"), "%s",
                       REASON(facts));
    shk_facts_destroy(facts);
}

/* Providers and libraries that are not there. */

Test(fabric, provider_that_does_not_exist, .timeout = 600)
{
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    setenv("FI_PROVIDER", "nosuchprov", 1);
    options.provider = NULL;
    facts = fabric_run(&options, NULL);
    cr_expect_str_eq(STATUS(facts), "failed");
    cr_expect_str_eq(fabric_text(facts, "collective.fabric.phase"), "open");
    cr_expect_not_null(strstr(REASON(facts), "FI_PROVIDER=nosuchprov: libfabric 1."), "%s",
                       REASON(facts));
    cr_expect_not_null(strstr(REASON(facts), "has no provider nosuchprov; it has "), "%s",
                       REASON(facts));
    cr_expect_not_null(strstr(REASON(facts), "tcp"), "%s", REASON(facts));
    shk_facts_destroy(facts);
}

Test(fabric, provider_that_the_filter_excludes, .timeout = 600)
{
    struct shk_facts *facts = NULL;

    setenv("FI_PROVIDER", "nosuchprov", 1);
    facts = fabric_run(&small, NULL);
    cr_expect_str_eq(STATUS(facts), "failed");
    cr_expect_not_null(
        strstr(REASON(facts), "provider tcp: tcp would fit, FI_PROVIDER=nosuchprov excludes it"),
        "%s", REASON(facts));
    shk_facts_destroy(facts);
}

Test(fabric, missing_library_is_a_finding, .timeout = 300)
{
    static const char *const names[] = {"libfabric-not-here.so.1", NULL};
    struct shk_fabric_tweaks tweaks = {.library_names = names};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "failed");
    cr_expect_not_null(strstr(REASON(facts), "libfabric-not-here.so.1"), "%s", REASON(facts));
    cr_expect_str_eq(fabric_text(facts, "collective.fabric.phase"), "open");
    shk_facts_destroy(facts);
}

Test(fabric, another_library_lacks_the_symbols, .timeout = 300)
{
    static const char *const names[] = {"libc.so.6", NULL};
    struct shk_fabric_tweaks tweaks = {.library_names = names};
    struct shk_facts *facts = fabric_run(&small, &tweaks);

    cr_expect_str_eq(STATUS(facts), "failed");
    cr_expect_not_null(strstr(REASON(facts), "fi_getinfo"), "%s", REASON(facts));
    shk_facts_destroy(facts);
}

Test(fabric, impossible_options_are_failed_facts)
{
    static const struct {
        unsigned ranks;
        size_t min;
        size_t max;
        const char *reason;
    } cases[] = {
        {0, 4, 64, "0 ranks"},           {2, 1, 64, "sizes 1:64"},
        {2, 64, 32, "sizes 64:32"},      {2, 4, SIZE_MAX, "are possible"},
        {100000, 4, 64, "100000 ranks"},
    };
    size_t i = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_collective_options options = small;
        struct shk_facts *facts = NULL;

        options.ranks = cases[i].ranks;
        options.min_bytes = cases[i].min;
        options.max_bytes = cases[i].max;
        facts = fabric_run(&options, NULL);
        cr_expect_str_eq(STATUS(facts), "failed");
        cr_expect_not_null(strstr(REASON(facts), cases[i].reason), "%s", REASON(facts));
        shk_facts_destroy(facts);
    }
}

/* Ranks that are lost, as seen from outside: through the pids that progress tells. */

struct assassin {
    int sig;
    const char *at; /* progress text that triggers it */
    pid_t victim;
    bool done;
};

static void watch_progress(const char *line, void *arg)
{
    struct assassin *assassin = arg;
    int pid = 0;

    if (sscanf(line, "fabric: rank 1 pid %d", &pid) == 1) {
        assassin->victim = pid;
    }
    if (!assassin->done && assassin->victim > 0 && strstr(line, assassin->at) != NULL) {
        assassin->done = kill(assassin->victim, assassin->sig) == 0;
    }
}

static bool shm_has(pid_t pid)
{
    DIR *dir = opendir("/dev/shm");
    struct dirent *entry = NULL;
    char want[32];
    bool found = false;

    snprintf(want, sizeof(want), "%d:", (int)pid);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        found = found || strncmp(entry->d_name, want, strlen(want)) == 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

static void lose_rank(const char *provider, int sig, const char *status, const char *how)
{
    struct assassin assassin = {.sig = sig, .at = "fabric: allreduce"};
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;
    struct timespec a, b;

    options.provider = provider;
    options.ranks = 3;
    options.max_bytes = (size_t)16 << 20; /* never done before the signal */
    options.deadline_ms = 30000;
    options.progress = watch_progress;
    options.progress_arg = &assassin;
    clock_gettime(CLOCK_MONOTONIC, &a);
    facts = fabric_run(&options, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_assert(assassin.done, "%s: never got to the all-reduce: %s", provider, REASON(facts));
    cr_expect_str_eq(STATUS(facts), status, "%s: %s", provider, REASON(facts));
    cr_expect_eq(RANK(facts), 1, "%s: %s", provider, REASON(facts));
    cr_expect_not_null(strstr(REASON(facts), how), "%s", REASON(facts));
    cr_expect(strncmp(fabric_text(facts, "collective.fabric.phase"), "allreduce ", 10) == 0 ||
                  strcmp(fabric_text(facts, "collective.fabric.phase"), "verify") == 0,
              "%s", fabric_text(facts, "collective.fabric.phase"));
    cr_expect_lt(b.tv_sec - a.tv_sec, 20);
    cr_expect_eq(kill(assassin.victim, 0), -1, "the lost rank still exists");
    cr_expect_not(shm_has(assassin.victim), "a segment is left in /dev/shm");
    cr_expect_str_neq(fabric_text(facts, "collective.fabric.provider"), "");
    shk_facts_destroy(facts);
}

Test(fabric, killed_rank_is_named, .timeout = 600)
{
    lose_rank("tcp", SIGKILL, "crashed", "killed by SIGKILL");
}

Test(fabric, stopped_rank_is_named, .timeout = 600)
{
    lose_rank("shm", SIGSTOP, "timeout", "stopped by SIGSTOP");
}

Test(fabric_long, lost_rank_is_named, .timeout = 1200)
{
    lose_rank("shm", SIGKILL, "crashed", "killed by SIGKILL");
    lose_rank("tcp", SIGSTOP, "timeout", "stopped by SIGSTOP");
}

/* A rank that is stopped for a while and continues is no fault. */
static void nap_progress(const char *line, void *arg)
{
    struct assassin *assassin = arg;

    watch_progress(line, arg);
    if (assassin->done && assassin->sig == SIGSTOP) {
        usleep(500000);
        kill(assassin->victim, SIGCONT);
        assassin->sig = SIGCONT;
    }
}

Test(fabric, short_stop_is_survived, .timeout = 600)
{
    struct assassin assassin = {.sig = SIGSTOP, .at = "fabric: allreduce"};
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.progress = nap_progress;
    options.progress_arg = &assassin;
    facts = fabric_run(&options, NULL);
    cr_expect(assassin.done);
    expect_ok(facts, 2, "after a stop");
    shk_facts_destroy(facts);
}

struct planted {
    enum shk_phase phase;
    int sig; /* 0: hang */
};

static void at_phase(struct shk_job *job, enum shk_phase phase, void *arg)
{
    const struct planted *planted = arg;

    if (shk_job_rank(job) == 1 && phase == planted->phase) {
        if (planted->sig != 0) {
            kill(getpid(), planted->sig);
        }
        for (;;) {
            pause();
        }
    }
}

Test(fabric, rank_lost_in_any_phase_is_named, .timeout = 1200)
{
    static const enum shk_phase phases[] = {SHK_PHASE_START,    SHK_PHASE_OPEN,
                                            SHK_PHASE_REGISTER, SHK_PHASE_EXCHANGE,
                                            SHK_PHASE_WARMUP,   SHK_PHASE_TEARDOWN};
    size_t i = 0;

    for (i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        struct planted planted = {.phase = phases[i], .sig = SIGKILL};
        struct shk_fabric_tweaks tweaks = {.at_phase = at_phase, .at_phase_arg = &planted};
        struct shk_collective_options options = small;
        struct shk_facts *facts = NULL;
        char name[64];

        options.max_bytes = 64;
        options.provider = i % 2 != 0 ? "tcp" : "shm";
        facts = fabric_run(&options, &tweaks);
        shk_job_phase_text(phases[i], 0, name, sizeof(name));
        cr_expect_str_eq(STATUS(facts), "crashed", "%s", REASON(facts));
        cr_expect_eq(RANK(facts), 1, "%s: %s", name, REASON(facts));
        cr_expect_str_eq(fabric_text(facts, "collective.fabric.phase"), name);
        shk_facts_destroy(facts);
    }
}

/* On a loaded machine ranks may not get as far before a short deadline: then with a longer one. */
static struct shk_facts *run_until_hung(const struct planted *planted, const char *phase)
{
    struct shk_fabric_tweaks tweaks = {.at_phase = at_phase, .at_phase_arg = (void *)planted};
    struct shk_collective_options options = small;
    struct shk_facts *facts = NULL;

    options.ranks = 3;
    for (options.deadline_ms = 2500; options.deadline_ms < 80000; options.deadline_ms *= 4) {
        shk_facts_destroy(facts);
        facts = fabric_run(&options, &tweaks);
        if (RANK(facts) == 1 && strcmp(fabric_text(facts, "collective.fabric.phase"), phase) == 0) {
            break;
        }
    }
    return facts;
}

static void hang_in(enum shk_phase phase)
{
    struct planted planted = {.phase = phase};
    struct shk_facts *facts = NULL;
    char name[64];

    shk_job_phase_text(phase, 0, name, sizeof(name));
    facts = run_until_hung(&planted, name);
    cr_expect_str_eq(STATUS(facts), "timeout", "%s", REASON(facts));
    cr_expect_eq(RANK(facts), 1, "%s: %s", name, REASON(facts));
    cr_expect_str_eq(fabric_text(facts, "collective.fabric.phase"), name);
    shk_facts_destroy(facts);
}

Test(fabric, rank_that_hangs_is_named_at_the_deadline, .timeout = 600)
{
    hang_in(SHK_PHASE_REGISTER);
}

Test(fabric_long, rank_that_hangs_is_named_at_the_deadline, .timeout = 600)
{
    hang_in(SHK_PHASE_WARMUP);
}

/* A killed supervisor leaves neither ranks nor segments. */

static void tell_pid(const char *line, void *arg)
{
    int pid = 0;

    if (sscanf(line, "fabric: rank 1 pid %d", &pid) == 1) {
        (void)!write(*(int *)arg, &pid, sizeof(pid));
    }
    if (strstr(line, "fabric: allreduce") != NULL || strstr(line, "fabric: verify") != NULL) {
        kill(getpid(), SIGKILL);
    }
}

static bool is_gone(pid_t pid)
{
    char path[64];
    char line[256] = "";
    FILE *file = NULL;
    const char *state = NULL;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return true;
    }
    (void)!fgets(line, sizeof(line), file);
    fclose(file);
    state = strrchr(line, ')');
    return state == NULL || state[1] == '\0' || state[2] == 'Z';
}

Test(fabric, killed_supervisor_leaves_nothing, .timeout = 300)
{
    struct shk_collective_options options = small;
    pid_t supervisor = 0;
    int fds[2];
    int pid = 0;
    int i = 0;

    cr_assert_eq(pipe(fds), 0);
    options.provider = "shm";
    options.max_bytes = (size_t)16 << 20;
    options.progress = tell_pid;
    options.progress_arg = &fds[1];
    supervisor = fork();
    if (supervisor == 0) {
        struct shk_facts *facts = shk_facts_create();

        _exit(shk_fabric_run(&options, NULL, facts, NULL) == 0 ? 0 : 1);
    }
    cr_assert_eq(read(fds[0], &pid, sizeof(pid)), (ssize_t)sizeof(pid));
    cr_assert_eq(waitpid(supervisor, &i, 0), supervisor);
    cr_assert(WIFSIGNALED(i), "the supervisor was not killed: status %#x", i);
    for (i = 0; i < 1500 && !(is_gone(pid) && !shm_has(pid)); i++) {
        usleep(20000);
    }
    cr_expect(is_gone(pid), "rank 1 still runs");
    cr_expect_not(shm_has(pid), "its segment is left in /dev/shm");
    close(fds[0]);
    close(fds[1]);
}
