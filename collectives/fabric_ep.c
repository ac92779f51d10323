#include "collectives/fabric_private.h"
#include "core/isolate.h"
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

static int ep_open_endpoint(struct fabric *fabric, struct shk_error *err)
{
    const struct fabric_lib *lib = fabric->lib;
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = fabric->wire.size};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
    size_t want = 2 * (size_t)fabric->wire.indices + FABRIC_DEPTH + FABRIC_RECVS;
    int rc = 0;

    /* Room for every arrival of two operations: a rank that computes does not poll. */
    cq.size = want < EP_CQ_MAX ? want : EP_CQ_MAX;
    shk_crumb_call("fi_av_open");
    rc = fi_av_open(fabric->domain, &av, &fabric->av, NULL);
    if (rc != 0) {
        return fabric_error(lib, "fi_av_open", rc, err);
    }
    shk_crumb_call("fi_cq_open");
    rc = fi_cq_open(fabric->domain, &cq, &fabric->cq, NULL);
    if (rc != 0) {
        return fabric_error(lib, "fi_cq_open", rc, err);
    }
    shk_crumb_call("fi_endpoint");
    rc = fi_endpoint(fabric->domain, fabric->info, &fabric->ep, NULL);
    if (rc != 0) {
        return fabric_error(lib, "fi_endpoint", rc, err);
    }
    if (fabric->hmem != NULL) {
        fabric_hmem_endpoint(fabric);
    }
    shk_crumb_call("fi_ep_bind");
    rc = fi_ep_bind(fabric->ep, &fabric->av->fid, 0);
    if (rc == 0) {
        rc = fi_ep_bind(fabric->ep, &fabric->cq->fid, FI_TRANSMIT | FI_RECV);
    }
    if (rc != 0) {
        return fabric_error(lib, "fi_ep_bind", rc, err);
    }
    shk_crumb_call("fi_enable");
    rc = fi_enable(fabric->ep);
    return rc == 0 ? 0 : fabric_error(lib, "fi_enable", rc, err);
}

int fabric_open(struct fabric *fabric, const struct fabric_lib *lib, struct shk_error *err)
{
    int rc = 0;

    fabric->lib = lib;
    shk_crumb_call("fi_fabric");
    rc = lib->api.fabric(fabric->info->fabric_attr, &fabric->fabric, NULL);
    if (rc != 0) {
        return fabric_error(lib, "fi_fabric", rc, err);
    }
    shk_crumb_call("fi_domain");
    rc = fi_domain(fabric->fabric, fabric->info, &fabric->domain, NULL);
    if (rc != 0) {
        return fabric_error(lib, "fi_domain", rc, err);
    }
    if ((fabric->info->caps & FI_READ) == 0 || (fabric->info->caps & FI_REMOTE_READ) == 0) {
        fabric->wire.ops = &fabric_wire_ops_no_get;
    }
    rc = ep_open_endpoint(fabric, err);
    if (rc < 0) {
        return rc;
    }
    /* What is injected is read by the CPU. */
    fabric->inject = fabric->hmem == NULL ? fabric->info->tx_attr->inject_size : 0;
    fabric->depth =
        (unsigned)(fabric->info->tx_attr->size < FABRIC_DEPTH ? fabric->info->tx_attr->size
                                                              : FABRIC_DEPTH);
    fabric->depth = fabric->depth != 0 ? fabric->depth : 1;
    if (posix_memalign((void **)&fabric->mail.base, EP_PAGE, FABRIC_MAIL_BYTES) != 0) {
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    }
    return fabric_ops_create(fabric, err);
}

/* Registration is where a low memlock limit shows: say what it is. */
static int ep_reg_error(const struct fabric *fabric, size_t bytes, int rc, struct shk_error *err)
{
    struct rlimit limit;
    char memlock[32] = "unlimited";
    int errnum = -rc;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        snprintf(memlock, sizeof(memlock), "unknown");
    } else if (limit.rlim_cur != RLIM_INFINITY) {
        snprintf(memlock, sizeof(memlock), "%llu B", (unsigned long long)limit.rlim_cur);
    }
    return shk_error_set(err, errnum, "fi_mr_reg of %zu B: %s (memlock limit %s)", bytes,
                         fabric->lib->api.strerror(errnum), memlock);
}

static int ep_register_host(struct fabric *fabric, void *base, size_t bytes, uint64_t access,
                            uint64_t key, struct fid_mr **mr_p, struct shk_error *err)
{
    int rc = 0;

    shk_crumb_call("fi_mr_reg");
    rc = fi_mr_reg(fabric->domain, base, bytes, access, 0, key, 0, mr_p, NULL);
    return rc == 0 ? 0 : ep_reg_error(fabric, bytes, rc, err);
}

/* A registration that belongs to the endpoint works from here on. */
static int ep_enable_region(struct fabric *fabric, struct fid_mr *mr, struct shk_error *err)
{
    int rc = 0;

    if ((fabric->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
        shk_crumb_call("fi_mr_enable");
        rc = fi_mr_bind(mr, &fabric->ep->fid, 0);
        if (rc == 0) {
            rc = fi_mr_enable(mr);
        }
        if (rc != 0) {
            return fabric_error(fabric->lib, "fi_mr_enable", rc, err);
        }
    }
    return 0;
}

int fabric_register(struct fabric *fabric, size_t max_put, struct shk_error *err)
{
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    const struct shk_heap *heap = fabric->wire.heap;
    int rc = 0;

    fabric->wire.max_put = fabric->info->ep_attr->max_msg_size;
    if (fabric->wire.max_put < max_put) {
        return shk_error_set(err, FI_EMSGSIZE,
                             "provider %s moves at most %zu B at once, %zu B are needed",
                             fabric->info->fabric_attr->prov_name, fabric->wire.max_put, max_put);
    }
    rc = (fabric->hmem != NULL ? fabric_hmem_register : ep_register_host)(
        fabric, heap->base, heap->bytes, access, EP_KEY, &fabric->mr, err);
    if (rc == 0) {
        rc = ep_enable_region(fabric, fabric->mr, err);
    }
    if (rc == 0) {
        rc = ep_register_host(fabric, fabric->mail.base, FABRIC_MAIL_BYTES, FI_SEND | FI_RECV,
                              EP_KEY_MAIL, &fabric->mail.mr, err);
    }
    if (rc == 0) {
        rc = ep_enable_region(fabric, fabric->mail.mr, err);
    }
    if (rc == 0) {
        fabric->desc = fi_mr_desc(fabric->mr);
        fabric->mail.desc = fi_mr_desc(fabric->mail.mr);
    }
    return rc;
}

static void ep_close(struct fid *fid, const char *what)
{
    if (fid != NULL) {
        shk_crumb_call("fi_close of %s", what);
        (void)fi_close(fid);
    }
}

static void ep_close_regions(struct fabric *fabric)
{
    ep_close(fabric->mr != NULL ? &fabric->mr->fid : NULL, "memory region");
    ep_close(fabric->mail.mr != NULL ? &fabric->mail.mr->fid : NULL, "memory region of messages");
    fabric->mr = NULL;
    fabric->mail.mr = NULL;
}

void fabric_close(struct fabric *fabric)
{
    bool of_ep = fabric->info != NULL && (fabric->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;

    /* A registration that belongs to the endpoint goes before it, others after it. */
    if (of_ep) {
        ep_close_regions(fabric);
    }
    ep_close(fabric->ep != NULL ? &fabric->ep->fid : NULL, "endpoint");
    ep_close_regions(fabric);
    ep_close(fabric->av != NULL ? &fabric->av->fid : NULL, "address vector");
    ep_close(fabric->cq != NULL ? &fabric->cq->fid : NULL, "completion queue");
    ep_close(fabric->domain != NULL ? &fabric->domain->fid : NULL, "domain");
    ep_close(fabric->fabric != NULL ? &fabric->fabric->fid : NULL, "fabric");
    if (fabric->info != NULL) {
        fabric->lib->api.freeinfo(fabric->info);
    }
    free(fabric->ops);
    free(fabric->mail.base);
    free(fabric->peers);
    shk_wire_fini(&fabric->wire);
    memset(fabric, 0, sizeof(*fabric));
}
