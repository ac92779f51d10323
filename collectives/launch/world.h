/* World: the processes that one launcher started on one or many nodes, as one run.
 *
 * The launcher only introduces them (collectives/meet): every rank learns where rank 0 is and
 * connects to it, each proves to the other that it has the job's key, and from then on all
 * deadlines are ours. Rank 0 collects what the nodes found out, starts all-reduces over all or some
 * ranks, sees which rank is where, and alone prints the report. The other ranks do as rank 0 says
 * and end with its exit code. */
#ifndef SHK_COLLECTIVES_WORLD_H
#define SHK_COLLECTIVES_WORLD_H

#include "collectives/collective.h"
#include "core/facts/factdiff.h"

struct shk_world;

enum shk_world_role {
    SHK_WORLD_ALONE,  /* one process, or no way to find the others: local ranks */
    SHK_WORLD_ROOT,   /* rank 0 */
    SHK_WORLD_MEMBER, /* every other rank: shk_world_serve() and exit */
    SHK_WORLD_SILENT, /* one of several tasks of a node that cannot find each other, not the first:
                         nothing to do */
};

struct shk_world_options {
    const char *version;    /* ranks of another version are refused */
    const char *rendezvous; /* --rendezvous; NULL: what the launcher offers */
    const char *key_file;   /* --key-file; may be NULL */
    unsigned deadline_ms; /* of the whole run; ranks that are missing after a third of it are named
                             and left out */
    int (*probe)(void *arg, struct shk_facts **facts_p, struct shk_error *err);
    void *probe_arg;                   /* probe runs in the first rank of each node */
    json_t *(*counters)(void *arg);    /* as in the options of a collective, with probe_arg */
    struct shk_counters_kept *kept;    /* as there */
    const struct shk_diff_rule *rules; /* what differs between like nodes; may be NULL: nothing */
    size_t rules_count;
    void (*progress)(const char *text, void *arg); /* may be NULL */
    void *progress_arg;
    unsigned tree_from, tree_width; /* for tests, see hub_tree.c; 0: as it is there */
};

/* Looks at the environment and joins. Never fails because of the launcher: what went wrong is in
 * the facts of shk_world_facts(). -ENOMEM; -EINVAL or -EACCES when the options or the key that the
 * user gave cannot be. The options must outlive the world. */
int shk_world_open(struct shk_world **world_p, const struct shk_world_options *options,
                   struct shk_error *err) SHK_MUST_CHECK;
enum shk_world_role shk_world_role(const struct shk_world *world);

/* Does this process tell about everything that the launcher started? Not one of several tasks that
 * did not find each other. */
bool shk_world_speaks(const struct shk_world *world);

/* ALONE: tasks of the launcher on this node, when they cannot find each other; else 0. */
unsigned shk_world_local_tasks(const struct shk_world *world);

/* Member: serves rank 0 until it says goodbye. Returns rank 0's exit code, or -errno with text when
 * rank 0 is gone. */
int shk_world_serve(struct shk_world *world, struct shk_error *err) SHK_MUST_CHECK;

/* Root: waits for every rank and for the facts of every node. Missing ones are no error. */
int shk_world_gather(struct shk_world *world, struct shk_error *err) SHK_MUST_CHECK;

/* Root: the nodes, in the order of their first rank, and what each found out: put together anew on
 * every call, the caller's, NULL when it sent nothing or nothing sound (job.missing tells why).
 * Facts that nodes have alike are shared by reference. */
size_t shk_world_nodes(const struct shk_world *world);
struct shk_facts *shk_world_take_facts(struct shk_world *world, size_t node);
/* Root: most ranks on one node that are there. */
unsigned shk_world_most_local(const struct shk_world *world);
/* Host name of a node. */
const char *shk_world_node_name(const struct shk_world *world, size_t node);
/* Root: the first node that says the same but for what may differ (rules); itself when none does.
 * Costs a fraction of taking its facts. */
size_t shk_world_like(struct shk_world *world, size_t node);

/* Root: an all-reduce over every rank that is there, and when it fails a search for the node or
 * pair at fault. Transports within a node: on every node at once; the facts are those of the node
 * where it went worst. Writes collective.<t>.*. */
int shk_world_measure(struct shk_world *world, const struct shk_transport *transport,
                      const struct shk_collective_options *options, struct shk_facts *facts,
                      struct shk_error *err) SHK_MUST_CHECK;

/* Adds what the launcher did, and who is missing: job.pmix.*, job.joined or job.alone, job.missing,
 * job.layout, job.clocks. */
int shk_world_facts(const struct shk_world *world, struct shk_facts *facts) SHK_MUST_CHECK;

/* Tells every rank to end with `code` and frees the world (NULL is fine). */
void shk_world_close(struct shk_world *world, int code);

#endif
