#include "probes/hang/hang_private.h"

#include "core/run/clock.h"
#include "core/run/isolate.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Each look is read-only and short; a process whose /proc does not answer loses its own look only.
 */
enum { HANG_LOOK_MS = 10000, HANG_UNWIND_MS = 30000 };

/* The looks are not evenly spaced, so that a job that does the same every second is not met at the
 * same place each time. Parts of the whole. */
#define HANG_LOOK_COST_S 0.0003 /* a stop, a copy, the way back into the kernel */
static const double hang_when[HANG_SAMPLES] = {0, 0.07, 0.24, 0.61, 1};

struct hang_look {
    const struct shk_host *host;
    const struct shk_hang_want *want;
    struct hang_process *process;
    unsigned sample;
};

static void hang_sleep_until(double when_s)
{
    for (double left; (left = when_s - shk_clock_s()) > 0;) {
        struct timespec pause = {.tv_sec = (time_t)left, .tv_nsec = (long)(fmod(left, 1) * 1e9)};
        if (nanosleep(&pause, NULL))
            return; /* a signal: what was seen by then is judged */
    }
}

/* Threads of the process, the first one first. */
static int hang_tids(const struct shk_host *host, long pid, long tids[HANG_THREADS],
                     size_t *count_p, size_t *all_p, struct shk_error *err)
{
    char **names = NULL;
    size_t count = 0, used = 0;
    int rc = shk_host_list(host, &names, &count, err, "/proc/%ld/task", pid);
    if (rc)
        return rc;
    tids[used++] = pid;
    for (size_t i = 0; i < count && used < HANG_THREADS; i++) {
        long tid = strtol(names[i], NULL, 10);
        if (tid != pid)
            tids[used++] = tid;
    }
    shk_host_list_free(names);
    *count_p = used;
    *all_p = count;
    return 0;
}

/* In a child: one look at one process. */
static int hang_look_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct hang_look *look = arg;
    struct hang_process now = {0};
    long pid = look->process->pid, tids[HANG_THREADS];
    size_t count = 0, all = 0;
    struct hang_maps maps = {0};
    if (hang_stat(look->host, pid, 0, &now) || now.start != look->process->start)
        return shk_error_set(err, ESRCH, "process %ld has ended", pid);
    json_t *result = json_pack("{s:o,s:I}", "state", json_stringn(&now.state, 1), "ticks",
                               (json_int_t)now.ticks);
    *result_p = result;
    if (now.state == 'Z' || now.state == 'X')
        return 0;
    int rc = hang_tids(look->host, pid, tids, &count, &all, err);
    if (rc)
        return rc;
    json_object_set_new(result, "threads",
                        hang_threads(look->host, look->process, tids, count, !look->sample));
    json_object_set_new(result, "threads_count", json_integer((json_int_t)all));
    json_t *io = hang_io(look->host, pid);
    if (io)
        json_object_set_new(result, "io", io);
    rc = hang_maps_read(look->host, pid, &maps, err);
    if (!rc && !look->want->no_stacks)
        hang_copy(look->host, look->process, look->sample, &maps, tids, count);
    hang_maps_free(&maps);
    return rc;
}

static int hang_details_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct hang_look *look = arg;
    struct hang_maps maps = {0};
    int rc = hang_maps_read(look->host, look->process->pid, &maps, err);
    *result_p = hang_details(look->host, look->process, look->want, &maps);
    hang_maps_free(&maps);
    return rc;
}

static int hang_versions_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct hang_look *look = arg;
    return hang_versions(look->host, look->process, look->want, result_p, err);
}

static int hang_unwind_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct hang_look *look = arg;
    return hang_unwind(look->host, look->process, result_p, err);
}

static int hang_children(struct hang_look *looks, size_t count,
                         int (*fn)(void *, json_t **, struct shk_error *), unsigned deadline_ms,
                         struct shk_isolate_result *results, struct shk_error *err)
{
    struct shk_isolate_job *jobs = calloc(count + 1, sizeof *jobs);
    char(*names)[32] = calloc(count + 1, sizeof *names);
    int rc = jobs && names ? 0 : shk_error_sys(err, ENOMEM, "hang");
    for (size_t i = 0; !rc && i < count; i++) {
        snprintf(names[i], sizeof names[i], "process %ld", looks[i].process->pid);
        jobs[i] = (struct shk_isolate_job){
            .name = names[i], .fn = fn, .arg = &looks[i], .deadline_ms = deadline_ms};
    }
    rc = rc ? rc : shk_isolate_run(jobs, results, count, 0, err);
    free(names);
    free(jobs);
    return rc;
}

/* The processes of several samples by their index: results[sample][process]. */
struct hang_results {
    struct shk_isolate_result *samples[HANG_SAMPLES], *details, *versions, *stacks;
    size_t count;
};

static void hang_list_free(struct shk_isolate_result *list, size_t count)
{
    for (size_t i = 0; list && i < count; i++)
        shk_isolate_result_clear(&list[i]);
    free(list);
}

static void hang_results_free(struct hang_results *results)
{
    for (unsigned s = 0; s < HANG_SAMPLES; s++)
        hang_list_free(results->samples[s], results->count);
    hang_list_free(results->details, results->count);
    hang_list_free(results->versions, results->count);
    hang_list_free(results->stacks, results->count);
}

static const char *hang_copy_error(int error)
{
    switch (error) {
    case EPERM: return "not permitted to look into it";
    case ESRCH: return "ended";
    case EBUSY: return "does not stop: it waits in the kernel";
    case EINTR: return "left alone: a stop would end the call that it waits in";
    case ENOEXEC: return "of 32 bits";
    case ENOBUFS: return "too many stacks of the process";
    default: return strerror(error);
    }
}

/* The last copy of a thread: how long it was stopped, or why there is no copy. */
static void hang_add_copy(const struct hang_arena *arena, long tid, json_t *thread)
{
    uint32_t longest = 0;
    int error = 0;
    bool copied = false;
    for (unsigned s = 0; arena && s < HANG_SAMPLES; s++)
        for (uint32_t i = 0; i < arena->counts[s] && i < HANG_THREADS; i++) {
            const struct hang_copy *copy = &arena->copies[s][i];
            if (copy->tid != tid)
                continue;
            longest = copy->stopped_us > longest ? copy->stopped_us : longest;
            error = copy->error;
            copied = copied || !copy->error;
        }
    if (copied)
        json_object_set_new(thread, "stopped_us", json_integer(longest));
    else if (error)
        json_object_set_new(thread, "stack_unread", json_string(hang_copy_error(error)));
}

static bool hang_same(const json_t *a, const json_t *b, const char *member)
{
    const json_t *x = json_object_get(a, member), *y = json_object_get(b, member);
    return (!x && !y) || (x && y && json_equal(x, y));
}

/* Seconds of processor time between two looks at a thread; negative: not known. */
static double hang_worked(const json_t *then, const json_t *now)
{
    const json_t *a = json_object_get(then, "ran_ns"), *b = json_object_get(now, "ran_ns");
    if (a && b)
        return (double)(json_integer_value(b) - json_integer_value(a)) / 1e9;
    a = json_object_get(then, "ticks");
    b = json_object_get(now, "ticks");
    return a && b ? (double)(json_integer_value(b) - json_integer_value(a)) /
                        (double)sysconf(_SC_CLK_TCK)
                  : -1;
}

/* Was the thread asleep in the same call in every look, without more work in between than a look
 * itself costs it? */
static bool hang_blocked(const struct hang_results *results, size_t i, const char *key,
                         const json_t *last)
{
    const char *state = json_string_value(json_object_get(last, "state"));
    if (!state || *state == 'R')
        return false;
    for (unsigned s = 0; s < HANG_SAMPLES - 1; s++) {
        const json_t *threads = json_object_get(results->samples[s][i].result, "threads"),
                     *then = json_object_get(threads, key),
                     *call = json_object_get(then, "syscall"),
                     *now = json_object_get(last, "syscall");
        double worked = hang_worked(then, last);
        if (!then || worked < 0 || worked > HANG_LOOK_COST_S * HANG_SAMPLES ||
            !hang_same(then, last, "state") || !hang_same(call, now, "path"))
            return false;
        /* a look makes the call go on as another one */
        const char *name = json_string_value(json_object_get(now, "name"));
        bool restarted = name && strcmp(name, "restart_syscall") == 0;
        if (!restarted && (!hang_same(call, now, "name") || !hang_same(then, last, "wchan")))
            return false;
    }
    return true;
}

static void hang_add_threads(const struct hang_process *process, const struct hang_results *results,
                             size_t i, double seconds, json_t *rank)
{
    const json_t *first = results->samples[0][i].result,
                 *last = results->samples[HANG_SAMPLES - 1][i].result,
                 *stacks = results->stacks ? results->stacks[i].result : NULL;
    json_t *threads = json_array(), *thread;
    const char *key;
    json_object_foreach(json_object_get(last, "threads"), key, thread)
    {
        json_t *copy = json_copy(thread),
               *before = json_object_get(json_object_get(first, "threads"), key),
               *stack = json_object_get(stacks, key);
        double worked = hang_worked(before, thread);
        json_object_del(copy, "ran_ns");
        json_object_del(copy, "ticks");
        json_object_set_new(copy, "tid", json_integer(strtol(key, NULL, 10)));
        bool blocked = hang_blocked(results, i, key, thread);
        json_t *since = json_object_get(before, "blocked_s");
        json_object_set_new(copy, "blocked", json_boolean(blocked));
        if (blocked && since)
            json_object_set_new(copy, "blocked_s",
                                json_real(round((json_real_value(since) + seconds) * 10) / 10));
        if (worked >= 0 && seconds > 0)
            json_object_set_new(copy, "cpu", json_real(round(worked / seconds * 1000) / 1000));
        if (stack)
            json_object_update_missing(copy, stack);
        hang_add_copy(process->arena, strtol(key, NULL, 10), copy);
        json_array_append_new(threads, copy);
    }
    json_object_set_new(rank, "threads", threads);
}

static void hang_add_number(json_t *rank, const char *name, long value)
{
    if (value >= 0)
        json_object_set_new(rank, name, json_integer(value));
}

static void hang_add_io(const json_t *first, const json_t *last, json_t *rank)
{
    static const char *const names[] = {"read", "written"};
    for (size_t i = 0; i < 2; i++) {
        json_t *a = json_object_get(json_object_get(first, "io"), names[i]),
               *b = json_object_get(json_object_get(last, "io"), names[i]);
        if (a && b)
            json_object_set_new(rank, i ? "written" : "read",
                                json_integer(json_integer_value(b) - json_integer_value(a)));
    }
}

static void hang_unread(json_t *rank, const char *what, const char *why)
{
    json_t *unread = json_object_get(rank, "unread");
    if (!unread)
        json_object_set_new(rank, "unread", unread = json_object());
    json_object_set_new(unread, what, shk_json_text(why, strlen(why)));
}

static void hang_add_child(const struct shk_isolate_result *child, const char *what, json_t *rank)
{
    if (child->result)
        json_object_update_missing(rank, child->result);
    if (child->outcome != SHK_CHILD_OK)
        hang_unread(rank, what, child->error.text);
}

static json_t *hang_identity(const struct hang_process *process)
{
    json_t *rank = json_pack("{s:I,s:o}", "pid", (json_int_t)process->pid, "command",
                             shk_json_text(process->name, strlen(process->name)));
    hang_add_number(rank, "rank", process->rank);
    hang_add_number(rank, "ranks", process->ranks);
    hang_add_number(rank, "local_rank", process->local_rank);
    hang_add_number(rank, "local_ranks", process->local_ranks);
    if (process->launch)
        json_object_set_new(rank, "launcher", json_string(process->launch->name));
    if (process->job)
        json_object_set_new(rank, "job", shk_json_text(process->job, strlen(process->job)));
    if (process->environment)
        json_object_set(rank, "environment", process->environment);
    if (json_array_size(process->withheld))
        json_object_set(rank, "withheld", process->withheld);
    if (process->unreadable)
        hang_unread(rank, "environment", "not permitted");
    return rank;
}

static json_t *hang_rank(const struct hang_process *process, const struct hang_results *results,
                         size_t i, double seconds)
{
    const struct shk_isolate_result *last = &results->samples[HANG_SAMPLES - 1][i];
    const json_t *first = results->samples[0][i].result;
    json_t *rank = hang_identity(process);
    if (last->outcome == SHK_CHILD_FAILED && !last->result)
        json_object_set_new(rank, "state", json_string("X"));
    else if (last->result)
        json_object_set(rank, "state", json_object_get(last->result, "state"));
    if (last->outcome != SHK_CHILD_OK)
        hang_unread(rank, "process", last->error.text);
    if (!last->result || !json_object_get(last->result, "threads"))
        return rank;
    const struct shk_isolate_result *stacks = results->stacks ? &results->stacks[i] : NULL;
    if (stacks && stacks->outcome != SHK_CHILD_OK)
        hang_unread(rank, "stacks", stacks->error.text);
    hang_add_threads(process, results, i, seconds, rank);
    hang_add_io(first, last->result, rank);
    hang_add_child(&results->details[i], "details", rank);
    hang_add_child(&results->versions[i], "versions of libraries", rank);
    size_t all = (size_t)json_integer_value(json_object_get(last->result, "threads_count"));
    if (all > HANG_THREADS)
        hang_unread(rank, "threads", "there are more than are looked at");
    return rank;
}

static int hang_arenas(struct hang_process *processes, size_t count, struct shk_error *err)
{
    for (size_t i = 0; i < count; i++) {
        void *memory = mmap(NULL, sizeof(struct hang_arena) + HANG_POOL, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return shk_error_sys(err, errno, "memory for the stacks of process %ld",
                                 processes[i].pid);
        processes[i].arena = memory;
    }
    return 0;
}

/* One more child for each process, after the looks. */
static int hang_pass(struct hang_look *looks, struct hang_results *results,
                     int (*fn)(void *, json_t **, struct shk_error *), unsigned deadline_ms,
                     struct shk_isolate_result **list_p, struct shk_error *err)
{
    *list_p = calloc(results->count + 1, sizeof **list_p);
    return *list_p ? hang_children(looks, results->count, fn, deadline_ms, *list_p, err)
                   : shk_error_sys(err, ENOMEM, "hang");
}

static int hang_sample_all(struct hang_look *looks, const struct shk_hang_want *want,
                           struct hang_results *results, double *seconds_p, struct shk_error *err)
{
    double began = shk_clock_s(), last = began;
    int rc = 0;
    for (unsigned s = 0; !rc && s < HANG_SAMPLES; s++) {
        hang_sleep_until(began + hang_when[s] * want->seconds);
        last = shk_clock_s();
        for (size_t i = 0; i < results->count; i++)
            looks[i].sample = s;
        rc = hang_pass(looks, results, hang_look_run, HANG_LOOK_MS, &results->samples[s], err);
    }
    *seconds_p = last - began;
    if (!rc)
        rc = hang_pass(looks, results, hang_details_run, HANG_LOOK_MS, &results->details, err);
    if (!rc)
        rc = hang_pass(looks, results, hang_versions_run, HANG_LOOK_MS, &results->versions, err);
    if (rc || want->no_stacks)
        return rc;
    return hang_pass(looks, results, hang_unwind_run, HANG_UNWIND_MS, &results->stacks, err);
}

/* Documentation/admin-guide/LSM/Yama.rst */
static void hang_limits_yama(const struct shk_host *host, json_t *unread)
{
    long long scope = 0;
    if (shk_host_i64(host, &scope, NULL, "/proc/sys/kernel/yama/ptrace_scope") || scope < 1)
        return;
    const char *who = scope >= 3 ? "nobody may read the stacks of processes, until the next boot"
                      : geteuid() == 0 ? NULL
                      : scope == 2     ? "only root may read the stacks of processes"
                                   : "a user may not read the stacks of processes that they did "
                                     "not start from here; root may";
    if (who)
        json_array_append_new(unread,
                              json_sprintf("kernel.yama.ptrace_scope is %lld: %s", scope, who));
}

/* What keeps us from looking closer, as the kernel is set. */
static json_t *hang_limits(const struct shk_host *host, const struct shk_hang_want *want)
{
    json_t *unread = json_array();
    hang_limits_yama(host, unread);
    if (hang_hidden(host))
        json_array_append_new(unread, json_string("processes of other users: /proc hides them "
                                                  "(hidepid); root sees them"));
    if (want->no_stacks)
        json_array_append_new(unread, json_string("stacks: left out (--no-stacks)"));
    else if (!shk_hang_unwinder())
        json_array_append_new(unread,
                              json_string("this build reads no stacks: it was made without libdw"));
    return unread;
}

/* What the GPUs do at the beginning and at the end; `first` is stolen. */
static void hang_add_gpus(const struct shk_host *host, json_t *node, json_t *first)
{
    json_t *last = first ? hang_gpus(host) : NULL;
    if (first)
        json_object_set_new(node, "gpus_first", first);
    if (last)
        json_object_set_new(node, "gpus", last);
}

/* NCCL's own word at the beginning and at the end; `first` is stolen. */
static void hang_add_ras(json_t *node, const struct hang_process *processes, size_t count,
                         json_t *first)
{
    json_t *last = first ? hang_ras(processes, count) : NULL;
    if (first)
        json_object_set_new(node, "ras_first", first);
    if (last)
        json_object_set_new(node, "ras", last);
}

static json_t *hang_document(const struct shk_host *host, const struct shk_hang_want *want,
                             const struct hang_process *processes,
                             const struct hang_results *results, double seconds)
{
    char name[256] = "";
    json_t *ranks = json_array();
    gethostname(name, sizeof name - 1);
    for (size_t i = 0; i < results->count; i++)
        json_array_append_new(ranks, hang_rank(&processes[i], results, i, seconds));
    return json_pack("{s:o,s:f,s:i,s:o,s:o}", "host", shk_json_text(name, strlen(name)), "seconds",
                     round(seconds * 100) / 100, "samples", (int)HANG_SAMPLES, "ranks", ranks,
                     "unread", hang_limits(host, want));
}

int shk_hang_look(const struct shk_host *host, const struct shk_hang_want *want, json_t **node_p,
                  struct shk_error *err)
{
    struct hang_process *processes = NULL;
    struct hang_results results = {0};
    double seconds = 0;
    bool partial = false;
    time_t since = time(NULL);
    int rc = hang_find(host, want, &processes, &results.count, &partial, err);
    struct hang_look *looks = rc ? NULL : calloc(results.count + 1, sizeof *looks);
    if (!rc && !looks)
        rc = shk_error_sys(err, ENOMEM, "hang");
    rc = rc ? rc : hang_arenas(processes, results.count, err);
    for (size_t i = 0; !rc && i < results.count; i++)
        looks[i] = (struct hang_look){.host = host, .want = want, .process = &processes[i]};
    json_t *ras = rc ? NULL : hang_ras(processes, results.count);
    json_t *gpus = rc ? NULL : hang_gpus(host), *unasked = json_array();
    if (!rc && want->intrusive)
        hang_ask(host, processes, results.count, unasked);
    if (!rc)
        rc = hang_sample_all(looks, want, &results, &seconds, err);
    if (!rc && !(*node_p = hang_document(host, want, processes, &results, seconds)))
        rc = shk_error_sys(err, ENOMEM, "hang");
    if (!rc && !want->no_stacks)
        hang_python(host, processes, results.count, json_object_get(*node_p, "ranks"));
    if (!rc)
        hang_add_dumps(host, processes, results.count, since, *node_p);
    if (!rc && partial)
        json_object_set_new(*node_p, "partial", json_true());
    if (!rc) {
        hang_add_ras(*node_p, processes, results.count, ras);
        hang_add_gpus(host, *node_p, gpus);
        json_array_extend(json_object_get(*node_p, "unread"), unasked);
    } else {
        json_decref(ras);
        json_decref(gpus);
    }
    json_decref(unasked);
    for (size_t i = 0; i < results.count; i++)
        if (processes[i].arena)
            munmap(processes[i].arena, sizeof(struct hang_arena) + HANG_POOL);
    hang_results_free(&results);
    hang_find_free(processes, results.count);
    free(looks);
    return rc;
}
