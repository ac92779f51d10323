#include "checks/base/check.h"

#include <errno.h>
#include <string.h>

static bool is_bad(const struct shk_finding *f)
{
    return f->verdict == SHK_FAIL || f->verdict == SHK_WARN;
}

static bool same_nodes(const struct shk_finding *a, const struct shk_finding *b)
{
    char **x = a->nodes, **y = b->nodes;
    while (x && y && *x && *y && strcmp(*x, *y) == 0) {
        x++;
        y++;
    }
    return x && y && !*x && !*y;
}

/* Is the fact, "env.NAME", among those of the row, or the variable that it judges? */
static bool is_about(const struct shk_finding *row, const char *fact)
{
    size_t len = strlen(fact);
    if (strncmp(fact, "env.", 4) == 0 && strcmp(row->setting, fact + 4) == 0)
        return true;
    for (const char *p = row->fact; p && *p; p += strcspn(p, ", "), p += strspn(p, ", "))
        if (strcspn(p, ", ") == len && strncmp(p, fact, len) == 0)
            return true;
    return false;
}

int shk_repeats_settle(struct shk_findings *findings)
{
    size_t count = shk_findings_count(findings);
    for (size_t i = 0; i < count; i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (!is_bad(f) || f->diagnosis || !f->fact || strcmp(f->id, "nodes.agree") != 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            const struct shk_finding *other = shk_findings_at(findings, k);
            if (!is_bad(other) || !other->diagnosis || strcmp(other->id, f->id) == 0 ||
                !is_about(other, f->fact) || !same_nodes(f, other))
                continue;
            if (shk_findings_set_diagnosis(findings, i, other->diagnosis))
                return -ENOMEM;
            break;
        }
    }
    return 0;
}
