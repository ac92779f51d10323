/* Inside of the world: world.c (joining), agent*.c (a rank), hub*.c (rank 0). */
#ifndef SHK_COLLECTIVES_WORLD_PRIVATE_H
#define SHK_COLLECTIVES_WORLD_PRIVATE_H

#include "collectives/launch/world.h"
#include "collectives/meet/card.h"
#include "collectives/meet/greet.h"
#include "collectives/meet/link.h"
#include "collectives/meet/meet.h"
#include "collectives/meet/pmix.h"
#include "collectives/ranks/crew_private.h"
#include "core/facts/factparts.h"
#include "core/job/launch.h"
#include "core/job/pairspeed.h"
#include "core/text/strbuf.h"
#include <jansson.h>

/* A rank tells where it is at least this often; one that is silent for SILENT is lost. Its
 * supervisor only waits and copies, so even a crowded machine lets it speak. */
#define WORLD_BEAT_NS   500000000ULL
#define WORLD_SILENT_NS 5000000000ULL

/* Files that rank 0 opens beside its connections: libraries, the report, children. */
#define WORLD_SPARE_FILES 64

struct world_state_frame {
    uint32_t run;
    int32_t phase;
    uint64_t epoch, value, bytes, op;
    int32_t waiting, pid;
    int32_t stopped_ms; /* since when it is stopped; -1: it runs */
    int32_t stopsig;
};

struct world_release_frame {
    uint32_t run;
    uint32_t puts; /* what ranks published until then is in that many SHK_FRAME_PUTS of the run */
    uint64_t epoch, max;
};

/* Before the packed {u32 index, u32 length, bytes} … */
struct world_puts_frame {
    uint32_t run;
    uint32_t number; /* of the run's, from 1 */
};

/* Most ranks that one passes on to. */
#define TREE_WIDTH_MAX 64U

/* Where a rank finds the one that passes on to it. */
struct world_parent_frame {
    uint32_t port;
    char address[64];
};

/* What time is it? The answer repeats the round. */
struct world_clock_frame {
    uint32_t round;
    uint32_t zero;
    int64_t wall_ns; /* CLOCK_REALTIME of who answers */
};

enum member_state {
    MEMBER_ABSENT,  /* never said hello */
    MEMBER_IDLE,    /* there */
    MEMBER_RUNNING, /* has a worker */
    MEMBER_LOST,    /* was there */
};

/* Of a node's clock, from rank 0's questions. */
struct hub_clock {
    uint32_t asked, answered; /* round */
    uint64_t sent_ns;
    int64_t sent_wall_ns;
    bool known;
    int64_t offset_ns; /* ahead of rank 0's; wrong by half of trip_ns at most */
    uint64_t trip_ns;
};

struct hub_group;
struct hub_facts;
struct hub_tree;

/* One rank, as rank 0 sees it. */
struct hub_member {
    unsigned rank, local_rank;
    int pid;
    char host[64];
    enum member_state state;
    struct shk_link link;
    struct hub_group *group; /* that its worker is part of */
    unsigned index;          /* in the group */
    struct hub_clock clock;  /* first rank of a node only */
    enum crew_loss loss;     /* how it was lost, */
    uint64_t lost_ns;        /* and when there was the last word from it */
    uint64_t poked_ns;       /* when it was last sent something only to see it acknowledged */
    char refused[96];        /* why its greeting was; "" */
    bool greeted;            /* it said who it is, and was welcome */
};

enum facts_state {
    FACTS_AWAITED,
    FACTS_TOLD, /* digest and own are here, sections are on their way */
    FACTS_LOST, /* its rank went away meanwhile */
    FACTS_DONE,
    FACTS_FAILED, /* why */
};

/* One node: the ranks that gave the same host name. */
struct hub_node {
    char name[64];
    unsigned leader; /* rank */
    enum facts_state state;
    unsigned source; /* rank that told */
    size_t list;     /* of sections */
    void *own;       /* packed */
    size_t own_len;
    unsigned wanted; /* answers that it was asked for and owes */
    uint64_t asked_ns;
    struct shk_error why;
};

struct shk_world {
    const struct shk_world_options *options;
    enum shk_world_role role;
    char host[64]; /* this node */
    struct shk_pmix pmix;
    struct shk_meet meet;            /* how the ranks met, or why not */
    struct shk_key given;            /* what the user or the launcher gave, without a card's */
    bool late;                       /* PMI's barrier did not end in time, */
    char space[128];                 /* and what PMI calls the job */
    struct shk_greet_self self;      /* what this process says of itself */
    bool greets;                     /* root: who connects must say who it is */
    unsigned port;                   /* root: where it listens */
    const struct shk_launch *launch; /* without PMIx: of several tasks, NULL: there is one */
    bool single;                     /* the launcher says that it started one task only */
    unsigned tasks, local;           /* of that launcher, local on this node */
    struct shk_error problem;
    uint64_t start_ns;

    int listen_fd;                /* root */
    int descriptors;              /* open files that rank 0 may have; 0: not known */
    uint64_t crowded_ns;          /* no more connections until then */
    char token[SHK_CARD_KEY + 1]; /* of rank 0's own rank */
    pid_t agent;                  /* root's own rank */
    struct hub_member *members;
    unsigned size;
    struct shk_link *strangers; /* connected, not yet introduced */
    size_t strangers_count;
    struct hub_node *nodes;
    size_t nodes_count;
    json_t *nodes_known; /* name -> index */
    struct hub_facts *facts;
    struct hub_tree *tree; /* NULL: not made */
    uint32_t runs;
    json_t *stuck; /* see hub_path(); of the transport that is measured, as are these: */
    struct hub_stuck {
        unsigned large;  /* flows with stuck data where a small packet was answered, */
        unsigned silent; /* and where none was */
        json_int_t mss;  /* largest segment that is stuck */
    } stuck_how;
    json_t *net;   /* see hub_net_add(); of the transport that is measured */
    json_t *moved; /* see hub_moved_add(); likewise */
    bool leaving;  /* goodbye was said */
};

/* What the ranks of a run published before one of its barriers, as SHK_FRAME_PUTS. */
struct hub_puts {
    void *data;
    size_t len;
};

/* One all-reduce under way, over some of the ranks. */
struct hub_group {
    uint32_t run;
    struct shk_job *job; /* mirror of the ranks' slots */
    struct shk_crew how;
    struct crew_run crew;
    struct shk_crew_result result;
    struct hub_member **members;
    unsigned size;
    unsigned arrived;  /* ranks in the barrier after `released` */
    uint64_t released; /* epoch */
    uint32_t *spread;  /* bytes of each slot's space that are in puts */
    struct hub_puts *puts;
    unsigned puts_count;
    unsigned *fed;      /* by rank: puts that were sent to it */
    bool over, expired; /* they were told to stop */
    bool done;          /* result is complete */
    bool hasty;         /* whether it fails is all that matters, not which rank is lost */
    uint64_t over_ns;
    json_t *undecided; /* names of nodes, one of which is at fault; NULL */
    json_t **net;      /* by rank: what its agent says of the network, see agent_net_json() */
};

void world_say(const struct shk_world *world, const char *fmt, ...) SHK_PRINTF(2, 3);

/* As many open files as the administrator allows; when that is too few for one per rank,
 * world->problem says so. */
void world_descriptors(struct shk_world *world);

/* agent.c: serves rank 0 over fd, as `rank`. */
int agent_serve(const struct shk_world *world, int fd, unsigned rank, unsigned local_rank,
                struct shk_error *err) SHK_MUST_CHECK;

/* agent_facts.c: what a node found out, in parts, for rank 0 to ask for. */
struct agent_facts {
    struct shk_factparts parts;
    struct shk_strbuf list;
    struct shk_error why; /* there are none; "" */
};

/* Probes, and splits what was found. An error is kept too, to be told. */
int agent_facts_make(struct agent_facts *facts, const struct shk_world_options *options);
int agent_facts_tell(const struct agent_facts *facts, struct shk_link *link) SHK_MUST_CHECK;
/* Answers SHK_FRAME_WANT. */
void agent_facts_want(const struct agent_facts *facts, struct shk_link *link,
                      const struct shk_frame *frame);
void agent_facts_clear(struct agent_facts *facts);

/* agent_tree.c: a rank's place in the tree of hub_tree.c. */
struct agent_child {
    struct shk_link link; /* closed: the place is free */
    struct shk_greet_challenge challenge;
    uint64_t since_ns;
    bool taken; /* it is `rank`, one of those that are expected */
    unsigned rank;
};

struct agent_tree {
    const struct shk_world *world;
    struct shk_greet_self self; /* to other ranks */
    int epoll;                  /* of all that follows: readable when there is something to do */
    int listen_fd;
    uint32_t expected[TREE_WIDTH_MAX];
    unsigned expected_count;
    struct agent_child *children;
    unsigned children_max;
    struct shk_link parent;
    struct shk_greet_challenge challenge;
    struct shk_greet_proof proof;
    uint64_t parent_since_ns;
    bool proven, joined; /* with the parent */
};

void agent_tree_open(struct agent_tree *tree, const struct shk_world *world);
/* An order of rank 0, whose link is `root`. */
void agent_tree_frame(struct agent_tree *tree, struct shk_link *root,
                      const struct shk_frame *frame);
/* Does what there is to do, without waiting. */
void agent_tree_turn(struct agent_tree *tree, struct shk_link *root);
/* The next SHK_FRAME_PUTS of the parent. */
bool agent_tree_next(struct agent_tree *tree, struct shk_frame *frame);
/* Sends it on to the children. */
void agent_tree_pass(struct agent_tree *tree, const struct shk_frame *frame);
/* Takes nothing from the parent any more. */
void agent_tree_leave(struct agent_tree *tree);
void agent_tree_close(struct agent_tree *tree);

/* agent_net.c: what the network did for a rank's worker and its node while it ran. */
struct agent_net {
    const struct shk_world_options *options;
    json_t *before;         /* counters of the node; NULL: another rank of the node has them */
    struct shk_flows flows; /* of the worker, when last looked at */
    uint64_t looked_ns;
};

/* Before the worker starts. */
void agent_net_begin(struct agent_net *net, const struct shk_world_options *options, bool leader);
/* Now and then, with the worker (0: it ended): sockets that a library closes take what they counted
 * along. */
void agent_net_turn(struct agent_net *net, const struct shk_job *job, pid_t worker);
/* {flows?, counters?}: no flows when the ranks share a node. NULL: out of memory. */
json_t *agent_net_json(struct agent_net *net, const struct shk_job *job, pid_t worker);
void agent_net_end(struct agent_net *net);

/* agent_path.c: adds to flows whose data is stuck {answers: bool}: are small packets answered
 * there? Takes a second at most. */
void agent_path(json_t *rows);

/* hub_facts.c: the facts of the nodes, on rank 0. */
void hub_facts_frame(struct shk_world *world, struct hub_member *member,
                     const struct shk_frame *frame);
void hub_facts_turn(struct shk_world *world);
void hub_facts_lost(struct shk_world *world, struct hub_member *member);
/* Nothing more is to come from the ranks that are there. */
bool hub_facts_complete(const struct shk_world *world);
/* No more is waited for: what is not there is missing, and hub_node.why tells why. */
void hub_facts_end(struct shk_world *world);
struct shk_facts *hub_facts_take(struct shk_world *world, struct hub_node *node);
void hub_facts_free(struct shk_world *world);

/* hub.c: the node of this name, a new one when there is none; NULL: out of memory. Valid until
 * another rank comes. */
struct hub_node *hub_node_of(struct shk_world *world, const char *host);

/* hub.c: what a host's name may hold, '?' for the rest: names end up on terminals and on command
 * lines. */
void hub_host_name(char *buf, size_t size, const char *host);

/* hub_greet.c: who are those that connect? Begins, with one that just did. */
void hub_greet(struct shk_world *world, struct shk_link *link);
/* Takes what it says; false: it was not the greeting, or it is not welcome. */
bool hub_greeting_frame(struct shk_world *world, struct shk_link *link,
                        const struct shk_frame *frame);
/* Did it prove to be this rank? */
bool hub_greeted(const struct shk_link *link, unsigned rank);

/* world_join.c: joins by the way that is there; what went wrong is in world->meet and world->pmix.
 * -ENOMEM, or -EINVAL and -EACCES with text: what the user asked for cannot be. */
int world_join(struct shk_world *world, struct shk_error *err) SHK_MUST_CHECK;
/* A member's connection to rank 0. */
int world_connect(struct shk_world *world, unsigned start_ms, int *fd_p,
                  struct shk_error *err) SHK_MUST_CHECK;
/* May this process join through PMIx, as the rank that the launcher gave to it and no other? */
bool world_offered(unsigned *rank_p);
const char *world_variable(const char *name, void *arg);
/* job.joined: {by, why, key, keyed, address, loopback}. NULL: out of memory. */
json_t *world_joined_fact(const struct shk_world *world);

/* hub.c: waits for every rank and for the facts of every node, in time. */
int hub_gather(struct shk_world *world, struct shk_error *err) SHK_MUST_CHECK;

/* hub.c: one round of waiting (at most ms) and handling. */
void hub_turn(struct shk_world *world, int ms);
/* What a silent member has lost: is what was sent to it acknowledged (the kernel of its host does
 * that, whatever the process does), and does its host run anything else of the job? */
enum crew_loss hub_loss(const struct shk_world *world, const struct hub_member *member);
/* The link of a member is no more, or it says nothing any more. */
void hub_lose(struct shk_world *world, struct hub_member *member, enum crew_loss loss,
              const char *why);

/* world_clock.c: asks every node for its time (rank 0) and answers (a rank); what came of it:
 * [{node, offset_us, error_us}], or {node, why}. */
void hub_clocks(struct shk_world *world);
void hub_clock_frame(struct hub_member *member, const struct shk_frame *frame);
void world_clock_answer(struct shk_link *link, const struct shk_frame *frame);
json_t *hub_clocks_json(const struct shk_world *world);

/* hub_spread.c: what the ranks of a run publish goes to all of them: once packed, and to no more of
 * them at a time than rank 0 has memory for. */
void hub_spread_add(struct hub_group *group);
void hub_spread_turn(const struct shk_world *world, struct hub_group *group);
void hub_spread_free(struct hub_group *group);

/* hub_tree.c: makes the tree when a group is the first that is large enough. */
void hub_tree_begin(struct shk_world *world, const struct hub_group *group);
void hub_tree_frame(struct shk_world *world, struct hub_member *member,
                    const struct shk_frame *frame);
/* Does it get what the ranks of its group publish from another rank of it? */
bool hub_tree_feeds(const struct shk_world *world, const struct hub_member *member);
/* Ranks that are there and take frames from another. */
unsigned hub_tree_joined(const struct shk_world *world);
void hub_tree_free(struct shk_world *world);

/* hub_run.c */
void hub_run_frame(struct shk_world *world, struct hub_member *member,
                   const struct shk_frame *frame);
void hub_run_lost(struct hub_member *member, enum crew_loss loss);

/* Starts an all-reduce over `count` idle members; free with hub_group_free(). */
struct hub_group *hub_group_start(struct shk_world *world, struct hub_member **members,
                                  unsigned count, const struct shk_transport *transport,
                                  const struct shk_collective_options *options,
                                  struct shk_error *err);
/* Goes on until every group has a result. */
void hub_groups_finish(struct shk_world *world, struct hub_group **groups, size_t count);
void hub_group_free(struct hub_group *group);

/* Ended otherwise than with the right result? Its reason says how. One that was only slow did not
 * fail. */
bool hub_group_failed(struct hub_group *group, const struct shk_transport *transport,
                      const struct shk_collective_options *options);

/* The least phase of its ranks. */
enum shk_phase hub_group_phase(const struct hub_group *group);
/* Did its time run out in a way that says nothing of its nodes? That is so when no hang is looked
 * for (`hang` is SHK_PHASE_DONE, else the phase in which the run before hung), when a node left a
 * rank no processor, and when the ranks did not come to speak to each other although those of the
 * run before did. */
bool hub_group_late(const struct hub_group *group, enum shk_phase hang);

/* hub_net.c: which node an address belongs to, {address: name}; that of several nodes (a bridge for
 * containers) to none. */
json_t *hub_net_owners(const struct hub_group *group);

/* hub_cut.c: did rank 0's host lose the way to all others at once? */
enum hub_cut {
    HUB_CUT_NO,
    HUB_CUT_EITHER, /* there is one other host: either is cut off */
    HUB_CUT_OWN,    /* there are several: it is rank 0's host that is cut off */
};
enum hub_cut hub_cut(const struct shk_world *world);
/* Of a run with its result: when a host is blamed that does not answer, and it is as above, then
 * rank 0's host is, or neither of the two (undecided). */
void hub_cut_blame(const struct shk_world *world, struct hub_group *group);
/* Does the host of a member that is silent run anything of the job: rank 0 itself, or a rank that
 * has spoken since? */
bool hub_host_runs(const struct shk_world *world, const struct hub_member *member);
/* Of a run with its result: when the rank to blame is silent on a host of which nothing tells
 * whether it runs anything, nobody is; the hosts of all such ranks are named (undecided). */
void hub_silent_blame(struct hub_group *group);

/* hub_path.c: of a run that stood still, with its result: is data stuck between nodes? Then that is
 * the reason and the cause, and the node that all the pairs have in common has the rank to blame.
 * Without such a node: the names of those that they have, none of which is known to be at fault;
 * else NULL. */
json_t *hub_path(struct shk_world *world, struct hub_group *group);
/* The nodes that pairs with stuck data have in common, of every run of the measurement so far, as
 * names and as text ("shk2 and shk3", free()); NULL when none stand out. */
char *hub_path_common(const struct shk_world *world, json_t **names_p);
/* The cause, and what is known of it ("packets of 9000 B to and from shk2 are …"), of data that is
 * stuck to and from these nodes; free(*text_p). */
const char *hub_path_cause(const struct shk_world *world, const char *who, char **text_p);

/* hub_net.c: adds what the network did during a run that has its result, called `what`. */
void hub_net_add(struct shk_world *world, const struct hub_group *group, const char *what);
/* Writes what was added as collective.<t>.counters, and forgets it. -ENOMEM. */
int hub_net_facts(struct shk_world *world, const struct shk_transport *transport,
                  struct shk_facts *facts) SHK_MUST_CHECK;
/* Sets collective.<t>.<name> to `value` (stolen); not when it is empty or the transport had nothing
 * to measure. -ENOMEM. */
int hub_counters_fact(const struct shk_transport *transport, const char *name, json_t *value,
                      const char *source, struct shk_facts *facts) SHK_MUST_CHECK;

/* hub_moved.c: adds which counters of the nodes' hardware moved during a run that has its result:
 * of all but the network where hub_net_add() has those. */
void hub_moved_add(struct shk_world *world, const struct hub_group *group, const char *what);
/* Writes what was added as collective.<t>.moved, and forgets it. -ENOMEM. */
int hub_moved_facts(struct shk_world *world, const struct shk_transport *transport,
                    struct shk_facts *facts) SHK_MUST_CHECK;

/* hub_nodes.c: an all-reduce within each node, on all of them at once. The facts are those of the
 * node where it went worst; by_node has a row for each. */
int hub_nodes_measure(struct shk_world *world, const struct shk_transport *transport,
                      const struct shk_collective_options *options, struct shk_facts *facts,
                      struct shk_error *err) SHK_MUST_CHECK;

/* hub_search.c: the node or pair at fault, when an all-reduce over all ranks failed and names none.
 * Adds to collective.<t>.*: pairs, search, and where it succeeds nodes; the reason says what was
 * tried. After one that was getting on when its time was over slow nodes are looked for, not such
 * that fail. `bytes`: size of the message that it failed with, 0 not known. -ENOMEM. */
int hub_search(struct shk_world *world, const struct shk_transport *transport,
               const struct shk_collective_options *options, const struct hub_group *failed,
               uint64_t bytes, struct shk_facts *facts) SHK_MUST_CHECK;

/* Slow nodes and pairs after an all-reduce that passed: collective.<t>.pair_speed. -ENOMEM. */
int hub_speed_facts(struct shk_world *world, const struct shk_transport *transport,
                    const struct shk_collective_options *options,
                    struct shk_facts *facts) SHK_MUST_CHECK;

/* First ranks of the nodes, those that are idle; room for nodes_count. */
unsigned hub_leaders(struct shk_world *world, struct hub_member **leaders);

/* hub_pairs.c: all-reduces between pairs of nodes; options->deadline_ms is that of one. None begins
 * that may last beyond end_ns. A pair of which the end of its time says nothing (see
 * hub_group_late()) is tried again by itself. */
struct hub_pairs {
    unsigned rounds;
    json_t *rows;    /* [{a, b, ok, ms, reason}] */
    json_t *nodes;   /* names of the nodes at fault */
    const char *how; /* they are; NULL: the pairs do not tell */
};
int hub_pairs(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, enum shk_phase hang, uint64_t end_ns,
              struct hub_pairs *found) SHK_MUST_CHECK;

/* hub_speed.c: how fast the pairs of nodes are. What seems slow is measured again. */
struct hub_speed {
    json_t *summary;             /* collective.<t>.pair_speed; NULL: not measured */
    struct shk_pairspeed judged; /* slow ones among them: where to search on */
    struct shk_error why;        /* not measured; "": there are fewer than three nodes */
};
int hub_speed(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, uint64_t end_ns,
              struct hub_speed *found) SHK_MUST_CHECK;
void hub_speed_clear(struct hub_speed *found);

#endif
