/* What a few facts point to, although more would be needed for a verdict. A check that could not
 * read all that it rests on says UNKNOWN. Here it is asked once more, with the usual value in
 * the place of what nobody looked at: what it then calls bad is a suspicion. */
#include "checks/cause/clue.h"
#include "checks/cause/usual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Weights of a suspicion, as those of clues: FAIL and WARN of an effect that was read, and one that
 * rests on a variable of which nobody knows whether it is set, or on mere settings; the last is for
 * what a profile wants of settings that is only what such nodes often have. */
enum { FAIL_WEIGHT = 62, WARN_WEIGHT = 55, ENV_WEIGHT = 40, GUESSED_PROFILE_WEIGHT = 30 };

/* Of one check: what it asked for and nobody had looked at. */
struct unread {
    struct shk_strbuf names; /* the first few */
    size_t count;
    bool env;  /* a variable among them */
    bool bold; /* it may as well be otherwise */
};

/* One round of questions. */
struct round {
    struct shk_facts *facts;
    struct shk_check_context ctx;
    bool bold;
    json_t *said; /* rows that were suspected before */
};

static void find_unread(struct unread *unread, const struct shk_facts *facts, json_t *asked)
{
    const char *key;
    json_t *value;
    json_object_foreach(asked, key, value)
    {
        bool env = strncmp(key, "env.", 4) == 0;
        if (strncmp(key, "env.file.", 9) == 0 || shk_usual_looked(facts, key))
            continue;
        if (env && shk_env_known(facts))
            continue;
        unread->env |= env;
        if (++unread->count <= 3)
            shk_strbuf_printf(&unread->names, "%s%s", unread->names.len ? ", " : "", key);
    }
}

static bool was_found(const struct shk_findings *findings, const struct shk_finding *row)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if ((f->verdict == SHK_FAIL || f->verdict == SHK_WARN) && strcmp(f->id, row->id) == 0 &&
            strcmp(f->setting, row->setting) == 0)
            return true;
    }
    return false;
}

/* Is it about a variable of which nothing is known? */
static bool about_unknown(const struct shk_clue_source *src, const struct shk_finding *row)
{
    const struct shk_setting *setting = shk_config_setting(src->config, row->setting);
    const char *value;
    if (!setting || !setting->variable)
        return false;
    return shk_look_env(src->facts, row->setting, &value) == SHK_LOOK_MISSING;
}

static int weight_of(const struct shk_finding *row, const struct unread *unread)
{
    if (unread->bold && row->evidence >= SHK_DECLARED)
        return GUESSED_PROFILE_WEIGHT;
    if (unread->bold || unread->env || row->evidence >= SHK_DECLARED)
        return ENV_WEIGHT;
    return row->verdict == SHK_FAIL ? FAIL_WEIGHT : WARN_WEIGHT;
}

static void suspect(struct shk_clues *clues, const struct shk_clue_source *src,
                    const struct shk_finding *row, const char *diagnosis,
                    const struct unread *unread)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const struct shk_diagnosis *entry = shk_config_diagnosis(src->config, diagnosis);
    int weight = weight_of(row, unread);
    if (!entry)
        return;
    shk_strbuf_puts(&sb, row->setting);
    if (row->observed && *row->observed)
        shk_strbuf_printf(&sb, " = %s", row->observed);
    if (row->why && *row->why)
        shk_strbuf_printf(&sb, ": %s", row->why);
    if (unread->count)
        shk_strbuf_printf(&sb, " (not read, taken as usual: %s", shk_strbuf_text(&unread->names));
    if (unread->count > 3)
        shk_strbuf_printf(&sb, " and %zu more", unread->count - 3);
    if (unread->count)
        shk_strbuf_putc(&sb, ')');
    shk_clue_add(clues, entry->key, weight, weight > ENV_WEIGHT, shk_strbuf_take(&sb));
}

/* Was it said in an earlier round? Remembers it. */
static bool said_before(struct round *round, const struct shk_finding *row)
{
    char *name = shk_strf("%s %s", row->id, row->setting);
    bool before = name && shk_array_has(round->said, name, false);
    if (name && !before)
        (void)json_array_append_new(round->said, json_string(name));
    free(name);
    return before;
}

/* The cause that a row points to. A warning of no closer cause: what its check is about. */
static const char *suspected(const struct shk_clue_source *src, const struct shk_check *check,
                             const struct shk_finding *row, bool bold)
{
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
    if (!bad || row->general || about_unknown(src, row))
        return NULL;
    if (row->diagnosis)
        return was_found(src->findings, row) ? NULL : row->diagnosis;
    return bold ? check->diagnosis : NULL;
}

static void ask(struct shk_clues *clues, const struct shk_clue_source *src,
                const struct shk_check *check, struct round *round)
{
    struct shk_findings *rows = shk_findings_create();
    json_t *asked = json_object();
    struct unread unread = {.names = SHK_STRBUF_INIT, .bold = round->bold};
    if (rows && asked) {
        shk_facts_watch(round->facts, asked);
        check->eval(&round->ctx, rows);
        shk_facts_watch(round->facts, NULL);
        find_unread(&unread, src->facts, asked);
    } else {
        clues->failed = true;
    }
    for (size_t i = 0; rows && i < shk_findings_count(rows); i++) {
        const struct shk_finding *row = shk_findings_at(rows, i);
        const char *diagnosis = suspected(src, check, row, round->bold);
        if (diagnosis && !said_before(round, row))
            suspect(clues, src, row, diagnosis, &unread);
    }
    shk_strbuf_free(&unread.names);
    json_decref(asked);
    shk_findings_destroy(rows);
}

static void ask_all(struct shk_clues *clues, const struct shk_clue_source *src, struct round *round)
{
    size_t count;
    const struct shk_check *const *checks = shk_checks(&count);
    if (!round->facts) {
        clues->failed = true;
        return;
    }
    round->ctx.facts = round->facts;
    round->ctx.config = src->config;
    round->ctx.profile = round->bold ? shk_bold_profile(src->config, round->facts)
                                     : shk_profile_detect(src->config, round->facts, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        if (strncmp(checks[i]->id, "log.", 4) != 0)
            ask(clues, src, checks[i], round);
    shk_facts_destroy(round->facts);
}

void shk_clues_from_checks(struct shk_clues *clues, const struct shk_clue_source *src)
{
    struct round first = {.facts = shk_usual_facts(src->facts), .said = json_array()};
    struct round second = {.said = first.said, .bold = true};
    clues->failed |= !first.said;
    ask_all(clues, src, &first);
    if (!shk_facts_probed(src->facts)) {
        second.facts = shk_bold_facts(src->facts, src->config);
        ask_all(clues, src, &second);
    }
    json_decref(first.said);
}
