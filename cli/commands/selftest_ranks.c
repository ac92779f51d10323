/* Faults planted in a real all-reduce between two local ranks. */
#include "cli/commands/selftest.h"
#include "collectives/fabric/fabric.h"
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

static void ranks_try(struct shk_selftest_report *report, const char *what,
                      const struct shk_fabric_tweaks *tweaks, const char *status, bool blames)
{
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    const struct shk_collective_options options = {
        .ranks = 2,
        .min_bytes = 4,
        .max_bytes = 4096,
        .deadline_ms = tweaks->at_phase == ranks_hang ? RANKS_HANG_MS : RANKS_END_MS};
    int rc = facts ? shk_fabric_run(&options, tweaks, facts, &err) : -1;
    const char *got = rc == 0 ? shk_facts_get_text(facts, "collective.fabric.status") : NULL;
    const char *reason = rc == 0 ? shk_facts_get_text(facts, "collective.fabric.reason") : NULL;
    long long rank = rc == 0 ? shk_facts_get_int(facts, "collective.fabric.rank", -1) : -1;
    char *problem = shk_strf("%s, rank %lld: %s", got ? got : "no answer", rank,
                             rc ? err.text : (reason ? reason : "no reason"));
    bool found = got && strcmp(got, status) == 0 && (!blames || rank == 1);
    shk_selftest_count(report, "all-reduce", what, found, problem);
    free(problem);
    shk_facts_destroy(facts);
}

void shk_selftest_ranks(struct shk_selftest_report *report)
{
    static const struct {
        const char *what;
        struct shk_fabric_tweaks tweaks;
        const char *status;
        bool blames;
    } faults[] = {
        {"none: two healthy ranks", {.tamper = NULL}, "ok", false},
        {"one wrong element on rank 1", {.tamper = ranks_wrong}, "wrong", true},
        {"rank 1 writes beyond the result", {.tamper = ranks_beyond}, "wrong", true},
        {"rank 1 is killed", {.at_phase = ranks_kill}, "crashed", true},
        {"rank 1 is stopped", {.at_phase = ranks_stop}, "timeout", true},
        {"rank 1 hangs", {.at_phase = ranks_hang}, "timeout", true},
    };
    report->area = "ranks";
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        ranks_try(report, faults[i].what, &faults[i].tweaks, faults[i].status, faults[i].blames);
}
