/* The net plugins of plugin.candidates, and what NCCL or RCCL does without one. */
#ifndef SHK_CHECKS_PLUGIN_H
#define SHK_CHECKS_PLUGIN_H

#include "checks/fabric/chain.h"

#define SHK_PLUGIN_FACT   "plugin.candidates"
#define SHK_PLUGIN_SOURCE "NVIDIA/nccl:src/plugin/net.cc"

/* Yes, no, or nobody can tell. */
enum shk_told { SHK_TOLD_NO, SHK_TOLD_YES, SHK_TOLD_UNREAD };

/* Is it a net plugin that the library itself would try? Others are merely seen: files in the usual
 * places that nothing asks for. */
enum shk_told shk_plugin_is_considered(const json_t *plugin);

/* Is there a file that a load would take? */
enum shk_told shk_plugin_is_found(const json_t *plugin);

/* Did an entry of the search exist, but could not be opened? The first such ({path, state, text});
 * NULL when not. */
const json_t *shk_plugin_blocked(const json_t *plugin);

/* A text member, "" when it was not read: for messages only. */
const char *shk_plugin_text(const json_t *object, const char *name);

/* Value of NCCL_NET_PLUGIN as the library sees it, unless it asks for none; NULL: not set, or not
 * known. */
const char *shk_plugin_requested(const struct shk_facts *facts);

/* What NCCL_NET leaves to the library when a plugin does not work. */
enum shk_net_demand {
    SHK_NET_ANY,     /* not set: the next network is taken */
    SHK_NET_BUILTIN, /* one of the library's own: plugins are not used */
    SHK_NET_PLUGIN,  /* a name that only a plugin can have: without it the job ends */
};

/* *value_p (may be NULL): the value. Not known counts as SHK_NET_ANY. */
enum shk_net_demand shk_net_demand(const struct shk_facts *facts, const char **value_p);

/* "NCCL 2.28.9", "RCCL 2.20.5" of the library that a plugin is for, "NCCL" when not known: a new
 * string. owner: "nccl", "rccl"; NULL: the one that is here. */
char *shk_plugin_library(const struct shk_facts *facts, const char *owner);

/* The chain of a candidate, from its row alone; what was not tried, or not read, is UNKNOWN. The
 * caller clears it. */
void shk_plugin_chain(const json_t *plugin, struct shk_chain *chain);

/* Verdict over a plugin whose chain is broken at `link`, and what comes of it ("; NCCL …", a new
 * string). A broken plugin that nothing asks for costs nothing on a node without network adapters.
 */
enum shk_verdict shk_plugin_verdict(const struct shk_check_context *ctx, const json_t *plugin,
                                    const struct shk_link *link);
char *shk_plugin_consequence(const struct shk_check_context *ctx, const json_t *plugin,
                             const struct shk_link *link);

#endif
