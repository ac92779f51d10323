#include "cli/logpatterns.h"

#include "config/defects.h"

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

/* A line that nothing but a defect prints is known, and others are not. */
static size_t patterns_defects(struct shk_log_pattern *patterns, const struct shk_config *config)
{
    size_t n, count = 0;
    const struct shk_defect *all = shk_config_defects(config, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i].pattern)
            patterns[count++] = (struct shk_log_pattern){.id = all[i].name,
                                                         .pattern = all[i].pattern,
                                                         .place = all[i].place,
                                                         .origins = true,
                                                         .explains = all[i].specific,
                                                         .decides = all[i].specific};
    return count;
}

static const char *object_pattern(const struct shk_config *config, const char *key)
{
    const struct shk_object *object = key ? shk_config_object(config, key) : NULL;
    return object ? object->pattern : NULL;
}

static bool object_is_general(const struct shk_config *config, const char *key)
{
    const struct shk_object *object = key ? shk_config_object(config, key) : NULL;
    return object && object->general;
}

/* Benign lines are looked for too: rules may ask for them. */
struct shk_log_pattern *shk_log_patterns(const struct shk_config *config, size_t *count_p)
{
    size_t n, defects;
    const struct shk_signature *all = shk_config_signatures(config, &n);
    (void)shk_config_defects(config, &defects);
    struct shk_log_pattern *patterns = calloc(n + defects + 1, sizeof *patterns);
    for (size_t i = 0; patterns && i < n; i++)
        patterns[i] = (struct shk_log_pattern){
            .id = all[i].id,
            .pattern = all[i].texts ? all[i].after : all[i].pattern,
            .texts = all[i].texts,
            .object = object_pattern(config, all[i].object),
            .errors = all[i].errors,
            .general = object_is_general(config, all[i].object),
            .yields = all[i].yields,
            .capture = all[i].capture,
            .place = all[i].place,
            .elsewhere = all[i].elsewhere,
            .ended_by = all[i].ended_by,
            .state = all[i].ended_by != NULL,
            .origins = all[i].role == SHK_LOG_CAUSE || all[i].role == SHK_LOG_SYMPTOM ||
                       all[i].role == SHK_LOG_GUESS,
            .once = all[i].role == SHK_LOG_NAMES && !all[i].version_of,
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
    *count_p = n + (patterns ? patterns_defects(patterns + n, config) : 0);
    return patterns;
}
