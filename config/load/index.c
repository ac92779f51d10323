#include "config/load/index.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bit. */
static uint64_t index_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static struct shk_index_slot *index_slot(struct shk_index_slot *slots, size_t cap, const char *name)
{
    size_t i = (size_t)index_hash(name) & (cap - 1);
    while (slots[i].name && strcmp(slots[i].name, name) != 0)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static int index_grow(struct shk_index *index)
{
    size_t cap = index->cap ? index->cap * 2 : 64;
    struct shk_index_slot *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->cap; i++)
        if (index->slots[i].name)
            *index_slot(slots, cap, index->slots[i].name) = index->slots[i];
    free(index->slots);
    index->slots = slots;
    index->cap = cap;
    return 0;
}

int shk_index_set(struct shk_index *index, const char *name, size_t row)
{
    if (index->count * 2 >= index->cap && index_grow(index) < 0)
        return -ENOMEM;
    struct shk_index_slot *slot = index_slot(index->slots, index->cap, name);
    if (!slot->name)
        index->count++;
    slot->name = name;
    slot->row = row;
    return 0;
}

bool shk_index_find(const struct shk_index *index, const char *name, size_t *row_p)
{
    if (!index->cap)
        return false;
    const struct shk_index_slot *slot = index_slot(index->slots, index->cap, name);
    if (!slot->name)
        return false;
    *row_p = slot->row;
    return true;
}

void shk_index_free(struct shk_index *index)
{
    free(index->slots);
    *index = (struct shk_index){0};
}
