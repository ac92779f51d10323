#include "probes/hang/hang_private.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int hang_stat(const struct shk_host *host, long pid, long tid, struct hang_process *process)
{
    char path[80], *text = NULL;
    snprintf(path, sizeof path, tid ? "/proc/%ld/task/%ld/stat" : "/proc/%ld/stat", pid, tid);
    if (shk_host_read(host, path, &text, NULL, NULL))
        return -ESRCH;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long long user = 0, system = 0, start = 0;
    int rc = -ESRCH;
    if (open && close > open &&
        sscanf(close + 1,
               " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s "
               "%*s %*s %llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
               &process->state, &process->parent, &user, &system, &start, &process->cpu) == 6) {
        *close = '\0';
        snprintf(process->name, sizeof process->name, "%s", open + 1);
        process->ticks = user + system;
        process->start = start;
        process->pid = pid;
        rc = 0;
    }
    free(text);
    return rc;
}

/* When a thread last ran, in ms of the scheduler's clock (kernel/sched/debug.c); -1: not told. */
static double state_ran_ms(const struct shk_host *host, const char *path)
{
    char *text = NULL;
    double ms = -1;
    if (shk_host_read(host, path, &text, NULL, NULL))
        return -1;
    const char *line = strstr(text, "se.exec_start"), *colon = line ? strchr(line, ':') : NULL;
    if (colon)
        ms = strtod(colon + 1, NULL);
    free(text);
    return ms;
}

/* The clock is one of each processor, and stands still while that serves interrupts or is taken
 * from a virtual machine: it is asked from the processor on which the thread fell asleep. */
static void state_blocked(const struct shk_host *host, const char *folder, int cpu, json_t *thread)
{
    char path[96];
    cpu_set_t before, there;
    CPU_ZERO(&there);
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before))
        return;
    CPU_SET(cpu, &there);
    if (sched_setaffinity(0, sizeof there, &there))
        return;
    double now = state_ran_ms(host, "/proc/self/sched");
    snprintf(path, sizeof path, "%s/sched", folder);
    double then = state_ran_ms(host, path);
    if (now > 0 && then > 0 && now > then)
        json_object_set_new(thread, "blocked_s",
                            json_real((double)(long long)(now - then) / 1000.0));
    (void)sched_setaffinity(0, sizeof before, &before);
}

/* Functions of the kernel that it sleeps in, the innermost first, with their modules; root's. */
static json_t *state_kernel(const struct shk_host *host, const char *folder)
{
    char path[96], *text = NULL, *save = NULL;
    snprintf(path, sizeof path, "%s/stack", folder);
    if (shk_host_read(host, path, &text, NULL, NULL))
        return NULL;
    json_t *frames = json_array();
    for (char *line = strtok_r(text, "\n", &save); line && json_array_size(frames) < 24;
         line = strtok_r(NULL, "\n", &save)) {
        char *name = strchr(line, ']'), *plus = name ? strchr(name, '+') : NULL;
        char *module = plus ? strchr(plus, '[') : NULL;
        if (!plus)
            continue;
        *plus = '\0';
        char *end = module ? strchr(module, ']') : NULL;
        if (end)
            end[1] = '\0';
        char *both = shk_strf("%s%s%s", name + 2, end ? " " : "", end ? module : "");
        if (both)
            json_array_append_new(frames, shk_json_text(both, strlen(both)));
        free(both);
    }
    free(text);
    return frames;
}

/* Processor time so far in ns; -1: not told. */
static long long state_ran_ns(const struct shk_host *host, const char *folder)
{
    char *line = NULL;
    long long ran = -1;
    if (!shk_host_line(host, &line, NULL, "%s/schedstat", folder) &&
        sscanf(line, "%lld", &ran) != 1)
        ran = -1;
    free(line);
    return ran;
}

static json_t *state_thread(const struct shk_host *host, long pid, long tid, bool since)
{
    struct hang_process stat = {0};
    if (hang_stat(host, pid, tid, &stat))
        return NULL;
    char folder[64], *wchan = NULL;
    snprintf(folder, sizeof folder, "/proc/%ld/task/%ld", pid, tid);
    json_t *thread =
        json_pack("{s:o,s:o,s:I}", "name", shk_json_text(stat.name, strlen(stat.name)), "state",
                  json_stringn(&stat.state, 1), "ticks", (json_int_t)stat.ticks);
    long long ran = state_ran_ns(host, folder);
    if (ran >= 0)
        json_object_set_new(thread, "ran_ns", json_integer(ran));
    if (stat.state == 'R')
        return thread;
    if (!shk_host_line(host, &wchan, NULL, "%s/wchan", folder) && *wchan && strcmp(wchan, "0") != 0)
        json_object_set_new(thread, "wchan", shk_json_text(wchan, strlen(wchan)));
    free(wchan);
    json_t *call = hang_syscall(host, pid, tid);
    if (call)
        json_object_set_new(thread, "syscall", call);
    if (since && (tid == pid || stat.state == 'D'))
        state_blocked(host, folder, stat.cpu, thread);
    json_t *kernel = stat.state == 'D' ? state_kernel(host, folder) : NULL;
    if (kernel)
        json_object_set_new(thread, "kernel", kernel);
    return thread;
}

json_t *hang_threads(const struct shk_host *host, const struct hang_process *process,
                     const long *tids, size_t count, bool since)
{
    json_t *threads = json_object();
    for (size_t i = 0; threads && i < count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%ld", tids[i]);
        json_t *thread = state_thread(host, process->pid, tids[i], since);
        if (thread)
            json_object_set_new(threads, key, thread);
    }
    return threads;
}

/* Bytes and calls of read and write so far: a rank that goes on writing is not stuck. */
json_t *hang_io(const struct shk_host *host, long pid)
{
    char path[64], *text = NULL;
    unsigned long long rchar, wchar;
    json_t *io = NULL;
    snprintf(path, sizeof path, "/proc/%ld/io", pid);
    if (shk_host_read(host, path, &text, NULL, NULL))
        return NULL;
    if (sscanf(text, "rchar: %llu wchar: %llu", &rchar, &wchar) == 2)
        io = json_pack("{s:I,s:I}", "read", (json_int_t)rchar, "written", (json_int_t)wchar);
    free(text);
    return io;
}

static void details_libraries(const struct shk_hang_want *want, const struct hang_maps *maps,
                              json_t *details)
{
    json_t *libraries = json_object();
    for (size_t i = 0; i < maps->count && json_object_size(libraries) < 64; i++) {
        const char *path = maps->regions[i].path, *slash = strrchr(path, '/');
        if (*path != '/')
            continue;
        for (const char *const *l = want->libraries; l && *l; l++)
            if (strncmp(slash + 1, *l, strlen(*l)) == 0) {
                json_t *name = shk_json_text(path, strlen(path));
                json_object_set_new(libraries, json_string_value(name), json_null());
                json_decref(name);
            }
    }
    const char *path;
    json_t *none, *list = json_array();
    json_object_foreach(libraries, path, none) json_array_append_new(list, json_string(path));
    json_decref(libraries);
    json_object_set_new(details, "libraries", list);
}

static bool details_file(const char *target)
{
    return *target == '/' && strncmp(target, "/dev/pts/", 9) != 0 &&
           strcmp(target, "/dev/null") != 0 && strncmp(target, "/memfd:", 7) != 0;
}

static void details_files(const struct shk_host *host, long pid, json_t *details)
{
    char **names = NULL;
    size_t count = 0;
    struct shk_error err = {""};
    if (shk_host_list(host, &names, &count, &err, "/proc/%ld/fd", pid)) {
        json_object_set_new(details, "files_unread", shk_json_text(err.text, strlen(err.text)));
        return;
    }
    json_t *files = json_array();
    for (size_t i = 0; i < count && json_array_size(files) < 64; i++) {
        char *target = NULL;
        if (!shk_host_readlink(host, &target, NULL, "/proc/%ld/fd/%s", pid, names[i]) &&
            details_file(target))
            json_array_append_new(files, shk_json_text(target, strlen(target)));
        free(target);
    }
    shk_host_list_free(names);
    json_object_set_new(details, "files", files);
}

static void details_debugger(const struct shk_host *host, long pid, json_t *details)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    if (shk_host_read(host, path, &text, NULL, NULL))
        return;
    const char *line = strstr(text, "\nTracerPid:");
    long tracer = line ? strtol(line + 11, NULL, 10) : 0;
    if (tracer && tracer != getpid())
        json_object_set_new(details, "tracer", json_integer(tracer));
    free(text);
}

json_t *hang_details(const struct shk_host *host, const struct hang_process *process,
                     const struct shk_hang_want *want, const struct hang_maps *maps)
{
    json_t *details = json_object(), *sockets;
    details_debugger(host, process->pid, details);
    details_libraries(want, maps, details);
    details_files(host, process->pid, details);
    struct shk_error err = {""};
    sockets = hang_sockets(host, process->pid, &err);
    if (sockets)
        json_object_set_new(details, "sockets", sockets);
    else
        json_object_set_new(details, "sockets_unread", shk_json_text(err.text, strlen(err.text)));
    return details;
}
