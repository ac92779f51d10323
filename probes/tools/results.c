#include "probes/tools/results.h"

#include "core/facts/facts.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RESULTS_WORD = 96, RESULTS_TEXT = 240, RESULTS_LINE = 512 };

static json_t *any_text(const char *text, size_t most)
{
    return text && *text ? shk_json_text(text, strnlen(text, most)) : json_null();
}

static json_t *find(json_t *list, const char *id)
{
    json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const char *other = json_string_value(json_object_get(entry, "id"));
        if (other && strcmp(other, id) == 0)
            return entry;
    }
    return NULL;
}

/* Of a full list, an entry that says less than what is bad: that is never left
 * out. */
static json_t *spare(json_t *list)
{
    json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const char *result = json_string_value(json_object_get(entry, "result"));
        if (result && (strcmp(result, "pass") == 0 || strcmp(result, "skip") == 0))
            return entry;
    }
    return NULL;
}

/* The worst of what one test says of one place counts. */
static size_t add(json_t *list, const char *tool, const char *test, const char *where,
                  const char *result, const char *text)
{
    static const char *const order[] = {"skip", "pass", "warn", "fail"};
    char *id = shk_strf("%s/%.*s/%.*s", tool, RESULTS_WORD, test, RESULTS_WORD, where ? where : "");
    json_t *name = id ? shk_json_text(id, strlen(id)) : NULL, *was = NULL;
    size_t old = 0, new = 0;
    free(id);
    was = name ? find(list, json_string_value(name)) : NULL;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *had = json_string_value(json_object_get(was, "result"));
        old = had && strcmp(had, order[i]) == 0 ? i : old;
        new = strcmp(result, order[i]) == 0 ? i : new;
    }
    bool full = !was && json_array_size(list) >= SHK_RESULTS_MOST;
    json_t *entry = was ? was : full ? (new > 1 ? spare(list) : NULL) : json_object();
    if (!name || !entry || (was && old >= new)) {
        json_decref(name);
        if (entry && !was && !full)
            json_decref(entry);
        return 0;
    }
    json_object_set_new(entry, "id", name);
    json_object_set_new(entry, "tool", json_string(tool));
    json_object_set_new(entry, "test", any_text(test, RESULTS_WORD));
    json_object_set_new(entry, "where", any_text(where, RESULTS_WORD));
    json_object_set_new(entry, "result", json_string(result));
    json_object_set_new(entry, "text", any_text(text, RESULTS_TEXT));
    return was || full ? 0 : json_array_append_new(list, entry) == 0;
}

/* A test that was to be run and has no result. */
static size_t unread(json_t *list, const char *tool, const char *test, const char *why)
{
    char *id = shk_strf("%s/%s/", tool, test);
    json_t *entry = id ? json_pack("{s:s, s:s, s:s, s:n, s:n, s:n}", "id", id, "tool", tool, "test",
                                   test, "where", "result", "text")
                       : NULL;
    free(id);
    if (!entry || json_array_size(list) >= SHK_RESULTS_MOST) {
        json_decref(entry);
        return 0;
    }
    json_object_set_new(entry, "problems",
                        json_pack("{s:o}", "result", any_text(why, RESULTS_TEXT)));
    return json_array_append_new(list, entry) == 0;
}

/* NULL: a word of no meaning here. */
static const char *result_of(const char *word)
{
    static const char *const words[][2] = {
        {"pass", "pass"},    {"true", "pass"},   {"ok", "pass"},      {"fail", "fail"},
        {"false", "fail"},   {"warn", "warn"},   {"warning", "warn"}, {"skip", "skip"},
        {"skipped", "skip"}, {"not run", "skip"}};
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(word, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* The first warning: a text, a list of texts, or a list of {"warning": text}.
 */
static const char *dcgm_text(const json_t *result)
{
    const json_t *said = json_object_get(result, "warnings");
    said = said ? said : json_object_get(result, "warning");
    said = said ? said : json_object_get(result, "info");
    said = json_is_array(said) ? json_array_get(said, 0) : said;
    said = json_is_object(said) ? json_object_get(said, "warning") : said;
    return json_string_value(said);
}

/* DCGM 3 has "gpu_id" or "gpu_ids", DCGM 4 "entity_group" and "entity_id". */
static void dcgm_where(const json_t *result, char *where, size_t size)
{
    static const char *const ids[] = {"entity_id", "gpu_id", "gpu_ids"};
    const char *group = json_string_value(json_object_get(result, "entity_group"));
    *where = '\0';
    for (size_t i = 0; !*where && i < sizeof ids / sizeof *ids; i++) {
        const json_t *id = json_object_get(result, ids[i]);
        if (json_is_integer(id))
            snprintf(where, size, "%.20s %lld", group ? group : "GPU",
                     (long long)json_integer_value(id));
        else if (json_is_string(id))
            snprintf(where, size, "%.20s %.40s", group ? group : "GPU", json_string_value(id));
    }
}

static size_t dcgm_test(json_t *list, const json_t *test)
{
    const char *name = json_string_value(json_object_get(test, "name"));
    const json_t *result, *summary = json_object_get(test, "test_summary");
    char where[RESULTS_WORD];
    size_t i, count = 0;
    json_array_foreach(json_object_get(test, "results"), i, result)
    {
        const char *word = result_of(json_string_value(json_object_get(result, "status")));
        dcgm_where(result, where, sizeof where);
        if (name && word)
            count += add(list, "dcgmi diag", name, where, word, dcgm_text(result));
    }
    /* DCGM 4 tells there what belongs to no GPU */
    const char *word = result_of(json_string_value(json_object_get(summary, "status")));
    const char *text = dcgm_text(summary);
    text = text ? text : dcgm_text(json_object_get(test, "mpi_error"));
    if (name && word && (!count || (strcmp(word, "fail") == 0 && text)))
        count += add(list, "dcgmi diag", name, NULL, word, text);
    return count;
}

/* {"test_categories": [{"tests": […]}]}, or why none was run. */
static size_t dcgm_part(json_t *list, const json_t *part)
{
    const json_t *category, *test;
    const char *error = json_string_value(json_object_get(part, "runtime_error"));
    size_t i, k, count = 0;
    json_array_foreach(json_object_get(part, "test_categories"), i, category)
        json_array_foreach(json_object_get(category, "tests"), k, test) count +=
        dcgm_test(list, test);
    if (!count && error)
        count = unread(list, "dcgmi diag", "run", error);
    return count;
}

/* A document of dcgmi diag -j, of dcgmi mndiag -j, or one of several
 * iterations. */
static size_t dcgm_document(json_t *list, const json_t *doc)
{
    const char *key;
    const json_t *part;
    size_t count = dcgm_part(list, doc);
    json_object_foreach((json_t *)doc, key, part)
    {
        if (strncmp(key, "DCGM", 4) == 0)
            count += dcgm_part(list, part);
    }
    return count;
}

static size_t dcgm(json_t *list, const char *text, size_t len)
{
    const char *start = memchr(text, '{', len);
    json_t *doc =
        start ? json_loadb(start, len - (size_t)(start - text), JSON_DISABLE_EOF_CHECK, NULL)
              : NULL;
    const json_t *one;
    size_t i, count = dcgm_document(list, doc);
    json_array_foreach(json_object_get(doc, "iterations"), i, one) count +=
        dcgm_document(list, one);
    json_decref(doc);
    return count;
}

struct lines {
    json_t *list;
    char device[16]; /* "cxi0" of the line before a summary */
    char metric[RESULTS_WORD];
    bool table; /* of ibdiagnet's summary */
};

/* "Check: link_check  Result: Pass"; in front of the summaries of several
 * devices people print their names. */
static size_t line_cxi(struct lines *l, const char *line)
{
    char test[64], word[16];
    unsigned number;
    if (sscanf(line, "cxi%u", &number) == 1 && strspn(line + 3, "0123456789") + 3 == strlen(line))
        snprintf(l->device, sizeof l->device, "cxi%u", number);
    if (sscanf(line, "Check: %63s Result: %15s", test, word) != 2 || !result_of(word))
        return 0;
    return add(l->list, "cxi_healthcheck", test, l->device, result_of(word), NULL);
}

/* "-I- Links Check               0          1": warnings, errors. */
static size_t line_ibdiagnet(struct lines *l, const char *line)
{
    long long warnings = 0, errors = 0;
    char name[64] = "";
    if (strncmp(line, "-I- Stage", 9) == 0 && strstr(line, "Warnings")) {
        l->table = true;
        return 0;
    }
    l->table = l->table && strncmp(line, "-I- ", 4) == 0;
    const char *gap = l->table ? strstr(line + 4, "  ") : NULL;
    if (!gap || sscanf(gap, "%lld %lld", &warnings, &errors) != 2)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(gap - line - 4 < 60 ? gap - line - 4 : 60), line + 4);
    return add(l->list, "ibdiagnet", name, NULL,
               errors > 0     ? "fail"
               : warnings > 0 ? "warn"
                              : "pass",
               NULL);
}

/* "[RESULT] [497544.637462] [action_1] gst 50599 pass: TRUE", since RVS 1.0
 * "[action_1] [GPU:: 50599] pass: TRUE", and of what has a target "… GFLOPS 1
 * Target GFLOPS: 2 met: FALSE". */
static size_t line_rvs(struct lines *l, const char *line)
{
    char action[64], module[16] = "", where[32] = "", word[8];
    const char *pass = strncmp(line, "[RESULT]", 8) == 0 ? strcasestr(line, "pass:") : NULL;
    if (!pass && strncmp(line, "[RESULT]", 8) == 0)
        pass = strstr(line, " met");
    const char *third = pass ? strchr(line + 8, '[') : NULL;
    third = third ? strchr(third + 1, '[') : NULL;
    if (!third || sscanf(pass + strcspn(pass, ":"), ": %7[A-Za-z]", word) != 1 ||
        !result_of(word) ||
        (sscanf(third, "[%63[^]]] [GPU:: %31[0-9]]", action, where) != 2 &&
         sscanf(third, "[%63[^]]] %15[A-Za-z0-9_] %31s", action, module, where) != 3))
        return 0;
    char *test = shk_strf("%s%s%s", module, *module ? " " : "", action);
    size_t count = test ? add(l->list, "rvs", test, where, result_of(word), NULL) : 0;
    free(test);
    return count;
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* "smartmon_device_smart_healthy{disk="/dev/sda"} 1": of a metric that says so
 * of a part in its name: _healthy is 1 when it is, _critical_warning 0. Only
 * behind its "# TYPE" or "# HELP". */
static size_t line_metric(struct lines *l, const char *line)
{
    char name[RESULTS_WORD], labels[RESULTS_WORD] = "";
    if (sscanf(line, "# TYPE %95s", name) == 1 || sscanf(line, "# HELP %95s", name) == 1) {
        snprintf(l->metric, sizeof l->metric, "%s", name);
        return 0;
    }
    size_t n = strlen(l->metric);
    if (!n || strncmp(line, l->metric, n) != 0 || (line[n] != '{' && line[n] != ' '))
        return 0;
    bool healthy = ends(l->metric, "_healthy");
    if (!healthy && !ends(l->metric, "_critical_warning") &&
        !ends(l->metric, "_critical_warning_total"))
        return 0;
    const char *close = line[n] == '{' ? strrchr(line, '}') : NULL;
    if (close)
        snprintf(labels, sizeof labels, "%.*s", (int)(close - line - (long)n - 1), line + n + 1);
    const char *at = close ? close + 1 : line + n;
    char *end = NULL;
    double value = strtod(at, &end);
    if (end == at)
        return 0;
    return add(l->list, "node_exporter", l->metric, labels,
               healthy ? (value > 0 ? "pass" : "fail") : (value > 0 ? "warn" : "pass"), NULL);
}

size_t shk_results_read(json_t *list, const char *text, size_t len)
{
    struct lines l = {.list = list};
    size_t before = json_array_size(list);
    (void)dcgm(list, text, len);
    bool lines = json_array_size(list) == before;
    for (const char *p = text; lines && p < text + len;) {
        char line[RESULTS_LINE];
        size_t n = strcspn(p, "\n"), used = n < sizeof line - 1 ? n : sizeof line - 1;
        memcpy(line, p, used);
        while (used && isspace((unsigned char)line[used - 1]))
            used--;
        line[used] = '\0';
        (void)(line_cxi(&l, line) || line_ibdiagnet(&l, line) || line_rvs(&l, line) ||
               line_metric(&l, line));
        p += n + 1;
    }
    return json_array_size(list) - before;
}
