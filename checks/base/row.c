#include "checks/base/row.h"
#include "checks/base/remedy.h"
#include "core/text/prose.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct shk_row shk_row_begin(const struct shk_check_context *ctx, const struct shk_check *check,
                             const char *setting)
{
    return (struct shk_row){.ctx = ctx,
                            .id = check->id,
                            .family = check->family,
                            .setting = setting,
                            .fallback = check->diagnosis,
                            .verdict = SHK_UNKNOWN,
                            .evidence = SHK_NOT_COVERED};
}

void shk_row_text(char **slot, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    shk_prose(text);
    free(*slot);
    *slot = text;
}

void shk_row_verdict(struct shk_row *row, enum shk_verdict verdict, enum shk_evidence evidence)
{
    row->verdict = verdict;
    row->evidence = evidence;
}

static bool claims_health(enum shk_verdict verdict)
{
    return verdict == SHK_PASS || verdict == SHK_NOTE || verdict == SHK_NA;
}

/* What was not read could have turned the row; n/a needs something that says so. */
static void row_doubt(struct shk_row *row)
{
    bool unproved = row->verdict == SHK_NA && !row->read;
    if (row->verdict != SHK_UNKNOWN && !claims_health(row->verdict))
        return;
    if (row->verdict != SHK_UNKNOWN && !row->unread && !unproved)
        return;
    shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
    row->diagnosis = NULL;
    shk_row_no_remedy(row);
    if (!row->unread)
        return;
    row->fact = row->unread_key;
    if (row->unread > 1)
        shk_row_text(&row->why, "%s (and %u more)", row->unread_why, row->unread - 1);
    else
        shk_row_text(&row->why, "%s", row->unread_why);
}

void shk_row_end(struct shk_findings *findings, struct shk_row *row)
{
    row_doubt(row);
    bool general = row->verdict == SHK_FAIL && !row->diagnosis;
    if (general)
        row->diagnosis = row->fallback;
    const struct shk_finding_in in = {.id = row->id,
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
                                      .general = general,
                                      .source = row->source,
                                      .fact = row->fact,
                                      .required = row->required,
                                      .scope = row->scope};
    shk_findings_add(findings, &in);
    shk_row_drop(row);
}

void shk_row_drop(struct shk_row *row)
{
    free(row->observed);
    free(row->expected);
    free(row->why);
    shk_row_no_remedy(row);
    free(row->unread_why);
    *row = (struct shk_row){0};
}

void shk_row_unread(struct shk_findings *findings, struct shk_row *row,
                    const struct shk_facts *facts, const char *key)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(facts, key, &fact);
    shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
    if (look == SHK_LOOK_FAILED || look == SHK_LOOK_ABSENT)
        shk_row_text(&row->why, "%s could not be read: %s", key,
                     fact.reason ? fact.reason : "no reason given");
    else if (look == SHK_LOOK_MISSING)
        shk_row_text(&row->why, "no probe collected %s", key);
    else
        shk_row_text(&row->why, "%s has an unexpected form", key);
    row->fact = key;
    shk_row_end(findings, row);
}

void shk_row_na(struct shk_findings *findings, struct shk_row *row, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    shk_prose(text);
    free(row->why);
    row->why = text;
    shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
    shk_row_end(findings, row);
}

bool shk_array_has(const json_t *array, const char *text, bool ignore_case)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        const char *s = json_string_value(item);
        if (s && (ignore_case ? strcasecmp(s, text) : strcmp(s, text)) == 0)
            return true;
    }
    return false;
}

void shk_strbuf_array(struct shk_strbuf *sb, const json_t *array, size_t max)
{
    size_t i, shown = 0;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        const char *s = json_string_value(item);
        if (!s)
            continue;
        if (shown == max) {
            shk_strbuf_puts(sb, ", …");
            return;
        }
        shk_strbuf_printf(sb, "%s%s", shown++ ? ", " : "", s);
    }
    if (!shown)
        shk_strbuf_puts(sb, "none");
}

size_t shk_list_count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

bool shk_list_has(const char *const *list, const char *text)
{
    for (; list && *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

char *shk_bytes_text(long long bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (bytes < 0)
        return shk_strf("unlimited");
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    bool whole = value == (double)(long long)value;
    return shk_strf(whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void shk_row_nodes(struct shk_findings *findings, const json_t *list, const char *member)
{
    size_t n = json_array_size(list), i, count = 0;
    const char **names = calloc(n + 1, sizeof *names);
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *name = member ? shk_member_words(item, member) : json_string_value(item);
        if (names && name && *name && !shk_list_has(names, name))
            names[count++] = name;
    }
    if (names && count)
        (void)!shk_findings_set_nodes(findings, shk_findings_count(findings) - 1, names, count);
    free(names);
}
