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

/* The side that most nodes have: the first node's, or that of one of the rows. */
static const json_t *compare_majority(const struct compare_path *p, size_t nodes)
{
    const json_t *best = NULL;
    size_t most = nodes - p->others, i;
    json_t *row;
    json_array_foreach(p->rows, i, row)
    {
        size_t count = json_array_size(json_object_get(row, "nodes"));
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
}

static void compare_row(const struct shk_config *config, const struct compare_path *p,
                        const char *first, size_t nodes, struct shk_findings *findings)
{
    const struct shk_diff_rule *rule = compare_rule(config, p->fact);
    const json_t *majority = compare_majority(p, nodes);
    const json_t *any = json_array_get(p->rows, 0);
    struct shk_row row = shk_row_start(&compare_check, p->path);
    json_t *names = json_array();
    char *common = compare_side(json_object_get(majority ? majority : any, majority ? "b" : "a"));
    char *odd = compare_side(json_object_get(any, majority ? "a" : "b"));
    compare_names(p, majority, first, names);
    shk_row_verdict(&row, rule ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    if (strcmp(p->fact, "fabric.version") == 0)
        row.diagnosis = "libfabric-version-differs-across-nodes";
    row.fact = p->fact;
    shk_row_text(&row.observed, "%s%s", odd ? odd : "",
                 json_array_size(p->rows) > 1 ? ", among others" : "");
    shk_row_text(&row.expected, "%s, as on %zu of %zu nodes", common ? common : "",
                 nodes - json_array_size(names), nodes);
    if (json_array_size(names) * 2 >= nodes)
        compare_tie(&row, names, p, first, common ? common : "", odd ? odd : "");
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

static size_t compare_rows(const struct shk_config *config, json_t *rows, const char *first,
                           size_t nodes, struct shk_findings *findings)
{
    size_t i = 0, n = json_array_size(rows), written = 0;
    while (i < n && written < COMPARE_ROWS) {
        json_t *row = json_array_get(rows, i);
        struct compare_path p = {.path = shk_member_text(row, "path"),
                                 .fact = shk_member_text(row, "fact"),
                                 .rows = json_array()};
        while (i < n && strcmp(shk_member_text(json_array_get(rows, i), "path"), p.path) == 0) {
            row = json_array_get(rows, i++);
            json_array_append(p.rows, row);
            p.others += json_array_size(json_object_get(row, "nodes"));
        }
        if (!compare_of_job(row)) {
            compare_row(config, &p, first, nodes, findings);
            written++;
        }
        json_decref(p.rows);
    }
    return written;
}

int shk_checks_compare(const struct shk_config *config, const struct shk_facts *const *facts,
                       size_t nodes, struct shk_findings *findings, struct shk_error *err)
{
    size_t count;
    const struct shk_diff_rule *rules = shk_config_diff(config, &count);
    struct shk_diff *diff = shk_diff_create(rules, count, false);
    const char *first = shk_facts_get_text(facts[0], "host.name");
    int rc = diff ? shk_diff_sets(diff, facts, 1, facts + 1, nodes - 1) : -ENOMEM;
    if (rc == 0 &&
        !compare_rows(config, shk_diff_rows(diff), first ? first : "node 1", nodes, findings)) {
        struct shk_row row = shk_row_start(&compare_check, "facts");
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%zu nodes agree in all that must agree", nodes);
        shk_row_end(findings, &row);
    }
    shk_diff_destroy(diff);
    return rc ? shk_error_sys(err, -rc, "comparison of nodes") : 0;
}
