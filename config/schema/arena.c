#include "config/schema/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shk_arena_chunk {
    struct shk_arena_chunk *next;
    size_t used, size;
    max_align_t data[];
};

enum { ARENA_CHUNK = 16 << 10 };

static void *arena_new_chunk(struct shk_arena *arena, size_t size)
{
    size_t room = size > ARENA_CHUNK ? size : ARENA_CHUNK;
    struct shk_arena_chunk *chunk = calloc(1, sizeof *chunk + room);
    if (!chunk)
        return NULL;
    chunk->size = room;
    chunk->used = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk->data;
}

void *shk_arena_alloc(struct shk_arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + align - 1) / align * align : align;
    struct shk_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size)
        return arena_new_chunk(arena, size);
    void *p = (char *)chunk->data + chunk->used;
    chunk->used += size;
    return p;
}

void *shk_arena_array(struct shk_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return shk_arena_alloc(arena, count * size);
}

char *shk_arena_text(struct shk_arena *arena, const char *text, size_t len)
{
    char *copy = shk_arena_alloc(arena, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}

char *shk_arena_printf(struct shk_arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : shk_arena_alloc(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

void shk_arena_free(struct shk_arena *arena)
{
    while (arena->chunks) {
        struct shk_arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}
