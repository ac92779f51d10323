/* Links of the chain that belong to the process rather than to the node: limits, fork(), what its
 * devices can do for it, and its network service. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/fabric/chain_private.h"
#include "checks/hardware/limits.h"

#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

/* Registered memory is locked memory. */
static void job_limits(struct shk_why *why)
{
    json_t *limit = shk_why_object(why->known, "limits.memlock");
    long long soft = 0, hard = 0;
    char detail[96] = "";
    if (shk_look_member_int(limit, "soft", &soft) != SHK_LOOK_PRESENT) {
        shk_chain_add(why->chain, "limits", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "limits.memlock"));
        shk_why_lacks(why, "limits.memlock");
        return;
    }
    if (shk_look_member_int(limit, "hard", &hard) == SHK_LOOK_PRESENT && hard != soft)
        snprintf(detail, sizeof detail, "hard limit %s", hard < 0 ? "unlimited" : "is higher");
    switch (shk_memlock_judge(why->known, soft, why->kind->verbs_class)) {
    case SHK_MEMLOCK_UNLIMITED:
        shk_chain_add(why->chain, "limits", SHK_LINK_OK, NULL, "locked memory: unlimited");
        break;
    case SHK_MEMLOCK_EXEMPT:
        shk_chain_add(why->chain, "limits", SHK_LINK_OK,
                      "does not bind a process with CAP_IPC_LOCK", "locked memory: %lld KiB",
                      soft >> 10);
        break;
    case SHK_MEMLOCK_ENOUGH:
        shk_chain_add(why->chain, "limits", SHK_LINK_OK, detail, "locked memory: %lld MiB",
                      soft >> 20);
        break;
    case SHK_MEMLOCK_UNTOLD:
        shk_chain_add(why->chain, "limits", SHK_LINK_UNKNOWN,
                      "does not bind root with CAP_IPC_LOCK, which was not read",
                      "locked memory: %lld KiB", soft >> 10);
        shk_why_lacks(why, "host.ids");
        break;
    case SHK_MEMLOCK_LOW:
        shk_chain_add(why->chain, "limits", SHK_LINK_BROKEN, detail,
                      "locked memory: %lld KiB, too little to register buffers", soft >> 10);
        break;
    }
    shk_chain_where(why->chain, "RLIMIT_MEMLOCK");
}

/* Fork support that is asked for in the environment, NULL when none is. */
static const char *job_fork_variable(const struct shk_why *why)
{
    for (const char *const *v = shk_variables(why->kind->fork_use); *v; v++) {
        const char *value = shk_why_env(why, *v);
        if (value && strcmp(value, "0") != 0)
            return *v;
    }
    return NULL;
}

/* "huge pages of 2 MiB free: 0": the EFA provider takes them for its packet buffers. */
static void job_huge_pages(const struct shk_why *why, char *buf, size_t size)
{
    json_t *pages = json_object_get(shk_why_object(why->known, "hugepages.2048"), "free");
    buf[0] = '\0';
    if (json_is_integer(pages) && strcmp(why->kind->name, "efa") == 0)
        snprintf(buf, size, "huge pages of 2 MiB free: %lld", (long long)json_integer_value(pages));
}

/* Kernels from 5.13 on copy pinned pages at fork(), and those of some distributions before; then
 * nothing is needed, and libibverbs can tell. Else the parent could lose registered pages.
 * Fork support and huge pages exclude each other in the EFA provider, which then aborts. */
static void job_fork(struct shk_why *why)
{
    const char *kernel = shk_why_text(why->known, "host.kernel");
    const char *state = shk_why_text(why->known, "verbs.fork");
    const char *huge = shk_why_env(why, shk_variable("huge-pages")), *set = job_fork_variable(why);
    bool efa = strcmp(why->kind->name, "efa") == 0, asked = why->kind->verbs_class && state;
    bool unneeded =
        asked ? strcmp(state, "unneeded") == 0 : kernel && shk_version_cmp(kernel, "5.13") >= 0;
    char pages[80];
    job_huge_pages(why, pages, sizeof pages);
    if (unneeded)
        shk_chain_add(why->chain, "fork", SHK_LINK_OK, pages,
                      "kernel %s copies pinned pages at fork", kernel ? kernel : "");
    else if (efa && set && huge && strcmp(huge, "1") == 0)
        shk_chain_add(why->chain, "fork", SHK_LINK_BROKEN, pages, "%s and %s=1 exclude each other",
                      set, shk_variable("huge-pages"));
    else if (set)
        shk_chain_add(why->chain, "fork", SHK_LINK_OK, pages, "%s is set", set);
    else if (!kernel && !asked)
        shk_chain_add(why->chain, "fork", SHK_LINK_UNKNOWN, pages, "%s",
                      shk_why_reason(why->known, "host.kernel"));
    else
        shk_chain_add(why->chain, "fork", SHK_LINK_UNKNOWN, pages,
                      "kernel %s: fork is safe only with %s=1", kernel ? kernel : "",
                      shk_variable(why->kind->fork_use));
    shk_chain_where(why->chain, asked ? "ibv_is_fork_initialized" : "host.kernel");
}

static bool job_true(const char *value)
{
    static const char *const words[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; value && i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(value, words[i]) == 0)
            return true;
    }
    return false;
}

struct job_rdma {
    size_t told; /* devices that were asked */
    bool read, write;
    bool untold;         /* one that the kernel lists was not */
    const char *problem; /* why one was not */
};

/* Has libibverbs told what that device can do? */
static bool job_rdma_told(const json_t *rows, const char *name)
{
    size_t i;
    json_t *row;
    bool can_read;
    json_array_foreach((json_t *)rows, i, row)
    {
        if (*name && strcmp(shk_why_member(row, "name"), name) == 0)
            return shk_look_member_bool(row, "rdma_read", &can_read) == SHK_LOOK_PRESENT;
    }
    return false;
}

static struct job_rdma job_rdma_of(const struct shk_why *why)
{
    struct job_rdma rdma = {.read = true, .write = true, .problem = ""};
    json_t *rows = shk_why_array(why->known, "verbs.devices"), *row, *device;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        bool can_read, can_write;
        if (shk_look_member_bool(row, "rdma_read", &can_read) == SHK_LOOK_PRESENT) {
            rdma.told++;
            rdma.read &= can_read;
            rdma.write &= shk_look_member_bool(row, "rdma_write", &can_write) == SHK_LOOK_PRESENT &&
                          can_write;
        } else if (*shk_why_member(row, "problem")) {
            rdma.problem = shk_why_member(row, "problem");
        }
    }
    json_array_foreach(why->devices, i, device) rdma.untold |=
        !job_rdma_told(rows, shk_why_member(device, "name"));
    return rdma;
}

/* What all EFA devices can do. Asked to use RDMA read on a device without it, libfabric aborts. */
static void job_capability(struct shk_why *why)
{
    struct job_rdma rdma = job_rdma_of(why);
    bool forced = job_true(shk_why_env(why, shk_variable("device-rdma")));
    if (!rdma.told)
        shk_chain_add(why->chain, "capability", SHK_LINK_UNKNOWN, NULL, "%s",
                      *rdma.problem ? rdma.problem : "no EFA device was asked");
    else if (forced && !rdma.read)
        shk_chain_add(why->chain, "capability", SHK_LINK_BROKEN, "libfabric aborts then",
                      "%s is on, but a device has no RDMA read", shk_variable("device-rdma"));
    else
        shk_chain_add(why->chain, "capability", SHK_LINK_OK, rdma.problem,
                      "RDMA read: %s, RDMA write: %s", rdma.read ? "yes" : "no",
                      rdma.write ? "yes" : "no");
    shk_chain_where(why->chain, "efadv_query_device");
    if (forced && rdma.read && rdma.untold && shk_why_verbs_asked(why))
        shk_why_lacks(why, "verbs.devices");
}

/* The fact without which nobody can say that a job has no service: its VNI may be set but not
 * shown, and the default service may answer. NULL: all was read. */
static const char *job_service_unread(const struct shk_why *why)
{
    const char *value = NULL;
    json_t *list = NULL;
    enum shk_look offered = shk_look_texts(why->known, "fabric.providers", &list);
    if (shk_look_env(why->known, shk_variable("job.slurm.vnis"), &value) != SHK_LOOK_ABSENT)
        return shk_variable_fact("job.slurm.vnis");
    return offered == SHK_LOOK_FAILED || offered == SHK_LOOK_MISSING ? "fabric.providers" : NULL;
}

/* A job's traffic is admitted by a service of the NIC for its VNI; Slurm and PALS pass both on in
 * variables. Without them the provider tries the default service, which a site may have closed. */
static void job_service(struct shk_why *why)
{
    const char *vni = shk_why_env(why, shk_variable("job.slurm.vnis")),
               *svc = shk_why_env(why, shk_variable("fabric-service"));
    const char *scheduler = shk_why_text(why->known, "job.scheduler");
    bool answers = shk_why_list_names(shk_why_array(why->known, "fabric.providers"), "cxi");
    const char *unread = job_service_unread(why);
    struct shk_fact fact;
    char none[160];
    snprintf(none, sizeof none, "no %s in the environment", shk_variable("job.slurm.vnis"));
    if (vni)
        shk_chain_add(why->chain, "service", SHK_LINK_OK, NULL, "VNI %s, services %s", vni,
                      svc ? svc : "not named");
    else if (answers)
        shk_chain_add(why->chain, "service", SHK_LINK_OK, none, "the default service responds");
    else if (scheduler && unread) {
        shk_chain_add(why->chain, "service", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, unread));
        shk_why_unread(why, unread, false);
    } else if (scheduler)
        shk_chain_add(why->chain, "service", SHK_LINK_BROKEN, NULL,
                      "no %s in the environment of a %s job", shk_variable("job.slurm.vnis"),
                      scheduler);
    else if (shk_facts_get(why->known, "job.scheduler", &fact) && fact.state == SHK_FACT_ABSENT)
        shk_chain_add(why->chain, "service", SHK_LINK_NA, NULL, "not inside a batch job");
    else {
        shk_chain_add(why->chain, "service", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "job.scheduler"));
        shk_why_unread(why, "job.scheduler", false);
    }
    shk_chain_where(why->chain, shk_variable("job.slurm.vnis"));
}

void shk_why_job_steps(struct shk_why *why)
{
    job_limits(why);
    job_fork(why);
    if (why->kind->capability)
        job_capability(why);
    if (why->kind->service)
        job_service(why);
}
