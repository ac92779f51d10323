#include "core/facts/factparts.h"

#include "core/regex/regex.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTPART_MARK "\x1a"

/* Longest text that is taken out whole because it names the node, and shortest name. */
enum { FACTPART_PATH = 512, FACTPART_NAMING = 256, FACTPART_HOST = 3 };

/* A walk over one document that takes out what differs. */
struct parts_walk {
    const struct shk_diff_rule *rules;
    size_t rules_count;
    struct shk_regex **regexes; /* by rule; NULL: not needed yet */
    struct shk_regex_work *work;
    json_t *known; /* path -> index of its rule, -1: none */
    json_t *own;
    unsigned char *noise; /* by element of own */
    size_t noise_count;
    const char *host; /* host.name, NULL: too short to be told from other words */
    char path[FACTPART_PATH];
    struct shk_error *err;
};

static const struct shk_diff_rule *parts_rule(struct parts_walk *w)
{
    return shk_diff_aside_known(w->known, w->rules, w->rules_count, w->path);
}

/* Does a job's node say something else than another here? */
static bool parts_taken_out(const struct shk_diff_rule *rule)
{
    return rule && rule->differs != SHK_DIFF_DERIVED && !rule->job_wide && !rule->part;
}

static int parts_regex(struct parts_walk *w, const struct shk_diff_rule *rule,
                       struct shk_regex **regex_p)
{
    struct shk_error why = {""};
    size_t i = (size_t)(rule - w->rules);
    int rc = w->regexes[i] ? 0 : shk_regex_create(&w->regexes[i], rule->part, &why);
    if (rc)
        return shk_error_set(w->err, -rc, "%s: part: %s", rule->path, why.text);
    *regex_p = w->regexes[i];
    return 0;
}

/* Takes what the last group matches out of one line; the rest goes to out. False: a part that is no
 * whole characters, or a line that takes too long. */
static bool parts_line(struct parts_walk *w, struct shk_regex *regex, const char *line,
                       struct shk_strbuf *out)
{
    size_t len = strlen(line), at = 0, start, end;
    int rc = 0;
    while (at < len &&
           (rc = shk_regex_last_group(regex, w->work, line, len, at, &start, &end)) > 0 &&
           end > at && start >= at) {
        shk_strbuf_add(out, line + at, start - at);
        shk_strbuf_puts(out, FACTPART_MARK);
        if (json_array_append_new(w->own, json_stringn(line + start, end - start)))
            return false;
        at = end;
    }
    shk_strbuf_puts(out, line + at);
    return rc >= 0;
}

static int parts_text(struct parts_walk *w, const struct shk_diff_rule *rule, json_t *value,
                      json_t **value_p)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    size_t before = json_array_size(w->own);
    struct shk_regex *regex = NULL;
    char *copy = strdup(json_string_value(value));
    int rc = copy ? parts_regex(w, rule, &regex) : shk_error_sys(w->err, ENOMEM, "facts");
    bool whole = true;
    shk_strbuf_puts(&out, FACTPART_MARK);
    for (char *line = copy, *next; !rc && whole && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        whole = parts_line(w, regex, line, &out);
        if (next)
            shk_strbuf_putc(&out, '\n');
    }
    free(copy);
    if (!rc && whole && json_array_size(w->own) > before) {
        *value_p = json_string(shk_strbuf_text(&out));
        whole = *value_p;
    } else if (!rc) {
        whole = false;
    }
    if (!rc && !whole) {
        while (json_array_size(w->own) > before)
            json_array_remove(w->own, json_array_size(w->own) - 1);
        *value_p = json_incref(value);
    }
    rc = rc || !out.failed ? rc : shk_error_sys(w->err, ENOMEM, "facts");
    shk_strbuf_free(&out);
    return rc;
}

/* Is the node's name a word of this text? */
static bool parts_names_host(const struct parts_walk *w, const char *text)
{
    size_t len = w->host && strlen(text) <= FACTPART_NAMING ? strlen(w->host) : 0;
    for (const char *at = text; len && (at = strstr(at, w->host)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[len]))
            return true;
    return false;
}

static int parts_value(struct parts_walk *w, json_t *value, json_t **value_p);

static int parts_object(struct parts_walk *w, json_t *value, json_t **value_p)
{
    size_t len = strlen(w->path);
    const char *key;
    json_t *item, *out = json_object();
    int rc = out ? 0 : shk_error_sys(w->err, ENOMEM, "facts");
    json_object_foreach(value, key, item)
    {
        json_t *part = NULL;
        snprintf(w->path + len, sizeof w->path - len, ".%s", key);
        rc = rc ? rc : parts_value(w, item, &part);
        w->path[len] = '\0';
        if (!rc && json_object_set_new(out, key, part))
            rc = shk_error_sys(w->err, ENOMEM, "facts");
    }
    *value_p = out;
    return rc;
}

static int parts_array(struct parts_walk *w, json_t *value, json_t **value_p)
{
    size_t i;
    json_t *item, *out = json_array();
    int rc = out ? 0 : shk_error_sys(w->err, ENOMEM, "facts");
    json_array_foreach(value, i, item)
    {
        json_t *part = NULL;
        rc = rc ? rc : parts_value(w, item, &part);
        if (!rc && json_array_append_new(out, part))
            rc = shk_error_sys(w->err, ENOMEM, "facts");
    }
    *value_p = out;
    return rc;
}

/* The element at `n` of own is a measurement. */
static int parts_noise(struct parts_walk *w, size_t n, int percent)
{
    unsigned char *more = realloc(w->noise, n + 1);
    if (!more)
        return shk_error_sys(w->err, ENOMEM, "facts");
    memset(more + w->noise_count, 0, n - w->noise_count);
    more[n] = (unsigned char)percent;
    w->noise = more;
    w->noise_count = n + 1;
    return 0;
}

/* Leaves a mark for a whole value. */
static int parts_own(struct parts_walk *w, const struct shk_diff_rule *rule, json_t *value,
                     json_t **value_p)
{
    size_t n = json_array_size(w->own);
    *value_p = json_string(FACTPART_MARK);
    if (!*value_p || json_array_append(w->own, value))
        return shk_error_sys(w->err, ENOMEM, "facts");
    return rule && rule->differs == SHK_DIFF_NOISE ? parts_noise(w, n, rule->percent) : 0;
}

static int parts_value(struct parts_walk *w, json_t *value, json_t **value_p)
{
    const struct shk_diff_rule *rule = parts_rule(w);
    const char *text = json_string_value(value);
    /* A character that marks is never left where it could be taken for a mark. */
    bool marks = text && (strlen(text) != json_string_length(value) || strchr(text, 0x1a));
    if (parts_taken_out(rule) || marks || (text && parts_names_host(w, text)))
        return parts_own(w, parts_taken_out(rule) ? rule : NULL, value, value_p);
    if (text && rule && rule->part && rule->differs != SHK_DIFF_COMPARE)
        return parts_text(w, rule, value, value_p);
    if (json_is_object(value))
        return parts_object(w, value, value_p);
    if (json_is_array(value))
        return parts_array(w, value, value_p);
    *value_p = json_incref(value);
    return 0;
}

/* Of a source or reason: numbers in it differ where the value does. */
static bool parts_words_differ(const struct parts_walk *w, const char *text, bool value_differs)
{
    return strchr(text, 0x1a) || (value_differs && strpbrk(text, "0123456789")) ||
           parts_names_host(w, text);
}

/* {state, value, unit, source, reason} of one fact. */
static int parts_entry(struct parts_walk *w, const char *fact, json_t *entry, json_t **entry_p)
{
    const char *member;
    json_t *item, *out = json_object();
    int rc = out ? 0 : shk_error_sys(w->err, ENOMEM, "facts");
    snprintf(w->path, sizeof w->path, "%s", fact);
    bool whole = parts_taken_out(parts_rule(w));
    json_object_foreach(entry, member, item)
    {
        const char *text = json_string_value(item);
        json_t *part = NULL;
        if (rc)
            break;
        if (strcmp(member, "value") == 0)
            rc = parts_value(w, item, &part);
        else if (text && parts_words_differ(w, text, whole))
            rc = parts_own(w, NULL, item, &part);
        else
            part = json_incref(item);
        if (!rc && json_object_set_new(out, member, part))
            rc = shk_error_sys(w->err, ENOMEM, "facts");
    }
    *entry_p = out;
    return rc;
}

static int parts_add(struct shk_factparts *parts, const char *name, size_t name_len,
                     const json_t *section, struct shk_error *err)
{
    struct shk_factpart *part = &parts->sections[parts->count];
    part->name = strndup(name, name_len);
    part->text = json_dumps(section, JSON_COMPACT);
    parts->count++;
    if (!part->name || !part->text)
        return shk_error_sys(err, ENOMEM, "facts");
    part->len = strlen(part->text);
    part->digest = shk_digest_of(part->text, part->len);
    return 0;
}

/* Goes through facts in the order of their keys; a section ends where the first word changes. */
static int parts_sections(struct parts_walk *w, struct shk_factparts *parts, json_t *table)
{
    const char *key;
    json_t *entry, *section = NULL;
    char name[SHK_FACTPARTS_MAX_NAME + 1] = "";
    int rc = 0;
    parts->sections = calloc(json_object_size(table) + 1, sizeof *parts->sections);
    if (!parts->sections)
        return shk_error_sys(w->err, ENOMEM, "facts");
    json_object_foreach(table, key, entry)
    {
        size_t len = strcspn(key, ".");
        json_t *part = NULL;
        if (section && (strlen(name) != len || memcmp(name, key, len) != 0)) {
            rc = parts_add(parts, name, strlen(name), section, w->err);
            json_decref(section);
            section = NULL;
        }
        snprintf(name, sizeof name, "%.*s", (int)len, key);
        if (!section && !(section = json_object()))
            rc = shk_error_sys(w->err, ENOMEM, "facts");
        rc = rc ? rc : parts_entry(w, key, entry, &part);
        if (rc || json_object_set_new(section, key, part))
            rc = rc ? rc : shk_error_sys(w->err, ENOMEM, "facts");
        if (rc)
            break;
    }
    if (!rc && section)
        rc = parts_add(parts, name, strlen(name), section, w->err);
    json_decref(section);
    return rc;
}

/* A copy of the facts whose objects have sorted keys, at every depth. */
static json_t *parts_sorted(const struct shk_facts *facts)
{
    json_t *doc = shk_facts_to_json(facts);
    char *text = json_dumps(json_object_get(doc, "facts"), JSON_COMPACT | JSON_SORT_KEYS);
    json_t *sorted = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    free(text);
    json_decref(doc);
    return sorted;
}

int shk_factparts_split(struct shk_factparts *parts, const struct shk_facts *facts,
                        const struct shk_diff_rule *rules, size_t rules_count,
                        struct shk_error *err)
{
    struct parts_walk w = {
        .rules = rules,
        .rules_count = rules_count,
        .regexes = calloc(rules_count + 1, sizeof *w.regexes),
        .work = shk_regex_work_create(),
        .known = json_object(),
        .own = json_array(),
        .err = err,
    };
    json_t *table = parts_sorted(facts);
    w.host = shk_facts_get_text(facts, "host.name");
    if (w.host && strlen(w.host) < FACTPART_HOST)
        w.host = NULL;
    *parts = (struct shk_factparts){0};
    int rc = w.regexes && w.work && w.known && w.own && table ? parts_sections(&w, parts, table)
                                                              : shk_error_sys(err, ENOMEM, "facts");
    if (!rc) {
        parts->own = json_dumps(w.own, JSON_COMPACT | JSON_SORT_KEYS);
        parts->own_len = parts->own ? strlen(parts->own) : 0;
        rc = parts->own ? 0 : shk_error_sys(err, ENOMEM, "facts");
    }
    parts->noise = w.noise;
    parts->noise_count = w.noise_count;
    for (size_t i = 0; w.regexes && i < rules_count; i++)
        shk_regex_destroy(w.regexes[i]);
    free(w.regexes);
    shk_regex_work_destroy(w.work);
    json_decref(w.known);
    json_decref(w.own);
    json_decref(table);
    return rc;
}

void shk_factparts_clear(struct shk_factparts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        free(parts->sections[i].name);
        free(parts->sections[i].text);
    }
    free(parts->sections);
    free(parts->own);
    free(parts->noise);
    *parts = (struct shk_factparts){0};
}
