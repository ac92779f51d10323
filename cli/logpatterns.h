/* The signatures of the catalogue as patterns for probes/log/logscan.h. */
#ifndef SHK_CLI_LOGPATTERNS_H
#define SHK_CLI_LOGPATTERNS_H

#include "config/config.h"
#include "probes/log/logscan.h"

/* New array (free()), NULL when out of memory; the texts are the catalogue's. The signatures in
 * their order, then the patterns of defects of releases. */
struct shk_log_pattern *shk_log_patterns(const struct shk_config *config, size_t *count_p);

/* Compiled at build time from the built-in signatures (cli/embed_logdb.c). */
extern const struct shk_log_database shk_log_builtin;

#endif
