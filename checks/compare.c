/* Nodes of one job against their majority. */
#include "checks/row.h"
#include "core/factdiff.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_check compare_check = {.id = "nodes.agree", .family = "nodes"};

/* More rows than this say no more than that the nodes are not alike. */
enum { COMPARE_ROWS = 40 };

struct compare {
    const struct shk_config *config;
    const char *first; /* name of the first node */
    size_t nodes;      /* that the facts stand for */
    json_t *weights;   /* name -> how many nodes it stands for, when not one */
};

/* Differences from the first node at one path. */
struct compare_path {
    const char *path, *fact;
    json_t *rows; /* borrowed rows of shk_diff_rows() */
    size_t others;
};

static char *compare_side(const json_t *side)
{
    const char *state = shk_member_text(side, "state");
    json_t *value = json_object_get(side, "value");
    if (!side || !state)
        return strdup("not looked for");
    if (strcmp(state, "present") != 0)
        return strdup(state);
    if (json_is_string(value))
        return strdup(json_string_value(value));
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text && strlen(text) > 120)
        strcpy(text + 117, "...");
    return text;
}

static const struct shk_diff_rule *compare_rule(const struct shk_config *config, const char *fact)
{
    size_t n;
    const struct shk_diff_rule *rules = shk_config_diff(config, &n);
    for (size_t i = 0; i < n; i++)
        if (rules[i].fails_jobs && fnmatch(rules[i].path, fact, FNM_NOESCAPE) == 0)
            return &rules[i];
    return NULL;
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

/* The side that most nodes have: the first node's, or that of one of the rows. */
static const json_t *compare_majority(const struct compare *c, const struct compare_path *p)
{
    const json_t *best = NULL;
    size_t most = c->nodes - p->others, i;
    json_t *row;
    json_array_foreach(p->rows, i, row)
    {
        size_t count = compare_count(c, json_object_get(row, "nodes"));
        if (count > most) {
            most = count;
            best = row;
        }
    }
    return best;
}

static void compare_names(const struct compare_path *p, const json_t *majority, const char *first,
                          json_t *names)
{
    size_t i;
    json_t *row;
    if (majority)
        json_array_append_new(names, json_string(first));
    json_array_foreach(p->rows, i, row) if (row != majority)
        json_array_extend(names, json_object_get(row, "nodes"));
}

/* Without a majority no side is the odd one: every node is named. */
static void compare_tie(struct shk_row *row, json_t *names, const struct compare_path *p,
                        const char *first, const char *common, const char *odd)
{
    size_t i;
    json_t *item;
    json_array_clear(names);
    json_array_append_new(names, json_string(first));
    json_array_foreach(p->rows, i, item) json_array_extend(names, json_object_get(item, "nodes"));
    shk_row_text(&row->observed, "%s or %s", common, odd);
    shk_row_text(&row->expected, "the same on every node");
    row->scope = SHK_SCOPE_LAUNCH; /* neither side is known to be at fault */
}

static void compare_row(const struct compare *c, const struct compare_path *p,
                        struct shk_findings *findings)
{
    const struct shk_diff_rule *rule = compare_rule(c->config, p->fact);
    const json_t *majority = compare_majority(c, p);
    const json_t *any = json_array_get(p->rows, 0);
    struct shk_row row = shk_row_start(&compare_check, p->path);
    json_t *names = json_array();
    char *common = compare_side(json_object_get(majority ? majority : any, majority ? "b" : "a"));
    char *odd = compare_side(json_object_get(any, majority ? "a" : "b"));
    compare_names(p, majority, c->first, names);
    size_t outside = compare_count(c, names);
    shk_row_verdict(&row, rule ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row.scope = SHK_SCOPE_NODE; /* one launch: what differs came from the node */
    row.diagnosis = rule ? rule->diagnosis : NULL;
    row.fact = p->fact;
    shk_row_text(&row.observed, "%s%s", odd ? odd : "",
                 json_array_size(p->rows) > 1 ? ", among others" : "");
    shk_row_text(&row.expected, "%s, as on %zu of %zu nodes", common ? common : "",
                 c->nodes - outside, c->nodes);
    if (outside * 2 >= c->nodes)
        compare_tie(&row, names, p, c->first, common ? common : "", odd ? odd : "");
    shk_row_text(&row.why, "%s", rule ? rule->why : "nodes of one job should agree here");
    shk_row_end(findings, &row);
    shk_row_nodes(findings, names, NULL);
    json_decref(names);
    free(common);
    free(odd);
}

/* Facts of the job, which only rank 0's node has. */
static bool compare_of_job(const json_t *row)
{
    const char *fact = shk_member_text(row, "fact");
    return strncmp(fact, "collective.", 11) == 0 || strncmp(fact, "job.", 4) == 0;
}

/* Those that fail jobs, or the others: what counts most is not cut off. */
static size_t compare_rows(const struct compare *c, json_t *rows, bool failing, size_t most,
                           struct shk_findings *findings)
{
    size_t i = 0, n = json_array_size(rows), written = 0;
    while (i < n && written < most) {
        json_t *row = json_array_get(rows, i);
        struct compare_path p = {.path = shk_member_text(row, "path"),
                                 .fact = shk_member_text(row, "fact"),
                                 .rows = json_array()};
        while (i < n && strcmp(shk_member_text(json_array_get(rows, i), "path"), p.path) == 0) {
            row = json_array_get(rows, i++);
            json_array_append(p.rows, row);
            p.others += compare_count(c, json_object_get(row, "nodes"));
        }
        if (!compare_of_job(row) && failing == (compare_rule(c->config, p.fact) != NULL)) {
            compare_row(c, &p, findings);
            written++;
        }
        json_decref(p.rows);
    }
    return written;
}

static int compare_weights(struct compare *c, const struct shk_facts *const *facts,
                           const size_t *weights, size_t nodes)
{
    int rc = 0;
    c->nodes = 0;
    for (size_t i = 0; i < nodes && !rc; i++) {
        const char *name = shk_facts_get_text(facts[i], "host.name");
        size_t weight = weights ? weights[i] : 1;
        c->nodes += weight;
        if (name && weight > 1)
            rc = json_object_set_new(c->weights, name, json_integer((json_int_t)weight));
    }
    return rc ? -ENOMEM : 0;
}

int shk_checks_compare(const struct shk_config *config, const struct shk_facts *const *facts,
                       const size_t *weights, size_t nodes, struct shk_findings *findings,
                       struct shk_error *err)
{
    size_t count;
    const struct shk_diff_rule *rules = shk_config_diff(config, &count);
    struct shk_diff *diff = shk_diff_create(rules, count, false);
    const char *first = shk_facts_get_text(facts[0], "host.name");
    struct compare c = {
        .config = config, .first = first ? first : "node 1", .weights = json_object()};
    int rc = diff && c.weights ? compare_weights(&c, facts, weights, nodes) : -ENOMEM;
    if (!rc && nodes > 1)
        rc = shk_diff_sets(diff, facts, 1, facts + 1, nodes - 1);
    size_t written = rc ? 0 : compare_rows(&c, shk_diff_rows(diff), true, COMPARE_ROWS, findings);
    if (!rc)
        written += compare_rows(&c, shk_diff_rows(diff), false, COMPARE_ROWS - written, findings);
    if (!rc && !written) {
        struct shk_row row = shk_row_start(&compare_check, "facts");
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%zu nodes agree in all that must agree", c.nodes);
        shk_row_end(findings, &row);
    }
    json_decref(c.weights);
    shk_diff_destroy(diff);
    return rc ? shk_error_sys(err, -rc, "comparison of nodes") : 0;
}
