#include "checks/fabric/chain.h"
#include "checks/base/coded.h"
#include "checks/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *chain_text(const json_t *row, const char *name)
{
    const char *text = "";
    (void)shk_look_member_text(row, name, &text);
    return text;
}

static bool chain_find(const json_t *steps, const char *state, bool software,
                       struct shk_link *link_p)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)steps, i, row)
    {
        if (strcmp(chain_text(row, "state"), state) != 0)
            continue;
        *link_p = (struct shk_link){.step = chain_text(row, "step"),
                                    .what = chain_text(row, "what"),
                                    .where = chain_text(row, "where"),
                                    .detail = chain_text(row, "detail"),
                                    .row = row};
        if (!software || shk_link_is_software(link_p))
            return true;
    }
    return false;
}

bool shk_chain_first(const json_t *steps, const char *state, struct shk_link *link_p)
{
    return chain_find(steps, state, false, link_p);
}

bool shk_chain_software(const json_t *steps, struct shk_link *link_p)
{
    struct shk_link first;
    return chain_find(steps, "broken", false, &first) &&
           chain_find(steps, "broken", true, link_p) && first.row != link_p->row;
}

enum shk_look shk_chain_look(const struct shk_facts *facts, const char *provider, json_t **chain_p)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+-";
    enum shk_look look = SHK_LOOK_MISSING;
    for (int part = 0; part < 2 && look == SHK_LOOK_MISSING; part++) {
        int len = (int)(part ? strcspn(provider, ";") : strlen(provider));
        char *key = shk_strf("why.%.*s", len, provider);
        for (char *p = key; p && *p; p++)
            if (!strchr(allowed, *p))
                *p = '_';
        look = key && *provider ? shk_look_array(facts, key, chain_p) : SHK_LOOK_MISSING;
        free(key);
    }
    return look;
}

const json_t *shk_chain_of(const struct shk_facts *facts, const char *provider)
{
    json_t *chain = NULL;
    return shk_chain_look(facts, provider, &chain) == SHK_LOOK_PRESENT ? chain : NULL;
}

char *shk_link_text(const struct shk_link *link)
{
    bool where = *link->where && !strstr(link->what, link->where);
    return shk_strf("%s%s%s%s%s%s", link->what, where ? " (" : "", where ? link->where : "",
                    where ? ")" : "", *link->detail ? "; " : "", link->detail);
}

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
     .fix = "run on nodes with Slingshot NICs, or unset FI_PROVIDER"},
    {.step = "pci",
     .provider = "verbs",
     .diagnosis = "verbs-provider-absent",
     .fix = "run on nodes with RDMA adapters, or unset FI_PROVIDER"},
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
     .fix = "put the directory of libcxi.so.1 into LD_LIBRARY_PATH (into the container, if it is "
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
     .fix = "export FI_EFA_USE_HUGE_PAGE=0"},
    {.step = "capability",
     .provider = "efa",
     .diagnosis = "efa-device-open-failure",
     .fix = "unset FI_EFA_USE_DEVICE_RDMA"},
    {.step = "service",
     .provider = "cxi",
     .diagnosis = "cxi-vni-missing",
     .fix = "start the ranks with srun, and let Slurm set up the network: srun "
            "--network=single_node_vni"},
    {.step = "filter", .fix = "unset FI_PROVIDER, or add %s to it"},
    {.step = "library",
     .fix = "put the libfabric that has the %s provider first in LD_LIBRARY_PATH"},
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
    {.step = NULL, .fix = "FI_LOG_LEVEL=info fi_info -p %s says where it gives up"},
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
    if (strstr(link->what, " has no provider "))
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
    if (strcmp(link->step, "hints") == 0 && strstr(link->what, "FI_HMEM"))
        return "hmem-runtime-library-missing";
    if (strcmp(link->step, "dependencies") == 0 &&
        (strstr(link->what, "libcuda") || strstr(link->what, "libamdhip") ||
         strstr(link->what, "libhsa") || strstr(link->what, "libze_loader")))
        return "hmem-runtime-library-missing";
    return NULL;
}

void shk_chain_say(const struct shk_check_context *ctx, struct shk_row *row, const char *provider,
                   const struct shk_link *link)
{
    bool inside = shk_container(ctx->facts) != NULL;
    char *text = shk_link_text(link);
    size_t i = 0;
    for (; i + 1 < CHAIN_RULES; i++) {
        bool fits = !chain_rules[i].step || strcmp(chain_rules[i].step, link->step) == 0;
        const char *of = chain_rules[i].provider;
        if (fits && (!chain_rules[i].container || inside) &&
            (!of || strncasecmp(provider, of, strlen(of)) == 0))
            break;
    }
    row->diagnosis = chain_library(ctx->facts, provider, link);
    if (!row->diagnosis)
        row->diagnosis = chain_rules[i].diagnosis;
    long long usable = 0;
    (void)shk_look_member_int(link->row, "usable", &usable);
    if (row->diagnosis && strcmp(row->diagnosis, "rdma-device-not-in-container") == 0 && usable > 0)
        row->diagnosis = "rdma-device-partially-exposed";
    if (!row->diagnosis)
        row->diagnosis = chain_family(provider, link);
    shk_row_text(&row->observed, "first broken link: %s", link->step);
    struct shk_link also;
    bool more = shk_chain_software(shk_chain_of(ctx->facts, provider), &also);
    shk_row_text(&row->why, "%s%s%s", text ? text : link->what, more ? "; besides, " : "",
                 more ? also.what : "");
    char *named = strstr(chain_rules[i].fix, "%s");
    if (named)
        shk_row_text(&row->fix, "%.*s%s%s", (int)(named - chain_rules[i].fix), chain_rules[i].fix,
                     provider, named + 2);
    else
        shk_row_text(&row->fix, "%s", chain_rules[i].fix);
    free(text);
}

bool shk_link_is_software(const struct shk_link *link)
{
    static const char *const steps[] = {"library", "dependencies", "filter", NULL};
    return shk_list_has(steps, link->step);
}

bool shk_link_is_quality(const struct shk_link *link)
{
    static const char *const steps[] = {"limits",  "fork", "capability", "hints",
                                        "domains", "link", "mtu",        NULL};
    return shk_list_has(steps, link->step);
}
