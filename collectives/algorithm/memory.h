/* Memory of a symmetric heap that the CPU cannot reach, such as a GPU's; and what the all-reduce
 * does with a heap's data wherever it lies. In host memory these are the plain operations. */
#ifndef SHK_COLLECTIVES_MEMORY_H
#define SHK_COLLECTIVES_MEMORY_H

#include "collectives/algorithm/wire.h"
#include "collectives/ranks/data.h"
#include "collectives/ranks/reduce.h"
#include <string.h>

/* A kind of memory; first member of its owner's structure. Addresses are those of the heap's block,
 * never followed by the CPU; bytes and addresses are multiples of 4. Each call returns 0, or a
 * negative errno with text in err. What a call did is complete on return, for devices that read or
 * write the memory as well. */
struct shk_memory {
    int (*alloc)(struct shk_memory *memory, size_t bytes, unsigned char **base_p,
                 struct shk_error *err);
    void (*release)(struct shk_memory *memory, unsigned char *base);
    int (*fill)(struct shk_memory *memory, unsigned char *to, uint32_t word, size_t bytes,
                struct shk_error *err);
    int (*store)(struct shk_memory *memory, unsigned char *to, const void *from, size_t bytes,
                 struct shk_error *err);
    int (*load)(struct shk_memory *memory, void *to, const unsigned char *from, size_t bytes,
                struct shk_error *err);
    int (*copy)(struct shk_memory *memory, unsigned char *to, const unsigned char *from,
                size_t bytes, struct shk_error *err);
    /* dst = a + b; dst may be a or b. */
    int (*sum)(struct shk_memory *memory, enum shk_type type, unsigned char *dst,
               const unsigned char *a, const unsigned char *b, size_t count, struct shk_error *err);
};

/* On memory that is not the host's. Fail the wire on error. */
int shk_memory_sum(struct shk_wire *wire, enum shk_type type, void *dst, const void *a,
                   const void *b, size_t count);
int shk_memory_copy(struct shk_wire *wire, void *to, const void *from, size_t bytes);
int shk_memory_store(struct shk_wire *wire, enum shk_area area, size_t bytes);
int shk_memory_load(struct shk_wire *wire, enum shk_area area, size_t bytes);

/* dst = a + b over addresses of the wire's heap. */
static inline int shk_wire_sum(struct shk_wire *wire, enum shk_type type, void *dst, const void *a,
                               const void *b, size_t count)
{
    if (wire->heap->memory)
        return shk_memory_sum(wire, type, dst, a, b, count);
    shk_reduce_sum(type, dst, a, b, count);
    return 0;
}

static inline int shk_wire_copy(struct shk_wire *wire, void *to, const void *from, size_t bytes)
{
    if (wire->heap->memory)
        return shk_memory_copy(wire, to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

/* The first bytes of an area where the CPU sees them: fill them in, then store; or load, then look
 * at them. One area at a time. */
static inline void *shk_wire_stage(const struct shk_wire *wire, enum shk_area area)
{
    return wire->heap->memory ? wire->heap->stage : shk_heap_at(wire->heap, area);
}

static inline int shk_wire_store(struct shk_wire *wire, enum shk_area area, size_t bytes)
{
    return wire->heap->memory ? shk_memory_store(wire, area, bytes) : 0;
}

static inline int shk_wire_load(struct shk_wire *wire, enum shk_area area, size_t bytes)
{
    return wire->heap->memory ? shk_memory_load(wire, area, bytes) : 0;
}

/* shk_heap_poison(), failing the wire. */
int shk_wire_poison(struct shk_wire *wire, enum shk_area area, size_t from, size_t to);

#endif
