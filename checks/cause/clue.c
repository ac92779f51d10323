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

void shk_clues_gather(struct shk_clues *clues, const struct shk_config *config,
                      const struct shk_findings *findings, const struct shk_facts *const *facts,
                      size_t nodes, bool part)
{
    if (nodes)
        shk_clues_from_log(clues, config, facts[0]);
    shk_clues_of_alike(clues, config, facts, nodes);
    shk_clues_from_values(clues, config, facts, nodes);
    shk_clues_from_defects(clues, config, facts, nodes);
    for (size_t i = 0; part && i < nodes; i++) {
        const struct shk_clue_source src = {config, facts[i], findings};
        shk_clues_from_checks(clues, &src);
    }
    if (part)
        shk_clues_from_clashes(clues, config, facts, nodes);
    shk_clues_in_context(clues, config, facts, nodes);
}
