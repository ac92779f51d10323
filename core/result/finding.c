#include "core/result/finding.h"

#include "core/redact/redact.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdict_names[SHK_VERDICT_COUNT] = {
    [SHK_PASS] = "pass", [SHK_NOTE] = "note",       [SHK_WARN] = "warn",
    [SHK_FAIL] = "fail", [SHK_UNKNOWN] = "unknown", [SHK_NA] = "na",
};

static const char *const evidence_names[SHK_EVIDENCE_COUNT] = {
    [SHK_TESTED] = "tested",     [SHK_LOG] = "log",          [SHK_EFFECT] = "effect",
    [SHK_DECLARED] = "declared", [SHK_NOT_COVERED] = "none",
};

const char *shk_scope_name(enum shk_scope scope)
{
    return scope == SHK_SCOPE_LAUNCH ? "launch" : "node";
}

const char *shk_verdict_name(enum shk_verdict verdict)
{
    return verdict_names[verdict];
}

const char *shk_evidence_name(enum shk_evidence evidence)
{
    return evidence_names[evidence];
}

struct shk_findings {
    struct shk_finding *rows;
    size_t count, cap;
    bool lost;
};

struct shk_findings *shk_findings_create(void)
{
    return calloc(1, sizeof(struct shk_findings));
}

static void texts_free(char **texts)
{
    for (char **p = texts; p && *p; p++)
        free(*p);
    free(texts);
}

static void finding_clear(struct shk_finding *f)
{
    char *const texts[] = {f->id,  f->family, f->setting, f->observed,  f->expected, f->why,
                           f->fix, f->advice, f->source,  f->diagnosis, f->fact};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    texts_free(f->nodes);
    json_decref(f->edits);
}

void shk_findings_destroy(struct shk_findings *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        finding_clear(&list->rows[i]);
    free(list->rows);
    free(list);
}

/* All control characters but newline. */
static const char finding_controls[] =
    "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17"
    "\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";

/* Copy without secrets, and with control characters made visible as '?'. */
static char *finding_text(const char *text, bool *lost)
{
    if (!text)
        return NULL;
    char *copy = shk_redact(text);
    if (!copy) {
        *lost = true;
        return NULL;
    }
    for (char *p = copy + strcspn(copy, finding_controls); *p; p += strcspn(p, finding_controls))
        *p = '?';
    return copy;
}

/* A line that loses a secret or a character on the way says something else than it did. */
static void finding_fix(struct shk_finding *f, const struct shk_finding_in *in, bool *lost)
{
    f->fix = finding_text(in->fix, lost);
    f->advice = finding_text(in->advice, lost);
    bool line = f->fix && strcmp(f->fix, in->fix) == 0 && !strchr(f->fix, '\n');
    if (!f->fix || (line && strlen(f->fix) < SHK_FIX_MOST)) {
        f->edits = json_incref(in->edits);
        return;
    }
    if (!f->advice)
        f->advice = f->fix;
    else
        free(f->fix);
    f->fix = NULL;
}

void shk_findings_add(struct shk_findings *list, const struct shk_finding_in *in)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        struct shk_finding *rows = realloc(list->rows, cap * sizeof *rows);
        if (!rows) {
            list->lost = true;
            return;
        }
        list->rows = rows;
        list->cap = cap;
    }
    const char *why = NULL;
    bool *lost = &list->lost;
    bool secret = in->observed && shk_redact_value(in->setting, in->observed, &why);
    bool unlooked =
        (in->verdict == SHK_PASS || in->verdict == SHK_NOTE) && in->evidence == SHK_NOT_COVERED;
    list->rows[list->count++] = (struct shk_finding){
        .id = finding_text(in->id, lost),
        .family = finding_text(in->family, lost),
        .setting = finding_text(in->setting, lost),
        .verdict = unlooked ? SHK_UNKNOWN : in->verdict,
        .evidence = in->evidence,
        .observed = finding_text(secret ? SHK_REDACTED : in->observed, lost),
        .expected = finding_text(in->expected, lost),
        .why = finding_text(in->why, lost),
        .diagnosis = finding_text(in->diagnosis, lost),
        .general = in->general,
        .source = finding_text(in->source, lost),
        .fact = finding_text(in->fact, lost),
        .required = in->required,
        .scope = in->scope,
    };
    finding_fix(&list->rows[list->count - 1], in, lost);
}

void shk_findings_add_copy(struct shk_findings *list, const struct shk_finding *row)
{
    shk_findings_add(list, &(struct shk_finding_in){
                               .id = row->id,
                               .family = row->family,
                               .setting = row->setting,
                               .verdict = row->verdict,
                               .evidence = row->evidence,
                               .observed = row->observed,
                               .expected = row->expected,
                               .why = row->why,
                               .fix = row->fix,
                               .advice = row->advice,
                               .edits = row->edits,
                               .diagnosis = row->diagnosis,
                               .general = row->general,
                               .source = row->source,
                               .fact = row->fact,
                               .required = row->required,
                               .scope = row->scope,
                           });
}

void shk_findings_set_scope(struct shk_findings *list, size_t i, enum shk_scope scope)
{
    list->rows[i].scope = scope;
}

int shk_findings_set_diagnosis(struct shk_findings *list, size_t i, const char *key)
{
    char *copy = strdup(key);
    if (!copy)
        return -ENOMEM;
    free(list->rows[i].diagnosis);
    list->rows[i].diagnosis = copy;
    return 0;
}

int shk_findings_status(const struct shk_findings *list)
{
    return list->lost ? -ENOMEM : 0;
}

size_t shk_findings_count(const struct shk_findings *list)
{
    return list->count;
}

const struct shk_finding *shk_findings_at(const struct shk_findings *list, size_t i)
{
    return &list->rows[i];
}

int shk_findings_set_nodes(struct shk_findings *list, size_t i, const char *const *nodes,
                           size_t count)
{
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t k = 0; copy && k < count; k++) {
        if (!(copy[k] = strdup(nodes[k]))) {
            texts_free(copy);
            copy = NULL;
        }
    }
    if (!copy)
        return -ENOMEM;
    texts_free(list->rows[i].nodes);
    list->rows[i].nodes = copy;
    return 0;
}

struct sort_key {
    struct shk_finding row;
    size_t family, index;
};

static int sort_cmp(const void *a, const void *b)
{
    static const int rank[SHK_VERDICT_COUNT] = {[SHK_FAIL] = 0, [SHK_WARN] = 1, [SHK_UNKNOWN] = 2,
                                                [SHK_NOTE] = 3, [SHK_PASS] = 4, [SHK_NA] = 5};
    const struct sort_key *x = a, *y = b;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    if (x->row.verdict != y->row.verdict)
        return rank[x->row.verdict] - rank[y->row.verdict];
    int d = strcmp(x->row.setting, y->row.setting);
    if (d)
        return d;
    return x->index < y->index ? -1 : x->index > y->index;
}

void shk_findings_sort(struct shk_findings *list)
{
    struct sort_key *keys = calloc(list->count + 1, sizeof *keys);
    if (!keys) {
        list->lost = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t first = 0;
        while (strcmp(list->rows[first].family, list->rows[i].family) != 0)
            first++;
        keys[i] = (struct sort_key){list->rows[i], first, i};
    }
    qsort(keys, list->count, sizeof *keys, sort_cmp);
    for (size_t i = 0; i < list->count; i++)
        list->rows[i] = keys[i].row;
    free(keys);
}

struct shk_coverage shk_findings_coverage(const struct shk_findings *list)
{
    struct shk_coverage c = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct shk_finding *f = &list->rows[i];
        c.verdicts[f->verdict]++;
        if (f->verdict != SHK_NA)
            c.evidence[f->evidence]++;
        if (f->verdict == SHK_UNKNOWN && f->required)
            c.required_unknown++;
        if (f->verdict == SHK_UNKNOWN && f->required == SHK_ASKED)
            c.asked_unknown++;
    }
    return c;
}

void shk_diagnoses_free(struct shk_diagnoses *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++) {
        struct shk_diagnosis_row *r = &list->rows[i];
        char *const texts[] = {r->key,    r->title, r->explanation, r->fix,
                               r->advice, r->who,   r->confidence};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
        texts_free(r->evidence);
    }
    free(list->rows);
    *list = (struct shk_diagnoses){0};
}
