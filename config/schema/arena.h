/* Memory that is freed all at once: the catalogue's rows and texts. */
#ifndef SHK_CONFIG_ARENA_H
#define SHK_CONFIG_ARENA_H

#include "core/text/error.h"
#include <stddef.h>

struct shk_arena_chunk;

/* Zeroed is empty. */
struct shk_arena {
    struct shk_arena_chunk *chunks;
};

/* Zeroed memory, aligned for any type, owned by the arena; NULL when out of memory. */
void *shk_arena_alloc(struct shk_arena *arena, size_t size);

/* As shk_arena_alloc() for count elements; NULL also when count * size overflows. */
void *shk_arena_array(struct shk_arena *arena, size_t count, size_t size);

/* Copy of len bytes with a NUL behind them. */
char *shk_arena_text(struct shk_arena *arena, const char *text, size_t len);

char *shk_arena_printf(struct shk_arena *arena, const char *fmt, ...) SHK_PRINTF(2, 3);

/* Frees everything and leaves the arena empty. */
void shk_arena_free(struct shk_arena *arena);

#endif
