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

#endif
