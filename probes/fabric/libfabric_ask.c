#include "probes/fabric/libfabric_ask.h"

#include "core/facts/facts.h"
#include "core/run/clock.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/run/readonce.h"
#include "core/text/uses.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct ops {
    uint32_t (*version)(void);
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    const char *(*strerror)(int errnum);
    char *(*tostr)(const void *data, enum fi_type type);
    int (*getparams)(struct fi_param **params, int *count);
    void (*freeparams)(struct fi_param *params);
};

static const struct shk_symbol ask_symbols[] = {
    {.name = "fi_version", .offset = offsetof(struct ops, version)},
    {.name = "fi_getinfo", .offset = offsetof(struct ops, getinfo)},
    {.name = "fi_freeinfo", .offset = offsetof(struct ops, freeinfo)},
    {.name = "fi_dupinfo", .offset = offsetof(struct ops, dupinfo)},
    {.name = "fi_strerror", .offset = offsetof(struct ops, strerror)},
    {.name = "fi_tostr", .offset = offsetof(struct ops, tostr)},
    {.name = "fi_getparams", .offset = offsetof(struct ops, getparams), .optional = true},
    {.name = "fi_freeparams", .offset = offsetof(struct ops, freeparams), .optional = true},
    {.name = NULL},
};

static const char *const ask_names[] = {"libfabric.so.1", NULL};
static const struct shk_library ask_library = {
    .names = ask_names, .env_override = SHK_LIBFABRIC_OVERRIDE, .symbols = ask_symbols};

struct ask {
    const struct shk_libfabric_question *question;
    struct ops ops;
    struct shk_dynlib lib;
    uint32_t api; /* the version that the loaded library speaks */
    json_t *out;
    bool own_log; /* FI_LOG_LEVEL is ours, not the user's */
};

/* How late a nap in the library may end: 5 ms. */
#define ASK_NAP_NS 5000000UL

static json_t *ask_text(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

static void ask_set_text(json_t *row, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(row, key, ask_text(text));
}

static json_t *ask_version(uint32_t version)
{
    return json_sprintf("%u.%u", FI_MAJOR(version), FI_MINOR(version));
}

/* fi_tostr() writes flags with commas between them (into one static buffer). */
static json_t *ask_flags(const struct ask *a, const void *value, enum fi_type type)
{
    json_t *list = json_array();
    for (const char *p = a->ops.tostr(value, type); p && *p;) {
        size_t n = strcspn(p, ", ");
        if (n)
            json_array_append_new(list, shk_json_text(p, n));
        p += n + strspn(p + n, ", ");
    }
    return list;
}

static void ask_nic(json_t *row, const struct fid_nic *nic)
{
    static const char *const states[] = {
        [FI_LINK_UNKNOWN] = "unknown", [FI_LINK_DOWN] = "down", [FI_LINK_UP] = "up"};
    const struct fi_link_attr *link = nic->link_attr;
    if (link) {
        if (link->speed) /* bit/s; 0 is "not told" */
            json_object_set_new(row, "speed", json_integer((json_int_t)link->speed));
        if (link->mtu)
            json_object_set_new(row, "mtu", json_integer((json_int_t)link->mtu));
        if ((unsigned)link->state <= FI_LINK_UP)
            ask_set_text(row, "link", states[link->state]);
        ask_set_text(row, "network", link->network_type);
    }
    if (nic->bus_attr && nic->bus_attr->bus_type == FI_BUS_PCI) {
        const struct fi_pci_attr *pci = &nic->bus_attr->attr.pci;
        json_object_set_new(row, "pci",
                            json_sprintf("%04x:%02x:%02x.%x", pci->domain_id, pci->bus_id,
                                         pci->device_id, pci->function_id));
    }
    if (nic->device_attr) {
        ask_set_text(row, "device", nic->device_attr->name);
        ask_set_text(row, "device_version", nic->device_attr->device_version);
        ask_set_text(row, "driver", nic->device_attr->driver);
        ask_set_text(row, "firmware", nic->device_attr->firmware);
    }
}

static json_t *ask_domain(const struct ask *a, const struct fi_info *info)
{
    json_t *row = json_object();
    if (info->fabric_attr) {
        ask_set_text(row, "provider", info->fabric_attr->prov_name);
        ask_set_text(row, "fabric", info->fabric_attr->name);
        json_object_set_new(row, "version", ask_version(info->fabric_attr->prov_version));
    }
    if (info->domain_attr) {
        ask_set_text(row, "domain", info->domain_attr->name);
        json_object_set_new(row, "mr_mode",
                            ask_flags(a, &info->domain_attr->mr_mode, FI_TYPE_MR_MODE));
    }
    if (info->ep_attr) {
        enum fi_ep_type type = info->ep_attr->type;
        ask_set_text(row, "ep", a->ops.tostr(&type, FI_TYPE_EP_TYPE));
        ask_set_text(row, "protocol", a->ops.tostr(&info->ep_attr->protocol, FI_TYPE_PROTOCOL));
        json_object_set_new(row, "max_msg_size",
                            json_integer((json_int_t)info->ep_attr->max_msg_size));
    }
    json_object_set_new(row, "caps", ask_flags(a, &info->caps, FI_TYPE_CAPS));
    if (info->nic)
        ask_nic(row, info->nic);
    return row;
}

/* Two rows that differ in what we do not record (threading, resource counts) are one. */
static bool ask_seen(const json_t *list, const json_t *row)
{
    static const char *const keys[] = {"provider", "fabric", "domain", "ep", "protocol"};
    size_t i;
    json_t *other;
    json_array_foreach(list, i, other)
    {
        size_t same = 0;
        for (; same < sizeof keys / sizeof keys[0]; same++) {
            json_t *x = json_object_get(row, keys[same]), *y = json_object_get(other, keys[same]);
            if ((x || y) && !json_equal(x, y))
                break;
        }
        if (same == sizeof keys / sizeof keys[0])
            return true;
    }
    return false;
}

static int ask_getinfo(struct ask *a, uint64_t flags, const struct fi_info *hints,
                       struct fi_info **info_p)
{
    struct fi_info *info = NULL;
    int rc = a->ops.getinfo(a->api, NULL, NULL, flags, hints, &info);
    *info_p = rc ? NULL : info;
    return rc;
}

static void ask_core_providers(struct ask *a)
{
    struct fi_info *info;
    shk_crumb_call("fi_getinfo(FI_PROV_ATTR_ONLY)");
    if (ask_getinfo(a, FI_PROV_ATTR_ONLY, NULL, &info) != 0)
        return;
    json_t *list = json_array();
    for (const struct fi_info *p = info; p; p = p->next) {
        json_t *row = json_object();
        if (p->fabric_attr) {
            ask_set_text(row, "name", p->fabric_attr->prov_name);
            json_object_set_new(row, "version", ask_version(p->fabric_attr->prov_version));
        }
        json_array_append_new(list, row);
    }
    a->ops.freeinfo(info);
    json_object_set_new(a->out, "core_providers", list);
}

/* Without hints libfabric answers with everything that any provider offers. */
static void ask_domains(struct ask *a)
{
    struct fi_info *info;
    double start = shk_clock_s() * 1e3;
    shk_crumb_call("fi_getinfo");
    int rc = ask_getinfo(a, 0, NULL, &info);
    json_object_set_new(a->out, "getinfo_ms", json_real(shk_clock_s() * 1e3 - start));
    json_object_set_new(
        a->out, "getinfo",
        json_pack("{s:i, s:o}", "rc", rc, "text", ask_text(rc ? a->ops.strerror(-rc) : "success")));
    json_t *list = json_array();
    size_t more = 0;
    for (const struct fi_info *p = info; p; p = p->next) {
        json_t *row = ask_domain(a, p);
        if (ask_seen(list, row)) {
            json_decref(row);
        } else if (json_array_size(list) == SHK_LIBFABRIC_MAX_DOMAINS) {
            json_decref(row);
            more++;
        } else {
            json_array_append_new(list, row);
        }
    }
    if (info)
        a->ops.freeinfo(info);
    if (!rc || rc == -FI_ENODATA) /* no data: it was asked, and there are none */
        json_object_set_new(a->out, "domains", list);
    else
        json_decref(list);
    if (more)
        json_object_set_new(a->out, "domains_left_out", json_integer((json_int_t)more));
}

static void ask_params(struct ask *a)
{
    static const char *const types[] = {[FI_PARAM_STRING] = "string",
                                        [FI_PARAM_INT] = "int",
                                        [FI_PARAM_BOOL] = "bool",
                                        [FI_PARAM_SIZE_T] = "size"};
    struct fi_param *params = NULL;
    int count = 0;
    if (!a->ops.getparams || !a->ops.freeparams)
        return;
    shk_crumb_call("fi_getparams");
    if (a->ops.getparams(&params, &count) != 0)
        return;
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        const struct fi_param *p = &params[i];
        bool ours = a->own_log && p->name && strcmp(p->name, shk_variable("fabric-log")) == 0;
        json_t *row = json_object();
        ask_set_text(row, "name", p->name);
        if ((unsigned)p->type <= FI_PARAM_SIZE_T)
            ask_set_text(row, "type", types[p->type]);
        ask_set_text(row, "help", p->help_string);
        if (p->value && !ours)
            json_object_set_new(row, "value", ask_text(p->value));
        json_array_append_new(list, row);
    }
    a->ops.freeparams(params);
    json_object_set_new(a->out, "params", list);
}

/* Hints as a GPU collective library gives them, from the widest on: each row adds to those before.
 * The first one that leaves nothing over is the one that removes the provider. */
static const struct {
    const char *name;
    enum fi_ep_type ep;
    uint64_t caps;
} ask_hints[] = {
    {.name = "the provider's name alone"},
    {.name = "FI_EP_RDM", .ep = FI_EP_RDM},
    {.name = "FI_MSG", .ep = FI_EP_RDM, .caps = FI_MSG},
    {.name = "FI_TAGGED", .ep = FI_EP_RDM, .caps = FI_MSG | FI_TAGGED},
    {.name = "FI_RMA", .ep = FI_EP_RDM, .caps = FI_MSG | FI_TAGGED | FI_RMA},
    {.name = "FI_LOCAL_COMM and FI_REMOTE_COMM",
     .ep = FI_EP_RDM,
     .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_LOCAL_COMM | FI_REMOTE_COMM},
    {.name = "FI_HMEM",
     .ep = FI_EP_RDM,
     .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_HMEM},
};

static json_t *ask_hint_row(struct ask *a, const char *provider, size_t step)
{
    struct fi_info *info = NULL, *hints = a->ops.dupinfo(NULL);
    if (!hints || !hints->fabric_attr || !hints->domain_attr || !hints->ep_attr)
        return json_null();
    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type = ask_hints[step].ep;
    hints->caps = ask_hints[step].caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                                  FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_MMU_NOTIFY | FI_MR_RAW;
    shk_crumb_call("fi_getinfo(%s, %s)", provider, ask_hints[step].name);
    int rc = ask_getinfo(a, 0, hints, &info), count = 0;
    for (const struct fi_info *p = info; p; p = p->next)
        count++;
    if (info)
        a->ops.freeinfo(info);
    a->ops.freeinfo(hints);
    return json_pack("{s:s, s:i, s:i, s:o}", "hint", ask_hints[step].name, "count", count, "rc", rc,
                     "text", ask_text(rc ? a->ops.strerror(-rc) : "success"));
}

static void ask_widening(struct ask *a)
{
    json_t *list = json_array();
    /* without GPU runtimes every provider would fail the last one */
    size_t steps_asked = sizeof ask_hints / sizeof ask_hints[0] - a->question->no_gpu;
    for (const char *const *p = a->question->widen; p && *p; p++) {
        json_t *steps = json_array();
        for (size_t s = 0; s < steps_asked; s++)
            json_array_append_new(steps, ask_hint_row(a, *p, s));
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "provider", ask_text(*p), "steps", steps));
    }
    json_object_set_new(a->out, "hints", list);
}

/* "1.17.0"; older libraries have only fi_version(). */
static void ask_version_text(struct ask *a)
{
    const char *text = a->ops.tostr("1", FI_TYPE_VERSION);
    if (text && *text >= '0' && *text <= '9')
        json_object_set_new(a->out, "version", ask_text(text));
    else
        json_object_set_new(a->out, "version", ask_version(a->api));
    json_object_set_new(a->out, "api", ask_version(a->api));
}

int shk_libfabric_ask(void *arg, json_t **result_p, struct shk_error *err)
{
    struct ask a = {.question = arg, .out = json_object()};
    double start = shk_clock_s() * 1e3;
    *result_p = a.out;
    if (a.question->unfiltered)
        unsetenv(shk_variable("provider-filter"));
    if (a.question->no_gpu)
        setenv(shk_variable("fabric-memory"), "system", 0);
    a.own_log = !getenv(shk_variable("fabric-log"));
    setenv(shk_variable("fabric-log"), "warn", 0);
    shk_readonce_begin();
    /* libpsm2 and libinfinipath measure the clock while they are loaded: naps of 125 us until 100
     * ms have passed (cornelisnetworks/opa-psm2: opa/opa_time.c). Longer naps are fewer. */
    prctl(PR_SET_TIMERSLACK, ASK_NAP_NS);
    int rc = shk_dynlib_open(&a.lib, &ask_library, &a.ops, err);
    shk_readonce_loaded();
    json_object_set_new(a.out, "open_ms", json_real(shk_clock_s() * 1e3 - start));
    if (rc)
        return rc;
    ask_set_text(a.out, "path", a.lib.path);
    shk_crumb_call("fi_version");
    a.api = a.ops.version();
    ask_version_text(&a);
    ask_core_providers(&a);
    ask_domains(&a);
    ask_params(&a);
    ask_widening(&a);
    shk_crumb_clear();
    shk_dynlib_close(&a.lib, false);
    return 0;
}
