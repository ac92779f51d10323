#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/facts/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const profile_plugins[] = {"none", "recommended", "required"};
static const char *const profile_gpus[] = {"nvidia", "amd", "neuron", "any", "none"};

static const char *const line_verdicts[] = {"note", "warn", "fail"};

static const struct shk_field signal_fields[] = {
    {.key = "fact",
     SHK_AT(struct shk_profile_signal, fact),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_fact,
     .doc = "fact key, or prefix that ends in `.` for any fact below it"},
    {.key = "matches",
     SHK_AT(struct shk_profile_signal, matches),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "regular expression on the value; absent: any value"},
    {.key = "weight",
     SHK_AT(struct shk_profile_signal, weight),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 100,
     .doc = "added to the profile's score, which must reach 2; default 1"},
};

static const struct shk_profile_signal signal_defaults = {.weight = 1};

static const struct shk_record record_signal = {
    .what = "signal",
    .type = "struct shk_profile_signal",
    .size = sizeof(struct shk_profile_signal),
    SHK_FIELDS(signal_fields),
    .defaults = &signal_defaults,
};

static const struct shk_field line_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_profile_setting, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "a setting of the catalogue"},
    {.key = "accepted",
     SHK_AT(struct shk_profile_setting, accepted),
     .kind = SHK_FIELD_TEXTS,
     .doc = "accepted values, the preferred one first; absent: any value"},
    {.key = "unset",
     SHK_AT(struct shk_profile_setting, must_be_unset),
     .kind = SHK_FIELD_BOOL,
     .doc = "it must not be set"},
    {.key = "strength",
     SHK_AT(struct shk_profile_setting, strength),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_strength_names),
     .doc = "`optional`: only judged when set; default `recommended`"},
    {.key = "other",
     SHK_AT(struct shk_profile_setting, other),
     .kind = SHK_FIELD_WORD,
     SHK_NAMES(line_verdicts),
     .doc = "verdict when the value is not accepted, or set although it must not be; absent: "
            "`fail` when required, `warn` when recommended, `note` when optional"},
    {.key = "condition",
     SHK_AT(struct shk_profile_setting, condition),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_condition,
     .doc = "when the line applies, for example `nodes>1`, `container`, `gpu=amd`, `plugin<1.15`"},
    {.key = "why",
     SHK_AT(struct shk_profile_setting, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "reason, one sentence"},
    {.key = "source",
     SHK_AT(struct shk_profile_setting, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this is documented"},
};

static int line_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_profile_setting *line = row;
    if (line->must_be_unset && line->accepted)
        return shk_fill_error(fill, node, "accepted", "has values although unset is true");
    return 0;
}

static const struct shk_profile_setting line_defaults = {.strength = SHK_RECOMMENDED};

static const struct shk_record record_line = {
    .what = "profile setting",
    .type = "struct shk_profile_setting",
    .size = sizeof(struct shk_profile_setting),
    SHK_FIELDS(line_fields),
    .defaults = &line_defaults,
    .check = line_check,
};

static const struct shk_field need_fields[] = {
    {.key = "fact",
     SHK_AT(struct shk_profile_need, fact),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_fact,
     .doc = "key of a fact about the hardware"},
    {.key = "matches",
     SHK_AT(struct shk_profile_need, matches),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_regex,
     .doc = "regular expression on the value, for a list on its JSON"},
    {.key = "what",
     SHK_AT(struct shk_profile_need, what),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what it is, in two or three words"},
};

static const struct shk_record record_need = {
    .what = "profile need",
    .type = "struct shk_profile_need",
    .size = sizeof(struct shk_profile_need),
    SHK_FIELDS(need_fields),
};

static const struct shk_field fact_fields[] = {
    {.key = "fact",
     SHK_AT(struct shk_profile_fact, fact),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_fact,
     .doc = "key of a fact that is a text, a number, or true or false"},
    {.key = "accepted",
     SHK_AT(struct shk_profile_fact, accepted),
     .kind = SHK_FIELD_TEXTS,
     .required = true,
     .doc = "values that good nodes have"},
    {.key = "other",
     SHK_AT(struct shk_profile_fact, other),
     .kind = SHK_FIELD_WORD,
     SHK_NAMES(line_verdicts),
     .doc = "verdict of another value; default `warn`"},
    {.key = "why",
     SHK_AT(struct shk_profile_fact, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "reason, one sentence"},
    {.key = "source",
     SHK_AT(struct shk_profile_fact, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this was seen"},
};

static const struct shk_record record_fact = {
    .what = "profile fact",
    .type = "struct shk_profile_fact",
    .size = sizeof(struct shk_profile_fact),
    SHK_FIELDS(fact_fields),
};

static bool floor_metric(const char *text, struct shk_why *why)
{
    const struct shk_metric *metric = shk_metric_find(text);
    bool known = metric && metric->kind != SHK_METRIC_COUNT;
    if (!known)
        snprintf(why->text, sizeof why->text,
                 "not busbw.TRANSPORT, latency.TRANSPORT, copy.to_device, copy.to_host, "
                 "copy.memory or copy.pair");
    return known;
}

static bool floor_number(const char *text, struct shk_why *why)
{
    char *end;
    double value = strtod(text, &end);
    bool good = end != text && !*end && value > 0 && value < 1e12;
    if (!good)
        snprintf(why->text, sizeof why->text, "not a number above 0");
    return good;
}

static const struct shk_field floor_fields[] = {
    {.key = "metric",
     SHK_AT(struct shk_profile_floor, metric),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = floor_metric,
     .doc =
         "`busbw.TRANSPORT`, the best bus bandwidth in GB/s, or `latency.TRANSPORT`, the time of "
         "the smallest message in us; `copy.to_device`, `copy.to_host`, `copy.memory` and "
         "`copy.pair`, the slowest copy in GB/s"},
    {.key = "at-least",
     SHK_AT(struct shk_profile_floor, at_least),
     .kind = SHK_FIELD_TEXT,
     .check = floor_number,
     .doc = "a number; less is WARN"},
    {.key = "at-most",
     SHK_AT(struct shk_profile_floor, at_most),
     .kind = SHK_FIELD_TEXT,
     .check = floor_number,
     .doc = "a number; more is WARN"},
    {.key = "why",
     SHK_AT(struct shk_profile_floor, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "reason, one sentence"},
    {.key = "source",
     SHK_AT(struct shk_profile_floor, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this was measured"},
};

static int floor_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                       const void *row)
{
    const struct shk_profile_floor *line = row;
    if (!line->at_least == !line->at_most)
        return shk_fill_error(fill, node, "metric", "needs one of at-least and at-most");
    return 0;
}

static const struct shk_record record_floor = {
    .what = "profile floor",
    .type = "struct shk_profile_floor",
    .size = sizeof(struct shk_profile_floor),
    SHK_FIELDS(floor_fields),
    .check = floor_check,
};

static const struct shk_field profile_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_profile, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "for `--profile`"},
    {.key = "title",
     SHK_AT(struct shk_profile, title),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "one line: system, accelerators, network"},
    {.key = "extends",
     SHK_AT(struct shk_profile, extends),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_PROFILES,
     .doc = "profile whose settings and expectations come first; a line of the same setting "
            "replaces the base's; signals are not inherited"},
    {.key = "abstract",
     SHK_AT(struct shk_profile, abstract),
     .kind = SHK_FIELD_BOOL,
     .doc = "only a base: never detected or offered"},
    {.key = "of-maker",
     SHK_AT(struct shk_profile, of_maker),
     .kind = SHK_FIELD_BOOL,
     .doc = "the settings are the fabric vendor's list: in a profile that extends this one they "
            "are only notes, except those that it `follows`"},
    {.key = "follows",
     SHK_AT(struct shk_profile, follows),
     .kind = SHK_FIELD_TEXTS,
     .doc = "settings of an `of-maker` base that this site's guide also recommends (`*`: all)"},
    {.key = "signals",
     SHK_AT(struct shk_profile, signals),
     .kind = SHK_FIELD_RECORDS,
     .record = &record_signal,
     SHK_EXTRA(struct shk_profile, signals_count),
     .doc = "how `--profile auto` recognises it"},
    {.key = "needs",
     SHK_AT(struct shk_profile, needs),
     .kind = SHK_FIELD_RECORDS,
     .record = &record_need,
     SHK_EXTRA(struct shk_profile, needs_count),
     .doc = "hardware besides `gpu` and `nics` that such a node has; where it is missing and the "
            "profile was asked for by name, the verdict is FAIL"},
    {.key = "settings",
     SHK_AT(struct shk_profile, settings),
     .kind = SHK_FIELD_RECORDS,
     .record = &record_line,
     SHK_EXTRA(struct shk_profile, settings_count),
     .doc = "what should be set, to what"},
    {.key = "facts",
     SHK_AT(struct shk_profile, facts),
     .kind = SHK_FIELD_RECORDS,
     .record = &record_fact,
     SHK_EXTRA(struct shk_profile, facts_count),
     .doc = "versions and other facts of good nodes"},
    {.key = "floors",
     SHK_AT(struct shk_profile, floors),
     .kind = SHK_FIELD_RECORDS,
     .record = &record_floor,
     SHK_EXTRA(struct shk_profile, floors_count),
     .doc = "what good nodes reach in measurements"},
    {.key = "providers",
     SHK_AT(struct shk_profile, providers),
     .kind = SHK_FIELD_TEXTS,
     .doc = "libfabric providers that must be there"},
    {.key = "plugin",
     SHK_AT(struct shk_profile, plugin),
     .kind = SHK_FIELD_WORD,
     SHK_NAMES(profile_plugins),
     .doc = "whether a net plugin is needed; default `none`"},
    {.key = "gpu",
     SHK_AT(struct shk_profile, gpu),
     .kind = SHK_FIELD_WORD,
     SHK_NAMES(profile_gpus),
     .doc = "accelerators of the nodes; default `any`"},
    {.key = "nics",
     SHK_AT(struct shk_profile, nics),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 64,
     .doc = "network devices per node, at least; absent: not checked"},
    {.key = "gpus",
     SHK_AT(struct shk_profile, gpus),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 64,
     .doc = "accelerators on the bus of a node (both halves of AMD's MI250X count); absent: not "
            "checked"},
    {.key = "source",
     SHK_AT(struct shk_profile, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this is documented"},
};

static bool line_same(const struct shk_profile_setting *a, const struct shk_profile_setting *b)
{
    return strcmp(a->name, b->name) == 0 &&
           strcmp(a->condition ? a->condition : "", b->condition ? b->condition : "") == 0;
}

static int line_compare(const void *a, const void *b)
{
    const struct shk_profile_setting *x = *(const struct shk_profile_setting *const *)a;
    const struct shk_profile_setting *y = *(const struct shk_profile_setting *const *)b;
    int d = strcmp(x->name, y->name);
    return d ? d : strcmp(x->condition ? x->condition : "", y->condition ? y->condition : "");
}

/* One setting may have several lines, but not two under the same condition. */
static int profile_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                         const void *row)
{
    const struct shk_profile *profile = row;
    size_t count = profile->settings_count;
    if (!count)
        return 0;
    const struct shk_profile_setting **sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return shk_error_set(fill->err, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        sorted[i] = &profile->settings[i];
    qsort(sorted, count, sizeof *sorted, line_compare);
    int rc = 0;
    for (size_t i = 1; !rc && i < count; i++)
        if (line_same(sorted[i - 1], sorted[i]))
            rc = shk_fill_error(fill, node, "settings", "%.64s has two lines%s%.64s",
                                sorted[i]->name, sorted[i]->condition ? " with the condition " : "",
                                sorted[i]->condition ? sorted[i]->condition : "");
    free(sorted);
    return rc;
}

const struct shk_record shk_record_profile = {
    .what = "profile",
    .type = "struct shk_profile",
    .size = sizeof(struct shk_profile),
    SHK_FIELDS(profile_fields),
    .check = profile_check,
    .name_offset = offsetof(struct shk_profile, name),
    .place_offset = offsetof(struct shk_profile, place),
};
