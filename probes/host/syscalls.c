#include "probes/host/syscalls.h"

#include "core/run/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char syscalls_key[] = "kernel.syscalls", seccomp_key[] = "kernel.seccomp";

enum { SYSCALLS_MS = 1000, SYSCALLS_USER_ONLY = 1 /* UFFD_USER_MODE_ONLY */ };

static long syscalls_policy(void)
{
    return syscall(SYS_get_mempolicy, NULL, NULL, 0ul, NULL, 0ul);
}

/* The default policy for no memory at all: changes nothing. */
static long syscalls_mbind(void)
{
    return syscall(SYS_mbind, NULL, 0ul, 0, NULL, 0ul, 0);
}

static long syscalls_read(void)
{
    char from = 1, to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    return syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul);
}

static long syscalls_fault(int flags)
{
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
    if (fd >= 0)
        close((int)fd);
    return fd;
}

static long syscalls_fault_any(void)
{
    return syscalls_fault(0);
}

static long syscalls_fault_user(void)
{
    return syscalls_fault(SYSCALLS_USER_ONLY);
}

static const struct {
    const char *name;
    long (*call)(void);
} syscalls_rows[] = {
    {"get_mempolicy", syscalls_policy},        {"mbind", syscalls_mbind},
    {"process_vm_readv", syscalls_read},       {"userfaultfd", syscalls_fault_any},
    {"userfaultfd_user", syscalls_fault_user},
};
enum { SYSCALLS_ROWS = sizeof syscalls_rows / sizeof *syscalls_rows };

/* userfaultfd without the flag says EINVAL before Linux 5.11 for the one with it. */
static void syscalls_ask(json_t *row, size_t i)
{
    errno = 0;
    bool ok = syscalls_rows[i].call() >= 0;
    int why = errno;
    if (ok || why == EPERM || why == EACCES || why == ENOSYS) {
        json_object_set_new(row, syscalls_rows[i].name,
                            json_string(ok              ? "ok"
                                        : why == ENOSYS ? "missing"
                                                        : "denied"));
        return;
    }
    json_object_set_new(row, syscalls_rows[i].name, json_null());
    if (why != EINVAL)
        shk_gather_member_problem(row, syscalls_rows[i].name, strerror(why));
}

static int syscalls_child(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg;
    (void)err;
    *result_p = json_object();
    for (size_t i = 0; i < SYSCALLS_ROWS; i++) {
        shk_crumb_call("%s", syscalls_rows[i].name);
        syscalls_ask(*result_p, i);
    }
    shk_crumb_clear();
    return 0;
}

/* Behind a filter: one that ends the process at one of them leaves the name of it. */
static json_t *syscalls_filtered(struct shk_error *err)
{
    struct shk_isolate_job job = {
        .name = "system calls", .fn = syscalls_child, .deadline_ms = SYSCALLS_MS};
    struct shk_isolate_result result = {.outcome = SHK_CHILD_NOT_RUN};
    json_t *row = NULL;
    if (shk_isolate_run(&job, &result, 1, 1, err) == 0) {
        row = json_incref(result.result);
        if (!row && result.outcome == SHK_CHILD_SIGNALED && *result.call) {
            row = json_object();
            for (size_t i = 0; i < SYSCALLS_ROWS; i++) {
                bool it = strcmp(syscalls_rows[i].name, result.call) == 0;
                json_object_set_new(row, syscalls_rows[i].name,
                                    it ? json_string("kills") : json_null());
                if (!it)
                    shk_gather_member_problem(row, syscalls_rows[i].name,
                                              "not asked: another call ended the process");
            }
        }
        if (!row)
            *err = result.error;
    }
    shk_isolate_result_clear(&result);
    return row;
}

/* The number behind "\nNAME:\t"; -1: there is none. */
static long syscalls_status(const char *text, const char *name)
{
    const char *at = text ? strstr(text, name) : NULL;
    return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

void shk_syscalls(struct shk_gather *g)
{
    static const char *const modes[] = {"none", "strict", "filter"};
    static const char path[] = "/proc/self/status";
    struct shk_error err = {""};
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    long mode = syscalls_status(text, "\nSeccomp:"),
         filters = syscalls_status(text, "\nSeccomp_filters:");
    free(text);
    if (rc)
        shk_gather_unread(g, seccomp_key, path, "/proc/self", rc, &err);
    else if (mode < 0 || mode > 2)
        shk_gather_absent(g, seccomp_key, path, "this kernel has no such filters");
    else
        shk_gather_present(g, seccomp_key,
                           json_pack("{s:s, s:o}", "mode", modes[mode], "filters",
                                     filters >= 0 ? json_integer(filters) : json_null()),
                           NULL, path);
    if (!shk_host_is_live(g->host)) {
        shk_gather_failed(g, syscalls_key, "system calls", "a capture makes none");
        return;
    }
    json_t *row = NULL;
    if (!rc && mode == 0)
        (void)syscalls_child(NULL, &row, &err);
    else
        row = syscalls_filtered(&err);
    if (row)
        shk_gather_present(g, syscalls_key, row, NULL, "system calls");
    else
        shk_gather_failed(g, syscalls_key, "system calls", "%s", err.text);
}
