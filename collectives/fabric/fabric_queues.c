/* libfabric's ofi_rxm sizes its completion queue for a universe of 1024 processes, whatever the
 * device takes: software RoCE, and many cards in virtual machines, have smaller ones. */
#include "collectives/fabric/fabric_verbs.h"
#include "core/facts/facts.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opening all devices of a node: milliseconds each. */
#define QUEUES_DEADLINE_MS 10000U

/* PCI vendor of EFA, which verbs leaves to another provider. */
#define QUEUES_AMAZON 0x1d0fU

struct ibv_device;
struct ibv_context;

/* The head of what ibv_query_device(3) fills in, up to max_cqe, and more room than any release of
 * rdma-core has used (232 bytes since 2005: the ABI does not change). */
struct queues_attr {
    char firmware[64];
    uint64_t guids[2], max_mr_size, page_sizes;
    uint32_t vendor, part, revision;
    int max_qp, max_qp_wr;
    unsigned flags;
    int max_sge, max_sge_rd, max_cq, max_cqe;
    char rest[888];
};

struct queues_api {
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct queues_attr *attr);
};

#define QUEUES_SYMBOL(member_)                                                                     \
    {                                                                                              \
        .name = "ibv_" #member_, .offset = offsetof(struct queues_api, member_)                    \
    }

static const struct shk_symbol queues_symbols[] = {
    QUEUES_SYMBOL(get_device_list),
    QUEUES_SYMBOL(free_device_list),
    QUEUES_SYMBOL(get_device_name),
    QUEUES_SYMBOL(open_device),
    QUEUES_SYMBOL(close_device),
    QUEUES_SYMBOL(query_device),
    {.name = NULL},
};

bool fabric_wants_verbs(const char *provider, bool unset)
{
    const char *wanted = provider ? provider : getenv(shk_variable("provider-filter"));

    if (!wanted || *wanted == '\0')
        return unset;
    return (strstr(wanted, "verbs") != NULL) != (*wanted == '^');
}

void fabric_queues_plan(struct fabric_queues *queues, unsigned ranks)
{
    size_t usual_per = 2 * (size_t)FABRIC_MSG_QUEUE;
    size_t per = 0;

    queues->universe = 0;
    queues->msg = 0;
    queues->usual = FABRIC_UNIVERSE * usual_per;
    if (queues->most >= queues->usual)
        return;
    queues->universe = ranks > 2 ? ranks : 2;
    per = queues->most / queues->universe / 2;
    if (per < FABRIC_MSG_QUEUE) {
        queues->msg = FABRIC_MSG_QUEUE_MIN;
        while (queues->msg * 2 <= per)
            queues->msg *= 2;
    }
}

/* The device whose completion queues are the shortest: {device, max_cqe}. */
static int queues_child(void *arg, json_t **result_p, struct shk_error *err)
{
    static const char *const usual[] = {"libibverbs.so.1", NULL};
    const char *const *names = arg ? (const char *const *)arg : usual;
    struct shk_library desc = {.names = names, .symbols = queues_symbols};
    struct queues_api api = {0};
    struct shk_dynlib lib = {0};
    struct ibv_device **list = NULL;
    int least = 0;
    int count = 0;
    int rc = shk_dynlib_open(&lib, &desc, &api, err);

    if (rc < 0)
        return rc;
    shk_crumb_call("ibv_get_device_list");
    list = api.get_device_list(&count);
    for (int i = 0; list && i < count; i++) {
        struct queues_attr attr = {.max_cqe = 0};
        struct ibv_context *context = NULL;
        const char *name = api.get_device_name(list[i]);

        shk_crumb_call("ibv_open_device, ibv_query_device");
        context = api.open_device(list[i]);
        if (context && api.query_device(context, &attr) == 0 && attr.max_cqe > 0 &&
            attr.vendor != QUEUES_AMAZON && name && (least == 0 || attr.max_cqe < least)) {
            least = attr.max_cqe;
            json_decref(*result_p);
            *result_p = json_pack("{s:o, s:i}", "device", shk_json_text(name, strlen(name)),
                                  "max_cqe", least);
        }
        if (context)
            (void)api.close_device(context);
    }
    if (list)
        api.free_device_list(list);
    return 0;
}

static bool queues_ask(const char *const *names, struct fabric_queues *queues)
{
    struct shk_isolate_job job = {
        .name = "limits of the RDMA devices",
        .fn = queues_child,
        .arg = (void *)names,
        .deadline_ms = QUEUES_DEADLINE_MS,
    };
    struct shk_isolate_result result = {0};
    const char *device = NULL;
    json_int_t most = 0;
    bool known = false;

    if (shk_isolate_run(&job, &result, 1, 1, NULL) != 0)
        return false;
    known = result.outcome == SHK_CHILD_OK &&
            json_unpack(result.result, "{s:s, s:I}", "device", &device, "max_cqe", &most) == 0;
    if (known) {
        queues->most = (size_t)most;
        snprintf(queues->device, sizeof queues->device, "%s", device);
    }
    shk_isolate_result_clear(&result);
    return known;
}

bool fabric_queues_fit(const struct shk_host *host, const char *const *names, const char *provider,
                       unsigned ranks, struct fabric_queues *queues)
{
    static const char *const uses[] = {"fabric-peers", "rxm-send-queue", "rxm-receive-queue",
                                       "rxm-shared-queue"};
    char number[16];
    bool known = false;

    memset(queues, 0, sizeof *queues);
    if (!fabric_wants_verbs(provider, true) || !shk_host_exists(host, "/sys/class/infiniband"))
        return false;
    known = queues_ask(names, queues);
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (getenv(shk_variable(uses[i])))
            return false;
    }
    if (known) {
        fabric_queues_plan(queues, ranks);
        if (queues->universe == 0)
            return false;
    } else { /* the smallest that is right is never wrong */
        queues->universe = ranks > 2 ? ranks : 2;
    }
    snprintf(number, sizeof number, "%u", queues->universe);
    (void)setenv(shk_variable(uses[0]), number, 1);
    if (queues->msg != 0) {
        snprintf(number, sizeof number, "%u", queues->msg);
        (void)setenv(shk_variable(uses[1]), number, 1);
        (void)setenv(shk_variable(uses[2]), number, 1);
    }
    return true;
}

void fabric_queues_text(const struct fabric_queues *queues, char *buf, size_t size)
{
    char msg[96] = "";

    if (queues->msg != 0) {
        snprintf(msg, sizeof msg, " %s=%u %s=%u", shk_variable("rxm-send-queue"), queues->msg,
                 shk_variable("rxm-receive-queue"), queues->msg);
    }
    snprintf(buf, size,
             "libfabric's usual completion queue has %zu entries, %s takes %zu: run with "
             "%s=%u%s, as any program over verbs;ofi_rxm has to here",
             queues->usual, queues->device, queues->most, shk_variable("fabric-peers"),
             queues->universe, msg);
}
