#include "collectives/ranks/crew.h"
#include "collectives/ranks/crew_private.h"
#include "collectives/ranks/oom.h"
#include "collectives/ranks/place.h"
#include "core/facts/facts.h"
#include "core/run/isolate.h"
#include "core/run/stop.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Deaths are seen at once through the output pipe; this bounds the delay for stops. */
#define CREW_TICK_MS 20

/* A rank in an uninterruptible driver call does not die of SIGKILL: it is left behind rather than
 * waited for, and dies when the call returns. */
#define CREW_REAP_MS 2000

struct shk_crew shk_crew_of(const struct shk_collective_options *options, const char *name,
                            int (*work)(struct shk_job *job, void *arg, struct shk_error *err),
                            void *arg)
{
    return (struct shk_crew){.name = name,
                             .deadline_ms = options->deadline_ms,
                             .work = work,
                             .arg = arg,
                             .progress = options->progress,
                             .progress_arg = options->progress_arg};
}

static void crew_tell(const struct crew_run *run, const char *text)
{
    const char *name = run->parts ? run->parts->names[run->part] : run->crew->name;
    char line[256];

    if (run->crew->progress) {
        snprintf(line, sizeof line, "%s: %s", name, text);
        run->crew->progress(line, run->crew->progress_arg);
    }
}

static void crew_child_setup(pid_t parent, int output)
{
    struct rlimit core = {.rlim_cur = 0};
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    shk_oom_offer();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127); /* the parent died before the request above */
    }
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
}

/* All ranks have ended the part before, and somebody wants this one. */
static void crew_await(const struct shk_job *job, unsigned rank)
{
    struct timespec nap = {.tv_nsec = 200000};

    while (atomic_load(&job->slots[rank].go) == 0)
        (void)nanosleep(&nap, NULL);
}

static void crew_child(struct crew_run *run, unsigned rank) __attribute__((noreturn));
static void crew_child(struct crew_run *run, unsigned rank)
{
    unsigned parts = run->parts ? run->parts->count : 1;

    if (run->cpus)
        shk_place_bind(run->cpus[rank]);
    for (unsigned part = 0; part < parts; part++) {
        struct shk_job *job = run->parts ? run->parts->jobs[part] : run->job;
        struct shk_error err = {{0}};
        int rc = 0;

        if (part > 0)
            crew_await(job, rank);
        shk_job_join(job, rank);
        rc = run->crew->work(job, run->crew->arg, &err);
        if (rc < 0) {
            shk_job_fail(job, -rc, false, err.text);
            _exit(1);
        }
        shk_job_set_phase(job, SHK_PHASE_DONE, 0);
    }
    /* No atexit handlers: they are the caller's, and would flush its streams a second time. */
    _exit(0);
}

static int crew_start(struct crew_run *run, unsigned rank, struct shk_error *err)
{
    struct crew_watch *watch = &run->watch[rank];
    struct shk_crew_rank *state = &run->result->ranks[rank];
    pid_t parent = getpid();
    int fds[2];
    pid_t pid = 0;
    char text[64];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return shk_error_sys(err, errno, "pipe for rank %u", rank);
    pid = fork();
    if (pid == 0) {
        shk_janitor_forget(&run->janitor);
        crew_child_setup(parent, fds[1]);
        crew_child(run, rank);
    }
    close(fds[1]);
    if (pid < 0) {
        int errnum = errno;

        close(fds[0]);
        return shk_error_sys(err, errnum, "fork of rank %u", rank);
    }
    setpgid(pid, pid); /* also in the child: whoever comes first */
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    watch->fd = fds[0];
    watch->alive = true;
    state->pid = pid;
    state->status = SHK_RANK_RUNNING;
    snprintf(text, sizeof text, "rank %u pid %d", rank, (int)pid);
    crew_tell(run, text);
    return 0;
}

/* Keeps the tail: when the buffer is full its older half goes. */
static void crew_drain(struct crew_run *run, unsigned rank)
{
    struct crew_watch *watch = &run->watch[rank];
    char *output = run->result->ranks[rank].output;
    size_t half = SHK_CREW_OUTPUT / 2;
    ssize_t got = 0;

    while (watch->fd >= 0) {
        if (watch->output_len + 1 >= SHK_CREW_OUTPUT) {
            memmove(output, output + half, watch->output_len - half);
            watch->output_len -= half;
        }
        got = read(watch->fd, output + watch->output_len, SHK_CREW_OUTPUT - 1 - watch->output_len);
        if (got > 0) {
            watch->output_len += (size_t)got;
            output[watch->output_len] = '\0';
        } else if (got == 0) {
            close(watch->fd);
            watch->fd = -1;
        } else if (errno != EINTR) {
            break;
        }
    }
}

static void crew_ended(struct crew_run *run, unsigned rank, const siginfo_t *info)
{
    struct crew_watch *watch = &run->watch[rank];
    pid_t pid = run->result->ranks[rank].pid;
    siginfo_t reaped;

    /* The zombie still holds the group's id, so this cannot hit a stranger. */
    (void)kill(-pid, SIGKILL);
    (void)waitid(P_PID, (id_t)pid, &reaped, WEXITED);
    crew_drain(run, rank); /* its last words */
    watch->alive = false;
    watch->ended_ns = shk_job_now_ns();
    watch->code = info->si_code;
    watch->status = info->si_status;
}

/* Looks for deaths, stops and continuations of one rank. */
static void crew_check(struct crew_run *run, unsigned rank)
{
    struct crew_watch *watch = &run->watch[rank];
    id_t pid = (id_t)run->result->ranks[rank].pid;
    uint64_t now = shk_job_now_ns();
    siginfo_t info;

    while (watch->alive) {
        memset(&info, 0, sizeof info);
        if (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            watch->seen_ns = now;
            return;
        }
        if (info.si_code != CLD_STOPPED && info.si_code != CLD_CONTINUED) {
            crew_ended(run, rank, &info);
            return;
        }
        watch->stopped_ns = info.si_code == CLD_STOPPED ? shk_job_now_ns() : 0;
        watch->stopsig = info.si_status;
        (void)waitid(P_PID, pid, &info, WSTOPPED | WCONTINUED | WNOHANG);
    }
}

static bool crew_healthy_end(const struct crew_run *run, unsigned rank)
{
    const struct crew_watch *watch = &run->watch[rank];

    return watch->code == CLD_EXITED && watch->status == 0 &&
           atomic_load(&run->job->slots[rank].phase) == SHK_PHASE_DONE;
}

/* Returns how many ranks are not dead yet. */
static unsigned crew_reap(struct crew_run *run)
{
    unsigned alive = 0;

    for (unsigned i = run->first; i < run->last; i++) {
        crew_check(run, i);
        alive += run->watch[i].alive;
    }
    return alive;
}

/* Ends every rank that still lives. */
static void crew_kill(struct crew_run *run)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (unsigned i = run->first; i < run->last; i++) {
        if (run->watch[i].alive)
            shk_debris_note(run->debris, run->result->ranks[i].pid);
    }
    for (unsigned i = run->first; i < run->last; i++) {
        struct crew_watch *watch = &run->watch[i];
        pid_t pid = run->result->ranks[i].pid;

        if (watch->alive) {
            (void)kill(-pid, SIGKILL);
            (void)kill(pid, SIGKILL); /* it may not have reached setpgid() */
        }
    }
    for (unsigned waited = 0; crew_reap(run) > 0 && waited < CREW_REAP_MS; waited++)
        (void)nanosleep(&nap, NULL);
}

void shk_crew_follow(struct crew_run *run)
{
    uint64_t sum = 0;
    uint64_t bytes = 0;
    int least = SHK_PHASE_DONE;
    char text[64];

    for (unsigned i = 0; i < run->job->ranks; i++) {
        struct shk_job_slot *slot = &run->job->slots[i];
        int phase = atomic_load(&slot->phase);

        sum += atomic_load(&slot->op) + (uint64_t)phase + atomic_load(&slot->bytes);
        if (phase < least) {
            least = phase;
            bytes = atomic_load(&slot->bytes);
        }
    }
    if (sum != run->moved_sum) {
        run->moved_sum = sum;
        run->moved_ns = shk_job_now_ns();
    }
    /* Verification alternates with the operations: not worth a line each. */
    if (least != SHK_PHASE_VERIFY && ((uint64_t)least << 56 | bytes) != run->told) {
        run->told = (uint64_t)least << 56 | bytes;
        shk_job_phase_text((enum shk_phase)least, bytes, text, sizeof text);
        crew_tell(run, text);
    }
}

void shk_crew_turn(struct crew_run *run, struct pollfd *extra, unsigned count)
{
    struct pollfd *fds = run->fds;
    unsigned own = run->last - run->first;

    for (unsigned i = 0; i < own; i++) {
        fds[i] = (struct pollfd){.fd = run->watch[run->first + i].fd, .events = POLLIN};
    }
    for (unsigned i = 0; i < count && i < CREW_EXTRA; i++)
        fds[own + i] = extra[i];
    (void)poll(fds, own + count, CREW_TICK_MS);
    for (unsigned i = 0; i < count && i < CREW_EXTRA; i++)
        extra[i].revents = fds[own + i].revents;
    for (unsigned i = run->first; i < run->last; i++) {
        crew_drain(run, i);
        crew_check(run, i);
        if (run->watch[i].alive)
            shk_crew_share_turn(run, i);
    }
    shk_isolate_turn(); /* what else was begun, such as a reading of counters */
}

bool shk_crew_over(struct crew_run *run, const struct crew_grace *grace, bool *expired_p)
{
    uint64_t now = shk_job_now_ns();
    unsigned alive = 0;

    for (unsigned i = 0; i < run->job->ranks; i++) {
        struct crew_watch *watch = &run->watch[i];

        alive += watch->alive;
        if (run->trouble_ns == 0 &&
            ((!watch->alive && !crew_healthy_end(run, i)) ||
             atomic_load(&run->job->slots[i].failed) != 0 ||
             (watch->alive && watch->stopped_ns != 0 &&
              now - watch->stopped_ns > SHK_CREW_STOPPED_MS * 1000000ULL))) {
            run->trouble_ns = now;
        }
    }
    if (run->trouble_ns != 0 && run->cause_ns == 0 && shk_crew_has_cause(run))
        run->cause_ns = now;
    *expired_p =
        alive > 0 && ((run->deadline_ns != 0 && now >= run->deadline_ns) || shk_stop_signal() != 0);
    return alive == 0 || *expired_p ||
           (run->cause_ns != 0     ? now - run->cause_ns > grace->cause_ns
            : run->trouble_ns != 0 ? now - run->trouble_ns > grace->echo_ns
                                   : false);
}

static void crew_start_clock(struct crew_run *run)
{
    run->start_ns = shk_job_now_ns();
    run->moved_ns = run->start_ns;
    run->moved_sum = 0;
    run->told = UINT64_MAX;
    run->deadline_ns =
        run->crew->deadline_ms != 0 ? run->start_ns + run->crew->deadline_ms * 1000000ULL : 0;
}

static int crew_prepare(struct crew_run *run, struct shk_error *err)
{
    unsigned ranks = run->job->ranks;
    unsigned own = run->last - run->first;

    run->watch = calloc(ranks, sizeof *run->watch);
    run->result->ranks = calloc(ranks, sizeof *run->result->ranks);
    run->fds = calloc(own + CREW_EXTRA, sizeof *run->fds);
    if (!run->watch || !run->result->ranks || !run->fds)
        return shk_error_set(err, ENOMEM, "out of memory");
    for (unsigned i = 0; i < ranks; i++) {
        run->watch[i].fd = -1;
        run->result->ranks[i].id = i;
    }
    /* Ranks that a launcher started are placed by it. */
    run->cpus = own == ranks ? calloc(ranks, sizeof *run->cpus) : NULL;
    if (run->cpus && !shk_place_cpus(ranks, run->cpus)) {
        free(run->cpus);
        run->cpus = NULL;
    }
    run->debris = shk_debris_create("/dev/shm");
    run->oom_kills = shk_oom_kills();
    crew_start_clock(run);
    return 0;
}

int shk_crew_begin(struct crew_run *run, struct shk_error *err)
{
    int rc = crew_prepare(run, err);

    if (rc == 0 && run->last > run->first)
        shk_janitor_start(&run->janitor, run->job, run->debris);
    for (unsigned i = run->first; i < run->last && rc == 0; i++)
        rc = crew_start(run, i, err);
    return rc;
}

static void crew_clean(struct crew_run *run)
{
    pid_t *pids = calloc(run->job->ranks, sizeof *pids);
    unsigned own = 0;

    for (unsigned i = run->first; i < run->last; i++) {
        crew_drain(run, i);
        if (run->watch[i].fd >= 0)
            close(run->watch[i].fd);
        if (pids)
            pids[own++] = run->result->ranks[i].pid;
    }
    if (pids)
        (void)shk_debris_sweep(run->debris, pids, own);
    free(pids);
}

void shk_crew_end(struct crew_run *run)
{
    if (run->watch && run->result->ranks) {
        crew_kill(run);
        crew_clean(run);
        shk_janitor_dismiss(&run->janitor);
    }
    shk_debris_destroy(run->debris);
    free(run->watch);
    free(run->cpus);
    free(run->fds);
    run->debris = NULL;
    run->watch = NULL;
    run->cpus = NULL;
    run->fds = NULL;
}

static bool crew_part_ended(const struct crew_run *run)
{
    for (unsigned i = 0; i < run->job->ranks; i++) {
        const struct shk_job_slot *slot = &run->job->slots[i];

        if (atomic_load(&slot->phase) != SHK_PHASE_DONE || atomic_load(&slot->failed) != 0)
            return false;
    }
    return true;
}

/* What the ranks wrote until now belongs to the part that they have ended. */
static bool crew_tell_part(struct crew_run *run)
{
    struct shk_crew_result *result = run->result;
    bool more = true;

    for (unsigned i = 0; i < run->job->ranks; i++) {
        struct shk_crew_rank *rank = &result->ranks[i];

        crew_drain(run, i);
        rank->status = SHK_RANK_OK;
        shk_job_phase_text(SHK_PHASE_DONE, 0, rank->phase, sizeof rank->phase);
    }
    more = run->parts->ended(run->part, result, run->parts->arg);
    for (unsigned i = 0; i < run->job->ranks; i++) {
        result->ranks[i].status = SHK_RANK_RUNNING;
        result->ranks[i].output[0] = '\0';
        run->watch[i].output_len = 0;
        run->watch[i].share = (struct crew_share){0};
    }
    return more;
}

/* Goes on to the next part when all ranks have ended this one. False: no further one is wanted. The
 * last one ends with the ranks. */
static bool crew_advance(struct crew_run *run)
{
    bool more = true;

    if (!run->parts || run->part + 1 >= run->parts->count || !crew_part_ended(run))
        return true;
    more = crew_tell_part(run);
    run->part++;
    if (more) {
        run->job = run->parts->jobs[run->part];
        run->trouble_ns = 0;
        run->cause_ns = 0;
        crew_start_clock(run);
    }
    for (unsigned i = 0; i < run->job->ranks && more; i++)
        atomic_store(&run->job->slots[i].go, 1);
    return more;
}

static int crew_run_all(struct crew_run *run, struct shk_error *err)
{
    struct crew_grace grace = {.cause_ns = SHK_CREW_GRACE_MS * 1000000ULL};
    bool expired = false;
    bool wanted = true;
    bool over = false;
    int rc = 0;

    memset(run->result, 0, sizeof *run->result);
    run->result->rank = -1;
    run->janitor.fd = -1;
    rc = shk_crew_begin(run, err);
    while (rc == 0 && !over && wanted) {
        shk_crew_turn(run, NULL, 0);
        shk_crew_follow(run);
        grace.echo_ns =
            1000000ULL * (shk_crew_settled(run) ? SHK_CREW_SETTLED_MS : SHK_CREW_ECHO_MS);
        wanted = crew_advance(run);
        over = wanted && shk_crew_over(run, &grace, &expired);
    }
    if (rc == 0 && wanted)
        shk_crew_blame(run, expired);
    shk_crew_end(run);
    if (rc < 0)
        shk_crew_result_clear(run->result);
    return rc;
}

int shk_crew_run(const struct shk_crew *crew, struct shk_job *job, struct shk_crew_result *result,
                 struct shk_error *err)
{
    struct crew_run run = {.crew = crew, .job = job, .result = result, .last = job->ranks};

    return crew_run_all(&run, err);
}

int shk_crew_run_parts(const struct shk_crew *crew, const struct shk_crew_parts *parts,
                       struct shk_crew_result *result, unsigned *done_p, struct shk_error *err)
{
    struct shk_job *first = parts->jobs[0];
    struct crew_run run = {
        .crew = crew, .job = first, .parts = parts, .result = result, .last = first->ranks};
    int rc = crew_run_all(&run, err);

    *done_p = run.part;
    if (rc == 0 && run.job == parts->jobs[parts->count - 1] && result->outcome == SHK_CREW_OK &&
        crew_part_ended(&run)) {
        (void)parts->ended(run.part, result, parts->arg);
        *done_p = parts->count;
    }
    return rc;
}

void shk_crew_result_clear(struct shk_crew_result *result)
{
    free(result->ranks);
    json_decref(result->disagree);
    memset(result, 0, sizeof *result);
    result->rank = -1;
}

json_t *shk_crew_ranks_json(const struct shk_job *job, const struct shk_crew_result *result)
{
    json_t *ranks = json_array();
    char here[256] = "";

    (void)gethostname(here, sizeof here - 1);
    for (unsigned rank = 0; rank < shk_job_size(job) && ranks != NULL; rank++) {
        const struct shk_crew_rank *state = &result->ranks[rank];
        const char *host = state->host[0] != '\0' ? state->host : here;
        json_t *row = json_pack("{s:i, s:i, s:o, s:s, s:s}", "rank", (int)state->id, "pid",
                                (int)state->pid, "host", shk_json_text(host, strlen(host)), "phase",
                                state->phase, "status", shk_rank_status_name(state->status));

        if (json_array_append_new(ranks, row) != 0) {
            json_decref(ranks);
            ranks = NULL;
        }
    }
    return ranks;
}
