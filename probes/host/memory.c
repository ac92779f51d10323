/* Memory that failed: what the kernel counted since boot. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EDAC "/sys/devices/system/edac/mc"

/* "HardwareCorrupted:  4 kB": pages that were taken out of use after an error. */
static void memory_corrupted(struct shk_gather *g)
{
    static const char path[] = "/proc/meminfo", key[] = "memory.corrupted";
    static const char label[] = "HardwareCorrupted:";
    struct shk_error err;
    char *text = NULL;
    long long kib = -1;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    const char *line = rc ? NULL : strstr(text, label);
    if (rc)
        shk_gather_unread(g, key, path, "/proc/self", rc, &err);
    else if (!line)
        shk_gather_absent(g, key, path, "this kernel does not take failed pages out of use");
    else if (sscanf(line + sizeof label - 1, "%lld kB", &kib) != 1 || kib < 0 || kib > 1LL << 50)
        shk_gather_failed(g, key, path, "%s: %s has no size", path, label);
    else
        shk_gather_int(g, key, kib * 1024, "B", path);
    free(text);
}

/* "MCE:  0  0  Machine check exceptions": the sum over the processors; -1 when a count is none. */
static long long memory_sum(const char *counts)
{
    long long sum = 0;
    char *end;
    for (const char *p = counts;; p = end) {
        errno = 0;
        long long one = strtoll(p, &end, 10);
        if (end == p)
            break;
        if (errno || one < 0 || sum > (1LL << 60))
            return -1;
        sum += one;
    }
    return sum;
}

static void memory_machine_checks(struct shk_gather *g)
{
    static const char path[] = "/proc/interrupts", key[] = "memory.machine_checks";
    struct shk_error err;
    char *text = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    char *line = rc ? NULL : strstr(text, "MCE:");
    if (line)
        line[strcspn(line, "\n")] = '\0';
    long long sum = line ? memory_sum(line + 4) : -1;
    if (rc)
        shk_gather_unread(g, key, path, "/proc/self", rc, &err);
    else if (!line)
        shk_gather_absent(g, key, path, "this processor has no machine checks of the x86 kind");
    else if (sum < 0)
        shk_gather_failed(g, key, path, "%s: line MCE holds no counts", path);
    else
        shk_gather_int(g, key, sum, NULL, path);
    free(text);
}

static json_t *memory_controller(const struct shk_host *host, const char *name)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "name", shk_gather_str(name));
    shk_gather_member_i64(host, entry, "corrected", EDAC "/%s/ce_count", name);
    shk_gather_member_i64(host, entry, "uncorrected", EDAC "/%s/ue_count", name);
    return entry;
}

static void memory_edac(struct shk_gather *g)
{
    static const char key[] = "memory.controllers";
    char **names = shk_gather_names(g, key, EDAC, "/sys/devices/system");
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        if (strncmp(*n, "mc", 2) == 0 && (*n)[2] >= '0' && (*n)[2] <= '9')
            json_array_append_new(list, memory_controller(g->host, *n));
    shk_host_list_free(names);
    shk_gather_some(g, key, list, EDAC, "no driver of a memory controller");
}

static int memory_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    memory_corrupted(&g);
    memory_machine_checks(&g);
    memory_edac(&g);
    return shk_gather_end(&g, err);
}

static const char *const memory_provides[] = {"memory.corrupted", "memory.machine_checks",
                                              "memory.controllers", NULL};

const struct shk_probe shk_probe_memory = {
    .name = "memory",
    .phase = SHK_PHASE_HOST,
    .doc = "memory errors that the kernel counted since boot",
    .provides = memory_provides,
    .deadline_ms = 5000,
    .run = memory_run,
};
