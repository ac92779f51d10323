/* Why does a provider not work here? The chain from the adapter to the domain, link by link, from
 * facts that other probes have gathered. Nothing is read or executed, so it works on captures and
 * on whatever part of the facts there is. */
#include "probes/base/registry.h"

#include "probes/fabric/why_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const efa_modules[] = {"efa", "ib_uverbs", NULL};
static const char *const cxi_modules[] = {"cxi_ss1", "cxi_user", NULL};
static const char *const verbs_modules[] = {"ib_uverbs", NULL};
static const char *const efa_fork[] = {"FI_EFA_FORK_SAFE", "RDMAV_FORK_SAFE", "IBV_FORK_SAFE",
                                       NULL};
static const char *const cxi_fork[] = {"CXI_FORK_SAFE", NULL};
static const char *const verbs_fork[] = {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE", NULL};

static const struct shk_why_kind why_kinds[] = {
    {.name = "efa",
     .adapter = "EFA function (PCI 1d0f:efa0 and up)",
     .count_key = "pci.count.efa",
     .pci_kind = "efa",
     .modules = efa_modules,
     .verbs_class = true,
     .driver = "efa",
     .fork_vars = efa_fork,
     .every_link = true,
     .capability = true},
    {.name = "cxi",
     .adapter = "Slingshot NIC (PCI 17db:0501 or 1590:0371)",
     .count_key = "pci.count.cxi",
     .pci_kind = "cxi",
     .modules = cxi_modules,
     .fork_vars = cxi_fork,
     .every_link = true,
     .service = true},
    {.name = "verbs",
     .adapter = "RDMA adapter: neither a ConnectX (PCI 15b3) nor any device but EFA in "
                "/sys/class/infiniband",
     .count_key = "pci.count.mlx5",
     .pci_kind = "mlx5",
     .modules = verbs_modules,
     .verbs_class = true,
     .fork_vars = verbs_fork},
};

const struct shk_why_kind *shk_why_kind_of(const char *provider)
{
    for (size_t i = 0; i < sizeof why_kinds / sizeof why_kinds[0]; i++) {
        if (shk_why_names(provider, why_kinds[i].name))
            return &why_kinds[i];
    }
    return NULL;
}

bool shk_why_names(const char *layered, const char *provider)
{
    size_t want = strlen(provider);
    for (const char *p = layered; *p;) {
        size_t n = strcspn(p, ";");
        if (n == want && strncasecmp(p, provider, n) == 0)
            return true;
        p += n + (p[n] == ';');
    }
    /* a layered name asks for that very combination */
    return strcasecmp(layered, provider) == 0;
}

bool shk_why_list_names(const json_t *names, const char *provider)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        if (text && shk_why_names(text, provider))
            return true;
    }
    return false;
}

const char *shk_why_reason(const struct shk_facts *known, const char *key)
{
    struct shk_fact fact;
    if (!shk_facts_get(known, key, &fact))
        return "nobody looked";
    return fact.reason ? fact.reason : "not of the expected type";
}

const char *shk_why_env(const struct shk_why *why, const char *name)
{
    char key[96];
    snprintf(key, sizeof key, "env.%s", name);
    return shk_facts_get_text(why->known, key);
}

const char *shk_why_member(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

enum { WHY_MAX = 16, WHY_MAX_NAME = 64 };

struct why_names {
    char list[WHY_MAX][WHY_MAX_NAME];
    size_t count;
};

static void why_add(struct why_names *names, const char *name, size_t len)
{
    if (!len || len >= WHY_MAX_NAME || names->count == WHY_MAX)
        return;
    for (size_t i = 0; i < names->count; i++) {
        if (strncasecmp(names->list[i], name, len) == 0 && !names->list[i][len])
            return;
    }
    snprintf(names->list[names->count++], WHY_MAX_NAME, "%.*s", (int)len, name);
}

/* Those that GPU collectives use, and those that the job asks for. */
static void why_collect(struct why_names *names, const struct shk_facts *known)
{
    for (size_t i = 0; i < sizeof why_kinds / sizeof why_kinds[0]; i++)
        why_add(names, why_kinds[i].name, strlen(why_kinds[i].name));
    const char *filter = shk_facts_get_text(known, "fabric.filter");
    if (!filter)
        filter = shk_facts_get_text(known, "env.FI_PROVIDER");
    for (const char *p = filter; p && *p && *filter != '^';) {
        size_t n = strcspn(p, ",");
        why_add(names, p, n);
        p += n + (p[n] == ',');
    }
}

static int why_one(struct shk_facts *facts, const struct shk_facts *known, const char *provider)
{
    char key[WHY_MAX_NAME + 8];
    struct shk_why why = {.known = known,
                          .provider = provider,
                          .kind = shk_why_kind_of(provider),
                          .steps = json_array()};
    if (why.kind)
        shk_why_host_steps(&why);
    shk_why_library_steps(&why);
    shk_why_offer_steps(&why);
    json_decref(why.devices);
    snprintf(key, sizeof key, "why.%s", provider);
    for (char *p = key; *p; p++) {
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+-", *p))
            *p = '_';
    }
    return shk_facts_present(facts, key, why.steps, NULL, "facts");
}

static int why_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct why_names *names = calloc(1, sizeof *names);
    int rc = names ? 0 : -ENOMEM;
    if (!rc)
        why_collect(names, ctx->known);
    for (size_t i = 0; !rc && i < names->count; i++)
        rc = why_one(ctx->facts, ctx->known, names->list[i]);
    free(names);
    return rc ? shk_error_sys(err, -rc, "facts of the providers") : 0;
}

static const char *const why_provides[] = {"why.efa", "why.cxi", "why.verbs", "why.", NULL};

const struct shk_probe shk_probe_why = {
    .name = "why",
    .phase = SHK_PHASE_DERIVED,
    .doc = "for efa, cxi, verbs and what FI_PROVIDER asks for: the first broken link",
    .provides = why_provides,
    .deadline_ms = 5000,
    .run = why_run,
};
