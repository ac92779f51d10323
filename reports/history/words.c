#include "core/text/nodefold.h"
#include "reports/formats.h"
#include "reports/history/history.h"
#include "reports/privacy/scrub.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Changes that one sentence names. */
enum { WORDS_CHANGES = 3, WORDS_DATE = 10 };

const char *shk_history_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double words_number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

void shk_history_names(struct shk_strbuf *out, const json_t *names)
{
    size_t n = json_array_size(names), i;
    const char **list = calloc(n + 1, sizeof *list);
    const json_t *name;
    out->failed |= !list;
    json_array_foreach(list ? names : NULL, i, name) list[i] =
        json_string_value(name) ? json_string_value(name) : "";
    if (list)
        shk_nodefold(out, list, n);
    free(list);
}

/* "nvml.driver from 535 to 550 on 2026-10-30" */
static void words_software(struct shk_strbuf *out, const json_t *row)
{
    const json_t *list = json_object_get(row, "software"), *change;
    bool step = strcmp(shk_history_text(row, "change"), "step") == 0;
    size_t i, n = json_array_size(list);
    if (!n) {
        shk_strbuf_puts(out, json_is_array(list)
                                 ? "; no version or setting that is recorded changed then"
                                 : "; what else changed then is not known");
        return;
    }
    shk_strbuf_puts(out, step ? "; changed with it: " : "; changed meanwhile: ");
    json_array_foreach(list, i, change)
    {
        if (i == WORDS_CHANGES) {
            shk_strbuf_printf(out, " and %zu more", n - i);
            break;
        }
        const char *from = shk_history_text(change, "from"), *to = shk_history_text(change, "to");
        shk_strbuf_printf(out, "%s%s", i ? ", " : "", shk_history_text(change, "path"));
        if (*from && *to)
            shk_strbuf_printf(out, " from %.60s to %.60s", from, to);
        else
            shk_strbuf_printf(out, *to ? " is new (%.60s)" : " is gone (%.60s)", *to ? to : from);
        shk_strbuf_printf(out, " on %.*s", WORDS_DATE, shk_history_text(change, "at"));
    }
}

static void words_siblings(struct shk_strbuf *out, const json_t *row)
{
    double before = words_number(row, "siblings_before"), now = words_number(row, "siblings"),
           spread = words_number(row, "siblings_spread");
    long long count = (long long)json_integer_value(json_object_get(row, "siblings_count"));
    if (!isfinite(now))
        return;
    if (count == 1)
        shk_strbuf_printf(out, "; the other node of its kind has %.4g", now);
    else
        shk_strbuf_printf(out, "; the %lld nodes of its kind have %.4g", count, now);
    if (isfinite(spread))
        shk_strbuf_printf(out, " (+- %.2g)", spread);
    if (isfinite(before))
        shk_strbuf_printf(out, ", before %.4g", before);
}

void shk_history_quiet(struct shk_strbuf *out, const json_t *document)
{
    const json_t *needs = json_object_get(document, "needs");
    long long compared = (long long)json_integer_value(json_object_get(document, "compared")),
              few = (long long)json_integer_value(json_object_get(document, "few")),
              runs = (long long)json_integer_value(json_object_get(needs, "runs")),
              siblings = (long long)json_integer_value(json_object_get(needs, "siblings"));
    if (compared)
        shk_strbuf_puts(out, "no node has changed, and none differs from the others of its kind");
    else
        shk_strbuf_puts(out, "nothing can be compared yet");
    if (few || !compared)
        shk_strbuf_printf(out,
                          "%s%lld value%s ha%s neither %lld runs nor %lld nodes of the kind to be "
                          "compared with",
                          compared ? "; " : ": ", few, few == 1 ? "" : "s", few == 1 ? "s" : "ve",
                          runs, siblings);
}

void shk_history_sentence(struct shk_strbuf *out, const json_t *row)
{
    const char *change = shk_history_text(row, "change"), *unit = shk_history_text(row, "unit"),
               *since = shk_history_text(row, "since");
    double now = words_number(row, "now"), before = words_number(row, "before");
    long long samples = (long long)json_integer_value(json_object_get(row, "samples"));
    if (strcmp(change, "rises") == 0) {
        shk_strbuf_printf(out, "rose in %lld runs of the last 14 days, by %.6g in all, since %.*s",
                          (long long)json_integer_value(json_object_get(row, "rises")),
                          words_number(row, "by"), WORDS_DATE, since);
        return;
    }
    if (strcmp(change, "few") == 0) {
        shk_strbuf_printf(out, "%.4g %s; %lld run%s too few to compare with", now, unit, samples,
                          samples == 1 ? " is" : "s are");
        return;
    }
    if (strcmp(change, "same") == 0 || strcmp(change, "siblings") == 0)
        shk_strbuf_printf(out, "%.4g %s in the last 5 of %lld runs, before %.4g (+- %.2g)", now,
                          unit, samples, before, words_number(row, "spread"));
    else
        shk_strbuf_printf(out, "went %sfrom %.4g (+- %.2g) to %.4g %s, since %.*s",
                          strcmp(change, "drift") == 0 ? "gradually " : "", before,
                          words_number(row, "spread"), now, unit, WORDS_DATE, since);
    words_siblings(out, row);
    if (*since || json_array_size(json_object_get(row, "software")))
        words_software(out, row);
}

static void words_learn(struct shk_scrub *scrub, const json_t *value, const char *key)
{
    const char *inner;
    json_t *item;
    size_t i;
    if (json_is_string(value) && (strcmp(key, "node") == 0 || strcmp(key, "names") == 0))
        shk_scrub_name(scrub, SHK_SCRUB_HOST, json_string_value(value));
    else if (json_is_string(value))
        shk_scrub_learn(scrub, json_string_value(value));
    json_object_foreach((json_t *)value, inner, item) words_learn(scrub, item, inner);
    json_array_foreach(value, i, item) words_learn(scrub, item, key);
}

static const struct shk_form words_forms[] = {{"term", NULL}, {"html", ".html"}, {"json", ".json"}};

const struct shk_form *shk_history_forms(size_t *count_p)
{
    *count_p = sizeof words_forms / sizeof *words_forms;
    return words_forms;
}

static int words_write(const json_t *document, const struct shk_form *form,
                       const struct shk_report_options *how, FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (form == &words_forms[2])
        return shk_format_document(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9), out);
    if (form == &words_forms[1])
        shk_history_html(document, &text);
    else
        shk_history_term(document, how, &text);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}

int shk_history_report(const json_t *document, const struct shk_form *form,
                       const struct shk_report_options *how, FILE *out)
{
    struct shk_scrub *scrub =
        shk_scrub_create(SHK_SCRUB_SECRETS | (how->anonymize ? SHK_SCRUB_IDENTITY : 0));
    json_t *clean = NULL;
    if (scrub) {
        words_learn(scrub, document, "");
        clean = shk_scrub_json(scrub, document);
    }
    shk_scrub_destroy(scrub);
    int rc = clean ? words_write(clean, form, how, out) : -ENOMEM;
    json_decref(clean);
    return rc;
}
