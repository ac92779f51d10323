#include "probes/hang/hang_private.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum syscall_role { CALL_PLAIN, CALL_FD, CALL_PATH, CALL_PATH_AT };

/* Calls that may wait; others are given by their number. */
static const struct {
    long number;
    const char *name;
    enum syscall_role role; /* what its first arguments are */
} syscall_names[] = {
#ifdef SYS_open
    {SYS_open, "open", CALL_PATH},
    {SYS_stat, "stat", CALL_PATH},
    {SYS_lstat, "lstat", CALL_PATH},
    {SYS_access, "access", CALL_PATH},
    {SYS_mkdir, "mkdir", CALL_PATH},
    {SYS_unlink, "unlink", CALL_PATH},
    {SYS_rename, "rename", CALL_PATH},
    {SYS_readlink, "readlink", CALL_PATH},
    {SYS_creat, "creat", CALL_PATH},
    {SYS_poll, "poll", CALL_PLAIN},
    {SYS_select, "select", CALL_PLAIN},
    {SYS_epoll_wait, "epoll_wait", CALL_PLAIN},
    {SYS_pause, "pause", CALL_PLAIN},
#endif
    {SYS_openat, "open", CALL_PATH_AT},
    {SYS_newfstatat, "stat", CALL_PATH_AT},
    {SYS_statx, "stat", CALL_PATH_AT},
    {SYS_faccessat, "access", CALL_PATH_AT},
    {SYS_faccessat2, "access", CALL_PATH_AT},
    {SYS_mkdirat, "mkdir", CALL_PATH_AT},
    {SYS_unlinkat, "unlink", CALL_PATH_AT},
    {SYS_renameat2, "rename", CALL_PATH_AT},
    {SYS_readlinkat, "readlink", CALL_PATH_AT},
    {SYS_execve, "execve", CALL_PATH},
    {SYS_statfs, "statfs", CALL_PATH},
    {SYS_read, "read", CALL_FD},
    {SYS_write, "write", CALL_FD},
    {SYS_pread64, "pread", CALL_FD},
    {SYS_pwrite64, "pwrite", CALL_FD},
    {SYS_readv, "readv", CALL_FD},
    {SYS_writev, "writev", CALL_FD},
    {SYS_preadv, "preadv", CALL_FD},
    {SYS_pwritev, "pwritev", CALL_FD},
    {SYS_fsync, "fsync", CALL_FD},
    {SYS_fdatasync, "fdatasync", CALL_FD},
    {SYS_close, "close", CALL_FD},
    {SYS_fstat, "fstat", CALL_FD},
    {SYS_lseek, "lseek", CALL_FD},
    {SYS_ftruncate, "ftruncate", CALL_FD},
    {SYS_fallocate, "fallocate", CALL_FD},
    {SYS_getdents64, "getdents", CALL_FD},
    {SYS_flock, "flock", CALL_FD},
    {SYS_fcntl, "fcntl", CALL_FD},
    {SYS_ioctl, "ioctl", CALL_FD},
    {SYS_recvfrom, "recv", CALL_FD},
    {SYS_recvmsg, "recvmsg", CALL_FD},
    {SYS_sendto, "send", CALL_FD},
    {SYS_sendmsg, "sendmsg", CALL_FD},
    {SYS_accept, "accept", CALL_FD},
    {SYS_accept4, "accept", CALL_FD},
    {SYS_connect, "connect", CALL_FD},
    {SYS_sendfile, "sendfile", CALL_FD},
    {SYS_copy_file_range, "copy_file_range", CALL_FD},
    {SYS_sync, "sync", CALL_PLAIN},
    {SYS_io_getevents, "io_getevents", CALL_PLAIN},
    {SYS_io_uring_enter, "io_uring_enter", CALL_PLAIN},
    {SYS_msync, "msync", CALL_PLAIN},
    {SYS_munmap, "munmap", CALL_PLAIN},
    {SYS_mmap, "mmap", CALL_PLAIN},
    {SYS_ppoll, "poll", CALL_PLAIN},
    {SYS_pselect6, "select", CALL_PLAIN},
    {SYS_epoll_pwait, "epoll_wait", CALL_PLAIN},
    {SYS_futex, "futex", CALL_PLAIN},
    {SYS_nanosleep, "nanosleep", CALL_PLAIN},
    {SYS_clock_nanosleep, "nanosleep", CALL_PLAIN},
    {SYS_wait4, "wait", CALL_PLAIN},
    {SYS_waitid, "wait", CALL_PLAIN},
    {SYS_msgrcv, "msgrcv", CALL_PLAIN},
    {SYS_msgsnd, "msgsnd", CALL_PLAIN},
    {SYS_mq_timedreceive, "mq_receive", CALL_PLAIN},
    {SYS_mq_timedsend, "mq_send", CALL_PLAIN},
    {SYS_recvmmsg, "recvmmsg", CALL_PLAIN},
    {SYS_sendmmsg, "sendmmsg", CALL_PLAIN},
    {SYS_splice, "splice", CALL_FD},
    {SYS_vmsplice, "vmsplice", CALL_FD},
    {SYS_preadv2, "preadv2", CALL_FD},
    {SYS_pwritev2, "pwritev2", CALL_FD},
    {SYS_sync_file_range, "sync_file_range", CALL_FD},
    {SYS_syncfs, "syncfs", CALL_FD},
    {SYS_fstatfs, "fstatfs", CALL_FD},
    {SYS_fchdir, "fchdir", CALL_FD},
    {SYS_truncate, "truncate", CALL_PATH},
    {SYS_chdir, "chdir", CALL_PATH},
    {SYS_getxattr, "getxattr", CALL_PATH},
    {SYS_lgetxattr, "getxattr", CALL_PATH},
    {SYS_fchmodat, "chmod", CALL_PATH_AT},
    {SYS_fchownat, "chown", CALL_PATH_AT},
    {SYS_utimensat, "utime", CALL_PATH_AT},
    {SYS_symlinkat, "symlink", CALL_PATH},
    {SYS_linkat, "link", CALL_PATH_AT},
    {SYS_mknodat, "mknod", CALL_PATH_AT},
#ifdef SYS_openat2
    {SYS_openat2, "open", CALL_PATH_AT},
#endif
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, "epoll_wait", CALL_PLAIN},
#endif
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, "futex_waitv", CALL_PLAIN},
#endif
    {SYS_semtimedop, "semop", CALL_PLAIN},
    {SYS_semop, "semop", CALL_PLAIN},
    {SYS_rt_sigsuspend, "sigsuspend", CALL_PLAIN},
    {SYS_rt_sigtimedwait, "sigwait", CALL_PLAIN},
    {SYS_sched_yield, "sched_yield", CALL_PLAIN},
    {SYS_restart_syscall, "restart_syscall", CALL_PLAIN},
};

/* The longest mount point that the path is below, of the mounts that the process itself sees. */
static void syscall_file_system(const struct shk_host *host, long pid, const char *path,
                                json_t *call)
{
    char file[64], *text = NULL, *save = NULL;
    size_t best = 0;
    snprintf(file, sizeof file, "/proc/%ld/mounts", pid);
    if (shk_host_read(host, file, &text, NULL, NULL))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char point[PATH_MAX], type[64];
        if (sscanf(line, "%*s %4095s %63s", point, type) != 2)
            continue;
        size_t length = strcmp(point, "/") == 0 ? 0 : strlen(point);
        if (length < best || strncmp(path, point, length) != 0 ||
            (path[length] != '/' && path[length]))
            continue;
        best = length;
        json_object_set_new(call, "file_system", shk_json_text(type, strlen(type)));
        json_object_set_new(call, "mount", shk_json_text(point, strlen(point)));
    }
    free(text);
}

static void syscall_path(const struct shk_host *host, long pid, unsigned long long address,
                         json_t *call)
{
    char path[PATH_MAX] = "", whole[2 * PATH_MAX], *folder = NULL;
    size_t got = 0;
    /* a page at a time: the string may end right before a page that is not there */
    while (got < sizeof path - 1 && !memchr(path, '\0', got)) {
        size_t part = 4096 - ((address + got) & 4095);
        part = part < sizeof path - 1 - got ? part : sizeof path - 1 - got;
        struct iovec local = {path + got, part},
                     remote = {(void *)(uintptr_t)(address + got), part};
        if (process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) != (ssize_t)part)
            break;
        got += part;
    }
    if (!got || !*path)
        return;
    if (*path == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else if (shk_host_readlink(host, &folder, NULL, "/proc/%ld/cwd", pid) == 0) {
        snprintf(whole, sizeof whole, "%s/%s", folder, path);
        free(folder);
    } else {
        return;
    }
    json_object_set_new(call, "path", shk_json_text(whole, strlen(whole)));
    syscall_file_system(host, pid, whole, call);
}

static void syscall_fd(const struct shk_host *host, long pid, unsigned long long fd, json_t *call)
{
    char *target = NULL;
    json_object_set_new(call, "fd", json_integer((json_int_t)(int)fd));
    if (shk_host_readlink(host, &target, NULL, "/proc/%ld/fd/%d", pid, (int)fd))
        return;
    json_object_set_new(call, "path", shk_json_text(target, strlen(target)));
    if (*target == '/')
        syscall_file_system(host, pid, target, call);
    free(target);
}

/* May another process wake this futex? Not where its word is in memory of this process alone, as
 * that of a thread which pthread_join() waits for: glibc calls for those as if it were shared. */
static bool syscall_shared(const struct shk_host *host, long pid, unsigned long long address,
                           unsigned long long operation)
{
    struct hang_maps maps = {0};
    bool shared = !(operation & FUTEX_PRIVATE_FLAG);
    if (shared && !hang_maps_read(host, pid, &maps, NULL)) {
        const struct hang_region *region = hang_maps_find(&maps, address);
        shared = !region || region->shared;
    }
    hang_maps_free(&maps);
    return shared;
}

json_t *hang_syscall(const struct shk_host *host, long pid, long tid)
{
    char *line = NULL;
    long number;
    unsigned long long first = 0, second = 0;
    if (shk_host_line(host, &line, NULL, "/proc/%ld/task/%ld/syscall", pid, tid))
        return NULL;
    int got = sscanf(line, "%ld %llx %llx", &number, &first, &second);
    free(line);
    if (got < 3 || number < 0)
        return NULL;
    for (size_t i = 0; i < sizeof syscall_names / sizeof *syscall_names; i++) {
        if (syscall_names[i].number != number)
            continue;
        json_t *call = json_pack("{s:s}", "name", syscall_names[i].name);
        enum syscall_role role = syscall_names[i].role;
        if (role == CALL_FD)
            syscall_fd(host, pid, first, call);
        else if (number == SYS_futex)
            json_object_set_new(call, "shared",
                                json_boolean(syscall_shared(host, pid, first, second)));
        else if (role != CALL_PLAIN)
            syscall_path(host, pid, role == CALL_PATH ? first : second, call);
        return call;
    }
    return json_pack("{s:o}", "name", json_sprintf("system call %ld", number));
}
