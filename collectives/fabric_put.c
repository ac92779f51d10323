#include "collectives/fabric_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A notification is 32 bits, which every provider with CQ data has room for: operation, index. */
#define PUT_INDEX_BITS 24U
#define PUT_INDEX_MASK ((UINT32_C(1) << PUT_INDEX_BITS) - 1)
#define PUT_PROBE      PUT_INDEX_MASK

#define PUT_BATCH 16

static struct fabric *put_fabric(struct shk_wire *wire)
{
    return (struct fabric *)wire;
}

/* Errors of data transfers may be the echo of a peer that went away, unless there is no peer. */
static int put_fail(struct fabric *fabric, const char *call, ssize_t rc, unsigned peer)
{
    int errnum = rc < 0 ? (int)-rc : FI_EOTHER;

    return shk_wire_fail(&fabric->wire, errnum, fabric->wire.size > 1, "%s to rank %u: %s", call,
                         peer, fabric->lib->api.strerror(errnum));
}

int fabric_ops_create(struct fabric *fabric, struct shk_error *err)
{
    size_t total = fabric->depth + FABRIC_RECVS;
    size_t i = 0;

    fabric->ops = calloc(total, sizeof(*fabric->ops));
    if (fabric->ops == NULL) {
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    }
    for (i = 0; i < total; i++) {
        fabric->ops[i].mail = fabric->mail.base + i * FABRIC_MAIL;
        if (i < fabric->depth) {
            fabric->ops[i].next = fabric->free;
            fabric->free = &fabric->ops[i];
        }
    }
    return 0;
}

static void put_release(struct fabric *fabric, struct fabric_op *op)
{
    op->use = FABRIC_FREE;
    op->next = fabric->free;
    fabric->free = op;
    fabric->wire.pending--;
}

static int put_send(struct fabric *fabric, struct fabric_op *op)
{
    ssize_t rc = 0;

    op->use = FABRIC_SEND;
    memcpy(op->mail, &op->note, sizeof(op->note));
    rc = fi_send(fabric->ep, op->mail, sizeof(op->note), fabric->mail.desc,
                 fabric->peers[op->peer].addr, &op->context);
    if (rc == -FI_EAGAIN) {
        op->next = fabric->resend;
        fabric->resend = op;
        return 0;
    }
    return rc == 0 ? 0 : put_fail(fabric, "fi_send", rc, op->peer);
}

static int put_recv(struct fabric *fabric, struct fabric_op *op)
{
    ssize_t rc = 0;
    unsigned tries = 0;

    op->use = FABRIC_RECV;
    do {
        rc = fi_recv(fabric->ep, op->mail, FABRIC_MAIL, fabric->mail.desc, FI_ADDR_UNSPEC,
                     &op->context);
    } while (rc == -FI_EAGAIN && ++tries < 1000);
    return rc == 0 ? 0 : put_fail(fabric, "fi_recv", rc, fabric->wire.rank);
}

int fabric_post_recvs(struct fabric *fabric)
{
    size_t count =
        fabric->info->rx_attr->size < FABRIC_RECVS ? fabric->info->rx_attr->size : FABRIC_RECVS;
    size_t i = 0;
    int rc = 0;

    for (i = 0; i < count && rc == 0; i++) {
        rc = put_recv(fabric, &fabric->ops[fabric->depth + i]);
    }
    return rc;
}

static int put_noted(struct fabric *fabric, uint32_t note)
{
    uint32_t index = note & PUT_INDEX_MASK;

    if (index == PUT_PROBE) {
        fabric->probes++;
        return 0;
    }
    return shk_wire_arrived(&fabric->wire, (uint8_t)(note >> PUT_INDEX_BITS), index);
}

static int put_completed(struct fabric *fabric, const struct fi_cq_data_entry *entry)
{
    struct fabric_op *op = entry->op_context;
    uint32_t note = 0;
    int rc = 0;

    /* Some providers set FI_REMOTE_CQ_DATA at the source of a write as well. */
    if ((entry->flags & FI_REMOTE_CQ_DATA) != 0 && (entry->flags & (FI_WRITE | FI_SEND)) == 0) {
        return put_noted(fabric, (uint32_t)entry->data);
    }
    if (op == NULL) {
        return 0;
    }
    switch (op->use) {
    case FABRIC_WRITE_THEN_SEND: return put_send(fabric, op);
    case FABRIC_RECV:
        memcpy(&note, op->mail, sizeof(note));
        rc = put_noted(fabric, note);
        return rc < 0 ? rc : put_recv(fabric, op);
    case FABRIC_READ:
        note = op->note;
        put_release(fabric, op);
        return put_noted(fabric, note);
    case FABRIC_WRITE:
    case FABRIC_SEND: put_release(fabric, op); return 0;
    case FABRIC_FREE: break;
    }
    return shk_wire_fail(&fabric->wire, EPROTO, false, "fi_cq_read: completion of no operation");
}

static int put_cq_error(struct fabric *fabric)
{
    struct fi_cq_err_entry entry;
    char detail[128] = "";
    ssize_t rc = 0;
    const char *text = NULL;

    memset(&entry, 0, sizeof(entry));
    rc = fi_cq_readerr(fabric->cq, &entry, 0);
    if (rc == -FI_EAGAIN) {
        return 0;
    }
    if (rc < 0) {
        return put_fail(fabric, "fi_cq_readerr", rc, fabric->wire.last_peer);
    }
    text = fi_cq_strerror(fabric->cq, entry.prov_errno, entry.err_data, detail, sizeof(detail));
    return shk_wire_fail(
        &fabric->wire, entry.err != 0 ? entry.err : FI_EOTHER, fabric->wire.size > 1,
        "fi_cq_read: operation failed: %s (%s, provider %d)", fabric->lib->api.strerror(entry.err),
        text != NULL ? text : "", entry.prov_errno);
}

static int put_resend(struct fabric *fabric)
{
    struct fabric_op *list = fabric->resend;
    int rc = 0;

    fabric->resend = NULL;
    while (list != NULL && rc == 0) {
        struct fabric_op *op = list;

        list = op->next;
        rc = put_send(fabric, op);
    }
    return rc;
}

static int put_progress(struct shk_wire *wire)
{
    struct fabric *fabric = put_fabric(wire);
    struct fi_cq_data_entry entries[PUT_BATCH];
    ssize_t got = fi_cq_read(fabric->cq, entries, PUT_BATCH);
    ssize_t i = 0;

    for (i = 0; i < got && wire->status == 0; i++) {
        (void)put_completed(fabric, &entries[i]);
    }
    if (got == -FI_EAVAIL) {
        (void)put_cq_error(fabric);
    } else if (got < 0 && got != -FI_EAGAIN) {
        (void)put_fail(fabric, "fi_cq_read", got, wire->last_peer);
    }
    if (fabric->resend != NULL && wire->status == 0) {
        (void)put_resend(fabric);
    }
    if (wire->status != 0) {
        return wire->status;
    }
    return got > 0 ? (int)got : 0;
}

/* One round while an operation cannot be posted; false when the wire has failed. */
static bool put_stall(struct fabric *fabric, unsigned peer, unsigned *idle)
{
    shk_job_set_waiting(fabric->wire.job, (int)peer);
    if (put_progress(&fabric->wire) == 0) {
        shk_job_relax(fabric->wire.job, idle);
    }
    return fabric->wire.status == 0;
}

static struct fabric_op *put_take(struct fabric *fabric, unsigned peer, uint32_t note)
{
    struct fabric_op *op = NULL;
    unsigned idle = 0;

    while (fabric->free == NULL) {
        if (!put_stall(fabric, peer, &idle)) {
            return NULL;
        }
    }
    op = fabric->free;
    fabric->free = op->next;
    op->peer = peer;
    op->note = note;
    op->use = fabric->notify == SHK_NOTIFY_DELIVERY ? FABRIC_WRITE_THEN_SEND : FABRIC_WRITE;
    fabric->wire.pending++;
    return op;
}

static ssize_t put_delivered(struct fabric *fabric, const struct fabric_peer *peer, void *buf,
                             size_t bytes, uint64_t addr, struct fabric_op *op)
{
    struct iovec local = {.iov_base = buf, .iov_len = bytes};
    struct fi_rma_iov remote = {.addr = addr, .len = bytes, .key = peer->key};
    struct fi_msg_rma msg = {
        .msg_iov = &local,
        .desc = &fabric->desc,
        .iov_count = 1,
        .addr = peer->addr,
        .rma_iov = &remote,
        .rma_iov_count = 1,
        .context = &op->context,
    };

    return fi_writemsg(fabric->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

/* Posts one put; op is NULL when it fits an inject, which has no completion. */
static ssize_t put_post(struct fabric *fabric, unsigned to_rank, size_t from, size_t to,
                        size_t bytes, uint32_t note, struct fabric_op *op)
{
    const struct fabric_peer *peer = &fabric->peers[to_rank];
    void *buf = fabric->wire.heap->base + from;

    if (op == NULL) {
        return fi_inject_writedata(fabric->ep, buf, bytes, note, peer->addr, peer->base + to,
                                   peer->key);
    }
    if (op->use == FABRIC_WRITE_THEN_SEND) {
        return put_delivered(fabric, peer, buf, bytes, peer->base + to, op);
    }
    return fi_writedata(fabric->ep, buf, bytes, fabric->desc, note, peer->addr, peer->base + to,
                        peer->key, &op->context);
}

static int put_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct fabric *fabric = put_fabric(wire);
    uint32_t note = (uint32_t)(uint8_t)wire->op << PUT_INDEX_BITS | index;
    struct fabric_op *op = NULL;
    unsigned idle = 0;
    ssize_t rc = 0;

    if (fabric->notify == SHK_NOTIFY_DELIVERY || bytes > fabric->inject) {
        op = put_take(fabric, peer, note);
        if (op == NULL) {
            return wire->status;
        }
    }
    rc = put_post(fabric, peer, from, to, bytes, note, op);
    while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle)) {
        rc = put_post(fabric, peer, from, to, bytes, note, op);
    }
    if (idle > 0) {
        shk_job_set_waiting(wire->job, -1);
    }
    if (wire->status != 0) {
        return wire->status;
    }
    return rc == 0 ? 0 : put_fail(fabric, "fi_writedata", rc, peer);
}

static int put_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct fabric *fabric = put_fabric(wire);
    uint32_t note = (uint32_t)(uint8_t)wire->op << PUT_INDEX_BITS | index;
    struct fabric_op *op = put_take(fabric, peer, note);
    const struct fabric_peer *target = &fabric->peers[peer];
    void *buf = wire->heap->base + to;
    unsigned idle = 0;
    ssize_t rc = 0;

    if (op == NULL) {
        return wire->status;
    }
    op->use = FABRIC_READ;
    do {
        rc = fi_read(fabric->ep, buf, bytes, fabric->desc, target->addr, target->base + from,
                     target->key, &op->context);
    } while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle));
    if (idle > 0) {
        shk_job_set_waiting(wire->job, -1);
    }
    if (wire->status != 0) {
        return wire->status;
    }
    return rc == 0 ? 0 : put_fail(fabric, "fi_read", rc, peer);
}

ssize_t fabric_probe(struct fabric *fabric)
{
    unsigned peer = (fabric->wire.rank + 1) % fabric->wire.size;
    size_t from = fabric->wire.heap->offset[SHK_AREA_SEND];
    size_t to = fabric->wire.heap->offset[SHK_AREA_SLOT0];
    struct fabric_op *op = put_take(fabric, peer, PUT_PROBE);
    unsigned idle = 0;
    ssize_t rc = 0;

    op->use = FABRIC_WRITE;
    rc = put_post(fabric, peer, from, to, sizeof(uint32_t), PUT_PROBE, op);
    while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle)) {
        rc = put_post(fabric, peer, from, to, sizeof(uint32_t), PUT_PROBE, op);
    }
    shk_job_set_waiting(fabric->wire.job, -1);
    if (rc != 0) {
        put_release(fabric, op);
    }
    if (rc != 0 && rc != -FI_ENOSYS && rc != -FI_EOPNOTSUPP) {
        (void)put_fail(fabric, "fi_writedata", rc, peer);
    }
    return fabric->wire.status != 0 ? fabric->wire.status : rc;
}

const struct shk_wire_ops fabric_wire_ops = {
    .put = put_put,
    .get = put_get,
    .progress = put_progress,
};

const struct shk_wire_ops fabric_wire_ops_no_get = {
    .put = put_put,
    .progress = put_progress,
};
