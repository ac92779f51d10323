/* One term of a rule: does it hold for a node, among the nodes? */
#include "checks/cause/term.h"

#include "checks/base/row.h"
#include "checks/log/log.h"
#include "core/text/pattern.h"

#include <stdlib.h>
#include <string.h>

/* A value as text: a string as it is, anything else as JSON. New string; NULL: out of memory. */
static char *text_of(const json_t *value)
{
    return json_is_string(value) ? strdup(json_string_value(value))
                                 : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* The values at the end of a path, through arrays, as an array of texts; *gap_p: an element lacks
 * it, or could not be read. */
static void collect(const json_t *value, const char *path, json_t *out, bool *gap_p)
{
    size_t i, len = path ? strcspn(path, ".") : 0;
    json_t *item;
    if (json_is_array(value)) {
        json_array_foreach((json_t *)value, i, item) collect(item, path, out, gap_p);
        return;
    }
    if (!len) {
        char *text = json_is_null(value) ? NULL : text_of(value);
        *gap_p |= !text;
        if (text)
            json_array_append_new(out, json_string(text));
        free(text);
        return;
    }
    json_t *member = json_object_getn(value, path, len);
    if (member)
        collect(member, path[len] ? path + len + 1 : NULL, out, gap_p);
    else
        *gap_p = true;
}

/* Texts of a member of a fact; NULL when the fact is not there, empty when it is known to be
 * absent. */
static json_t *texts_of(const struct shk_facts *facts, const char *key, const char *member,
                        bool *gap_p)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(facts, key, &fact);
    *gap_p = false;
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT)
        return NULL;
    json_t *out = json_array();
    if (out && look == SHK_LOOK_PRESENT)
        collect(fact.value, member, out, gap_p);
    return out;
}

/* Is the name a value of the member, or (`start`) the beginning of one? */
static bool known_name(const json_t *texts, const char *name, size_t len, bool start)
{
    size_t i;
    json_t *text;
    json_array_foreach((json_t *)texts, i, text)
    {
        const char *have = json_string_value(text);
        if (strncmp(have, name, len) == 0 && (start || have[len] == '\0'))
            return true;
    }
    return false;
}

/* Are the names of a list all among the values of `in`? 1 yes, 0 no, -1 cannot tell. */
static int names_known(const struct shk_facts *facts, const char *key, const char *member,
                       const char *list, bool setting)
{
    bool gap, exact = !setting || *list == '=';
    json_t *texts = *list == '^' ? NULL : texts_of(facts, key, member, &gap);
    int all = texts && *list ? 1 : -1;
    for (const char *p = list + (*list == '='); texts && *p; p += *p == ',') {
        size_t item = strcspn(p, ","), len = strcspn(p, ":,");
        if (len && !known_name(texts, p, len, !exact) && all > 0)
            all = gap ? -1 : 0;
        p += item;
    }
    json_decref(texts);
    return all;
}

static bool among(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list + strspn(list, "^="); *p; p += *p == ',') {
        size_t item = strcspn(p, ",");
        if (len == strcspn(p, ":,") && strncmp(p, name, len) == 0)
            return true;
        p += item;
    }
    return false;
}

/* The test of a term on a value that is known. */
static bool value_fits(const struct shk_rule_scope *scope, const struct shk_rule_term *term,
                       const char *value)
{
    const char *other =
        term->same_as ? shk_log_env(scope->config, scope->facts, term->same_as) : NULL;
    if (term->same_as)
        return other && among(other, value);
    if (term->in)
        return names_known(scope->facts, term->in, term->in_member, value, term->setting != NULL) ==
               1;
    if (term->not_in)
        return names_known(scope->facts, term->not_in, term->in_member, value,
                           term->setting != NULL) == 0;
    if (term->matches)
        return shk_pattern_matches(term->matches, value);
    return term->lacks ? !shk_pattern_matches(term->lacks, value) : term->set;
}

/* -1: it should not be set, and nobody knows whether it is. */
static int setting_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    const char *value = shk_log_env(scope->config, scope->facts, term->setting), *told = NULL;
    if (value)
        return !term->unset && value_fits(scope, term, value);
    if (!term->unset)
        return 0;
    enum shk_look look = shk_look_env(scope->facts, term->setting, &told);
    return look == SHK_LOOK_ABSENT ? 1 : look == SHK_LOOK_MISSING ? -1 : 0;
}

static bool member_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    bool gap = false;
    json_t *texts = texts_of(scope->facts, term->fact, term->member, &gap), *text;
    size_t i, fit = 0, count = json_array_size(texts);
    bool all = term->every || term->lacks;
    json_array_foreach(texts, i, text) fit += value_fits(scope, term, json_string_value(text));
    json_decref(texts);
    return all ? count && fit == count && !gap : fit > 0;
}

char *shk_rule_term_value(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    bool gap = false;
    size_t i;
    json_t *text;
    char *value = NULL;
    if (!term->fact || !term->member || !term->matches)
        return NULL;
    json_t *texts = texts_of(scope->facts, term->fact, term->member, &gap);
    json_array_foreach(texts, i, text)
    {
        if (!value && value_fits(scope, term, json_string_value(text)))
            value = strdup(json_string_value(text));
    }
    json_decref(texts);
    return value;
}

/* A fact of any type, as text; an array or object as JSON. Absent is the empty text. */
static bool fact_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(scope->facts, term->fact, &fact);
    if (term->present || term->absent)
        return look == (term->present ? SHK_LOOK_PRESENT : SHK_LOOK_ABSENT);
    if (term->member)
        return member_holds(scope, term);
    if (look == SHK_LOOK_ABSENT)
        return value_fits(scope, term, "");
    if (look != SHK_LOOK_PRESENT)
        return false;
    char *text = text_of(fact.value);
    bool holds = text && value_fits(scope, term, text);
    free(text);
    return holds;
}

/* How often it was seen. */
static bool count_fits(const struct shk_facts *facts, const struct shk_rule_term *term,
                       long long lines)
{
    long long most = 0;
    if (term->fewer_than && shk_look_int(facts, term->fewer_than, &most) != SHK_LOOK_PRESENT)
        return false;
    return lines >= term->lines && (!term->at_most || lines <= term->at_most) &&
           (!term->fewer_than || lines < most);
}

static bool log_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    json_t *entry = shk_log_seen(scope->facts, term->log), *tuple;
    size_t i;
    long long lines = 1;
    if (entry)
        (void)shk_look_member_int(entry, "lines", &lines);
    if (!entry || !count_fits(scope->facts, term, lines))
        return false;
    if (!term->capture)
        return true;
    json_array_foreach(json_object_get(entry, "captures"), i, tuple)
    {
        const char *value = shk_log_captured(tuple, term->capture);
        if (value && value_fits(scope, term, value))
            return true;
    }
    return false;
}

static bool nodes_differ(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    json_t *first = NULL;
    bool differ = false, gap;
    for (size_t i = 0; i < scope->nodes && !differ; i++) {
        json_t *texts = texts_of(scope->all[i], term->differs, term->member, &gap);
        if (!texts || gap) {
            json_decref(texts);
            continue;
        }
        differ = first && !json_equal(first, texts);
        if (first)
            json_decref(texts);
        else
            first = texts;
    }
    json_decref(first);
    return differ;
}

int shk_rule_term_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term)
{
    const struct shk_facts *facts = scope->facts;
    if (term->differs)
        return nodes_differ(scope, term);
    if (term->log)
        return log_holds(scope, term);
    if (term->no_log)
        return shk_log_given(facts) && !shk_log_seen(facts, term->no_log);
    return term->setting ? setting_holds(scope, term) : fact_holds(scope, term);
}
