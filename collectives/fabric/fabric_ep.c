#include "collectives/fabric/fabric_private.h"
#include "core/run/isolate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Any key does: each rank has a domain of its own. Small, since some devices treat small keys
 * better (fi_cxi(7): below 100). */
#define EP_KEY      1U
#define EP_KEY_MAIL 2U

#define EP_CQ_MAX ((size_t)65536)
#define EP_PAGE   ((size_t)4096)

static int ep_open_endpoint(struct fabric *fabric, struct fabric_rail *rail, struct shk_error *err)
{
    const struct fabric_lib *lib = fabric->lib;
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = fabric->wire.size};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
    size_t want = 2 * (size_t)fabric->wire.indices + FABRIC_DEPTH + FABRIC_RECVS;
    int rc = 0;

    /* Room for every arrival of two operations: a rank that computes does not poll. */
    cq.size = want < EP_CQ_MAX ? want : EP_CQ_MAX;
    shk_crumb_call("fi_av_open");
    rc = fi_av_open(rail->domain, &av, &rail->av, NULL);
    if (rc != 0)
        return fabric_error(lib, "fi_av_open", rc, err);
    shk_crumb_call("fi_cq_open");
    rc = fi_cq_open(rail->domain, &cq, &rail->cq, NULL);
    if (rc != 0)
        return fabric_error(lib, "fi_cq_open", rc, err);
    shk_crumb_call("fi_endpoint");
    rc = fi_endpoint(rail->domain, rail->info, &rail->ep, NULL);
    if (rc != 0)
        return fabric_ep_error(lib, rail->info, "fi_endpoint", rc, err);
    if (fabric->hmem)
        fabric_hmem_ask(fabric);
    shk_crumb_call("fi_ep_bind");
    rc = fi_ep_bind(rail->ep, &rail->av->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(rail->ep, &rail->cq->fid, FI_TRANSMIT | FI_RECV);
    if (rc != 0)
        return fabric_error(lib, "fi_ep_bind", rc, err);
    shk_crumb_call("fi_enable");
    rc = fi_enable(rail->ep);
    if (rc != 0)
        return fabric_ep_error(lib, rail->info, "fi_enable", rc, err);
    if (fabric->hmem)
        fabric_hmem_answer(fabric);
    return 0;
}

int fabric_rail_open(struct fabric *fabric, struct fabric_rail *rail, struct shk_error *err)
{
    int rc = 0;

    shk_crumb_call("fi_fabric");
    rc = fabric->lib->api.fabric(rail->info->fabric_attr, &rail->fabric, NULL);
    if (rc != 0)
        return fabric_error(fabric->lib, "fi_fabric", rc, err);
    shk_crumb_call("fi_domain");
    rc = fi_domain(rail->fabric, rail->info, &rail->domain, NULL);
    if (rc != 0)
        return fabric_error(fabric->lib, "fi_domain", rc, err);
    return ep_open_endpoint(fabric, rail, err);
}

int fabric_open(struct fabric *fabric, struct shk_error *err)
{
    const struct fi_info *info = fabric->rail[0].info;
    int rc = 0;

    if ((info->caps & FI_READ) == 0 || (info->caps & FI_REMOTE_READ) == 0)
        fabric->wire.ops = &fabric_wire_ops_no_get;
    rc = fabric_rail_open(fabric, &fabric->rail[0], err);
    if (rc < 0)
        return rc;
    /* What is injected is read by the CPU. */
    fabric->inject = !fabric->hmem ? info->tx_attr->inject_size : 0;
    fabric->wire.max_inject = fabric->inject;
    fabric->wire.max_drop = !fabric->hmem ? info->ep_attr->max_msg_size : 0;
    fabric->depth =
        (unsigned)(info->tx_attr->size < FABRIC_DEPTH ? info->tx_attr->size : FABRIC_DEPTH);
    fabric->depth = fabric->depth != 0 ? fabric->depth : 1;
    if (posix_memalign((void **)&fabric->mail.base, EP_PAGE, FABRIC_MAIL_BYTES) != 0)
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    return fabric_ops_create(fabric, err);
}

/* Registration is where a low memlock limit shows: say what it is. */
static int ep_reg_error(const struct fabric *fabric, size_t bytes, int rc, struct shk_error *err)
{
    struct rlimit limit;
    char memlock[32] = "unlimited";
    int errnum = -rc;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        snprintf(memlock, sizeof memlock, "unknown");
    else if (limit.rlim_cur != RLIM_INFINITY)
        snprintf(memlock, sizeof memlock, "%llu B", (unsigned long long)limit.rlim_cur);
    return shk_error_set(err, errnum, "fi_mr_reg of %zu B: %s (memlock limit %s)", bytes,
                         fabric->lib->api.strerror(errnum), memlock);
}

static int ep_register_host(struct fabric *fabric, struct fabric_rail *rail, void *base,
                            size_t bytes, uint64_t access, uint64_t key, struct fid_mr **mr_p,
                            struct shk_error *err)
{
    int rc = 0;

    shk_crumb_call("fi_mr_reg");
    rc = fi_mr_reg(rail->domain, base, bytes, access, 0, key, 0, mr_p, NULL);
    return rc == 0 ? 0 : ep_reg_error(fabric, bytes, rc, err);
}

/* A registration that belongs to the endpoint works from here on. */
static int ep_enable_region(struct fabric *fabric, struct fabric_rail *rail, struct fid_mr *mr,
                            struct shk_error *err)
{
    int rc = 0;

    if ((rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
        shk_crumb_call("fi_mr_enable");
        rc = fi_mr_bind(mr, &rail->ep->fid, 0);
        if (rc == 0)
            rc = fi_mr_enable(mr);
        if (rc != 0)
            return fabric_error(fabric->lib, "fi_mr_enable", rc, err);
    }
    return 0;
}

int fabric_rail_register(struct fabric *fabric, struct fabric_rail *rail, struct shk_error *err)
{
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    const struct shk_heap *heap = fabric->wire.heap;
    int rc = (fabric->hmem ? fabric_hmem_register : ep_register_host)(
        fabric, rail, heap->base, heap->bytes, access, EP_KEY, &rail->mr, err);

    if (rc == 0)
        rc = ep_enable_region(fabric, rail, rail->mr, err);
    if (rc == 0) {
        rail->desc = fi_mr_desc(rail->mr);
        rail->ready = true;
    }
    return rc;
}

int fabric_register(struct fabric *fabric, size_t max_put, struct shk_error *err)
{
    struct fabric_rail *first = &fabric->rail[0];
    int rc = 0;

    fabric->wire.max_put = first->info->ep_attr->max_msg_size;
    if (fabric->wire.max_put < max_put) {
        return shk_error_set(err, FI_EMSGSIZE,
                             "provider %s moves at most %zu B at once, %zu B are needed",
                             first->info->fabric_attr->prov_name, fabric->wire.max_put, max_put);
    }
    rc = fabric_rail_register(fabric, first, err);
    if (rc == 0) {
        rc = ep_register_host(fabric, first, fabric->mail.base, FABRIC_MAIL_BYTES,
                              FI_SEND | FI_RECV, EP_KEY_MAIL, &fabric->mail.mr, err);
    }
    if (rc == 0)
        rc = ep_enable_region(fabric, first, fabric->mail.mr, err);
    if (rc == 0) {
        fabric->mail.desc = fi_mr_desc(fabric->mail.mr);
        fabric_rails_open(fabric);
        fabric_direct_open(fabric);
    }
    return rc;
}

static void ep_close(struct fid *fid, const char *what)
{
    if (fid) {
        shk_crumb_call("fi_close of %s", what);
        (void)fi_close(fid);
    }
}

static void ep_close_regions(struct fabric *fabric, struct fabric_rail *rail)
{
    ep_close(rail->mr ? &rail->mr->fid : NULL, "memory region");
    rail->mr = NULL;
    if (rail == &fabric->rail[0]) {
        ep_close(fabric->mail.mr ? &fabric->mail.mr->fid : NULL, "memory region of messages");
        fabric->mail.mr = NULL;
    }
}

static void ep_close_rail(struct fabric *fabric, struct fabric_rail *rail)
{
    /* A registration that belongs to the endpoint goes before it, others after it. */
    if (rail->info && (rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0)
        ep_close_regions(fabric, rail);
    ep_close(rail->ep ? &rail->ep->fid : NULL, "endpoint");
    ep_close_regions(fabric, rail);
    ep_close(rail->av ? &rail->av->fid : NULL, "address vector");
    ep_close(rail->cq ? &rail->cq->fid : NULL, "completion queue");
    ep_close(rail->domain ? &rail->domain->fid : NULL, "domain");
    ep_close(rail->fabric ? &rail->fabric->fid : NULL, "fabric");
    if (rail->info)
        fabric->lib->api.freeinfo(rail->info);
    free(rail->peers);
    *rail = (struct fabric_rail){0};
}

void fabric_close(struct fabric *fabric)
{
    fabric_direct_close(fabric);
    for (unsigned i = 0; i < SHK_RAILS_MAX; i++) {
        /* One that is dead may hang in closing; the process ends soon anyhow. */
        if (i < fabric->rails && fabric->rail[i].report->status != FABRIC_RAIL_DEAD)
            ep_close_rail(fabric, &fabric->rail[i]);
    }
    free(fabric->ops);
    free(fabric->mail.base);
    shk_wire_fini(&fabric->wire);
    memset(fabric, 0, sizeof *fabric);
}
