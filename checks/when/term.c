/* One term of `when:`: does it hold for a node, among the nodes? */
#include "checks/when/term.h"

#include "checks/base/row.h"
#include "checks/log/log.h"
#include "checks/value/grammar.h"
#include "core/regex/pattern.h"

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

enum shk_look shk_term_setting(const struct shk_term_scope *scope, const char *name,
                               const char **value_p)
{
    const struct shk_check_context ctx = {.config = scope->config, .facts = scope->facts};
    *value_p = scope->logs ? shk_log_env(scope->config, scope->facts, name) : NULL;
    return *value_p ? SHK_LOOK_PRESENT : shk_look_setting(&ctx, name, value_p);
}

/* As the setting's grammar reads them; of a fact, letter by letter. */
static bool same_value(const struct shk_term_scope *scope, const char *setting, const char *a,
                       const char *b)
{
    static const struct shk_grammar plain = {.type = SHK_VALUE_STRING};
    const struct shk_setting *row = setting ? shk_config_setting(scope->config, setting) : NULL;
    return shk_grammar_same(row ? &row->grammar : &plain, a, b);
}

static bool is_one_of(const struct shk_term_scope *scope, const struct shk_term *term,
                      const char *const *values, const char *value)
{
    for (; *values; values++)
        if (same_value(scope, term->setting, *values, value))
            return true;
    return false;
}

/* Against the value of another setting: one that is not set has none. */
static int compares(const struct shk_term_scope *scope, const struct shk_term *term,
                    const char *value)
{
    const char *other = NULL;
    switch (shk_term_setting(scope, term->same_as ? term->same_as : term->differs_from, &other)) {
    case SHK_LOOK_PRESENT:
        return term->same_as ? among(other, value)
                             : !same_value(scope, term->setting, other, value);
    case SHK_LOOK_ABSENT: return 0;
    default: return -1;
    }
}

/* The test of a term on a value that is known. */
static int value_fits(const struct shk_term_scope *scope, const struct shk_term *term,
                      const char *value)
{
    if (term->same_as || term->differs_from)
        return compares(scope, term, value);
    if (term->in || term->not_in) {
        int known = names_known(scope->facts, term->in ? term->in : term->not_in, term->in_member,
                                value, term->setting != NULL);
        return known < 0 || term->in ? known : !known;
    }
    if (term->is || term->is_not)
        return is_one_of(scope, term, term->is ? term->is : term->is_not, value) == !!term->is;
    if (term->matches)
        return shk_pattern_matches(term->matches, value);
    if (term->matches_not || term->lacks)
        return !shk_pattern_matches(term->lacks ? term->lacks : term->matches_not, value);
    return term->set;
}

static int setting_holds(const struct shk_term_scope *scope, const struct shk_term *term)
{
    const char *value = NULL;
    switch (shk_term_setting(scope, term->setting, &value)) {
    case SHK_LOOK_PRESENT: return term->unset ? 0 : value_fits(scope, term, value);
    case SHK_LOOK_ABSENT: return term->unset || term->lacks;
    default: return -1;
    }
}

/* Of the elements of a list: one of them, or (`every`) all; `lacks` and the like: all. */
static int member_holds(const struct shk_term_scope *scope, const struct shk_term *term)
{
    bool gap = false;
    json_t *texts = texts_of(scope->facts, term->fact, term->member, &gap), *text;
    size_t i, fit = 0, unfit = 0, count = json_array_size(texts);
    bool all = term->every || term->lacks || term->matches_not || term->is_not;
    if (!texts)
        return -1;
    json_array_foreach(texts, i, text)
    {
        int one = value_fits(scope, term, json_string_value(text));
        fit += one > 0;
        unfit += one == 0;
    }
    json_decref(texts);
    gap |= fit + unfit < count;
    if (all)
        return unfit ? 0 : gap ? -1 : count > 0;
    return fit ? 1 : gap ? -1 : 0;
}

char *shk_term_value(const struct shk_term_scope *scope, const struct shk_term *term)
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
        if (!value && value_fits(scope, term, json_string_value(text)) > 0)
            value = strdup(json_string_value(text));
    }
    json_decref(texts);
    return value;
}

/* A fact of any type, as text; an array or object as JSON. Absent is the empty text. */
static int fact_holds(const struct shk_term_scope *scope, const struct shk_term *term)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(scope->facts, term->fact, &fact);
    bool present = look == SHK_LOOK_PRESENT;
    if (!present && look != SHK_LOOK_ABSENT)
        return -1;
    if (term->present || term->absent)
        return present == term->present;
    if (term->member)
        return member_holds(scope, term);
    if (!present)
        return term->is_not || term->matches_not ? 0 : value_fits(scope, term, "");
    char *text = text_of(fact.value);
    int holds = text ? value_fits(scope, term, text) : -1;
    free(text);
    return holds;
}

/* How often it was seen. */
static int count_fits(const struct shk_facts *facts, const struct shk_term *term, long long lines)
{
    long long most = 0;
    if (lines < term->lines || (term->at_most && lines > term->at_most))
        return 0;
    if (term->fewer_than && shk_look_int(facts, term->fewer_than, &most) != SHK_LOOK_PRESENT)
        return -1;
    return !term->fewer_than || lines < most;
}

static int log_holds(const struct shk_term_scope *scope, const struct shk_term *term)
{
    json_t *entry = shk_log_seen(scope->facts, term->log), *tuple;
    size_t i;
    long long lines = 1;
    if (!entry)
        return shk_log_given(scope->facts) ? 0 : -1;
    (void)shk_look_member_int(entry, "lines", &lines);
    int holds = count_fits(scope->facts, term, lines);
    if (holds <= 0 || !term->capture)
        return holds;
    holds = 0;
    json_array_foreach(json_object_get(entry, "captures"), i, tuple)
    {
        const char *value = shk_log_captured(tuple, term->capture);
        int one = value ? value_fits(scope, term, value) : 0;
        if (one > 0)
            return 1;
        holds = one < 0 ? -1 : holds;
    }
    return holds;
}

static int nodes_differ(const struct shk_term_scope *scope, const struct shk_term *term)
{
    json_t *first = NULL;
    bool differ = false, unread = false;
    for (size_t i = 0; i < scope->nodes && !differ; i++) {
        bool gap;
        json_t *texts = texts_of(scope->all[i], term->differs, term->member, &gap);
        if (!texts || gap) {
            unread = true;
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
    return differ ? 1 : unread ? -1 : 0;
}

int shk_term_holds(const struct shk_term_scope *scope, const struct shk_term *term)
{
    if (term->differs)
        return nodes_differ(scope, term);
    if (term->log)
        return log_holds(scope, term);
    if (term->no_log)
        return shk_log_given(scope->facts) ? !shk_log_seen(scope->facts, term->no_log) : -1;
    return term->setting ? setting_holds(scope, term) : fact_holds(scope, term);
}
