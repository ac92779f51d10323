/* Which rails all ranks have, and which of them carry data: a token to each neighbour over each
 * rail, which must arrive where it was meant for. An address may exist on every host (that of a
 * container bridge does), and lead each to itself. */
#include "collectives/fabric/fabric_rails_cards.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct agree_token {
    uint32_t rail;
    uint32_t from;
    uint32_t to;
    uint32_t magic;
};

#define AGREE_MAGIC UINT32_C(0x5aa15eed)

_Static_assert(sizeof(struct agree_token) * 4 * SHK_RAILS_MAX == FABRIC_TOKEN_BYTES, "tokens");

/* The token to the next rank, and that to the one before. */
#define AGREE_SIDES 2U

/* One rail under probe. */
struct agree_probe {
    struct fi_context2 context[AGREE_SIDES]; /* of the tokens' puts */
    bool posted[AGREE_SIDES];
    bool sent[AGREE_SIDES];
    unsigned noted; /* notifications that came in */
    bool over;      /* good or bad */
};

struct agree {
    struct fabric *fabric;
    struct agree_card ours;
    struct agree_card first;                 /* of rank 0: its order of the rails is everybody's */
    struct fabric_rail *rail[SHK_RAILS_MAX]; /* in that order; NULL: none here. [0] is not used */
    unsigned next, previous;
    /* Addresses that ranks of other hosts have, too, by our order. */
    unsigned same[SHK_RAILS_MAX], others[SHK_RAILS_MAX], same_rank[SHK_RAILS_MAX];
    unsigned lacks[SHK_RAILS_MAX], lacks_rank[SHK_RAILS_MAX]; /* ranks without such a device */
    struct agree_probe probe[SHK_RAILS_MAX];
};

static bool agree_alive(const struct fabric_rail *rail)
{
    return rail->report->status == FABRIC_RAIL_USED;
}

static int agree_insert(struct fabric *fabric, struct fabric_rail *rail, unsigned rank,
                        const struct agree_entry *entry)
{
    struct fabric_peer *peer = NULL;

    if (!rail->peers)
        rail->peers = calloc(fabric->wire.size, sizeof *rail->peers);
    if (!rail->peers)
        return -ENOMEM;
    peer = &rail->peers[rank];
    peer->base = entry->base;
    peer->key = entry->key;
    shk_crumb_call("fi_av_insert of rank %u", rank);
    if (fi_av_insert(rail->av, entry->addr, 1, &peer->addr, 0, NULL) != 1)
        agree_drop(rail, FABRIC_RAIL_DEAD, (int)rank, "fi_av_insert: no address for rank %u", rank);
    return 0;
}

/* What another rank's card means for one of our rails. */
static int agree_join(struct agree *agree, size_t index, const struct agree_card *theirs,
                      unsigned rank)
{
    struct fabric *fabric = agree->fabric;
    struct fabric_rail *rail = &fabric->rail[index];
    const struct agree_entry *entry = agree_pair(&agree->ours, index, theirs);

    if (!entry) {
        agree->lacks_rank[index] = agree->lacks[index]++ == 0 ? rank : agree->lacks_rank[index];
        return 0;
    }
    if (entry->ready == 0) {
        agree_drop(rail, FABRIC_RAIL_DEAD, AGREE_HEARD, "rank %u cannot open its device", rank);
        return 0;
    }
    if (agree->ours.host != theirs->host) {
        agree->others[index]++;
        if (agree_same_address(rail->info->addr_format, &agree->ours.entry[index], entry)) {
            agree->same[index]++;
            agree->same_rank[index] = rank;
        }
    }
    return agree_alive(rail) ? agree_insert(fabric, rail, rank, entry) : 0;
}

/* The same address everywhere is that of a network inside of each host; on a few it is a mistake.
 */
static void agree_addresses(struct agree *agree)
{
    for (unsigned i = 1; i < agree->fabric->rails; i++) {
        if (agree->same[i] > 0) {
            agree_drop(&agree->fabric->rail[i],
                       agree->same[i] == agree->others[i] ? FABRIC_RAIL_LEFT_OUT : FABRIC_RAIL_DEAD,
                       (int)agree->same_rank[i], "rank %u on another host has the same address",
                       agree->same_rank[i]);
        }
    }
}

/* A device that some ranks lack: the few are odd, be it those that lack it or those that have it;
 * of two halves nobody knows. */
static void agree_lacking(struct agree *agree)
{
    unsigned size = agree->fabric->wire.size;

    for (unsigned i = 1; i < agree->fabric->rails; i++) {
        struct fabric_rail *rail = &agree->fabric->rail[i];
        unsigned lacks = agree->lacks[i];

        if (2 * lacks > size) {
            agree_drop(rail, FABRIC_RAIL_LEFT_OUT, AGREE_HEARD,
                       "only %u of %u ranks have such a device", size - lacks, size);
        } else if (lacks > 0) {
            agree_drop(rail, FABRIC_RAIL_MISSING,
                       2 * lacks == size ? AGREE_HEARD : (int)agree->lacks_rank[i],
                       "rank %u has no device for it", agree->lacks_rank[i]);
        }
    }
}

static int agree_match(struct agree *agree, struct shk_error *err)
{
    struct fabric *fabric = agree->fabric;
    struct agree_card theirs;
    int rc = agree_read(fabric, fabric->wire.rank, &agree->ours, err);

    for (unsigned rank = 0; rank < fabric->wire.size && rc == 0; rank++) {
        rc = agree_read(fabric, rank, &theirs, err);
        if (rc == 0 && rank == 0)
            agree->first = theirs;
        for (unsigned i = 1; i < fabric->rails && rc == 0; i++) {
            rc = agree_join(agree, i, &theirs, rank);
            rc = rc == 0 ? 0 : shk_error_set(err, -rc, "out of memory");
        }
    }
    for (unsigned i = 1; i < fabric->rails && rc == 0; i++) {
        const struct agree_entry *entry = agree_pair(&agree->ours, i, &agree->first);

        if (entry)
            agree->rail[entry - agree->first.entry] = &fabric->rail[i];
    }
    agree_lacking(agree);
    agree_addresses(agree);
    return rc;
}

static struct agree_token *agree_slot(struct agree *agree, unsigned k, unsigned slot)
{
    struct agree_token *tokens = shk_heap_at(agree->fabric->wire.heap, SHK_AREA_RAIL);

    return &tokens[k * 2 * AGREE_SIDES + slot];
}

/* Slots of a rail: tokens to send to either side, tokens received from either side. */
static ssize_t agree_post(struct agree *agree, unsigned k, unsigned side)
{
    struct fabric *fabric = agree->fabric;
    struct fabric_rail *rail = agree->rail[k];
    unsigned to = side == 0 ? agree->next : agree->previous;
    const struct fabric_peer *peer = &rail->peers[to];
    struct agree_token *token = agree_slot(agree, k, side);
    void *context = &agree->probe[k].context[side];
    /* For the next rank this one is the one before: the other side. */
    uint64_t addr = peer->base + (uint64_t)((unsigned char *)agree_slot(agree, k, 3 - side) -
                                            fabric->wire.heap->base);

    *token =
        (struct agree_token){.rail = k, .from = fabric->wire.rank, .to = to, .magic = AGREE_MAGIC};
    if (fabric->notify == SHK_NOTIFY_DELIVERY)
        return fabric_put_delivered(rail, peer, token, sizeof *token, addr, context);
    return fi_writedata(rail->ep, token, sizeof *token, rail->desc, FABRIC_NOTE_PROBE, peer->addr,
                        addr, peer->key, context);
}

static void agree_bad(struct agree *agree, unsigned k, unsigned side, const char *fmt, ...)
    SHK_PRINTF(4, 5);

/* side AGREE_SIDES: not known which. */
static void agree_bad(struct agree *agree, unsigned k, unsigned side, const char *fmt, ...)
{
    char text[160];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    agree->probe[k].over = true;
    agree->rail[k]->report->sides |= side < AGREE_SIDES ? 1U << side : 3U;
    agree_drop(agree->rail[k], FABRIC_RAIL_DEAD, AGREE_SIDES_TELL, "%s", text);
}

static void agree_cq_error(struct agree *agree, unsigned k)
{
    struct agree_probe *probe = &agree->probe[k];
    struct fid_cq *cq = agree->rail[k]->cq;
    struct fi_cq_err_entry entry;
    char detail[96] = "";
    const char *text = NULL;
    unsigned side = 0;

    memset(&entry, 0, sizeof entry);
    if (fi_cq_readerr(cq, &entry, 0) <= 0 || probe->over)
        return;
    while (side < AGREE_SIDES && entry.op_context != &probe->context[side])
        side++;
    text = fi_cq_strerror(cq, entry.prov_errno, entry.err_data, detail, sizeof detail);
    agree_bad(agree, k, side, "fi_cq_read: %s (%.90s)", agree->fabric->lib->api.strerror(entry.err),
              text ? text : "");
}

static void agree_poll(struct agree *agree, unsigned k)
{
    struct agree_probe *probe = &agree->probe[k];
    struct fi_cq_data_entry entries[4];
    ssize_t got = fi_cq_read(agree->rail[k]->cq, entries, 4);
    ssize_t i = 0;

    for (i = 0; i < got; i++) {
        if ((entries[i].flags & FI_REMOTE_CQ_DATA) != 0 &&
            (entries[i].flags & (FI_WRITE | FI_SEND)) == 0) {
            probe->noted++;
            continue;
        }
        for (unsigned side = 0; side < AGREE_SIDES; side++)
            probe->sent[side] |= entries[i].op_context == &probe->context[side];
    }
    if (got == -FI_EAVAIL) {
        agree_cq_error(agree, k);
    } else if (got < 0 && got != -FI_EAGAIN && !probe->over) {
        agree_bad(agree, k, AGREE_SIDES, "fi_cq_read: %s",
                  agree->fabric->lib->api.strerror((int)-got));
    }
}

/* Has the token of the rank on this side come? Any other one condemns the rail. */
static bool agree_received(struct agree *agree, unsigned k, unsigned side)
{
    const volatile struct agree_token *token = agree_slot(agree, k, AGREE_SIDES + side);
    unsigned from = side == 0 ? agree->next : agree->previous;

    if (token->magic != AGREE_MAGIC)
        return false;
    if (token->from == from && token->to == agree->fabric->wire.rank && token->rail == k)
        return true;
    agree_bad(agree, k, side,
              "what came in place of the token of rank %u was that of rank %u to %u", from,
              token->from, token->to);
    return false;
}

static void agree_step(struct agree *agree, unsigned k)
{
    struct agree_probe *probe = &agree->probe[k];
    unsigned done = 0;

    for (unsigned side = 0; side < AGREE_SIDES && !probe->over; side++) {
        ssize_t rc = probe->posted[side] ? 0 : agree_post(agree, k, side);

        probe->posted[side] |= rc == 0;
        if (rc != 0 && rc != -FI_EAGAIN) {
            agree_bad(agree, k, side, "a put to rank %u: %s",
                      side == 0 ? agree->next : agree->previous,
                      agree->fabric->lib->api.strerror((int)-rc));
        }
    }
    agree_poll(agree, k);
    for (unsigned side = 0; side < AGREE_SIDES && !probe->over; side++)
        done += agree_received(agree, k, side) && probe->sent[side];
    probe->over |= done == AGREE_SIDES &&
                   (agree->fabric->notify == SHK_NOTIFY_DELIVERY || probe->noted == AGREE_SIDES);
}

/* Time is over for this rail. */
static void agree_late(struct agree *agree, unsigned k)
{
    const struct agree_probe *probe = &agree->probe[k];
    double s = 2 * (double)FABRIC_PROBE_NS / 1e9; /* at least */

    for (unsigned side = 0; side < AGREE_SIDES; side++) {
        unsigned rank = side == 0 ? agree->next : agree->previous;

        if (!agree_received(agree, k, side))
            agree_bad(agree, k, side, "nothing came from rank %u in %g s", rank, s);
        else if (!probe->sent[side])
            agree_bad(agree, k, side, "a put to rank %u was not done in %g s", rank, s);
    }
    if (!probe->over)
        agree_bad(agree, k, AGREE_SIDES, "data came without their notification in %g s", s);
}

static bool agree_probed(const struct agree *agree, unsigned k)
{
    return agree->rail[k] && agree_alive(agree->rail[k]);
}

/* Until all rails have their tokens or time is over: how many have not. */
static unsigned agree_wait(struct agree *agree)
{
    uint64_t end = shk_job_now_ns() + FABRIC_PROBE_NS;
    unsigned idle = 0;
    unsigned left = 1;

    while (left > 0 && shk_job_now_ns() < end) {
        left = 0;
        for (unsigned k = 1; k < agree->first.count; k++) {
            if (agree_probed(agree, k)) {
                agree_step(agree, k);
                left += !agree->probe[k].over;
            }
        }
        shk_job_relax(agree->fabric->wire.job, &idle);
    }
    return left;
}

/* While others still probe they need this rank's progress. */
static int agree_turn(void *arg)
{
    struct agree *agree = arg;

    for (unsigned k = 1; k < agree->first.count; k++) {
        if (agree_probed(agree, k))
            agree_poll(agree, k);
    }
    return shk_wire_poll(&agree->fabric->wire);
}

/* A rank that its node does not let run in time has not sent its tokens: those that miss any wait
 * for it, and then once more, so that only what a rail does not carry is held against it. */
static int agree_probe(struct agree *agree, struct shk_error *err)
{
    uint64_t most = 0;
    int rc = 0;

    shk_crumb_call("fi_writedata, fi_cq_read");
    rc = shk_job_barrier(agree->fabric->wire.job, agree_wait(agree), &most, agree_turn, agree);
    if (rc < 0)
        return shk_error_set(err, -rc, "%s", agree->fabric->wire.error.text);
    if (most > 0)
        (void)agree_wait(agree);
    for (unsigned k = 1; k < agree->first.count; k++) {
        if (agree_probed(agree, k) && !agree->probe[k].over)
            agree_late(agree, k);
    }
    return 0;
}

/* The worst that any rank has to say of each rail is what all go by. */
static int agree_verdicts(struct agree *agree, struct shk_error *err)
{
    struct fabric *fabric = agree->fabric;

    for (unsigned k = 1; k < agree->first.count; k++) {
        struct fabric_rail *rail = agree->rail[k];
        uint64_t status = rail ? rail->report->status : FABRIC_RAIL_MISSING;
        uint64_t worst = 0;
        int rc = shk_job_barrier(fabric->wire.job, status << 32 | fabric->wire.rank, &worst,
                                 agree_turn, agree);

        if (rc < 0)
            return shk_error_set(err, -rc, "%s", fabric->wire.error.text);
        if (rail && worst >> 32 > status) {
            agree_drop(rail, (enum fabric_rail_status)(worst >> 32), AGREE_HEARD,
                       "rank %u cannot use its device", (unsigned)(uint32_t)worst);
        }
    }
    return 0;
}

int fabric_rails_agree(struct fabric *fabric, struct shk_error *err)
{
    struct agree *agree = calloc(1, sizeof *agree);
    unsigned size = fabric->wire.size;
    bool bad = false;
    int rc = 0;

    if (!agree)
        return shk_error_set(err, ENOMEM, "out of memory");
    agree->fabric = fabric;
    agree->next = (fabric->wire.rank + 1) % size;
    agree->previous = (fabric->wire.rank + size - 1) % size;
    rc = agree_match(agree, err);
    rc = rc == 0 ? agree_verdicts(agree, err) : rc;
    if (rc == 0) {
        rc = agree_probe(agree, err);
        rc = rc == 0 ? agree_verdicts(agree, err) : rc;
    }
    for (unsigned k = 1; k < agree->first.count && rc == 0; k++) {
        if (agree_probed(agree, k))
            fabric->lane[fabric->lanes++] = agree->rail[k];
        else
            bad = true;
    }
    fabric->wire.lanes = fabric->lanes;
    if (!bad && rc == 0) {
        free(agree); /* a put that never ends may still write to its context */
    }
    return rc;
}
