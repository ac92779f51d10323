/* What a site's profile has from good nodes: versions, and what they reach. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "core/facts/metrics.h"

#include <stdlib.h>
#include <string.h>

/* Texts, numbers and truth values; NULL: of another type. */
static char *expected_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "true" : "false");
    return json_is_number(value) ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))
                                 : NULL;
}

static void expected_list(struct shk_strbuf *out, const char *const *accepted)
{
    for (size_t i = 0; accepted && accepted[i]; i++)
        shk_strbuf_printf(out, "%s%s", i ? " or " : "", accepted[i]);
}

static enum shk_verdict expected_verdict(const struct shk_profile_fact *line)
{
    return !line->other || strcmp(line->other, "warn") == 0 ? SHK_WARN
           : strcmp(line->other, "fail") == 0               ? SHK_FAIL
                                                            : SHK_NOTE;
}

static void expected_fact(const struct shk_check_context *ctx, struct shk_findings *findings,
                          const struct shk_profile_fact *line)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_expected, line->fact);
    struct shk_strbuf accepted = SHK_STRBUF_INIT;
    struct shk_fact fact;
    enum shk_look look = shk_read(&row, line->fact, &fact);
    char *text = look == SHK_LOOK_PRESENT ? expected_text(fact.value) : NULL;
    bool good = text && shk_list_has(line->accepted, text);
    shk_read_profile(&row);
    expected_list(&accepted, line->accepted);
    row.fact = line->fact;
    row.source = line->source;
    shk_row_text(&row.expected, "%s", shk_strbuf_text(&accepted));
    shk_row_text(&row.observed, "%s", text ? text : "none");
    shk_row_text(&row.why, "%s", line->why);
    if (look == SHK_LOOK_PRESENT && !text)
        shk_row_lacks(&row, line->fact, "it is not a text, a number or a truth value");
    else if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_verdict(&row, good ? SHK_PASS : expected_verdict(line), SHK_TESTED);
    shk_row_end(findings, &row);
    shk_strbuf_free(&accepted);
    free(text);
}

/* The best bus bandwidth, or the time of the smallest size; negative: no size has one. */
static double expected_value(struct shk_row *row, const char *key, json_t *sizes, bool busbw)
{
    double best = -1, least = 0;
    json_t *size;
    size_t i;
    json_array_foreach(sizes, i, size)
    {
        double bytes = 0, value = 0;
        if (shk_read_member_number(row, key, size, "bytes", &bytes) != SHK_LOOK_PRESENT ||
            shk_read_member_number(row, key, size, busbw ? "busbw" : "time_us", &value) !=
                SHK_LOOK_PRESENT)
            continue;
        if (busbw ? value > best : best < 0 || bytes < least) {
            best = value;
            least = bytes;
        }
    }
    return best;
}

/* Of a collective that ran; false: the row is told, or said to lack it. */
static bool expected_collective(struct shk_findings *findings, struct shk_row *row,
                                const char *metric, double *value_p)
{
    bool busbw = strncmp(metric, "busbw.", 6) == 0;
    const char *transport = strchr(metric, '.') + 1, *status = NULL;
    char status_key[160], key[160];
    json_t *sizes = NULL;
    snprintf(status_key, sizeof status_key, "collective.%.120s.status", transport);
    snprintf(key, sizeof key, "collective.%.120s.sizes", transport);
    if (shk_read_text(row, status_key, &status) == SHK_LOOK_PRESENT && strcmp(status, "na") == 0) {
        shk_row_na(findings, row, "it was not run");
        return false;
    }
    if (!status || strcmp(status, "ok") != 0 ||
        shk_read_objects(row, key, &sizes) != SHK_LOOK_PRESENT)
        shk_row_lacks(row, key, "nothing was measured");
    else if ((*value_p = expected_value(row, key, sizes, busbw)) < 0)
        shk_row_lacks(row, key, "no size was measured");
    else
        return true;
    shk_row_end(findings, row);
    return false;
}

/* The slowest of all GPUs, or pairs. */
static bool expected_copy(struct shk_findings *findings, struct shk_row *row, const char *metric,
                          double *value_p)
{
    static const char key[] = "collective.peer.copies";
    bool pair = strcmp(metric, "copy.pair") == 0;
    json_t *nodes = NULL, *node, *list, *one;
    size_t i, k;
    *value_p = -1;
    if (shk_read_objects(row, key, &nodes) != SHK_LOOK_PRESENT)
        nodes = NULL;
    json_array_foreach(nodes, i, node)
    {
        if (!shk_read_told_array(row, key, node, pair ? "pairs" : "gpus", &list))
            continue;
        json_array_foreach(list, k, one)
        {
            double value = 0;
            if (shk_read_member_number(row, key, one, pair ? "gbs" : metric + strlen("copy."),
                                       &value) != SHK_LOOK_PRESENT)
                shk_row_lacks(row, key, "a copy was not measured");
            else if (*value_p < 0 || value < *value_p)
                *value_p = value;
        }
    }
    if (*value_p >= 0)
        return true;
    shk_row_lacks(row, key, "nothing was measured");
    shk_row_end(findings, row);
    return false;
}

static void expected_floor(const struct shk_check_context *ctx, struct shk_findings *findings,
                           const struct shk_profile_floor *line)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_expected, line->metric);
    const char *bound = line->at_least ? line->at_least : line->at_most;
    bool copy = strncmp(line->metric, "copy.", 5) == 0;
    const struct shk_metric *metric = shk_metric_find(line->metric);
    const char *unit = metric ? metric->unit : "";
    char fact[160];
    double value;
    snprintf(fact, sizeof fact, "collective.%.120s.%s",
             copy ? "peer" : strchr(line->metric, '.') + 1, copy ? "copies" : "sizes");
    row.fact = fact;
    row.source = line->source;
    shk_read_profile(&row);
    shk_row_text(&row.expected, "at %s %s %s", line->at_least ? "least" : "most", bound, unit);
    if (!(copy ? expected_copy(findings, &row, line->metric, &value)
               : expected_collective(findings, &row, line->metric, &value)))
        return;
    double limit = strtod(bound, NULL);
    bool bad = line->at_least ? value < limit : value > limit;
    shk_row_text(&row.observed, "%.4g %s", value, unit);
    shk_row_text(&row.why, "%s", line->why);
    shk_row_verdict(&row, bad ? SHK_WARN : SHK_PASS, SHK_TESTED);
    shk_row_end(findings, &row);
}

static void expected_eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < ctx->profile->facts_count; i++)
        expected_fact(ctx, findings, &ctx->profile->facts[i]);
    for (size_t i = 0; i < ctx->profile->floors_count; i++)
        expected_floor(ctx, findings, &ctx->profile->floors[i]);
}

const struct shk_check shk_check_expected = {
    .id = "site.expected",
    .family = "site",
    .title = "versions and measurements are those of the site's good nodes",
    .eval = expected_eval,
    .doc =
        "Facts and floors of the profile (shakedown profile --from). Another value than the good "
        "nodes have, and a measurement beyond the bound, is WARN; the bounds and their sources "
        "are in the profile.",
    .scope = SHK_SCOPE_NODE,
};
