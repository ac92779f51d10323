#include "probes/why_private.h"

#include "core/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *host_member(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

/* Its rows of the device list; NULL when the list is not known. Absent is an empty list. */
static json_t *host_devices(const struct shk_why *why)
{
    const char *key = why->kind->verbs_class ? "rdma.devices" : "cxi.devices";
    struct shk_fact fact;
    size_t i;
    json_t *row, *mine = json_array();
    if (!shk_facts_get(why->known, key, &fact) || fact.state == SHK_FACT_FAILED) {
        json_decref(mine);
        return NULL;
    }
    json_array_foreach(fact.value, i, row)
    {
        const char *driver = host_member(row, "driver");
        bool is_efa = strcmp(driver, "efa") == 0;
        bool fits = !why->kind->verbs_class ||
                    (why->kind->driver ? strcmp(driver, why->kind->driver) == 0 : !is_efa);
        if (fits)
            json_array_append(mine, row);
    }
    return mine;
}

/* "0xefa2" of the PCI rows of the kind, and where the node is: what decides about the model. */
static char *host_model(const struct shk_why *why)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *row;
    json_array_foreach(shk_facts_get_array(why->known, "pci.devices"), i, row)
    {
        const char *device = host_member(row, "device");
        if (strcmp(host_member(row, "kind"), why->kind->pci_kind) == 0 &&
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
        shk_step_add(why->steps, "pci", SHK_STEP_OK, model, "%lld on the PCI bus", count);
    } else if (json_array_size(why->devices)) {
        shk_step_add(why->steps, "pci", SHK_STEP_OK, NULL, "%zu devices of the kernel's RDMA class",
                     json_array_size(why->devices));
    } else if (asked && fact.state == SHK_FACT_ABSENT) {
        why->no_adapter = true;
        shk_step_add(why->steps, "pci", SHK_STEP_BROKEN,
                     shk_facts_get_text(why->known, "host.product"), "no %s", kind->adapter);
    } else {
        shk_step_add(why->steps, "pci", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, kind->count_key));
    }
    free(model);
}

static void host_module(struct shk_why *why)
{
    struct shk_strbuf loaded = SHK_STRBUF_INIT;
    const char *unknown = NULL;
    struct shk_fact fact;
    for (const char *const *name = why->kind->modules; *name; name++) {
        char key[80];
        snprintf(key, sizeof key, "kernel.module.%s", *name);
        bool asked = shk_facts_get(why->known, key, &fact);
        if (asked && fact.state == SHK_FACT_PRESENT) {
            const char *version = host_member(fact.value, "version");
            shk_strbuf_printf(&loaded, "%s%s%s%s", loaded.len ? ", " : "", *name,
                              *version ? " " : "", version);
        } else if (asked && fact.state == SHK_FACT_ABSENT) {
            shk_step_add(why->steps, "module", SHK_STEP_BROKEN, NULL, "kernel module %s: %s", *name,
                         fact.reason ? fact.reason : "not loaded");
            goto out;
        } else {
            unknown = shk_why_reason(why->known, key);
        }
    }
    if (unknown)
        shk_step_add(why->steps, "module", SHK_STEP_UNKNOWN, NULL, "%s", unknown);
    else
        shk_step_add(why->steps, "module", SHK_STEP_OK, NULL, "%s", shk_strbuf_text(&loaded));
out:
    shk_strbuf_free(&loaded);
}

static void host_device(struct shk_why *why)
{
    const char *key = why->kind->verbs_class ? "rdma.devices" : "cxi.devices";
    long long functions = shk_facts_get_int(why->known, why->kind->count_key, -1);
    size_t count = json_array_size(why->devices);
    char detail[96] = "";
    if (functions > 0 && (long long)count < functions)
        snprintf(detail, sizeof detail, "%lld functions on the PCI bus", functions);
    if (!why->devices)
        shk_step_add(why->steps, "device", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, key));
    else if (!count)
        shk_step_add(why->steps, "device", SHK_STEP_BROKEN, detail,
                     "the driver made no %s device (%s)", why->provider,
                     why->kind->verbs_class ? "/sys/class/infiniband" : "/sys/class/cxi");
    else
        shk_step_add(why->steps, "device", SHK_STEP_OK, detail, "%zu", count);
}

/* Node of one device; "" when the device has none. */
static void host_node_name(const struct shk_why *why, const json_t *device, char *buf, size_t size)
{
    const char *verbs = host_member(device, "uverbs");
    buf[0] = '\0';
    if (why->kind->verbs_class && *verbs)
        snprintf(buf, size, "infiniband/%s", verbs);
    else if (!why->kind->verbs_class)
        snprintf(buf, size, "%s", host_member(device, "name"));
}

static void host_node_problem(struct shk_why *why, const char *node, const struct shk_fact *fact)
{
    const char *container = shk_facts_get_text(why->known, "host.container");
    char inside[96] = "";
    if (container && strcmp(container, "none") != 0)
        snprintf(inside, sizeof inside, "inside a %s container", container);
    if (fact->state == SHK_FACT_ABSENT)
        shk_step_add(why->steps, "node", SHK_STEP_BROKEN, inside, "/dev/%s does not exist", node);
    else
        shk_step_add(why->steps, "node", SHK_STEP_BROKEN, inside,
                     "/dev/%s may not be opened (mode %s, owner %lld, group %lld)", node,
                     host_member(fact->value, "mode"),
                     (long long)json_integer_value(json_object_get(fact->value, "uid")),
                     (long long)json_integer_value(json_object_get(fact->value, "gid")));
}

static void host_node(struct shk_why *why)
{
    size_t i, usable = 0, unknown = 0;
    json_t *device;
    json_array_foreach(why->devices, i, device)
    {
        char node[128], key[160];
        struct shk_fact fact = {.key = NULL};
        host_node_name(why, device, node, sizeof node);
        snprintf(key, sizeof key, "dev.%s", node);
        bool asked = *node && shk_facts_get(why->known, key, &fact);
        if (!*node) {
            shk_step_add(why->steps, "node", SHK_STEP_BROKEN, NULL, "%s has no uverbs device",
                         host_member(device, "name"));
            return;
        }
        if (asked && fact.state != SHK_FACT_FAILED &&
            !json_is_true(json_object_get(fact.value, "rw"))) {
            host_node_problem(why, node, &fact);
            return;
        }
        /* a family is listed by what is there: a member that is not listed is not there */
        if (!asked &&
            shk_facts_get(why->known,
                          why->kind->verbs_class ? "dev.infiniband/uverbs0" : "dev.cxi0", &fact) &&
            fact.state != SHK_FACT_FAILED) {
            fact.state = SHK_FACT_ABSENT;
            host_node_problem(why, node, &fact);
            return;
        }
        usable += asked && fact.state == SHK_FACT_PRESENT;
        unknown += !asked || fact.state == SHK_FACT_FAILED;
    }
    if (!i || unknown)
        shk_step_add(why->steps, "node", i ? SHK_STEP_UNKNOWN : SHK_STEP_NA, NULL, "%s",
                     i ? "device nodes were not looked at" : "no device");
    else
        shk_step_add(why->steps, "node", SHK_STEP_OK, NULL, "%zu, open for this process", usable);
}

/* Registered memory is locked memory. NCCL registers 4 MiB (NCCL_BUFFSIZE) per channel, and uses 16
 * channels or so: 64 MiB. The usual defaults of 8 MiB (systemd) and 64 KiB fail at the first. */
static void host_limits(struct shk_why *why)
{
    static const long long least = 64ll << 20;
    json_t *limit = shk_facts_get_object(why->known, "limits.memlock");
    json_t *soft = json_object_get(limit, "soft"), *hard = json_object_get(limit, "hard");
    long long euid =
        json_integer_value(json_object_get(shk_facts_get_object(why->known, "host.ids"), "euid"));
    bool root = euid == 0 && shk_facts_get_object(why->known, "host.ids");
    if (!json_is_integer(soft)) {
        shk_step_add(why->steps, "limits", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, "limits.memlock"));
        return;
    }
    long long bytes = json_integer_value(soft);
    char detail[96] = "";
    if (json_is_integer(hard) && json_integer_value(hard) != bytes)
        snprintf(detail, sizeof detail, "hard limit %s",
                 json_integer_value(hard) < 0 ? "unlimited" : "is higher");
    if (bytes < 0)
        shk_step_add(why->steps, "limits", SHK_STEP_OK, NULL, "locked memory: unlimited");
    else if (bytes >= least)
        shk_step_add(why->steps, "limits", SHK_STEP_OK, detail, "locked memory: %lld MiB",
                     bytes >> 20);
    else if (root)
        shk_step_add(why->steps, "limits", SHK_STEP_OK, "does not bind root with CAP_IPC_LOCK",
                     "locked memory: %lld KiB", bytes >> 10);
    else
        shk_step_add(why->steps, "limits", SHK_STEP_BROKEN, detail,
                     "locked memory: %lld KiB, too little to register buffers", bytes >> 10);
}

static const char *host_env(const struct shk_why *why, const char *name)
{
    char key[96];
    snprintf(key, sizeof key, "env.%s", name);
    return shk_facts_get_text(why->known, key);
}

/* Kernels from 5.13 on copy pinned pages at fork(); before, the parent could lose registered ones.
 * Fork support and huge pages exclude each other in the EFA provider, which then aborts. */
static void host_fork(struct shk_why *why)
{
    const char *kernel = shk_facts_get_text(why->known, "host.kernel"), *set = NULL;
    const char *huge = host_env(why, "FI_EFA_USE_HUGE_PAGE");
    char pages[80] = "";
    json_t *free_pages =
        json_object_get(shk_facts_get_object(why->known, "hugepages.2048"), "free");
    if (json_is_integer(free_pages) && strcmp(why->kind->name, "efa") == 0)
        snprintf(pages, sizeof pages, "huge pages of 2 MiB free: %lld",
                 (long long)json_integer_value(free_pages));
    for (const char *const *v = why->kind->fork_vars; *v; v++) {
        const char *value = host_env(why, *v);
        if (value && strcmp(value, "0") != 0)
            set = *v;
    }
    if (set && huge && strcmp(huge, "1") == 0 && strcmp(why->kind->name, "efa") == 0)
        shk_step_add(why->steps, "fork", SHK_STEP_BROKEN, NULL,
                     "%s and FI_EFA_USE_HUGE_PAGE=1 exclude each other", set);
    else if (!kernel)
        shk_step_add(why->steps, "fork", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, "host.kernel"));
    else if (shk_version_cmp(kernel, "5.13") >= 0)
        shk_step_add(why->steps, "fork", SHK_STEP_OK, pages,
                     "kernel %s copies pinned pages at fork", kernel);
    else if (set)
        shk_step_add(why->steps, "fork", SHK_STEP_OK, NULL, "%s is set", set);
    else
        shk_step_add(why->steps, "fork", SHK_STEP_UNKNOWN, NULL,
                     "kernel %s: fork is safe only with %s=1", kernel, why->kind->fork_vars[0]);
}

/* A job's traffic is admitted by a service of the NIC for its VNI; Slurm and PALS pass both on in
 * variables. Without them the provider tries the default service, which a site may have closed. */
static void host_service(struct shk_why *why)
{
    const char *vni = host_env(why, "SLINGSHOT_VNIS"), *svc = host_env(why, "SLINGSHOT_SVC_IDS");
    const char *scheduler = shk_facts_get_text(why->known, "job.scheduler");
    bool answers = shk_why_list_names(shk_facts_get_array(why->known, "fabric.providers"), "cxi");
    struct shk_fact fact;
    if (vni)
        shk_step_add(why->steps, "service", SHK_STEP_OK, NULL, "VNI %s, services %s", vni,
                     svc ? svc : "not named");
    else if (answers)
        shk_step_add(why->steps, "service", SHK_STEP_OK, "no SLINGSHOT_VNIS in the environment",
                     "the default service answers");
    else if (scheduler)
        shk_step_add(why->steps, "service", SHK_STEP_BROKEN, NULL,
                     "no SLINGSHOT_VNIS in the environment of a %s job", scheduler);
    else if (shk_facts_get(why->known, "job.scheduler", &fact) && fact.state == SHK_FACT_ABSENT)
        shk_step_add(why->steps, "service", SHK_STEP_NA, NULL, "not inside a batch job");
    else
        shk_step_add(why->steps, "service", SHK_STEP_UNKNOWN, NULL, "%s",
                     shk_why_reason(why->known, "job.scheduler"));
}

void shk_why_host_steps(struct shk_why *why)
{
    static const char *const needs_adapter[] = {"module", "device", "node", "limits", "fork"};
    why->devices = host_devices(why);
    host_pci(why);
    if (why->no_adapter) {
        for (size_t i = 0; i < sizeof needs_adapter / sizeof needs_adapter[0]; i++)
            shk_step_add(why->steps, needs_adapter[i], SHK_STEP_NA, NULL, "no adapter");
        return;
    }
    host_module(why);
    host_device(why);
    host_node(why);
    host_limits(why);
    host_fork(why);
    if (why->kind->service)
        host_service(why);
}
