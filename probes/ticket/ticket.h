/* Outputs of tools that people paste into a ticket or that a job script leaves in its log: `env`,
 * `ulimit -a`, `nvidia-smi`, `ibstat`, … Found anywhere in a text (in markdown fences, behind
 * prompts, behind prefixes of ranks, times, nodes and pods) and turned into the same facts that the
 * probes write (docs/facts.md). What was not pasted is not a fact: it is neither absent nor zero. A
 * list is written only when nothing says that the paste is part of one (a filter in the command, a
 * line "...", an entry that ends early). One reader per kind of output, one line in list.def. */
#ifndef SHK_PROBES_TICKET_H
#define SHK_PROBES_TICKET_H

#include "core/facts/facts.h"
#include "core/text/nameset.h"
#include <stddef.h>

/* Of one file no more than this is looked at: a ticket is small, and a job script prints such
 * things at its start. */
#define SHK_TICKET_FILE_MAX ((size_t)16 << 20)
/* Of all files together, but always this much of each: logs of a thousand ranks do not hold more
 * that is new. */
#define SHK_TICKET_ALL_MAX  ((size_t)64 << 20)
#define SHK_TICKET_FILE_MIN ((size_t)256 << 10)

struct shk_ticket;

/* `names`: the variables that are written down (borrowed); NULL: none. NULL: out of memory. */
struct shk_ticket *shk_ticket_create(const struct shk_name_set *names);
void shk_ticket_destroy(struct shk_ticket *ticket);

/* A piece of a file of that name, in order, any bytes; what is beyond the limits is left
 * out, and a file is read and forgotten when the next one begins. -ENOMEM. */
int shk_ticket_add(struct shk_ticket *ticket, const char *file, const char *data, size_t len);

/* Reads what was added. To be called once. -ENOMEM. */
int shk_ticket_read(struct shk_ticket *ticket);

/* Lines that outputs came to (NCCL's RAS and Inspector), to be searched like those of a log; valid
 * as long as the ticket. After shk_ticket_read(), once. NULL: out of memory. */
const char *shk_ticket_lines(struct shk_ticket *ticket, size_t *len_p);

/* Nodes of which something was read, those that a prompt or a prefix names and the one that is not
 * named. facts: borrowed; name: "" of the one that is not named, its facts stand for every node
 * that is not told apart. host.name is set where the name is known. */
struct shk_ticket_node {
    const char *name;
    struct shk_facts *facts;
};
size_t shk_ticket_nodes(const struct shk_ticket *ticket);
struct shk_ticket_node shk_ticket_node(const struct shk_ticket *ticket, size_t i);

/* What was read, and what was recognised and left out, for people: "nvidia-smi topo, ulimit -a, 14
 * variables; ibstat: cut, left out". "" when nothing was. New string, NULL: out of memory. */
char *shk_ticket_summary(const struct shk_ticket *ticket);

#endif
