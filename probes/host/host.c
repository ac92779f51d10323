/* What machine this is: names, operating system, hypervisor, processor, memory, clock. */
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void host_uname(struct shk_gather *g)
{
    static const struct {
        const char *key, *member;
    } rows[] = {
        {"host.name", "nodename"},
        {"host.kernel", "release"},
        {"host.arch", "machine"},
    };
    struct shk_error err;
    json_t *u = NULL;
    int rc = shk_hostcall(g->host, SHK_CALL_UNAME, &u, &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rc ? NULL : shk_gather_get(u, rows[i].member);
        if (text && *text)
            shk_gather_text(g, rows[i].key, text, "uname");
        else
            shk_gather_failed(g, rows[i].key, "uname", "%s",
                              rc ? err.text : "no text in the answer");
    }
    json_decref(u);
}

/* Value of NAME=… of os-release (shell quoting), in place; NULL when it is not there. */
static char *host_os_value(char *text, const char *name)
{
    size_t n = strlen(name);
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || line[n] != '=')
            continue;
        char *in = line + n + 1, *out = in, *start = in;
        char quote = *in == '"' || *in == '\'' ? *in++ : '\0';
        while (*in && *in != '\n' && *in != quote) {
            if (*in == '\\' && quote != '\'' && in[1])
                in++;
            *out++ = *in++;
        }
        *out = '\0';
        return start;
    }
    return NULL;
}

static void host_os(struct shk_gather *g)
{
    static const struct {
        const char *key, *name;
    } rows[] = {
        {"host.os", "PRETTY_NAME"},
        {"host.os_id", "ID"},
        {"host.os_version", "VERSION_ID"},
    };
    const char *path = "/etc/os-release";
    struct shk_error err;
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    if (rc == -ENOENT && shk_host_read(g->host, "/usr/lib/os-release", &text, NULL, NULL) == 0) {
        path = "/usr/lib/os-release";
        rc = 0;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *copy = rc ? NULL : strdup(text);
        char *value = copy ? host_os_value(copy, rows[i].name) : NULL;
        if (rc)
            shk_gather_unread(g, rows[i].key, path, "/etc", rc, &err);
        else if (value && *value)
            shk_gather_text(g, rows[i].key, value, path);
        else
            shk_gather_absent(g, rows[i].key, path, "%s has no %s", path, rows[i].name);
        free(copy);
    }
    free(text);
}

/* Text after "name :" of the first such line of /proc/cpuinfo, as a new string; NULL when none. */
static char *host_cpuinfo(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || !strchr(" \t:", line[n]))
            continue;
        const char *colon = strchr(line, ':'), *end = strchr(line, '\n');
        if (!colon || (end && colon > end))
            continue;
        char *value = strndup(colon + 1, end ? (size_t)(end - colon - 1) : strlen(colon + 1));
        if (value) {
            char *trimmed = shk_trim(value);
            memmove(value, trimmed, strlen(trimmed) + 1);
        }
        return value;
    }
    return NULL;
}

enum { HOST_FLAG_UNKNOWN = -1, HOST_FLAG_NO, HOST_FLAG_YES };

/* Writes host.cpu; returns what the x86 "hypervisor" flag says. */
static int host_cpu(struct shk_gather *g)
{
    static const char path[] = "/proc/cpuinfo";
    struct shk_error err;
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err), flag = HOST_FLAG_UNKNOWN;
    if (rc) {
        shk_gather_unread(g, "host.cpu", path, "/proc/self", rc, &err);
        return flag;
    }
    char *model = host_cpuinfo(text, "model name");
    char *flags = host_cpuinfo(text, "flags");
    if (flags)
        flag = shk_has_word(flags, "hypervisor", "") ? HOST_FLAG_YES : HOST_FLAG_NO;
    if (model && *model)
        shk_gather_text(g, "host.cpu", model, path);
    else if (*text)
        shk_gather_absent(g, "host.cpu", path, "%s has no model name", path);
    else
        shk_gather_failed(g, "host.cpu", path, "%s is empty", path);
    free(model);
    free(flags);
    free(text);
    return flag;
}

/* DMI texts of hypervisors and clouds (the strings are those that cloud-init and systemd match). */
static const struct host_dmi {
    const char *vendor, *product; /* prefixes; NULL: any */
    const char *virt;             /* meaningful in a virtual machine only */
    const char *cloud;
} host_dmi_rows[] = {
    {.vendor = "Amazon EC2", .virt = "kvm", .cloud = "aws"},
    {.vendor = "Google", .product = "Google Compute Engine", .virt = "kvm", .cloud = "gcp"},
    {.vendor = "Microsoft Corporation", .product = "Virtual Machine", .virt = "hyperv"},
    {.vendor = "QEMU", .virt = "kvm"},
    {.vendor = "Red Hat", .product = "KVM", .virt = "kvm"},
    {.vendor = "OpenStack Foundation", .virt = "kvm"},
    {.vendor = "Alibaba Cloud", .virt = "kvm", .cloud = "alibaba"},
    {.vendor = "VMware", .virt = "vmware"},
    {.vendor = "Xen", .virt = "xen"},
    {.vendor = "innotek GmbH", .virt = "virtualbox"},
    {.product = "KVM", .virt = "kvm"},
};

static const struct host_dmi *host_dmi_find(const char *vendor, const char *product)
{
    for (size_t i = 0; i < sizeof host_dmi_rows / sizeof *host_dmi_rows; i++) {
        const struct host_dmi *row = &host_dmi_rows[i];
        if (row->vendor && (!vendor || strncmp(vendor, row->vendor, strlen(row->vendor)) != 0))
            continue;
        if (row->product && (!product || strncmp(product, row->product, strlen(row->product)) != 0))
            continue;
        return row;
    }
    return NULL;
}

/* The paravirtual clock names the hypervisor where DMI does not exist (micro virtual machines). */
static const char *host_virt_by_clock(const struct shk_host *host)
{
    static const struct {
        const char *clock, *virt;
    } rows[] = {
        {"kvm-clock", "kvm"},
        {"hyperv_clocksource_tsc_page", "hyperv"},
        {"hyperv_clocksource_msr", "hyperv"},
        {"xen", "xen"},
    };
    const char *found = NULL;
    char *line = NULL;
    if (shk_host_line(host, &line, NULL,
                      "/sys/devices/system/clocksource/clocksource0/available_clocksource") == 0)
        for (size_t i = 0; !found && i < sizeof rows / sizeof *rows; i++)
            if (shk_has_word(line, rows[i].clock, ""))
                found = rows[i].virt;
    free(line);
    return found;
}

static void host_virt(struct shk_gather *g, int flag)
{
    struct shk_error err;
    char *type = NULL;
    const char *vendor = shk_facts_get_text(g->facts, "host.vendor");
    const char *product = shk_facts_get_text(g->facts, "host.product");
    const struct host_dmi *dmi = host_dmi_find(vendor, product);
    int rc = shk_host_line(g->host, &type, &err, "/sys/hypervisor/type");
    const char *by_clock = host_virt_by_clock(g->host);
    if (flag == HOST_FLAG_NO) {
        shk_gather_text(g, "host.virt", "none", "/proc/cpuinfo");
    } else if (rc == 0 && *type) {
        shk_gather_text(g, "host.virt", type, "/sys/hypervisor/type");
    } else if (flag == HOST_FLAG_YES) {
        shk_gather_text(g, "host.virt",
                        dmi        ? dmi->virt
                        : by_clock ? by_clock
                                   : "other",
                        "/proc/cpuinfo");
    } else if (product && strstr(product, ".metal")) {
        /* EC2 bare metal carries the same vendor as its virtual machines */
        shk_gather_text(g, "host.virt", "none", "/sys/class/dmi/id");
    } else if (dmi || by_clock) {
        shk_gather_text(g, "host.virt", dmi ? dmi->virt : by_clock, "/sys/class/dmi/id");
    } else if (vendor) {
        shk_gather_text(g, "host.virt", "none", "/sys/class/dmi/id");
    } else {
        shk_gather_failed(g, "host.virt", "/proc/cpuinfo",
                          "neither /proc/cpuinfo nor the DMI tables tell");
    }
    free(type);
}

static void host_dmi(struct shk_gather *g)
{
    /* What cloud-init looks for on Azure. */
    static const char azure[] = "7783-7084-3265-9085-8269-3286-77";
    shk_gather_line(g, "host.vendor", "/sys/class/dmi/id/sys_vendor", "/sys/class");
    shk_gather_line(g, "host.product", "/sys/class/dmi/id/product_name", "/sys/class");
    shk_gather_line(g, "host.bios", "/sys/class/dmi/id/bios_version", "/sys/class");

    char *tag = NULL;
    const char *vendor = shk_facts_get_text(g->facts, "host.vendor");
    const struct host_dmi *row =
        host_dmi_find(vendor, shk_facts_get_text(g->facts, "host.product"));
    const char *cloud = row ? row->cloud : NULL;
    if (shk_host_line(g->host, &tag, NULL, "/sys/class/dmi/id/chassis_asset_tag") == 0 &&
        strcmp(tag, azure) == 0)
        cloud = "azure";
    free(tag);
    if (cloud)
        shk_gather_text(g, "host.cloud", cloud, "/sys/class/dmi/id");
    else if (vendor)
        shk_gather_absent(g, "host.cloud", "/sys/class/dmi/id", "the DMI tables name no cloud");
    else
        shk_gather_failed(g, "host.cloud", "/sys/class/dmi/id", "the DMI tables cannot be read");
}

/* "MemTotal:  123 kB" of a meminfo file, in bytes; -1 when it is not there. */
static long long host_meminfo(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    char *end;
    if (!p)
        return -1;
    p += strlen(name);
    errno = 0;
    long long kib = strtoll(p, &end, 10);
    if (errno || end == p || kib < 0 || kib > (1LL << 50) || strncmp(end, " kB", 3) != 0)
        return -1;
    return kib * 1024;
}

static void host_memory(struct shk_gather *g)
{
    static const char path[] = "/proc/meminfo";
    struct shk_error err;
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    long long total = rc ? -1 : host_meminfo(text, "MemTotal:");
    long long available = rc ? -1 : host_meminfo(text, "MemAvailable:");
    if (rc)
        shk_gather_unread(g, "host.memory", path, "/proc/self", rc, &err);
    else if (total < 0)
        shk_gather_failed(g, "host.memory", path, "%s has no readable MemTotal", path);
    else
        shk_gather_int(g, "host.memory", total, "B", path);
    if (available >= 0)
        shk_gather_int(g, "host.memory_available", available, "B", path);
    free(text);
}

static json_t *host_numa_node(const struct shk_host *host, const char *name)
{
    char *text = NULL, path[96];
    struct shk_error err;
    json_t *node = json_object();
    json_object_set_new(node, "node", json_integer(strtol(name + 4, NULL, 10)));
    shk_gather_member_text(host, node, "cpus", "/sys/devices/system/node/%s/cpulist", name);
    snprintf(path, sizeof path, "/sys/devices/system/node/%s/meminfo", name);
    int rc = shk_host_read(host, path, &text, NULL, &err);
    long long bytes = rc ? -1 : host_meminfo(text, "MemTotal:");
    json_object_set_new(node, "memory", bytes < 0 ? json_null() : json_integer(bytes));
    if (bytes < 0)
        shk_gather_member_problem(node, "memory", rc ? err.text : "no readable MemTotal");
    free(text);
    return node;
}

static void host_numa(struct shk_gather *g)
{
    static const char path[] = "/sys/devices/system/node";
    char **names = shk_gather_names(g, "host.numa", path, "/sys/devices/system");
    if (!names)
        return;
    json_t *nodes = json_array();
    for (char **n = names; *n; n++)
        if (strncmp(*n, "node", 4) == 0 && (*n)[4] >= '0' && (*n)[4] <= '9' && strlen(*n) < 12)
            json_array_append_new(nodes, host_numa_node(g->host, *n));
    shk_host_list_free(names);
    if (json_array_size(nodes) > 0) {
        shk_gather_present(g, "host.numa", nodes, NULL, path);
        return;
    }
    json_decref(nodes);
    shk_gather_failed(g, "host.numa", path, "%s lists no node", path);
}

/* [0,1,2,8] as "0-2,8". */
static void host_cpulist(struct shk_strbuf *sb, const json_t *cpus)
{
    size_t n = json_array_size(cpus);
    for (size_t i = 0; i < n;) {
        json_int_t first = json_integer_value(json_array_get(cpus, i)), last = first;
        while (++i < n && json_integer_value(json_array_get(cpus, i)) == last + 1)
            last++;
        shk_strbuf_printf(sb, last > first ? "%s%lld-%lld" : "%s%lld", sb->len ? "," : "",
                          (long long)first, (long long)last);
    }
}

static void host_process(struct shk_gather *g)
{
    json_t *cpus = shk_gather_hostcall(g, SHK_CALL_AFFINITY, "host.affinity");
    if (cpus) {
        struct shk_strbuf sb = SHK_STRBUF_INIT;
        host_cpulist(&sb, cpus);
        shk_gather_text(g, "host.affinity", shk_strbuf_text(&sb), "affinity");
        shk_strbuf_free(&sb);
        json_decref(cpus);
    }
    json_t *ids = shk_gather_hostcall(g, SHK_CALL_IDS, "host.ids");
    if (ids)
        shk_gather_present(g, "host.ids", ids, NULL, "ids");
}

static void host_clock(struct shk_gather *g)
{
    static const struct {
        const char *key, *member, *unit;
    } rows[] = {
        {"clock.synchronised", "synchronised", NULL},
        {"clock.offset", "offset_us", "us"},
        {"clock.max_error", "maxerror_us", "us"},
        {"clock.time", "time", NULL},
    };
    struct shk_error err;
    json_t *clock = NULL;
    int rc = shk_hostcall(g->host, SHK_CALL_CLOCK, &clock, &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = rc ? NULL : json_object_get(clock, rows[i].member);
        if (json_is_boolean(value) || json_is_integer(value) || json_is_string(value))
            shk_gather_present(g, rows[i].key, json_incref(value), rows[i].unit, "adjtimex");
        else
            shk_gather_failed(g, rows[i].key, "adjtimex", "%s",
                              rc ? err.text : "not in the answer");
    }
    json_decref(clock);
}

static int host_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    host_uname(&g);
    host_os(&g);
    host_dmi(&g);
    host_virt(&g, host_cpu(&g));
    host_memory(&g);
    host_numa(&g);
    shk_gather_line(&g, "host.cpu_governor",
                    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                    "/sys/devices/system/cpu");
    host_process(&g);
    host_clock(&g);
    return shk_gather_end(&g, err);
}

static const char *const host_provides[] = {
    "host.name",
    "host.kernel",
    "host.arch",
    "host.os",
    "host.os_id",
    "host.os_version",
    "host.vendor",
    "host.product",
    "host.bios",
    "host.cloud",
    "host.virt",
    "host.cpu",
    "host.cpu_governor",
    "host.memory",
    "host.memory_available",
    "host.numa",
    "host.affinity",
    "host.ids",
    "clock.synchronised",
    "clock.offset",
    "clock.max_error",
    "clock.time",
    NULL,
};

const struct shk_probe shk_probe_host = {
    .name = "host",
    .phase = SHK_PHASE_HOST,
    .doc = "machine, operating system, hypervisor, processor, memory, clock",
    .provides = host_provides,
    .deadline_ms = 5000,
    .run = host_run,
};
