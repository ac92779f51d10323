#include "checks/base/remedy.h"
#include "checks/fabric/chain.h"
#include "checks/fabric/fabric.h"
#include "checks/value/grammar.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool name_is(const char *have, const char *want, size_t len)
{
    if (strncasecmp(have, want, len) != 0)
        return false;
    if (have[len] == '\0')
        return true;
    /* "verbs;ofi_rxm" is also found as "verbs". */
    return have[len] == ';' && !memchr(want, ';', len);
}

static int array_finds(const struct shk_facts *facts, const char *key, const char *name, size_t len)
{
    size_t i;
    json_t *list = NULL, *item;
    enum shk_look look = shk_look_texts(facts, key, &list);
    if (look == SHK_LOOK_ABSENT)
        return 0;
    if (look != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(list, i, item)
    {
        const char *s = json_string_value(item);
        if (s && name_is(s, name, len))
            return 1;
    }
    return 0;
}

enum shk_provider_state shk_provider_state(const struct shk_facts *facts, const char *provider,
                                           size_t len)
{
    int offered = array_finds(facts, "fabric.providers", provider, len);
    if (offered == 1)
        return SHK_PROVIDER_USABLE;
    size_t core = strcspn(provider, ";");
    if (core > len)
        core = len;
    int known = array_finds(facts, "fabric.core_providers", provider, core);
    bool of_a_kind = shk_provider_diagnosis(provider, core, SHK_PROVIDER_NO_DOMAIN);
    if (known == 1 || (known < 0 && (offered < 0 || of_a_kind)))
        return offered == 0 ? SHK_PROVIDER_NO_DOMAIN : SHK_PROVIDER_UNKNOWN;
    return SHK_PROVIDER_ABSENT;
}

const char *shk_provider_diagnosis(const char *provider, size_t len, enum shk_provider_state state)
{
    if (state == SHK_PROVIDER_ABSENT)
        return "provider-not-compiled";
    static const char *const kinds[][2] = {{"cxi", "cxi-provider-absent"},
                                           {"efa", "efa-provider-absent"},
                                           {"verbs", "verbs-provider-absent"}};
    size_t core = strcspn(provider, ";");
    core = core < len ? core : len;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i][0]) == core && strncasecmp(provider, kinds[i][0], core) == 0)
            return kinds[i][1];
    return NULL;
}

char *shk_fabric_text(const struct shk_facts *facts)
{
    const char *path = NULL, *version = NULL;
    (void)shk_look_text(facts, "fabric.path", &path);
    (void)shk_look_text(facts, "fabric.version", &version);
    return shk_strf("libfabric%s%s (%s)", path ? " " : "", path ? path : "",
                    version ? version : "version unknown");
}

/* Those in the library, else those that are offered; NULL when neither is known. */
static const json_t *provider_names(const struct shk_facts *facts)
{
    json_t *list = NULL;
    (void)shk_look_texts(facts, "fabric.core_providers", &list);
    if (json_array_size(list) == 0)
        (void)shk_look_texts(facts, "fabric.providers", &list);
    return list;
}

char *shk_fabric_providers_text(const struct shk_facts *facts)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_array(&sb, provider_names(facts), 12);
    return shk_strbuf_take(&sb);
}

static char *nearest_provider(const struct shk_facts *facts, const char *name)
{
    const json_t *list = provider_names(facts);
    size_t count = json_array_size(list), used = 0, i;
    const char **names = calloc(count + 1, sizeof(*names));
    json_t *item;
    char *near = NULL;
    if (!names)
        return NULL;
    json_array_foreach((json_t *)list, i, item) if (json_is_string(item)) names[used++] =
        json_string_value(item);
    const char *found = shk_nearest(name, names, used);
    near = found ? strdup(found) : NULL;
    free(names);
    return near;
}

/* The profile names providers, and this is none of them. */
static bool foreign_provider(const struct shk_profile *profile, const char *name)
{
    const char *const *p = profile->providers;
    for (; p && *p; p++)
        if (name_is(*p, name, strlen(name)))
            return false;
    return profile->providers && profile->providers[0];
}

static void say_unusable(const struct shk_check_context *ctx, struct shk_row *row, const char *name,
                         enum shk_provider_state state)
{
    char *library = shk_fabric_text(ctx->facts), *have = shk_fabric_providers_text(ctx->facts);
    char *near = state == SHK_PROVIDER_ABSENT ? nearest_provider(ctx->facts, name) : NULL;
    row->diagnosis = foreign_provider(ctx->profile, name)
                         ? "net-transport-forced"
                         : shk_provider_diagnosis(name, strlen(name), state);
    if (!row->diagnosis)
        row->diagnosis = "provider-unusable";
    if (state == SHK_PROVIDER_ABSENT) {
        shk_row_text(&row->why, "the loaded %s has no provider \"%s\"%s%s%s; it has: %s", library,
                     name, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", have);
        if (near)
            shk_row_fix(row, "provider-choose", "provider", near, NULL);
        else
            shk_row_fix(row, "provider-other-libfabric", "provider", name, NULL);
    } else {
        struct shk_chain chain;
        (void)shk_chain_of(ctx->facts, name, &chain);
        const struct shk_link *broken = shk_chain_first(&chain, SHK_LINK_BROKEN);
        char *because = broken ? shk_link_text(broken) : NULL;
        shk_row_text(
            &row->why, "the loaded %s has provider \"%s\", but it offers nothing on this node: %s",
            library, name, because ? because : "no device, no permission or no network service");
        free(because);
        shk_chain_clear(&chain);
        shk_row_fix(row, "provider-check", "provider", name, NULL);
    }
    free(near);
    free(library);
    free(have);
}

/* "^a,b": does it take away a provider that the profile needs? */
static bool resolve_exclusion(const struct shk_check_context *ctx, const char *list,
                              struct shk_row *row)
{
    const char *start;
    size_t len;
    shk_row_verdict(row, SHK_PASS, SHK_DECLARED);
    while (shk_grammar_item(&list, ',', &start, &len)) {
        for (const char *const *p = ctx->profile->providers; p && *p; p++) {
            if (!len || !name_is(*p, start, len))
                continue;
            shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
            row->diagnosis = "net-transport-forced";
            shk_row_text(&row->why, "it excludes %s, which profile %s needs", *p,
                         ctx->profile->name);
            shk_row_fix(row, "provider-unset", NULL);
        }
    }
    return true;
}

bool shk_resolve_provider(const struct shk_check_context *ctx, const char *value,
                          struct shk_row *row)
{
    row->fact = "fabric.core_providers, fabric.providers";
    if (*value == '^')
        return resolve_exclusion(ctx, value + 1, row);
    const char *start;
    size_t len, usable = 0, total = 0;
    char bad[96] = "";
    enum shk_provider_state bad_state = SHK_PROVIDER_USABLE;
    bool unknown = false;
    while (shk_grammar_item(&value, ',', &start, &len)) {
        if (!len || len >= sizeof(bad))
            continue;
        total++;
        enum shk_provider_state state = shk_provider_state(ctx->facts, start, len);
        usable += state == SHK_PROVIDER_USABLE;
        unknown |= state == SHK_PROVIDER_UNKNOWN;
        if ((state == SHK_PROVIDER_ABSENT || state == SHK_PROVIDER_NO_DOMAIN) &&
            (!bad[0] || state < bad_state)) {
            memcpy(bad, start, len);
            bad[len] = '\0';
            bad_state = state;
        }
    }
    if (unknown && !usable) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "what providers libfabric has is not known here");
        return true;
    }
    if (!bad[0]) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        return total > 0;
    }
    say_unusable(ctx, row, bad, bad_state);
    shk_row_verdict(row, usable ? SHK_WARN : SHK_FAIL, SHK_EFFECT);
    return true;
}
