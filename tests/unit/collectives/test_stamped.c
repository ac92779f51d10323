/* One-shot whose vectors carry a stamp, against a peer that writes them in any order, late, damaged
 * or of an operation before. */
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/algorithm/tune.h"
#include "collectives/ranks/job_private.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SHORT = 14, COUNT = 2062 }; /* of which one makes with the stamp a whole packet */

/* The peer's packet is the one that it is sent, so the sum is twice the vector. */
static struct peer {
    struct shk_wire wire;
    unsigned char packet[SHK_STAMPED_PACKET], before[SHK_STAMPED_PACKET];
    size_t to, words;
    unsigned polls;
    enum { BACKWARDS, STALE, DAMAGED, NEVER } how;
} peer;

static int peer_drop(struct shk_wire *wire, unsigned rank, size_t from, size_t to, size_t bytes)
{
    cr_assert_eq(rank, 1);
    cr_assert_leq(bytes, SHK_STAMPED_PACKET);
    memcpy(peer.packet, wire->heap->base + from, bytes);
    peer.words = bytes / 4;
    peer.to = to + shk_slot_bytes(wire->size); /* of rank 1, not of rank 0 */
    return 0;
}

/* A word at each poll, the last one first. */
static int peer_progress(struct shk_wire *wire)
{
    unsigned char *slot = wire->heap->base + peer.to;
    size_t left = peer.words - peer.polls;

    if (peer.how == NEVER && ++peer.polls > 1000) {
        return shk_wire_fail(wire, 5, true, "the peer is gone");
    }
    if (peer.how == STALE) {
        memcpy(slot, ++peer.polls < 100 ? peer.before : peer.packet, SHK_STAMPED_PACKET);
    }
    if ((peer.how == BACKWARDS || peer.how == DAMAGED) && left > 0) {
        peer.polls++;
        memcpy(slot + (left - 1) * 4, peer.packet + (left - 1) * 4, 4);
        slot[0] ^= peer.how == DAMAGED && left == 1;
    }
    return 0;
}

static const struct shk_wire_ops peer_ops = {.drop = peer_drop, .progress = peer_progress};

/* One operation; how many of the elements are right. */
static int right_elements(int how, int count, int *rc_p)
{
    const struct shk_allreduce_args args = {.type = SHK_INT32, .count = (size_t)count};
    int32_t *send = shk_heap_at(peer.wire.heap, SHK_AREA_SEND);
    int32_t *recv = shk_heap_at(peer.wire.heap, SHK_AREA_RECV);
    int right = 0;
    int i = 0;

    for (i = 0; i < count; i++) {
        send[i] = 1000 * (int)peer.wire.op + i;
        recv[i] = -1;
    }
    peer.how = how;
    peer.polls = 0;
    memcpy(peer.before, peer.packet, sizeof(peer.before));
    *rc_p = shk_allreduce(&peer.wire, &shk_allreduce_stamped, &args);
    for (i = 0; i < count; i++) {
        right += recv[i] == 2 * send[i];
    }
    return right;
}

Test(stamped, a_vector_is_taken_when_it_is_whole, .timeout = 60)
{
    static const int sizes[] = {SHORT, 1, 8, 9, COUNT}; /* no, one and many rounds of 8 words */
    struct shk_allreduce_layout layout;
    struct shk_job *job = NULL;
    struct shk_heap heap;
    uint64_t start = 0;
    int rc = 0;

    shk_allreduce_layout(2, 16384, &layout);
    cr_assert_eq(shk_heap_create(&heap, layout.length, NULL), 0);
    cr_assert_eq(shk_job_create(&job, 2, 0, NULL), 0);
    shk_job_join(job, 0);
    cr_assert_eq(shk_wire_init(&peer.wire, &peer_ops, job, &heap, 10, NULL), 0);
    cr_expect(shk_allreduce_stamped.fits(2, COUNT));
    cr_expect_not(shk_allreduce_stamped.fits(2, COUNT + 1));
    cr_expect_not(shk_allreduce_stamped.fits(1, 1));
    cr_expect_not(shk_allreduce_stamped.fits(17, 2048), "a slot is smaller then");
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int count = sizes[i];

        cr_expect_eq(right_elements(BACKWARDS, count, &rc), count, "stamp before data");
        cr_expect_eq(rc, 0);
        cr_expect_eq(peer.polls, (unsigned)count + 2, "not before the first word");
        cr_expect_eq(right_elements(BACKWARDS, count, &rc), count, "in the other slot");
        cr_expect_eq(right_elements(STALE, count, &rc), count, "what the operation before left");
        cr_expect_eq(peer.polls, 100);
        start = shk_job_now_ns();
        cr_expect_eq(right_elements(DAMAGED, count, &rc), count - 1, "for the verification");
        cr_expect_eq(rc, 0);
        cr_expect_gt(shk_job_now_ns() - start, UINT64_C(100000000), "after some patience");
    }
    (void)right_elements(NEVER, SHORT, &rc);
    cr_expect_eq(rc, -5, "a peer that is gone ends the wait");
    shk_wire_fini(&peer.wire);
    shk_job_destroy(job);
    shk_heap_destroy(&heap);
}

/* Ranks on processors of several kinds have to agree. */
Test(stamped, sums_are_the_same_on_all_processors, .timeout = 60)
{
    static unsigned char data[8192];
    uint32_t sums[3], other[3];
    size_t bytes = 0, count = 0, i = 0;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (bytes = 4; bytes <= sizeof(data); bytes += bytes < 600 ? 4 : 508) {
        count = shk_stamped_sums(data, bytes, 77, sums);
        cr_assert_geq(count, 1);
        for (i = 1; i < count; i++) {
            cr_expect_eq(sums[i], sums[0], "%zu bytes", bytes);
        }
        for (i = 0; i < bytes; i += bytes < 600 ? 1 : 97) {
            data[i] ^= 0x80;
            cr_expect_eq(shk_stamped_sums(data, bytes, 77, other), count);
            cr_expect_neq(other[0], sums[0], "byte %zu of %zu", i, bytes);
            data[i] ^= 0x80;
        }
        (void)shk_stamped_sums(data, bytes, 78, other);
        cr_expect_neq(other[0], sums[0], "of another operation");
    }
}

/* Measured with 32 bytes, chosen for what is a little longer: only as far as the wire drops it. */
Test(stamped, not_chosen_for_more_than_the_wire_drops, .timeout = 60)
{
    struct shk_tune tune = {.max_drop = 64};
    struct shk_tune_choice choice;
    uint32_t stamped = 0;

    while (shk_algorithms[stamped] != &shk_allreduce_stamped) {
        stamped++;
    }
    tune.choice[5] = (struct shk_tune_choice){.measured = true, .algorithm = stamped};
    choice = shk_tune_choose(&tune, 2, 14);
    cr_expect_eq(choice.algorithm, stamped);
    choice = shk_tune_choose(&tune, 2, 15);
    cr_expect_neq(choice.algorithm, stamped, "60 bytes and a stamp of 8");
    tune.max_drop = 128;
    choice = shk_tune_choose(&tune, 2, 30);
    cr_expect_eq(choice.algorithm, stamped);
}
