#include "collectives/ranks/agree.h"
#include "collectives/ranks/crew_private.h"
#include "collectives/ranks/oom.h"
#include "core/run/stop.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* A crew that began a phase or an operation this recently is slow, not hung. */
#define BLAME_MOVING_MS 1000U

/* A reported error carries its own exact time, a death happened at some time after the rank was
 * last seen alive; from other nodes both come in milliseconds and by different ways. */
#define BLAME_TICK_NS 20000000ULL

/* Why a rank is out, strongest evidence of being first last. */
enum blame_class {
    BLAME_NONE,
    BLAME_ECHO,  /* reported an error that another rank's end explains */
    BLAME_CAUSE, /* crashed, stopped, or reported an error of its own */
};

static const char *const status_names[] = {
    [SHK_RANK_NOT_STARTED] = "not started",
    [SHK_RANK_RUNNING] = "running",
    [SHK_RANK_OK] = "ok",
    [SHK_RANK_FAILED] = "failed",
    [SHK_RANK_CRASHED] = "crashed",
    [SHK_RANK_STOPPED] = "stopped",
    [SHK_RANK_HUNG] = "hung",
    [SHK_RANK_ABORTED] = "aborted",
    [SHK_RANK_LOST] = "lost",
};

const char *shk_crew_status(enum shk_crew_outcome outcome)
{
    static const char *const names[] = {
        [SHK_CREW_OK] = "ok",           [SHK_CREW_FAILED] = "failed",
        [SHK_CREW_CRASHED] = "crashed", [SHK_CREW_TIMEOUT] = "timeout",
        [SHK_CREW_STARVED] = "starved",
    };

    return names[outcome];
}

const char *shk_rank_status_name(enum shk_rank_status status)
{
    return status_names[status];
}

bool shk_crew_has_cause(const struct crew_run *run)
{
    for (unsigned i = 0; i < run->job->ranks; i++) {
        const struct crew_watch *watch = &run->watch[i];
        const struct shk_job_slot *slot = &run->job->slots[i];
        bool failed = atomic_load(&slot->failed) != 0;
        bool done = atomic_load(&slot->phase) == SHK_PHASE_DONE;

        if (watch->lost || watch->stopped_ns != 0 || (failed && !slot->fail_by_peer) ||
            (!watch->alive && (watch->code != CLD_EXITED || (!failed && !done)))) {
            return true;
        }
    }
    return false;
}

static void blame_states(struct crew_run *run)
{
    for (unsigned i = 0; i < run->job->ranks; i++) {
        const struct crew_watch *watch = &run->watch[i];
        struct shk_job_slot *slot = &run->job->slots[i];
        struct shk_crew_rank *rank = &run->result->ranks[i];
        enum shk_phase phase = (enum shk_phase)atomic_load(&slot->phase);

        shk_job_phase_text(phase, atomic_load(&slot->bytes), rank->phase, sizeof rank->phase);
        if (watch->lost) {
            rank->status = SHK_RANK_LOST;
        } else if (watch->alive && atomic_load(&slot->failed) != 0) {
            rank->status = SHK_RANK_FAILED; /* and did not get to its end */
        } else if (watch->alive) {
            rank->status = watch->stopped_ns != 0 ? SHK_RANK_STOPPED : SHK_RANK_ABORTED;
        } else if (watch->code == CLD_EXITED && watch->status == 0 && phase == SHK_PHASE_DONE) {
            rank->status = SHK_RANK_OK;
        } else if (watch->code == CLD_EXITED && atomic_load(&slot->failed) != 0) {
            rank->status = SHK_RANK_FAILED;
        } else {
            rank->status = SHK_RANK_CRASHED;
        }
    }
}

static enum blame_class blame_class(const struct crew_run *run, unsigned i, uint64_t *when_p)
{
    const struct crew_watch *watch = &run->watch[i];
    const struct shk_job_slot *slot = &run->job->slots[i];

    switch (run->result->ranks[i].status) {
    case SHK_RANK_LOST: *when_p = watch->ended_ns - BLAME_TICK_NS; return BLAME_CAUSE;
    case SHK_RANK_CRASHED:
        *when_p = (watch->seen_ns != 0 ? watch->seen_ns : watch->ended_ns) - BLAME_TICK_NS;
        return BLAME_CAUSE;
    case SHK_RANK_STOPPED: *when_p = watch->stopped_ns; return BLAME_CAUSE;
    case SHK_RANK_FAILED:
        *when_p = slot->fail_ns;
        return slot->fail_by_peer ? BLAME_ECHO : BLAME_CAUSE;
    default: return BLAME_NONE;
    }
}

/* The first rank that is out, -1 when all are well or waiting. */
static int blame_first(const struct crew_run *run)
{
    enum blame_class best = BLAME_NONE;
    uint64_t best_when = 0;
    int first = -1;

    for (unsigned i = 0; i < run->job->ranks; i++) {
        uint64_t when = 0;
        enum blame_class class = blame_class(run, i, &when);

        if (class > best || (class == best && class != BLAME_NONE && when < best_when)) {
            best = class;
            best_when = when;
            first = (int)i;
        }
    }
    return first;
}

/* Follows "waits for" from a rank to one that waits for nobody; -1 when it goes round in a circle.
 */
static int blame_follow(const struct crew_run *run, unsigned from)
{
    int at = (int)from;

    for (unsigned steps = 0; steps <= run->job->ranks; steps++) {
        int next = atomic_load(&run->job->slots[at].waiting);

        if (next < 0 || next >= (int)run->job->ranks || next == at) {
            return at;
        }
        at = next;
    }
    return -1;
}

bool shk_crew_settled(const struct crew_run *run)
{
    for (unsigned i = 0; i < run->job->ranks; i++) {
        int at = run->watch[i].alive ? blame_follow(run, i) : -1;

        if (run->watch[i].alive && atomic_load(&run->job->slots[i].failed) == 0 &&
            (at < 0 || (run->watch[at].alive && atomic_load(&run->job->slots[at].failed) == 0))) {
            return false;
        }
    }
    return true;
}

/* The rank that the others wait for; -1 when there is none, or it is every rank alike. */
static int blame_hung(const struct crew_run *run)
{
    unsigned culprits = 0;
    int best = -1;

    for (unsigned i = 0; i < run->job->ranks; i++) {
        const struct shk_job_slot *slot = &run->job->slots[i];
        const struct shk_job_slot *chosen = NULL;

        if (!run->watch[i].alive || atomic_load(&slot->failed) != 0 ||
            (run->parts && atomic_load(&slot->phase) == SHK_PHASE_DONE) ||
            blame_follow(run, i) != (int)i) {
            continue; /* one that has ended this part waits for the others */
        }
        culprits++;
        chosen = best >= 0 ? &run->job->slots[best] : NULL;
        if (!chosen || atomic_load(&slot->phase) < atomic_load(&chosen->phase) ||
            (atomic_load(&slot->phase) == atomic_load(&chosen->phase) &&
             atomic_load(&slot->op) < atomic_load(&chosen->op))) {
            best = (int)i;
        }
    }
    return culprits == run->job->ranks && culprits > 1 ? -1 : best;
}

/* "rank 3 (pid 1234)", or "rank 3 (node2, pid 1234)" when it runs elsewhere. */
static const char *blame_name(const struct crew_run *run, int rank, char *buf, size_t size)
{
    const struct shk_crew_rank *state = &run->result->ranks[rank];

    snprintf(buf, size, "rank %u (%s%spid %d)", state->id, state->host,
             state->host[0] != '\0' ? ", " : "", (int)state->pid);
    return buf;
}

static void blame_where(const struct crew_run *run, int rank, char *buf, size_t size)
{
    const struct shk_job_slot *slot = &run->job->slots[rank];
    const char *phase = run->result->ranks[rank].phase;
    const char *sep = slot->library[0] != '\0' && slot->call[0] != '\0' ? ": " : "";
    uint64_t bytes = atomic_load(&slot->bytes);
    char at[48] = "";

    if (bytes != 0 && atomic_load(&slot->phase) == SHK_PHASE_VERIFY)
        snprintf(at, sizeof at, " (at %llu B)", (unsigned long long)bytes);
    if (slot->library[0] == '\0' && slot->call[0] == '\0') {
        snprintf(buf, size, "phase %s%s", phase, at);
    } else {
        snprintf(buf, size, "phase %s%s, in %.127s%s%.127s", phase, at, slot->library, sep,
                 slot->call);
    }
}

/* First line that the rank wrote, for a library's own last words. */
static void blame_words(const struct crew_run *run, int rank, char *buf, size_t size)
{
    const char *output = run->result->ranks[rank].output;

    output += strspn(output, "\n");
    snprintf(buf, size, "%s%.*s", *output != '\0' ? "; it wrote: " : "", (int)strcspn(output, "\n"),
             output);
}

/* Was it the kernel that sent SIGKILL? Known of ranks of this node only. */
static bool blame_memory(const struct crew_run *run, int rank)
{
    uint64_t kills = shk_oom_kills();

    return run->watch[rank].status == SIGKILL && (unsigned)rank >= run->first &&
           (unsigned)rank < run->last && kills != UINT64_MAX && kills > run->oom_kills;
}

static void blame_crashed(struct crew_run *run, int rank)
{
    const struct crew_watch *watch = &run->watch[rank];
    struct shk_error *reason = &run->result->reason;
    char who[128];
    char where[384];
    char words[160];
    char name[32];

    blame_where(run, rank, where, sizeof where);
    blame_words(run, rank, words, sizeof words);
    run->result->outcome = SHK_CREW_CRASHED;
    run->result->cause = "rank-ended";
    (void)blame_name(run, rank, who, sizeof who);
    if (watch->code == CLD_EXITED) {
        (void)shk_error_set(reason, ECHILD, "%s exited by itself with status %d in %s%s", who,
                            watch->status, where, words);
    } else {
        run->result->out_of_memory = blame_memory(run, rank);
        run->result->cause = run->result->out_of_memory ? "node-memory" : "rank-ended";
        (void)shk_error_set(reason, ECHILD, "%s was killed by %s%s in %s%s", who,
                            shk_signal_name(watch->status, name, sizeof name),
                            run->result->out_of_memory ? " when the kernel ran out of memory" : "",
                            where, words);
    }
}

static void blame_stopped(struct crew_run *run, int rank, bool expired)
{
    const struct crew_watch *watch = &run->watch[rank];
    uint64_t ms = (shk_job_now_ns() - watch->stopped_ns) / 1000000U;
    char who[128];
    char where[384];
    char name[32];

    blame_where(run, rank, where, sizeof where);
    run->result->outcome = SHK_CREW_TIMEOUT;
    run->result->cause = "rank-stopped";
    (void)shk_error_set(&run->result->reason, ETIMEDOUT,
                        "%s was stopped by %s in %s and did not continue within %llu ms%s",
                        blame_name(run, rank, who, sizeof who),
                        shk_signal_name(watch->stopsig, name, sizeof name), where,
                        (unsigned long long)ms, expired ? " (deadline)" : "");
}

static void blame_failed(struct crew_run *run, int rank)
{
    const struct shk_crew_rank *state = &run->result->ranks[rank];

    run->result->outcome = SHK_CREW_FAILED;
    (void)shk_error_set(&run->result->reason, run->job->slots[rank].fail_errnum,
                        "rank %u%s%s, phase %s: %s", state->id,
                        state->host[0] != '\0' ? " on " : "", state->host, state->phase,
                        run->job->slots[rank].fail.text);
}

/* Ranks that differ: the majority says which, whoever noticed first. */
static void blame_disagreement(struct crew_run *run, int rank)
{
    const json_t *row = json_array_get(run->result->disagree, 0);
    char text[400];

    run->result->outcome = SHK_CREW_FAILED;
    if (!json_is_true(json_object_get(row, "must"))) {
        blame_failed(run, rank); /* what it saw was not published, or is gone */
        run->result->rank = -1;
        return;
    }
    shk_agree_text(row, text, sizeof text);
    run->result->rank = (int)json_integer_value(json_object_get(row, "odd_rank"));
    (void)shk_error_set(&run->result->reason, EPROTO, "phase %s: %s", run->result->phase, text);
}

/* What each kind of loss shows; see enum crew_loss. */
static const struct {
    const char *cause, *text;
    enum shk_crew_outcome outcome;
} blame_losses[] = {
    [CREW_LOSS_UNKNOWN] = {NULL, "its process, its node or the way to it is gone",
                           SHK_CREW_CRASHED},
    [CREW_LOSS_CLOSED] = {"rank-ended", "the process has ended, its connection was closed",
                          SHK_CREW_CRASHED},
    [CREW_LOSS_MUTE] = {"rank-stopped",
                        "its host still answers and runs other processes of the job, so it is "
                        "stopped",
                        SHK_CREW_TIMEOUT},
    [CREW_LOSS_SILENT] =
        {"rank-silent",
         "its host still answers, but does not show whether its processes were stopped "
         "or get no processor time",
         SHK_CREW_TIMEOUT},
    [CREW_LOSS_WAY] = {"node-unreachable",
                       "its host acknowledges nothing any more: the node is down or the way to it "
                       "is cut",
                       SHK_CREW_TIMEOUT},
};

static void blame_lost(struct crew_run *run, int rank)
{
    const struct crew_watch *watch = &run->watch[rank];
    uint64_t ms = (shk_job_now_ns() - watch->ended_ns) / 1000000U;
    char who[128];
    char where[384];

    blame_where(run, rank, where, sizeof where);
    run->result->outcome = blame_losses[watch->loss].outcome;
    run->result->cause = blame_losses[watch->loss].cause;
    (void)shk_error_set(&run->result->reason, EHOSTDOWN,
                        "%s: no word from it for %llu ms, last seen in %s: %s",
                        blame_name(run, rank, who, sizeof who), (unsigned long long)ms, where,
                        blame_losses[watch->loss].text);
}

static int blame_least(const struct crew_run *run)
{
    unsigned least = 0;

    for (unsigned i = 1; i < run->job->ranks; i++) {
        if (atomic_load(&run->job->slots[i].phase) < atomic_load(&run->job->slots[least].phase))
            least = i;
    }
    return (int)least;
}

/* The rank that everyone waits for (-1: they wait for each other), or one of these, had no
 * processor; -1 when that is not so. */
static int blame_starved(const struct crew_run *run, int hung)
{
    unsigned i = 0;

    if (hung >= 0)
        return run->watch[hung].starved ? hung : -1;
    while (i < run->job->ranks && !(run->watch[i].alive && run->watch[i].starved))
        i++;
    return i < run->job->ranks ? (int)i : -1;
}

static void blame_say_starved(struct crew_run *run, int rank)
{
    const struct crew_watch *watch = &run->watch[rank];
    char who[128];

    run->result->outcome = SHK_CREW_STARVED;
    run->result->rank = -1;
    (void)shk_error_set(
        &run->result->reason, ETIMEDOUT,
        "not finished after %u ms; the node was too busy: in phase %s %s got %.1f s "
        "of processor time in %.1f s and waited %.1f s for more",
        run->crew->deadline_ms, run->result->ranks[rank].phase,
        blame_name(run, rank, who, sizeof who), watch->ran_ms / 1e3, watch->still_ms / 1e3,
        watch->waited_ms / 1e3);
}

static void blame_expired(struct crew_run *run)
{
    struct shk_crew_result *result = run->result;
    bool moving = shk_job_now_ns() - run->moved_ns < BLAME_MOVING_MS * 1000000ULL;
    int rank = moving ? -1 : blame_hung(run);
    int starved = moving ? -1 : blame_starved(run, rank);
    int least = rank >= 0 ? rank : blame_least(run);
    unsigned ms = run->crew->deadline_ms;
    char who[128];
    char where[384];

    blame_where(run, least, where, sizeof where);
    result->outcome = SHK_CREW_TIMEOUT;
    result->rank = rank;
    snprintf(result->phase, sizeof result->phase, "%s", result->ranks[least].phase);
    result->moving = moving;
    if (moving) {
        (void)shk_error_set(&result->reason, ETIMEDOUT,
                            "not finished after %u ms, but still moving: phase %s", ms,
                            result->phase);
    } else if (starved >= 0) {
        blame_say_starved(run, starved);
    } else if (rank >= 0) {
        result->ranks[rank].status = SHK_RANK_HUNG;
        result->cause = "rank-hung";
        (void)shk_error_set(&result->reason, ETIMEDOUT, "%s hangs in %s; gave up after %u ms",
                            blame_name(run, rank, who, sizeof who), where, ms);
    } else {
        result->cause = "all-hang";
        (void)shk_error_set(&result->reason, ETIMEDOUT,
                            "all ranks hang, none ahead of the others, in %s; gave up after %u ms",
                            where, ms);
    }
}

/* When every rank reports the same error of its own, the cause is not a rank. */
static void blame_all(struct crew_run *run)
{
    const struct shk_job_slot *slots = run->job->slots;

    for (unsigned i = 0; i < run->job->ranks; i++) {
        if (run->result->ranks[i].status != SHK_RANK_FAILED || slots[i].fail_by_peer ||
            strcmp(slots[i].fail.text, slots[0].fail.text) != 0) {
            return;
        }
    }
    if (run->job->ranks > 1) {
        run->result->rank = -1;
        (void)shk_error_set(&run->result->reason, slots[0].fail_errnum, "all ranks, phase %s: %s",
                            run->result->phase, slots[0].fail.text);
    }
}

static bool blame_is_echo(const struct crew_run *run, int rank)
{
    return run->job->slots[rank].fail_by_peer && run->result->ranks[rank].status == SHK_RANK_FAILED;
}

void shk_crew_blame(struct crew_run *run, bool expired)
{
    struct shk_crew_result *result = run->result;
    int rank = -1;

    for (unsigned i = run->first; i < run->last; i++)
        shk_crew_share_end(run, i);
    blame_states(run);
    rank = blame_first(run);
    if (rank >= 0 || expired)
        result->disagree = shk_agree_judge(run->job, result);
    if (rank < 0 || (expired && blame_is_echo(run, rank) && blame_hung(run) >= 0)) {
        if (expired)
            blame_expired(run);
        return;
    }
    result->rank = rank;
    snprintf(result->phase, sizeof result->phase, "%s", result->ranks[rank].phase);
    switch (result->ranks[rank].status) {
    case SHK_RANK_CRASHED: blame_crashed(run, rank); break;
    case SHK_RANK_STOPPED: blame_stopped(run, rank, expired); break;
    case SHK_RANK_LOST: blame_lost(run, rank); break;
    default:
        if (run->job->slots[rank].fail_disagrees) {
            blame_disagreement(run, rank);
            return;
        }
        blame_failed(run, rank);
        break;
    }
    blame_all(run);
    /* An error that can only be an echo, with nobody else out: the peer is not known to be bad. */
    if (blame_is_echo(run, rank))
        result->rank = run->job->ranks == 1 ? 0 : -1;
}
