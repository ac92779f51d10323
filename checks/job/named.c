/* The hardware of a profile that was named. */
#include "checks/job/named.h"
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "core/regex/pattern.h"

#include <stdlib.h>
#include <string.h>

static bool named_matches(const struct shk_profile_need *need, const json_t *value)
{
    char *dump = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *text = dump ? dump : json_string_value(value);
    bool matches = text && shk_pattern_matches(need->matches, text);
    free(dump);
    return matches;
}

/* Of a list, what another entry says may stand in the one that was not read. */
static bool named_is_whole(const json_t *value)
{
    const json_t *item, *port;
    size_t i, k;
    json_array_foreach((json_t *)value, i, item)
    {
        if (!json_is_object(item))
            return false;
        json_array_foreach(json_object_get(item, "ports"), k, port)
        {
            if (!json_is_string(json_object_get(port, "link_layer")))
                return false;
        }
    }
    return json_is_array(value) || json_is_string(value);
}

int shk_profile_sized(struct shk_row *row, const char *counted)
{
    const struct shk_profile *profile = row->ctx->profile;
    int sized = 1;
    for (size_t i = 0; !row->ctx->profile_asked && i < profile->needs_count; i++) {
        const struct shk_profile_need *need = &profile->needs[i];
        struct shk_fact fact;
        if (counted && strcmp(need->fact, counted) == 0)
            continue;
        enum shk_look look = shk_read(row, need->fact, &fact);
        if (look == SHK_LOOK_PRESENT && named_matches(need, fact.value))
            continue;
        if (look == SHK_LOOK_PRESENT && named_is_whole(fact.value))
            return 0;
        if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
            shk_row_lacks(row, need->fact, "whether this node has %s is unknown", need->what);
        sized = -1;
    }
    return sized;
}

static void named_need(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct shk_profile_need *need)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_named, need->what);
    struct shk_fact fact;
    row.fact = need->fact;
    row.required = SHK_ASKED;
    row.source = ctx->profile->source;
    shk_row_text(&row.expected, "%s", need->what);
    enum shk_look look = shk_read(&row, need->fact, &fact);
    if (look == SHK_LOOK_PRESENT && named_matches(need, fact.value)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", need->what);
    } else if (look == SHK_LOOK_PRESENT && named_is_whole(fact.value)) {
        const char *text = json_string_value(fact.value);
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", text ? text : "none");
        shk_row_text(&row.why, "--profile %s is for nodes with %s", ctx->profile->name, need->what);
        shk_row_fix(&row, "other-node", NULL);
    } else if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT) {
        shk_row_lacks(&row, need->fact, "whether this node has %s is unknown", need->what);
    }
    shk_row_end(findings, &row);
}

static void named_eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; ctx->profile_asked && i < ctx->profile->needs_count; i++)
        named_need(ctx, findings, &ctx->profile->needs[i]);
}

const struct shk_check shk_check_named = {
    .id = "profile.hardware",
    .diagnosis = "profile-of-other-hardware",
    .family = "site",
    .title = "The hardware of the selected profile is present",
    .eval = named_eval,
    .doc = "Facts: those of the profile's `needs`, as host.vendor, host.arch, rdma.devices.\n"
           "Only for a profile that was named with --profile; the numbers of its GPUs and NICs are "
           "gpu.presence and nic.count. Other hardware is FAIL; what cannot be told is UNKNOWN and "
           "required.",
    .scope = SHK_SCOPE_LAUNCH,
};
