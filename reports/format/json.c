/* One JSON object; its shape is published as reports/schema/report-2.schema.json. */
#include "reports/format/json_parts.h"
#include "reports/formats.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steals value. False when out of memory. */
static bool json_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* Leaves the member out when there is nothing to say. */
static bool json_put_text(json_t *object, const char *key, const char *text)
{
    return !text || json_put(object, key, shk_json_text(text, strlen(text)));
}

static json_t *json_texts(char *const *texts)
{
    json_t *array = json_array();
    for (; array && texts && *texts; texts++) {
        if (json_array_append_new(array, shk_json_text(*texts, strlen(*texts)))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_summary(const struct shk_model *model)
{
    const struct shk_coverage *c = &model->report->coverage;
    json_t *summary = json_object(), *coverage = json_object();
    bool ok = summary && coverage &&
              json_put(summary, "verdict", json_string(shk_verdict_name(model->verdict)));
    for (int v = 0; ok && v < SHK_VERDICT_COUNT; v++)
        ok = json_put(summary, shk_verdict_name((enum shk_verdict)v), json_integer(c->verdicts[v]));
    for (int e = 0; ok && e < SHK_EVIDENCE_COUNT; e++)
        ok = json_put(coverage, shk_evidence_name((enum shk_evidence)e),
                      json_integer(c->evidence[e]));
    ok = ok && json_put(summary, "required_unknown", json_integer(c->required_unknown)) &&
         json_put(summary, "coverage", json_incref(coverage));
    json_decref(coverage);
    if (!ok) {
        json_decref(summary);
        return NULL;
    }
    return summary;
}

static json_t *json_diagnosis(const struct shk_diagnoses *list, const struct shk_diagnosis_row *row)
{
    const char *above = row->below ? list->rows[row->below - 1].key : NULL;
    json_t *object = json_object();
    bool ok = object && json_put_text(object, "key", row->key) &&
              json_put_text(object, "title", row->title) &&
              json_put_text(object, "confidence", row->confidence) &&
              json_put(object, "verdict", json_string(shk_verdict_name(row->verdict))) &&
              (!isfinite(row->score) || json_put(object, "score", json_real(row->score))) &&
              json_put_text(object, "explanation", row->explanation) &&
              json_put_text(object, "fix", row->fix) &&
              json_put_text(object, "advice", row->advice) &&
              json_put_text(object, "who", row->who) &&
              json_put(object, "scope", json_string(shk_scope_name(row->scope))) &&
              json_put_text(object, "explained_by", above) &&
              json_put(object, "evidence", json_texts(row->evidence));
    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *shk_json_diagnoses(const struct shk_diagnoses *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && list && i < list->count; i++) {
        if (json_array_append_new(array, json_diagnosis(list, &list->rows[i]))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_finding(const struct shk_finding *row)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        {"id", row->id},
        {"family", row->family},
        {"setting", row->setting},
        {"observed", row->observed},
        {"expected", row->expected},
        {"why", row->why},
        {"fix", row->fix},
        {"advice", row->advice},
        {"diagnosis", row->diagnosis},
        {"source", row->source},
        {"fact", row->fact},
    };
    json_t *object = json_object();
    bool ok = object && json_put(object, "verdict", json_string(shk_verdict_name(row->verdict))) &&
              json_put(object, "evidence", json_string(shk_evidence_name(row->evidence))) &&
              json_put(object, "required", json_boolean(row->required));
    for (size_t i = 0; ok && i < sizeof texts / sizeof *texts; i++)
        ok = json_put_text(object, texts[i].key, texts[i].text);
    if (ok && (row->verdict == SHK_FAIL || row->verdict == SHK_WARN))
        ok = json_put(object, "scope", json_string(shk_scope_name(row->scope)));
    if (ok && row->nodes)
        ok = json_put(object, "nodes", json_texts(row->nodes));
    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *json_findings(const struct shk_findings *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && list && i < shk_findings_count(list); i++) {
        if (json_array_append_new(array, json_finding(shk_findings_at(list, i)))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

struct json_sorted {
    json_t *from, *to;
};

static int json_sort_fact(const struct shk_fact *fact, void *arg)
{
    struct json_sorted *s = arg;
    return json_object_set(s->to, fact->key, json_object_get(s->from, fact->key));
}

/* A facts document with a name, so it can be cut out and judged again. Facts in key order. */
static json_t *json_node(const struct shk_facts *facts, const char *name, const char *profile)
{
    json_t *doc = shk_facts_to_json(facts);
    struct json_sorted s = {.from = json_object_get(doc, "facts"), .to = json_object()};
    if (!doc || !s.to || !json_put_text(doc, "name", name) ||
        !json_put_text(doc, "profile", profile) || shk_facts_each(facts, "", json_sort_fact, &s) ||
        !json_put(doc, "facts", json_incref(s.to))) {
        json_decref(doc);
        doc = NULL;
    }
    json_decref(s.to);
    return doc;
}

static const char *json_profile_of(const struct shk_report *report, size_t node)
{
    return report->profiles ? report->profiles[node] : report->profile;
}

static json_t *json_nodes(const struct shk_model *model)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < model->report->nodes; i++) {
        if (json_array_append_new(array, json_node(model->report->facts[i], model->nodes[i],
                                                   json_profile_of(model->report, i)))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

struct json_members {
    json_t *object;
    size_t prefix;
};

static int json_member(const struct shk_fact *fact, void *arg)
{
    struct json_members *m = arg;
    if (fact->state != SHK_FACT_PRESENT)
        return 0;
    return json_object_set(m->object, fact->key + m->prefix, fact->value);
}

/* Facts collective.<t>.X of one node as an object of X. */
static json_t *json_run(const struct shk_run *run)
{
    char *prefix = shk_strf("collective.%s.", run->transport);
    struct json_members m = {json_object(), prefix ? strlen(prefix) : 0};
    bool ok = prefix && m.object && json_put_text(m.object, "node", run->node) &&
              shk_facts_each(run->facts, prefix, json_member, &m) == 0;
    free(prefix);
    if (!ok) {
        json_decref(m.object);
        return NULL;
    }
    return m.object;
}

/* One member per transport: its first run that is not ok, else its first, so that no reader takes
 * a broken transport for a sound one. */
static json_t *json_collectives(const struct shk_model *model)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < model->runs_count; i++) {
        const struct shk_run *run = &model->runs[i];
        const json_t *had = json_object_get(object, run->transport);
        const char *had_status = json_string_value(json_object_get(had, "status"));
        if (had && (shk_run_ok(run) || !had_status || strcmp(had_status, "ok") != 0))
            continue;
        if (!json_put(object, run->transport, json_run(run))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

struct json_parts {
    json_t *array;
    bool failed;
};

static void json_part(const char *part, void *arg)
{
    struct json_parts *parts = arg;
    parts->failed |= json_array_append_new(parts->array, shk_json_text(part, strlen(part))) != 0;
}

/* When, in which job, on what. */
static bool json_put_run(json_t *object, const struct shk_model *model)
{
    struct json_parts parts = {.array = json_array()};
    char *start = shk_hardware_date(model), *job = shk_hardware_job(model);
    bool ok =
        parts.array && !shk_hardware_each(model, json_part, &parts) && !parts.failed &&
        json_put_text(object, "start", start) && json_put_text(object, "job", job) &&
        (!json_array_size(parts.array) || json_put(object, "hardware", json_incref(parts.array)));
    json_decref(parts.array);
    free(start);
    free(job);
    return ok;
}

static json_t *json_report(const struct shk_model *model)
{
    const struct shk_report *report = model->report;
    json_t *object = json_object(), *profile = json_object();
    bool ok = object && profile && json_put(object, "schema", json_string(SHK_REPORT_SCHEMA)) &&
              json_put_text(object, "version", report->version) &&
              json_put_text(object, "command", report->command) &&
              json_put_text(profile, "name", report->profile) &&
              json_put_text(profile, "why", report->profile_why) &&
              json_put(object, "profile", json_incref(profile)) &&
              json_put_text(object, "interrupted", report->interrupted) &&
              (report->elapsed_s < 0 || !isfinite(report->elapsed_s) ||
               json_put(object, "elapsed_s", json_real(report->elapsed_s))) &&
              json_put_run(object, model) && json_put(object, "summary", json_summary(model)) &&
              json_put(object, "diagnoses", shk_json_diagnoses(report->diagnoses)) &&
              json_put(object, "findings", json_findings(report->findings)) &&
              json_put(object, "collectives", json_collectives(model)) &&
              json_put(object, "nodes", json_nodes(model));
    json_decref(profile);
    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int json_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    struct shk_model *model = shk_model_create(report, options);
    json_t *object = model ? json_report(model) : NULL;
    int rc = shk_format_document(object, JSON_INDENT(2), out);
    json_decref(object);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_json = {
    .name = "json",
    .extension = ".json",
    .doc = "one object, schema " SHK_REPORT_SCHEMA,
    .render = json_render,
};
