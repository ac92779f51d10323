/* Of the two ends of a pair of nodes that fail with each other, the one where the cause is. */
#include "checks/base/check.h"
#include "checks/base/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char pairs_key[] = "collective.fabric.pairs";

/* What is confirmed, and explains the diagnosis of the row. */
static const struct shk_diagnosis_row *cause_of(const struct shk_diagnoses *list, const char *key)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct shk_diagnosis_row *row = &list->rows[i];
        const struct shk_diagnosis_row *above = row->below ? &list->rows[row->below - 1] : NULL;
        if (strcmp(row->key, key) == 0)
            return above && strcmp(above->confidence, "confirmed") == 0 ? above : NULL;
    }
    return NULL;
}

static bool is_among(char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* A row of that cause names the node. */
static bool has_cause(const struct shk_findings *findings, const char *cause, const char *node)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if ((f->verdict == SHK_WARN || f->verdict == SHK_FAIL) && f->diagnosis &&
            strcmp(f->diagnosis, cause) == 0 && is_among(f->nodes, node))
            return true;
    }
    return false;
}

/* It works with some node, and fails only with nodes that have the cause. */
static bool is_innocent(const json_t *pairs, const struct shk_findings *findings, const char *cause,
                        const char *node)
{
    const json_t *pair;
    bool works = false;
    size_t i;
    json_array_foreach(pairs, i, pair)
    {
        const char *a = NULL, *b = NULL;
        bool ok = false;
        if (shk_look_member_text(pair, "a", &a) != SHK_LOOK_PRESENT ||
            shk_look_member_text(pair, "b", &b) != SHK_LOOK_PRESENT ||
            shk_look_member_bool(pair, "ok", &ok) != SHK_LOOK_PRESENT)
            return false;
        const char *other = strcmp(a, node) == 0 ? b : strcmp(b, node) == 0 ? a : NULL;
        if (other && !ok && !has_cause(findings, cause, other))
            return false;
        works |= other && ok;
    }
    return works;
}

static int settle_row(struct shk_findings *findings, size_t at, const json_t *pairs,
                      const char *cause)
{
    const struct shk_finding *f = shk_findings_at(findings, at);
    size_t count = 0, kept = 0, guilty = 0;
    while (f->nodes[count])
        count++;
    const char **keep = calloc(count + 1, sizeof *keep);
    if (!keep)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        bool has = has_cause(findings, cause, f->nodes[i]);
        guilty += has;
        if (has || !is_innocent(pairs, findings, cause, f->nodes[i]))
            keep[kept++] = f->nodes[i];
    }
    int rc = guilty && kept < count ? shk_findings_set_nodes(findings, at, keep, kept) : 0;
    free(keep);
    return rc;
}

int shk_ends_settle(struct shk_findings *findings, const struct shk_facts *const *facts,
                    size_t nodes, const struct shk_diagnoses *diagnoses)
{
    json_t *pairs = NULL;
    for (size_t i = 0; i < nodes && !pairs; i++)
        if (shk_look_array(facts[i], pairs_key, &pairs) != SHK_LOOK_PRESENT)
            pairs = NULL;
    for (size_t i = 0; pairs && i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        const struct shk_diagnosis_row *cause = f->verdict == SHK_FAIL && f->nodes &&
                                                        f->diagnosis &&
                                                        strcmp(f->id, "collective.allreduce") == 0
                                                    ? cause_of(diagnoses, f->diagnosis)
                                                    : NULL;
        int rc = cause ? settle_row(findings, i, pairs, cause->key) : 0;
        if (rc)
            return rc;
    }
    return 0;
}
