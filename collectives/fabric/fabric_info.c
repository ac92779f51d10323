#include "collectives/fabric/fabric_private.h"
#include "core/run/isolate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this code can deal with. A provider that needs more does not offer itself. */
#define INFO_MODE (FI_CONTEXT | FI_CONTEXT2)
#define INFO_MR_MODE                                                                               \
    (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT)

/* What libfabric's tcp can inject. ofi_rxm over it offers 64 B less unasked, for the header of a
 * message, which a put does not have. */
#define INFO_INJECT ((size_t)128)

struct fi_info *fabric_hints(const struct fabric_lib *lib, const char *provider)
{
    struct fi_info *hints = lib->api.dupinfo(NULL);

    if (!hints)
        return NULL;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = INFO_MODE;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = INFO_MR_MODE;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_TABLE;
    if (provider) {
        hints->fabric_attr->prov_name = strdup(provider); /* freed by fi_freeinfo() */
        if (!hints->fabric_attr->prov_name) {
            lib->api.freeinfo(hints);
            hints = NULL;
        }
    }
    return hints;
}

static void relax_rma(struct fi_info *hints)
{
    hints->caps &= ~(uint64_t)FI_RMA;
}

static void relax_type(struct fi_info *hints)
{
    hints->ep_attr->type = FI_EP_UNSPEC;
}

static void relax_mr_mode(struct fi_info *hints)
{
    hints->domain_attr->mr_mode = ~0;
}

static void relax_mode(struct fi_info *hints)
{
    hints->mode = ~UINT64_C(0);
}

static void relax_resources(struct fi_info *hints)
{
    hints->domain_attr->resource_mgmt = FI_RM_UNSPEC;
}

static void relax_progress(struct fi_info *hints)
{
    hints->domain_attr->control_progress = FI_PROGRESS_UNSPEC;
    hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
    hints->domain_attr->threading = FI_THREAD_UNSPEC;
    hints->domain_attr->av_type = FI_AV_UNSPEC;
}

static char *info_copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

const struct fabric_hint fabric_hint_list[] = {
    {.name = "FI_RMA (one-sided writes)", .relax = relax_rma},
    {.name = "FI_EP_RDM (reliable, connectionless endpoints)", .relax = relax_type},
    {.name = "the memory registration modes that we support", .relax = relax_mr_mode},
    {.name = "the mode bits FI_CONTEXT and FI_CONTEXT2 (it needs others)", .relax = relax_mode},
    {.name = "FI_RM_ENABLED (resource management)", .relax = relax_resources},
    {.name = "manual progress, FI_THREAD_DOMAIN or FI_AV_TABLE", .relax = relax_progress},
    {0},
};

static bool info_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool fabric_info_same(const struct fi_info *a, const struct fi_info *b)
{
    return info_same(a->fabric_attr->prov_name, b->fabric_attr->prov_name) &&
           info_same(a->fabric_attr->name, b->fabric_attr->name) &&
           info_same(a->domain_attr->name, b->domain_attr->name) &&
           a->ep_attr->type == b->ep_attr->type && a->ep_attr->protocol == b->ep_attr->protocol &&
           a->addr_format == b->addr_format;
}

/* The entry of the same provider, fabric and domain with these operation flags as its default, and
 * with this inject size where it is not 0; NULL when it cannot have them. */
static struct fi_info *info_variant(const struct fabric_lib *lib, const struct fi_info *info,
                                    uint64_t op_flags, size_t inject)
{
    struct fi_info *hints = fabric_hints(lib, info->fabric_attr->prov_name);
    struct fi_info *list = NULL;
    struct fi_info *found = NULL;
    const struct fi_info *at = NULL;

    if (!hints)
        return NULL;
    if ((info->caps & FI_HMEM) != 0)
        fabric_hmem_want(hints);
    hints->tx_attr->op_flags = op_flags;
    hints->tx_attr->inject_size = inject;
    hints->domain_attr->name = info_copy(info->domain_attr->name);
    hints->fabric_attr->name = info_copy(info->fabric_attr->name);
    shk_crumb_call("fi_getinfo");
    if (lib->api.getinfo(lib->version, NULL, NULL, 0, hints, &list) == 0 && list) {
        /* Not every provider obeys the names: tcp lists all of its interfaces. */
        for (at = list; at && !fabric_info_same(at, info); at = at->next) {
        }
        found = at ? lib->api.dupinfo(at) : NULL;
        lib->api.freeinfo(list);
    }
    lib->api.freeinfo(hints);
    return found;
}

bool fabric_has_delivery(const struct fabric_lib *lib, const struct fi_info *info)
{
    struct fi_info *found = info_variant(lib, info, FI_DELIVERY_COMPLETE, 0);

    if (found)
        lib->api.freeinfo(found);
    return found;
}

/* The usual, stronger promise costs some providers a round trip. An inject size that is asked for
 * is also the most that is offered then, so it is asked for only where less is offered. */
struct fi_info *fabric_lazy(const struct fabric_lib *lib, const struct fi_info *info)
{
    bool more = (info->caps & FI_HMEM) == 0 && info->tx_attr->inject_size < INFO_INJECT;
    struct fi_info *lazy = more ? info_variant(lib, info, FI_INJECT_COMPLETE, INFO_INJECT) : NULL;

    lazy = lazy ? lazy : info_variant(lib, info, FI_INJECT_COMPLETE, 0);
    return lazy ? lazy : lib->api.dupinfo(info);
}

int fabric_choose(const struct fabric_lib *lib, const char *provider, struct fi_info **info_p,
                  struct fi_info **list_p, struct shk_error *err)
{
    struct fi_info *hints = fabric_hints(lib, provider);
    struct fi_info *list = NULL;
    int rc = 0;

    if (!hints)
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    shk_crumb_call("fi_getinfo");
    rc = lib->api.getinfo(lib->version, NULL, NULL, 0, hints, &list);
    lib->api.freeinfo(hints);
    if (rc == 0 && !list)
        rc = -FI_ENODATA;
    if (rc != 0)
        return fabric_error(lib, "fi_getinfo", rc, err);
    /* libfabric lists the best first: what other applications get, we take as well. */
    *info_p = fabric_lazy(lib, list);
    if (*info_p && list_p)
        *list_p = list;
    else
        lib->api.freeinfo(list);
    return *info_p ? 0 : shk_error_set(err, FI_ENOMEM, "out of memory");
}

static const char *info_text(const char *text)
{
    return text ? text : "";
}

/* fi_tostr() answers from a buffer of its own; "" when the library has no such function. */
static const char *info_tostr(const struct fabric_lib *lib, const void *data, enum fi_type type)
{
    return lib->api.tostr ? info_text(lib->api.tostr(data, type)) : "";
}

static int info_set(json_t *object, const char *key, const char *text)
{
    return json_object_set_new(object, key, shk_json_text(text, strlen(text)));
}

json_t *fabric_identity(const struct fabric_lib *lib, const struct fi_info *info)
{
    json_t *object = json_object();
    uint32_t version = info->fabric_attr->prov_version;
    char text[64];
    int bad = 0;

    if (!object)
        return NULL;
    bad |= info_set(object, "library", lib->dynlib.path);
    bad |= info_set(object, "version", lib->text);
    bad |= info_set(object, "provider", info_text(info->fabric_attr->prov_name));
    bad |= info_set(object, "fabric", info_text(info->fabric_attr->name));
    bad |= info_set(object, "domain", info_text(info->domain_attr->name));
    bad |= info_set(object, "endpoint", info_tostr(lib, &info->ep_attr->type, FI_TYPE_EP_TYPE));
    bad |=
        info_set(object, "protocol", info_tostr(lib, &info->ep_attr->protocol, FI_TYPE_PROTOCOL));
    bad |= info_set(object, "address_format",
                    info_tostr(lib, &info->addr_format, FI_TYPE_ADDR_FORMAT));
    bad |=
        info_set(object, "mr_mode", info_tostr(lib, &info->domain_attr->mr_mode, FI_TYPE_MR_MODE));
    bad |= info_set(object, "progress",
                    info_tostr(lib, &info->domain_attr->data_progress, FI_TYPE_PROGRESS));
    snprintf(text, sizeof text, "%u.%u", FI_MAJOR(version), FI_MINOR(version));
    bad |= info_set(object, "provider_version", text);
    if (bad != 0) {
        json_decref(object);
        object = NULL;
    }
    return object;
}
