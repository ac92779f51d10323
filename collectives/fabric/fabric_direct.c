/* Connected endpoints (FI_EP_MSG) of the provider below ofi_rxm, for drops. Of every put above the
 * inject size ofi_rxm wants a completion, and tcp below it tells of each by writing to a socket
 * pair that is read again: two system calls of five. Endpoints of tcp itself, bound with
 * FI_SELECTIVE_COMPLETION, do without.
 *
 * All ranks have them, or none uses them: everything else goes through ofi_rxm as ever. */
#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT_LAYER ";ofi_rxm"
/* What is saved here is a system call of tcp's; other providers have their own ways. */
#define DIRECT_BELOW "tcp"

/* Every rank connects to every other. */
#define DIRECT_RANKS 16U

#define DIRECT_KEY      "fabric.direct"
#define DIRECT_ADDR_MAX 64U
#define DIRECT_MR_KEY   1U
#define DIRECT_CQ       ((size_t)512)
#define DIRECT_MAGIC    UINT32_C(0x5aa1d1ec)

/* Time to connect; those that came in time wait for the others in a barrier. */
#define DIRECT_CONNECT_NS UINT64_C(2000000000)

/* What a rank tells the others; addr_len 0: it has none. */
struct direct_card {
    uint64_t base;
    uint64_t key;
    uint32_t addr_len;
    uint8_t addr[DIRECT_ADDR_MAX];
};

/* Who connects. */
struct direct_hello {
    uint32_t magic;
    uint32_t rank;
};

union direct_event {
    struct fi_eq_cm_entry cm;
    unsigned char room[sizeof(struct fi_eq_cm_entry) + 256];
};

static bool direct_wanted(const struct fabric *fabric)
{
    const struct fi_info *info = fabric->rail[0].info;
    const char *name = info->fabric_attr->prov_name;

    return !fabric->direct.off && !fabric->hmem && fabric->wire.size > 1 &&
           fabric->wire.size <= DIRECT_RANKS && name &&
           strcmp(name, DIRECT_BELOW DIRECT_LAYER) == 0 && info->domain_attr->name;
}

static bool direct_same(const struct fi_info *a, const struct fi_info *b)
{
    return a->domain_attr->name && strcmp(a->domain_attr->name, b->domain_attr->name) == 0 &&
           a->ep_attr->type == FI_EP_MSG && a->addr_format == b->addr_format &&
           a->src_addrlen == b->src_addrlen && a->src_addr && b->src_addr &&
           memcmp(a->src_addr, b->src_addr, a->src_addrlen) == 0;
}

/* The entry for the same address of the same device; NULL: there is none. */
static struct fi_info *direct_choose(const struct fabric *fabric)
{
    const struct fabric_lib *lib = fabric->lib;
    const struct fi_info *first = fabric->rail[0].info;
    struct fi_info *hints = fabric_hints(lib, DIRECT_BELOW);
    struct fi_info *list = NULL;
    struct fi_info *found = NULL;
    const struct fi_info *at = NULL;

    if (!hints)
        return NULL;
    hints->ep_attr->type = FI_EP_MSG;
    hints->mode = 0; /* without a completion there is nothing to keep a context for */
    shk_crumb_call("fi_getinfo");
    if (lib->api.getinfo(lib->version, NULL, NULL, 0, hints, &list) == 0 && list) {
        for (at = list; at && !direct_same(at, first); at = at->next) {
        }
        found = at ? lib->api.dupinfo(at) : NULL;
        lib->api.freeinfo(list);
    }
    lib->api.freeinfo(hints);
    return found;
}

static int direct_listen(struct fabric_direct *direct)
{
    int rc = fi_passive_ep(direct->fabric, direct->info, &direct->pep, NULL);

    rc = rc == 0 ? fi_pep_bind(direct->pep, &direct->eq->fid, 0) : rc;
    return rc == 0 ? fi_listen(direct->pep) : rc;
}

void fabric_direct_open(struct fabric *fabric)
{
    struct fabric_direct *direct = &fabric->direct;
    const struct shk_heap *heap = fabric->wire.heap;
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_cq_attr cq = {
        .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = DIRECT_CQ};
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    int rc = 0;

    if (!direct_wanted(fabric))
        return;
    direct->peers = calloc(fabric->wire.size, sizeof *direct->peers);
    direct->info = direct->peers ? direct_choose(fabric) : NULL;
    if (!direct->info)
        return;
    shk_crumb_call("fi_fabric, fi_domain, fi_eq_open, fi_passive_ep of " DIRECT_BELOW);
    rc = fabric->lib->api.fabric(direct->info->fabric_attr, &direct->fabric, NULL);
    rc = rc == 0 ? fi_domain(direct->fabric, direct->info, &direct->domain, NULL) : rc;
    rc = rc == 0 ? fi_eq_open(direct->fabric, &eq, &direct->eq, NULL) : rc;
    rc = rc == 0 ? fi_cq_open(direct->domain, &cq, &direct->cq, NULL) : rc;
    rc = rc == 0 ? fi_mr_reg(direct->domain, heap->base, heap->bytes, access, 0, DIRECT_MR_KEY, 0,
                             &direct->mr, NULL)
                 : rc;
    rc = rc == 0 ? direct_listen(direct) : rc;
    direct->ready = rc == 0;
}

int fabric_direct_publish(struct fabric *fabric, struct shk_error *err)
{
    struct fabric_direct *direct = &fabric->direct;
    struct direct_card card = {.addr_len = 0};
    size_t len = sizeof card.addr;

    if (fabric->wire.size > DIRECT_RANKS)
        return 0;
    if (direct->ready && fi_getname(&direct->pep->fid, card.addr, &len) == 0 &&
        len <= sizeof card.addr && fi_mr_key(direct->mr) != FI_KEY_NOTAVAIL) {
        bool virtual = (direct->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;

        card.base = virtual ? (uint64_t)(uintptr_t)fabric->wire.heap->base : 0;
        card.key = fi_mr_key(direct->mr);
        card.addr_len = (uint32_t)len;
    }
    return shk_job_put(fabric->wire.job, DIRECT_KEY, &card, sizeof card, err);
}

/* An endpoint to a peer; info is for this one alone. */
static int direct_endpoint(struct fabric_direct *direct, struct fi_info *info,
                           struct fabric_direct_peer *peer)
{
    uint64_t flags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
    int rc = fi_endpoint(direct->domain, info, &peer->ep, peer);

    rc = rc == 0 ? fi_ep_bind(peer->ep, &direct->eq->fid, 0) : rc;
    rc = rc == 0 ? fi_ep_bind(peer->ep, &direct->cq->fid, flags) : rc;
    return rc == 0 ? fi_enable(peer->ep) : rc;
}

static int direct_connect(struct fabric *fabric, unsigned rank, const struct direct_card *card)
{
    struct fabric_direct *direct = &fabric->direct;
    struct direct_hello hello = {.magic = DIRECT_MAGIC, .rank = fabric->wire.rank};
    struct fi_info *info = fabric->lib->api.dupinfo(direct->info);
    int rc = -FI_ENOMEM;

    if (info)
        info->dest_addr = malloc(card->addr_len);
    if (info && info->dest_addr) {
        memcpy(info->dest_addr, card->addr, card->addr_len);
        info->dest_addrlen = card->addr_len;
        rc = direct_endpoint(direct, info, &direct->peers[rank]);
        rc = rc == 0 ? fi_connect(direct->peers[rank].ep, card->addr, &hello, sizeof hello) : rc;
    }
    if (info)
        fabric->lib->api.freeinfo(info);
    return rc;
}

/* Of a rank above this one that has not come yet; anybody else is turned away. */
static int direct_accept(struct fabric *fabric, union direct_event *event, size_t len)
{
    struct fabric_direct *direct = &fabric->direct;
    struct direct_hello hello = {0};
    struct fi_info *info = event->cm.info;
    int rc = 0;

    if (len >= sizeof event->cm + sizeof hello)
        memcpy(&hello, event->cm.data, sizeof hello);
    if (hello.magic != DIRECT_MAGIC || hello.rank <= fabric->wire.rank ||
        hello.rank >= fabric->wire.size || direct->peers[hello.rank].ep) {
        (void)fi_reject(direct->pep, info->handle, NULL, 0);
    } else {
        rc = direct_endpoint(direct, info, &direct->peers[hello.rank]);
        rc = rc == 0 ? fi_accept(direct->peers[hello.rank].ep, NULL, 0) : rc;
    }
    fabric->lib->api.freeinfo(info);
    return rc;
}

/* One look for what became of the connections. */
static void direct_step(struct fabric *fabric)
{
    struct fabric_direct *direct = &fabric->direct;
    struct fi_eq_err_entry failed = {0};
    union direct_event event;
    uint32_t what = 0;
    ssize_t len = direct->failed || direct->deaf
                      ? -FI_EAGAIN
                      : fi_eq_read(direct->eq, &what, &event, sizeof event, 0);

    if (len == -FI_EAGAIN)
        return;
    if (len == -FI_EAVAIL)
        (void)fi_eq_readerr(direct->eq, &failed, 0);
    if (len > 0 && what == FI_CONNREQ)
        direct->failed |= direct_accept(fabric, &event, (size_t)len) != 0;
    else if (len > 0 && what == FI_CONNECTED)
        direct->connected++;
    else
        direct->failed = true;
}

/* For those that wait in a barrier while others still connect. */
static int direct_turn(void *arg)
{
    struct fabric *fabric = arg;

    direct_step(fabric);
    return shk_wire_poll(&fabric->wire);
}

static int direct_meet(struct fabric *fabric, bool *all_p, struct shk_error *err)
{
    struct shk_job *job = fabric->wire.job;
    struct direct_card card;
    size_t len = 0;
    int rc = 0;

    *all_p = true;
    for (unsigned rank = 0; rank < fabric->wire.size && rc == 0; rank++) {
        rc = shk_job_get(job, rank, DIRECT_KEY, &card, sizeof card, &len, err);
        *all_p &=
            rc == 0 && len == sizeof card && card.addr_len > 0 && card.addr_len <= sizeof card.addr;
    }
    for (unsigned rank = 0; rank < fabric->wire.rank && rc == 0 && *all_p; rank++) {
        rc = shk_job_get(job, rank, DIRECT_KEY, &card, sizeof card, &len, err);
        if (rc == 0 && !fabric->direct.failed)
            fabric->direct.failed = direct_connect(fabric, rank, &card) != 0;
    }
    for (unsigned rank = 0; rank < fabric->wire.size && rc == 0 && *all_p; rank++) {
        rc = shk_job_get(job, rank, DIRECT_KEY, &card, sizeof card, &len, err);
        fabric->direct.peers[rank].base = card.base;
        fabric->direct.peers[rank].key = card.key;
    }
    return rc;
}

int fabric_direct_connect(struct fabric *fabric, struct shk_error *err)
{
    struct fabric_direct *direct = &fabric->direct;
    unsigned peers = fabric->wire.size - 1;
    uint64_t end = shk_job_now_ns() + DIRECT_CONNECT_NS;
    uint64_t lacking = 0;
    unsigned idle = 0;
    bool all = false;
    int rc = 0;

    if (fabric->wire.size > DIRECT_RANKS || fabric->wire.size < 2)
        return 0;
    shk_crumb_call("fi_connect, fi_accept, fi_eq_read");
    rc = direct_meet(fabric, &all, err);
    if (rc < 0 || !all)
        return rc;
    while (direct->connected < peers && !direct->failed && shk_job_now_ns() < end) {
        direct_step(fabric);
        shk_job_relax(fabric->wire.job, &idle);
    }
    /* Late ones may still come while this rank waits; then all go without, all the same. */
    rc = shk_job_barrier(fabric->wire.job, direct->connected < peers || direct->failed, &lacking,
                         direct_turn, fabric);
    if (rc < 0)
        return shk_error_set(err, -rc, "%s", fabric->wire.error.text);
    direct->used = lacking == 0;
    fabric->wire.free_drop = direct->used ? fabric->wire.max_drop : 0;
    if (direct->used && fabric->wire.rank == 0)
        rc = shk_job_put(fabric->wire.job, FABRIC_DIRECT, DIRECT_BELOW, strlen(DIRECT_BELOW), err);
    return rc;
}

ssize_t fabric_direct_drop(struct fabric *fabric, unsigned rank, const void *data, size_t bytes,
                           size_t to)
{
    struct fabric_direct *direct = &fabric->direct;
    const struct fabric_direct_peer *peer = &direct->peers[rank];

    if (bytes <= direct->info->tx_attr->inject_size)
        return fi_inject_write(peer->ep, data, bytes, 0, peer->base + to, peer->key);
    return fi_write(peer->ep, data, bytes, fi_mr_desc(direct->mr), 0, peer->base + to, peer->key,
                    NULL);
}

void fabric_direct_poll(struct fabric *fabric)
{
    struct fi_cq_data_entry entry;
    struct fi_cq_err_entry failed;
    struct fid_cq *cq = fabric->direct.cq;
    ssize_t got = fi_cq_read(cq, &entry, 1);
    char detail[128] = "";

    if (got >= 0 || got == -FI_EAGAIN)
        return;
    memset(&failed, 0, sizeof failed);
    if (got == -FI_EAVAIL && fi_cq_readerr(cq, &failed, 0) < 0)
        return;
    (void)shk_wire_fail(
        &fabric->wire, failed.err != 0 ? failed.err : FI_EOTHER, true,
        "fi_cq_read of " DIRECT_BELOW ": operation failed: %s (%s)",
        fabric->lib->api.strerror(failed.err != 0 ? failed.err : (int)-got),
        fi_cq_strerror(cq, failed.prov_errno, failed.err_data, detail, sizeof detail));
}

static void direct_close(struct fid *fid)
{
    if (fid)
        (void)fi_close(fid);
}

#define DIRECT_CLOSE(member_) direct_close((member_) ? &(member_)->fid : NULL)

void fabric_direct_close(struct fabric *fabric)
{
    struct fabric_direct *direct = &fabric->direct;

    shk_crumb_call("fi_close of connected endpoints");
    for (unsigned rank = 0; direct->peers != NULL && rank < fabric->wire.size; rank++)
        DIRECT_CLOSE(direct->peers[rank].ep);
    DIRECT_CLOSE(direct->pep);
    DIRECT_CLOSE(direct->mr);
    DIRECT_CLOSE(direct->cq);
    DIRECT_CLOSE(direct->eq);
    DIRECT_CLOSE(direct->domain);
    DIRECT_CLOSE(direct->fabric);
    if (direct->info)
        fabric->lib->api.freeinfo(direct->info);
    free(direct->peers);
    *direct = (struct fabric_direct){0};
}
