/* What the all-reduce algorithms share: how a vector is cut, and where things lie in the heap. */
#ifndef SHK_COLLECTIVES_ALLREDUCE_PRIVATE_H
#define SHK_COLLECTIVES_ALLREDUCE_PRIVATE_H

#include "collectives/algorithm/allreduce.h"
#include "collectives/algorithm/memory.h"

/* Pieces that one chunk is cut into at most. */
#define SHK_PIECES ((size_t)64)

/* Chunks begin on a cache line. */
#define SHK_CHUNK_ALIGN ((size_t)64 / SHK_TYPE_BYTES)

/* Largest vector that one-shot and recursive doubling have room for: bytes of one slot. */
size_t shk_slot_bytes(unsigned ranks);

/* A vector and its stamp at most. */
#define SHK_STAMPED_PACKET ((size_t)8192 + 64)

/* The sum of a stamp in each way that this processor has (3 at most), which are all the same: for
 * tests. Returns how many. */
size_t shk_stamped_sums(const unsigned char *data, size_t bytes, uint32_t op, uint32_t *sums);

/* A vector cut into one chunk per part, and each chunk into pieces; in elements. */
struct shk_cut {
    size_t count;
    size_t chunk;
    size_t piece;
    size_t pieces;
};

size_t shk_cut_chunk(unsigned parts, size_t count);
/* piece_bytes 0: SHK_PIECE_BYTES; larger where there would be more than SHK_PIECES. */
struct shk_cut shk_cut(unsigned parts, size_t count, size_t piece_bytes);
/* Pieces to send ahead of those that came in. More would only queue up on the way, outside the
 * caches; fewer would leave lanes idle. */
size_t shk_cut_ahead(const struct shk_wire *wire, const struct shk_cut *cut);
/* Elements [from, to) of a piece of a chunk; empty where the vector ends earlier. */
void shk_cut_range(const struct shk_cut *cut, unsigned chunk, size_t piece, size_t *from_p,
                   size_t *to_p);

/* Adds up elements [from, to) of two areas of the heap, at the same places, into a third. */
int shk_add_areas(struct shk_wire *wire, enum shk_type type, enum shk_area dst, enum shk_area a,
                  enum shk_area b, size_t from, size_t to);

/* Area for this operation's arrivals: a peer may already be in the next one. */
static inline enum shk_area shk_area_by_turn(const struct shk_wire *wire, enum shk_area even)
{
    return (enum shk_area)(even + shk_wire_parity(wire));
}

/* Where ranks map each other's heaps: every rank copies its part of each rank's vector from that
 * rank's send area to its receive area, piece by piece, and waits until all have. That is what
 * read-part reads and writes, without the sums. */
int shk_mapped_copy(struct shk_wire *wire, size_t count, size_t piece_bytes) SHK_MUST_CHECK;

extern const struct shk_algorithm shk_allreduce_single;
extern const struct shk_algorithm shk_allreduce_oneshot;
extern const struct shk_algorithm shk_allreduce_stamped;
extern const struct shk_algorithm shk_allreduce_doubling;
extern const struct shk_algorithm shk_allreduce_halving;
extern const struct shk_algorithm shk_allreduce_twoshot;
extern const struct shk_algorithm shk_allreduce_pull;
extern const struct shk_algorithm shk_allreduce_readall;
extern const struct shk_algorithm shk_allreduce_readpart;
extern const struct shk_algorithm shk_allreduce_inplace;
extern const struct shk_algorithm shk_allreduce_ring;

#endif
