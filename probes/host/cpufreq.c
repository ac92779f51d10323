/* How the processors choose their frequency: every policy, not just that of the first core. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CPUFREQ "/sys/devices/system/cpu/cpufreq"

static void cpufreq_count(json_t *counts, const char *name)
{
    json_int_t count = json_integer_value(json_object_get(counts, name));
    json_object_set_new(counts, name, json_integer(count + 1));
}

/* Adds the first line of each policy's `file` to counts. 0, or the error of the last that could
 * not be read. */
static int cpufreq_collect(const struct shk_host *host, char **policies, const char *file,
                           json_t *counts, struct shk_error *err)
{
    int rc = 0;
    for (char **p = policies; *p; p++) {
        char *line = NULL;
        if (strncmp(*p, "policy", 6) != 0)
            continue;
        int one = shk_host_line(host, &line, err, CPUFREQ "/%s/%s", *p, file);
        if (!one && !*line)
            one = shk_error_set(err, ENODATA, CPUFREQ "/%s/%s is empty", *p, file);
        if (one)
            rc = one;
        else
            cpufreq_count(counts, line);
        free(line);
    }
    return rc;
}

static int cpufreq_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const struct {
        const char *key, *file;
    } rows[] = {{"host.cpufreq.governors", "scaling_governor"},
                {"host.cpufreq.drivers", "scaling_driver"}};
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why;
    char **policies = NULL;
    int listed = shk_host_list(ctx->host, &policies, NULL, &why, CPUFREQ);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *counts = json_object();
        int rc = listed ? listed : cpufreq_collect(ctx->host, policies, rows[i].file, counts, &why);
        if (listed)
            shk_gather_unread(&g, rows[i].key, CPUFREQ, "/sys/devices/system/cpu", rc, &why);
        else if (rc)
            shk_gather_failed(&g, rows[i].key, CPUFREQ, "%s", why.text);
        else if (json_object_size(counts) == 0)
            shk_gather_absent(&g, rows[i].key, CPUFREQ, "no frequency policy here");
        else
            shk_gather_present(&g, rows[i].key, json_incref(counts), NULL, CPUFREQ);
        json_decref(counts);
    }
    shk_host_list_free(policies);
    return shk_gather_end(&g, err);
}

static const char *const cpufreq_provides[] = {"host.cpufreq.governors", "host.cpufreq.drivers",
                                               NULL};

const struct shk_probe shk_probe_cpufreq = {
    .name = "cpufreq",
    .phase = SHK_PHASE_HOST,
    .doc = "frequency governors and drivers of all processors",
    .provides = cpufreq_provides,
    .deadline_ms = 5000,
    .run = cpufreq_run,
};
