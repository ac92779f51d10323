#include "cli/session/logpatterns.h"

#include <stdlib.h>

/* Benign lines are looked for too: rules may ask for them. */
struct shk_log_pattern *shk_log_patterns(const struct shk_config *config, size_t *count_p)
{
    size_t n;
    const struct shk_signature *all = shk_config_signatures(config, &n);
    struct shk_log_pattern *patterns = calloc(n + 1, sizeof *patterns);
    for (size_t i = 0; patterns && i < n; i++)
        patterns[i] = (struct shk_log_pattern){
            .id = all[i].id,
            .pattern = all[i].pattern,
            .capture = all[i].capture,
            .place = all[i].place,
            .origins = all[i].role == SHK_LOG_CAUSE || all[i].role == SHK_LOG_SYMPTOM,
            .once = all[i].role == SHK_LOG_NAMES,
            .error_words = all[i].role == SHK_LOG_WORDS,
            .explains = all[i].role != SHK_LOG_WORDS && all[i].role != SHK_LOG_PROOF &&
                        all[i].role != SHK_LOG_NAMES,
        };
    *count_p = n;
    return patterns;
}
