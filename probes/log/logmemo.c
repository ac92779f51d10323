#include "probes/log/logmemo.h"

#include <stdlib.h>
#include <string.h>

/* Masks of a log of a thousand ranks are some thousands. */
enum { SLOTS = 1 << 15, ENTRIES_MAX = SLOTS / 2, ROOM = 8 << 20 };

struct entry {
    uint64_t hash;
    uint32_t at; /* in the room: the matches, then the mask */
    uint16_t len, count;
    bool told;
};

struct shk_log_memo {
    uint16_t slots[SLOTS]; /* 0: free; else one more than the entry */
    struct entry entries[ENTRIES_MAX];
    size_t count, used; /* entries; bytes of the room */
    char room[ROOM];
};
_Static_assert(ENTRIES_MAX < UINT16_MAX, "an entry fits into a slot");

struct shk_log_memo *shk_log_memo_create(void)
{
    return calloc(1, sizeof(struct shk_log_memo)); /* what is not used takes no memory */
}

void shk_log_memo_destroy(struct shk_log_memo *memo)
{
    free(memo);
}

/* The slot of the mask, or the free one where it belongs. */
static size_t memo_slot(const struct shk_log_memo *memo, const struct shk_logmask *mask)
{
    size_t slot = mask->hash & (SLOTS - 1);
    for (; memo->slots[slot]; slot = (slot + 1) & (SLOTS - 1)) {
        const struct entry *entry = &memo->entries[memo->slots[slot] - 1];
        const char *text = memo->room + entry->at + entry->count * sizeof(struct shk_log_match);
        if (entry->hash == mask->hash && entry->len == mask->len &&
            memcmp(text, mask->text, mask->len) == 0)
            break;
    }
    return slot;
}

bool shk_log_memo_get(const struct shk_log_memo *memo, const struct shk_logmask *mask,
                      struct shk_log_known *known_p)
{
    size_t slot = memo_slot(memo, mask);
    if (!memo->slots[slot])
        return false;
    const struct entry *entry = &memo->entries[memo->slots[slot] - 1];
    *known_p = (struct shk_log_known){
        .matches = (const struct shk_log_match *)(const void *)(memo->room + entry->at),
        .count = entry->count,
        .told = entry->told};
    return true;
}

void shk_log_memo_add(struct shk_log_memo *memo, const struct shk_logmask *mask,
                      const struct shk_log_known *known)
{
    size_t matches = known->count * sizeof *known->matches, size = matches + mask->len;
    if (known->count > UINT16_MAX || size > ROOM / 64)
        return;
    if (memo->count == ENTRIES_MAX || memo->used + size + 8 > ROOM) {
        memset(memo->slots, 0, sizeof memo->slots);
        memo->count = memo->used = 0;
    }
    size_t slot = memo_slot(memo, mask);
    if (memo->slots[slot])
        return;
    struct entry *entry = &memo->entries[memo->count++];
    *entry = (struct entry){.hash = mask->hash,
                            .at = (uint32_t)memo->used,
                            .len = (uint16_t)mask->len,
                            .count = (uint16_t)known->count,
                            .told = known->told};
    if (matches)
        memcpy(memo->room + memo->used, known->matches, matches);
    memcpy(memo->room + memo->used + matches, mask->text, mask->len);
    memo->used += (size + 7) & ~(size_t)7;
    memo->slots[slot] = (uint16_t)memo->count;
}
