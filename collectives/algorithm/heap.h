/* Symmetric heap: one registered block per rank, laid out alike on every rank, so that an offset
 * means the same everywhere. Areas are separated by guard zones that nobody may write to. */
#ifndef SHK_COLLECTIVES_HEAP_H
#define SHK_COLLECTIVES_HEAP_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page: areas start on one, and a stray write of a typical size lands in the guard. */
#define SHK_HEAP_GUARD ((size_t)4096)

enum shk_area {
    SHK_AREA_SEND,
    SHK_AREA_RECV,
    SHK_AREA_SLOT0, /* one-shot: a vector of each rank, for even operations */
    SHK_AREA_SLOT1, /* … and odd ones: a fast rank is at most one operation ahead */
    SHK_AREA_PART0, /* ring: partial sums, even and odd */
    SHK_AREA_PART1,
    SHK_AREA_RAIL, /* tokens of the transport, which try its rails */
    SHK_AREA_COUNT
};

struct shk_memory; /* memory.h */

struct shk_heap {
    unsigned char *base;
    struct shk_memory *memory; /* NULL: host memory, which base points to */
    unsigned char *stage;      /* else: host memory for the longest area */
    bool borrowed;             /* base is the caller's */
    size_t bytes;              /* whole block, multiple of the page size */
    size_t offset[SHK_AREA_COUNT];
    size_t length[SHK_AREA_COUNT];
};

/* Maps the block, fills guards with the guard pattern and areas with poison. A length of 0 gives an
 * empty area. -ENOMEM, -EOVERFLOW. */
int shk_heap_create(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                    struct shk_error *err) SHK_MUST_CHECK;
/* The same in memory of that kind, which must live as long as the heap. Lengths are multiples of 4.
 */
int shk_heap_create_in(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                       struct shk_memory *memory, struct shk_error *err) SHK_MUST_CHECK;
/* The same in memory that the caller has mapped, of shk_heap_bytes() bytes, which it also unmaps.
 * -EOVERFLOW. */
int shk_heap_create_at(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                       unsigned char *base, struct shk_error *err) SHK_MUST_CHECK;
/* Bytes of a whole block. */
int shk_heap_bytes(const size_t length[SHK_AREA_COUNT], size_t *bytes_p,
                   struct shk_error *err) SHK_MUST_CHECK;
void shk_heap_destroy(struct shk_heap *heap);
static inline void *shk_heap_at(const struct shk_heap *heap, enum shk_area area)
{
    return heap->base + heap->offset[area];
}

/* Fills bytes [from, to) of an area with poison: a float that no sum can be, so that an element
 * that never arrived is seen. from is a multiple of 4. Never fails in host memory. */
int shk_heap_poison(struct shk_heap *heap, enum shk_area area, size_t from, size_t to,
                    struct shk_error *err);

/* 0 when bytes [from, end) of the area still hold poison; -EILSEQ with the offset in the text;
 * another error when memory that is not the host's cannot be read.
 * from is a multiple of 4. */
int shk_heap_poisoned(const struct shk_heap *heap, enum shk_area area, size_t from,
                      struct shk_error *err) SHK_MUST_CHECK;

/* 0 when every guard is whole; -EILSEQ naming the first byte that is not, and the areas around it;
 * another error when memory that is not the host's cannot be read. */
int shk_heap_check(const struct shk_heap *heap, struct shk_error *err) SHK_MUST_CHECK;

#endif
