#include "collectives/algorithm/allreduce.h"
#include "collectives/algorithm/allreduce_private.h"

/* Where one-shot ends when nothing was measured. Its traffic grows with the ranks, so does not the
 * limit. From docs/dev/performance.md: 2 to 8 ranks over tcp and shm. */
#define ONESHOT_BYTES_2 ((size_t)32768)
#define ONESHOT_BYTES   ((size_t)8192)

/* Bytes on the way to a peer: several pieces, but no more than caches hold. Over tcp the rate
 * halves when socket buffers outgrow them. */
#define AHEAD_BYTES ((size_t)524288)

/* Slots of many ranks would take more memory than they are worth. */
#define SLOT_BYTES_FEW  ((size_t)65536)
#define SLOT_BYTES_MANY ((size_t)8192)
#define SLOT_RANKS_FEW  16U

const struct shk_algorithm *const shk_algorithms[] = {
    &shk_allreduce_single,   &shk_allreduce_oneshot, &shk_allreduce_stamped,
    &shk_allreduce_doubling, &shk_allreduce_halving, &shk_allreduce_twoshot,
    &shk_allreduce_pull,     &shk_allreduce_readall, &shk_allreduce_readpart,
    &shk_allreduce_inplace,  &shk_allreduce_ring,    NULL,
};

static unsigned algorithm_index(const struct shk_algorithm *algorithm)
{
    unsigned i = 0;

    while (shk_algorithms[i] != algorithm)
        i++;
    return i;
}

unsigned shk_algorithm_default(unsigned ranks, size_t count)
{
    size_t limit = ranks <= 2 ? ONESHOT_BYTES_2 : ONESHOT_BYTES;

    if (ranks == 1)
        return algorithm_index(&shk_allreduce_single);
    return algorithm_index(count * SHK_TYPE_BYTES <= limit ? &shk_allreduce_oneshot
                                                           : &shk_allreduce_ring);
}

size_t shk_slot_bytes(unsigned ranks)
{
    return ranks <= SLOT_RANKS_FEW ? SLOT_BYTES_FEW : SLOT_BYTES_MANY;
}

static size_t cut_round(size_t elements)
{
    return (elements + SHK_CHUNK_ALIGN - 1) / SHK_CHUNK_ALIGN * SHK_CHUNK_ALIGN;
}

size_t shk_cut_chunk(unsigned parts, size_t count)
{
    return cut_round((count + parts - 1) / parts);
}

struct shk_cut shk_cut(unsigned parts, size_t count, size_t piece_bytes)
{
    struct shk_cut cut = {.count = count, .chunk = shk_cut_chunk(parts, count)};
    size_t least = cut_round((cut.chunk + SHK_PIECES - 1) / SHK_PIECES);

    cut.piece = (piece_bytes != 0 ? piece_bytes : SHK_PIECE_BYTES) / SHK_TYPE_BYTES;
    cut.piece = cut.piece > least ? cut.piece : least;
    cut.pieces = (cut.chunk + cut.piece - 1) / cut.piece;
    return cut;
}

size_t shk_cut_ahead(const struct shk_wire *wire, const struct shk_cut *cut)
{
    size_t ahead = AHEAD_BYTES / SHK_TYPE_BYTES / cut->piece;

    return (ahead > 2 ? ahead : 2) * wire->lanes;
}

void shk_cut_range(const struct shk_cut *cut, unsigned chunk, size_t piece, size_t *from_p,
                   size_t *to_p)
{
    size_t from = chunk * cut->chunk + piece * cut->piece;
    size_t end = (chunk + 1) * cut->chunk < cut->count ? (chunk + 1) * cut->chunk : cut->count;

    *from_p = from < end ? from : end;
    *to_p = from + cut->piece < end ? from + cut->piece : end;
    if (*to_p < *from_p)
        *to_p = *from_p;
}

int shk_add_areas(struct shk_wire *wire, enum shk_type type, enum shk_area dst, enum shk_area a,
                  enum shk_area b, size_t from, size_t to)
{
    const struct shk_heap *heap = wire->heap;
    size_t at = from * SHK_TYPE_BYTES;

    return shk_wire_sum(wire, type, (unsigned char *)shk_heap_at(heap, dst) + at,
                        (unsigned char *)shk_heap_at(heap, a) + at,
                        (unsigned char *)shk_heap_at(heap, b) + at, to - from);
}

void shk_allreduce_layout(unsigned ranks, size_t max_bytes, struct shk_allreduce_layout *layout)
{
    size_t chunk = shk_cut_chunk(ranks, max_bytes / SHK_TYPE_BYTES) * SHK_TYPE_BYTES;
    size_t slot = max_bytes < shk_slot_bytes(ranks) ? max_bytes : shk_slot_bytes(ranks);
    size_t slots = ranks > 1 ? ranks * shk_slot_bytes(ranks) : 0;
    size_t parts = ranks > 1 ? ranks * chunk : 0;

    *layout = (struct shk_allreduce_layout){
        .length = {[SHK_AREA_SEND] = max_bytes,
                   [SHK_AREA_RECV] = max_bytes,
                   [SHK_AREA_SLOT0] = slots,
                   [SHK_AREA_SLOT1] = slots,
                   [SHK_AREA_PART0] = parts,
                   [SHK_AREA_PART1] = parts},
        /* Two-shot, pull and in-place use the most: two per rank and piece, and one per rank. */
        .indices = ranks * (2 * (uint32_t)SHK_PIECES + 1),
        .max_put = chunk > slot ? chunk : slot,
    };
    if (ranks >= 4 && layout->max_put < max_bytes / 2 + chunk) {
        layout->max_put = max_bytes / 2 + chunk; /* halving's first step */
    }
}

int shk_allreduce(struct shk_wire *wire, const struct shk_algorithm *algorithm,
                  const struct shk_allreduce_args *args)
{
    shk_wire_begin(wire);
    return algorithm->run(wire, args);
}
