#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/fabric/chain.h"
#include "checks/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a broken link means, and what to do. The first row that fits counts; step and provider NULL
 * fit any. %s in the fix is the provider's name. */
static const struct {
    const char *step, *provider;
    bool container;              /* only inside one */
    const char *diagnosis, *fix; /* keys */
} chain_rules[] = {
    {.step = "pci",
     .provider = "efa",
     .diagnosis = "efa-provider-absent",
     .fix = "chain-efa-hardware"},
    {.step = "pci",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "chain-cxi-hardware"},
    {.step = "pci",
     .provider = "verbs",
     .diagnosis = "verbs-provider-absent",
     .fix = "chain-verbs-hardware"},
    {.step = "module",
     .provider = "efa",
     .diagnosis = "efa-provider-absent",
     .fix = "chain-efa-module"},
    {.step = "module",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "chain-cxi-module"},
    {.step = "module",
     .provider = "verbs",
     .diagnosis = "verbs-provider-absent",
     .fix = "chain-verbs-module"},
    {.step = "node",
     .container = true,
     .provider = "cxi",
     .diagnosis = "rdma-device-not-in-container",
     .fix = "chain-cxi-node"},
    {.step = "node",
     .container = true,
     .diagnosis = "rdma-device-not-in-container",
     .fix = "chain-rdma-node"},
    {.step = "node",
     .provider = "efa",
     .diagnosis = "efa-device-open-failure",
     .fix = "chain-efa-node"},
    {.step = "userlib",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "chain-cxi-library"},
    {.step = "userlib", .fix = "chain-user-library"},
    {.step = "limits", .diagnosis = "memlock-too-low", .fix = "chain-memlock"},
    {.step = "fork",
     .provider = "efa",
     .diagnosis = "efa-fork-hugepage-conflict",
     .fix = "chain-efa-fork"},
    {.step = "capability",
     .provider = "efa",
     .diagnosis = "efa-device-open-failure",
     .fix = "chain-efa-rdma"},
    {.step = "service",
     .provider = "cxi",
     .diagnosis = "cxi-vni-missing",
     .fix = "chain-cxi-service"},
    {.step = "filter", .fix = "chain-filter"},
    {.step = "library", .fix = "provider-libfabric-first"},
    {.step = "dependencies", .fix = "chain-dependencies"},
    {.step = "hints", .fix = "chain-hmem"},
    {.step = "domains",
     .provider = "efa",
     .diagnosis = "efa-nic-count-low",
     .fix = "chain-efa-domains"},
    {.step = "mtu", .diagnosis = "mtu-mismatch", .fix = "chain-mtu"},
    {.step = "link", .provider = "cxi", .diagnosis = "cxi-link-down", .fix = "chain-link"},
    {.step = "link", .provider = "verbs", .diagnosis = "nic-port-down", .fix = "chain-link"},
    {.step = "link", .fix = "chain-link"},
    {.step = NULL, .fix = "chain-other"},
};
enum { CHAIN_RULES = sizeof(chain_rules) / sizeof(chain_rules[0]) };

/* For links that mean no more than "the provider is not there". */
static const char *chain_family(const char *provider, const struct shk_link *link)
{
    static const char *const own[][2] = {{"efa", "efa-provider-absent"},
                                         {"cxi", "cxi-provider-absent"},
                                         {"verbs", "verbs-provider-absent"}};
    static const char *const none[] = {"link", "limits", "fork", NULL};
    if (shk_list_has(none, link->step))
        return NULL;
    if (link->code == SHK_CODE_NOT_COMPILED)
        return "provider-not-compiled";
    for (size_t i = 0; i < 3; i++)
        if (strncasecmp(provider, own[i][0], strlen(own[i][0])) == 0)
            return own[i][1];
    return NULL;
}

/* A library that could have the provider, but another copy is loaded; or one that lacks the runtime
 * of the accelerators: both have a cause of their own. */
static const char *chain_library(const struct shk_facts *facts, const char *provider,
                                 const struct shk_link *link)
{
    if (strcmp(link->step, "library") == 0 && shk_fabric_copy_with(facts, provider))
        return "libfabric-wrong-version-loaded";
    if (link->code == SHK_CODE_NO_HMEM || link->code == SHK_CODE_NO_GPU_RUNTIME)
        return "hmem-runtime-library-missing";
    return NULL;
}

/* The row of chain_rules that fits. */
static size_t chain_rule(const char *provider, bool inside, const struct shk_link *link)
{
    size_t i = 0;
    for (; i + 1 < CHAIN_RULES; i++) {
        bool fits = !chain_rules[i].step || strcmp(chain_rules[i].step, link->step) == 0;
        const char *of = chain_rules[i].provider;
        if (fits && (!chain_rules[i].container || inside) &&
            (!of || strncasecmp(provider, of, strlen(of)) == 0))
            break;
    }
    return i;
}

void shk_chain_say(const struct shk_check_context *ctx, struct shk_row *row, const char *provider,
                   const struct shk_chain *chain, const struct shk_link *link)
{
    char *text = shk_link_text(link);
    size_t i = chain_rule(provider, shk_container(ctx->facts) != NULL, link);
    row->diagnosis = chain_library(ctx->facts, provider, link);
    if (!row->diagnosis)
        row->diagnosis = chain_rules[i].diagnosis;
    if (row->diagnosis && chain_rules[i].container && link->code == SHK_CODE_NODE_PARTLY)
        row->diagnosis = "rdma-device-partially-exposed";
    if (!row->diagnosis)
        row->diagnosis = chain_family(provider, link);
    shk_row_text(&row->observed, "first broken link: %s", link->step);
    const struct shk_link *also = shk_chain_software(chain);
    shk_row_text(&row->why, "%s%s%s", text ? text : link->what, also ? "; besides, " : "",
                 also ? also->what : "");
    shk_row_fix(row, chain_rules[i].fix, "provider", provider, NULL);
    free(text);
}
