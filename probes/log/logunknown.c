#include "probes/log/logunknown.h"

#include "core/facts/facts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 300 }; /* bytes of a line that are kept */

struct shape {
    uint64_t hash;
    unsigned long long lines, line; /* how many; number of the first */
    char *file, *text;
};

/* Offsets of lines in the piece. */
struct starts {
    size_t *items, count, cap;
    bool unsorted;
};

struct shk_log_unknown {
    struct starts errors, explained;
    struct shape shapes[SHK_LOG_UNKNOWN_SHAPES];
    size_t count;
    unsigned long long lines; /* all of them */
    bool failed;
};

struct shk_log_unknown *shk_log_unknown_create(void)
{
    return calloc(1, sizeof(struct shk_log_unknown));
}

void shk_log_unknown_destroy(struct shk_log_unknown *unknown)
{
    if (!unknown)
        return;
    for (size_t i = 0; i < unknown->count; i++) {
        free(unknown->shapes[i].file);
        free(unknown->shapes[i].text);
    }
    free(unknown->errors.items);
    free(unknown->explained.items);
    free(unknown);
}

/* Matches come nearly in the order of lines. */
static bool push(struct starts *starts, size_t start)
{
    if (starts->count && starts->items[starts->count - 1] == start)
        return true;
    if (starts->count == starts->cap) {
        size_t cap = starts->cap ? starts->cap * 2 : 1024;
        size_t *more = reallocarray(starts->items, cap, sizeof *more);
        if (!more)
            return false;
        starts->items = more;
        starts->cap = cap;
    }
    starts->unsorted |= starts->count && starts->items[starts->count - 1] > start;
    starts->items[starts->count++] = start;
    return true;
}

void shk_log_unknown_error(struct shk_log_unknown *unknown, size_t line_start)
{
    unknown->failed |= !push(&unknown->errors, line_start);
}

void shk_log_unknown_explained(struct shk_log_unknown *unknown, size_t line_start)
{
    unknown->failed |= !push(&unknown->explained, line_start);
}

static int by_offset(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static void sort(struct starts *starts)
{
    if (starts->unsorted)
        qsort(starts->items, starts->count, sizeof *starts->items, by_offset);
}

static bool splits(char c)
{
    return strchr(" \t:;,=()[]{}<>\"'/|", c) != NULL;
}

/* Words with digits count as one and the same. */
static uint64_t shape_of(const char *line, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len;) {
        size_t start = i;
        bool digits = false;
        for (; i < len && !splits(line[i]); i++)
            digits |= line[i] >= '0' && line[i] <= '9';
        for (size_t k = start; !digits && k < i; k++)
            hash = (hash ^ (unsigned char)line[k]) * 0x100000001b3u;
        hash = (hash ^ (digits ? '#' : ' ')) * 0x100000001b3u;
        i += i < len;
    }
    return hash;
}

static bool fold(struct shk_log_unknown *unknown, const struct shk_logpiece *piece,
                 const char *file, size_t start)
{
    const char *line = piece->data + start;
    const char *end = memchr(line, '\n', piece->len - start);
    size_t len = end ? (size_t)(end - line) : piece->len - start;
    len -= len && line[len - 1] == '\r';
    uint64_t hash = shape_of(line, len < TEXT_MAX ? len : TEXT_MAX);
    unknown->lines++;
    for (size_t i = 0; i < unknown->count; i++)
        if (unknown->shapes[i].hash == hash) {
            unknown->shapes[i].lines++;
            return true;
        }
    if (unknown->count == SHK_LOG_UNKNOWN_SHAPES)
        return true;
    struct shape *shape = &unknown->shapes[unknown->count++];
    *shape = (struct shape){.hash = hash,
                            .lines = 1,
                            .line = piece->first_line + shk_logfile_breaks(piece->data, start)};
    shape->file = strdup(file);
    shape->text = strndup(line, len < TEXT_MAX ? len : TEXT_MAX);
    return shape->file && shape->text;
}

bool shk_log_unknown_settle(struct shk_log_unknown *unknown, const struct shk_logpiece *piece,
                            const char *file)
{
    struct starts *errors = &unknown->errors, *explained = &unknown->explained;
    size_t k = 0, last = SIZE_MAX;
    sort(errors);
    sort(explained);
    for (size_t i = 0; i < errors->count; i++) {
        size_t start = errors->items[i];
        while (k < explained->count && explained->items[k] < start)
            k++;
        bool known = k < explained->count && explained->items[k] == start;
        if (!known && start != last)
            unknown->failed |= !fold(unknown, piece, file, start);
        last = start;
    }
    errors->count = explained->count = 0;
    errors->unsorted = explained->unsorted = false;
    return !unknown->failed;
}

json_t *shk_log_unknown_json(const struct shk_log_unknown *unknown)
{
    if (!unknown->lines)
        return NULL;
    json_t *shapes = json_array();
    for (size_t i = 0; i < unknown->count; i++) {
        const struct shape *s = &unknown->shapes[i];
        json_array_append_new(shapes, json_pack("{s:o, s:I, s:o, s:I}", "file",
                                                shk_json_text(s->file, strlen(s->file)), "line",
                                                (json_int_t)s->line, "text",
                                                shk_json_text(s->text, strlen(s->text)), "lines",
                                                (json_int_t)s->lines));
    }
    return json_pack("{s:I, s:o}", "lines", (json_int_t)unknown->lines, "shapes", shapes);
}
