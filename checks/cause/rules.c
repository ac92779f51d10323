/* Rules of the catalogue: lines, settings and facts that together speak for or against a cause. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* A rule of less weight is a guess among several causes. */
enum { SPECIFIC = 50 };

static bool matches(const char *pattern, const char *value)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool hit = regexec(&re, value, 0, NULL, 0) == 0;
    regfree(&re);
    return hit;
}

/* The test of a term on a value that is known. */
static bool value_fits(const struct shk_rule_term *term, const char *value)
{
    if (term->matches)
        return matches(term->matches, value);
    return term->lacks ? !matches(term->lacks, value) : term->set;
}

static bool setting_holds(const struct shk_facts *facts, const struct shk_rule_term *term)
{
    const char *value = shk_log_env(facts, term->setting);
    if (!value)
        return term->unset && shk_look_env(facts, term->setting, &value) == SHK_LOOK_ABSENT;
    return !term->unset && value_fits(term, value);
}

/* A fact of any type, as text; an array or object as JSON. Absent is the empty text. */
static bool fact_holds(const struct shk_facts *facts, const struct shk_rule_term *term)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(facts, term->fact, &fact);
    if (look == SHK_LOOK_ABSENT)
        return value_fits(term, "");
    if (look != SHK_LOOK_PRESENT)
        return false;
    if (json_is_string(fact.value))
        return value_fits(term, json_string_value(fact.value));
    char *text = json_dumps(fact.value, JSON_ENCODE_ANY | JSON_COMPACT);
    bool holds = text && value_fits(term, text);
    free(text);
    return holds;
}

static bool log_holds(const struct shk_facts *facts, const struct shk_rule_term *term)
{
    json_t *entry = shk_log_seen(facts, term->log), *tuple;
    size_t i;
    long long lines = 1;
    if (entry)
        (void)shk_look_member_int(entry, "lines", &lines);
    if (!entry || lines < term->lines)
        return false;
    if (!term->capture)
        return true;
    json_array_foreach(json_object_get(entry, "captures"), i, tuple)
    {
        const char *value = shk_clue_capture(tuple, term->capture);
        if (value && value_fits(term, value))
            return true;
    }
    return false;
}

static bool term_holds(const struct shk_facts *facts, const struct shk_rule_term *term)
{
    if (term->log)
        return log_holds(facts, term);
    if (term->no_log)
        return shk_log_given(facts) && !shk_log_seen(facts, term->no_log);
    return term->setting ? setting_holds(facts, term) : fact_holds(facts, term);
}

static bool rule_holds(const struct shk_facts *facts, const struct shk_rule *rule)
{
    for (size_t i = 0; i < rule->when_count; i++)
        if (!term_holds(facts, &rule->when[i]))
            return false;
    return !rule->condition || shk_condition_holds(rule->condition, facts) == 1;
}

/* Does it rest on settings alone? Many set them and nothing happens. */
static bool only_settings(const struct shk_rule *rule)
{
    for (size_t i = 0; i < rule->when_count; i++)
        if (!rule->when[i].setting && !rule->when[i].no_log)
            return false;
    return !rule->condition;
}

/* The reason, then what it rests on. */
static char *rule_text(const struct shk_facts *facts, const struct shk_rule *rule)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const char *between = " (";
    shk_strbuf_puts(&sb, rule->why);
    for (size_t i = 0; i < rule->when_count; i++) {
        const struct shk_rule_term *term = &rule->when[i];
        char *place = term->log ? shk_log_place(facts, term->log) : NULL;
        const char *value = term->setting ? shk_log_env(facts, term->setting) : NULL;
        if (place)
            shk_strbuf_printf(&sb, "%s%s", between, place);
        else if (term->setting)
            shk_strbuf_printf(&sb, "%s%s%s%s", between, term->setting, value ? "=" : " not set",
                              value ? value : "");
        else if (term->fact)
            shk_strbuf_printf(&sb, "%s%s", between, term->fact);
        if (place || term->setting || term->fact)
            between = "; ";
        free(place);
    }
    if (*between == ';')
        shk_strbuf_putc(&sb, ')');
    return shk_strbuf_take(&sb);
}

void shk_clues_from_rules(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes)
{
    size_t count;
    const struct shk_rule *rules = shk_config_rules(config, &count);
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < nodes; n++)
            if (rule_holds(facts[n], &rules[i])) {
                bool specific = rules[i].weight >= SPECIFIC && !only_settings(&rules[i]);
                shk_clue_add(clues, rules[i].diagnosis, rules[i].weight, specific,
                             rule_text(facts[n], &rules[i]));
                break;
            }
}
