/* Which profile do the facts look like? */
#include "checks/base/look.h"
#include "checks/base/row.h"
#include "core/regex/pattern.h"

#include <stdlib.h>
#include <string.h>

/* A single weak signal is a coincidence; see shk_profile_detect(). */
enum { DETECT_MIN_WEIGHT = 2 };

/* What a signal says of a node. `shown` ("host.product = p5.48xlarge") is owned. */
struct signal_look {
    const struct shk_profile_signal *signal;
    char *shown; /* it hits */
    char *lacks; /* it could not be looked at: why; owned */
    bool failed; /* somebody tried to */
};

/* A profile against the facts. */
struct fit {
    const struct shk_profile *profile;
    struct signal_look *looks; /* one for each signal */
    int weight;                /* of the signals that hit */
    int hits;
    int open, open_hits; /* the same of those that could not be looked at */
    bool failed;         /* somebody tried to, in vain */
};

static char *value_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Facts have one type each; a value of another type counts as not read. */
static bool right_type(const char *key, const json_t *value)
{
    if (starts(key, "pci.count."))
        return json_is_integer(value);
    if (starts(key, "dev.") || starts(key, "kernel.module."))
        return json_is_object(value);
    if (strcmp(key, "rdma.devices") == 0 || strcmp(key, "net.ifaces") == 0)
        return json_is_array(value);
    if (starts(key, "env.") || starts(key, "host."))
        return json_is_string(value);
    return !json_is_array(value) && !json_is_object(value);
}

/* Texts that signals look for in lists of devices: are all of them there? */
static bool list_is_whole(const json_t *value)
{
    size_t i, k;
    json_t *device, *port;
    json_array_foreach((json_t *)value, i, device)
    {
        if (!json_is_string(json_object_get(device, "name")))
            return false;
        json_array_foreach(json_object_get(device, "ports"), k, port)
        {
            if (!json_is_string(json_object_get(port, "link_layer")))
                return false;
        }
    }
    return true;
}

static bool value_hits(const struct shk_profile_signal *signal, const json_t *value,
                       const char *text)
{
    if (!signal->matches) /* a count of none is no signal */
        return !json_is_integer(value) || json_integer_value(value) != 0;
    return shk_pattern_matches(signal->matches, text);
}

static void look_value(struct signal_look *look, const struct shk_fact *fact)
{
    char *text = value_text(fact->value);
    if (!text)
        return;
    if (!right_type(fact->key, fact->value))
        look->lacks = shk_strf("%s has an unexpected form", fact->key);
    else if (shk_says_nothing(text))
        look->lacks = shk_strf("%s is not known: \"%s\"", fact->key, text);
    else if (value_hits(look->signal, fact->value, text))
        look->shown = strlen(text) <= 60 ? shk_strf("%s = %s", fact->key, text)
                                         : shk_strf("%s found", fact->key);
    else if (json_is_array(fact->value) && !list_is_whole(fact->value))
        look->lacks = shk_strf("%s could not be read completely", fact->key);
    free(text);
}

static int try_fact(const struct shk_fact *fact, void *arg)
{
    struct signal_look *look = arg;
    if (fact->state == SHK_FACT_PRESENT && !look->shown) {
        free(look->lacks);
        look->lacks = NULL;
        look_value(look, fact);
    } else if (fact->state == SHK_FACT_FAILED && !look->shown && !look->lacks) {
        look->lacks = shk_strf("%s could not be read: %s", fact->key,
                               fact->reason ? fact->reason : "no reason given");
    }
    return look->shown != NULL;
}

static int any_fact(const struct shk_fact *fact, void *arg)
{
    (void)fact;
    (void)arg;
    return 1;
}

/* Does the document as a whole say that a fact which it does not have is not there? Variables that
 * nobody set and device nodes that do not exist have none. */
static bool missing_is_absent(const struct shk_facts *facts, const char *key)
{
    if (starts(key, "env.file."))
        return shk_look(facts, "env.files", NULL) == SHK_LOOK_PRESENT;
    if (starts(key, "env."))
        return shk_env_known(facts);
    return starts(key, "dev.") && shk_facts_each(facts, "dev.", any_fact, NULL) != 0;
}

static void look_signal(struct signal_look *look, const struct shk_facts *facts)
{
    const char *key = look->signal->fact;
    size_t len = strlen(key);
    struct shk_fact fact;
    if (len && key[len - 1] == '.')
        (void)shk_facts_each(facts, key, try_fact, look);
    else if (shk_facts_get(facts, key, &fact))
        look->failed = !try_fact(&fact, look) && look->lacks;
    else if (!missing_is_absent(facts, key))
        look->lacks = shk_strf("no probe collected %s", key);
}

static void fit_free(struct fit *fit)
{
    for (size_t i = 0; fit->looks && i < fit->profile->signals_count; i++) {
        free(fit->looks[i].shown);
        free(fit->looks[i].lacks);
    }
    free(fit->looks);
    *fit = (struct fit){0};
}

/* A need of the machine itself (host.vendor, host.arch), not of devices that may be broken, that it
 * is known not to have: what else looks alike is a coincidence. */
static bool is_another(const struct shk_profile *profile, const struct shk_facts *facts)
{
    for (size_t i = 0; i < profile->needs_count; i++) {
        const struct shk_profile_need *need = &profile->needs[i];
        const struct shk_profile_signal as = {.fact = need->fact, .matches = need->matches};
        const char *text = NULL;
        if (starts(need->fact, "host.") &&
            shk_look_text(facts, need->fact, &text) == SHK_LOOK_PRESENT &&
            !value_hits(&as, NULL, text))
            return true;
    }
    return false;
}

static struct fit fit_of(const struct shk_profile *profile, const struct shk_facts *facts)
{
    struct fit fit = {.profile = profile};
    if (!profile->abstract && !is_another(profile, facts))
        fit.looks = calloc(profile->signals_count + 1, sizeof *fit.looks);
    for (size_t i = 0; fit.looks && i < profile->signals_count; i++) {
        struct signal_look *look = &fit.looks[i];
        look->signal = &profile->signals[i];
        look_signal(look, facts);
        if (look->shown) {
            fit.weight += look->signal->weight;
            fit.hits++;
        } else if (look->lacks) {
            fit.open += look->signal->weight;
            fit.open_hits++;
            fit.failed |= look->failed;
        }
    }
    return fit;
}

static bool signal_same(const struct shk_profile_signal *a, const struct shk_profile_signal *b)
{
    return strcmp(a->fact, b->fact) == 0 &&
           strcmp(a->matches ? a->matches : "", b->matches ? b->matches : "") == 0;
}

/* Weight that `best` gains for certain when every open signal of `other` hits. */
static int shared_weight(const struct fit *best, const struct fit *other)
{
    int weight = 0;
    for (size_t i = 0; best->looks && i < best->profile->signals_count; i++)
        for (size_t k = 0; best->looks[i].lacks && k < other->profile->signals_count; k++)
            if (other->looks[k].lacks &&
                signal_same(best->looks[i].signal, other->looks[k].signal)) {
                weight += best->looks[i].signal->weight;
                break;
            }
    return weight;
}

/* Would `other` be chosen if what could not be looked at spoke for it? */
static bool may_win(const struct fit *other, const struct fit *best)
{
    if (!other->looks)
        return false;
    int weight = other->weight + other->open;
    int least = best->looks ? best->weight + shared_weight(best, other) : DETECT_MIN_WEIGHT - 1;
    if (!other->open || weight < DETECT_MIN_WEIGHT)
        return false;
    if (best->looks && !other->hits && !other->failed) /* only that nobody looked speaks for it */
        return false;
    return weight > least || (best->looks && weight == least &&
                              other->hits + other->open_hits > best->hits + best->open_hits);
}

static char *doubt_of(const struct fit *fits, size_t count, const struct fit *best)
{
    for (size_t i = 0; i < count; i++) {
        if (fits[i].profile == best->profile || !may_win(&fits[i], best))
            continue;
        for (size_t k = 0; k < fits[i].profile->signals_count; k++)
            if (fits[i].looks[k].lacks)
                return shk_strf("%s; with it, %s may fit better", fits[i].looks[k].lacks,
                                fits[i].profile->name);
    }
    return NULL;
}

static char *why_of(const struct fit *best)
{
    struct shk_strbuf why = SHK_STRBUF_INIT;
    for (size_t i = 0; best->looks && i < best->profile->signals_count; i++)
        if (best->looks[i].shown)
            shk_strbuf_printf(&why, "%s%s", why.len ? ", " : "", best->looks[i].shown);
    char *text = why.len ? shk_strf("detected: %s", shk_strbuf_text(&why))
                         : shk_strf("no site profile fits what was found");
    shk_strbuf_free(&why);
    return text;
}

const struct shk_profile *shk_profile_detect(const struct shk_config *config,
                                             const struct shk_facts *facts, char **why_p,
                                             char **doubt_p)
{
    size_t count;
    const struct shk_profile *profiles = shk_config_profiles(config, &count);
    struct fit *fits = calloc(count + 1, sizeof *fits);
    struct fit none = {.profile = shk_config_profile(config, "single-node")};
    const struct fit *best = &none;
    int weight = DETECT_MIN_WEIGHT - 1, hits = 0;
    for (size_t i = 0; fits && i < count; i++) {
        fits[i] = fit_of(&profiles[i], facts);
        if (fits[i].weight > weight ||
            (best != &none && fits[i].weight == weight && fits[i].hits > hits)) {
            best = &fits[i];
            weight = best->weight;
            hits = best->hits;
        }
    }
    const struct shk_profile *profile = best->profile;
    if (why_p)
        *why_p = why_of(best);
    if (doubt_p)
        *doubt_p = fits ? doubt_of(fits, count, best) : shk_strf("out of memory");
    for (size_t i = 0; fits && i < count; i++)
        fit_free(&fits[i]);
    free(fits);
    return profile;
}
