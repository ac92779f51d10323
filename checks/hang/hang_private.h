/* Inside of the judgement: place.c (where a rank is), judge.c (who holds whom up), absent.c (ranks
 * without a process), behind.c (what NCCL says), flight.c (what PyTorch does), wires.c
 * (connections), gpus.c, libraries.c and audit.c (what the ranks have loaded, and their variables),
 * say.c and result.c (words), tree.c (stacks merged). */
#ifndef SHK_CHECKS_HANG_PRIVATE_H
#define SHK_CHECKS_HANG_PRIVATE_H

#include "checks/hang/hang.h"
#include "core/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum hang_kind {
    HANG_DEAD,     /* over: no process, or only what is left until it is waited for */
    HANG_ABSENT,   /* no process on a node on which it belongs */
    HANG_STOPPED,  /* by a signal */
    HANG_DEBUGGED, /* by a debugger */
    HANG_IO,       /* in a call on a file */
    HANG_DRIVER,   /* in a call of a GPU's driver */
    HANG_KERNEL,   /* asleep in the kernel, cannot be interrupted; in what is not known */
    HANG_SLEEP,    /* in its own code, asleep for a time */
    HANG_LOCK,     /* in its own code, waits for a thread or child of its own */
    HANG_USER,     /* in its own code, working */
    HANG_INPUT,    /* in its own code, at a prompt */
    HANG_CALL,     /* in one of the functions of the catalogue: waits for others */
    HANG_BEHIND,   /* has launched fewer collectives than the others, says NCCL */
    HANG_PEER,     /* waits at a socket or pipe, in no function of the catalogue */
    HANG_UNKNOWN,
    HANG_KINDS
};

enum hang_known { HANG_NO, HANG_YES, HANG_UNSEEN };

struct hang_place {
    const json_t *rank;   /* of the document; NULL: absent */
    const json_t *thread; /* that tells; NULL: none */
    const char *host;
    long number;  /* of the rank; -1: not known */
    long process; /* -1: none */
    enum hang_kind kind;
    const struct shk_waitcall *call; /* HANG_CALL */
    char *where;                     /* function, file; NULL: not known. Owned */
    const char *file_system, *mount;
    enum hang_known still; /* did nothing of it move between the looks? */
    double seconds;        /* for how long so, at least; -1: not known */
    bool moving;           /* calls of its own code changed between the looks */
    bool guessed;          /* its stack was not read to the end */
    bool working;          /* bytes go through the file that it is in */
    size_t group;
};

struct hang_group {
    enum hang_kind kind;
    const struct shk_waitcall *call;
    const char *where; /* of its first place */
    size_t first, count;
    enum hang_known still;
};

struct hang_case {
    const struct shk_config *config;
    const struct shk_waitcall *calls;
    size_t calls_count;
    struct hang_place *places;
    size_t count;
    struct hang_group *groups;
    size_t groups_count;
    long ranks;      /* of the job; -1: not known */
    double seconds;  /* between the looks, the shortest of the nodes */
    int launcher;    /* the innermost of the ranks, as shk_launch_depth() has it */
    bool whole;      /* all ranks of the job are accounted for */
    bool elsewhere;  /* ranks that were not looked at are on other nodes, as their own say */
    json_t *unknown; /* array of sentences */
};

/* What the case comes to. */
struct hang_verdict {
    enum shk_hang_outcome outcome;
    const char *reason;
    const struct hang_group *waiting; /* NULL: none */
    bool *named;                      /* by place */
    size_t named_count;
    char *cut;    /* host that nothing gets to or from; NULL */
    json_t *said; /* what other witnesses said; sentences */
};

/* Stopped; over, or without a process; nothing that others do is needed to see that it stands. */
bool hang_is_stopped(const struct hang_place *place);
bool hang_is_gone(const struct hang_place *place);
bool hang_is_hard(const struct hang_place *place);

/* Adds what the documents say was not read to c->unknown. */
void hang_unread_add(struct hang_case *c, const json_t *nodes);
/* New reference: the judgement, as checks/hang/hang.h has it. */
json_t *hang_result(const struct hang_case *c, const struct hang_verdict *v);

/* The row whose symbols have the function; NULL: none. */
const struct shk_waitcall *hang_call_of(const struct hang_case *c, const char *function);

/* Fills kind, where, still … of a place whose rank, host and number are set. */
void hang_place_find(const struct hang_case *c, struct hang_place *place);

/* Sets c->launcher. */
void hang_launcher_find(struct hang_case *c, const json_t *nodes);
/* A node whose ranks are all gone still has what started them, which has the variables of an outer
 * launcher: a daemon of mpirun in a Slurm step. */
bool hang_is_starter(const struct hang_case *c, const json_t *rank);

/* Adds places for ranks that should run on a node that was looked at and have no process there, and
 * says which ranks were not looked at. 0 or -ENOMEM. */
int hang_absent_add(struct hang_case *c, const json_t *nodes) SHK_MUST_CHECK;

/* "rank 37 (node9)", or "process 123 (node9)". */
void hang_say_rank(struct shk_strbuf *out, const struct hang_place *place);
/* "is in open() on /scratch for 612 s", as it follows a rank. */
void hang_say_place(struct shk_strbuf *out, const struct hang_place *place);
/* "wait in all_reduce", as it follows several ranks (one: "waits"). */
void hang_say_group(struct shk_strbuf *out, const struct hang_group *group, bool one);
/* What to do about it; NULL: nothing to say. */
char *hang_say_advice(const struct hang_place *place);

struct behind_marks {
    bool *behind; /* of each place of the case, false so far; NULL: mark none */
    bool apart;   /* as many ranks launched one operation as another in its place */
    bool *open;   /* of each place: the collective that it has launched itself does not end, so that
                     it is not behind by its count; NULL: not known */
};

/* What NCCL's RAS service said twice, the same both times: sentences into *said_p (a new array).
 * Waiting ranks that launched fewer collectives than most, or another one, become HANG_BEHIND and
 * are marked. Returns how many. */
size_t hang_behind(const struct hang_case *c, const json_t *nodes, struct behind_marks *marks,
                   json_t **said_p);

/* The same of one node's findings of the flight recorder; says nothing. */
size_t hang_flight(const struct hang_case *c, const json_t *node, struct behind_marks *marks);

/* Adds sentences about TCP connections of the ranks whose data are not acknowledged. Returns the
 * host that all of them begin or end at, where they lead to two others at least (free()); NULL:
 * there is none. */
char *hang_wires(const struct hang_case *c, json_t *said);

/* Adds sentences about GPUs that were busy, or idle, all the time, for a job that does not go on.
 */
void hang_gpus_say(struct hang_case *c, const json_t *nodes, json_t *said);

/* New reference: [{frames, ranks, children}]. */
json_t *hang_tree(const struct hang_case *c);

/* New reference: libraries of which the ranks have different builds, one rank has two, or whose
 * file was replaced under a rank. */
json_t *hang_libraries(const struct hang_case *c);

/* Of which a process should have one copy, and where a run has its version and path. */
struct hang_library {
    const char *library, *version, *path;
};
enum { HANG_LIBRARIES = 3 };
extern const struct hang_library hang_library_known[HANG_LIBRARIES];

/* The version of the library that a rank has loaded, "libnccl": borrowed; NULL: not known. *path_p:
 * of its file. */
const char *hang_library_version(const json_t *rank, const char *library, const char **path_p);

/* What the environments of the ranks are worth, as in a run, with nothing of their nodes looked at:
 * *settings_p: [{name, value, verdict, why, fix, advice, ranks}] of what is wrong whatever the node
 * is like; *differences_p: [{name, values: [{value, ranks}]}]. New references. Says which
 * environments were not read. 0 or -ENOMEM. */
int hang_audit(const struct hang_case *c, json_t **settings_p,
               json_t **differences_p) SHK_MUST_CHECK;
/* The number of a rank, null without one. New reference. */
json_t *hang_rank_json(const struct hang_place *place);

const char *hang_text(const json_t *object, const char *member); /* NULL: none */
/* An integer of the object; -1: none, or not a plausible one. */
long hang_number(const json_t *object, const char *member);
/* Is the number in this list of the object? */
bool hang_lists(const json_t *object, const char *member, long number);

#endif
