#include "collectives/algorithm/memory.h"

static int memory_done(struct shk_wire *wire, int rc, const struct shk_error *err)
{
    return rc < 0 ? shk_wire_fail(wire, -rc, false, "%s", err->text) : 0;
}

int shk_memory_sum(struct shk_wire *wire, enum shk_type type, void *dst, const void *a,
                   const void *b, size_t count)
{
    struct shk_memory *memory = wire->heap->memory;
    struct shk_error err = {{0}};

    return memory_done(wire, memory->sum(memory, type, dst, a, b, count, &err), &err);
}

int shk_memory_copy(struct shk_wire *wire, void *to, const void *from, size_t bytes)
{
    struct shk_memory *memory = wire->heap->memory;
    struct shk_error err = {{0}};

    return memory_done(wire, memory->copy(memory, to, from, bytes, &err), &err);
}

int shk_memory_store(struct shk_wire *wire, enum shk_area area, size_t bytes)
{
    struct shk_heap *heap = wire->heap;
    struct shk_error err = {{0}};

    return memory_done(
        wire, heap->memory->store(heap->memory, shk_heap_at(heap, area), heap->stage, bytes, &err),
        &err);
}

int shk_memory_load(struct shk_wire *wire, enum shk_area area, size_t bytes)
{
    struct shk_heap *heap = wire->heap;
    struct shk_error err = {{0}};

    return memory_done(
        wire, heap->memory->load(heap->memory, heap->stage, shk_heap_at(heap, area), bytes, &err),
        &err);
}

int shk_wire_poison(struct shk_wire *wire, enum shk_area area, size_t from, size_t to)
{
    struct shk_error err = {{0}};

    return memory_done(wire, shk_heap_poison(wire->heap, area, from, to, &err), &err);
}
