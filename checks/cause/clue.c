#include "checks/cause/clue.h"

#include <stdlib.h>
#include <string.h>

void shk_clue_add(struct shk_clues *clues, const char *key, int weight, bool specific, char *text)
{
    if (!text)
        clues->failed = true;
    if (!text || !key || !weight) {
        free(text);
        return;
    }
    if (clues->count == clues->cap) {
        size_t cap = clues->cap ? clues->cap * 2 : 16;
        struct shk_clue *more = reallocarray(clues->items, cap, sizeof *more);
        if (!more) {
            clues->failed = true;
            free(text);
            return;
        }
        clues->items = more;
        clues->cap = cap;
    }
    clues->items[clues->count++] =
        (struct shk_clue){.key = key, .weight = weight, .specific = specific, .text = text};
}

void shk_clue_seen(struct shk_clues *clues, const json_t *entry)
{
    if (clues->count)
        clues->items[clues->count - 1].seen = entry;
}

void shk_clues_free(struct shk_clues *clues)
{
    for (size_t i = 0; i < clues->count; i++) {
        free(clues->items[i].text);
        free(clues->items[i].release);
    }
    free(clues->items);
    *clues = (struct shk_clues){0};
}
