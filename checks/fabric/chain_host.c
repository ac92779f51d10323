#include "checks/fabric/chain_private.h"
#include "checks/hardware/pci.h"

#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* Its rows of the device list; NULL when the list is not known. Absent is an empty list. */
static json_t *host_devices(const struct shk_why *why)
{
    const char *key = why->kind->verbs_class ? "rdma.devices" : "cxi.devices";
    size_t i;
    json_t *row, *all = NULL, *mine = json_array();
    enum shk_look look = shk_look_array(why->known, key, &all);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT) {
        json_decref(mine);
        return NULL;
    }
    json_array_foreach(all, i, row)
    {
        const char *driver = shk_why_member(row, "driver");
        bool is_efa = strcmp(driver, "efa") == 0;
        bool fits = !why->kind->verbs_class ||
                    (why->kind->driver ? strcmp(driver, why->kind->driver) == 0 : !is_efa);
        if (fits)
            json_array_append(mine, row);
    }
    return mine;
}

/* "device 0xefa2" of the PCI rows of the kind: the generation of the adapter. */
static char *host_model(const struct shk_why *why)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *row;
    json_t *devices = shk_why_array(why->known, "pci.devices");
    json_array_foreach(devices, i, row)
    {
        const char *device = shk_why_member(row, "device");
        if (strcmp(shk_why_member(row, "kind"), why->kind->pci_kind) == 0 &&
            !strstr(shk_strbuf_text(&sb), device))
            shk_strbuf_printf(&sb, "%s%s", sb.len ? ", " : "device ", device);
    }
    return shk_strbuf_take(&sb);
}

static void host_pci(struct shk_why *why)
{
    struct shk_fact fact;
    const struct shk_why_kind *kind = why->kind;
    bool asked = shk_facts_get(why->known, kind->count_key, &fact);
    long long count = asked && json_is_integer(fact.value) ? json_integer_value(fact.value) : 0;
    char *model = host_model(why);
    if (count > 0) {
        shk_chain_add(why->chain, "pci", SHK_LINK_OK, model, "%lld on the PCI bus", count);
    } else if (json_array_size(why->devices)) {
        shk_chain_add(why->chain, "pci", SHK_LINK_OK, NULL,
                      "%zu devices of the kernel's RDMA class", json_array_size(why->devices));
    } else if (asked && fact.state == SHK_FACT_ABSENT) {
        why->no_adapter = true;
        shk_chain_add(why->chain, "pci", SHK_LINK_BROKEN, shk_why_text(why->known, "host.product"),
                      "no %s", kind->adapter);
    } else {
        shk_chain_add(why->chain, "pci", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, kind->count_key));
        shk_why_unread(why, kind->count_key, false);
    }
    shk_chain_where(why->chain, "/sys/bus/pci/devices");
    free(model);
}

/* Node of one device below /dev; "" when the device has none. */
static void host_node_name(const struct shk_why *why, const json_t *device, char *buf, size_t size)
{
    const char *verbs = shk_why_member(device, "uverbs");
    buf[0] = '\0';
    if (why->kind->verbs_class && *verbs)
        snprintf(buf, size, "infiniband/%s", verbs);
    else if (!why->kind->verbs_class)
        snprintf(buf, size, "%s", shk_why_member(device, "name"));
}

/* A device with its node was made by a driver, whatever its module is called. */
static bool host_driver_works(const struct shk_why *why)
{
    char node[128], key[160];
    struct shk_fact fact;
    host_node_name(why, json_array_get(why->devices, 0), node, sizeof node);
    snprintf(key, sizeof key, "dev.%s", node);
    return *node && shk_facts_get(why->known, key, &fact) && fact.state == SHK_FACT_PRESENT;
}

static void host_module(struct shk_why *why)
{
    struct shk_strbuf loaded = SHK_STRBUF_INIT;
    const char *unknown = NULL, *missing = NULL, *reason = NULL;
    struct shk_fact fact;
    for (const char *const *name = why->kind->modules; *name; name++) {
        char key[80];
        snprintf(key, sizeof key, "kernel.module.%s", *name);
        bool asked = shk_facts_get(why->known, key, &fact);
        if (asked && fact.state == SHK_FACT_PRESENT) {
            const char *version = shk_why_member(fact.value, "version");
            shk_strbuf_printf(&loaded, "%s%s%s%s", loaded.len ? ", " : "", *name,
                              *version ? " " : "", version);
        } else if (asked && fact.state == SHK_FACT_ABSENT && !missing) {
            missing = *name;
            reason = shk_module_forbidden(why->known, *name)
                         ? "not loaded: the kernel was booted with module_blacklist"
                     : fact.reason ? fact.reason
                                   : "not loaded";
        } else {
            unknown = shk_why_reason(why->known, key);
        }
    }
    if (missing && host_driver_works(why))
        shk_chain_add(why->chain, "module", SHK_LINK_OK, shk_strbuf_text(&loaded),
                      "the driver made its devices, though there is no module %s", missing);
    else if (missing)
        shk_chain_add(why->chain, "module", SHK_LINK_BROKEN, shk_strbuf_text(&loaded),
                      "kernel module %s: %s", missing, reason);
    else if (unknown)
        shk_chain_add(why->chain, "module", SHK_LINK_UNKNOWN, NULL, "%s", unknown);
    else
        shk_chain_add(why->chain, "module", SHK_LINK_OK, NULL, "%s", shk_strbuf_text(&loaded));
    shk_chain_where(why->chain, "/proc/modules");
    shk_strbuf_free(&loaded);
}

static void host_device(struct shk_why *why)
{
    const char *key = why->kind->verbs_class ? "rdma.devices" : "cxi.devices";
    long long functions = shk_why_int(why->known, why->kind->count_key, -1);
    size_t count = json_array_size(why->devices);
    char detail[96] = "";
    if (functions > 0 && (long long)count < functions)
        snprintf(detail, sizeof detail, "%lld functions on the PCI bus", functions);
    if (!why->devices)
        shk_chain_add(why->chain, "device", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, key));
    else if (!count)
        shk_chain_add(why->chain, "device", SHK_LINK_BROKEN, detail, "the driver made no %s device",
                      why->kind->name);
    else
        shk_chain_add(why->chain, "device", SHK_LINK_OK, detail, "%zu", count);
    shk_chain_where(why->chain,
                    why->kind->verbs_class ? "/sys/class/infiniband" : "/sys/class/cxi");
    if (!why->devices)
        shk_why_unread(why, key, true);
}

enum host_access { HOST_OPEN, HOST_REFUSED, HOST_GONE, HOST_NO_NODE, HOST_NOT_SEEN };

/* Of a node without a fact: it is gone when its folder was listed without it, or has none at all.
 */
static enum host_access host_unlisted(const struct shk_why *why, const char *node)
{
    const char *family = why->kind->verbs_class ? "infiniband/uverbs" : "cxi";
    json_t *names = json_object_get(shk_why_object(why->known, "dev.listed"), family), *name;
    char first[64];
    size_t i;
    snprintf(first, sizeof first, "dev.%s0", family);
    if (shk_look(why->known, first, NULL) == SHK_LOOK_ABSENT)
        return HOST_GONE;
    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name) || strcmp(json_string_value(name), node) == 0)
            return HOST_NOT_SEEN;
    }
    return json_is_array(names) ? HOST_GONE : HOST_NOT_SEEN;
}

/* How a device's node looks; *fact_p is the node's when there is one. */
static enum host_access host_node_look(const struct shk_why *why, const char *node,
                                       struct shk_fact *fact_p)
{
    char key[160];
    bool rw = false;
    snprintf(key, sizeof key, "dev.%s", node);
    if (!*node)
        return HOST_NO_NODE;
    if (!shk_facts_get(why->known, key, fact_p))
        return host_unlisted(why, node);
    if (fact_p->state == SHK_FACT_FAILED)
        return HOST_NOT_SEEN;
    if (fact_p->state == SHK_FACT_ABSENT)
        return HOST_GONE;
    if (shk_look_member_bool(fact_p->value, "rw", &rw) != SHK_LOOK_PRESENT)
        return HOST_NOT_SEEN;
    return rw ? HOST_OPEN : HOST_REFUSED;
}

static void host_node_problem(struct shk_why *why, const json_t *device, enum host_access look,
                              const struct shk_fact *fact, size_t usable)
{
    const char *container = shk_why_text(why->known, "host.container");
    bool inside = container && strcmp(container, "none") != 0;
    char node[128], detail[160];
    host_node_name(why, device, node, sizeof node);
    snprintf(detail, sizeof detail, "%zu of %zu can be opened%s%.40s%s", usable,
             json_array_size(why->devices), inside ? ", inside a container (" : "",
             inside ? container : "", inside ? ")" : "");
    if (look == HOST_NO_NODE)
        shk_chain_add(why->chain, "node", SHK_LINK_BROKEN, detail, "%s has no uverbs device",
                      shk_why_member(device, "name"));
    else if (look == HOST_GONE)
        shk_chain_add(why->chain, "node", SHK_LINK_BROKEN, detail, "/dev/%s does not exist", node);
    else
        shk_chain_add(why->chain, "node", SHK_LINK_BROKEN, detail,
                      "cannot open /dev/%s: permission denied (mode %s, owner %lld, group %lld)",
                      node, shk_why_member(fact->value, "mode"),
                      (long long)json_integer_value(json_object_get(fact->value, "uid")),
                      (long long)json_integer_value(json_object_get(fact->value, "gid")));
    if (usable > 0)
        shk_chain_code(why->chain, SHK_CODE_NODE_PARTLY);
}

/* Whether the device has a node was not read; null says that it has none. */
static bool host_unnamed(const struct shk_why *why, const json_t *device)
{
    const char *name;
    enum shk_look look =
        shk_look_member_text(device, why->kind->verbs_class ? "uverbs" : "name", &name);
    return look == SHK_LOOK_MISSING || look == SHK_LOOK_FAILED;
}

static void host_node(struct shk_why *why)
{
    size_t i, usable = 0, unseen = 0;
    json_t *device, *bad = NULL;
    enum host_access bad_look = HOST_OPEN;
    struct shk_fact bad_fact = {.key = NULL};
    json_array_foreach(why->devices, i, device)
    {
        char node[128];
        struct shk_fact fact = {.key = NULL};
        host_node_name(why, device, node, sizeof node);
        enum host_access look =
            host_unnamed(why, device) ? HOST_NOT_SEEN : host_node_look(why, node, &fact);
        usable += look == HOST_OPEN;
        unseen += look == HOST_NOT_SEEN;
        if (!bad && look != HOST_OPEN && look != HOST_NOT_SEEN) {
            bad = device;
            bad_look = look;
            bad_fact = fact;
        }
    }
    if (bad)
        host_node_problem(why, bad, bad_look, &bad_fact, usable);
    else if (!i || unseen)
        shk_chain_add(why->chain, "node", i ? SHK_LINK_UNKNOWN : SHK_LINK_NA, NULL, "%s",
                      i ? "device nodes were not checked" : "no device");
    else
        shk_chain_add(why->chain, "node", SHK_LINK_OK, NULL, "%zu, open for this process", usable);
    shk_chain_where(why->chain, why->kind->verbs_class ? "/dev/infiniband" : "/dev/cxi*");
    if (!bad && unseen)
        shk_why_lacks(why, why->kind->verbs_class ? "dev.infiniband" : "dev.cxi");
}

/* The library that libfabric's cxi provider is linked with. */
static void host_libcxi(struct shk_why *why)
{
    size_t i;
    json_t *row;
    json_t *needed = shk_why_array(why->known, "fabric.needed");
    json_array_foreach(needed, i, row)
    {
        const char *name = shk_why_member(row, "name"), *path = shk_why_member(row, "path");
        if (strncmp(name, "libcxi.so", 9) != 0)
            continue;
        shk_chain_add(why->chain, "userlib", *path ? SHK_LINK_OK : SHK_LINK_BROKEN, NULL, "%s%s",
                      name, *path ? "" : " is nowhere on the search path");
        shk_chain_where(why->chain, path);
        return;
    }
    bool known = shk_why_array(why->known, "fabric.needed") != NULL;
    shk_chain_add(why->chain, "userlib", known ? SHK_LINK_NA : SHK_LINK_UNKNOWN, NULL, "%s",
                  known ? "this libfabric needs no libcxi"
                        : shk_why_reason(why->known, "fabric.needed"));
    if (!known)
        shk_why_unread(why, "fabric.needed", false);
}

enum host_list { HOST_LISTED, HOST_UNLISTED, HOST_LIST_OPEN };

/* OPEN: it is not among those with a name, but one has none that was read. */
static enum host_list host_listed(const json_t *rows, const char *name)
{
    size_t i;
    json_t *row;
    bool open = false;
    json_array_foreach((json_t *)rows, i, row)
    {
        const char *have = shk_why_member(row, "name");
        if (strcmp(have, name) == 0 && *name)
            return HOST_LISTED;
        open |= !*have;
    }
    return open || !*name ? HOST_LIST_OPEN : HOST_UNLISTED;
}

/* The first device that libibverbs does not list; *open_p: whether it lists one is not known. */
static const json_t *host_without_driver(const struct shk_why *why, const json_t *rows,
                                         bool *open_p)
{
    size_t i;
    json_t *device;
    json_array_foreach(why->devices, i, device)
    {
        enum host_list listed = host_listed(rows, shk_why_member(device, "name"));
        if (listed == HOST_UNLISTED)
            return device;
        *open_p |= listed == HOST_LIST_OPEN;
    }
    return NULL;
}

/* What needs a live host is skipped in a capture. */
static int host_skipped(const struct shk_fact *fact, void *arg)
{
    const char *text = json_string_value(fact->value);
    (void)arg;
    return text && strcmp(text, "skipped") == 0 && strstr(fact->key, ".status");
}

bool shk_why_verbs_asked(const struct shk_why *why)
{
    enum shk_look look = shk_look(why->known, "verbs.path", NULL);
    if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_MISSING)
        return look == SHK_LOOK_PRESENT;
    return !shk_facts_each(why->known, "probe.", host_skipped, NULL);
}

/* A device of the kernel that libibverbs does not list has no driver in user space. */
static void host_userlib(struct shk_why *why)
{
    json_t *rows = shk_why_array(why->known, "verbs.devices");
    const char *path = shk_why_text(why->known, "verbs.path");
    struct shk_fact fact;
    size_t count = json_array_size(why->devices);
    bool open = false;
    bool gone = shk_facts_get(why->known, "verbs.path", &fact) && fact.state == SHK_FACT_ABSENT;
    if (!rows && gone && count) {
        shk_chain_add(why->chain, "userlib", SHK_LINK_BROKEN, NULL, "%s",
                      fact.reason ? fact.reason : "no libibverbs.so.1");
        return;
    }
    if (!rows || !count) {
        shk_chain_add(why->chain, "userlib", rows ? SHK_LINK_NA : SHK_LINK_UNKNOWN, NULL, "%s",
                      rows ? "no device" : shk_why_reason(why->known, "verbs.devices"));
        if (!rows && count && shk_why_verbs_asked(why))
            shk_why_unread(why, "verbs.devices", true);
        return;
    }
    const json_t *bad = host_without_driver(why, rows, &open);
    if (bad)
        shk_chain_add(why->chain, "userlib", SHK_LINK_BROKEN,
                      "its user-space driver is missing or of another rdma-core release",
                      "libibverbs does not list %s (driver %s)", shk_why_member(bad, "name"),
                      shk_why_member(bad, "driver"));
    else if (open)
        shk_chain_add(why->chain, "userlib", SHK_LINK_UNKNOWN, NULL, "%s",
                      "whether libibverbs lists each device: one of them has no name");
    else
        shk_chain_add(why->chain, "userlib", SHK_LINK_OK, NULL, "libibverbs lists all %zu", count);
    shk_chain_where(why->chain, path);
    if (!bad && open)
        shk_why_lacks(why, "verbs.devices");
}

void shk_why_host_steps(struct shk_why *why)
{
    static const char *const needs_adapter[] = {"module",  "device", "node",
                                                "userlib", "limits", "fork"};
    why->devices = host_devices(why);
    host_pci(why);
    if (why->no_adapter) {
        for (size_t i = 0; i < sizeof needs_adapter / sizeof needs_adapter[0]; i++)
            shk_chain_add(why->chain, needs_adapter[i], SHK_LINK_NA, NULL, "no adapter");
        return;
    }
    host_module(why);
    host_device(why);
    host_node(why);
    if (why->kind->verbs_class)
        host_userlib(why);
    else
        host_libcxi(why);
    shk_why_job_steps(why);
}
