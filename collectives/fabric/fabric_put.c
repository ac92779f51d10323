#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A notification is 32 bits, which every provider with CQ data has room for: operation, index. */
#define PUT_INDEX_BITS 24U
#define PUT_INDEX_MASK ((UINT32_C(1) << PUT_INDEX_BITS) - 1)

#define PUT_BATCH 16

#define PUT_QUIET_NS    UINT64_C(1000000000)
#define PUT_QUIET_POLLS 256U /* between two looks at the clock */

/* Polls of the rails but the first after one of them had something to do, and otherwise one in … */
#define PUT_BUSY_POLLS 256U
#define PUT_CALM_POLLS 8U
/* Of the way that the last put did not take, one in … */
#define PUT_OTHER_POLLS 32U

static struct fabric *put_fabric(struct shk_wire *wire)
{
    return (struct fabric *)wire;
}

/* " over r1 of fabric 10.1.0.0/24", where that says anything. */
static const char *put_over(const struct fabric *fabric, const struct fabric_rail *rail, char *buf,
                            size_t size)
{
    char name[128] = "";

    if (fabric->lanes > 1)
        fabric_rail_text(rail, name, sizeof name);
    snprintf(buf, size, "%s%s", name[0] != '\0' ? " over " : "", name);
    return buf;
}

/* Errors of data transfers may be the echo of a peer that went away, unless there is no peer. */
static int put_fail(struct fabric *fabric, const struct fabric_rail *rail, const char *call,
                    ssize_t rc, unsigned peer)
{
    int errnum = rc < 0 ? (int)-rc : FI_EOTHER;
    bool echo = fabric->wire.size > 1 && errnum != FI_ENOMEM; /* memory is short here, not there */
    struct shk_error text;
    char over[160];

    (void)shk_error_set(&text, errnum, "%s to rank %u%s: %s", call, peer,
                        put_over(fabric, rail, over, sizeof over),
                        fabric->lib->api.strerror(errnum));
    if (!echo)
        (void)fabric_refused(fabric, NULL, FABRIC_STEP_OTHER, -errnum, &text);
    return shk_wire_fail(&fabric->wire, errnum, echo, "%s", text.text);
}

int fabric_ops_create(struct fabric *fabric, struct shk_error *err)
{
    size_t total = fabric->depth + FABRIC_RECVS;

    fabric->ops = calloc(total, sizeof *fabric->ops);
    if (!fabric->ops)
        return shk_error_set(err, FI_ENOMEM, "out of memory");
    for (size_t i = 0; i < total; i++) {
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
    op->rail->pending--;
    fabric->wire.pending--;
}

/* The data are there already, by whichever rail: what tells so takes the first. */
static int put_send(struct fabric *fabric, struct fabric_op *op)
{
    struct fabric_rail *first = &fabric->rail[0];
    ssize_t rc = 0;

    op->use = FABRIC_SEND;
    op->rail->pending--;
    op->rail = first;
    op->rail->pending++;
    memcpy(op->mail, &op->note, sizeof op->note);
    rc = fi_send(first->ep, op->mail, sizeof op->note, fabric->mail.desc,
                 first->peers[op->peer].addr, &op->context);
    if (rc == -FI_EAGAIN) {
        op->next = fabric->resend;
        fabric->resend = op;
        return 0;
    }
    return rc == 0 ? 0 : put_fail(fabric, first, "fi_send", rc, op->peer);
}

static int put_recv(struct fabric *fabric, struct fabric_op *op)
{
    ssize_t rc = 0;
    unsigned tries = 0;

    op->use = FABRIC_RECV;
    do {
        rc = fi_recv(fabric->rail[0].ep, op->mail, FABRIC_MAIL, fabric->mail.desc, FI_ADDR_UNSPEC,
                     &op->context);
    } while (rc == -FI_EAGAIN && ++tries < 1000);
    return rc == 0 ? 0 : put_fail(fabric, &fabric->rail[0], "fi_recv", rc, fabric->wire.rank);
}

int fabric_post_recvs(struct fabric *fabric)
{
    size_t room = fabric->rail[0].info->rx_attr->size;
    size_t count = room < FABRIC_RECVS ? room : FABRIC_RECVS;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = put_recv(fabric, &fabric->ops[fabric->depth + i]);
    return rc;
}

static int put_noted(struct fabric *fabric, uint32_t note)
{
    uint32_t index = note & PUT_INDEX_MASK;

    if (index == FABRIC_NOTE_PROBE) {
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
    if ((entry->flags & FI_REMOTE_CQ_DATA) != 0 && (entry->flags & (FI_WRITE | FI_SEND)) == 0)
        return put_noted(fabric, (uint32_t)entry->data);
    if (!op)
        return 0;
    switch (op->use) {
    case FABRIC_WRITE_THEN_SEND: return put_send(fabric, op);
    case FABRIC_RECV:
        memcpy(&note, op->mail, sizeof note);
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

static int put_cq_error(struct fabric *fabric, struct fabric_rail *rail)
{
    struct fi_cq_err_entry entry;
    char detail[128] = "";
    char over[160];
    ssize_t rc = 0;
    const char *text = NULL;

    memset(&entry, 0, sizeof entry);
    rc = fi_cq_readerr(rail->cq, &entry, 0);
    if (rc == -FI_EAGAIN)
        return 0;
    if (rc < 0)
        return put_fail(fabric, rail, "fi_cq_readerr", rc, fabric->wire.last_peer);
    text = fi_cq_strerror(rail->cq, entry.prov_errno, entry.err_data, detail, sizeof detail);
    return shk_wire_fail(&fabric->wire, entry.err != 0 ? entry.err : FI_EOTHER,
                         fabric->wire.size > 1,
                         "fi_cq_read: operation failed%s: %s (%s, provider %d)",
                         put_over(fabric, rail, over, sizeof over),
                         fabric->lib->api.strerror(entry.err), text ? text : "", entry.prov_errno);
}

static int put_resend(struct fabric *fabric)
{
    struct fabric_op *list = fabric->resend;
    int rc = 0;

    fabric->resend = NULL;
    while (list && rc == 0) {
        struct fabric_op *op = list;

        list = op->next;
        rc = put_send(fabric, op);
    }
    return rc;
}

/* Events of one rail that were handled. */
static int put_poll(struct fabric *fabric, struct fabric_rail *rail)
{
    struct fi_cq_data_entry entries[PUT_BATCH];
    ssize_t got = fi_cq_read(rail->cq, entries, PUT_BATCH);
    ssize_t i = 0;

    for (i = 0; i < got && fabric->wire.status == 0; i++)
        (void)put_completed(fabric, &entries[i]);
    if (got == -FI_EAVAIL)
        (void)put_cq_error(fabric, rail);
    else if (got < 0 && got != -FI_EAGAIN)
        (void)put_fail(fabric, rail, "fi_cq_read", got, fabric->wire.last_peer);
    rail->events += got > 0 ? (unsigned)got : 0;
    return got > 0 ? (int)got : 0;
}

/* After a second without an event: what a deadline will show of the rails. One whose connection was
 * lost without an error lags behind the others. */
static void put_quiet(struct fabric *fabric)
{
    uint64_t now = shk_job_now_ns();
    char text[120] = "";

    if (fabric->quiet_ns == 0)
        fabric->quiet_ns = now;
    if (now - fabric->quiet_ns < PUT_QUIET_NS || fabric->told)
        return;
    for (unsigned i = 0; i < fabric->lanes; i++) {
        const struct fabric_rail *rail = fabric->lane[i];
        size_t len = strlen(text);

        snprintf(text + len, sizeof text - len, "; %s: %u under way, %u events",
                 rail->report->domain, rail->pending, rail->events);
    }
    shk_crumb_call("fi_cq_read%s", text);
    fabric->told = true;
}

/* Of several rails one more is polled: each time while large puts are about, else now and then,
 * since small ones do not come that way. */
static int put_poll_next(struct fabric *fabric, int got)
{
    int more = 0;

    if (fabric->busy > 0 || ++fabric->skipped % PUT_CALM_POLLS == 0) {
        fabric->last_poll = fabric->last_poll + 1 < fabric->lanes ? fabric->last_poll + 1 : 1;
        more = put_poll(fabric, fabric->lane[fabric->last_poll]);
        fabric->busy -= fabric->busy > 0;
        fabric->busy = more > 0 ? PUT_BUSY_POLLS : fabric->busy;
        got += more;
    }
    if (got > 0) {
        if (fabric->told) {
            shk_crumb_call("fi_cq_read");
            fabric->told = false;
        }
        fabric->quiet = 0;
        fabric->quiet_ns = 0;
    } else if (++fabric->quiet % PUT_QUIET_POLLS == 0) {
        put_quiet(fabric);
    }
    return got;
}

/* Of two ways, the one that the last put took is polled each time, the other now and then: what is
 * left of a drop has no completion to wait for. */
static int put_poll_first(struct fabric *fabric)
{
    bool both = !fabric->direct.used || ++fabric->other % PUT_OTHER_POLLS == 0;

    if (fabric->direct.used && (both || fabric->direct.last))
        fabric_direct_poll(fabric);
    return both || !fabric->direct.last ? put_poll(fabric, &fabric->rail[0]) : 0;
}

static int put_progress(struct shk_wire *wire)
{
    struct fabric *fabric = put_fabric(wire);
    int got = put_poll_first(fabric);

    if (fabric->lanes > 1)
        got = put_poll_next(fabric, got);
    if (fabric->resend && wire->status == 0)
        (void)put_resend(fabric);
    return wire->status != 0 ? wire->status : got;
}

/* One round while an operation cannot be posted; false when the wire has failed. */
static bool put_stall(struct fabric *fabric, unsigned peer, unsigned *idle)
{
    shk_job_set_waiting(fabric->wire.job, (int)peer);
    if (put_progress(&fabric->wire) == 0)
        shk_job_relax(fabric->wire.job, idle);
    return fabric->wire.status == 0;
}

/* Whole puts take turns: each has a notification of its own, so their order does not matter. */
static struct fabric_rail *put_rail(struct fabric *fabric, size_t bytes)
{
    if (bytes < FABRIC_SPREAD_BYTES || fabric->lanes < 2)
        return &fabric->rail[0];
    fabric->busy = PUT_BUSY_POLLS;
    if (fabric->only)
        return fabric->only;
    fabric->last_lane = fabric->last_lane + 1 < fabric->lanes ? fabric->last_lane + 1 : 0;
    return fabric->lane[fabric->last_lane];
}

static struct fabric_op *put_take(struct fabric *fabric, struct fabric_rail *rail, unsigned peer,
                                  uint32_t note)
{
    struct fabric_op *op = NULL;
    unsigned idle = 0;

    while (!fabric->free) {
        if (!put_stall(fabric, peer, &idle))
            return NULL;
    }
    op = fabric->free;
    fabric->free = op->next;
    op->peer = peer;
    op->rail = rail;
    op->note = note;
    op->use = fabric->notify == SHK_NOTIFY_DELIVERY ? FABRIC_WRITE_THEN_SEND : FABRIC_WRITE;
    rail->pending++;
    fabric->wire.pending++;
    return op;
}

ssize_t fabric_put_delivered(struct fabric_rail *rail, const struct fabric_peer *peer, void *buf,
                             size_t bytes, uint64_t addr, void *context)
{
    struct iovec local = {.iov_base = buf, .iov_len = bytes};
    struct fi_rma_iov remote = {.addr = addr, .len = bytes, .key = peer->key};
    struct fi_msg_rma msg = {
        .msg_iov = &local,
        .desc = &rail->desc,
        .iov_count = 1,
        .addr = peer->addr,
        .rma_iov = &remote,
        .rma_iov_count = 1,
        .context = context,
    };

    return fi_writemsg(rail->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

/* What is to be put: from this rank's heap to that of to_rank. */
struct put_order {
    struct fabric_rail *rail;
    unsigned to_rank;
    size_t from, to, bytes;
    uint32_t note;
};

/* Posts one put; op is NULL when it fits an inject, which has no completion. */
static ssize_t put_post(struct fabric *fabric, const struct put_order *put, struct fabric_op *op)
{
    struct fabric_rail *rail = put->rail;
    const struct fabric_peer *peer = &rail->peers[put->to_rank];
    void *buf = fabric->wire.heap->base + put->from;
    uint64_t addr = peer->base + put->to;

    if (!op) {
        return fi_inject_writedata(rail->ep, buf, put->bytes, put->note, peer->addr, addr,
                                   peer->key);
    }
    if (op->use == FABRIC_WRITE_THEN_SEND)
        return fabric_put_delivered(rail, peer, buf, put->bytes, addr, &op->context);
    return fi_writedata(rail->ep, buf, put->bytes, rail->desc, put->note, peer->addr, addr,
                        peer->key, &op->context);
}

static int put_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct fabric *fabric = put_fabric(wire);
    struct put_order put = {
        .rail = put_rail(fabric, bytes),
        .to_rank = peer,
        .from = from,
        .to = to,
        .bytes = bytes,
        .note = (uint32_t)(uint8_t)wire->op << PUT_INDEX_BITS | index,
    };
    struct fabric_op *op = NULL;
    unsigned idle = 0;
    ssize_t rc = 0;

    fabric->direct.last = false;
    if (fabric->notify == SHK_NOTIFY_DELIVERY || bytes > fabric->inject) {
        op = put_take(fabric, put.rail, peer, put.note);
        if (!op)
            return wire->status;
    }
    rc = put_post(fabric, &put, op);
    while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle))
        rc = put_post(fabric, &put, op);
    if (idle > 0)
        shk_job_set_waiting(wire->job, -1);
    if (wire->status != 0)
        return wire->status;
    return rc == 0 ? 0 : put_fail(fabric, put.rail, "fi_writedata", rc, peer);
}

/* By the first rail, as all that is small, or by the endpoints below it. */
static int put_drop(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes)
{
    struct fabric *fabric = put_fabric(wire);
    struct fabric_rail *rail = &fabric->rail[0];
    const struct fabric_peer *target = &rail->peers[peer];
    const void *data = wire->heap->base + from;
    uint64_t addr = target->base + to;
    struct fabric_op *op = NULL;
    unsigned idle = 0;
    ssize_t rc = 0;

    fabric->direct.last = fabric->direct.used;
    if (!fabric->direct.used && bytes > fabric->inject) {
        op = put_take(fabric, rail, peer, 0);
        if (!op)
            return wire->status;
        op->use = FABRIC_WRITE;
    }
    do {
        if (fabric->direct.used)
            rc = fabric_direct_drop(fabric, peer, data, bytes, to);
        else if (op)
            rc = fi_write(rail->ep, data, bytes, rail->desc, target->addr, addr, target->key,
                          &op->context);
        else
            rc = fi_inject_write(rail->ep, data, bytes, target->addr, addr, target->key);
    } while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle));
    if (idle > 0)
        shk_job_set_waiting(wire->job, -1);
    if (wire->status != 0)
        return wire->status;
    return rc == 0 ? 0 : put_fail(fabric, rail, "fi_write", rc, peer);
}

static int put_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                   uint32_t index)
{
    struct fabric *fabric = put_fabric(wire);
    struct fabric_rail *rail = put_rail(fabric, bytes);
    uint32_t note = (uint32_t)(uint8_t)wire->op << PUT_INDEX_BITS | index;
    struct fabric_op *op = put_take(fabric, rail, peer, note);
    const struct fabric_peer *target = &rail->peers[peer];
    void *buf = wire->heap->base + to;
    unsigned idle = 0;
    ssize_t rc = 0;

    if (!op)
        return wire->status;
    op->use = FABRIC_READ;
    do {
        rc = fi_read(rail->ep, buf, bytes, rail->desc, target->addr, target->base + from,
                     target->key, &op->context);
    } while (rc == -FI_EAGAIN && put_stall(fabric, peer, &idle));
    if (idle > 0)
        shk_job_set_waiting(wire->job, -1);
    if (wire->status != 0)
        return wire->status;
    return rc == 0 ? 0 : put_fail(fabric, rail, "fi_read", rc, peer);
}

ssize_t fabric_probe(struct fabric *fabric)
{
    struct put_order put = {
        .rail = &fabric->rail[0],
        .to_rank = (fabric->wire.rank + 1) % fabric->wire.size,
        .from = fabric->wire.heap->offset[SHK_AREA_SEND],
        .to = fabric->wire.heap->offset[SHK_AREA_SLOT0],
        .bytes = sizeof(uint32_t),
        .note = FABRIC_NOTE_PROBE,
    };
    struct fabric_op *op = put_take(fabric, put.rail, put.to_rank, put.note);
    unsigned idle = 0;
    ssize_t rc = 0;

    op->use = FABRIC_WRITE;
    rc = put_post(fabric, &put, op);
    while (rc == -FI_EAGAIN && put_stall(fabric, put.to_rank, &idle))
        rc = put_post(fabric, &put, op);
    shk_job_set_waiting(fabric->wire.job, -1);
    if (rc != 0)
        put_release(fabric, op);
    if (rc != 0 && rc != -FI_ENOSYS && rc != -FI_EOPNOTSUPP)
        (void)put_fail(fabric, put.rail, "fi_writedata", rc, put.to_rank);
    return fabric->wire.status != 0 ? fabric->wire.status : rc;
}

const struct shk_wire_ops fabric_wire_ops = {
    .put = put_put,
    .get = put_get,
    .drop = put_drop,
    .progress = put_progress,
};

const struct shk_wire_ops fabric_wire_ops_no_get = {
    .put = put_put,
    .drop = put_drop,
    .progress = put_progress,
};
