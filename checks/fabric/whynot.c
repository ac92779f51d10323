/* Is each provider that the profile or the job asks for there, and if not, why not? The probes'
 * chain names the first broken link; without it (facts from elsewhere) libfabric's lists decide. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/env/grammar.h"
#include "checks/fabric/chain.h"
#include "checks/fabric/fabric.h"

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
        shk_row_text(&row->fix, strcmp(provider, "cxi") == 0
                                    ? "pass /dev/cxi* and libcxi into the container"
                                    : "pass /dev/infiniband into the container");
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
        shk_row_text(&row->fix,
                     "put the site's libfabric with provider %s first in LD_LIBRARY_PATH",
                     provider);
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

/* Did the probe that makes the chains run? Then each of them is there, or was not read. */
static bool chains_made(const struct shk_facts *facts)
{
    json_t *chain;
    for (const char *const *p = usual; *p; p++)
        if (shk_chain_look(facts, *p, &chain) != SHK_LOOK_MISSING)
            return true;
    return shk_look(facts, "probe.why.status", NULL) != SHK_LOOK_MISSING;
}

/* Is it one of those that have a chain, alone or below another (verbs;ofi_rxm)? */
static bool has_chain(const char *provider)
{
    for (const char *part = provider; part; part = strchr(part, ';')) {
        part += *part == ';';
        size_t len = strcspn(part, ";");
        for (const char *const *p = usual; *p; p++)
            if (strlen(*p) == len && strncmp(part, *p, len) == 0)
                return true;
    }
    return false;
}

/* The chain of a provider, for a row that it decides; NULL when there is none. Facts from elsewhere
 * may have none at all: then libfabric's lists decide. */
static const json_t *read_chain(struct shk_row *row, const char *provider)
{
    json_t *chain = NULL;
    enum shk_look look = shk_chain_look(row->ctx->facts, provider, &chain);
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)
        shk_row_was_read(row);
    else if (look == SHK_LOOK_FAILED || (has_chain(provider) && chains_made(row->ctx->facts)))
        shk_row_lacks(row, "why", "what could be in the way of provider %s was not read", provider);
    return chain;
}

/* mild: another provider of the same list works. */
static void wanted_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *provider, bool mild)
{
    char *setting = shk_strf("provider %s", provider);
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_fabric_provider, setting ? setting : provider);
    enum shk_provider_state state = shk_provider_state(ctx->facts, provider, strlen(provider));
    const json_t *chain = read_chain(&row, provider);
    struct shk_link link;
    row.required = 1;
    row.fact = "why, fabric.providers, fabric.core_providers";
    shk_row_text(&row.expected, "offered by libfabric");
    if (shk_chain_first(chain, "broken", &link)) {
        shk_row_verdict(&row, chain_verdict(ctx, &link, state), SHK_EFFECT);
        shk_chain_say(ctx, &row, provider, &link);
    } else if (state == SHK_PROVIDER_UNKNOWN) {
        shk_row_unread(findings, &row, ctx->facts, "fabric.providers");
        free(setting);
        return;
    } else if (state == SHK_PROVIDER_USABLE) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "offered by libfabric");
    } else {
        say_from_lists(ctx, &row, provider, state);
    }
    if (mild && row.verdict == SHK_FAIL)
        row.verdict = SHK_WARN;
    shk_row_end(findings, &row);
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
        (void)shk_read_env(row, "FI_PROVIDER", &value);
}

/* Nobody asks for it: what is in its way is told all the same, and judged as nothing. */
static void unwanted_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         const char *provider)
{
    char *setting = shk_strf("provider %s", provider);
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_fabric_provider, setting ? setting : provider);
    const json_t *chain = read_chain(&row, provider);
    struct shk_link link;
    row.fact = "why";
    read_asked(&row);
    if (shk_chain_first(chain, "broken", &link)) {
        char *text = shk_link_text(&link);
        struct shk_link also;
        bool more = shk_chain_software(chain, &also);
        shk_row_text(&row.observed, "first broken link: %s: %s%s%s", link.step,
                     text ? text : link.what, more ? "; besides, " : "", more ? also.what : "");
        free(text);
    } else if (shk_chain_first(chain, "unknown", &link)) {
        shk_row_text(&row.observed, "no broken link, but %s is not known: %s", link.step,
                     link.what);
    } else if (chain) {
        shk_row_text(&row.observed, "no broken link");
    }
    shk_row_na(findings, &row, "neither profile %s nor FI_PROVIDER asks for it",
               ctx->profile->name);
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
    json_t *chain;
    bool made = chains_made(ctx->facts);
    if (shk_look_text(ctx->facts, "fabric.filter", &list) != SHK_LOOK_PRESENT)
        (void)shk_look_env(ctx->facts, "FI_PROVIDER", &list);
    if (!list || *list == '^')
        return;
    while (shk_grammar_item(&list, ',', &start, &len)) {
        char *name = len ? shk_strf("%.*s", (int)len, start) : NULL;
        bool skip = !name || asked->count == sizeof(asked->names) / sizeof(asked->names[0]) ||
                    (!made && shk_chain_look(ctx->facts, name, &chain) == SHK_LOOK_MISSING);
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
        if (!library && !chains_made(ctx->facts))
            continue;
        wanted_row(ctx, findings, *p, false);
        told = true;
    }
    for (size_t i = 0; i < asked.count; i++, told = true)
        wanted_row(ctx, findings, asked.names[i], asked.one_works);
    for (const char *const *p = usual; *p; p++) {
        if (covered(ctx, &asked, *p) || !chains_made(ctx->facts))
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
    .family = "libfabric",
    .title = "The providers that profile and job ask for work; if not, the first broken link",
    .eval = eval_provider,
    .doc =
        "Facts: why.<provider> (the chain from the adapter to the domain), fabric.providers (those "
        "for which fi_getinfo() offers a domain), fabric.core_providers (those that the library "
        "contains).\n"
        "The first broken link is FAIL when it is about the software (library, its dependencies, "
        "FI_PROVIDER). Elsewhere it is FAIL, or WARN in a job of one node, where a fabric such as "
        "Slingshot may give no network service, or when the provider works in spite of it.\n"
        "efa, cxi and verbs that neither profile nor FI_PROVIDER asks for are n/a, with the first "
        "broken link.",
};
