#include "checks/base/coded.h"
#include "checks/fabric/chain.h"
#include "checks/fabric/fabric.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a broken link means, and what to do. The first row that fits counts; step and provider NULL
 * fit any. %s in the fix is the provider's name. */
static const struct {
    const char *step, *provider;
    bool container; /* only inside one */
    const char *diagnosis, *fix;
} chain_rules[] = {
    {.step = "pci",
     .provider = "efa",
     .diagnosis = "efa-provider-absent",
     .fix = "launch an instance type with EFA, with its EFA interfaces attached"},
    {.step = "pci",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "run on nodes with Slingshot NICs, or unset {provider-filter}"},
    {.step = "pci",
     .provider = "verbs",
     .diagnosis = "verbs-provider-absent",
     .fix = "run on nodes with RDMA adapters, or unset {provider-filter}"},
    {.step = "module",
     .provider = "efa",
     .diagnosis = "efa-provider-absent",
     .fix = "modprobe efa"},
    {.step = "module",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "modprobe cxi_user (the administrator), after a look at dmesg"},
    {.step = "module",
     .provider = "verbs",
     .diagnosis = "verbs-provider-absent",
     .fix = "modprobe ib_uverbs, and the driver of the adapter (mlx5_ib, irdma, bnxt_re)"},
    {.step = "node",
     .container = true,
     .provider = "cxi",
     .diagnosis = "rdma-device-not-in-container",
     .fix = "pass /dev/cxi* into the container"},
    {.step = "node",
     .container = true,
     .diagnosis = "rdma-device-not-in-container",
     .fix = "pass /dev/infiniband into the container (docker run --device=/dev/infiniband)"},
    {.step = "node",
     .provider = "efa",
     .diagnosis = "efa-device-open-failure",
     .fix = "give the job access to /dev/infiniband/uverbs* (group, udev rule or device control "
            "group)"},
    {.step = "userlib",
     .provider = "cxi",
     .diagnosis = "cxi-provider-absent",
     .fix = "put the directory of libcxi.so.1 into {loader-path} (into the container, if it is "
            "one)"},
    {.step = "userlib",
     .fix = "install the user-space drivers of the same rdma-core release as libibverbs "
            "(ibverbs-providers, or the EFA installer's)"},
    {.step = "limits",
     .diagnosis = "memlock-too-low",
     .fix = "ulimit -l unlimited in the job (limits.conf, LimitMEMLOCK= of the scheduler's daemon, "
            "--ulimit memlock=-1 for a container)"},
    {.step = "fork",
     .provider = "efa",
     .diagnosis = "efa-fork-hugepage-conflict",
     .fix = "export {huge-pages}=0"},
    {.step = "capability",
     .provider = "efa",
     .diagnosis = "efa-device-open-failure",
     .fix = "unset {device-rdma}"},
    {.step = "service",
     .provider = "cxi",
     .diagnosis = "cxi-vni-missing",
     .fix = "start the ranks with srun, and let Slurm set up the network: srun "
            "--network=single_node_vni"},
    {.step = "filter", .fix = "unset {provider-filter}, or add %s to it"},
    {.step = "library", .fix = "put the libfabric that has the %s provider first in {loader-path}"},
    {.step = "dependencies",
     .fix = "make the library that is named available to the loader (ldd libfabric.so.1)"},
    {.step = "hints",
     .fix = "use a libfabric that was built for these accelerators (--with-cuda, --with-rocr)"},
    {.step = "domains",
     .provider = "efa",
     .diagnosis = "efa-nic-count-low",
     .fix = "look at the devices that are missing: fi_info -p efa, dmesg"},
    {.step = "mtu",
     .diagnosis = "mtu-mismatch",
     .fix = "set the same MTU on every port of the fabric"},
    {.step = "link", .fix = "have the port and its cable checked; it must be up"},
    {.step = NULL, .fix = "{fabric-log}=info fi_info -p %s says where it gives up"},
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
    char *fix = shk_uses_expand(chain_rules[i].fix), *named = fix ? strstr(fix, "%s") : NULL;
    if (named)
        shk_row_text(&row->fix, "%.*s%s%s", (int)(named - fix), fix, provider, named + 2);
    else if (fix)
        shk_row_text(&row->fix, "%s", fix);
    free(fix);
    free(text);
}
