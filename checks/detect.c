/* Which profile do the facts look like? */
#include "checks/row.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* A single weak signal is a coincidence; see shk_profile_detect(). */
enum { DETECT_MIN_WEIGHT = 2 };

struct signal_hit {
    const struct shk_profile_signal *signal;
    char *shown; /* "host.product = p5.48xlarge" */
};

static char *value_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

static int try_fact(const struct shk_fact *fact, void *arg)
{
    struct signal_hit *hit = arg;
    if (fact->state != SHK_FACT_PRESENT)
        return 0;
    char *text = value_text(fact->value);
    if (!text)
        return 0;
    bool matches = true;
    if (hit->signal->matches) {
        regex_t re;
        matches = regcomp(&re, hit->signal->matches, REG_EXTENDED | REG_NOSUB) == 0;
        if (matches) {
            matches = regexec(&re, text, 0, NULL, 0) == 0;
            regfree(&re);
        }
    } else if (json_is_integer(fact->value)) {
        matches = json_integer_value(fact->value) != 0; /* a count of none is no signal */
    }
    if (matches)
        hit->shown = strlen(text) <= 60 ? shk_strf("%s = %s", fact->key, text)
                                        : shk_strf("%s is there", fact->key);
    free(text);
    return matches;
}

static char *signal_hits(const struct shk_profile_signal *signal, const struct shk_facts *facts)
{
    struct signal_hit hit = {.signal = signal};
    size_t len = strlen(signal->fact);
    if (len && signal->fact[len - 1] == '.') {
        (void)shk_facts_each(facts, signal->fact, try_fact, &hit);
    } else {
        struct shk_fact fact;
        if (shk_facts_get(facts, signal->fact, &fact))
            (void)try_fact(&fact, &hit);
    }
    return hit.shown;
}

static int profile_weight(const struct shk_profile *profile, const struct shk_facts *facts,
                          size_t *hits_p, struct shk_strbuf *why)
{
    int weight = 0;
    *hits_p = 0;
    for (size_t i = 0; i < profile->signals_count; i++) {
        char *shown = signal_hits(&profile->signals[i], facts);
        if (!shown)
            continue;
        weight += profile->signals[i].weight;
        shk_strbuf_printf(why, "%s%s", (*hits_p)++ ? ", " : "", shown);
        free(shown);
    }
    return weight;
}

const struct shk_profile *shk_profile_detect(const struct shk_config *config,
                                             const struct shk_facts *facts, char **why_p)
{
    const struct shk_profile *best = NULL;
    struct shk_strbuf best_why = SHK_STRBUF_INIT;
    size_t count, best_hits = 0;
    int best_weight = DETECT_MIN_WEIGHT - 1;
    const struct shk_profile *profiles = shk_config_profiles(config, &count);
    for (size_t i = 0; i < count; i++) {
        struct shk_strbuf why = SHK_STRBUF_INIT;
        size_t hits = 0;
        int weight = profiles[i].abstract ? 0 : profile_weight(&profiles[i], facts, &hits, &why);
        if (weight > best_weight || (best && weight == best_weight && hits > best_hits)) {
            shk_strbuf_free(&best_why);
            best = &profiles[i];
            best_why = why;
            best_weight = weight;
            best_hits = hits;
        } else {
            shk_strbuf_free(&why);
        }
    }
    if (!best)
        best = shk_config_profile(config, "single-node");
    if (why_p)
        *why_p = best_why.len ? shk_strf("detected: %s", shk_strbuf_text(&best_why))
                              : shk_strf("no site profile fits what was found");
    shk_strbuf_free(&best_why);
    return best;
}
