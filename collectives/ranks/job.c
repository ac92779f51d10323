#include "collectives/ranks/job.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define JOB_SPINS    100U   /* polls before a CPU is given up */
#define JOB_NAP_NS   50000L /* between polls while others may need this rank's progress */
#define JOB_SLEEP_NS 100000000L

/* A published value: this header, then len bytes, padded to 8. */
struct job_entry {
    char key[SHK_JOB_KEY];
    uint32_t len;
    uint32_t pad;
};

static const char *const phase_names[SHK_PHASE_COUNT] = {
    [SHK_PHASE_START] = "start",       [SHK_PHASE_OPEN] = "open",
    [SHK_PHASE_REGISTER] = "register", [SHK_PHASE_EXCHANGE] = "exchange",
    [SHK_PHASE_WARMUP] = "warmup",     [SHK_PHASE_ALLREDUCE] = "allreduce",
    [SHK_PHASE_VERIFY] = "verify",     [SHK_PHASE_TEARDOWN] = "teardown",
    [SHK_PHASE_DONE] = "done",
};

void shk_job_phase_text(enum shk_phase phase, uint64_t bytes, char *buf, size_t size)
{
    const char *name = (unsigned)phase < SHK_PHASE_COUNT ? phase_names[phase] : "start";

    if (phase == SHK_PHASE_ALLREDUCE)
        snprintf(buf, size, "%s %llu B", name, (unsigned long long)bytes);
    else
        snprintf(buf, size, "%s", name);
}

uint64_t shk_job_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static bool job_crowded(unsigned ranks)
{
    cpu_set_t set;

    /* Fails on machines with more CPUs than cpu_set_t holds: not crowded then. */
    return sched_getaffinity(0, sizeof set, &set) == 0 && ranks > (unsigned)CPU_COUNT(&set);
}

int shk_job_create(struct shk_job **job_p, unsigned ranks, size_t result_bytes,
                   struct shk_error *err)
{
    struct shk_job *job = NULL;
    void *map = NULL;

    if (ranks == 0 || ranks > SHK_JOB_MAX_RANKS) {
        return shk_error_set(err, EINVAL, "%u ranks: from 1 to %u are possible", ranks,
                             SHK_JOB_MAX_RANKS);
    }
    job = calloc(1, sizeof *job);
    if (!job)
        return shk_error_set(err, ENOMEM, "out of memory");
    job->ranks = ranks;
    job->rank = UINT_MAX;
    job->wake_fd = -1;
    job->go_fd = -1;
    job->crowded = job_crowded(ranks);
    job->result_bytes = (result_bytes + SHK_JOB_LINE - 1) / SHK_JOB_LINE * SHK_JOB_LINE;
    job->map_bytes = ranks * (sizeof(struct shk_job_slot) + job->result_bytes);
    map = mmap(NULL, job->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        int errnum = errno;

        free(job);
        return shk_error_sys(err, errnum, "job segment for %u ranks", ranks);
    }
    job->slots = map;
    job->results = (unsigned char *)map + ranks * sizeof(struct shk_job_slot);
    for (unsigned i = 0; i < ranks; i++)
        atomic_init(&job->slots[i].waiting, -1);
    *job_p = job;
    return 0;
}

void shk_job_destroy(struct shk_job *job)
{
    if (!job)
        return;
    if (job->rank != UINT_MAX)
        shk_crumb_attach(NULL, NULL);
    if (job->wake_fd >= 0)
        close(job->wake_fd);
    if (job->go_fd >= 0)
        close(job->go_fd);
    if (job->flows)
        munmap(job->flows, sizeof *job->flows);
    munmap(job->slots, job->map_bytes);
    free(job);
}

static void job_signal(int fd)
{
    uint64_t one = 1;

    (void)!write(fd, &one, sizeof one);
}

/* Without memory for it nothing is known of the flows. */
static struct shk_flows *job_flows(void)
{
    void *map = mmap(NULL, sizeof(struct shk_flows), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return map != MAP_FAILED ? map : NULL;
}

int shk_job_make_remote(struct shk_job *job, unsigned local, struct shk_error *err)
{
    job->flows = local < job->ranks ? job_flows() : NULL;
    job->crowded = job_crowded(local);
    job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    job->go_fd = job->wake_fd >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    return job->go_fd >= 0 ? 0 : shk_error_sys(err, errno, "eventfd");
}

void shk_job_release(struct shk_job *job, unsigned self, uint64_t epoch, uint64_t max)
{
    for (unsigned i = 0; i < job->ranks; i++) {
        if (i != self) {
            job->slots[i].value[epoch & 1] = max;
            atomic_store_explicit(&job->slots[i].epoch, epoch, memory_order_release);
        }
    }
    job_signal(job->go_fd);
}

void shk_job_join(struct shk_job *job, unsigned rank)
{
    job->rank = rank;
    atomic_store(&job->slots[rank].pid, (int)getpid());
    shk_crumb_attach(job->slots[rank].library, job->slots[rank].call);
}

unsigned shk_job_rank(const struct shk_job *job)
{
    return job->rank;
}

unsigned shk_job_size(const struct shk_job *job)
{
    return job->ranks;
}

void *shk_job_result(const struct shk_job *job, unsigned rank)
{
    return job->results + rank * job->result_bytes;
}

int shk_job_put(struct shk_job *job, const char *key, const void *data, size_t len,
                struct shk_error *err)
{
    struct shk_job_slot *slot = &job->slots[job->rank];
    uint32_t used = atomic_load(&slot->used);
    struct job_entry entry = {.len = (uint32_t)len};
    size_t need = sizeof entry + (len + 7) / 8 * 8;

    if (strlen(key) >= sizeof entry.key)
        return shk_error_set(err, EINVAL, "job key too long: %s", key);
    if (len > SHK_JOB_SPACE || need > SHK_JOB_SPACE - used)
        return shk_error_set(err, ENOSPC, "no room to publish %zu bytes of %s", len, key);
    memcpy(entry.key, key, strlen(key) + 1);
    memcpy(slot->space + used, &entry, sizeof entry);
    memcpy(slot->space + used + sizeof entry, data, len);
    atomic_store_explicit(&slot->used, used + (uint32_t)need, memory_order_release);
    return 0;
}

int shk_job_get(const struct shk_job *job, unsigned rank, const char *key, void *buf, size_t cap,
                size_t *len_p, struct shk_error *err)
{
    const struct shk_job_slot *slot = &job->slots[rank];
    uint32_t used = atomic_load_explicit(&slot->used, memory_order_acquire);
    uint32_t at = 0;
    struct job_entry entry;

    while (used <= SHK_JOB_SPACE && at + sizeof entry <= used) {
        memcpy(&entry, slot->space + at, sizeof entry);
        at += (uint32_t)sizeof entry;
        entry.key[sizeof entry.key - 1] = '\0';
        if (entry.len > used - at) {
            break; /* a worker scribbled over the segment */
        }
        if (strcmp(entry.key, key) == 0) {
            if (entry.len > cap) {
                return shk_error_set(err, EMSGSIZE, "%s of rank %u has %u bytes, more than %zu",
                                     key, rank, entry.len, cap);
            }
            memcpy(buf, slot->space + at, entry.len);
            *len_p = entry.len;
            return 0;
        }
        at += (entry.len + 7) / 8 * 8;
    }
    return shk_error_set(err, ENOENT, "rank %u published no %s", rank, key);
}

void shk_job_relax(const struct shk_job *job, unsigned *idle)
{
    /* Not crowded: some microseconds of spinning before the CPU is offered to others, since even
     * then the scheduler may have put two ranks on one. */
    unsigned spins = job->crowded ? 4 : JOB_SPINS;

    if (++*idle > spins) {
        sched_yield();
    } else {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static void job_enter(struct shk_job *job, uint64_t value)
{
    struct shk_job_slot *mine = &job->slots[job->rank];

    job->epoch++;
    mine->value[job->epoch & 1] = value;
    atomic_store_explicit(&mine->epoch, job->epoch, memory_order_release);
    if (job->wake_fd >= 0)
        job_signal(job->wake_fd);
}

static bool job_arrived(const struct shk_job *job, unsigned rank)
{
    return atomic_load_explicit(&job->slots[rank].epoch, memory_order_acquire) >= job->epoch;
}

int shk_job_fence(struct shk_job *job, unsigned timeout_ms, struct shk_error *err)
{
    uint64_t end = shk_job_now_ns() + (uint64_t)timeout_ms * 1000000U;
    struct timespec nap = {.tv_nsec = 50000};
    unsigned i = 0;
    int rc = 0;

    job_enter(job, 0);
    while (i < job->ranks) {
        if (job_arrived(job, i)) {
            i++;
            continue;
        }
        shk_job_set_waiting(job, (int)i);
        if (timeout_ms != 0 && shk_job_now_ns() > end) {
            rc =
                shk_error_set(err, ETIMEDOUT, "rank %u did not arrive within %u ms", i, timeout_ms);
            break;
        }
        nanosleep(&nap, NULL);
    }
    shk_job_set_waiting(job, -1);
    return rc;
}

/* Waits a little for others to arrive. Those elsewhere arrive through the supervisor, which the
 * launcher may have bound to the very CPU that this rank would spin on: there it sleeps, for less
 * long when peers may need its progress. */
static void job_await(struct shk_job *job, bool progress, unsigned *idle)
{
    struct pollfd go = {.fd = job->go_fd, .events = POLLIN};
    struct timespec nap = {.tv_nsec = progress ? JOB_NAP_NS : JOB_SLEEP_NS};
    uint64_t count = 0;

    if (job->go_fd < 0 || (progress && *idle < JOB_SPINS)) {
        shk_job_relax(job, idle);
        return;
    }
    if (ppoll(&go, 1, &nap, NULL) > 0)
        (void)!read(job->go_fd, &count, sizeof count);
}

int shk_job_barrier(struct shk_job *job, uint64_t value, uint64_t *max_p, int (*poll)(void *arg),
                    void *arg)
{
    uint64_t max = 0;
    unsigned idle = 0;
    unsigned i = 0;
    int rc = 0;

    job_enter(job, value);
    while (i < job->ranks && rc >= 0) {
        if (job_arrived(job, i)) {
            uint64_t theirs = job->slots[i].value[job->epoch & 1];

            max = theirs > max ? theirs : max;
            i++;
            continue;
        }
        shk_job_set_waiting(job, (int)i);
        rc = poll ? poll(arg) : 0;
        job_await(job, poll, &idle);
    }
    shk_job_set_waiting(job, -1);
    if (rc >= 0 && max_p)
        *max_p = max;
    return rc < 0 ? rc : 0;
}

/* What TCP did so far, for the supervisor: connections that are closed take it along. */
static void job_note_flows(struct shk_job *job)
{
    if (job->flows)
        shk_flows_read(job->flows, 0);
}

void shk_job_set_phase(struct shk_job *job, enum shk_phase phase, uint64_t bytes)
{
    struct shk_job_slot *mine = &job->slots[job->rank];

    if (phase == SHK_PHASE_TEARDOWN)
        job_note_flows(job);
    atomic_store_explicit(&mine->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&mine->phase, (int)phase, memory_order_release);
}

void shk_job_set_op(struct shk_job *job, uint64_t op)
{
    atomic_store_explicit(&job->slots[job->rank].op, op, memory_order_relaxed);
}

void shk_job_set_waiting(struct shk_job *job, int peer)
{
    atomic_store_explicit(&job->slots[job->rank].waiting, peer, memory_order_relaxed);
}

bool shk_job_next_key(const struct shk_job *job, unsigned rank, uint32_t *at_p,
                      char key[SHK_JOB_KEY])
{
    const struct shk_job_slot *slot = &job->slots[rank];
    uint32_t used = atomic_load_explicit(&slot->used, memory_order_acquire);
    struct job_entry entry;

    if (used > SHK_JOB_SPACE || *at_p + sizeof entry > used)
        return false;
    memcpy(&entry, slot->space + *at_p, sizeof entry);
    if (entry.len > used - *at_p - sizeof entry) {
        return false; /* a worker scribbled over the segment */
    }
    memcpy(key, entry.key, sizeof entry.key);
    key[SHK_JOB_KEY - 1] = '\0';
    *at_p += (uint32_t)sizeof entry + (entry.len + 7) / 8 * 8;
    return true;
}

static void job_fail(struct shk_job *job, int errnum, bool by_peer, bool disagrees,
                     const char *text)
{
    struct shk_job_slot *mine = &job->slots[job->rank];

    if (atomic_load(&mine->failed) != 0)
        return;
    mine->fail_errnum = errnum;
    mine->fail_by_peer = by_peer;
    mine->fail_disagrees = disagrees;
    mine->fail_ns = shk_job_now_ns();
    (void)shk_error_set(&mine->fail, errnum, "%s", text);
    job_note_flows(job);
    atomic_store_explicit(&mine->failed, 1, memory_order_release);
}

void shk_job_fail(struct shk_job *job, int errnum, bool by_peer, const char *text)
{
    job_fail(job, errnum, by_peer, false, text);
}

void shk_job_disagree(struct shk_job *job, int errnum, const char *text)
{
    job_fail(job, errnum, false, true, text);
}
