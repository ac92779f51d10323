#include "checks/readers/known.h"
#include "checks/base/look.h"
#include "core/text/order.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    size_t length;
    uint64_t letters; /* which occur: tells most pairs apart without a look at the text */
};

struct shk_known {
    struct entry *list;
    size_t count, cap;
    const char **sorted; /* made by the first question */
    size_t sorted_count;
};

static uint64_t letters_of(const char *name)
{
    uint64_t letters = 0;
    for (; *name; name++)
        letters |= 1ULL << (toupper((unsigned char)*name) & 63);
    return letters;
}

static struct entry entry_of(const char *name)
{
    return (struct entry){.name = name, .length = strlen(name), .letters = letters_of(name)};
}

struct shk_known *shk_known_create(void)
{
    return calloc(1, sizeof(struct shk_known));
}

void shk_known_destroy(struct shk_known *known)
{
    if (!known)
        return;
    free(known->list);
    free(known->sorted);
    free(known);
}

static void add_entry(struct shk_known *known, const struct entry *entry)
{
    if (known->count == known->cap) {
        size_t cap = known->cap ? known->cap * 2 : 256;
        struct entry *list = realloc(known->list, cap * sizeof(*list));
        if (!list)
            return; /* a suggestion less */
        known->list = list;
        known->cap = cap;
    }
    known->list[known->count++] = *entry;
}

void shk_known_add(struct shk_known *known, const char *name)
{
    if (!known || !name)
        return;
    struct entry entry = entry_of(name);
    add_entry(known, &entry);
}

void shk_known_add_array(struct shk_known *known, const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        const char *name = json_string_value(item);
        if (!name)
            (void)shk_look_member_text(item, "name", &name);
        shk_known_add(known, name);
    }
}

void shk_known_add_all(struct shk_known *known, const struct shk_known *more)
{
    for (size_t i = 0; known && i < shk_known_count(more); i++)
        add_entry(known, &more->list[i]);
}

size_t shk_known_count(const struct shk_known *known)
{
    return known ? known->count : 0;
}

/* False when there is no memory for it. */
static bool sort(struct shk_known *known)
{
    if (known->sorted_count == known->count)
        return true;
    const char **sorted = realloc(known->sorted, known->count * sizeof(*sorted));
    if (!sorted)
        return false;
    for (size_t i = 0; i < known->count; i++)
        sorted[i] = known->list[i].name;
    qsort(sorted, known->count, sizeof(*sorted), shk_order_text);
    known->sorted = sorted;
    known->sorted_count = known->count;
    return true;
}

bool shk_known_has(struct shk_known *known, const char *name)
{
    if (!shk_known_count(known))
        return false;
    if (sort(known))
        return bsearch(&name, known->sorted, known->count, sizeof(name), shk_order_text) != NULL;
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->list[i].name, name) == 0)
            return true;
    return false;
}

/* Every letter of `part` occurs in `whole`. */
static bool within(const struct entry *part, const struct entry *whole)
{
    return (part->letters & ~whole->letters) == 0;
}

/* Every word (between '_') of `a` is one of `b`, which is as long. */
static bool same_words(const struct entry *a, const struct entry *b)
{
    if (a->length != b->length || !within(a, b))
        return false;
    for (const char *pos = a->name; pos;) {
        const char *start = pos, *end = strchr(pos, '_');
        size_t len = end ? (size_t)(end - pos) : strlen(pos);
        pos = end ? end + 1 : NULL;
        bool found = false;
        for (const char *q = b->name; q && !found;) {
            const char *other = q, *stop = strchr(q, '_');
            size_t other_len = stop ? (size_t)(stop - q) : strlen(q);
            q = stop ? stop + 1 : NULL;
            found = other_len == len && strncmp(start, other, len) == 0;
        }
        if (!found)
            return false;
    }
    return true;
}

/* `more` is `less` with one word more, anywhere. */
static bool one_word_more(const struct entry *more, const struct entry *less)
{
    if (more->length <= less->length + 1 || !within(less, more))
        return false;
    const char *longer = more->name, *shorter = less->name;
    size_t head = 0;
    while (shorter[head] && longer[head] == shorter[head])
        head++;
    while (head && longer[head - 1] != '_' && !(shorter[head] == '\0' && longer[head] == '_'))
        head--;
    size_t extra = more->length - less->length; /* "_WORD" or "WORD_" */
    if (strcmp(longer + head + extra, shorter + head) != 0)
        return false;
    size_t underscores = 0;
    for (size_t i = head; i < head + extra; i++)
        underscores += longer[i] == '_';
    return underscores == 1;
}

static size_t ones(uint64_t bits)
{
    return (size_t)__builtin_popcountll(bits);
}

/* As shk_nearest(): a letter that only one of the two has costs at least one edit. */
static const char *few_edits(const struct shk_known *known, const struct entry *wanted)
{
    size_t limit = shk_nearest_limit(wanted->length);
    const char *found = NULL;
    for (size_t i = 0; i < known->count; i++) {
        const struct entry *e = &known->list[i];
        size_t gap =
            e->length > wanted->length ? e->length - wanted->length : wanted->length - e->length;
        if (gap > limit || ones(e->letters & ~wanted->letters) > limit ||
            ones(wanted->letters & ~e->letters) > limit || strcmp(wanted->name, e->name) == 0)
            continue;
        size_t d = shk_edit_distance_within(wanted->name, e->name, limit);
        if (d <= limit) {
            found = e->name;
            if (d == 0)
                break; /* but for capitals */
            limit = d - 1;
        }
    }
    return found;
}

const char *shk_known_nearest(const struct shk_known *known, const char *name)
{
    if (!shk_known_count(known) || !*name)
        return NULL;
    struct entry wanted = entry_of(name);
    const char *near = few_edits(known, &wanted);
    if (near)
        return near;
    const struct entry *more = NULL, *less = NULL; /* the shortest longer name, the first shorter */
    for (size_t i = 0; i < known->count; i++) {
        const struct entry *e = &known->list[i];
        if (e->length == wanted.length) {
            if (same_words(&wanted, e) && strcmp(name, e->name) != 0)
                return e->name;
        } else if (e->length > wanted.length) {
            if ((!more || e->length < more->length) && one_word_more(e, &wanted))
                more = e;
        } else if (!less && one_word_more(&wanted, e) &&
                   strchr(e->name, '_') != strrchr(e->name, '_')) {
            less = e;
        }
    }
    return more ? more->name : less ? less->name : NULL;
}
