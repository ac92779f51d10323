#include "reports/privacy/anonymize.h"
#include "core/text/nodefold.h"
#include "core/text/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shk_scrubbed {
    struct shk_report report;
    struct shk_facts **facts;
    size_t facts_count;
    struct shk_findings *findings;
    struct shk_diagnoses diagnoses;
    char *texts[4]; /* version, command, profile, profile_why */
    struct shk_scrub *scrub;
    unsigned what;
    bool failed;
};

/* A job's name of so many characters is replaced wherever it stands; a shorter one could be any
 * number, and is replaced where facts have it. */
enum { ANONYMIZE_JOB = 5 };

/* Facts whose value is a name of that kind as a whole. */
static const struct {
    const char *key;
    enum shk_scrub_kind kind;
} anonymize_names[] = {
    {"host.name", SHK_SCRUB_HOST},
    {"job.slurm.nodelist", SHK_SCRUB_NODELIST},
    {"job.slurm.step_nodelist", SHK_SCRUB_NODELIST},
    {"job.slurm.user", SHK_SCRUB_USER},
    {"job.slurm.account", SHK_SCRUB_ACCOUNT},
};

/* Variables whose value is a name of that kind as a whole. */
static const struct {
    const char *use;
    enum shk_scrub_kind kind;
} anonymize_uses[] = {
    {"identity.host", SHK_SCRUB_HOST},         {"identity.peer", SHK_SCRUB_HOST},
    {"identity.nodelist", SHK_SCRUB_NODELIST}, {"identity.user", SHK_SCRUB_USER},
    {"identity.account", SHK_SCRUB_ACCOUNT},
};

static bool anonymize_ends(const char *key, const char *end)
{
    size_t n = strlen(key), m = strlen(end);
    return n >= m && strcmp(key + n - m, end) == 0;
}

/* Names and versions that sit inside of arrays and objects, by the name of their member. */
static void anonymize_learn_value(struct shk_scrub *scrub, const char *member, const json_t *value)
{
    static const struct {
        const char *end;
        enum shk_scrub_kind kind;
    } members[] = {{"serial", SHK_SCRUB_SERIAL},
                   {"serial_number", SHK_SCRUB_SERIAL},
                   {"hostname", SHK_SCRUB_HOST},
                   {"host", SHK_SCRUB_HOST},
                   {"user", SHK_SCRUB_USER}};
    const char *text = json_string_value(value), *key;
    size_t i;
    json_t *item;
    if (text)
        shk_scrub_learn(scrub, text);
    if (text && (anonymize_ends(member, "version") || strcmp(member, "fw") == 0))
        shk_scrub_keep(scrub, text);
    for (size_t k = 0; text && k < sizeof members / sizeof *members; k++)
        if (strcmp(member, members[k].end) == 0)
            shk_scrub_name(scrub, members[k].kind, text);
    json_object_foreach((json_t *)value, key, item) anonymize_learn_value(scrub, key, item);
    json_array_foreach(value, i, item) anonymize_learn_value(scrub, member, item);
}

static void anonymize_learn_node(const char *name, void *arg)
{
    shk_scrub_name(arg, SHK_SCRUB_HOST, name);
}

static void anonymize_learn_name(struct shk_scrub *scrub, enum shk_scrub_kind kind,
                                 const char *text)
{
    shk_scrub_name(scrub, kind, text);
    if (kind == SHK_SCRUB_NODELIST)
        (void)shk_nodefold_each(text, SHK_NODEFOLD_MAX, anonymize_learn_node, scrub);
}

static int anonymize_learn(const struct shk_fact *fact, void *arg)
{
    struct shk_scrub *scrub = arg;
    const char *text = json_string_value(fact->value), *last = strrchr(fact->key, '.');
    for (size_t i = 0; text && i < sizeof anonymize_names / sizeof *anonymize_names; i++)
        if (strcmp(fact->key, anonymize_names[i].key) == 0)
            anonymize_learn_name(scrub, anonymize_names[i].kind, text);
    const char *variable = strncmp(fact->key, "env.", 4) == 0 ? fact->key + 4 : NULL;
    for (size_t i = 0; text && variable && i < sizeof anonymize_uses / sizeof *anonymize_uses; i++)
        if (shk_variable_has(anonymize_uses[i].use, variable))
            anonymize_learn_name(scrub, anonymize_uses[i].kind, text);
    if (text && strcmp(fact->key, "job.id") == 0 && strlen(text) >= ANONYMIZE_JOB)
        shk_scrub_name(scrub, SHK_SCRUB_JOB, text);
    anonymize_learn_value(scrub, last ? last + 1 : fact->key, fact->value);
    return 0;
}

/* Scrubbed copy of a text; NULL stays NULL. */
static char *anonymize_text(struct shk_scrubbed *s, const char *text)
{
    char *copy = text ? shk_scrub_text(s->scrub, text) : NULL;
    if (text && !copy)
        s->failed = true;
    return copy;
}

static char **anonymize_texts(struct shk_scrubbed *s, char *const *texts)
{
    size_t n = 0;
    while (texts && texts[n])
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    if (!copy)
        s->failed = true;
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = anonymize_text(s, texts[i])))
            break;
    return copy;
}

/* With a job's name the accounting of a scheduler names the user. */
static json_t *anonymize_job(const struct shk_fact *fact)
{
    const char *text = json_string_value(fact->value);
    const struct shk_use *use;
    bool job = strcmp(fact->key, "job.id") == 0;
    for (size_t at = 0; text && !job && (use = shk_use_next("scheduler.", &at));)
        job = strncmp(fact->key, "env.", 4) == 0 && shk_variable_has(use->name, fact->key + 4);
    if (strcmp(fact->key, "job.slurm.job_id") == 0)
        return json_integer(1);
    return job ? json_string("job-1") : NULL;
}

struct anonymize_store {
    struct shk_scrubbed *scrubbed;
    struct shk_facts *facts;
};

static int anonymize_fact(const struct shk_fact *fact, void *arg)
{
    struct anonymize_store *to = arg;
    struct shk_scrubbed *s = to->scrubbed;
    char *source = anonymize_text(s, fact->source), *reason = anonymize_text(s, fact->reason);
    int rc;
    bool present = fact->state == SHK_FACT_PRESENT;
    json_t *job = present && s->what & SHK_SCRUB_IDENTITY ? anonymize_job(fact) : NULL;
    if (present)
        rc = shk_facts_present(to->facts, fact->key,
                               job ? job : shk_scrub_json(s->scrub, fact->value), fact->unit,
                               source);
    else if (fact->state == SHK_FACT_ABSENT)
        rc = shk_facts_absent(to->facts, fact->key, source, "%s", reason ? reason : "");
    else
        rc = shk_facts_failed(to->facts, fact->key, source, "%s", reason ? reason : "");
    free(source);
    free(reason);
    return rc;
}

static void anonymize_facts(struct shk_scrubbed *s, const struct shk_report *report)
{
    s->facts = calloc(report->nodes + 1, sizeof *s->facts);
    s->failed |= !s->facts;
    for (size_t i = 0; !s->failed && i < report->nodes; i++) {
        struct anonymize_store to = {.scrubbed = s, .facts = shk_facts_create()};
        s->failed |= !to.facts;
        if (!to.facts)
            break;
        s->facts[s->facts_count++] = to.facts;
        /* facts hold no secret since they were stored */
        s->failed |= s->what & SHK_SCRUB_IDENTITY
                         ? shk_facts_each(report->facts[i], "", anonymize_fact, &to) != 0
                         : shk_facts_merge(to.facts, report->facts[i]) != 0;
        shk_facts_freeze(to.facts);
    }
}

static void anonymize_finding(struct shk_scrubbed *s, const struct shk_finding *row)
{
    char *texts[] = {anonymize_text(s, row->id),       anonymize_text(s, row->family),
                     anonymize_text(s, row->setting),  anonymize_text(s, row->observed),
                     anonymize_text(s, row->expected), anonymize_text(s, row->why),
                     anonymize_text(s, row->fix),      anonymize_text(s, row->advice)};
    if (!s->failed)
        shk_findings_add(s->findings, &(struct shk_finding_in){
                                          .id = texts[0],
                                          .family = texts[1],
                                          .setting = texts[2],
                                          .verdict = row->verdict,
                                          .evidence = row->evidence,
                                          .observed = texts[3],
                                          .expected = texts[4],
                                          .why = texts[5],
                                          .fix = texts[6],
                                          .advice = texts[7],
                                          .diagnosis = row->diagnosis,
                                          .source = row->source,
                                          .fact = row->fact,
                                          .required = row->required,
                                          .scope = row->scope,
                                      });
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    char **nodes = row->nodes ? anonymize_texts(s, row->nodes) : NULL;
    size_t count = 0;
    while (nodes && nodes[count])
        count++;
    if (nodes && !s->failed)
        s->failed |= shk_findings_set_nodes(s->findings, shk_findings_count(s->findings) - 1,
                                            (const char *const *)nodes, count) != 0;
    for (size_t i = 0; i < count; i++)
        free(nodes[i]);
    free(nodes);
}

static void anonymize_diagnoses(struct shk_scrubbed *s, const struct shk_diagnoses *list)
{
    s->diagnoses.rows = calloc(list->count + 1, sizeof *s->diagnoses.rows);
    s->failed |= !s->diagnoses.rows;
    for (size_t i = 0; !s->failed && i < list->count; i++) {
        const struct shk_diagnosis_row *row = &list->rows[i];
        s->diagnoses.rows[s->diagnoses.count++] = (struct shk_diagnosis_row){
            .key = anonymize_text(s, row->key),
            .title = anonymize_text(s, row->title),
            .explanation = anonymize_text(s, row->explanation),
            .fix = anonymize_text(s, row->fix),
            .advice = anonymize_text(s, row->advice),
            .who = anonymize_text(s, row->who),
            .confidence = anonymize_text(s, row->confidence),
            .evidence = anonymize_texts(s, row->evidence),
            .score = row->score,
            .verdict = row->verdict,
            .scope = row->scope,
            .below = row->below,
        };
    }
}

static void anonymize_learn_texts(struct shk_scrub *scrub, const struct shk_report *report,
                                  size_t rows)
{
    if (report->command)
        shk_scrub_learn(scrub, report->command);
    for (size_t i = 0; i < rows; i++) {
        const struct shk_finding *row = shk_findings_at(report->findings, i);
        const char *const texts[] = {row->observed, row->expected, row->why, row->fix, row->advice};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            if (texts[t])
                shk_scrub_learn(scrub, texts[t]);
    }
}

static void anonymize_report(struct shk_scrubbed *s, const struct shk_report *report)
{
    const char *const texts[] = {report->version, report->command, report->profile,
                                 report->profile_why};
    if (report->version)
        shk_scrub_keep(s->scrub, report->version);
    for (size_t i = 0; i < report->nodes && s->what & SHK_SCRUB_IDENTITY; i++)
        shk_facts_each(report->facts[i], "", anonymize_learn, s->scrub);
    size_t rows = report->findings ? shk_findings_count(report->findings) : 0;
    anonymize_learn_texts(s->scrub, report, rows);
    anonymize_facts(s, report);
    for (size_t i = 0; !s->failed && i < rows; i++)
        anonymize_finding(s, shk_findings_at(report->findings, i));
    if (!s->failed && report->diagnoses)
        anonymize_diagnoses(s, report->diagnoses);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        s->texts[i] = anonymize_text(s, texts[i]);
    s->report = *report;
    s->report.version = s->texts[0];
    s->report.command = s->texts[1];
    s->report.profile = s->texts[2];
    s->report.profile_why = s->texts[3];
    s->report.facts = (const struct shk_facts *const *)s->facts;
    s->report.findings = s->findings;
    s->report.diagnoses = &s->diagnoses;
}

int shk_report_scrub(struct shk_scrubbed **scrubbed_p, const struct shk_report *report,
                     unsigned what, struct shk_error *err)
{
    struct shk_scrubbed *s = calloc(1, sizeof *s);
    if (!s)
        return shk_error_sys(err, ENOMEM, "anonymize");
    s->what = what;
    s->scrub = shk_scrub_create(what);
    s->findings = shk_findings_create();
    s->failed = !s->scrub || !s->findings;
    if (!s->failed)
        anonymize_report(s, report);
    if (s->failed || shk_findings_status(s->findings)) {
        shk_scrubbed_destroy(s);
        return shk_error_sys(err, ENOMEM, "anonymize");
    }
    *scrubbed_p = s;
    return 0;
}

const struct shk_report *shk_scrubbed_report(const struct shk_scrubbed *scrubbed)
{
    return &scrubbed->report;
}

void shk_scrubbed_destroy(struct shk_scrubbed *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->facts_count; i++)
        shk_facts_destroy(s->facts[i]);
    free(s->facts);
    shk_findings_destroy(s->findings);
    shk_diagnoses_free(&s->diagnoses);
    for (size_t i = 0; i < sizeof s->texts / sizeof *s->texts; i++)
        free(s->texts[i]);
    shk_scrub_destroy(s->scrub);
    free(s);
}
