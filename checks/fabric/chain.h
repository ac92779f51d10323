/* Chains of steps that probes leave in why.<provider> and in plugin.candidates[].steps. */
#ifndef SHK_CHECKS_CHAIN_H
#define SHK_CHECKS_CHAIN_H

#include "checks/base/row.h"

/* One row of a chain; texts are "" when the row has none, and borrowed from it. */
struct shk_link {
    const char *step, *what, *where, *detail;
    const json_t *row;
};

/* The first row in that state ("broken", "unknown"); false when there is none. */
bool shk_chain_first(const json_t *steps, const char *state, struct shk_link *link_p);

/* Among the broken rows, the first that is about the software: also to be mended when the cause
 * lies in the hardware. False when there is none, or when it is the first broken row itself. */
bool shk_chain_software(const json_t *steps, struct shk_link *link_p);

/* How why.<provider> looks, or that of the core provider for a layered name. *chain_p is set only
 * when PRESENT. */
enum shk_look shk_chain_look(const struct shk_facts *facts, const char *provider, json_t **chain_p);

/* The same; NULL unless it is there. */
const json_t *shk_chain_of(const struct shk_facts *facts, const char *provider);

/* "what (where); detail": a new string. */
char *shk_link_text(const struct shk_link *link);

/* A provider that is wanted and whose chain is broken at `link`: observed, why, fix and diagnosis
 * of the row. */
void shk_chain_say(const struct shk_check_context *ctx, struct shk_row *row, const char *provider,
                   const struct shk_link *link);

/* Is a link of that name about the software that was chosen, not about the node or the job? Then it
 * is as wrong on one node as on many. */
bool shk_link_is_software(const struct shk_link *link);

/* Would the provider work without it, only worse or at more risk? */
bool shk_link_is_quality(const struct shk_link *link);

#endif
