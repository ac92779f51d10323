/* Where a rank is: by the state of its process, the call that it is in, and the frames of its
 * stack. */
#include "checks/hang/hang_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *hang_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

long hang_number(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    return number >= 0 && number <= 1 << 30 ? (long)number : -1;
}

bool hang_lists(const json_t *object, const char *member, long number)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(object, member), i, one)
    {
        if (json_is_integer(one) && json_integer_value(one) == number)
            return true;
    }
    return false;
}

/* '*' stands for any characters. */
static bool place_match(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

const struct shk_waitcall *hang_call_of(const struct hang_case *c, const char *function)
{
    for (size_t i = 0; function && i < c->calls_count; i++)
        for (const char *const *s = c->calls[i].symbols; s && *s; s++)
            if (place_match(*s, function))
                return &c->calls[i];
    return NULL;
}

/* The outermost frame of a thread that the catalogue has; *depth_p: its number from outside. */
static const struct shk_waitcall *place_call(const struct hang_case *c, const json_t *thread,
                                             size_t *depth_p)
{
    size_t i;
    json_t *frame, *frames = json_object_get(thread, "frames");
    json_array_foreach(frames, i, frame)
    {
        const struct shk_waitcall *call = hang_call_of(c, hang_text(frame, "function"));
        if (call) {
            *depth_p = i;
            return call;
        }
    }
    return NULL;
}

static bool place_starts(const char *text, const char *start)
{
    return text && strncmp(text, start, strlen(start)) == 0;
}

/* A call on a file, fifo or folder: where it waits, others are to blame, not this rank's peers. */
static bool place_on_file(const json_t *thread)
{
    const char *path = hang_text(json_object_get(thread, "syscall"), "path");
    return path && *path == '/' && !place_starts(path, "/dev/shm/") &&
           !place_starts(path, "/memfd:") && !place_starts(path, "/dev/infiniband/") &&
           !place_starts(path, "/dev/cxi");
}

static bool place_on_gpu(const json_t *thread)
{
    const char *path = hang_text(json_object_get(thread, "syscall"), "path");
    size_t i;
    json_t *frame;
    json_array_foreach(json_object_get(thread, "kernel"), i, frame)
    {
        const char *text = json_string_value(frame);
        if (text && (strstr(text, "[nvidia") || strstr(text, "[amdgpu]")))
            return true;
    }
    return place_starts(path, "/dev/nvidia") || place_starts(path, "/dev/kfd") ||
           place_starts(path, "/dev/dri/");
}

/* A forgotten breakpoint(), or a question: standard input or a terminal is read. */
static bool place_at_prompt(const json_t *thread)
{
    const json_t *call = json_object_get(thread, "syscall"), *fd = json_object_get(call, "fd");
    const char *name = hang_text(call, "name"), *path = hang_text(call, "path");
    bool reads = name && strcmp(name, "read") == 0;
    size_t i;
    json_t *frame;
    json_array_foreach(json_object_get(thread, "frames"), i, frame)
    {
        const char *function = hang_text(frame, "function");
        if (function &&
            (strcmp(function, "PyOS_Readline") == 0 || strcmp(function, "rl_getc") == 0))
            return true;
    }
    return reads && (place_starts(path, "/dev/pts/") || place_starts(path, "/dev/tty") ||
                     (json_is_integer(fd) && json_integer_value(fd) == 0 && path &&
                      (place_starts(path, "pipe:") || place_starts(path, "socket:"))));
}

/* The module of the kernel that a thread sleeps in, "nfs" of "nfs_wait_bit_killable [nfs]". */
static void place_module(const json_t *thread, struct hang_place *place)
{
    size_t i;
    json_t *frame;
    json_array_foreach(json_object_get(thread, "kernel"), i, frame)
    {
        const char *text = json_string_value(frame), *open = text ? strchr(text, '[') : NULL;
        if (open && strchr(open, ']') && !place->file_system) {
            char *name = shk_strf("%.*s", (int)strcspn(open + 1, "]"), open + 1);
            place->where = name;
            return;
        }
    }
    const char *wchan = hang_text(thread, "wchan");
    place->where = wchan ? shk_strf("%s", wchan) : NULL;
}

static void place_file(const json_t *thread, struct hang_place *place)
{
    const json_t *call = json_object_get(thread, "syscall");
    const char *name = hang_text(call, "name"), *path = hang_text(call, "path");
    place->kind = HANG_IO;
    place->where = shk_strf("%s() on %s", name ? name : "a call", path);
    place->file_system = hang_text(call, "file_system");
    place->mount = hang_text(call, "mount");
    long read = hang_number(place->rank, "read"), written = hang_number(place->rank, "written");
    place->working = read > 1 << 16 || written > 1 << 16;
}

static bool place_one_of(const char *word, const char *const *words)
{
    for (; word && *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* Frames of the interpreter do not say where a program in Python is: what it has called does. */
static char *place_interpreted(const json_t *frames, const char *program)
{
    for (size_t i = json_array_size(frames); i-- > 0;) {
        const json_t *frame = json_array_get(frames, i);
        const char *library = hang_text(frame, "library"), *name = hang_text(frame, "function");
        if (library && strcmp(library, program) == 0)
            break;
        if (name && library && *library != '[')
            return shk_strf("Python code, in %s() of %s", name, library);
    }
    return shk_strf("Python code");
}

/* Its own code: the innermost function of the program itself, else the innermost with a name. */
static char *place_function(const json_t *thread)
{
    const json_t *python = json_object_get(thread, "python");
    const char *line = json_string_value(json_array_get(python, json_array_size(python) - 1));
    if (line)
        return shk_strf("%s", line);
    const json_t *frames = json_object_get(thread, "frames");
    const char *program = hang_text(json_array_get(frames, 0), "library");
    if (place_starts(program, "python") || place_starts(program, "libpython"))
        return place_interpreted(frames, program);
    const json_t *best = NULL;
    bool own = false;
    for (size_t i = json_array_size(frames); i-- > 0 && !own;) {
        const json_t *frame = json_array_get(frames, i);
        const char *library = hang_text(frame, "library"), *name = hang_text(frame, "function");
        own = name && program && library && strcmp(library, program) == 0 &&
              strcmp(name, "_start") != 0;
        if (own || (name && !best && strncmp(name, "__libc_start", 12) != 0 &&
                    strcmp(name, "_start") != 0))
            best = frame;
    }
    const char *name = hang_text(best, "function"), *library = hang_text(best, "library");
    return name ? shk_strf("%s() of %s", name, library ? library : "an unnamed file") : NULL;
}

/* Waits at memory that it shares with other processes; the end of a thread is waited for so, too.
 */
static bool place_shared(const json_t *thread)
{
    size_t i;
    json_t *frame;
    if (!json_is_true(json_object_get(json_object_get(thread, "syscall"), "shared")))
        return false;
    json_array_foreach(json_object_get(thread, "frames"), i, frame)
    {
        const char *name = hang_text(frame, "function");
        if (name && (strstr(name, "join") || strstr(name, "pthread_exit")))
            return false;
    }
    return json_array_size(json_object_get(thread, "frames")) > 0;
}

/* A call that a look interrupted goes on as restart_syscall(): what the thread sleeps in, by the
 * kernel's name, tells which it is, else the innermost function with a name. */
static enum hang_kind place_restarted(const json_t *thread)
{
    static const struct {
        const char *part;
        enum hang_kind kind;
    } parts[] = {{"nanosleep", HANG_SLEEP}, {"poll", HANG_PEER},   {"select", HANG_PEER},
                 {"futex", HANG_LOCK},      {"_cond_", HANG_LOCK}, {"_mutex_", HANG_LOCK},
                 {"sem_", HANG_LOCK}};
    const json_t *frames = json_object_get(thread, "frames");
    const char *name = NULL;
    for (size_t i = json_array_size(frames); i-- > 0 && !name;)
        name = hang_text(json_array_get(frames, i), "function");
    const char *texts[] = {hang_text(thread, "wchan"), name};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; texts[t] && i < sizeof parts / sizeof *parts; i++)
            if (strstr(texts[t], parts[i].part))
                return parts[i].kind;
    return HANG_UNKNOWN;
}

static void place_by_syscall(const json_t *thread, struct hang_place *place)
{
    static const char *const sleeps[] = {"nanosleep", "pause", "sigsuspend", "sigwait", NULL};
    static const char *const locks[] = {"futex", "futex_waitv", "wait", NULL};
    static const char *const peers[] = {
        "poll",     "select",   "epoll_wait", "recv",           "recvmsg",
        "accept",   "connect",  "send",       "sendmsg",        "read",
        "readv",    "write",    "writev",     "io_uring_enter", "io_getevents",
        "semop",    "msgrcv",   "msgsnd",     "mq_receive",     "mq_send",
        "recvmmsg", "sendmmsg", "splice",     "vmsplice",       NULL};
    const char *name = hang_text(json_object_get(thread, "syscall"), "name");
    const json_t *frames = json_object_get(thread, "frames");
    bool asleep = json_is_true(json_object_get(thread, "blocked"));
    place->kind = place_one_of(name, sleeps)  ? HANG_SLEEP
                  : place_one_of(name, locks) ? HANG_LOCK
                  : place_one_of(name, peers) ? HANG_PEER
                                              : HANG_UNKNOWN;
    if (place->kind == HANG_LOCK && place_shared(thread))
        place->kind = HANG_PEER;
    if (place->kind == HANG_UNKNOWN)
        place->kind = place_restarted(thread);
    /* of all calls that there are, one that the looks know by its number only */
    if (place->kind == HANG_UNKNOWN && asleep && place_starts(name, "system call "))
        place->kind = HANG_PEER;
    /* it was on its way into the kernel or out of it */
    if (place->kind == HANG_UNKNOWN && json_array_size(frames) && !asleep)
        place->kind = HANG_USER;
    place->where = place_function(thread);
}

/* Instead of the number of a frame: nothing at all may have moved. */
#define PLACE_WHOLE SIZE_MAX

static void place_still(const json_t *thread, size_t depth, struct hang_place *place)
{
    const json_t *still = json_object_get(thread, "still");
    if (json_is_integer(still) && depth != PLACE_WHOLE)
        place->still = json_integer_value(still) > (json_int_t)depth ? HANG_YES : HANG_NO;
    else
        place->still = json_is_true(json_object_get(thread, "blocked")) ? HANG_YES : HANG_UNSEEN;
}

/* More than the innermost call was another one: it goes its way. */
static void place_moving(const json_t *thread, struct hang_place *place)
{
    const json_t *still = json_object_get(thread, "still");
    size_t frames = json_array_size(json_object_get(thread, "frames"));
    place->moving = json_is_integer(still) && !json_is_true(json_object_get(thread, "blocked")) &&
                    json_integer_value(still) + 1 < (json_int_t)frames;
}

static void place_seconds(const json_t *thread, struct hang_place *place)
{
    const json_t *value = json_object_get(thread, "blocked_s");
    if (json_is_true(json_object_get(thread, "blocked")) && json_is_number(value))
        place->seconds = json_number_value(value);
}

static const json_t *place_main(const json_t *threads, long process)
{
    size_t i;
    json_t *thread;
    json_array_foreach(threads, i, thread) if (hang_number(thread, "tid") == process) return thread;
    return NULL;
}

/* Of all threads the one whose call tells most: a collective before a wait for what was begun. */
static const json_t *place_teller(const struct hang_case *c, const json_t *threads)
{
    size_t i, depth = 0;
    json_t *thread;
    const json_t *best = NULL;
    const struct shk_waitcall *best_call = NULL;
    json_array_foreach(threads, i, thread)
    {
        const struct shk_waitcall *call = place_call(c, thread, &depth);
        if (!call || call->kind == SHK_WAIT_SERVICE)
            continue;
        if (!best || call->kind < best_call->kind) {
            best = thread;
            best_call = call;
        }
    }
    return best;
}

static bool place_gone(struct hang_place *place)
{
    const char *state = hang_text(place->rank, "state");
    char s = state ? *state : '?';
    if (s == 'X' || s == 'Z')
        place->kind = HANG_DEAD;
    else if (s == 'T')
        place->kind = HANG_STOPPED;
    else if (s == 't')
        place->kind = HANG_DEBUGGED;
    else
        return false;
    place->still = HANG_YES;
    return true;
}

/* Of the first thread; *sure_p: no other thread needs to be asked. */
static void place_by_state(const json_t *first, struct hang_place *place, bool *sure_p)
{
    const char *state = hang_text(first, "state");
    bool asleep = state && *state != 'R', deep = state && *state == 'D';
    *sure_p = true;
    place_still(first, PLACE_WHOLE, place);
    place_moving(first, place);
    place_seconds(first, place);
    if (asleep && place_on_gpu(first)) {
        place->kind = HANG_DRIVER;
        place_module(first, place);
    } else if (asleep && !deep && place_at_prompt(first)) {
        place->kind = HANG_INPUT;
    } else if (asleep && place_on_file(first)) {
        place_file(first, place);
    } else if (deep) {
        place->kind = HANG_KERNEL;
        place_module(first, place);
    } else {
        *sure_p = false;
    }
}

/* Can it be told that the thread is in none of the catalogue's functions? Also where the outermost
 * frames of very many are missing, as a function that waits for others is not called and then calls
 * so many; and in code that no file has (made by a compiler at run time), which does not wait. */
static bool place_is_whole(const json_t *thread, struct hang_place *place)
{
    const json_t *frames = json_object_get(thread, "frames");
    size_t count = json_array_size(frames);
    const json_t *last = json_array_get(frames, count - 1);
    bool cut = json_is_true(json_object_get(thread, "cut"));
    bool made = count && !hang_text(last, "library") && !hang_text(last, "function") &&
                place_starts(hang_text(thread, "state"), "R");
    place->guessed = cut || !count;
    return count && (!cut || made || json_is_true(json_object_get(thread, "deep")));
}

/* Not stopped, as its call would have ended by that: no library for communication waits so. */
static bool place_left_alone(const json_t *thread)
{
    const char *name = hang_text(json_object_get(thread, "syscall"), "name");
    return json_is_true(json_object_get(thread, "blocked")) && name &&
           (strcmp(name, "semop") == 0 || strcmp(name, "sigwait") == 0);
}

void hang_place_find(const struct hang_case *c, struct hang_place *place)
{
    const json_t *threads = json_object_get(place->rank, "threads");
    const json_t *first = place_main(threads, place->process), *teller = NULL;
    size_t depth = 0;
    bool sure = false;
    place->kind = HANG_UNKNOWN;
    place->still = HANG_UNSEEN;
    place->seconds = -1;
    if (place_gone(place) || !first)
        return;
    place->thread = first;
    place_by_state(first, place, &sure);
    if (sure)
        return;
    const struct shk_waitcall *call = place_call(c, first, &depth);
    bool running = place_starts(hang_text(first, "state"), "R");
    bool whole = place_is_whole(first, place);
    if (!call && !running)
        place_by_syscall(first, place);
    if (call ? call->kind >= SHK_WAIT_REQUEST : place->kind == HANG_LOCK)
        teller = place_teller(c, threads);
    if (teller) {
        place->thread = teller;
        call = place_call(c, teller, &depth);
    }
    if (call && call->kind != SHK_WAIT_SERVICE) {
        free(place->where);
        place->where = NULL;
        place->kind = HANG_CALL;
        place->call = call;
        place_still(place->thread, depth, place);
        /* one wait for the GPU after the other is work; of one alone nobody knows */
        if (call->kind == SHK_WAIT_GPU && place->still == HANG_NO) {
            const json_t *frame = json_array_get(json_object_get(place->thread, "frames"), depth);
            place->kind = HANG_USER;
            place->where = shk_strf("%s()", hang_text(frame, "function"));
        }
    } else if (running && whole) {
        place->kind = HANG_USER;
        place->still = HANG_NO;
        place->where = place_function(first);
    } else if (!whole && !place_left_alone(first)) {
        place->kind = HANG_UNKNOWN; /* the frames that are missing may be of a call */
    }
}
