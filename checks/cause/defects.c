/* Known defects of releases: a release that has one, and its sign, are evidence together. */
#include "config/defects.h"

#include "checks/base/remedy.h"
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"
#include "checks/when/term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With a release that has it: a sign that nothing else has, and one that other causes share; a sign
 * of its own where the release is not known. */
enum { DEFECT_CERTAIN = 92, DEFECT_SHARED = 50, DEFECT_UNSEEN = 42 };

static const char defect_key[] = "release-defect";

/* What the line that is its sign is called among the facts; NULL: none was seen. */
static const char *defect_line(const struct shk_facts *facts, const struct shk_defect *defect)
{
    if (defect->pattern && shk_log_seen(facts, defect->name))
        return defect->name;
    for (const char *const *id = defect->signs; id && *id; id++)
        if (shk_log_seen(facts, *id))
            return *id;
    return NULL;
}

/* Do the terms hold, all of them on one node? */
static bool defect_fits(const struct shk_term_scope *from, const struct shk_defect *defect)
{
    for (size_t n = 0; n < from->nodes; n++) {
        struct shk_term_scope scope = *from;
        bool all = true;
        scope.facts = from->all[n];
        for (size_t i = 0; i < defect->when_count && all; i++)
            all = shk_term_holds(&scope, &defect->when[i]) == 1;
        if (all)
            return true;
    }
    return false;
}

/* What is known of the release. */
struct defect_release {
    bool known;                           /* one was seen, whether it has the defect or not */
    char *version;                        /* one that has it; NULL */
    char *place;                          /* of the line that says so; NULL: a fact does */
    const struct shk_defect_range *range; /* that it is in */
};

static bool release_take(struct defect_release *release, const struct shk_defect *defect,
                         const char *version)
{
    if (!version || *version < '0' || *version > '9')
        return false;
    const struct shk_defect_range *range = shk_defect_range_of(defect, version);
    release->known = true;
    if (!range)
        return false;
    release->range = range;
    release->version = shk_copy(version);
    return true;
}

static void release_of_logs(struct defect_release *release, const struct shk_config *config,
                            const struct shk_facts *facts, const struct shk_defect *defect)
{
    size_t count, k;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    json_t *tuple;
    for (size_t i = 0; i < count && !release->range; i++) {
        if (!sigs[i].version_of || strcmp(sigs[i].version_of, defect->library) != 0)
            continue;
        json_array_foreach(json_object_get(shk_log_seen(facts, sigs[i].id), "captures"), k, tuple)
        {
            if (!release_take(release, defect, shk_log_captured(tuple, "version")))
                continue;
            release->place = shk_log_place(facts, sigs[i].id);
            break;
        }
    }
}

/* What the job loaded, as its log says, else what the nodes have. */
static struct defect_release release_find(const struct shk_term_scope *scope,
                                          const struct shk_defect *defect)
{
    struct defect_release release = {0};
    const struct shk_defect_library *library = shk_defect_library(defect->library);
    release_of_logs(&release, scope->config, scope->all[0], defect);
    for (size_t n = 0; n < scope->nodes && !release.place; n++)
        for (size_t i = 0; i < SHK_DEFECT_VERSIONS && library->versions[i]; i++) {
            char *version =
                release.known ? NULL : shk_condition_text(library->versions[i], scope->all[n]);
            (void)release_take(&release, defect, version);
            free(version);
        }
    return release;
}

/* "NCCL 2.18.1 (job.log:3: …): why: job.log:9: …" */
static char *defect_text(const struct shk_facts *facts, const struct shk_defect *defect,
                         const struct defect_release *release, const char *sign)
{
    char *place = sign ? shk_log_place(facts, sign) : NULL;
    char *text = shk_strf("%s%s%s%s%s%s: %s%s%s", shk_defect_library(defect->library)->label,
                          release->version ? " " : "", release->version ? release->version : "",
                          release->place ? " (" : "", release->place ? release->place : "",
                          release->place ? ")" : "", defect->meaning, place ? " | " : "",
                          place ? place : "");
    free(place);
    return text;
}

static void defect_speak(struct shk_clues *clues, const struct shk_facts *facts,
                         const struct shk_defect *defect, struct defect_release *release,
                         const char *sign)
{
    size_t before = clues->count;
    int weight = !release->range    ? DEFECT_UNSEEN
                 : defect->specific ? DEFECT_CERTAIN
                                    : DEFECT_SHARED;
    shk_clue_add(clues, defect->diagnosis ? defect->diagnosis : defect_key, weight,
                 weight == DEFECT_CERTAIN, defect_text(facts, defect, release, sign));
    if (clues->count == before)
        return;
    struct shk_clue *clue = &clues->items[before];
    clue->seen = sign ? shk_log_seen(facts, sign) : NULL;
    clue->defect = defect;
    clue->release = release->version;
    release->version = NULL;
}

static void one_defect(struct shk_clues *clues, const struct shk_term_scope *scope,
                       const struct shk_defect *defect)
{
    const struct shk_facts *facts = scope->all[0];
    const char *sign = defect_line(facts, defect);
    if (((defect->pattern || defect->signs) && !sign) || !defect_fits(scope, defect))
        return;
    struct defect_release release = release_find(scope, defect);
    if (release.range || (!release.known && defect->specific))
        defect_speak(clues, facts, defect, &release, sign);
    free(release.version);
    free(release.place);
}

void shk_clues_from_defects(struct shk_clues *clues, const struct shk_config *config,
                            const struct shk_facts *const *facts, size_t nodes)
{
    size_t count;
    const struct shk_defect *defects = shk_config_defects(config, &count);
    if (!nodes)
        return;
    const struct shk_term_scope scope = {config, facts[0], facts, nodes, true};
    for (size_t i = 0; i < count; i++)
        one_defect(clues, &scope, &defects[i]);
}

/* "from 2.18.1 before 2.18.6, before 2.17.2" */
static char *defect_releases(const struct shk_defect *defect)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < defect->releases_count; i++) {
        const struct shk_defect_range *range = &defect->releases[i];
        shk_strbuf_printf(&sb, "%s%s%s%s%s%s", i ? ", " : "", range->from ? "from " : "",
                          range->from ? range->from : "", range->from && range->fixed_in ? " " : "",
                          range->fixed_in ? "before " : "", range->fixed_in ? range->fixed_in : "");
    }
    return shk_strbuf_take(&sb);
}

/* What to do: another release, then the way around it. */
static char *defect_advice(const struct shk_config *config, const struct shk_defect *defect,
                           const char *release)
{
    const struct shk_defect_range *range = release ? shk_defect_range_of(defect, release) : NULL;
    const char *key = !range ? "defect-look" : range->fixed_in ? "defect-update" : "defect-open";
    const struct shk_fix *words = shk_config_fix(config, key);
    char *releases = defect_releases(defect);
    const struct shk_fix_value values[] = {
        {"library", shk_defect_library(defect->library)->label},
        {"release", range && range->fixed_in ? range->fixed_in : ""},
        {"seen", release ? release : ""},
        {"releases", releases ? releases : ""}};
    char *update = words && words->advice
                       ? shk_remedy_words(words->advice, values, sizeof values / sizeof *values)
                       : shk_copy("");
    char *text = defect->advice && update ? shk_strf("%s\n%s", update, defect->advice) : NULL;
    free(releases);
    if (!text)
        return update;
    free(update);
    return text;
}

/* Takes `text` in place of what was there; false: out of memory. */
static bool defect_put(char **old, char *text)
{
    if (!text)
        return false;
    free(*old);
    *old = text;
    return true;
}

int shk_defect_tell(struct shk_diagnosis_row *row, const struct shk_config *config,
                    const struct shk_clue *clue)
{
    const struct shk_defect *defect = clue->defect;
    const char *label = shk_defect_library(defect->library)->label;
    bool own = strcmp(row->key, defect_key) != 0;
    char *advice = defect_advice(config, defect, clue->release);
    if (own && advice && row->advice) {
        char *both = shk_strf("%s\n%s", advice, row->advice);
        free(advice);
        advice = both;
    }
    bool good = defect_put(&row->advice, advice);
    if (!own)
        good =
            good &&
            defect_put(&row->title, shk_strf("%s%s%s: %s", label, clue->release ? " " : "",
                                             clue->release ? clue->release : "", defect->title)) &&
            defect_put(&row->explanation, shk_copy(defect->meaning));
    if (good && defect->fix)
        good = defect_put(&row->fix, shk_copy(defect->fix));
    return good ? 0 : -ENOMEM;
}
