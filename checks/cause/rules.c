/* Rules of the catalogue: lines, settings and facts that together speak for or against a cause. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/cause/usual.h"
#include "checks/log/log.h"
#include "checks/when/term.h"

#include <stdlib.h>
#include <string.h>

/* A rule of less weight is a guess among several causes; one of which something is not known, at
 * most PERHAPS. */
enum { SPECIFIC = 45, PERHAPS = 40 };

/* Something that is there, not something that is missing, as on every node that nobody set up. */
static bool is_something(const struct shk_term *term)
{
    return !term->unset && !term->absent && !term->no_log;
}

/* What is not known speaks for nothing; only that a variable is not set may be guessed. */
static int term_speaks(const struct shk_term_scope *scope, const struct shk_term *term)
{
    const char *value = NULL;
    int holds = shk_term_holds(scope, term);
    if (holds >= 0)
        return holds;
    return term->unset && shk_term_setting(scope, term->setting, &value) == SHK_LOOK_MISSING ? -1
                                                                                             : 0;
}

/* 1 or 0; -1: perhaps, all that is known fits. On hardware that may not be the rule's, only what
 * is there speaks for it. */
static int rule_holds(const struct shk_term_scope *scope, const struct shk_rule *rule)
{
    int all = 1;
    bool known = false, something = false;
    for (size_t i = 0; i < rule->when_count; i++) {
        int one = term_speaks(scope, &rule->when[i]);
        if (!one)
            return 0;
        known |= one > 0;
        something |= one > 0 && is_something(&rule->when[i]);
        all = one < 0 ? -1 : all;
    }
    int where = rule->condition ? shk_condition_holds(rule->condition, scope->facts) : 1;
    if (!where || !known || (where < 0 && !something))
        return 0;
    return where < 0 ? -1 : all;
}

/* Does it rest on settings alone? Many set them and nothing happens. */
static bool only_settings(const struct shk_rule *rule)
{
    for (size_t i = 0; i < rule->when_count; i++)
        if (!rule->when[i].setting && !rule->when[i].no_log)
            return false;
    return !rule->condition;
}

/* A setting that two terms look at is said once. */
static bool said_before(const struct shk_rule *rule, size_t at)
{
    const char *setting = rule->when[at].log ? NULL : rule->when[at].setting;
    for (size_t i = 0; setting && i < at; i++)
        if (!rule->when[i].log && rule->when[i].setting &&
            strcmp(rule->when[i].setting, setting) == 0)
            return true;
    return false;
}

static void fact_text(struct shk_strbuf *sb, const char *between,
                      const struct shk_term_scope *scope, const struct shk_term *term)
{
    char *value = shk_term_value(scope, term);
    shk_strbuf_printf(sb, "%s%s%s%s", between, term->fact, value ? ": " : "", value ? value : "");
    free(value);
}

/* The reason, then what it rests on. */
static char *rule_text(const struct shk_term_scope *scope, const struct shk_rule *rule, bool sure)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const char *between = " (", *unset = sure ? " not set" : " perhaps not set";
    shk_strbuf_puts(&sb, rule->why);
    for (size_t i = 0; i < rule->when_count; i++) {
        const struct shk_term *term = &rule->when[i];
        if (said_before(rule, i))
            continue;
        char *place = term->log ? shk_log_place(scope->facts, term->log) : NULL;
        const char *value = NULL;
        if (term->setting)
            (void)shk_term_setting(scope, term->setting, &value);
        if (place)
            shk_strbuf_printf(&sb, "%s%s", between, place);
        else if (term->setting)
            shk_strbuf_printf(&sb, "%s%s%s%s", between, term->setting, value ? "=" : unset,
                              value ? value : "");
        else if (term->fact)
            fact_text(&sb, between, scope, term);
        else if (term->differs)
            shk_strbuf_printf(&sb, "%s%s differs", between, term->differs);
        if (place || term->setting || term->fact || term->differs)
            between = "; ";
        free(place);
    }
    if (*between == ';')
        shk_strbuf_putc(&sb, ')');
    return shk_strbuf_take(&sb);
}

static void speak(struct shk_clues *clues, const struct shk_term_scope *scope,
                  const struct shk_rule *rule, bool sure)
{
    int weight = sure || rule->weight < PERHAPS ? rule->weight : PERHAPS;
    bool specific = weight >= SPECIFIC && !only_settings(rule);
    if (sure || weight > 0)
        shk_clue_add(clues, rule->diagnosis, weight, specific, rule_text(scope, rule, sure));
}

void shk_clues_from_rules(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes)
{
    size_t count;
    const struct shk_rule *rules = shk_config_rules(config, &count);
    bool *probed = calloc(nodes + 1, sizeof *probed);
    clues->failed |= !probed;
    for (size_t n = 0; probed && n < nodes; n++)
        probed[n] = shk_facts_probed(facts[n]);
    for (size_t i = 0; probed && i < count; i++)
        for (size_t n = 0; n < nodes; n++) {
            const struct shk_term_scope scope = {config, facts[n], facts, nodes, true};
            int holds = rules[i].stated && probed[n] ? 0 : rule_holds(&scope, &rules[i]);
            if (holds) {
                speak(clues, &scope, &rules[i], holds > 0);
                break;
            }
        }
    free(probed);
}
