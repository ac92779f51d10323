/* The variables of the ranks: what is wrong in them whatever the node is like, and where ranks of
 * one job have different ones. */
#include "checks/base/check.h"
#include "checks/base/row.h"
#include "checks/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Different environments that are judged; those of a job are a handful once the numbers of its
 * ranks are out of them. */
enum { AUDIT_KINDS = 32, AUDIT_ROWS = 100, AUDIT_VARIABLES = 1024 };

static const char audit_source[] = "/proc/PID/environ";

/* Ranks with the same variables and libraries. */
struct audit_kind {
    json_t *variables; /* owned */
    const json_t *rank;
    json_t *ranks; /* owned */
};

struct audit {
    const struct hang_case *c;
    struct audit_kind kinds[AUDIT_KINDS];
    size_t count;
    bool full;
    json_t *names; /* variable -> {value -> [rank]}, null: not compared */
    size_t read;
};

json_t *hang_rank_json(const struct hang_place *place)
{
    return place->number >= 0    ? json_integer(place->number)
           : place->process >= 0 ? json_sprintf("process %ld", place->process)
                                 : json_null();
}

/* A value that says which device of the node is the rank's. */
static bool audit_is_device(const struct audit *a, const char *name)
{
    const struct shk_setting *setting = shk_config_setting(a->c->config, name);
    if (!setting || setting->mask != SHK_MASK_NONE)
        return true;
    switch (setting->grammar.type) {
    case SHK_VALUE_INTERFACES:
    case SHK_VALUE_HCAS:
    case SHK_VALUE_DEVICES: return true;
    default: break;
    }
    return setting->rule == SHK_RULE_PER_RANK || setting->rule == SHK_RULE_CXI_DEVICES ||
           setting->rule == SHK_RULE_RDMA_DEVICES || setting->rule == SHK_RULE_INTERFACES;
}

static void audit_value(json_t *values, const char *value, json_t *number)
{
    json_t *ranks = json_object_get(values, value);
    if (!ranks)
        json_object_set_new(values, value, ranks = json_array());
    json_array_append(ranks, number);
}

static json_t *audit_variables(struct audit *a, const json_t *rank, json_t *number)
{
    const char *name;
    json_t *value, *variables = json_object(), *environment = json_object_get(rank, "environment");
    json_object_foreach(environment, name, value)
    {
        if (!json_is_string(value) || json_object_size(variables) >= AUDIT_VARIABLES)
            continue;
        json_t *values = json_object_get(a->names, name);
        if (!values)
            json_object_set_new(a->names, name,
                                values =
                                    shk_env_own(a->c->config, name) ? json_null() : json_object());
        if (!json_is_object(values))
            continue;
        json_object_set(variables, name, value);
        audit_value(values, json_string_value(value), number);
    }
    return variables;
}

static bool audit_alike(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "versions"), *y = json_object_get(b, "versions");
    return (!x && !y) || (x && y && json_equal(x, y));
}

static void audit_add(struct audit *a, const struct hang_place *place)
{
    json_t *number = hang_rank_json(place);
    json_t *variables = audit_variables(a, place->rank, number);
    size_t k = 0;
    a->read++;
    while (k < a->count && !(json_equal(a->kinds[k].variables, variables) &&
                             audit_alike(a->kinds[k].rank, place->rank)))
        k++;
    if (k == a->count && k < AUDIT_KINDS) {
        a->kinds[k] = (struct audit_kind){
            .variables = json_incref(variables), .rank = place->rank, .ranks = json_array()};
        a->count++;
    }
    if (k < a->count)
        json_array_append(a->kinds[k].ranks, number);
    else
        a->full = true;
    json_decref(variables);
    json_decref(number);
}

static struct shk_facts *audit_facts(const struct audit_kind *kind)
{
    struct shk_facts *facts = shk_facts_create();
    const char *name, *path = NULL;
    json_t *value;
    int rc = facts ? shk_facts_text(facts, "probe.env.status", "ok", audit_source) : -ENOMEM;
    json_object_foreach(kind->variables, name, value)
    {
        char *key = shk_strf("env.%s", name);
        if (!rc && key) /* -EINVAL: no name that a library looks for */
            rc = shk_facts_present(facts, key, json_incref(value), NULL, audit_source) == -ENOMEM
                     ? -ENOMEM
                     : 0;
        free(key);
    }
    for (size_t i = 0; !rc && i < HANG_LIBRARIES; i++) {
        const char *version =
            hang_library_version(kind->rank, hang_library_known[i].library, &path);
        if (version)
            rc = shk_facts_text(facts, hang_library_known[i].version, version, path) ||
                         shk_facts_text(facts, hang_library_known[i].path, path, path)
                     ? -ENOMEM
                     : 0;
    }
    if (rc) {
        shk_facts_destroy(facts);
        return NULL;
    }
    shk_facts_freeze(facts);
    return facts;
}

/* Puts the ranks among those of the array, both in the order of their numbers. */
static void audit_merge(json_t *had, const json_t *ranks)
{
    size_t i, at = 0;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        while (at < json_array_size(had) &&
               json_integer_value(json_array_get(had, at)) < json_integer_value(rank))
            at++;
        json_array_insert(had, at, rank);
    }
}

/* The same row of other ranks gets these ranks as well. */
static void audit_row(const struct shk_finding *f, const json_t *ranks, json_t *settings)
{
    size_t i;
    json_t *row;
    json_t *fresh = json_pack("{s:s,s:s,s:s*,s:s*,s:s*,s:s*}", "name", f->setting, "verdict",
                              shk_verdict_name(f->verdict), "value", f->observed, "why", f->why,
                              "fix", f->fix, "advice", f->advice);
    json_array_foreach(settings, i, row)
    {
        json_t *had = json_object_get(row, "ranks"), *bare = json_copy(row);
        json_object_del(bare, "ranks");
        bool same = json_equal(bare, fresh);
        json_decref(bare);
        if (same) {
            audit_merge(had, ranks);
            json_decref(fresh);
            return;
        }
    }
    json_object_set_new(fresh, "ranks", json_copy((json_t *)ranks));
    if (json_array_size(settings) < AUDIT_ROWS)
        json_array_append_new(settings, fresh);
    else
        json_decref(fresh);
}

static int audit_judge(const struct audit *a, const struct audit_kind *kind, const bool *skip,
                       json_t *settings)
{
    struct shk_facts *facts = audit_facts(kind);
    struct shk_findings *findings = shk_findings_create();
    struct shk_check_context ctx = {
        .facts = facts,
        .config = a->c->config,
        .profile = shk_config_profile(a->c->config, "single-node"),
        .skip = skip,
        .profile_doubt = "the node was not examined",
    };
    int rc = facts && findings && ctx.profile ? shk_checks_run(&ctx, findings, NULL) : -ENOMEM;
    for (size_t i = 0; !rc && i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (f->verdict == SHK_WARN || f->verdict == SHK_FAIL)
            audit_row(f, kind->ranks, settings);
    }
    shk_findings_destroy(findings);
    shk_facts_destroy(facts);
    return rc;
}

static int audit_settings(const struct audit *a, json_t *settings)
{
    size_t count;
    const struct shk_check *const *checks = shk_checks(&count);
    bool *skip = calloc(count + 1, sizeof *skip);
    int rc = skip ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < count; i++)
        skip[i] =
            strcmp(checks[i]->id, "env.value") != 0 && strcmp(checks[i]->id, "env.conflict") != 0;
    for (size_t k = 0; !rc && k < a->count; k++)
        rc = audit_judge(a, &a->kinds[k], skip, settings);
    free(skip);
    return rc;
}

/* Ranks whose variables were read and do not have this one: {value: null, ranks}. NULL: there are
 * none. */
static json_t *audit_unset(const struct audit *a, const char *name)
{
    json_t *ranks = json_array();
    for (size_t i = 0; i < a->c->count; i++) {
        const json_t *rank = a->c->places[i].rank, *read = json_object_get(rank, "environment");
        size_t k;
        json_t *hidden;
        bool withheld = false;
        json_array_foreach(json_object_get(rank, "withheld"), k, hidden)
        {
            const char *text = json_string_value(hidden);
            withheld |= text && strcmp(text, name) == 0;
        }
        if (json_is_object(read) && !json_object_get(read, name) && !withheld)
            json_array_append_new(ranks, hang_rank_json(&a->c->places[i]));
    }
    json_t *unset = json_array_size(ranks) ? json_pack("{s:n,s:O}", "value", "ranks", ranks) : NULL;
    json_decref(ranks);
    return unset;
}

static void audit_difference(const struct audit *a, const char *name, const json_t *values,
                             json_t *differences)
{
    const char *value;
    json_t *ranks, *list = json_array();
    size_t most = 0;
    json_object_foreach((json_t *)values, value, ranks)
    {
        most = json_array_size(ranks) > most ? json_array_size(ranks) : most;
        json_array_append_new(list, json_pack("{s:s,s:O}", "value", value, "ranks", ranks));
    }
    json_t *unset = audit_unset(a, name);
    if (unset) {
        size_t count = json_array_size(json_object_get(unset, "ranks"));
        most = count > most ? count : most;
        json_array_append_new(list, unset);
    }
    bool tells = 2 * most > a->read || !audit_is_device(a, name);
    if (json_array_size(list) > 1 && tells && json_array_size(differences) < AUDIT_ROWS)
        json_array_append_new(differences, json_pack("{s:s,s:O}", "name", name, "values", list));
    json_decref(list);
}

int hang_audit(const struct hang_case *c, json_t **settings_p, json_t **differences_p)
{
    struct audit a = {.c = c, .names = json_object()};
    const char *name;
    json_t *values;
    *settings_p = json_array();
    *differences_p = json_array();
    for (size_t i = 0; i < c->count; i++)
        if (json_is_object(json_object_get(c->places[i].rank, "environment")))
            audit_add(&a, &c->places[i]);
    int rc = a.names && *settings_p && *differences_p ? audit_settings(&a, *settings_p) : -ENOMEM;
    json_object_foreach(a.names, name, values)
    {
        if (json_is_object(values))
            audit_difference(&a, name, values, *differences_p);
    }
    if (a.full)
        json_array_append_new(c->unknown, json_string("variables: the ranks have too many "
                                                      "different ones; not all were judged"));
    for (size_t k = 0; k < a.count; k++) {
        json_decref(a.kinds[k].variables);
        json_decref(a.kinds[k].ranks);
    }
    json_decref(a.names);
    return rc;
}
