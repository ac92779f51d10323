/* The IOMMU as it is in effect: the domain type of each group, not the command line. */
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IOMMU_GROUPS "/sys/kernel/iommu_groups"

static json_t *iommu_names(const struct shk_host *host, const char *group, json_t *entry)
{
    char **names = NULL;
    struct shk_error err;
    json_t *list = json_array();
    int rc = shk_host_list(host, &names, NULL, &err, IOMMU_GROUPS "/%s/devices", group);
    if (rc)
        shk_gather_member_problem(entry, "devices", err.text);
    for (char **n = names; n && *n; n++)
        json_array_append_new(list, shk_gather_str(*n));
    shk_host_list_free(names);
    return list;
}

static json_t *iommu_group(const struct shk_host *host, const char *name)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "group", json_integer(strtol(name, NULL, 10)));
    shk_gather_member_text(host, entry, "type", IOMMU_GROUPS "/%s/type", name);
    json_object_set_new(entry, "devices", iommu_names(host, name, entry));
    return entry;
}

/* The type that all groups share, "mixed", or NULL when one of them is not known (then *unknown is
 * that group). */
static const char *iommu_common_type(const json_t *groups, const json_t **unknown)
{
    const char *common = NULL;
    bool mixed = false;
    size_t i;
    json_t *entry;
    json_array_foreach(groups, i, entry)
    {
        const char *type = shk_gather_get(entry, "type");
        if (!type)
            *unknown = entry;
        else if (common && strcmp(common, type) != 0)
            mixed = true;
        else
            common = type;
    }
    return mixed ? "mixed" : *unknown ? NULL : common;
}

static void iommu_mode(struct shk_gather *g, const json_t *groups)
{
    const json_t *unknown = NULL;
    const char *mode = iommu_common_type(groups, &unknown);
    if (mode) {
        shk_gather_text(g, "kernel.iommu.mode", mode, IOMMU_GROUPS);
        return;
    }
    long long group = json_integer_value(json_object_get(unknown, "group"));
    const char *why = shk_gather_get(json_object_get(unknown, "problems"), "type");
    shk_gather_failed(g, "kernel.iommu.mode", IOMMU_GROUPS, "group %lld: %s", group,
                      why ? why : "this kernel does not show the domain type");
}

static void iommu_groups(struct shk_gather *g, char **names)
{
    json_t *groups = json_array();
    for (char **n = names; *n; n++)
        if (**n >= '0' && **n <= '9')
            json_array_append_new(groups, iommu_group(g->host, *n));
    bool any = json_array_size(groups) > 0;
    shk_gather_present(g, "kernel.iommu.enabled", json_boolean(any), NULL, IOMMU_GROUPS);
    if (any)
        iommu_mode(g, groups);
    else
        shk_gather_text(g, "kernel.iommu.mode", "none", IOMMU_GROUPS);
    shk_gather_present(g, "kernel.iommu.groups", groups, NULL, IOMMU_GROUPS);
}

static void iommu_no_groups(struct shk_gather *g, int rc, const struct shk_error *err)
{
    /* The directory belongs to every kernel that has IOMMU support at all. */
    if (rc == -ENOENT && shk_gather_missing(g->host, IOMMU_GROUPS, "/sys/kernel/mm")) {
        shk_gather_present(g, "kernel.iommu.enabled", json_false(), NULL, IOMMU_GROUPS);
        shk_gather_text(g, "kernel.iommu.mode", "none", IOMMU_GROUPS);
        shk_gather_absent(g, "kernel.iommu.groups", IOMMU_GROUPS,
                          "this kernel has no IOMMU support");
        return;
    }
    static const char *const keys[] = {"kernel.iommu.enabled", "kernel.iommu.mode",
                                       "kernel.iommu.groups"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        shk_gather_failed(g, keys[i], IOMMU_GROUPS, "%s", err->text);
}

/* Tables in which the firmware tells of IOMMUs: Intel, AMD, Arm. Their names can be listed by
 * everybody, their content is root's. */
static void iommu_acpi(struct shk_gather *g)
{
    static const char *const tables[] = {"DMAR", "IVRS", "IORT"};
    static const char path[] = "/sys/firmware/acpi/tables";
    char **names = shk_gather_names(g, "kernel.iommu.acpi", path, "/sys/firmware");
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            if (strcmp(*n, tables[i]) == 0)
                json_array_append_new(list, json_string(*n));
    shk_gather_present(g, "kernel.iommu.acpi", list, NULL, path);
    shk_host_list_free(names);
}

/* What was asked for at boot: {"iommu": "pt", "intel_iommu": "on", …}; the last one wins, as in
 * the kernel. Options may be joined ("intel_iommu=on,sm_on"). */
static void iommu_cmdline(struct shk_gather *g)
{
    static const char *const names[] = {
        "iommu", "amd_iommu", "intel_iommu", "iommu.passthrough", "iommu.strict", "iommu.forcedac"};
    static const char path[] = "/proc/cmdline";
    struct shk_error err;
    char *line = NULL, *save;
    int rc = shk_host_line(g->host, &line, &err, path);
    if (rc) {
        shk_gather_unread(g, "kernel.iommu.cmdline", path, "/proc/self", rc, &err);
        return;
    }
    json_t *asked = json_object();
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(word, '=');
        if (eq)
            *eq = '\0';
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(word, names[i]) == 0)
                json_object_set_new(asked, names[i], shk_gather_str(eq ? eq + 1 : ""));
    }
    shk_gather_present(g, "kernel.iommu.cmdline", asked, NULL, path);
    free(line);
}

static int iommu_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why;
    char **names = NULL;
    int rc = shk_host_list(ctx->host, &names, NULL, &why, IOMMU_GROUPS);
    if (rc)
        iommu_no_groups(&g, rc, &why);
    else
        iommu_groups(&g, names);
    shk_host_list_free(names);
    /* Units that a driver has taken: dmar0 …, ivhd0 …, smmu3.0x…. */
    shk_gather_dir(&g, "kernel.iommu.hardware", "/sys/class/iommu", "/sys/class");
    iommu_acpi(&g);
    iommu_cmdline(&g);
    return shk_gather_end(&g, err);
}

static const char *const iommu_provides[] = {
    "kernel.iommu.enabled",
    "kernel.iommu.mode",
    "kernel.iommu.groups",
    "kernel.iommu.hardware",
    "kernel.iommu.acpi",
    "kernel.iommu.cmdline",
    NULL,
};

const struct shk_probe shk_probe_iommu = {
    .name = "iommu",
    .phase = SHK_PHASE_HOST,
    .doc = "IOMMU domain types in effect, and what the command line asked for",
    .provides = iommu_provides,
    .deadline_ms = 5000,
    .run = iommu_run,
};
