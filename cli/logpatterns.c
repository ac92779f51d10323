#include "cli/logpatterns.h"

#include <stdlib.h>
#include <string.h>

/* Not only that a line is there, or looks like an error. */
static bool says_more(enum shk_log_role role)
{
    return role != SHK_LOG_WORDS && role != SHK_LOG_DOUBT && role != SHK_LOG_NAMES &&
           role != SHK_LOG_GUESS;
}

/* Who printed either of two lines is to be known. */
static void patterns_compare(struct shk_log_pattern *patterns, size_t n, size_t i, const char *id)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(patterns[k].id, id) == 0)
            patterns[i].origins = patterns[k].origins = true;
}

/* Benign lines are looked for too: rules may ask for them. */
struct shk_log_pattern *shk_log_patterns(const struct shk_config *config, size_t *count_p)
{
    size_t n;
    const struct shk_signature *all = shk_config_signatures(config, &n);
    struct shk_log_pattern *patterns = calloc(n + 1, sizeof *patterns);
    for (size_t i = 0; patterns && i < n; i++)
        patterns[i] = (struct shk_log_pattern){
            .id = all[i].id,
            .pattern = all[i].texts ? all[i].after : all[i].pattern,
            .texts = all[i].texts,
            .capture = all[i].capture,
            .place = all[i].place,
            .elsewhere = all[i].elsewhere,
            .ended_by = all[i].ended_by,
            .state = all[i].ended_by != NULL,
            .origins = all[i].role == SHK_LOG_CAUSE || all[i].role == SHK_LOG_SYMPTOM ||
                       all[i].role == SHK_LOG_GUESS,
            .once = all[i].role == SHK_LOG_NAMES,
            .error_words = all[i].role == SHK_LOG_WORDS,
            .doubt_words = all[i].role == SHK_LOG_DOUBT,
            .explains = says_more(all[i].role) && all[i].role != SHK_LOG_PROOF,
            .guess = all[i].role == SHK_LOG_GUESS,
            .decides = says_more(all[i].role),
        };
    for (size_t i = 0; patterns && i < n; i++)
        for (const char *const *id = all[i].elsewhere; id && *id; id++)
            patterns_compare(patterns, n, i, *id);
    for (size_t i = 0; patterns && i < n; i++)
        for (const char *const *id = all[i].ended_by; id && *id; id++)
            for (size_t k = 0; k < n; k++)
                patterns[k].state |= strcmp(patterns[k].id, *id) == 0;
    *count_p = n;
    return patterns;
}
