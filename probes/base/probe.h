/* A probe: one source of facts. It writes facts and never judges.
 *
 * One file per probe, one const descriptor per file, one line in probes/run/registry.c. Probes of
 * one phase run side by side, in children with deadlines; a later phase sees the facts
 * of the earlier ones. In the report their order is that of the registry. */
#ifndef SHK_PROBES_PROBE_H
#define SHK_PROBES_PROBE_H

#include "core/facts/facts.h"
#include "core/host/host.h"
#include "core/text/nameset.h"

enum shk_phase {
    SHK_PHASE_EARLY,   /* one probe only: begun first, waited for last; knows no other's facts, and
                          no other knows its */
    SHK_PHASE_HOST,    /* files and system calls; nothing foreign is loaded */
    SHK_PHASE_LIBRARY, /* loads or inspects vendor libraries; knows the host facts */
    SHK_PHASE_DERIVED, /* needs what the libraries said (plugins against NCCL, topology joins) */
    SHK_PHASE_COUNT
};

struct shk_probe_context {
    const struct shk_host *host;
    const struct shk_name_set *names; /* which variables of the environment may be written down;
                                         NULL: none */
    const struct shk_facts *known;    /* facts of earlier phases; read-only */
    struct shk_facts *facts;          /* write here */
    bool quick;                       /* prolog-safe: no GPU context, nothing slow */
    bool executes; /* false on a capture: do not dlopen() or ask live libraries */
};

struct shk_probe {
    const char *name; /* "limits", "libfabric" */
    enum shk_phase phase;
    const char *doc;             /* one line for `shakedown list probes` */
    const char *const *provides; /* fact keys or prefixes ending in '.', NULL-terminated */
    bool needs_live;             /* skipped on a capture, with that reason in its facts */
    unsigned deadline_ms;
    /* Loads code of others, or may have to wait for it or for a file system: always has a child of
     * its own. The others share one, and are run again apart when that does not end well. */
    bool apart;
    /* Of a probe that is apart because of the file systems that it looks at, and runs no code of
     * others: it shares a child where all of them are the host's own. */
    bool files;
    /* Of a probe that is apart; may be NULL. True: with what is known of this node it will load
     * nothing, so it may share a child. Called in the parent: looks at facts and at local files
     * that nothing can hang on. */
    bool (*idle)(const struct shk_host *host, const struct shk_facts *known);
    /* Reads nothing but the facts of earlier phases: runs in the program itself, as checks do. */
    bool derives;
    /* 0, or a negative errno when the probe as a whole could not do its work. Facts written before
     * an error are kept. */
    int (*run)(struct shk_probe_context *ctx, struct shk_error *err);
};

/* The ordered list; *count_p entries. */
const struct shk_probe *const *shk_probes(size_t *count_p);

/* The name of the probe that provides this fact, or all facts of this prefix ("sysctl."); NULL:
 * none does. */
const char *shk_probe_of(const char *key);

/* Is this a fact of a library, which a replay of a capture cannot ask? */
bool shk_probes_is_library_fact(const char *key);

struct shk_probe_options {
    bool quick;
    const struct shk_name_set *names;               /* as in the context; borrowed */
    unsigned deadline_ms;                           /* caps each probe's own; 0: none */
    void (*progress)(const char *probe, void *arg); /* called before each phase; may be NULL */
    void *progress_arg;
};

/* Runs every probe and fills facts. For each probe it also writes
 *   probe.<name>.status   "ok" | "failed" | "crashed" | "timeout" | "memory" | "skipped" |
 * "starved" (the node was too busy for it: no processor time before its deadline) probe.<name>.ms
 * wall time probe.<name>.reason   one line (absent when ok); names library and call after a crash
 *   probe.<name>.library / .call   breadcrumb, when not ok
 * and, for each key a dead probe would have provided (no prefixes), a failed fact. An error is
 * returned only when nothing could be run at all. */
int shk_probes_run(const struct shk_host *host, const struct shk_probe_options *options,
                   struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

/* One variable from a file, written as the probe of the environment does it: a name that is not in
 * the set is left out, a secret becomes a failed fact without its value. -EINVAL: not a name of a
 * variable; else as the writers of core/facts/facts.h. */
int shk_probe_env_fact(struct shk_facts *facts, const struct shk_name_set *names, const char *name,
                       const char *value, const char *source);

/* The fact that says which names were looked for, unless there is one. As the writers of
 * core/facts/facts.h. */
int shk_probe_env_looked_for(struct shk_facts *facts, const struct shk_name_set *names,
                             const char *source);

#endif
