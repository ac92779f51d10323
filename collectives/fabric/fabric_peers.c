#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/agree.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_KEY      "fabric.address"
#define PEERS_ADDR_MAX 256 /* bytes; the longest formats of libfabric are well below */

/* What a rank tells the others. */
struct peers_card {
    uint64_t base;
    uint64_t key;
    char fabric[64];
    uint32_t addr_len;
    uint8_t addr[PEERS_ADDR_MAX];
};

/* What has to be the same, and what explains it when it is not. */
static int peers_agreement(struct fabric *fabric, struct shk_error *err)
{
    struct shk_job *job = fabric->wire.job;
    const struct shk_heap *heap = fabric->wire.heap;
    const char *filter = shk_variable("provider-filter");
    char symmetric[64];
    int rc =
        shk_agree_put(job, "libfabric provider", fabric->rail[0].info->fabric_attr->prov_name, err);

    snprintf(symmetric, sizeof symmetric, "%zu B, last part at %zu", heap->bytes,
             heap->offset[SHK_AREA_COUNT - 1]);
    rc = rc == 0 ? shk_agree_put(job, "layout of the heap", symmetric, err) : rc;
    rc = rc == 0 ? shk_agree_note(job, filter, getenv(filter), err) : rc;
    rc = rc == 0 ? shk_agree_note(job, "libfabric version", fabric->lib->text, err) : rc;
    return rc == 0 ? shk_agree_note(job, "libfabric file", fabric->lib->dynlib.path, err) : rc;
}

/* Device and address of an RDMA endpoint, for the report; other endpoints have none. */
static int peers_publish_port(struct fabric *fabric, const void *addr, size_t len,
                              struct shk_error *err)
{
    struct shk_host *host = NULL;
    json_t *row = NULL;
    char *text = NULL;
    int rc = 0;

    if (shk_host_open(&host, NULL, NULL) != 0)
        return 0;
    row = fabric_port(host, fabric->rail[0].info, addr, len);
    shk_host_close(host);
    if (row) {
        text = json_dumps(row, JSON_COMPACT);
        rc = text ? shk_job_put(fabric->wire.job, FABRIC_PORT, text, strlen(text), err)
                  : shk_error_set(err, FI_ENOMEM, "out of memory");
    }
    free(text);
    json_decref(row);
    return rc;
}

static int peers_publish(struct fabric *fabric, struct shk_error *err)
{
    const struct fabric_rail *first = &fabric->rail[0];
    const struct shk_heap *heap = fabric->wire.heap;
    bool virtual = (first->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    struct peers_card card = {
        .base = virtual ? (uint64_t)(uintptr_t)heap->base : 0,
    };
    size_t len = sizeof card.addr;
    int rc = 0;

    card.key = fi_mr_key(first->mr);
    if (card.key == FI_KEY_NOTAVAIL)
        return shk_error_set(err, FI_EOPNOTSUPP, "fi_mr_key: the provider has keys above 64 bits");
    if (first->info->fabric_attr->name)
        strncpy(card.fabric, first->info->fabric_attr->name, sizeof card.fabric - 1);
    shk_crumb_call("fi_getname");
    rc = fi_getname(&first->ep->fid, card.addr, &len);
    if (rc != 0 || len > sizeof card.addr)
        return fabric_error(fabric->lib, "fi_getname", rc != 0 ? rc : -FI_ETOOSMALL, err);
    card.addr_len = (uint32_t)len;
    rc = peers_publish_port(fabric, card.addr, len, err);
    return rc == 0 ? shk_job_put(fabric->wire.job, PEERS_KEY, &card, sizeof card, err) : rc;
}

static int peers_read(struct fabric *fabric, unsigned rank, struct peers_card *card,
                      struct shk_error *err)
{
    size_t len = 0;
    int rc = shk_job_get(fabric->wire.job, rank, PEERS_KEY, card, sizeof *card, &len, err);

    if (rc < 0)
        return rc;
    if (len != sizeof *card || card->addr_len > sizeof card->addr)
        return shk_error_set(err, EPROTO, "rank %u published a malformed address", rank);
    card->fabric[sizeof card->fabric - 1] = '\0';
    return 0;
}

/* own: what failed is known to be this host's. */
static int peers_insert(struct fabric *fabric, bool *own, struct shk_error *err)
{
    struct fabric_rail *first = &fabric->rail[0];
    int rc = 0;

    first->peers = calloc(fabric->wire.size, sizeof *first->peers);
    if (!first->peers)
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    for (unsigned rank = 0; rank < fabric->wire.size && rc == 0; rank++) {
        struct fabric_peer *peer = &first->peers[rank];
        struct peers_card card;

        rc = peers_read(fabric, rank, &card, err);
        if (rc < 0)
            break;
        if (first->info->fabric_attr->name && fabric->unlike[0] == '\0' &&
            strcmp(card.fabric, first->info->fabric_attr->name) != 0) {
            snprintf(fabric->unlike, sizeof fabric->unlike,
                     " (rank %u is on fabric %s, this rank on %s)", rank, card.fabric,
                     first->info->fabric_attr->name);
        }
        peer->base = card.base;
        peer->key = card.key;
        shk_crumb_call("fi_av_insert of rank %u", rank);
        if (fi_av_insert(first->av, card.addr, 1, &peer->addr, 0, NULL) != 1) {
            rc = fabric_error(fabric->lib, "fi_av_insert", -FI_EADDRNOTAVAIL, err);
            *own = fabric_refused(fabric, NULL, FABRIC_STEP_ADDRESS, rc, err);
        }
    }
    return rc;
}

/* All ranks must agree: notification with data when every provider can. */
static int peers_agree(struct fabric *fabric, enum shk_fabric_notify notify, struct shk_error *err)
{
    const struct fabric_rail *first = &fabric->rail[0];
    uint64_t cannot = notify == SHK_NOTIFY_DELIVERY || first->info->domain_attr->cq_data_size < 4;
    ssize_t rc = 0;

    if (cannot == 0 && fabric->wire.size > 1) {
        rc = fabric_probe(fabric);
        cannot = rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP;
        if (rc < 0 && cannot == 0)
            return shk_error_set(err, (int)-rc, "%s%s", fabric->wire.error.text, fabric->unlike);
    }
    rc = shk_job_barrier(fabric->wire.job, cannot, &cannot, shk_wire_poll, &fabric->wire);
    if (rc < 0)
        return shk_error_set(err, (int)-rc, "%s%s", fabric->wire.error.text, fabric->unlike);
    if (cannot == 0) {
        fabric->notify = SHK_NOTIFY_CQ_DATA;
        return 0;
    }
    if (!fabric_has_delivery(fabric->lib, first->info)) {
        return shk_error_set(err, FI_ENOSYS,
                             "provider %s has neither remote CQ data for writes nor "
                             "FI_DELIVERY_COMPLETE: a target cannot know when data is there",
                             first->info->fabric_attr->prov_name);
    }
    fabric->notify = SHK_NOTIFY_DELIVERY;
    if (fabric_post_recvs(fabric) < 0)
        return shk_error_set(err, -fabric->wire.status, "%s", fabric->wire.error.text);
    return 0;
}

int fabric_exchange(struct fabric *fabric, enum shk_fabric_notify notify, struct shk_error *err)
{
    bool own = false;
    int rc = peers_agreement(fabric, err);

    if (rc == 0)
        rc = peers_publish(fabric, err);
    if (rc == 0)
        rc = fabric_rails_publish(fabric, err);
    if (rc == 0)
        rc = fabric_direct_publish(fabric, err);
    if (rc == 0)
        rc = shk_job_fence(fabric->wire.job, 0, err);
    if (rc == 0)
        rc = shk_agree_check(fabric->wire.job, err);
    if (rc == 0) {
        rc = peers_insert(fabric, &own, err);
        if (rc < 0 && fabric->wire.size > 1 && !own) { /* with another: either may be it */
            shk_job_fail(fabric->wire.job, -rc, true, err->text);
        }
    }
    if (rc == 0)
        rc = peers_agree(fabric, notify, err);
    if (rc == 0)
        rc = fabric_rails_agree(fabric, err);
    if (rc == 0)
        rc = fabric_direct_connect(fabric, err);
    if (rc < 0 && fabric->wire.status != 0)
        shk_job_fail(fabric->wire.job, -rc, fabric->wire.by_peer, err->text);
    /* Nobody begins before every mailbox is ready. */
    return rc == 0 ? shk_job_fence(fabric->wire.job, 0, err) : rc;
}
