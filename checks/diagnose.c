/* Findings that share a key become one root cause; causes are ranked before their effects. */
#include "checks/check.h"
#include "core/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 8, MAX_FIXES = 4 };

/* A FAIL outranks any number of WARNs; evidence decides between equals. */
static const double verdict_score[] = {[SHK_FAIL] = 1000, [SHK_WARN] = 300};
static const double evidence_score[] = {
    [SHK_TESTED] = 90, [SHK_LOG] = 80, [SHK_EFFECT] = 50, [SHK_DECLARED] = 10};
static const double more_score = 5; /* each further finding with the key, up to four */

/* One key while it is being merged. */
struct cause {
    const char *key;
    const struct shk_diagnosis *entry; /* NULL: not in the catalogue */
    const struct shk_finding *first;   /* the strongest finding */
    struct shk_strbuf lines[MAX_LINES];
    size_t line_count, count;
    const char *fixes[MAX_FIXES];
    size_t fix_count;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    double score;
};

static bool counts(const struct shk_finding *f)
{
    return f->diagnosis && (f->verdict == SHK_FAIL || f->verdict == SHK_WARN);
}

static struct cause *cause_of(struct cause *causes, size_t *count, const struct shk_config *config,
                              const char *key)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(causes[i].key, key) == 0)
            return &causes[i];
    struct cause *cause = &causes[(*count)++];
    *cause = (struct cause){.key = key,
                            .entry = shk_config_diagnosis(config, key),
                            .verdict = SHK_WARN,
                            .evidence = SHK_NOT_COVERED};
    return cause;
}

static void add_line(struct cause *cause, const struct shk_finding *f)
{
    if (cause->line_count == MAX_LINES)
        return;
    struct shk_strbuf *sb = &cause->lines[cause->line_count++];
    shk_strbuf_puts(sb, f->setting);
    if (f->observed && *f->observed)
        shk_strbuf_printf(sb, " = %s", f->observed);
    if (f->why && *f->why)
        shk_strbuf_printf(sb, ": %s", f->why);
    for (char **node = f->nodes; node && *node; node++)
        shk_strbuf_printf(sb, "%s%s", node == f->nodes ? " [" : ", ", *node);
    if (f->nodes && f->nodes[0])
        shk_strbuf_putc(sb, ']');
}

static void add_fix(struct cause *cause, const char *fix)
{
    if (!fix || !*fix || cause->fix_count == MAX_FIXES)
        return;
    for (size_t i = 0; i < cause->fix_count; i++)
        if (strcmp(cause->fixes[i], fix) == 0)
            return;
    cause->fixes[cause->fix_count++] = fix;
}

static bool stronger(const struct shk_finding *f, const struct cause *cause)
{
    if (!cause->first || f->verdict != cause->verdict)
        return !cause->first || f->verdict == SHK_FAIL;
    return f->evidence < cause->evidence;
}

static void merge(struct cause *cause, const struct shk_finding *f)
{
    if (stronger(f, cause)) {
        cause->first = f;
        cause->verdict = f->verdict;
        cause->evidence = f->evidence;
    }
    cause->count++;
    add_line(cause, f);
    add_fix(cause, f->fix);
}

static void score(struct cause *cause)
{
    size_t more = cause->count - 1 > 4 ? 4 : cause->count - 1;
    cause->score = verdict_score[cause->verdict] + more_score * (double)more;
    if (cause->evidence < SHK_NOT_COVERED)
        cause->score += evidence_score[cause->evidence];
}

static bool is_symptom(const struct cause *cause)
{
    return cause->entry && cause->entry->symptom;
}

static bool explains(const struct cause *cause, const char *key)
{
    for (const char *const *k = cause->entry ? cause->entry->explains : NULL; k && *k; k++)
        if (strcmp(*k, key) == 0)
            return true;
    return false;
}

/* Puts effects below their causes. Bounded: each pass can only lower, and chains are short. */
static void lower_effects(struct cause *causes, size_t count)
{
    for (size_t pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < count; j++) {
                struct cause *a = &causes[i], *b = &causes[j];
                bool effect = (explains(a, b->key) && !explains(b, a->key)) ||
                              (is_symptom(b) && !is_symptom(a));
                if (i != j && effect && b->score >= a->score)
                    b->score = a->score - 1;
            }
}

static const char *confidence(const struct cause *cause)
{
    bool seen = cause->evidence == SHK_TESTED || cause->evidence == SHK_LOG;
    if (cause->verdict == SHK_FAIL)
        return seen || (cause->evidence == SHK_EFFECT && cause->count > 1) ? "confirmed" : "likely";
    return seen || cause->evidence == SHK_EFFECT ? "likely" : "possible";
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static char *fix_text(const struct cause *cause)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < cause->fix_count; i++)
        shk_strbuf_printf(&sb, "%s%s", i ? "\n" : "", cause->fixes[i]);
    if (!cause->fix_count && cause->entry && cause->entry->fix)
        shk_strbuf_puts(&sb, cause->entry->fix);
    return sb.len ? shk_strbuf_take(&sb) : copy("");
}

static int fill_row(struct shk_diagnosis_row *row, struct cause *cause)
{
    const struct shk_diagnosis *entry = cause->entry;
    const struct shk_finding *first = cause->first;
    row->key = copy(cause->key);
    row->title = copy(entry ? entry->title : first->setting);
    row->explanation = copy(entry ? entry->explanation : first->why);
    row->fix = fix_text(cause);
    row->who = copy(entry ? entry->who : "user");
    row->confidence = copy(confidence(cause));
    row->score = cause->score;
    row->verdict = cause->verdict;
    row->evidence = calloc(cause->line_count + 1, sizeof(*row->evidence));
    if (!row->key || !row->title || !row->explanation || !row->fix || !row->who ||
        !row->confidence || !row->evidence)
        return -ENOMEM;
    for (size_t i = 0; i < cause->line_count; i++) {
        row->evidence[i] = shk_strbuf_take(&cause->lines[i]);
        if (!row->evidence[i])
            return -ENOMEM;
    }
    return 0;
}

static int by_score(const void *a, const void *b)
{
    const struct cause *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return strcmp(x->key, y->key);
}

int shk_diagnose_findings(const struct shk_config *config, const struct shk_findings *findings,
                          struct shk_diagnoses *diagnoses_p, struct shk_error *err)
{
    size_t total = shk_findings_count(findings), count = 0;
    struct shk_diagnoses out = {0};
    struct cause *causes = calloc(total + 1, sizeof(*causes));
    int rc = -ENOMEM;
    if (!causes)
        goto out;
    for (size_t i = 0; i < total; i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (counts(f))
            merge(cause_of(causes, &count, config, f->diagnosis), f);
    }
    for (size_t i = 0; i < count; i++)
        score(&causes[i]);
    lower_effects(causes, count);
    qsort(causes, count, sizeof(*causes), by_score);
    out.rows = calloc(count + 1, sizeof(*out.rows));
    if (!out.rows)
        goto out;
    for (size_t i = 0; i < count; i++) {
        out.count = i + 1;
        if (fill_row(&out.rows[i], &causes[i]) < 0)
            goto out;
    }
    *diagnoses_p = out;
    out = (struct shk_diagnoses){0};
    rc = 0;
out:
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < MAX_LINES; j++)
            shk_strbuf_free(&causes[i].lines[j]);
    free(causes);
    shk_diagnoses_free(&out);
    return rc < 0 ? shk_error_set(err, -rc, "out of memory while ranking causes") : 0;
}
