#include "checks/past/rows.h"
#include "checks/past/past.h"
#include "core/text/strbuf.h"

#include <math.h>
#include <stdlib.h>

static const char rows_source[] =
    "checks/past/past.h: median and 1.4826 x MAD, 5 of these, and a least effect";

static void rows_add(struct shk_findings *findings, const struct shk_finding_in *row,
                     const char *node)
{
    shk_findings_add(findings, row);
    size_t n = shk_findings_count(findings);
    if (node && n)
        (void)!shk_findings_set_nodes(findings, n - 1, &node, 1);
}

/* Changes that a row names. */
enum { ROWS_CHANGES = 4 };

/* "nvml.driver 535.1 -> 550.2, ..." */
static void rows_changed(const json_t *changes, struct shk_strbuf *out)
{
    size_t i, n = json_array_size(changes);
    json_t *change;
    json_array_foreach((json_t *)changes, i, change)
    {
        const char *from = json_string_value(json_object_get(change, "from")),
                   *to = json_string_value(json_object_get(change, "to"));
        if (i < ROWS_CHANGES)
            shk_strbuf_printf(out, "%s%s %.60s -> %.60s", i ? ", " : "",
                              json_string_value(json_object_get(change, "path")),
                              from ? from : "none", to ? to : "none");
    }
    if (n > ROWS_CHANGES)
        shk_strbuf_printf(out, " and %zu more", n - ROWS_CHANGES);
}

static void rows_since(const json_t *changes, struct shk_strbuf *out)
{
    if (!changes) {
        shk_strbuf_puts(out, "; what changed since its last run is not known");
    } else if (json_array_size(changes)) {
        shk_strbuf_puts(out, "; changed since its last run: ");
        rows_changed(changes, out);
    } else {
        shk_strbuf_puts(out, "; no version or setting that is recorded has changed since");
    }
}

/* What the run is worse than; the text is empty when it is worse than nothing. *known_p: something
 * was compared. */
static void rows_compare(const struct shk_past_case *c, struct shk_strbuf *why, bool *known_p)
{
    double median, spread;
    *known_p = c->earlier_count >= SHK_PAST_FIRST || c->siblings_count >= SHK_PAST_SIBLINGS;
    if (c->earlier_count >= SHK_PAST_FIRST &&
        shk_past_outside(c->value, c->earlier, c->earlier_count, c->better, c->least, &median,
                         &spread)) {
        shk_strbuf_printf(why, "this node had %.4g %s (+- %.2g) in its last %zu runs", median,
                          c->unit, spread, c->earlier_count);
        rows_since(c->changed, why);
    }
    if (shk_past_outside(c->value, c->siblings, c->siblings_count, c->better, c->least, &median,
                         &spread))
        shk_strbuf_printf(why, "%s%zu other nodes of its kind have %.4g %s (+- %.2g)",
                          why->len ? "; " : "", c->siblings_count, median, c->unit, spread);
}

void shk_past_row(const struct shk_past_case *c, const char *node, struct shk_findings *findings)
{
    struct shk_strbuf why = SHK_STRBUF_INIT;
    bool known;
    rows_compare(c, &why, &known);
    char *seen = shk_strf("%.4g %s", c->value, c->unit);
    char *few =
        shk_strf("the history has %zu run%s of this node before it and %zu sibling%s; %d runs "
                 "or %d siblings are needed",
                 c->earlier_count, c->earlier_count == 1 ? "" : "s", c->siblings_count,
                 c->siblings_count == 1 ? "" : "s", SHK_PAST_FIRST, SHK_PAST_SIBLINGS);
    rows_add(findings,
             &(struct shk_finding_in){
                 .id = "history.past",
                 .family = "history",
                 .setting = c->metric,
                 .verdict = why.len ? SHK_WARN
                            : known ? SHK_PASS
                                    : SHK_UNKNOWN,
                 .evidence = known ? SHK_TESTED : SHK_NOT_COVERED,
                 .observed = seen,
                 .expected = known ? "as before, and as on the other nodes of its kind" : NULL,
                 .why = why.len ? shk_strbuf_text(&why)
                        : known ? c->title
                                : few,
                 .source = rows_source,
                 .scope = SHK_SCOPE_NODE,
             },
             node);
    shk_strbuf_free(&why);
    free(seen);
    free(few);
}

void shk_baseline_row(const struct shk_past_case *c, const char *node,
                      struct shk_findings *findings)
{
    bool known = c->earlier_count >= SHK_BASELINE_GOOD;
    double worst = c->earlier_count ? c->earlier[0] : NAN;
    for (size_t i = 1; i < c->earlier_count; i++)
        worst = c->better > 0 ? fmin(worst, c->earlier[i]) : fmax(worst, c->earlier[i]);
    bool bad = known && worst > 0 && c->better * (worst - c->value) > c->least * worst;
    char *seen = shk_strf("%.4g %s", c->value, c->unit);
    char *why =
        known ? shk_strf("the worst of %zu good runs has %.4g %s", c->earlier_count, worst, c->unit)
              : shk_strf("the baseline has %zu good runs of such a node, %d are needed",
                         c->earlier_count, SHK_BASELINE_GOOD);
    rows_add(findings,
             &(struct shk_finding_in){
                 .id = "baseline.worse",
                 .family = "baseline",
                 .setting = c->metric,
                 .verdict = bad     ? SHK_WARN
                            : known ? SHK_PASS
                                    : SHK_UNKNOWN,
                 .evidence = known ? SHK_TESTED : SHK_NOT_COVERED,
                 .observed = seen,
                 .why = why,
                 .source = "the documents of --baseline",
                 .scope = SHK_SCOPE_NODE,
             },
             node);
    free(seen);
    free(why);
}

/* A value that some good one has, too; *one_p: another of theirs, NULL none has the path. */
static bool baseline_has(const json_t *good, const char *path, const json_t *value,
                         const char **one_p)
{
    size_t i;
    json_t *states;
    *one_p = NULL;
    json_array_foreach((json_t *)good, i, states)
    {
        const json_t *theirs = json_object_get(states, path);
        if (theirs && json_equal(theirs, value))
            return true;
        *one_p = json_is_string(theirs) ? json_string_value(theirs) : *one_p;
    }
    return false;
}

void shk_baseline_settings(const json_t *mine, const json_t *good, const char *node,
                           struct shk_findings *findings)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    size_t differs = 0, unread = 0, n = json_array_size(good);
    const char *path, *one;
    json_t *value;
    json_object_foreach((json_t *)mine, path, value)
    {
        bool has = baseline_has(good, path, value, &one);
        unread += json_is_null(value) && one;
        if (has || !one || !json_is_string(value) || differs++ >= ROWS_CHANGES)
            continue;
        shk_strbuf_printf(&seen, "%s%s %.60s (good: %.60s)", seen.len ? ", " : "", path,
                          json_string_value(value), one);
    }
    if (differs > ROWS_CHANGES)
        shk_strbuf_printf(&seen, " and %zu more", differs - ROWS_CHANGES);
    char *why = differs  ? shk_strf("no document of the baseline (%zu) has these", n)
                : unread ? shk_strf("%zu that good nodes have could not be read", unread)
                         : NULL;
    if (n)
        rows_add(findings,
                 &(struct shk_finding_in){
                     .id = "baseline.settings",
                     .family = "baseline",
                     .setting = "versions and settings",
                     .verdict = differs  ? SHK_NOTE
                                : unread ? SHK_UNKNOWN
                                         : SHK_PASS,
                     .evidence = differs || !unread ? SHK_TESTED : SHK_NOT_COVERED,
                     .observed = differs  ? shk_strbuf_text(&seen)
                                 : unread ? NULL
                                          : "as on good nodes",
                     .why = why,
                     .source = "the documents of --baseline",
                     .scope = SHK_SCOPE_NODE,
                 },
                 node);
    shk_strbuf_free(&seen);
    free(why);
}
