#include "config/load/extends.h"

#include "config/load/load.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <string.h>

struct extends_resolver {
    struct shk_arena *arena;
    struct shk_profile *profiles;
    bool *done;
    const struct shk_table *table;
    const struct shk_refs *refs;
    struct shk_error *err;
};

static struct shk_profile *extends_base(const struct extends_resolver *resolver,
                                        const struct shk_profile *profile)
{
    size_t row;
    if (!profile->extends ||
        !shk_table_find(resolver->table, &shk_record_profile, profile->extends, &row))
        return NULL;
    return &resolver->profiles[row];
}

/* Where the key `extends` of this profile was read; NULL for a built-in profile. */
static const struct shk_ref *extends_ref(const struct extends_resolver *resolver,
                                         const struct shk_profile *profile)
{
    const struct shk_ref *ref = resolver->refs->first;
    while (ref && ref->name != profile->extends)
        ref = ref->next;
    return ref;
}

static int extends_error(const struct extends_resolver *resolver, const struct shk_profile *profile,
                         const char *what)
{
    const struct shk_ref *ref = extends_ref(resolver, profile);
    return shk_yaml_error(resolver->err, EINVAL, ref ? ref->file : profile->place,
                          ref ? ref->line : 0, "extends", "%s", what);
}

/* Reported at a member that was read from a file: the built-in ones alone have no cycle. */
static int extends_cycle_error(const struct extends_resolver *resolver,
                               const struct shk_profile *profile)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    for (const struct shk_profile *p = extends_base(resolver, profile); p != profile;
         p = extends_base(resolver, p))
        if (!extends_ref(resolver, profile) && extends_ref(resolver, p))
            profile = p;
    const struct shk_profile *p = profile;
    shk_strbuf_printf(&text, "a cycle: %s", p->name);
    do {
        p = extends_base(resolver, p);
        shk_strbuf_printf(&text, " -> %s", p->name);
    } while (p != profile);
    int rc = extends_error(resolver, profile, shk_strbuf_text(&text));
    shk_strbuf_free(&text);
    return rc;
}

/* Follows the bases of one profile, as far as a good chain can go. *long_p: there are more. */
static int extends_check_cycle(const struct extends_resolver *resolver,
                               const struct shk_profile *profile, bool *long_p)
{
    const struct shk_profile *p = extends_base(resolver, profile);
    for (unsigned steps = 1; p && steps <= SHK_PROFILE_MAX_EXTENDS; steps++) {
        if (p == profile)
            return extends_cycle_error(resolver, profile);
        p = extends_base(resolver, p);
    }
    *long_p = p != NULL;
    return 0;
}

/* Cycles first: a profile that only leads to one would be reported as a long chain. */
static int extends_check_chains(const struct extends_resolver *resolver, size_t count)
{
    const struct shk_profile *too_long = NULL;
    for (size_t i = 0; i < count; i++) {
        bool is_long = false;
        int rc = extends_check_cycle(resolver, &resolver->profiles[i], &is_long);
        if (rc < 0)
            return rc;
        if (is_long && !too_long)
            too_long = &resolver->profiles[i];
    }
    if (too_long)
        return extends_error(resolver, too_long, "too many profiles extend each other");
    return 0;
}

static bool extends_has_line(const struct shk_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->settings_count; i++)
        if (strcmp(profile->settings[i].name, name) == 0)
            return true;
    return false;
}

static bool extends_follows(const struct shk_profile *profile, const char *name)
{
    for (const char *const *f = profile->follows; f && *f; f++)
        if (strcmp(*f, "*") == 0 || strcmp(*f, name) == 0)
            return true;
    return false;
}

/* What must not be set has a reason of its own, whoever says so. */
static bool extends_foreign(const struct shk_profile *profile, const struct shk_profile *base,
                            const struct shk_profile_setting *line)
{
    return (base->of_maker || line->foreign) && !line->must_be_unset &&
           !extends_follows(profile, line->name);
}

/* An inherited line becomes the profile's: of its own guide, or a hint from elsewhere. */
static void extends_own(struct shk_profile_setting *line, const struct shk_profile *profile,
                        const struct shk_profile *base)
{
    bool hint = base->of_maker || line->foreign;
    line->foreign = extends_foreign(profile, base, line);
    if (line->foreign && line->strength == SHK_REQUIRED)
        line->strength = SHK_RECOMMENDED;
    else if (hint && !line->foreign && !line->must_be_unset)
        line->source = profile->source;
}

static int extends_inherit_lines(const struct extends_resolver *resolver,
                                 struct shk_profile *profile, const struct shk_profile *base)
{
    size_t most = base->settings_count + profile->settings_count, count = 0;
    struct shk_profile_setting *lines = shk_arena_array(resolver->arena, most, sizeof *lines);
    if (!lines)
        return shk_error_set(resolver->err, ENOMEM, "out of memory");
    for (size_t i = 0; i < base->settings_count; i++) {
        if (extends_has_line(profile, base->settings[i].name))
            continue;
        lines[count] = base->settings[i];
        extends_own(&lines[count], profile, base);
        count++;
    }
    for (size_t i = 0; i < profile->settings_count; i++)
        lines[count++] = profile->settings[i];
    profile->settings = lines;
    profile->settings_count = count;
    return 0;
}

/* The chain was checked, so this ends. */
static int extends_resolve(const struct extends_resolver *resolver, struct shk_profile *profile)
{
    bool *done = &resolver->done[profile - resolver->profiles];
    struct shk_profile *base = extends_base(resolver, profile);
    if (*done)
        return 0;
    *done = true;
    if (!base)
        return 0;
    int rc = extends_resolve(resolver, base);
    if (!rc)
        rc = extends_inherit_lines(resolver, profile, base);
    if (!profile->needs_count) {
        profile->needs = base->needs;
        profile->needs_count = base->needs_count;
    }
    if (!profile->facts_count) {
        profile->facts = base->facts;
        profile->facts_count = base->facts_count;
    }
    if (!profile->floors_count) {
        profile->floors = base->floors;
        profile->floors_count = base->floors_count;
    }
    if (!profile->providers)
        profile->providers = base->providers;
    if (!profile->plugin)
        profile->plugin = base->plugin;
    if (!profile->gpu)
        profile->gpu = base->gpu;
    if (!profile->nics)
        profile->nics = base->nics;
    if (!profile->gpus)
        profile->gpus = base->gpus;
    return rc;
}

int shk_profiles_resolve(struct shk_arena *arena, const struct shk_table *table,
                         const struct shk_refs *refs, struct shk_profile **resolved_p,
                         struct shk_error *err)
{
    struct extends_resolver resolver = {.arena = arena, .table = table, .refs = refs, .err = err};
    size_t count = table->count;
    resolver.profiles = shk_arena_array(arena, count, sizeof *resolver.profiles);
    resolver.done = shk_arena_array(arena, count, sizeof *resolver.done);
    if (!resolver.profiles || !resolver.done)
        return shk_error_set(err, ENOMEM, "out of memory");
    if (count)
        memcpy(resolver.profiles, table->rows, count * sizeof *resolver.profiles);
    int rc = extends_check_chains(&resolver, count);
    for (size_t i = 0; !rc && i < count; i++)
        rc = extends_resolve(&resolver, &resolver.profiles[i]);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        struct shk_profile *profile = &resolver.profiles[i];
        profile->plugin = profile->plugin ? profile->plugin : "none";
        profile->gpu = profile->gpu ? profile->gpu : "any";
    }
    *resolved_p = resolver.profiles;
    return 0;
}
