/* Inside of `shakedown hang`'s look at a host: find.c, plain.c (which processes), maps.c, state.c
 * (what /proc tells), modules.c and versions.c (the files of a process), copy.c (stops a thread and
 * copies its stack), unwind.c (reads the copy), hang.c (the order of it all). */
#ifndef SHK_PROBES_HANG_PRIVATE_H
#define SHK_PROBES_HANG_PRIVATE_H

#include "core/facts/facts.h"
#include "core/job/launch.h"
#include "core/text/strbuf.h"
#include "probes/hang/hang.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    HANG_SAMPLES = 5,
    HANG_THREADS = 192,   /* of a process: PyTorch with NCCL has about 100 */
    HANG_FRAMES = 256,    /* of a thread; Python has many */
    HANG_REGIONS = 16384, /* of /proc/PID/maps */
    HANG_MODULES = 1024,
    HANG_RANKS = 1024, /* of one node */
    HANG_NAME = 256,   /* of a function; what is longer is cut */
};

/* Stack of a thread: the first one's is deep in Python, the others' rarely are. */
#define HANG_STACK_MAIN  ((size_t)1 << 20)
#define HANG_STACK_OTHER ((size_t)128 << 10)
#define HANG_POOL        ((size_t)96 << 20) /* of a process, all samples */

struct hang_region {
    uint64_t start, end, offset;
    bool executable, deleted;
    bool shared; /* with other processes, if they map it, too */
    char *path;  /* "" for none */
};

struct hang_maps {
    struct hang_region *regions;
    size_t count;
};

/* -EACCES … with text. Free with hang_maps_free(), also on failure. */
int hang_maps_read(const struct shk_host *host, long pid, struct hang_maps *maps,
                   struct shk_error *err) SHK_MUST_CHECK;
/* The same of a text; for tests and fuzzers. Lines that are none are left out. -ENOMEM. */
int hang_maps_parse(char *text, struct hang_maps *maps) SHK_MUST_CHECK;
const struct hang_region *hang_maps_find(const struct hang_maps *maps, uint64_t address);
void hang_maps_free(struct hang_maps *maps);

/* A file of the process, opened. */
struct hang_module {
    int fd;    /* -1: it could not be, see error */
    int error; /* errno; ESTALE: another file has taken its place */
    uint64_t base;
    const char *path; /* borrowed from the maps */
};

/* Opens the files that are mapped from their beginning: of `names` (beginnings of file names,
 * NULL-terminated) those that failed, too; without names all that could be opened. Before rights
 * are given up, as it is done from outside of the process's root. Returns how many. */
size_t hang_modules_open(const struct shk_host *host, long pid, const struct hang_maps *maps,
                         const char *const *names, struct hang_module *modules, size_t most);
/* Does the file name begin like one of the list? NULL: no list. */
bool hang_is_named(const char *path, const char *const *names);

/* One thread as it was copied. */
struct hang_copy {
    int32_t tid;
    int32_t error; /* errno when it could not be copied, 0: it was */
    uint32_t stopped_us;
    uint32_t registers_count;
    uint64_t registers[34]; /* by their numbers in DWARF */
    uint64_t pc, sp;
    uint64_t start;      /* address of the first byte of the copy */
    uint64_t at, length; /* in the pool */
};

/* Shared by the children that copy and the one that unwinds. */
struct hang_arena {
    uint32_t counts[HANG_SAMPLES];
    struct hang_copy copies[HANG_SAMPLES][HANG_THREADS];
    uint64_t vdso_address, vdso_at, vdso_length;
    uint64_t used;
    unsigned char pool[];
};

struct hang_process {
    long pid, parent;
    unsigned long long start; /* ticks after boot, tells processes of one number apart */
    unsigned long long ticks; /* of processor time */
    char state;
    int cpu; /* that it ran on last */
    char name[32];
    const struct shk_launch *launch; /* NULL: none */
    char *group;                     /* what tells jobs apart; NULL without launch */
    char *step;                      /* of that job; NULL */
    char *dump; /* beginning of the name of the flight recorder's file; NULL: no rank. Owned */
    char *pipe; /* the same of the pipe that it reads; NULL: none. Owned */
    char *job;  /* of the batch system; NULL */
    long rank, ranks, local_rank, local_ranks; /* -1: not known */
    bool unreadable;                           /* its environment is */
    bool starter;                              /* no rank: it starts those, or one has forked it */
    bool titled;                               /* its title tells that it is a rank */
    json_t *environment; /* the variables that the names of `want` tell of; of found ones. Owned */
    json_t *withheld;    /* names of those whose values look like secrets. Owned */
    unsigned ras_port;   /* 0: NCCL is not there, or its service is not here */
    bool library;        /* has one of want->libraries */
    struct hang_arena *arena;
};

/* The ranks to look at, in *found_p (hang_find_free()). *partial_p: the job may have more of them
 * on this host. Errors as shk_hang_look(). */
int hang_find(const struct shk_host *host, const struct shk_hang_want *want,
              struct hang_process **found_p, size_t *count_p, bool *partial_p,
              struct shk_error *err) SHK_MUST_CHECK;
/* Are there processes that /proc does not show? Its first one belongs to root. */
bool hang_hidden(const struct shk_host *host);
/* Fills environment and withheld of a process; one that cannot be read gets none and is
 * unreadable. */
void hang_environment(const struct shk_host *host, const struct shk_name_set *names,
                      struct hang_process *process);
/* The same of the text of /proc/PID/environ, which the process may have written over. */
void hang_environment_parse(const char *text, size_t length, const struct shk_name_set *names,
                            struct hang_process *process);
void hang_find_free(struct hang_process *processes, size_t count);

/* /proc/PID/stat (or task/TID/stat: tid != 0) into state, parent, start, ticks, name. -ESRCH. */
int hang_stat(const struct shk_host *host, long pid, long tid,
              struct hang_process *process) SHK_MUST_CHECK;

/* In a child that ends at once afterwards, which lets go of what did not stop: stops, copies and
 * lets go of the threads one after the other. What went wrong with one is in its copy. One that
 * sleeps in the kernel and cannot be interrupted is left alone. */
void hang_copy(const struct shk_host *host, const struct hang_process *process, unsigned sample,
               const struct hang_maps *maps, const long *tids, size_t count);

/* In a child: {TID: {frames: [{function, library, at}] outermost first, still, cut}}. */
int hang_unwind(const struct shk_host *host, const struct hang_process *process, json_t **result_p,
                struct shk_error *err) SHK_MUST_CHECK;

/* In a child: {tid: {name, state, ticks, ran_ns, wchan, syscall, blocked_s, kernel}} of the
 * threads. With `since` also how long they have been asleep, which is to be asked before any is
 * stopped. */
json_t *hang_threads(const struct shk_host *host, const struct hang_process *process,
                     const long *tids, size_t count, bool since);
/* In a child: {libraries, files, sockets, io}; what could not be read is in `unread`. */
json_t *hang_details(const struct shk_host *host, const struct hang_process *process,
                     const struct shk_hang_want *want, const struct hang_maps *maps);
json_t *hang_io(const struct shk_host *host, long pid);
/* In a child that gives up its rights: [{path, version, build_id, unread}] of the libraries that
 * `want` tells of, from their files. */
int hang_versions(const struct shk_host *host, const struct hang_process *process,
                  const struct shk_hang_want *want, json_t **result_p,
                  struct shk_error *err) SHK_MUST_CHECK;
/* Asks the RAS services of the processes, one after the other; a new reference:
 * [{port, answer}] or {port, unread}; NULL: there is none. */
json_t *hang_ras(const struct hang_process *processes, size_t count);
/* Writes to the pipes of the flight recorders of these ranks, which then write a dump; what could
 * not be done is added to `unread`. */
void hang_ask(const struct shk_host *host, const struct hang_process *processes, size_t count,
              json_t *unread);
/* {list: [{index, pci, busy: %, processes: [pid]}], unread} of this host's NVIDIA GPUs, a new
 * reference; NULL: it has none. */
json_t *hang_gpus(const struct shk_host *host);
/* Adds what the flight recorder's dumps of these ranks say (probes/dumps/flight.h) to `node`:
 * `dumps`, lines, and, where all were written after `since`, `flight`, the findings. */
void hang_add_dumps(const struct shk_host *host, const struct hang_process *processes, size_t count,
                    time_t since, json_t *node);
/* Adds frames of Python to the threads of `ranks`, which are those of the processes in their order:
 * {python: ["function() at file:line"]}, the outermost first. */
void hang_python(const struct shk_host *host, const struct hang_process *processes, size_t count,
                 json_t *ranks);
/* {TID: frames} of py-spy's JSON, hostile as what it was read from. */
json_t *hang_python_parse(const char *text, size_t length);
/* The call that a thread is in: {name, fd, path, file_system, peer}; NULL: none, or not known. */
json_t *hang_syscall(const struct shk_host *host, long pid, long tid);
/* [{local, peer, state, send_queue, receive_queue, retransmits}] of the process; NULL: unread,
 * with text. */
json_t *hang_sockets(const struct shk_host *host, long pid, struct shk_error *err);

#endif
