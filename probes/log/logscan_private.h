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

/* The patterns themselves, or wider ones for those that tell numbers apart (logwide.h). */
enum shk_log_width { SHK_LOG_EXACT, SHK_LOG_WIDE };

/* The patterns as a database for `platform` (NULL: this processor); hs_free_database(). NULL when
 * there is no pattern, or one that cannot be widened. */
int shk_logscan_build(const struct shk_log_pattern *patterns, size_t n, enum shk_log_width width,
                      const struct hs_platform_info *platform, struct hs_database **database_p,
                      struct shk_error *err) SHK_MUST_CHECK;

#endif
