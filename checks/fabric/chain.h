/* Chains of steps: from the adapter to a provider's domain (from facts alone), and from a plugin's
 * file to its loopback (from its row of plugin.candidates). The first broken step is the cause;
 * what comes after it is only looked at as far as it does not depend on it. Whoever decides upon a
 * step takes its name, state and code; its texts are for people. */
#ifndef SHK_CHECKS_CHAIN_H
#define SHK_CHECKS_CHAIN_H

#include "checks/base/row.h"

enum shk_link_state { SHK_LINK_OK, SHK_LINK_BROKEN, SHK_LINK_UNKNOWN, SHK_LINK_NA };

/* What the step and its state leave open. */
enum shk_link_code {
    SHK_CODE_NONE,
    /* of a provider */
    SHK_CODE_NODE_PARTLY,    /* node: other devices of the kind can be opened */
    SHK_CODE_NOT_COMPILED,   /* library: it was built without the provider */
    SHK_CODE_NO_GPU_RUNTIME, /* dependencies: the runtime of the accelerators is missing */
    SHK_CODE_NO_HMEM,        /* hints: nothing is left when asked for FI_HMEM */
    /* of a plugin */
    SHK_CODE_DIED,          /* the call crashed or hung; format: would, by its file */
    SHK_CODE_BLOCKED,       /* file: is there, and cannot be opened */
    SHK_CODE_LIBFABRIC_OLD, /* versions, load: needs symbols of a newer libfabric */
    SHK_CODE_SLOTS_MISSING, /* load, init: the table of functions has holes, or is not there */
    SHK_CODE_NAMES_GPU,     /* init: what it said names a runtime of the accelerators */
    SHK_CODE_CALL_FAILED,   /* devices: the call returned an error */
    SHK_CODE_PENDING,       /* loopback: a connection or request never completed */
    SHK_CODE_DATA_WRONG,    /* loopback: bytes arrived wrong */
};

/* One step. `step` is a literal; the texts are owned by the chain, and "" when there is none. */
struct shk_link {
    const char *step;
    enum shk_link_state state;
    enum shk_link_code code;
    const char *unread; /* fact that was not read, and could have broken the step; NULL: none */
    char *what, *where, *detail;
};

enum { SHK_CHAIN_MAX = 20 };

struct shk_chain {
    struct shk_link links[SHK_CHAIN_MAX];
    size_t count;
};

/* Appends a step: what was seen, and what helps to understand it (detail: NULL or "" for none). A
 * step beyond SHK_CHAIN_MAX is dropped; no chain has so many. */
void shk_chain_add(struct shk_chain *chain, const char *step, enum shk_link_state state,
                   const char *detail, const char *whatf, ...) SHK_PRINTF(5, 6);

/* The last step; NULL when there is none. */
struct shk_link *shk_chain_last(struct shk_chain *chain);

/* Gives the last step its code; without it the code is SHK_CODE_NONE. */
void shk_chain_code(struct shk_chain *chain, enum shk_link_code code);

/* Names the place that the last step is about: a path, a variable, a call. NULL or "": none. */
void shk_chain_where(struct shk_chain *chain, const char *where);

/* Frees the texts; the chain is empty afterwards. */
void shk_chain_clear(struct shk_chain *chain);

/* The first step in that state; NULL when there is none. */
const struct shk_link *shk_chain_first(const struct shk_chain *chain, enum shk_link_state state);

/* Among the broken steps, the first that is about the software: also to be mended when the cause
 * lies in the hardware. NULL when there is none, or when it is the first broken step itself. */
const struct shk_link *shk_chain_software(const struct shk_chain *chain);

/* Were the facts gathered that chains are made of? Facts from elsewhere may hold a few of them
 * only; then libfabric's lists decide. */
bool shk_chains_known(const struct shk_facts *facts);

/* The chain of a provider, alone or below another ("verbs;ofi_rxm"), of the kinds that have one
 * and of what FI_PROVIDER names. The caller clears it. False, and an empty chain, when there is
 * none. */
bool shk_chain_of(const struct shk_facts *facts, const char *provider, struct shk_chain *chain);

/* "what (where); detail": a new string. */
char *shk_link_text(const struct shk_link *link);

/* A provider that is wanted and whose chain is broken at `link`: observed, why, fix and diagnosis
 * of the row. */
void shk_chain_say(const struct shk_check_context *ctx, struct shk_row *row, const char *provider,
                   const struct shk_chain *chain, const struct shk_link *link);

/* Is a link of that name about the software that was chosen, not about the node or the job? Then it
 * is as wrong on one node as on many. */
bool shk_link_is_software(const struct shk_link *link);

/* Would the provider work without it, only worse or at more risk? */
bool shk_link_is_quality(const struct shk_link *link);

#endif
