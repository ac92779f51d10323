/* A value that is well-formed, held against the node: do the interfaces, devices and paths that it
 * names exist? */
#ifndef SHK_CHECKS_RESOLVE_H
#define SHK_CHECKS_RESOLVE_H

#include "checks/base/read.h"

/* Writes verdict, evidence, observed, why, fix and diagnosis into row. False when the value names
 * nothing on the node (row untouched). */
bool shk_resolve(const struct shk_check_context *ctx, const struct shk_setting *setting,
                 const char *value, struct shk_row *row);

/* Interface lists in NCCL's form, or exact names when nobody with NCCL's rules reads it. */
bool shk_resolve_interfaces(const struct shk_check_context *ctx, const struct shk_setting *setting,
                            const char *value, struct shk_row *row);

/* HCA lists in NCCL's form. */
bool shk_resolve_hcas(const struct shk_check_context *ctx, const struct shk_setting *setting,
                      const char *value, struct shk_row *row);

/* Rules of single settings (lists of algorithms, length of a host name …); as shk_resolve(). */
bool shk_resolve_special(const struct shk_check_context *ctx, const struct shk_setting *setting,
                         const char *value, struct shk_row *row);

/* A list of providers against the loaded library; as shk_resolve(). */
bool shk_resolve_provider(const struct shk_check_context *ctx, const char *value,
                          struct shk_row *row);

/* The name of a network against the networks that are here; an empty value, too, is a name. */
bool shk_resolve_network(const struct shk_check_context *ctx, const char *value,
                         struct shk_row *row);

/* Container and VM bridges, tunnels: interfaces that no other node can reach. */
bool shk_iface_is_bridge(const char *name);

/* Does one address of the interface serve other nodes (not link-local)? */
bool shk_iface_is_routable(const json_t *iface);

/* `name` matches NCCL's list entry [item, item + len): as prefix or exactly. */
bool shk_name_matches(const char *name, const char *item, size_t len, bool exact);

#endif
