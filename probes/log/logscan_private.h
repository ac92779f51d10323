/* What logscan.c and logcompile.c share. */
#ifndef SHK_PROBES_LOGSCAN_PRIVATE_H
#define SHK_PROBES_LOGSCAN_PRIVATE_H

#include "probes/log/logscan.h"

struct hs_platform_info; /* of hs.h, where they have other names */
struct hs_database;

/* -EINVAL: the pattern, where it is and why it is wrong. */
int shk_logscan_bad(const struct shk_log_pattern *pattern, const char *why, struct shk_error *err);

/* Tables behind the same pattern are one: the index of its first pattern. */
size_t shk_logscan_table(const struct shk_log_pattern *patterns, size_t i);

/* The patterns as a database for `platform` (NULL: this processor); hs_free_database(). */
int shk_logscan_build(const struct shk_log_pattern *patterns, size_t n,
                      const struct hs_platform_info *platform, struct hs_database **database_p,
                      struct shk_error *err) SHK_MUST_CHECK;

#endif
