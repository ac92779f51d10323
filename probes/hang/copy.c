#include "core/run/clock.h"
#include "probes/hang/hang_private.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

/* A thread that wants a processor and has none stops when it gets one; one that does not stop is
 * given up, and the end of this process lets go of it. All threads of a process together. */
enum { COPY_STOP_US = 400000, COPY_ALL_US = 4000000, COPY_YIELDS = 200, COPY_RED_ZONE = 128 };

/* Until the thread stands. Returns its wait status, -1 when it does not stop or is gone.
 * *before_us: when it was last seen not to stand. */
static int copy_wait(pid_t tid, bool first, double until_us, double *before_us)
{
    for (unsigned turns = first ? COPY_YIELDS : 0;; turns++) {
        int status;
        double now = shk_clock_s() * 1e6;
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == tid)
            return WIFSTOPPED(status) ? status : -1;
        if (got < 0 && errno != EINTR)
            return -1;
        *before_us = now;
        if (*before_us > until_us)
            return -1;
        if (turns < COPY_YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

#if defined __x86_64__
static int copy_registers(pid_t tid, struct hang_copy *copy)
{
    struct user_regs_struct r;
    struct iovec to = {&r, sizeof r};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &to))
        return errno;
    if (to.iov_len != sizeof r)
        return ENOEXEC; /* of 32 bits */
    /* System V ABI for x86-64, figure 3.36 */
    const uint64_t by_number[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    memcpy(copy->registers, by_number, sizeof by_number);
    copy->registers_count = sizeof by_number / sizeof *by_number;
    copy->pc = r.rip;
    copy->sp = r.rsp;
    return 0;
}
#elif defined __aarch64__
static int copy_registers(pid_t tid, struct hang_copy *copy)
{
    struct user_regs_struct r;
    struct iovec to = {&r, sizeof r};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &to))
        return errno;
    if (to.iov_len != sizeof r)
        return ENOEXEC;
    memcpy(copy->registers, r.regs, sizeof r.regs); /* x0 to x30, then sp: aadwarf64 */
    copy->registers[31] = r.sp;
    copy->registers_count = 32;
    copy->pc = r.pc;
    copy->sp = r.sp;
    return 0;
}
#else
static int copy_registers(pid_t tid, struct hang_copy *copy)
{
    (void)tid;
    (void)copy;
    return ENOSYS;
}
#endif

static size_t copy_memory(long pid, uint64_t from, void *to, size_t length)
{
    struct iovec local = {to, length}, remote = {(void *)(uintptr_t)from, length};
    ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Room in the pool; SIZE_MAX when it is full. */
static uint64_t copy_room(struct hang_arena *arena, size_t length)
{
    if (arena->used + length > HANG_POOL)
        return UINT64_MAX;
    uint64_t at = arena->used;
    arena->used += (length + 15) & ~(size_t)15;
    return at;
}

static int copy_stack(const struct hang_process *process, const struct hang_maps *maps,
                      struct hang_copy *copy)
{
    const struct hang_region *region = hang_maps_find(maps, copy->sp);
    if (!region)
        return EFAULT;
    size_t most = copy->tid == process->pid ? HANG_STACK_MAIN : HANG_STACK_OTHER;
    uint64_t start =
        copy->sp - COPY_RED_ZONE < region->start ? region->start : copy->sp - COPY_RED_ZONE;
    size_t length = region->end - start < most ? region->end - start : most;
    uint64_t at = copy_room(process->arena, length);
    if (at == UINT64_MAX)
        return ENOBUFS;
    copy->start = start;
    copy->at = at;
    copy->length = copy_memory(process->pid, start, process->arena->pool + at, length);
    return copy->length ? 0 : EFAULT;
}

static void copy_thread(const struct hang_process *process, const struct hang_maps *maps,
                        bool first, double until_us, struct hang_copy *copy)
{
    pid_t tid = copy->tid;
    if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
        copy->error = errno;
        return;
    }
    double began = shk_clock_s() * 1e6;
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0)) {
        copy->error = errno;
        return;
    }
    double until = began + COPY_STOP_US < until_us ? began + COPY_STOP_US : until_us;
    int status = copy_wait(tid, first, until, &began);
    if (status < 0) {
        copy->error = EBUSY;
        return;
    }
    copy->error = copy_registers(tid, copy);
    if (!copy->error)
        copy->error = copy_stack(process, maps, copy);
    /* A signal that came just now is the thread's */
    long signal = status >> 16 ? 0 : WSTOPSIG(status);
    ptrace(PTRACE_DETACH, tid, 0, signal);
    copy->stopped_us = (uint32_t)(shk_clock_s() * 1e6 - began);
}

static void copy_vdso(const struct hang_process *process, const struct hang_maps *maps)
{
    struct hang_arena *arena = process->arena;
    for (size_t i = 0; i < maps->count && !arena->vdso_length; i++) {
        const struct hang_region *region = &maps->regions[i];
        size_t length = region->end - region->start;
        if (strcmp(region->path, "[vdso]") != 0 || length > 1 << 16)
            continue;
        uint64_t at = copy_room(arena, length);
        if (at == UINT64_MAX)
            return;
        arena->vdso_address = region->start;
        arena->vdso_at = at;
        arena->vdso_length = copy_memory(process->pid, region->start, arena->pool + at, length);
    }
}

/* Calls that return EINTR after a stop, which a program sees (signal(7), "Interruption of system
 * calls by stop signals"); epoll_wait() is one, too, but waits of libraries for communication are
 * in it. */
static bool copy_disturbs(const struct shk_host *host, long pid, long tid)
{
    char *line = NULL;
    long number = -1;
    if (shk_host_line(host, &line, NULL, "/proc/%ld/task/%ld/syscall", pid, tid) == 0 &&
        sscanf(line, "%ld", &number) != 1)
        number = -1;
    free(line);
    return number == SYS_semtimedop || number == SYS_semop || number == SYS_rt_sigtimedwait;
}

void hang_copy(const struct shk_host *host, const struct hang_process *process, unsigned sample,
               const struct hang_maps *maps, const long *tids, size_t count)
{
    struct hang_arena *arena = process->arena;
    double until = shk_clock_s() * 1e6 + COPY_ALL_US;
    /* A stopped thread waits for us: no other goes first. Users may not have that. */
    bool first = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}) == 0;
    if (!first)
        setpriority(PRIO_PROCESS, 0, -20);
    for (size_t i = 0; i < count && i < HANG_THREADS; i++) {
        struct hang_copy *copy = &arena->copies[sample][i];
        *copy = (struct hang_copy){.tid = (int32_t)tids[i]};
        struct hang_process stat = {0};
        if (hang_stat(host, process->pid, tids[i], &stat))
            copy->error = ESRCH;
        else if (stat.state == 'D')
            copy->error = EBUSY;
        else if (copy_disturbs(host, process->pid, tids[i]))
            copy->error = EINTR;
        else
            copy_thread(process, maps, first, until, copy);
        arena->counts[sample] = (uint32_t)i + 1;
    }
    if (!sample)
        copy_vdso(process, maps);
}
