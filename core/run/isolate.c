#include "core/run/isolate.h"

#include "core/run/clock.h"
#include "core/run/isolate_private.h"
#include "core/run/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Resident memory is sampled this long after a child could have reached its limit at the 10 GB/s
 * or so at which one core can touch fresh memory: a runaway child overshoots it by at most a few
 * hundred MiB. Nobody waits for longer than the longest tick without looking. */
enum { ISOLATE_TICK_MS = 20, ISOLATE_LONG_TICK_MS = 100, ISOLATE_GRACE_MS = 1000 };
#define ISOLATE_BYTES_A_MS 10e6

/* Children of a child end this much before it is killed itself, so that it can tell of them. */
enum { ISOLATE_MARGIN_MS = 300 };

/* How often the processor time of a child is looked at: nothing in the usual case, in which it ends
 * earlier, and dozens of looks at one that misses its deadline; in the first half of its time,
 * which most that take longer do not use up, no more than a few. */
enum { ISOLATE_SHARE_MS = 100, ISOLATE_CALM_LOOKS = 20 };

/* When this process, being a child, will be killed (ms, monotonic); 0: never. */
static double isolate_until;

/* Children of shk_isolate_begin(), attended to while others are waited for. */
static struct shk_isolate_pending *isolate_pending;

static const char *const outcome_names[] = {
    [SHK_CHILD_OK] = "ok",           [SHK_CHILD_FAILED] = "failed",
    [SHK_CHILD_EXITED] = "exited",   [SHK_CHILD_SIGNALED] = "crashed",
    [SHK_CHILD_TIMEOUT] = "timeout", [SHK_CHILD_MEMORY] = "memory",
    [SHK_CHILD_NOT_RUN] = "not run", [SHK_CHILD_STARVED] = "starved",
};

const char *shk_isolate_outcome_name(enum shk_isolate_outcome outcome)
{
    return outcome_names[outcome];
}

static unsigned isolate_deadline(const struct shk_isolate_job *job, double now)
{
    double left = isolate_until - now - ISOLATE_MARGIN_MS;
    if (isolate_until <= 0 || (job->deadline_ms && job->deadline_ms <= left))
        return job->deadline_ms;
    return left > 1 ? (unsigned)left : 1;
}

double shk_isolate_left_ms(void)
{
    if (isolate_until <= 0)
        return -1;
    double left = isolate_until - shk_clock_s() * 1e3 - ISOLATE_MARGIN_MS;
    return left > 0 ? left : 0;
}

static void isolate_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int isolate_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

static int isolate_start(struct isolate_child *c, const struct shk_isolate_job *job,
                         struct isolate_crumb *crumb, struct shk_error *err)
{
    int result[2] = {-1, -1}, output[2] = {-1, -1};
    if (isolate_pipe(result) != 0 || isolate_pipe(output) != 0)
        goto fail;
    fflush(stdout);
    fflush(stderr);
    double now = shk_clock_s() * 1e3;
    unsigned deadline_ms = isolate_deadline(job, now);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        goto fail;
    if (pid == 0) {
        close(result[0]);
        close(output[0]);
        isolate_until = deadline_ms ? now + deadline_ms : 0;
        isolate_pending = NULL; /* the parent's */
        shk_isolate_child_main(job, crumb, parent, result[1], output[1]);
    }
    setpgid(pid, pid);
    close(result[1]);
    close(output[1]);
    fcntl(result[0], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    *c = (struct isolate_child){
        .job = job,
        .crumb = crumb,
        .pid = pid,
        .result_fd = result[0],
        .output_fd = output[0],
        .statm_fd = -1,
        .started = now,
        .sampled = now,
        .deadline_ms = deadline_ms,
        .running = true,
    };
    return 0;
fail:;
    int rc = shk_error_sys(err, errno, "%s: cannot start a child process", job->name);
    for (int i = 0; i < 2; i++) {
        isolate_close(&result[i]);
        isolate_close(&output[i]);
    }
    return rc;
}

/* Reads what is there; closes the descriptor at its end. */
static void isolate_drain(int *fd, struct shk_strbuf *sb, size_t limit, bool keep_ends)
{
    char chunk[16384];
    while (*fd >= 0) {
        ssize_t n = read(*fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            isolate_close(fd);
            return;
        }
        if (sb->len + (size_t)n <= limit) {
            shk_strbuf_add(sb, chunk, (size_t)n);
        } else if (keep_ends && sb->len >= limit / 2) {
            /* the head explains the start, the tail the end: drop the middle */
            size_t half = limit / 2, keep = half > (size_t)n ? half - (size_t)n : 0;
            size_t tail = sb->len - half < keep ? sb->len - half : keep;
            memmove(sb->data + half, sb->data + sb->len - tail, tail);
            sb->len = half + tail;
            shk_strbuf_add(sb, chunk, (size_t)n);
        }
    }
}

static void isolate_pump(struct isolate_child *c)
{
    isolate_drain(&c->result_fd, &c->result, ISOLATE_MAX_RESULT, false);
    isolate_drain(&c->output_fd, &c->output, ISOLATE_MAX_OUTPUT, true);
}

static void isolate_kill(struct isolate_child *c)
{
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
}

static void isolate_stop(struct isolate_child *c, enum shk_isolate_outcome why, double now)
{
    if (c->killed)
        return;
    c->killed = true;
    c->why = why;
    c->killed_at = now;
    isolate_kill(c);
}

/* Of the process: "total resident …" in pages. The file stays open, for the next look. */
static size_t isolate_sample(struct isolate_child *c, double now)
{
    char path[64], text[128] = "", *end;
    c->sampled = now;
    if (c->statm_fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/statm", (int)c->pid);
        c->statm_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (c->statm_fd < 0 || pread(c->statm_fd, text, sizeof text - 1, 0) <= 0)
        return 0;
    (void)strtoul(text, &end, 10);
    c->resident = strtoul(end, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
    return c->resident;
}

static size_t isolate_limit(const struct isolate_child *c)
{
    return c->job->memory_limit ? c->job->memory_limit : SHK_ISOLATE_MEMORY;
}

/* When its memory is to be sampled next. */
static double isolate_sample_due(const struct isolate_child *c)
{
    size_t limit = isolate_limit(c);
    double left = c->resident < limit ? (double)(limit - c->resident) : 0;
    return c->sampled + ISOLATE_TICK_MS + left / ISOLATE_BYTES_A_MS;
}

/* When its processor time is to be looked at next. */
static double isolate_look_due(const struct isolate_child *c, double now)
{
    double looked = c->share.seen > 0 ? c->share.seen : c->started;
    double calm = now - c->started < c->deadline_ms / 2.0 ? c->deadline_ms / ISOLATE_CALM_LOOKS : 0;
    return looked + (calm > ISOLATE_SHARE_MS ? calm : ISOLATE_SHARE_MS);
}

static void isolate_finish(struct isolate_child *c, int status, struct shk_isolate_result *result)
{
    isolate_pump(c);
    /* whatever the child started and left behind */
    kill(-c->pid, SIGKILL);
    isolate_close(&c->result_fd);
    isolate_close(&c->output_fd);
    isolate_close(&c->statm_fd);
    c->running = false;
    shk_isolate_conclude(c, status, shk_clock_s() * 1e3 - c->started, result);
    shk_strbuf_free(&c->result);
    shk_strbuf_free(&c->output);
}

/* At the deadline: did it hang, or did nobody let it run? */
static void isolate_expire(struct isolate_child *c, double now)
{
    shk_isolate_share_look(&c->share, c->pid, now, c->started, c->deadline_ms, ISOLATE_MARGIN_MS);
    isolate_stop(c,
                 shk_isolate_share_starved(&c->share, now - c->started) ? SHK_CHILD_STARVED
                                                                        : SHK_CHILD_TIMEOUT,
                 now);
}

static void isolate_attend(struct isolate_child *c, struct shk_isolate_result *result)
{
    double now = shk_clock_s() * 1e3;
    int status = 0;
    isolate_pump(c);
    pid_t got = waitpid(c->pid, &status, WNOHANG);
    if (got == c->pid || (got < 0 && errno == ECHILD)) {
        isolate_finish(c, got == c->pid ? status : 0, result);
        return;
    }
    if (c->deadline_ms && !c->killed && now - c->started >= c->deadline_ms)
        isolate_expire(c, now);
    else if (shk_stop_signal())
        isolate_stop(c, SHK_CHILD_NOT_RUN, now);
    else if (now >= isolate_sample_due(c) && isolate_sample(c, now) > isolate_limit(c))
        isolate_stop(c, SHK_CHILD_MEMORY, now);
    else if (c->deadline_ms && !c->killed && now >= isolate_look_due(c, now))
        shk_isolate_share_look(&c->share, c->pid, now, c->started, c->deadline_ms,
                               ISOLATE_MARGIN_MS);
    /* uninterruptible sleep: leave it to init rather than wait for ever */
    if (c->killed && now - c->killed_at > ISOLATE_GRACE_MS)
        isolate_finish(c, 0, result);
}

struct shk_isolate_pending {
    struct isolate_child child;
    struct shk_isolate_job job;
    struct shk_isolate_result result;
    struct isolate_crumb *crumb; /* a page of its own, shared with the child */
    pid_t owner;                 /* who began it: to a fork of that process it is no child */
    struct shk_isolate_pending *next;
};

/* How long nothing need be done for the child unless it says something, at most `tick` ms. */
static double isolate_idle(const struct isolate_child *c, double now, double tick)
{
    /* a child whose result pipe has ended is about to be reaped */
    double until = c->result_fd < 0 || c->killed ? now + 1 : isolate_sample_due(c);
    if (c->deadline_ms && until > c->started + c->deadline_ms)
        until = c->started + c->deadline_ms;
    if (c->deadline_ms && until > isolate_look_due(c, now))
        until = isolate_look_due(c, now);
    double idle = until - now > 1 ? until - now : 1;
    return idle < tick ? idle : tick;
}

static void isolate_watch(const struct isolate_child *c, struct pollfd *fds, nfds_t *count_p)
{
    const int both[] = {c->result_fd, c->output_fd};
    for (int i = 0; i < 2; i++)
        if (c->running && both[i] >= 0)
            fds[(*count_p)++] = (struct pollfd){.fd = both[i], .events = POLLIN};
}

static void isolate_wait(struct isolate_child *children, size_t n)
{
    double now = shk_clock_s() * 1e3, tick = ISOLATE_LONG_TICK_MS;
    size_t all = n;
    for (struct shk_isolate_pending *p = isolate_pending; p; p = p->next)
        all++;
    struct pollfd *fds = calloc(2 * all + 1, sizeof *fds);
    nfds_t count = 0;
    for (size_t i = 0; fds && i < n; i++) {
        isolate_watch(&children[i], fds, &count);
        if (children[i].running)
            tick = isolate_idle(&children[i], now, tick);
    }
    for (struct shk_isolate_pending *p = isolate_pending; fds && p; p = p->next) {
        if (!p->child.running || p->owner != getpid())
            continue;
        isolate_watch(&p->child, fds, &count);
        tick = isolate_idle(&p->child, now, tick);
    }
    poll(fds, count, fds ? (int)tick : ISOLATE_TICK_MS);
    free(fds);
}

static unsigned isolate_width(unsigned parallel)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (parallel)
        return parallel;
    return cpus > 2 ? (unsigned)cpus : 2;
}

void shk_isolate_turn(void)
{
    for (struct shk_isolate_pending *p = isolate_pending; p; p = p->next)
        if (p->child.running && p->owner == getpid())
            isolate_attend(&p->child, &p->result);
}

static void isolate_forget(struct shk_isolate_pending *pending)
{
    struct shk_isolate_pending **at = &isolate_pending;
    while (*at && *at != pending)
        at = &(*at)->next;
    if (*at)
        *at = pending->next;
    munmap(pending->crumb, sizeof *pending->crumb);
    free(pending);
}

int shk_isolate_begin(struct shk_isolate_pending **pending_p, const struct shk_isolate_job *job,
                      struct shk_error *err)
{
    struct shk_isolate_pending *p = calloc(1, sizeof *p);
    *pending_p = NULL;
    if (!p)
        return shk_error_sys(err, ENOMEM, "%s", job->name);
    p->crumb =
        mmap(NULL, sizeof *p->crumb, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->crumb == MAP_FAILED) {
        free(p);
        return shk_error_sys(err, ENOMEM, "%s", job->name);
    }
    p->job = *job;
    p->owner = getpid();
    p->next = isolate_pending;
    isolate_pending = p;
    int rc = isolate_start(&p->child, &p->job, p->crumb, err);
    if (rc)
        isolate_forget(p);
    else
        *pending_p = p;
    return rc;
}

void shk_isolate_end(struct shk_isolate_pending *pending, struct shk_isolate_result *result)
{
    while (pending->child.running) {
        isolate_wait(NULL, 0);
        shk_isolate_turn();
    }
    *result = pending->result;
    isolate_forget(pending);
}

int shk_isolate_run(const struct shk_isolate_job *jobs, struct shk_isolate_result *results,
                    size_t n, unsigned parallel, struct shk_error *err)
{
    memset(results, 0, n * sizeof *results);
    if (!n)
        return 0;
    struct isolate_child *children = calloc(n, sizeof *children);
    struct isolate_crumb *crumbs =
        mmap(NULL, n * sizeof *crumbs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!children || crumbs == MAP_FAILED) {
        free(children);
        if (crumbs != MAP_FAILED)
            munmap(crumbs, n * sizeof *crumbs);
        return shk_error_sys(err, ENOMEM, "isolated run");
    }
    unsigned width = isolate_width(parallel), running = 0;
    size_t next = 0;
    while (next < n || running) {
        for (; next < n && running < width; next++) {
            if (shk_stop_signal())
                shk_error_set(&results[next].error, EINTR, "%s: interrupted by %s", jobs[next].name,
                              shk_stop_name());
            if (*results[next].error.text ||
                isolate_start(&children[next], &jobs[next], &crumbs[next], &results[next].error))
                results[next].outcome = SHK_CHILD_NOT_RUN;
            else
                running++;
        }
        if (running)
            isolate_wait(children, n);
        for (size_t i = 0; i < next; i++) {
            if (!children[i].running)
                continue;
            isolate_attend(&children[i], &results[i]);
            running -= !children[i].running;
        }
        shk_isolate_turn();
    }
    munmap(crumbs, n * sizeof *crumbs);
    free(children);
    return 0;
}

void shk_isolate_result_clear(struct shk_isolate_result *result)
{
    json_decref(result->result);
    free(result->output);
    *result = (struct shk_isolate_result){0};
}
