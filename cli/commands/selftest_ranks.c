/* Faults planted in a real all-reduce between two local ranks. */
#include "cli/commands/selftest.h"
#include "collectives/fabric/fabric.h"
#include "collectives/other/shm.h"
#include "core/text/strbuf.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ranks_wrong(struct shk_wire *wire, size_t bytes, void *arg)
{
    unsigned char *result = shk_heap_at(wire->heap, SHK_AREA_RECV);
    (void)arg;
    if (wire->rank == 1 && bytes == 1024)
        result[517] ^= 0x40;
}

static void ranks_beyond(struct shk_wire *wire, size_t bytes, void *arg)
{
    unsigned char *result = shk_heap_at(wire->heap, SHK_AREA_RECV);
    (void)arg;
    if (wire->rank == 1 && bytes == 1024)
        result[bytes] = 0x11;
}

static void ranks_kill(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (shk_job_rank(job) == 1 && phase == SHK_PHASE_EXCHANGE)
        raise(SIGKILL);
}

static void ranks_stop(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    if (shk_job_rank(job) == 1 && phase == SHK_PHASE_EXCHANGE)
        raise(SIGSTOP);
}

static void ranks_hang(struct shk_job *job, enum shk_phase phase, void *arg)
{
    (void)arg;
    while (shk_job_rank(job) == 1 && phase == SHK_PHASE_REGISTER)
        pause();
}

/* Only a rank that hangs is waited for until the deadline: the others may have a busy machine. */
enum { RANKS_HANG_MS = 8000, RANKS_END_MS = 30000 };

/* A fault, or none, in the all-reduce over libfabric or (shm) in shared memory of our own. */
struct ranks_fault {
    const char *what;
    void (*tamper)(struct shk_wire *wire, size_t bytes, void *arg);
    void (*at_phase)(struct shk_job *job, enum shk_phase phase, void *arg);
    const char *status;
    bool blames, shm;
};

static int ranks_run(const struct ranks_fault *fault, struct shk_facts *facts,
                     struct shk_error *err)
{
    const struct shk_fabric_tweaks fabric = {.tamper = fault->tamper, .at_phase = fault->at_phase};
    const struct shk_shm_tweaks shm = {.tamper = fault->tamper, .at_phase = fault->at_phase};
    const struct shk_collective_options options = {
        .ranks = 2,
        .min_bytes = 4,
        .max_bytes = 4096,
        .deadline_ms = fault->at_phase == ranks_hang ? RANKS_HANG_MS : RANKS_END_MS};
    return fault->shm ? shk_shm_run(&options, &shm, facts, err)
                      : shk_fabric_run(&options, &fabric, facts, err);
}

static void ranks_try(struct shk_selftest_report *report, const struct ranks_fault *fault)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    const char *prefix = fault->shm ? "collective.shm" : "collective.fabric";
    char *keys[] = {shk_strf("%s.status", prefix), shk_strf("%s.reason", prefix),
                    shk_strf("%s.rank", prefix)};
    bool ran = facts && keys[0] && keys[1] && keys[2] && ranks_run(fault, facts, &err) == 0;
    const char *got = ran ? shk_facts_get_text(facts, keys[0]) : NULL;
    const char *reason = ran ? shk_facts_get_text(facts, keys[1]) : NULL;
    long long rank = ran ? shk_facts_get_int(facts, keys[2], -1) : -1;
    char *problem = shk_strf("%s, rank %lld: %s", got ? got : "no answer", rank,
                             ran ? (reason ? reason : "no reason") : err.text);
    bool found = got && strcmp(got, fault->status) == 0 && (!fault->blames || rank == 1);
    shk_selftest_count(report, fault->shm ? "all-reduce (shm)" : "all-reduce", fault->what, found,
                       problem);
    free(problem);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        free(keys[i]);
    shk_facts_destroy(facts);
}

void shk_selftest_ranks(struct shk_selftest_report *report)
{
    static const struct ranks_fault faults[] = {
        {"none: two healthy ranks", NULL, NULL, "ok", false, false},
        {"one wrong element on rank 1", ranks_wrong, NULL, "wrong", true, false},
        {"rank 1 writes beyond the result", ranks_beyond, NULL, "wrong", true, false},
        {"rank 1 is killed", NULL, ranks_kill, "crashed", true, false},
        {"rank 1 is stopped", NULL, ranks_stop, "timeout", true, false},
        {"rank 1 hangs", NULL, ranks_hang, "timeout", true, false},
        {"none: two healthy ranks", NULL, NULL, "ok", false, true},
        {"one wrong element on rank 1", ranks_wrong, NULL, "wrong", true, true},
        {"rank 1 is killed", NULL, ranks_kill, "crashed", true, true},
    };
    report->area = "ranks";
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        ranks_try(report, &faults[i]);
}
