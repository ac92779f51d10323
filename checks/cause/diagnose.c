/* Findings that share a key become one root cause; causes are ranked before their effects. */
#include "checks/base/check.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 8, MAX_FIXES = 4 };
enum { LIKELY = 50 }; /* a net weight from here on is likely */

/* A FAIL outranks any number of WARNs; evidence decides between equals. */
static const double verdict_score[] = {[SHK_FAIL] = 1000, [SHK_WARN] = 300};
static const double evidence_score[] = {
    [SHK_TESTED] = 90, [SHK_LOG] = 80, [SHK_EFFECT] = 50, [SHK_DECLARED] = 10};
static const double declared_fail_score = 700; /* nobody saw an effect of it */
static const double undiagnosed_score =
    0.5; /* a failed check without a diagnosis that is closer than its own */
static const double more_score = 5; /* each further finding with the key, up to four */
/* A line that only one cause prints (weight 100) is worth a FAIL. */
static const double clue_score = 10, more_clue_score = 2;
static const double both_score = 0.3; /* of the weaker one of findings and clues */
static const int refuted_weight = 60; /* taken from a cause that a fact speaks against */
static const int late_weight = 70;    /* makes likely what comes after unknown errors */
static const int agreed_weight = 40;  /* makes likely what a check or a fact says as well */
static const int strong_weight = 60;  /* of a clue that puts mere settings below its cause */
/* Of several causes that a line may have, the one that a fact shows is above the first of them,
 * also where it is the second one of the line and weighs half. */
static const double confirmed_guess = 2.5;

/* One key while it is being merged. */
struct cause {
    const char *key;
    const struct shk_diagnosis *entry; /* NULL: not in the catalogue */
    const struct shk_finding *first;   /* the strongest finding */
    struct shk_strbuf lines[MAX_LINES];
    size_t line_count, count;
    const char *fixes[MAX_FIXES], *advice[MAX_FIXES];
    size_t fix_count, advice_count;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    double score;
    enum shk_scope scope; /* node when any finding is */
    int weight, against;  /* of the strongest clue for it; sum of those against */
    size_t clues;
    bool specific;             /* more than a symptom or a guess among several causes */
    bool seen;                 /* a log, a measurement or the system shows it, not only a setting */
    const struct cause *above; /* explains this one; NULL */
    const char *above_key;     /* of it: sorting moves the causes */
    bool guess;                /* it, or what explains it, is only possible */
    bool named;                /* by the catalogue, not only as a symptom of any cause */
    bool confirmed, refuted;   /* by what the entry says of facts */
    bool stated;               /* no probe has read these facts */
    size_t lines_seen;         /* clues that are lines of a log, */
    size_t lines_late;     /* and those after a line that looks like an error and is not known */
    const json_t *unknown; /* the first such line */
    const struct shk_clue *defect; /* the strongest that tells of a release's defect */
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
}

/* Each once. */
static void add_once(const char **texts, size_t *count, const char *text)
{
    if (!text || !*text || *count == MAX_FIXES)
        return;
    for (size_t i = 0; i < *count; i++)
        if (strcmp(texts[i], text) == 0)
            return;
    texts[(*count)++] = text;
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
    if (cause->scope != SHK_SCOPE_NODE)
        cause->scope = f->scope;
    cause->seen |= f->evidence < SHK_DECLARED;
    add_line(cause, f);
    add_once(cause->fixes, &cause->fix_count, f->fix);
    add_once(cause->advice, &cause->advice_count, f->advice);
}

static bool compares(const struct shk_finding *f)
{
    return strcmp(f->id, "nodes.agree") == 0;
}

/* That a node differs says nothing more of what is known to be wrong there. */
static void merge_repeat(struct cause *cause, const struct shk_finding *f)
{
    if (cause->count)
        add_line(cause, f);
    else
        merge(cause, f);
}

/* Two signatures may match one line, which is then no second piece of evidence: false. */
static bool add_text(struct cause *cause, const char *text)
{
    for (size_t i = 0; i < cause->line_count; i++)
        if (strcmp(shk_strbuf_text(&cause->lines[i]), text) == 0)
            return false;
    if (cause->line_count < MAX_LINES)
        shk_strbuf_puts(&cause->lines[cause->line_count++], text);
    return true;
}

/* The strongest clues come first, in front of what the findings say. */
static void merge_clue(struct cause *cause, const struct shk_clue *clue,
                       const struct shk_facts *log)
{
    if (clue->weight < 0) {
        cause->against += clue->weight;
        return;
    }
    const json_t *unknown = log && clue->seen ? shk_log_unknown_before(log, clue->seen) : NULL;
    if (add_text(cause, clue->text)) {
        cause->clues++;
        cause->lines_seen += clue->seen != NULL;
        cause->lines_late += unknown != NULL;
    }
    cause->unknown = cause->unknown ? cause->unknown : unknown;
    if (clue->defect && !cause->defect)
        cause->defect = clue;
    cause->specific |= clue->specific;
    cause->seen |= clue->specific;
    if (clue->weight > cause->weight)
        cause->weight = clue->weight;
}

static double findings_score(const struct cause *cause)
{
    if (!cause->count)
        return 0;
    size_t more = cause->count - 1 > 4 ? 4 : cause->count - 1;
    bool declared = cause->verdict == SHK_FAIL && cause->evidence == SHK_DECLARED;
    double s = declared ? declared_fail_score : verdict_score[cause->verdict];
    s += more_score * (double)more;
    return cause->evidence < SHK_NOT_COVERED ? s + evidence_score[cause->evidence] : s;
}

static double clues_score(const struct cause *cause)
{
    size_t more = cause->clues > 5 ? 4 : cause->clues ? cause->clues - 1 : 0;
    return cause->weight ? clue_score * cause->weight + more_clue_score * (double)more : 0;
}

static void score(struct cause *cause)
{
    double a = findings_score(cause), b = clues_score(cause);
    cause->score = a > b ? a + both_score * b : b + both_score * a;
    cause->score += clue_score * cause->against;
    if (cause->confirmed && cause->weight && cause->weight < LIKELY)
        cause->score *= confirmed_guess;
    if (cause->first && (!cause->first->diagnosis || cause->first->general))
        cause->score *= undiagnosed_score;
    cause->specific |= cause->count && cause->verdict == SHK_FAIL;
    if (!cause->count && cause->specific && cause->weight >= 70)
        cause->verdict = SHK_FAIL;
}

static bool is_symptom(const struct cause *cause)
{
    return (cause->entry && cause->entry->symptom) || (!cause->specific && !cause->count);
}

static bool explains(const struct cause *cause, const char *key)
{
    for (const char *const *k = cause->entry ? cause->entry->explains : NULL; k && *k; k++)
        if (strcmp(*k, key) == 0)
            return true;
    return false;
}

/* Something shows that this happened, and it does harm. */
static bool strong(const struct cause *cause)
{
    bool harmless = is_symptom(cause) || (cause->entry && cause->entry->benign);
    bool named = cause->first && cause->first->diagnosis && !cause->first->general;
    bool failed = cause->count && cause->verdict == SHK_FAIL && named;
    return cause->seen && !harmless && (failed || cause->weight >= strong_weight);
}

/* A symptom is below every cause that more than a guess speaks for. */
static bool outranks(const struct cause *a, const struct cause *b)
{
    bool general = b->entry && b->entry->symptom;
    return is_symptom(b) && !is_symptom(a) && (a->specific || (general && a->count));
}

/* A setting of which nobody saw an effect is below what was seen, unless it explains just that. */
static bool outweighs(const struct cause *a, const struct cause *b)
{
    return strong(a) && !b->seen && !explains(b, a->key);
}

/* Puts effects below their causes. Bounded: each pass can only lower, and chains are short. */
static void lower_effects(struct cause *causes, size_t count)
{
    for (size_t pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < count; j++) {
                struct cause *a = &causes[i], *b = &causes[j];
                bool known = a->specific || (a->count && (!b->weight || !b->seen));
                bool named = known && explains(a, b->key) && !explains(b, a->key);
                bool effect = named || outranks(a, b);
                if (i == j || (!effect && !outweighs(a, b)))
                    continue;
                if (b->score >= a->score)
                    b->score = a->score - 1;
                if (!effect)
                    continue;
                if (named || !b->above || (!b->named && a->score > b->above->score)) {
                    b->above = a;
                    b->named = named;
                }
            }
}

/* Something that nobody knows went wrong before all that speaks for this cause. */
static bool comes_late(const struct cause *cause)
{
    return !cause->count && cause->lines_seen && cause->lines_late == cause->clues;
}

/* Of clues alone, or where they agree with findings. */
static const char *clue_confidence(const struct cause *cause)
{
    bool late = comes_late(cause);
    int net = cause->weight + cause->against, likely = late ? late_weight : LIKELY;
    if (cause->count && net >= LIKELY)
        return "confirmed";
    if (net >= 85 && cause->clues > 1 && !late)
        return "confirmed";
    return cause->specific && net >= likely ? "likely" : "possible";
}

/* A line that alone has several causes, and something on the node that shows this one. */
static bool agreed(const struct cause *cause)
{
    bool seen = cause->count && cause->evidence < SHK_DECLARED;
    return (seen || cause->confirmed) && cause->specific &&
           cause->weight + cause->against >= agreed_weight;
}

static const char *confidence(const struct cause *cause)
{
    if (cause->refuted)
        return "possible";
    if (cause->confirmed && cause->specific && cause->weight + cause->against >= strong_weight)
        return "confirmed";
    if (cause->weight && clues_score(cause) > findings_score(cause)) {
        const char *sure = clue_confidence(cause);
        return agreed(cause) && strcmp(sure, "possible") == 0 ? "likely" : sure;
    }
    bool seen =
        cause->evidence == SHK_TESTED || (cause->evidence == SHK_EFFECT && cause->count > 1);
    if (cause->verdict == SHK_FAIL)
        return cause->evidence == SHK_LOG || (seen && !cause->stated) ? "confirmed" : "likely";
    return cause->evidence < SHK_DECLARED ? "likely" : "possible";
}

/* What the findings say, else the catalogue; NULL when there is nothing to say. */
static char *join_texts(const char *const *texts, size_t count, const char *general)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        shk_strbuf_printf(&sb, "%s%s", i ? "\n" : "", texts[i]);
    if (!count && general)
        shk_strbuf_puts(&sb, general);
    return sb.len ? shk_strbuf_take(&sb) : NULL;
}

/* The general fix goes with the general advice: where the findings have either, both are theirs. */
static void fill_remedy(struct shk_diagnosis_row *row, const struct cause *cause)
{
    const struct shk_diagnosis *entry = cause->entry;
    bool own = cause->fix_count || cause->advice_count;
    row->fix = join_texts(cause->fixes, cause->fix_count, own || !entry ? NULL : entry->fix);
    row->advice =
        join_texts(cause->advice, cause->advice_count,
                   !entry || cause->advice_count || (own && entry->fix) ? NULL : entry->advice);
}

/* Of a cause that the catalogue does not know: what its check saw. */
static char *own_title(const struct cause *cause)
{
    const struct shk_finding *first = cause->first;
    if (!first)
        return shk_copy(cause->key);
    return first->observed && *first->observed ? shk_strf("%s: %s", first->setting, first->observed)
                                               : shk_copy(first->setting);
}

static int fill_row(struct shk_diagnosis_row *row, struct cause *cause)
{
    const struct shk_diagnosis *entry = cause->entry;
    const struct shk_finding *first = cause->first;
    row->key = shk_copy(cause->key);
    row->title = entry ? shk_copy(entry->title) : own_title(cause);
    row->explanation = shk_copy(entry ? entry->explanation : first ? first->why : NULL);
    fill_remedy(row, cause);
    row->who = shk_copy(entry ? entry->who : "user or admin");
    row->confidence = shk_copy(confidence(cause));
    row->score = cause->score;
    row->verdict = cause->verdict;
    row->scope = cause->count ? cause->scope : shk_scope_of(entry);
    row->evidence = calloc(cause->line_count + 1, sizeof(*row->evidence));
    if (!row->key || !row->title || !row->explanation || !row->who || !row->confidence ||
        !row->evidence)
        return -ENOMEM;
    for (size_t i = 0; i < cause->line_count; i++) {
        row->evidence[i] = shk_strbuf_take(&cause->lines[i]);
        if (!row->evidence[i])
            return -ENOMEM;
    }
    return 0;
}

static void add_unknown(struct cause *cause)
{
    char *place = comes_late(cause) ? shk_log_unknown_place(cause->unknown) : NULL;
    if (place && cause->line_count < MAX_LINES)
        shk_strbuf_printf(&cause->lines[cause->line_count++],
                          "less sure, for an error that no signature knows comes before: %s: %s",
                          place, shk_log_unknown_text(cause->unknown));
    free(place);
}

/* What would decide under a guess. */
static void add_notes(struct cause *causes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cause *cause = &causes[i];
        const char *confirm = cause->entry ? cause->entry->confirm : NULL;
        const struct cause *root = cause;
        for (size_t step = 0; root->above && step < count; step++)
            root = root->above;
        cause->guess = strcmp(confidence(root), "possible") == 0;
        cause->above_key = cause->above ? cause->above->key : NULL;
        add_unknown(cause);
        if (!cause->clues || strcmp(confidence(cause), "possible") != 0 || !confirm ||
            cause->line_count == MAX_LINES)
            continue;
        shk_strbuf_printf(&cause->lines[cause->line_count++],
                          "the evidence is thin; this would decide it: %s", confirm);
    }
}

/* Its place in the ranking, from 1. */
static size_t number_of(const struct cause *causes, size_t count, const char *key)
{
    for (size_t i = 0; key && i < count; i++)
        if (strcmp(causes[i].key, key) == 0)
            return i + 1;
    return 0;
}

/* A guess, with what it explains, never stands above what is likely. */
static int by_score(const void *a, const void *b)
{
    const struct cause *x = a, *y = b;
    if (x->guess != y->guess)
        return x->guess ? 1 : -1;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return strcmp(x->key, y->key);
}

/* Strongest first: only so many lines of evidence are shown. */
static int by_weight(const void *a, const void *b)
{
    const struct shk_clue *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

/* Keeps what has more evidence for it than against it. */
static size_t keep_causes(struct cause *causes, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool clues = causes[i].weight + causes[i].against > 0;
        bool failed = causes[i].count && causes[i].verdict == SHK_FAIL;
        if (failed || (causes[i].score > 0 && (causes[i].count || clues))) {
            struct cause keep = causes[i];
            causes[i] = causes[kept];
            causes[kept++] = keep;
        }
    }
    return kept;
}

/* Does one of the conditions hold on a node (`every`: on each of them)? */
static bool holds(const char *const *conditions, const struct shk_facts *const *facts, size_t nodes,
                  bool every)
{
    size_t hits = 0;
    for (size_t n = 0; n < nodes; n++) {
        bool hit = false;
        for (const char *const *c = conditions; c && *c && !hit; c++)
            hit = shk_condition_holds(*c, facts[n]) == 1;
        hits += hit;
    }
    return every ? nodes && hits == nodes : hits > 0;
}

/* What facts say about causes of which no check is sure. */
static void weigh_facts(struct cause *causes, size_t count, const struct shk_facts *const *facts,
                        size_t nodes)
{
    for (size_t i = 0; i < count; i++) {
        struct cause *cause = &causes[i];
        const struct shk_diagnosis *entry = cause->entry;
        cause->stated = nodes && !shk_facts_probed(facts[0]);
        if (!entry || (cause->count && cause->verdict == SHK_FAIL))
            continue;
        cause->refuted = holds(entry->refuted, facts, nodes, true);
        cause->confirmed = !cause->refuted && holds(entry->confirmed, facts, nodes, false);
        if (cause->refuted && cause->weight) {
            cause->weight -= refuted_weight;
            cause->specific = false;
        }
    }
}

static int rank(struct cause *causes, size_t count, struct shk_diagnoses *out)
{
    for (size_t i = 0; i < count; i++)
        score(&causes[i]);
    size_t kept = keep_causes(causes, count);
    lower_effects(causes, kept);
    add_notes(causes, kept);
    qsort(causes, kept, sizeof(*causes), by_score);
    out->rows = calloc(kept + 1, sizeof(*out->rows));
    if (!out->rows)
        return -ENOMEM;
    for (size_t i = 0; i < kept; i++) {
        out->count = i + 1;
        out->rows[i].below = number_of(causes, kept, causes[i].above_key);
        if (fill_row(&out->rows[i], &causes[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Failed checks that no diagnosis is known for stand for themselves: every FAIL is among the
 * causes. */
static void merge_undiagnosed(struct cause *causes, size_t *count, const struct shk_config *config,
                              const struct shk_findings *findings)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (f->verdict == SHK_FAIL && !f->diagnosis)
            merge(cause_of(causes, count, config, f->id), f);
    }
}

/* The row of a cause that a known defect of a release speaks for. */
static int tell_defect(struct shk_diagnoses *out, const struct shk_config *config,
                       const struct cause *cause)
{
    for (size_t i = 0; cause->defect && i < out->count; i++)
        if (strcmp(out->rows[i].key, cause->key) == 0)
            return shk_defect_tell(&out->rows[i], config, cause->defect);
    return 0;
}

static int diagnose(const struct shk_config *config, const struct shk_findings *findings,
                    const struct shk_clues *clues, const struct shk_facts *const *facts,
                    size_t nodes, struct shk_diagnoses *out)
{
    size_t total = shk_findings_count(findings), count = 0;
    struct cause *causes = calloc(total + clues->count + 1, sizeof(*causes));
    if (!causes)
        return -ENOMEM;
    for (size_t i = 0; i < clues->count; i++)
        merge_clue(cause_of(causes, &count, config, clues->items[i].key), &clues->items[i],
                   nodes ? facts[0] : NULL);
    for (size_t i = 0; i < total; i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (counts(f) && !compares(f))
            merge(cause_of(causes, &count, config, f->diagnosis), f);
    }
    for (size_t i = 0; i < total; i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (counts(f) && compares(f))
            merge_repeat(cause_of(causes, &count, config, f->diagnosis), f);
    }
    merge_undiagnosed(causes, &count, config, findings);
    weigh_facts(causes, count, facts, nodes);
    int rc = rank(causes, count, out);
    for (size_t i = 0; i < count && !rc; i++)
        rc = tell_defect(out, config, &causes[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < MAX_LINES; j++)
            shk_strbuf_free(&causes[i].lines[j]);
    free(causes);
    return rc;
}

static int weigh(const struct shk_config *config, const struct shk_findings *findings,
                 struct shk_clues *clues, const struct shk_facts *const *facts, size_t nodes,
                 struct shk_diagnoses *out)
{
    if (clues->count)
        qsort(clues->items, clues->count, sizeof(*clues->items), by_weight);
    return clues->failed ? -ENOMEM : diagnose(config, findings, clues, facts, nodes, out);
}

static int diagnose_all(const struct shk_config *config, const struct shk_findings *findings,
                        const struct shk_facts *const *facts, size_t nodes, bool part,
                        struct shk_diagnoses *diagnoses_p, struct shk_error *err)
{
    struct shk_clues clues = {0};
    struct shk_diagnoses out = {0};
    struct shk_facts **more = part ? shk_facts_implied(facts, nodes) : NULL;
    clues.failed = part && !more;
    if (more) /* what logs show is borrowed from them until the ranking is done */
        facts = (const struct shk_facts *const *)more;
    if (!clues.failed)
        shk_clues_gather(&clues, config, findings, facts, nodes, part);
    int rc = weigh(config, findings, &clues, facts, nodes, &out);
    if (!rc && shk_clues_from_words(&clues, config, facts, nodes, &out)) {
        shk_diagnoses_free(&out);
        out = (struct shk_diagnoses){0};
        rc = weigh(config, findings, &clues, facts, nodes, &out);
    }
    shk_clues_free(&clues);
    shk_facts_forget(more, nodes);
    if (rc < 0) {
        shk_diagnoses_free(&out);
        return shk_error_set(err, -rc, "out of memory while ranking causes");
    }
    *diagnoses_p = out;
    return 0;
}

int shk_diagnose(const struct shk_config *config, const struct shk_findings *findings,
                 const struct shk_facts *const *facts, size_t nodes,
                 struct shk_diagnoses *diagnoses_p, struct shk_error *err)
{
    return diagnose_all(config, findings, facts, nodes, false, diagnoses_p, err);
}

int shk_diagnose_part(const struct shk_config *config, const struct shk_findings *findings,
                      const struct shk_facts *const *facts, size_t nodes,
                      struct shk_diagnoses *diagnoses_p, struct shk_error *err)
{
    return diagnose_all(config, findings, facts, nodes, true, diagnoses_p, err);
}
