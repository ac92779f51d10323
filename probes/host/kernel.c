/* The kernel: command line, modules, build options, sysctls, huge-page policy. */
#include "probes/host/kernel.h"

#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernel_modules[] = {
    "amdgpu",      "bnxt_re",        "cxi_core",  "cxi_eth",        "cxi_ss1",    "cxi_user",
    "efa",         "efa_nv_peermem", "ena",       "gdrdrv",         "ib_core",    "ib_uverbs",
    "irdma",       "kdreg2",         "knem",      "mlx5_core",      "mlx5_ib",    "neuron",
    "nv_peer_mem", "nvidia",         "nvidia_fs", "nvidia_peermem", "nvidia_uvm", "xpmem",
};

const char *const shk_kernel_sysctls[] = {
    "fs.file-max",
    "fs.nr_open",
    "kernel.numa_balancing",
    "kernel.pid_max",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.threads-max",
    "kernel.yama.ptrace_scope",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.conf.all.arp_announce",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "vm.max_map_count",
    "vm.nr_overcommit_hugepages",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.unprivileged_userfaultfd",
    "vm.zone_reclaim_mode",
    NULL,
};

static const char *const kernel_options[] = {
    "DMABUF_MOVE_NOTIFY",        "HSA_AMD",    "HSA_AMD_P2P",
    "IOMMU_DEFAULT_PASSTHROUGH", "PCI_P2PDMA", "USERFAULTFD",
};

/* What says which modules there are: each text is NULL when it could not be read, rc says why. */
struct kernel_lists {
    char *loaded; /* /proc/modules */
    int loaded_rc;
    struct shk_error loaded_err;
    bool no_modules; /* a kernel that loads none at all */
    char *builtin;   /* modules.builtin of the running kernel */
    bool sysfs;      /* /sys/module is there */
};

/* The line of /proc/modules for name: "nvidia 56807424 1045 nvidia_uvm,… Live 0x0 (POE)". */
static const char *kernel_find_loaded(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '\n' || !line[n]))
            return line;
    }
    return NULL;
}

/* modules.builtin spells file names: "kernel/drivers/infiniband/core/ib_core.ko", and '-' or '_'
 * are the same there. */
static bool kernel_is_builtin(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *ko = text; ko && (ko = strstr(ko, ".ko")); ko += 3) {
        if ((size_t)(ko - text) <= n || ko[-(ptrdiff_t)n - 1] != '/')
            continue;
        const char *spelled = ko - n;
        size_t i = 0;
        while (i < n && (spelled[i] == name[i] || (spelled[i] == '-' && name[i] == '_')))
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static void kernel_parse_loaded(json_t *module, const char *line)
{
    char name[64], state[16];
    long long size, refs;
    /* the "used by" list is one word: names joined by commas, or "-" */
    int n = sscanf(line, "%63s %lld %lld %*s %15s", name, &size, &refs, state);
    json_object_set_new(module, "refcount", n >= 3 ? json_integer(refs) : json_null());
    if (n == 4) {
        for (char *p = state; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        json_object_set_new(module, "state", shk_gather_str(state));
    } else {
        json_object_set_new(module, "state", json_null());
        shk_gather_member_problem(module, "state", "/proc/modules: the line is cut short");
    }
}

/* Without /proc/modules, sysfs still tells: initstate exists for loadable modules only. */
static void kernel_parse_sysfs(const struct shk_host *host, json_t *module, const char *name)
{
    shk_gather_member_text(host, module, "state", "/sys/module/%s/initstate", name);
    shk_gather_member_i64(host, module, "refcount", "/sys/module/%s/refcnt", name);
    if (json_is_null(json_object_get(module, "state")) && !json_object_get(module, "problems"))
        json_object_set_new(module, "state", json_string("builtin"));
}

static void kernel_module_missing(struct shk_gather *g, const struct kernel_lists *lists,
                                  const char *key)
{
    if (lists->no_modules)
        shk_gather_absent(g, key, "/proc/modules",
                          "not built in, and this kernel has no loadable modules");
    else if (lists->loaded)
        shk_gather_absent(g, key, "/proc/modules", "not loaded%s",
                          lists->builtin ? ", not built in"
                                         : " (the list of built-in modules is not readable here)");
    else if (lists->sysfs)
        shk_gather_absent(g, key, "/sys/module", "not loaded");
    else
        shk_gather_failed(g, key, "/proc/modules", "%s", lists->loaded_err.text);
}

static void kernel_module(struct shk_gather *g, const struct kernel_lists *lists, const char *name)
{
    char key[96];
    const char *source = "/proc/modules";
    json_t *module = json_object();
    const char *line = lists->loaded ? kernel_find_loaded(lists->loaded, name) : NULL;
    shk_gather_key(key, sizeof key, "kernel.module.", name);
    shk_gather_member_text(g->host, module, "version", "/sys/module/%s/version", name);
    if (line) {
        kernel_parse_loaded(module, line);
    } else if (lists->sysfs && shk_host_exists(g->host, "/sys/module/%s", name)) {
        source = "/sys/module";
        kernel_parse_sysfs(g->host, module, name);
    } else if (kernel_is_builtin(lists->builtin, name)) {
        source = "modules.builtin";
        json_object_set_new(module, "refcount", json_null());
        json_object_set_new(module, "state", json_string("builtin"));
    } else {
        json_decref(module);
        kernel_module_missing(g, lists, key);
        return;
    }
    shk_gather_present(g, key, module, NULL, source);
}

static void kernel_all_modules(struct shk_gather *g, const char *release)
{
    struct kernel_lists lists = {.sysfs = shk_host_exists(g->host, "/sys/module")};
    lists.loaded_rc =
        shk_host_read(g->host, "/proc/modules", &lists.loaded, NULL, &lists.loaded_err);
    lists.no_modules =
        lists.loaded_rc == -ENOENT && shk_gather_missing(g->host, "/proc/modules", "/proc/self");
    char *path = release ? shk_strf("/lib/modules/%s/modules.builtin", release) : NULL;
    if (path && shk_host_read(g->host, path, &lists.builtin, NULL, NULL) != 0)
        lists.builtin = NULL;
    for (size_t i = 0; i < sizeof kernel_modules / sizeof *kernel_modules; i++)
        kernel_module(g, &lists, kernel_modules[i]);
    free(path);
    free(lists.loaded);
    free(lists.builtin);
}

/* Integers as such; several words, or numbers beyond 63 bits (kernel.shmmax), as text. */
static json_t *kernel_sysctl_value(char *line)
{
    char *end;
    errno = 0;
    long long value = strtoll(line, &end, 10);
    if (!errno && end != line && !*end)
        return json_integer(value);
    for (char *p = line; *p; p++)
        if (*p == '\t')
            *p = ' ';
    return shk_gather_str(line);
}

static void kernel_sysctl(struct shk_gather *g, const char *name)
{
    char key[96], path[128];
    struct shk_error err;
    char *line = NULL;
    shk_gather_key(key, sizeof key, "sysctl.", name);
    int at = snprintf(path, sizeof path, "/proc/sys/");
    snprintf(path + at, sizeof path - (size_t)at, "%s", name);
    for (char *p = path + at; *p; p++)
        if (*p == '.')
            *p = '/';
    int rc = shk_host_line(g->host, &line, &err, "%s", path);
    if (rc)
        shk_gather_unread(g, key, path, "/proc/sys/kernel", rc, &err);
    else if (!*line && strcmp(name, "net.ipv4.ip_local_reserved_ports") != 0)
        shk_gather_failed(g, key, path, "%s is empty", path);
    else
        shk_gather_present(g, key, kernel_sysctl_value(line), NULL, path);
    free(line);
}

/* "always [madvise] never": the word in brackets. */
static void kernel_choice(struct shk_gather *g, const char *key, const char *path)
{
    struct shk_error err;
    char *line = NULL;
    int rc = shk_host_line(g->host, &line, &err, "%s", path);
    char *open = rc ? NULL : strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (rc) {
        shk_gather_unread(g, key, path, "/sys/kernel/mm", rc, &err);
    } else if (!close) {
        shk_gather_failed(g, key, path, "%s: no choice in brackets", path);
    } else {
        *close = '\0';
        shk_gather_text(g, key, open + 1, path);
    }
    free(line);
}

/* "CONFIG_X=y", "# CONFIG_X is not set" → "n"; not mentioned → null. */
static json_t *kernel_option(const char *text, const char *name)
{
    char set[64], unset[64];
    snprintf(set, sizeof set, "\nCONFIG_%s=", name);
    snprintf(unset, sizeof unset, "\n# CONFIG_%s is not set", name);
    const char *p = strstr(text, set);
    if (p) {
        p += strlen(set);
        return shk_json_text(p, strcspn(p, "\n"));
    }
    return strstr(text, unset) ? json_string("n") : json_null();
}

static void kernel_config(struct shk_gather *g, const char *release)
{
    struct shk_error err;
    char *text = NULL;
    char *path = release ? shk_strf("/boot/config-%s", release) : NULL;
    if (!path) {
        shk_gather_failed(g, "kernel.config", "/boot", "the kernel release is not known");
        return;
    }
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    if (rc) {
        shk_gather_unread(g, "kernel.config", path, "/boot", rc, &err);
    } else {
        json_t *options = json_object();
        for (size_t i = 0; i < sizeof kernel_options / sizeof *kernel_options; i++)
            json_object_set_new(options, kernel_options[i], kernel_option(text, kernel_options[i]));
        shk_gather_present(g, "kernel.config", options, NULL, path);
    }
    free(text);
    free(path);
}

static int kernel_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    json_t *names = NULL;
    const char *release = NULL;
    if (shk_hostcall(ctx->host, SHK_CALL_UNAME, &names, NULL) == 0)
        release = shk_gather_get(names, "release");
    if (release && strchr(release, '/'))
        release = NULL;
    shk_gather_line(&g, "kernel.cmdline", "/proc/cmdline", "/proc/self");
    kernel_all_modules(&g, release);
    for (const char *const *name = shk_kernel_sysctls; *name; name++)
        kernel_sysctl(&g, *name);
    kernel_choice(&g, "kernel.thp", "/sys/kernel/mm/transparent_hugepage/enabled");
    kernel_choice(&g, "kernel.thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
    kernel_config(&g, release);
    /* Clients of the peer-memory interface that out-of-tree RDMA stacks offer (nv_mem, nv_mem_nc):
     * what NCCL looks for to decide on GPUDirect RDMA without DMA-BUF. */
    shk_gather_dir(&g, "kernel.memory_peers", "/sys/kernel/mm/memory_peers", "/sys/kernel/mm");
    json_decref(names);
    return shk_gather_end(&g, err);
}

static const char *const kernel_provides[] = {
    "kernel.cmdline",      "kernel.config",  "kernel.thp", "kernel.thp_defrag",
    "kernel.memory_peers", "kernel.module.", "sysctl.",    NULL,
};

const struct shk_probe shk_probe_kernel = {
    .name = "kernel",
    .phase = SHK_PHASE_HOST,
    .doc = "kernel command line, modules, build options, sysctls",
    .provides = kernel_provides,
    .deadline_ms = 5000,
    .run = kernel_run,
};
