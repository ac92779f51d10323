/* From lines of logs to clues. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

/* The causes that a line may have besides its usual one weigh half of it, each later one less. */
static int also_weight(int weight, size_t i)
{
    int w = weight / 2 - 4 * (int)i;
    return w > 4 ? w : 4;
}

enum {
    ENDED_WEIGHT = 44, /* at most, of what is over again */
    ENDED_LEAST = 60   /* of a line that is worth a word when it is over */
};

/* What the line tells of is over, as a later one says: no more than a guess is left of it. */
static void say_ended(struct shk_clues *clues, size_t from, const json_t *ended)
{
    const char *file = shk_log_captured(ended, "file");
    const char *slash = file ? strrchr(file, '/') : NULL;
    long long line = 0;
    (void)shk_look_member_int(ended, "line", &line);
    for (size_t i = from; i < clues->count; i++) {
        struct shk_clue *clue = &clues->items[i];
        char *text = shk_strf("%s (over again by %s:%lld)", clue->text,
                              slash  ? slash + 1
                              : file ? file
                                     : "log",
                              line);
        if (text) {
            free(clue->text);
            clue->text = text;
        }
        clue->specific = false;
        if (clue->weight > ENDED_WEIGHT)
            clue->weight = ENDED_WEIGHT;
    }
}

static bool same_place(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "file"), json_object_get(b, "file")) &&
           json_equal(json_object_get(a, "line"), json_object_get(b, "line"));
}

/* Whether nothing but the line of this signature speaks for the cause. */
static bool only_here(const struct shk_config *config, const struct shk_facts *facts,
                      const struct shk_signature *sig, const char *cause)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    const json_t *here = shk_log_seen(facts, sig->id);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = sigs[i].diagnosis && strcmp(sigs[i].diagnosis, cause) == 0
                                  ? shk_log_seen(facts, sigs[i].id)
                                  : NULL;
        if (entry && !same_place(entry, here))
            return false;
        any |= entry != NULL;
    }
    return any;
}

/* A line that shows an effect is no evidence against what other lines tell of. */
static void add_against(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *facts, const struct shk_signature *sig)
{
    for (size_t i = 0; i < shk_list_count(sig->excludes); i++)
        if (sig->role != SHK_LOG_SYMPTOM || only_here(config, facts, sig, sig->excludes[i]))
            shk_clue_add(clues, sig->excludes[i], -sig->weight, false,
                         shk_log_place(facts, sig->id));
}

static void one_signature(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *facts, const struct shk_signature *sig)
{
    bool cause = sig->role == SHK_LOG_CAUSE;
    const json_t *ended = json_object_get(shk_log_seen(facts, sig->id), "ended");
    if (ended && sig->weight < ENDED_LEAST)
        return;
    size_t others = shk_list_count(sig->also), before = clues->count;
    if (sig->diagnosis)
        shk_clue_add(clues, sig->diagnosis, sig->weight, cause, shk_log_place(facts, sig->id));
    if (clues->count > before)
        shk_clue_seen(clues, shk_log_seen(facts, sig->id));
    if (ended)
        say_ended(clues, before, ended);
    for (size_t i = 0; i < others; i++)
        shk_clue_add(clues, sig->also[i], also_weight(sig->weight, i), false,
                     shk_log_place(facts, sig->id));
    for (size_t i = before; i < clues->count; i++)
        clues->items[i].role = sig->role;
    add_against(clues, config, facts, sig);
}

/* The line is printed on some nodes, and what belongs in its place on the others. */
static void one_difference(struct shk_clues *clues, const struct shk_facts *facts,
                           const struct shk_signature *sig)
{
    json_t *entry = shk_log_seen(facts, sig->id), *alone = json_object_get(entry, "alone");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    if (!json_array_size(alone))
        return;
    char *place = shk_log_place(facts, sig->id);
    shk_strbuf_puts(&sb, "only on ");
    shk_strbuf_array(&sb, alone, 4);
    shk_strbuf_printf(&sb, ", the other nodes do not say so: %s", place ? place : sig->meaning);
    shk_clue_add(clues, sig->differs, sig->weight, true, shk_strbuf_take(&sb));
    shk_clue_seen(clues, entry);
    free(place);
}

void shk_clues_from_log(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *facts)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    if (!shk_log_given(facts))
        return;
    for (size_t i = 0; i < count; i++)
        if (sigs[i].elsewhere)
            one_difference(clues, facts, &sigs[i]);
    for (size_t i = 0; i < count; i++)
        if ((sigs[i].diagnosis || sigs[i].also || sigs[i].excludes) &&
            shk_log_seen(facts, sigs[i].id))
            one_signature(clues, config, facts, &sigs[i]);
}
