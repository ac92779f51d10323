/* Stacks from their copies, by libdw of elfutils. The ELF files are the target's, so a stranger's:
 * this runs in a child that has opened them and then given up its rights. */
#include "core/run/drop.h"
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"

#include <errno.h>

#ifndef SHK_DW_VERSION

const char *shk_hang_unwinder(void)
{
    return NULL;
}

int hang_unwind(const struct shk_host *host, const struct hang_process *process, json_t **result_p,
                struct shk_error *err)
{
    (void)host;
    (void)process;
    (void)result_p;
    return shk_error_set(err, ENOSYS, "this build has no libdw (elfutils), which reads stacks");
}

#else

#include "core/run/clock.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of a process with many deep stacks those that come first are read: the first thread's is. */
enum { UNWIND_CPU_S = 20, UNWIND_S = 15 };

const char *shk_hang_unwinder(void)
{
    return "libdw " SHK_DW_VERSION;
}

struct unwind_frame {
    uint64_t pc;    /* inside of the call */
    uint64_t lower; /* its part of the stack: [lower, upper) */
    uint64_t upper; /* 0: not known */
};

struct unwind_stack {
    struct unwind_frame frames[HANG_FRAMES]; /* the innermost first */
    size_t count;
    bool cut;
    bool deep; /* cut because there is more of it than is copied or kept */
};

struct unwind {
    const struct hang_arena *arena;
    const struct hang_copy *copy; /* that is being unwound */
    struct unwind_stack *stack;
    uint64_t highest; /* address that was read since the last frame */
};

static int unwind_no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                         char **path, Elf **elf)
{
    (void)module;
    (void)user;
    (void)name;
    (void)base;
    (void)path;
    (void)elf;
    return -1;
}

/* What is in the file itself must do: nothing is looked for elsewhere. */
static int unwind_no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                               const char *file, const char *link, GElf_Word crc, char **path)
{
    (void)module;
    (void)user;
    (void)name;
    (void)base;
    (void)file;
    (void)link;
    (void)crc;
    (void)path;
    return -1;
}

static pid_t unwind_next_thread(Dwfl *dwfl, void *arg, void **thread)
{
    (void)dwfl;
    (void)arg;
    (void)thread;
    return 0;
}

static bool unwind_get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
    struct unwind *unwind = arg;
    (void)dwfl;
    *thread = unwind;
    return tid == unwind->copy->tid;
}

static bool unwind_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
    struct unwind *unwind = arg;
    const struct hang_copy *copy = unwind->copy;
    (void)dwfl;
    if (address < copy->start || copy->length < sizeof *result ||
        address - copy->start > copy->length - sizeof *result)
        return false;
    memcpy(result, unwind->arena->pool + copy->at + (address - copy->start), sizeof *result);
    if (address > unwind->highest)
        unwind->highest = address;
    return true;
}

static bool unwind_registers(Dwfl_Thread *thread, void *arg)
{
    const struct hang_copy *copy = ((struct unwind *)arg)->copy;
    dwfl_thread_state_register_pc(thread, copy->pc);
    return dwfl_thread_state_registers(thread, 0, copy->registers_count, copy->registers);
}

static const Dwfl_Callbacks unwind_files = {.find_elf = unwind_no_elf,
                                            .find_debuginfo = unwind_no_debuginfo};
static const Dwfl_Thread_Callbacks unwind_thread = {.next_thread = unwind_next_thread,
                                                    .get_thread = unwind_get_thread,
                                                    .memory_read = unwind_memory,
                                                    .set_initial_registers = unwind_registers};

static int unwind_on_frame(Dwfl_Frame *state, void *arg)
{
    struct unwind *unwind = arg;
    struct unwind_stack *stack = unwind->stack;
    Dwarf_Addr pc;
    bool activation;
    if (!dwfl_frame_pc(state, &pc, &activation))
        return DWARF_CB_ABORT;
    if (stack->count == HANG_FRAMES) {
        stack->cut = stack->deep = true;
        return DWARF_CB_ABORT;
    }
    struct unwind_frame *frame = &stack->frames[stack->count++];
    uint64_t lower = unwind->copy->sp;
    if (stack->count > 1) {
        lower = unwind->highest ? unwind->highest + sizeof(uint64_t) : frame[-1].lower;
        frame[-1].upper = lower;
    }
    *frame = (struct unwind_frame){.pc = activation ? pc : pc - 1, .lower = lower};
    unwind->highest = 0;
    return DWARF_CB_OK;
}

static void unwind_one(Dwfl *dwfl, struct unwind *unwind, const struct hang_copy *copy,
                       struct unwind_stack *stack)
{
    unwind->copy = copy;
    unwind->stack = stack;
    unwind->highest = 0;
    stack->count = 0;
    stack->cut = stack->deep = false;
    /* an end that libdw is not sure of is none: the thread may be deeper in than it looks */
    if (dwfl_getthread_frames(dwfl, copy->tid, unwind_on_frame, unwind))
        stack->cut = true;
    /* the copy ends where the stack was longer than is copied */
    if (stack->count && stack->frames[stack->count - 1].lower >= copy->start + copy->length)
        stack->cut = stack->deep = true;
}

static bool unwind_same(const struct hang_arena *arena, const struct hang_copy *a,
                        const struct unwind_frame *x, const struct hang_copy *b,
                        const struct unwind_frame *y)
{
    if (x->pc != y->pc || x->lower != y->lower || x->upper != y->upper)
        return false;
    if (!x->upper)
        return true;
    if (x->upper < x->lower || x->lower < a->start || x->lower < b->start ||
        x->upper > a->start + a->length || x->upper > b->start + b->length)
        return false;
    return memcmp(arena->pool + a->at + (x->lower - a->start),
                  arena->pool + b->at + (x->lower - b->start), x->upper - x->lower) == 0;
}

/* How many of the outermost frames did not change: same calls, and the same bytes on the stack. */
static size_t unwind_still(const struct hang_arena *arena, const struct hang_copy *a,
                           const struct unwind_stack *x, const struct hang_copy *b,
                           const struct unwind_stack *y)
{
    size_t i = x->count, k = y->count, still = 0;
    while (i && k && x->frames[i - 1].lower != y->frames[k - 1].lower) {
        if (x->frames[i - 1].lower > y->frames[k - 1].lower)
            i--;
        else
            k--;
    }
    if (k != y->count) /* what lies outside of the first common frame differs */
        return 0;
    while (i && k && unwind_same(arena, a, &x->frames[i - 1], b, &y->frames[k - 1]))
        i--, k--, still++;
    return still;
}

static json_t *unwind_name(Dwfl *dwfl, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
    GElf_Off offset = 0;
    GElf_Sym symbol;
    Dwarf_Addr start = 0;
    json_t *frame = json_object();
    const char *file =
        module ? dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL) : NULL;
    const char *name =
        module ? dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL) : NULL;
    bool inside = name && (!symbol.st_size || offset < symbol.st_size);
    if (name)
        json_object_set_new(frame, inside ? "function" : "near",
                            shk_json_text(name, strnlen(name, HANG_NAME)));
    if (file)
        json_object_set_new(frame, "library", shk_json_text(file, strnlen(file, HANG_NAME)));
    json_object_set_new(frame, "at", json_sprintf("0x%llx", (unsigned long long)(pc - start)));
    return frame;
}

static json_t *unwind_thread_json(Dwfl *dwfl, const struct unwind_stack *stack, size_t still,
                                  unsigned seen)
{
    json_t *frames = json_array();
    for (size_t i = stack->count; i-- > 0;)
        json_array_append_new(frames, unwind_name(dwfl, stack->frames[i].pc));
    json_t *thread = json_pack("{s:o,s:b}", "frames", frames, "cut", (int)stack->cut);
    if (stack->deep)
        json_object_set_new(thread, "deep", json_true());
    if (seen == HANG_SAMPLES)
        json_object_set_new(thread, "still", json_integer((json_int_t)still));
    return thread;
}

static const struct hang_copy *unwind_find(const struct hang_arena *arena, unsigned sample,
                                           int32_t tid)
{
    for (uint32_t i = 0; i < arena->counts[sample] && i < HANG_THREADS; i++)
        if (arena->copies[sample][i].tid == tid && !arena->copies[sample][i].error)
            return &arena->copies[sample][i];
    return NULL;
}

/* A thread that did not run in between: its stack need not be read again. */
static bool unwind_equal(const struct hang_arena *arena, const struct hang_copy *a,
                         const struct hang_copy *b)
{
    return a->start == b->start && a->length == b->length && a->pc == b->pc && a->sp == b->sp &&
           a->registers_count == b->registers_count &&
           memcmp(a->registers, b->registers, a->registers_count * sizeof *a->registers) == 0 &&
           memcmp(arena->pool + a->at, arena->pool + b->at, a->length) == 0;
}

/* A thread in all samples; NULL when none has it. */
static json_t *unwind_tid(Dwfl *dwfl, struct unwind *unwind, struct unwind_stack stacks[2],
                          int32_t tid)
{
    const struct hang_copy *before = NULL;
    unsigned seen = 0, last = 0;
    size_t still = SIZE_MAX;
    for (unsigned s = 0; s < HANG_SAMPLES; s++) {
        const struct hang_copy *copy = unwind_find(unwind->arena, s, tid);
        if (!copy)
            continue;
        unsigned now = before && unwind_equal(unwind->arena, before, copy) ? last : 1 - last;
        if (now != last)
            unwind_one(dwfl, unwind, copy, &stacks[now]);
        size_t same = before
                          ? unwind_still(unwind->arena, before, &stacks[last], copy, &stacks[now])
                          : SIZE_MAX;
        still = same < still ? same : still;
        before = copy;
        last = now;
        seen++;
    }
    return before ? unwind_thread_json(dwfl, &stacks[last], still, seen) : NULL;
}

/* The kernel's own piece of code is in no file: libdw wants one. */
static size_t unwind_vdso(const struct hang_arena *arena, struct hang_module *module)
{
    int fd = arena->vdso_length ? memfd_create("vdso", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    if (write(fd, arena->pool + arena->vdso_at, arena->vdso_length) !=
        (ssize_t)arena->vdso_length) {
        close(fd);
        return 0;
    }
    *module = (struct hang_module){.fd = fd, .base = arena->vdso_address, .path = "[vdso]"};
    return 1;
}

static Dwfl *unwind_begin(const struct hang_module *modules, size_t count, struct unwind *unwind,
                          struct shk_error *err)
{
    Dwfl *dwfl = dwfl_begin(&unwind_files);
    if (!dwfl) {
        shk_error_set(err, ENOMEM, "libdw: %s", dwfl_errmsg(-1));
        return NULL;
    }
    dwfl_report_begin(dwfl);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(modules[i].path, '/');
        shk_crumb_call("%s", modules[i].path);
        if (!dwfl_report_elf(dwfl, slash ? slash + 1 : modules[i].path, modules[i].path,
                             modules[i].fd, modules[i].base, false))
            close(modules[i].fd); /* no ELF file */
    }
    dwfl_report_end(dwfl, NULL, NULL);
    if (!dwfl_attach_state(dwfl, NULL, 1, &unwind_thread, unwind)) {
        shk_error_set(err, ENOEXEC, "libdw: %s", dwfl_errmsg(-1));
        dwfl_end(dwfl);
        return NULL;
    }
    return dwfl;
}

static json_t *unwind_all(Dwfl *dwfl, struct unwind *unwind)
{
    const struct hang_arena *arena = unwind->arena;
    struct unwind_stack *stacks = calloc(2, sizeof *stacks);
    json_t *threads = json_object();
    double until = shk_clock_s() + UNWIND_S;
    for (unsigned s = HANG_SAMPLES; stacks && s-- > 0;)
        for (uint32_t i = 0; i < arena->counts[s] && i < HANG_THREADS; i++) {
            int32_t tid = arena->copies[s][i].tid;
            char key[16];
            snprintf(key, sizeof key, "%d", tid);
            if (json_object_get(threads, key))
                continue;
            shk_crumb_call("stack of thread %d", tid);
            json_t *thread =
                shk_clock_s() < until
                    ? unwind_tid(dwfl, unwind, stacks, tid)
                    : json_pack("{s:s}", "stack_unread", "no time was left to read its stack");
            if (thread)
                json_object_set_new(threads, key, thread);
        }
    free(stacks);
    return threads;
}

/* Of no thread a stack could be copied: why is said with the threads. */
static bool unwind_nothing(const struct hang_arena *arena)
{
    for (unsigned s = 0; s < HANG_SAMPLES; s++)
        for (uint32_t i = 0; i < arena->counts[s] && i < HANG_THREADS; i++)
            if (!arena->copies[s][i].error)
                return false;
    return true;
}

int hang_unwind(const struct shk_host *host, const struct hang_process *process, json_t **result_p,
                struct shk_error *err)
{
    if (unwind_nothing(process->arena))
        return 0;
    struct hang_module *modules = calloc(HANG_MODULES, sizeof *modules);
    struct hang_maps maps = {0};
    struct unwind unwind = {.arena = process->arena};
    int rc = modules ? hang_maps_read(host, process->pid, &maps, err)
                     : shk_error_sys(err, ENOMEM, "stacks");
    size_t count =
        rc ? 0 : hang_modules_open(host, process->pid, &maps, NULL, modules, HANG_MODULES - 1);
    if (!rc)
        count += unwind_vdso(process->arena, &modules[count]);
    rc = rc ? rc : shk_drop_rights(UNWIND_CPU_S, err);
    if (!rc) {
        shk_crumb_library("libdw");
        Dwfl *dwfl = unwind_begin(modules, count, &unwind, err);
        rc = dwfl ? 0 : -ENOEXEC;
        if (dwfl) {
            *result_p = unwind_all(dwfl, &unwind);
            dwfl_end(dwfl);
        }
    }
    hang_maps_free(&maps);
    free(modules);
    return rc;
}

#endif
