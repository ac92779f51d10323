/* Why libfabric refused: from the call, its error number, its own warnings and the kernel's tables
 * to a cause that has a fix. */
#include "collectives/fabric/fabric_private.h"
#include "core/text/uses.h"
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Words of libfabric's warnings (prov/verbs/src, prov/rxm/src; 1.17 and 2.1), and what was refused.
 */
static const struct {
    const char *words, *cause, *what;
} refusal_log[] = {
    {"create verbs CQ", "verbs-cq", "a completion queue"},
    {"ibv_create_cq", "verbs-cq", "a completion queue"},
    {"MSG CQ", "verbs-cq", "a completion queue"},
    {"create_qp", "verbs-qp", "a queue pair"},
    {"ibv_create_srq", "verbs-qp", "a shared receive queue"},
    {"ibv_query_gid", "verbs-no-gid", "the port's address (GID)"},
    {"rdma_bind_addr", "verbs-address", "this address"},
    {"rdma_resolve_addr", "verbs-address", "this address"},
    {"rdma_create_id", "verbs-no-cm", "the connection manager"},
    {"rdma_create_event_channel", "verbs-no-cm", "the connection manager"},
};

/* The kernel counts pinned memory against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK. */
static bool refusal_memlock(size_t bytes, char *buf, size_t size)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        syscall(SYS_capget, &header, data) != 0 ||
        (data[0].effective & (1U << CAP_IPC_LOCK)) != 0 || bytes <= limit.rlim_cur) {
        return false;
    }
    snprintf(buf, size, "%zu B must be pinned, but the locked memory limit is %llu B", bytes,
             (unsigned long long)limit.rlim_cur);
    return true;
}

/* The provider cannot be had at all. */
static const char *refusal_absent(const struct shk_host *host, const struct fabric_refusal *refusal,
                                  char *buf, size_t size)
{
    static const char cm[] = "/dev/infiniband/rdma_cm";
    const char *wanted =
        refusal->provider ? refusal->provider : getenv(shk_variable("provider-filter"));
    const char *cause = NULL;
    int rc = 0;

    if (!fabric_wants_verbs(refusal->provider, false))
        return NULL;
    cause = fabric_verbs_blocked(host, buf, size);
    if (cause || (wanted && strstr(wanted, "ofi_rxd")))
        return cause;
    rc = shk_host_access_rw(host, cm);
    if (rc == -ENOENT) {
        snprintf(buf, size, "%s does not exist, and connections need it", cm);
        return "verbs-no-cm";
    }
    if (rc == -EACCES || rc == -EPERM) {
        snprintf(buf, size, "no permission to open %s: connections need it", cm);
        return "verbs-permission";
    }
    return NULL;
}

static size_t refusal_env(const char *name, size_t usual)
{
    const char *text = getenv(name);
    unsigned long long value = text ? strtoull(text, NULL, 0) : 0;

    return value != 0 ? (size_t)value : usual;
}

/* A completion queue for all connections of the universe is larger than the device's largest. */
static bool refusal_queue(const struct fabric_refusal *refusal, char *buf, size_t size)
{
    const struct fabric_queues *queues = refusal->queues;
    size_t universe = refusal_env(shk_variable("fabric-peers"), FABRIC_UNIVERSE);
    size_t per = refusal_env(shk_variable("rxm-send-queue"), FABRIC_MSG_QUEUE) +
                 refusal_env(shk_variable("rxm-receive-queue"), FABRIC_MSG_QUEUE);

    if (!queues || queues->most == 0 || universe * per <= queues->most)
        return false;
    snprintf(buf, size,
             "a completion queue for %zu processes with %zu operations each has %zu entries, %s "
             "takes %zu",
             universe, per, universe * per, queues->device, queues->most);
    return true;
}

static const char *refusal_logged(const struct shk_host *host, const struct fabric_refusal *refusal,
                                  char *buf, size_t size)
{
    char line[160];
    char interface[130];

    for (size_t i = 0; i < sizeof refusal_log / sizeof refusal_log[0]; i++) {
        const char *cause = refusal_log[i].cause;

        if (!fabric_log_find(refusal_log[i].words, line, sizeof line))
            continue;
        if (strcmp(cause, "verbs-cq") == 0 && refusal_queue(refusal, buf, size))
            return cause;
        if (strcmp(cause, "verbs-address") == 0 &&
            !fabric_port_has_ip(host, refusal->domain, interface, sizeof interface)) {
            snprintf(buf, size, "%s has no IP address: connections need one", interface);
            return "verbs-no-gid";
        }
        snprintf(buf, size, "the device refuses %s (libfabric: %s)", refusal_log[i].what, line);
        return cause;
    }
    return NULL;
}

const char *fabric_refusal(const struct shk_host *host, const struct fabric_refusal *refusal,
                           char *buf, size_t size)
{
    bool reg = refusal->step == FABRIC_STEP_REGISTER;
    const char *cause = NULL;
    char text[160];

    buf[0] = '\0';
    if (!refusal->domain)
        return refusal_absent(host, refusal, buf, size);
    /* mlx5 and others pin the memory of queues as well as that of registrations. */
    if (refusal->errnum == ENOMEM && refusal_memlock(refusal->pinned, text, sizeof text)) {
        snprintf(buf, size, "%s", reg ? "" : text); /* a registration's own text has it */
        return "verbs-memlock";
    }
    if (refusal->step == FABRIC_STEP_ADDRESS) {
        if (!fabric_port_has_ip(host, refusal->domain, text, sizeof text)) {
            snprintf(buf, size, "%s has no IP address", text);
            return "verbs-no-gid";
        }
        return NULL;
    }
    cause = refusal_logged(host, refusal, buf, size);
    if (!cause && reg)
        cause = "verbs-mr";
    if (*buf == '\0' && fabric_log_find(NULL, text, sizeof text))
        snprintf(buf, size, "libfabric: %s", text);
    return cause;
}

bool fabric_refused(struct fabric *fabric, const char *provider, enum fabric_step step, int rc,
                    struct shk_error *err)
{
    const struct fi_info *info = fabric->rail[0].info;
    const char *prov = info ? info->fabric_attr->prov_name : NULL;
    struct fabric_refusal refusal = {
        .step = step,
        .errnum = -rc,
        .provider = provider,
        .domain = info ? info->domain_attr->name : NULL,
        .pinned = fabric->wire.heap ? fabric->wire.heap->bytes : 0,
        .queues = &fabric->queues,
    };
    struct shk_error why = *err;
    struct shk_host *host = NULL;
    const char *cause = NULL;
    char text[320];

    /* Other providers have causes of their own; a failed choice has no provider yet. */
    if ((info && (!prov || !strstr(prov, "verbs"))) || shk_host_open(&host, NULL, NULL) != 0) {
        return false;
    }
    cause = fabric_refusal(host, &refusal, text, sizeof text);
    shk_host_close(host);
    if (*text != '\0')
        (void)shk_error_set(err, -rc, "%s; %s", why.text, text);
    return cause && shk_job_put(fabric->wire.job, FABRIC_REFUSED, cause, strlen(cause), NULL) == 0;
}
