/* Is each provider that the profile or the job asks for there, and if not, why not? The
 * chain names the first broken link; without it (facts from elsewhere) libfabric's lists decide. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/fabric/chain.h"
#include "checks/fabric/fabric.h"
#include "checks/value/grammar.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

/* Providers whose chain is always told, asked for or not. */
static const char *const usual[] = {"efa", "cxi", "verbs", NULL};

/* A provider that is in the library but offers nothing: what is in the way? */
static void say_no_domain(const struct shk_check_context *ctx, struct shk_row *row,
                          const char *provider)
{
    long long nics = shk_device_count(ctx->facts, provider);
    if (nics == 0) {
        shk_row_text(&row->why, "no %s device is on this node", provider);
        return;
    }
    if (nics > 0 && shk_container(ctx->facts)) {
        row->diagnosis = "rdma-device-not-in-container";
        shk_row_text(&row->why,
                     "the node has %lld %s devices, but inside this container none can be used",
                     nics, provider);
        shk_row_fix(row, strcmp(provider, "cxi") == 0 ? "provider-pass-cxi" : "provider-pass-rdma",
                    NULL);
        return;
    }
    shk_row_text(&row->why, "the provider is in the library, but offers nothing: device node, "
                            "permission, or network service (VNI) missing");
}

/* Without a chain: what libfabric's lists say. */
static void say_from_lists(const struct shk_check_context *ctx, struct shk_row *row,
                           const char *provider, enum shk_provider_state state)
{
    char *have = shk_fabric_providers_text(ctx->facts), *library = shk_fabric_text(ctx->facts);
    row->diagnosis = shk_provider_diagnosis(provider, strlen(provider), state);
    shk_row_text(&row->observed, "providers: %s", have ? have : "");
    if (state == SHK_PROVIDER_ABSENT) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "the loaded %s was built without it",
                     library ? library : "library");
        shk_row_fix(row, "provider-libfabric-first", "provider", provider, NULL);
    } else {
        bool one_node = shk_job_nodes(ctx->facts) == 1;
        shk_row_verdict(row, one_node ? SHK_WARN : SHK_FAIL, SHK_EFFECT);
        say_no_domain(ctx, row, provider);
    }
    free(library);
    free(have);
}

/* Broken where nothing of it can work fails; a fabric that is only set up for jobs of several
 * nodes, and what makes it merely worse, warns. */
static enum shk_verdict chain_verdict(const struct shk_check_context *ctx,
                                      const struct shk_link *link, enum shk_provider_state state)
{
    if (shk_link_is_software(link))
        return SHK_FAIL;
    if (shk_link_is_quality(link) && state == SHK_PROVIDER_USABLE)
        return SHK_WARN;
    return shk_job_nodes(ctx->facts) == 1 ? SHK_WARN : SHK_FAIL;
}

/* The chain of a provider, for a row that it decides. Facts from elsewhere may have none: then
 * libfabric's lists decide. */
static bool read_chain(struct shk_row *row, const char *provider, struct shk_chain *chain)
{
    bool told = shk_chain_of(row->ctx->facts, provider, chain);
    if (told)
        shk_row_was_read(row);
    return told;
}

/* libfabric offers nothing, and why is open: the device nodes were not looked at. Then what is in
 * the way is told from the lists. */
static bool is_open(const struct shk_chain *chain, const struct shk_link *broken)
{
    if (strcmp(broken->step, "getinfo") != 0)
        return false;
    for (size_t i = 0; i < chain->count; i++)
        if (strcmp(chain->links[i].step, "node") == 0)
            return chain->links[i].state == SHK_LINK_UNKNOWN ||
                   chain->links[i].state == SHK_LINK_NA;
    return false;
}

/* Steps that could not be looked at: each could be the broken one. */
static void lacks_of_chain(struct shk_row *row, const struct shk_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        const struct shk_link *link = &chain->links[i];
        if (link->unread)
            shk_row_lacks(row, link->unread, "%s: %s", link->step,
                          link->state == SHK_LINK_UNKNOWN ? link->what : "not all of it was read");
    }
}

/* mild: another provider of the same list works. */
static void wanted_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *provider, bool mild)
{
    char *setting = shk_strf("provider %s", provider);
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_fabric_provider, setting ? setting : provider);
    enum shk_provider_state state = shk_provider_state(ctx->facts, provider, strlen(provider));
    struct shk_chain chain;
    (void)read_chain(&row, provider, &chain);
    const struct shk_link *link = shk_chain_first(&chain, SHK_LINK_BROKEN);
    row.required = 1;
    row.fact = "fabric.providers, fabric.core_providers";
    shk_row_text(&row.expected, "offered by libfabric");
    if (link &&
        !(is_open(&chain, link) && state == SHK_PROVIDER_NO_DOMAIN && shk_container(ctx->facts))) {
        shk_row_verdict(&row, chain_verdict(ctx, link, state), SHK_EFFECT);
        shk_chain_say(ctx, &row, provider, &chain, link);
    } else if (state == SHK_PROVIDER_UNKNOWN) {
        shk_row_unread(findings, &row, ctx->facts, "fabric.providers");
        shk_chain_clear(&chain);
        free(setting);
        return;
    } else if (state == SHK_PROVIDER_USABLE) {
        lacks_of_chain(&row, &chain);
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "offered by libfabric");
    } else {
        say_from_lists(ctx, &row, provider, state);
    }
    if (mild && row.verdict == SHK_FAIL)
        row.verdict = SHK_WARN;
    shk_row_end(findings, &row);
    shk_chain_clear(&chain);
    free(setting);
}

/* That nobody asks for it: profile and FI_PROVIDER. */
static void read_asked(struct shk_row *row)
{
    struct shk_fact fact;
    const char *value;
    shk_read_profile(row);
    enum shk_look look = shk_look(row->ctx->facts, "fabric.filter", &fact);
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_was_read(row);
    else
        (void)shk_read_env(row, shk_variable("provider-filter"), &value);
}

/* Nobody asks for it: what is in its way is told all the same, and judged as nothing. */
static void unwanted_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         const char *provider)
{
    char *setting = shk_strf("provider %s", provider);
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_fabric_provider, setting ? setting : provider);
    struct shk_chain chain;
    bool told = read_chain(&row, provider, &chain);
    const struct shk_link *broken = shk_chain_first(&chain, SHK_LINK_BROKEN);
    const struct shk_link *unknown = shk_chain_first(&chain, SHK_LINK_UNKNOWN);
    row.fact = "fabric.providers, fabric.core_providers";
    read_asked(&row);
    if (broken) {
        char *text = shk_link_text(broken);
        const struct shk_link *also = shk_chain_software(&chain);
        shk_row_text(&row.observed, "first broken link: %s: %s%s%s", broken->step,
                     text ? text : broken->what, also ? "; besides, " : "", also ? also->what : "");
        free(text);
    } else if (unknown) {
        shk_row_text(&row.observed, "no broken link, but %s is not known: %s", unknown->step,
                     unknown->what);
    } else if (told) {
        shk_row_text(&row.observed, "no broken link");
    }
    shk_chain_clear(&chain);
    shk_row_na(findings, &row, "neither profile %s nor %s needs it", ctx->profile->name,
               shk_variable("provider-filter"));
    free(setting);
}

static bool same_provider(const char *a, const char *b)
{
    size_t n = strcspn(a, ";"), m = strcspn(b, ";");
    return n == m && strncasecmp(a, b, n) == 0;
}

struct asked {
    char *names[16]; /* of FI_PROVIDER, without those of the profile */
    size_t count;
    bool one_works; /* of all that FI_PROVIDER names */
};

static void asked_fill(const struct shk_check_context *ctx, struct asked *asked)
{
    const char *list = NULL, *start;
    size_t len;
    bool known = shk_chains_known(ctx->facts);
    if (shk_look_text(ctx->facts, "fabric.filter", &list) != SHK_LOOK_PRESENT)
        (void)shk_look_env(ctx->facts, shk_variable("provider-filter"), &list);
    if (!list || *list == '^')
        return;
    while (shk_grammar_item(&list, ',', &start, &len)) {
        char *name = len ? shk_strf("%.*s", (int)len, start) : NULL;
        bool skip =
            !name || asked->count == sizeof(asked->names) / sizeof(asked->names[0]) || !known;
        for (const char *const *p = ctx->profile->providers; p && *p && !skip; p++)
            skip = same_provider(*p, name);
        for (size_t i = 0; i < asked->count && !skip; i++)
            skip = same_provider(asked->names[i], name);
        if (name)
            asked->one_works |=
                shk_provider_state(ctx->facts, name, strlen(name)) == SHK_PROVIDER_USABLE;
        if (skip)
            free(name);
        else
            asked->names[asked->count++] = name;
    }
}

static bool covered(const struct shk_check_context *ctx, const struct asked *asked,
                    const char *provider)
{
    for (const char *const *p = ctx->profile->providers; p && *p; p++)
        if (same_provider(*p, provider))
            return true;
    for (size_t i = 0; i < asked->count; i++)
        if (same_provider(asked->names[i], provider))
            return true;
    return false;
}

static void eval_provider(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct asked asked = {.count = 0};
    const char *const *needs = ctx->profile->providers;
    bool library = shk_look(ctx->facts, "fabric.version", NULL) != SHK_LOOK_ABSENT, told = false;
    asked_fill(ctx, &asked);
    for (const char *const *p = needs; p && *p; p++) {
        /* without a library and a chain, fabric.library has said it all */
        if (!library && !shk_chains_known(ctx->facts))
            continue;
        wanted_row(ctx, findings, *p, false);
        told = true;
    }
    for (size_t i = 0; i < asked.count; i++, told = true)
        wanted_row(ctx, findings, asked.names[i], asked.one_works);
    for (const char *const *p = usual; *p; p++) {
        if (covered(ctx, &asked, *p) || !shk_chains_known(ctx->facts))
            continue;
        unwanted_row(ctx, findings, *p);
        told = true;
    }
    for (size_t i = 0; i < asked.count; i++)
        free(asked.names[i]);
    if (told)
        return;
    struct shk_row row = shk_row_begin(ctx, &shk_check_fabric_provider, "provider");
    struct shk_fact fact;
    read_asked(&row);
    if (needs && *needs)
        (void)shk_read(&row, "fabric.version", &fact);
    shk_row_na(findings, &row,
               needs && *needs ? "no libfabric to ask" : "profile %s needs no particular provider",
               ctx->profile->name);
}

const struct shk_check shk_check_fabric_provider = {
    .id = "fabric.provider",
    .diagnosis = "provider-unusable",
    .family = "libfabric",
    .title = "The providers that the profile and job need work; if not, the first broken link",
    .eval = eval_provider,
    .doc =
        "Facts: pci, rdma, cxi, dev, verbs, limits, fabric (the chain from the adapter to the "
        "domain), "
        "fabric.providers (those for which fi_getinfo() offers a domain), fabric.core_providers "
        "(those that the library "
        "contains).\n"
        "The first broken link is FAIL when it is about the software (library, its dependencies, "
        "{provider-filter}). Elsewhere it is FAIL, or WARN in a job of one node, where a fabric "
        "such as "
        "Slingshot may give no network service, or when the provider works in spite of it.\n"
        "efa, cxi and verbs that neither profile nor {provider-filter} asks for are n/a, with the "
        "first "
        "broken link.",
};
