/* Memory for tests that the CPU cannot reach at its addresses: whoever follows one crashes. */
#ifndef SHK_TESTS_HIDDEN_H
#define SHK_TESTS_HIDDEN_H

#include "collectives/algorithm/memory.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct hidden_memory {
    struct shk_memory memory;
    unsigned char *base;   /* what the heap sees */
    unsigned char *behind; /* where it is; NULL: alloc() makes it */
    size_t bytes;
    unsigned fail_after; /* calls that work before one fails; 0: all work */
    unsigned calls;
};

static int hidden_call(struct shk_memory *memory, struct shk_error *err)
{
    struct hidden_memory *hidden = (struct hidden_memory *)memory;

    hidden->calls++;
    return hidden->fail_after != 0 && hidden->calls > hidden->fail_after
               ? shk_error_set(err, EIO, "the memory is gone")
               : 0;
}

static unsigned char *hidden_at(struct shk_memory *memory, const unsigned char *at)
{
    struct hidden_memory *hidden = (struct hidden_memory *)memory;

    return hidden->behind + (at - hidden->base);
}

static int hidden_alloc(struct shk_memory *memory, size_t bytes, unsigned char **base_p,
                        struct shk_error *err)
{
    struct hidden_memory *hidden = (struct hidden_memory *)memory;

    hidden->bytes = bytes;
    hidden->base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (hidden->behind == NULL) {
        hidden->behind =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    *base_p = hidden->base;
    return hidden_call(memory, err);
}

static void hidden_release(struct shk_memory *memory, unsigned char *base)
{
    struct hidden_memory *hidden = (struct hidden_memory *)memory;

    munmap(base, hidden->bytes);
    hidden->base = NULL;
}

static int hidden_fill(struct shk_memory *memory, unsigned char *to, uint32_t word, size_t bytes,
                       struct shk_error *err)
{
    unsigned char *at = hidden_at(memory, to);
    size_t done = sizeof(word);

    memcpy(at, &word, bytes < done ? bytes : done);
    for (; done < bytes; done *= 2) {
        memcpy(at + done, at, bytes - done < done ? bytes - done : done);
    }
    return hidden_call(memory, err);
}

static int hidden_store(struct shk_memory *memory, unsigned char *to, const void *from,
                        size_t bytes, struct shk_error *err)
{
    memcpy(hidden_at(memory, to), from, bytes);
    return hidden_call(memory, err);
}

static int hidden_load(struct shk_memory *memory, void *to, const unsigned char *from, size_t bytes,
                       struct shk_error *err)
{
    memcpy(to, hidden_at(memory, from), bytes);
    return hidden_call(memory, err);
}

static int hidden_copy(struct shk_memory *memory, unsigned char *to, const unsigned char *from,
                       size_t bytes, struct shk_error *err)
{
    memcpy(hidden_at(memory, to), hidden_at(memory, from), bytes);
    return hidden_call(memory, err);
}

static int hidden_sum(struct shk_memory *memory, enum shk_type type, unsigned char *dst,
                      const unsigned char *a, const unsigned char *b, size_t count,
                      struct shk_error *err)
{
    shk_reduce_sum(type, hidden_at(memory, dst), hidden_at(memory, a), hidden_at(memory, b), count);
    return hidden_call(memory, err);
}

static const struct shk_memory hidden_ops = {
    .alloc = hidden_alloc,
    .release = hidden_release,
    .fill = hidden_fill,
    .store = hidden_store,
    .load = hidden_load,
    .copy = hidden_copy,
    .sum = hidden_sum,
};

#endif
