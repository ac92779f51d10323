/* Nodes of one kind against their majority. */
#include "checks/base/remedy.h"
#include "checks/base/row.h"
#include "core/facts/factdiff.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_check compare_check = {.id = "nodes.agree", .family = "nodes"};

/* More rows than this say no more than that the nodes are not alike. */
enum { COMPARE_ROWS = 40 };

struct compare {
    struct shk_check_context context; /* of the rows: the catalogue, no facts */
    const struct shk_diff_rule *rules;
    size_t rules_count;
    size_t nodes;    /* that the facts stand for */
    json_t *names;   /* of all facts */
    json_t *weights; /* name -> how many nodes it stands for, when not one */
    struct compare_point *points;
    size_t count;
};

/* What some nodes say at one place. */
struct compare_side {
    char *text;
    json_t *names; /* owned */
    size_t count;
    bool unread, unset; /* unset: a variable that is not set */
    json_t *value;      /* a number; NULL: not one. Borrowed */
};

/* One place where nodes differ, or may differ. */
struct compare_point {
    const char *path, *plain, *fact; /* borrowed from the rows of the diff */
    struct compare_side *sides;
    size_t sides_count;
    size_t read, majority; /* sides that were read; index of the one that most nodes have */
    size_t alike;          /* further elements of the array with the same difference */
    char *mark;            /* equal for elements that differ in the same way on the same nodes */
    json_t *odd;           /* names outside the majority, or that were not read */
    bool gone;             /* told with another one */
};

static bool compare_is_element(const char *path)
{
    size_t len = strlen(path);
    return len && path[len - 1] == ']';
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* No such variable is set, no such element is there; anything else that is missing was not read. */
static const char *compare_nothing(const char *path)
{
    if (starts(path, "env."))
        return "not set";
    return compare_is_element(path) ? "none" : NULL;
}

static char *compare_value(const json_t *side, const char *path)
{
    json_t *value = json_object_get(side, "value");
    const char *unit = shk_member_name(side, "unit");
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_object(value) && compare_is_element(path))
        return strdup("there");
    if (json_is_integer(value) && json_integer_value(value) == -1 && starts(path, "limits."))
        return strdup("unlimited");
    if (json_is_integer(value) && strcmp(unit, "B") == 0)
        return shk_bytes_text(json_integer_value(value));
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "yes" : "no");
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text && strlen(text) > 120)
        strcpy(text + 117, "...");
    return text;
}

static struct compare_side compare_side(const json_t *side, const char *path)
{
    struct compare_side out = {.names = json_array()};
    const char *state = json_string_value(json_object_get(side, "state"));
    const char *nothing = compare_nothing(path);
    if (state && strcmp(state, "present") == 0 && json_is_integer(json_object_get(side, "value")))
        out.value = json_object_get(side, "value");
    if (state && strcmp(state, "present") == 0)
        out.text = compare_value(side, path);
    else if (state && strcmp(state, "absent") == 0)
        out.text = strdup(nothing ? nothing : "none");
    else if (!state && nothing)
        out.text = strdup(nothing);
    else
        out.unread = true;
    out.unset = nothing && !out.unread && (!state || strcmp(state, "present") != 0);
    if (out.unread)
        out.text = strdup("not read");
    return out;
}

static size_t compare_count(const struct compare *c, const json_t *names)
{
    size_t count = 0, i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        const json_t *weight = json_object_get(c->weights, json_string_value(name));
        count += weight ? (size_t)json_integer_value(weight) : 1;
    }
    return count;
}

static struct compare_side *compare_same(struct compare_point *p, const struct compare_side *side)
{
    for (size_t i = 0; i < p->sides_count; i++)
        if (p->sides[i].unread == side->unread && p->sides[i].unset == side->unset &&
            (side->unread || strcmp(p->sides[i].text, side->text) == 0))
            return &p->sides[i];
    return NULL;
}

static void compare_side_free(struct compare_side *side)
{
    free(side->text);
    json_decref(side->names);
}

static void compare_add_side(const struct compare *c, struct compare_point *p, const json_t *row)
{
    struct compare_side side = compare_side(json_object_get(row, "b"), p->path);
    json_t *names = json_object_get(row, "nodes");
    struct compare_side *same = side.text ? compare_same(p, &side) : NULL;
    if (same || !side.text) {
        compare_side_free(&side);
    } else {
        same = &p->sides[p->sides_count++];
        *same = side;
    }
    if (same) {
        json_array_extend(same->names, names);
        same->count += compare_count(c, names);
    }
}

/* The first node's side is also that of all nodes which no row names. */
static void compare_first_side(const struct compare *c, struct compare_point *p, const json_t *rows,
                               size_t at, size_t end)
{
    json_t *others = json_object(), *name;
    size_t i;
    for (; at < end; at++)
        json_array_foreach(json_object_get(json_array_get(rows, at), "nodes"), i, name)
            json_object_set_new(others, json_string_value(name), json_true());
    json_t *names = json_array();
    json_array_foreach(c->names, i, name)
    {
        if (!json_object_get(others, json_string_value(name)))
            json_array_append(names, name);
    }
    p->sides[0].count += compare_count(c, names);
    json_array_extend(p->sides[0].names, names);
    json_decref(names);
    json_decref(others);
}

/* The side that most nodes have, of those that were read; the first node's among equals. */
static void compare_majority(struct compare_point *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->sides_count; i++) {
        p->read += !p->sides[i].unread;
        if (!p->sides[i].unread && p->sides[i].count > most) {
            most = p->sides[i].count;
            p->majority = i;
        }
    }
    for (size_t i = 0; i < p->sides_count; i++)
        if (p->read > 1 ? i != p->majority && !p->sides[i].unread : p->sides[i].unread)
            json_array_extend(p->odd, p->sides[i].names);
}

/* Elements of one array that are there or not, or that have the same two values. */
static char *compare_mark(const struct compare_point *p)
{
    struct shk_strbuf mark = SHK_STRBUF_INIT;
    char *odd = json_dumps(p->odd, JSON_COMPACT);
    shk_strbuf_printf(&mark, "%s\n%s", p->plain, odd ? odd : "");
    for (size_t i = 0; !compare_is_element(p->path) && i < p->sides_count; i++)
        shk_strbuf_printf(&mark, "\n%s", p->sides[i].text);
    free(odd);
    return shk_strbuf_take(&mark);
}

/* The point of rows [at, end): all have one path. */
static int compare_point(struct compare *c, const json_t *rows, size_t at, size_t end)
{
    const json_t *row = json_array_get(rows, at);
    struct compare_point *p = &c->points[c->count];
    *p = (struct compare_point){.path = json_string_value(json_object_get(row, "path")),
                                .plain = json_string_value(json_object_get(row, "plain")),
                                .fact = json_string_value(json_object_get(row, "fact")),
                                .sides = calloc(end - at + 1, sizeof *p->sides),
                                .odd = json_array()};
    c->count++;
    if (!p->sides || !p->odd)
        return -ENOMEM;
    p->sides[0] = compare_side(json_object_get(row, "a"), p->path);
    if (!p->sides[0].text)
        return -ENOMEM;
    p->sides_count = 1;
    for (size_t i = at; i < end; i++)
        compare_add_side(c, p, json_array_get(rows, i));
    compare_first_side(c, p, rows, at, end);
    compare_majority(p);
    p->mark = compare_mark(p);
    return p->mark ? 0 : -ENOMEM;
}

static int compare_points(struct compare *c, const json_t *rows)
{
    size_t n = json_array_size(rows), end;
    int rc = 0;
    c->points = calloc(n + 1, sizeof *c->points);
    if (!c->points)
        return -ENOMEM;
    for (size_t at = 0; at < n && !rc; at = end) {
        const char *path = json_string_value(json_object_get(json_array_get(rows, at), "path"));
        for (end = at + 1; end < n; end++)
            if (strcmp(json_string_value(json_object_get(json_array_get(rows, end), "path")),
                       path) != 0)
                break;
        rc = compare_point(c, rows, at, end);
    }
    return rc;
}

/* Further elements with the same difference are counted at the first. */
static void compare_fold(struct compare *c)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = i + 1; !c->points[i].gone && k < c->count; k++) {
            if (c->points[k].gone || strcmp(c->points[i].mark, c->points[k].mark) != 0)
                continue;
            c->points[k].gone = true;
            c->points[i].alike++;
        }
    }
}

static bool compare_within(const json_t *names, const json_t *all)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
    {
        if (!shk_array_has(all, json_string_value(name), false))
            return false;
    }
    return true;
}

/* Does the difference at `p` follow from that at `other`? */
static bool compare_follows(const struct compare *c, const struct compare_point *p,
                            const struct compare_point *other)
{
    const struct shk_diff_rule *rule = shk_diff_agree_rule(c->rules, c->rules_count, p->plain);
    if (p == other || other->gone || strcmp(p->plain, other->plain) == 0)
        return false;
    for (const char *const *f = rule ? rule->follows : NULL; f && *f; f++)
        if (fnmatch(*f, other->plain, FNM_NOESCAPE) == 0 && compare_within(p->odd, other->odd))
            return true;
    return false;
}

static void compare_drop_effects(struct compare *c)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->count && !c->points[i].gone; k++)
            c->points[i].gone = compare_follows(c, &c->points[i], &c->points[k]);
}

/* "rdma.devices[mlx5_0 and 9 more].fw" */
static char *compare_setting(const struct compare_point *p)
{
    size_t len = strcspn(p->path, "]");
    return p->alike ? shk_strf("%.*s and %zu more%s", (int)len, p->path, p->alike, p->path + len)
                    : strdup(p->path);
}

/* The line that makes a variable what most nodes have. */
static void compare_fix(struct shk_row *row, const struct compare_point *p,
                        const struct shk_diff_rule *rule)
{
    const struct compare_side *common = &p->sides[p->majority];
    const char *name = p->fact + strlen("env.");
    bool variable = starts(p->fact, "env.") && !starts(p->fact, "env.file.");
    if (rule && (rule->fix || rule->advice))
        shk_row_remedy(row, rule->fix, rule->advice);
    else if (variable && !common->unset)
        shk_row_fix(row, "set-value", "name", name, "value", common->text, NULL);
    else if (variable)
        shk_row_fix(row, "unset", "name", name, NULL);
}

/* -1 of a limit is no limit. */
static long long compare_amount(const struct compare_side *side)
{
    long long amount = json_integer_value(side->value);
    return amount < 0 ? LLONG_MAX : amount;
}

/* Has every node outside the majority less? */
static bool compare_less(const struct compare_point *p)
{
    const struct compare_side *common = &p->sides[p->majority];
    bool less = common->value != NULL;
    for (size_t i = 0; less && i < p->sides_count; i++) {
        const struct compare_side *side = &p->sides[i];
        if (i != p->majority && !side->unread)
            less = side->value && compare_amount(side) < compare_amount(common);
    }
    return less;
}

/* Has every node a limit? Of two, one of which has none, the other one's own row judges its limit.
 */
static bool compare_limited(const struct compare_point *p)
{
    for (size_t i = 0; i < p->sides_count; i++)
        if (!p->sides[i].unread &&
            (!p->sides[i].value || compare_amount(&p->sides[i]) == LLONG_MAX))
            return false;
    return true;
}

static void compare_differs(const struct compare *c, const struct compare_point *p,
                            const struct shk_diff_rule *rule, struct shk_row *row, json_t *names)
{
    const struct compare_side *common = &p->sides[p->majority], *odd = NULL;
    size_t outside = 0, unread = 0;
    for (size_t i = 0; i < p->sides_count; i++) {
        if (p->sides[i].unread)
            unread += p->sides[i].count;
        else if (i != p->majority)
            outside += p->sides[i].count;
        if (!odd && i != p->majority && !p->sides[i].unread)
            odd = &p->sides[i];
    }
    bool majority = common->count > outside;
    bool fails = rule && (rule->fails_jobs ||
                          (rule->less_fails && (majority ? compare_less(p) : compare_limited(p))));
    shk_row_verdict(row, fails ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->scope = SHK_SCOPE_NODE; /* one launch: what differs came from the node */
    row->diagnosis = rule ? rule->diagnosis : NULL;
    if (!majority) { /* no side is the odd one: every node is named */
        row->scope = SHK_SCOPE_LAUNCH;
        json_array_extend(names, common->names);
        json_array_extend(names, p->odd);
        shk_row_text(&row->observed, "%s or %s%s", common->text, odd->text,
                     p->read > 2 ? ", among others" : "");
        shk_row_text(&row->expected, "the same on every node");
    } else {
        json_array_extend(names, p->odd);
        shk_row_text(&row->observed, "%s%s", odd->text, p->read > 2 ? ", among others" : "");
        shk_row_text(&row->expected, "%s, as on %zu of %zu nodes", common->text, common->count,
                     c->nodes);
        compare_fix(row, p, rule);
    }
    shk_row_text(&row->why, "%s%s", rule ? rule->why : "nodes of one job should agree here",
                 unread ? "; it was not read on every node" : "");
}

static void compare_unread(const struct compare *c, const struct compare_point *p,
                           struct shk_row *row)
{
    size_t unread = 0;
    for (size_t i = 0; i < p->sides_count; i++)
        unread += p->sides[i].unread ? p->sides[i].count : 0;
    shk_row_text(&row->why, "it was not read on %zu of %zu nodes", unread, c->nodes);
}

static void compare_row(const struct compare *c, const struct compare_point *p,
                        struct shk_findings *findings)
{
    const struct shk_diff_rule *rule = shk_diff_agree_rule(c->rules, c->rules_count, p->plain);
    char *setting = compare_setting(p);
    struct shk_row row = shk_row_begin(&c->context, &compare_check, setting ? setting : p->path);
    json_t *names = json_array();
    row.fact = p->fact;
    if (p->read > 1) {
        compare_differs(c, p, rule, &row, names);
    } else {
        compare_unread(c, p, &row);
        json_array_extend(names, p->odd);
    }
    shk_row_end(findings, &row);
    shk_row_nodes(findings, names, NULL);
    json_decref(names);
    free(setting);
}

/* Those that fail jobs come first: what counts most is not cut off. */
static size_t compare_rows(const struct compare *c, struct shk_findings *findings)
{
    size_t written = 0;
    for (int failing = 1; failing >= 0; failing--)
        for (size_t i = 0; i < c->count && written < COMPARE_ROWS; i++) {
            const struct compare_point *p = &c->points[i];
            const struct shk_diff_rule *rule =
                shk_diff_agree_rule(c->rules, c->rules_count, p->plain);
            if (p->gone || (rule && rule->fails_jobs) != failing)
                continue;
            compare_row(c, p, findings);
            written++;
        }
    return written;
}

static int compare_weights(struct compare *c, const struct shk_facts *const *facts,
                           const size_t *weights, size_t nodes)
{
    int rc = 0;
    for (size_t i = 0; i < nodes && !rc; i++) {
        const char *name = NULL;
        size_t weight = weights ? weights[i] : 1;
        if (shk_look_text(facts[i], "host.name", &name) != SHK_LOOK_PRESENT)
            name = i ? "unnamed" : "node 1";
        c->nodes += weight;
        rc = json_array_append_new(c->names, json_string(name));
        if (!rc && weight > 1)
            rc = json_object_set_new(c->weights, name, json_integer((json_int_t)weight));
    }
    return rc ? -ENOMEM : 0;
}

static void compare_free(struct compare *c)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->points[i].sides_count; k++)
            compare_side_free(&c->points[i].sides[k]);
        free(c->points[i].sides);
        free(c->points[i].mark);
        json_decref(c->points[i].odd);
    }
    free(c->points);
    json_decref(c->weights);
    json_decref(c->names);
}

static void compare_agreed(const struct compare *c, const char *kind, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(&c->context, &compare_check, "facts");
    if (c->nodes > 1) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%zu %s%snodes agree in all that must agree", c->nodes,
                     kind ? kind : "", kind ? " " : "");
    } else {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "no other node is of its kind%s%s", kind ? ": " : "",
                     kind ? kind : "");
    }
    shk_row_end(findings, &row);
}

int shk_checks_compare(const struct shk_config *config, const struct shk_facts *const *facts,
                       const size_t *weights, size_t nodes, const char *kind,
                       struct shk_findings *findings, struct shk_error *err)
{
    struct compare c = {.context.config = config, .names = json_array(), .weights = json_object()};
    c.rules = shk_config_diff(config, &c.rules_count);
    struct shk_diff *diff = shk_diff_create(c.rules, c.rules_count, false);
    int rc = diff && c.names && c.weights ? compare_weights(&c, facts, weights, nodes) : -ENOMEM;
    if (!rc)
        shk_diff_must_agree(diff);
    if (!rc && nodes > 1)
        rc = shk_diff_sets(diff, facts, 1, facts + 1, nodes - 1);
    if (!rc)
        rc = compare_points(&c, shk_diff_rows(diff));
    compare_fold(&c);
    compare_drop_effects(&c);
    if (!rc && !compare_rows(&c, findings))
        compare_agreed(&c, kind, findings);
    compare_free(&c);
    shk_diff_destroy(diff);
    return rc ? shk_error_sys(err, -rc, "comparison of nodes") : 0;
}
