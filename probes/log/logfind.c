#include "probes/log/logfind.h"

#include "probes/log/logmask.h"
#include "probes/log/logmemo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* UNMASKED: pieces whose lines are all searched after one in which too few were known.
 * MATCHES_MAX: of a line that is kept. */
enum { UNMASKED = 15, MATCHES_MAX = 64 };

struct shk_logfind {
    struct shk_log_wanted wanted;
    struct shk_log_scratch *scratch, *wide_scratch;
    struct shk_log_memo *memo; /* NULL: every line is searched */
    size_t unmasked;           /* pieces left */
    size_t news;               /* bytes of the piece on lines with a new mask */
    uint32_t *line_of;         /* by id: the number of the line it was told of last */
    bool *told;                /* by id: in this piece */
    uint32_t line;             /* number of the line in the piece, from 1 */
    struct shk_log_found *found;
    bool failed;
};

void shk_log_found_free(struct shk_log_found *found)
{
    free(found->lines);
    free(found->matches);
    *found = (struct shk_log_found){.lines = NULL};
}

struct shk_logfind *shk_logfind_create(const struct shk_log_wanted *wanted)
{
    struct shk_logfind *find = calloc(1, sizeof *find);
    if (!find)
        return NULL;
    find->wanted = *wanted;
    find->line_of = calloc(wanted->count + 1, sizeof *find->line_of);
    find->told = calloc(wanted->count + 1, sizeof *find->told);
    if (find->line_of && find->told && !wanted->engine->scratch(wanted->exact, &find->scratch) &&
        (!wanted->wide || !shk_logfind_widen(find, wanted->wide)))
        return find;
    shk_logfind_destroy(find);
    return NULL;
}

int shk_logfind_widen(struct shk_logfind *find, const struct shk_log_set *wide)
{
    find->wanted.wide = wide;
    if (!find->memo)
        find->memo = shk_log_memo_create();
    return find->memo ? find->wanted.engine->scratch(wide, &find->wide_scratch) : -ENOMEM;
}

void shk_logfind_destroy(struct shk_logfind *find)
{
    if (!find)
        return;
    if (find->scratch)
        find->wanted.engine->scratch_destroy(find->scratch);
    if (find->wide_scratch)
        find->wanted.engine->scratch_destroy(find->wide_scratch);
    shk_log_memo_destroy(find->memo);
    free(find->line_of);
    free(find->told);
    free(find);
}

static void *room_for(void *items, size_t count, size_t *cap_p, size_t size)
{
    if (count < *cap_p)
        return items;
    size_t cap = *cap_p ? *cap_p * 2 : 4096;
    void *more = reallocarray(items, cap, size);
    if (more)
        *cap_p = cap;
    return more;
}

static bool found_begin(struct shk_log_found *found, size_t start, size_t end)
{
    struct shk_log_line *lines =
        room_for(found->lines, found->line_count, &found->line_cap, sizeof *lines);
    if (!lines)
        return false;
    found->lines = lines;
    lines[found->line_count] = (struct shk_log_line){
        .start = (uint32_t)start, .end = (uint32_t)end, .first = (uint32_t)found->match_count};
    return true;
}

static bool found_add(struct shk_log_found *found, const struct shk_log_match *match)
{
    struct shk_log_match *matches =
        room_for(found->matches, found->match_count, &found->match_cap, sizeof *matches);
    if (!matches)
        return false;
    found->matches = matches;
    matches[found->match_count++] = *match;
    return true;
}

static int on_match(void *arg, unsigned id, size_t to)
{
    struct shk_logfind *find = arg;
    if (find->line_of[id] == find->line && !find->wanted.every[id])
        return 0;
    find->line_of[id] = find->line;
    find->failed |= !found_add(find->found, &(struct shk_log_match){.id = id, .to = (uint32_t)to});
    return find->failed;
}

static int on_wide(void *arg, unsigned id, size_t to)
{
    (void)id;
    (void)to;
    *(bool *)arg = true;
    return 1; /* one is enough */
}

static int match_order(const void *a, const void *b)
{
    const struct shk_log_match *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static int line_search(struct shk_logfind *find, const char *line, size_t len)
{
    struct shk_log_found *found = find->found;
    size_t first = found->match_count;
    int rc =
        find->wanted.engine->search(find->wanted.exact, find->scratch, line, len, on_match, find);
    if (find->failed)
        return -ENOMEM;
    if (found->match_count > first + 1)
        qsort(found->matches + first, found->match_count - first, sizeof *found->matches,
              match_order);
    return rc;
}

/* Could one of the patterns that are not blind match a line with this mask? */
static int mask_judge(struct shk_logfind *find, const struct shk_logmask *mask, bool *told_p)
{
    *told_p = false;
    return find->wanted.engine->search(find->wanted.wide, find->wide_scratch, mask->text, mask->len,
                                       on_wide, told_p);
}

/* Keeps what was found in the line. */
static int mask_learn(struct shk_logfind *find, const struct shk_logmask *mask, size_t first)
{
    struct shk_log_known known = {.count = find->found->match_count - first};
    known.matches = known.count ? find->found->matches + first : NULL;
    int rc = mask_judge(find, mask, &known.told);
    known.told |= known.count > MATCHES_MAX;
    known.count = known.told ? 0 : known.count;
    if (!rc)
        shk_log_memo_add(find->memo, mask, &known);
    return rc;
}

/* Adds what the line holds to what was found. */
static int line_find(struct shk_logfind *find, const char *line, size_t len, size_t room)
{
    struct shk_logmask mask;
    struct shk_log_known known;
    size_t first = find->found->match_count;
    if (!find->memo || find->unmasked || len > SHK_LOGMASK_MAX)
        return line_search(find, line, len);
    shk_logmask(&mask, line, len, room);
    bool is_known = shk_log_memo_get(find->memo, &mask, &known);
    if (is_known && !known.told) {
        for (size_t i = 0; i < known.count; i++)
            if (!found_add(find->found, &known.matches[i]))
                return -ENOMEM;
        return 0;
    }
    int rc = line_search(find, line, len);
    if (rc || is_known)
        return rc;
    find->news += len;
    return mask_learn(find, &mask, first);
}

/* Leaves out what was told in the piece, where that is enough. */
static void found_end(struct shk_logfind *find)
{
    struct shk_log_found *found = find->found;
    struct shk_log_line *line = &found->lines[found->line_count];
    size_t kept = line->first;
    for (size_t i = line->first; i < found->match_count; i++) {
        uint32_t id = found->matches[i].id;
        if (find->wanted.once[id] && find->told[id])
            continue;
        find->told[id] = true;
        found->matches[kept++] = found->matches[i];
    }
    found->match_count = kept;
    line->count = (uint32_t)(kept - line->first);
    found->line_count += line->count > 0;
}

int shk_logfind_piece(struct shk_logfind *find, const char *data, size_t len,
                      struct shk_log_found *found)
{
    int rc = 0;
    find->found = found;
    find->line = 0;
    find->news = found->line_count = found->match_count = 0;
    memset(find->told, false, find->wanted.count * sizeof *find->told);
    memset(find->line_of, 0, find->wanted.count * sizeof *find->line_of);
    for (size_t at = 0, end; !rc && at < len; at = end + 1) {
        const char *stop = memchr(data + at, '\n', len - at);
        end = stop ? (size_t)(stop - data) : len;
        find->line++;
        if (!found_begin(found, at, end))
            return -ENOMEM;
        size_t ends = end > at && data[end - 1] == '\r' ? end - 1 : end;
        if (ends > at)
            rc = line_find(find, data + at, ends - at, len - at);
        found_end(find);
    }
    if (find->unmasked)
        find->unmasked--;
    else if (find->news > len / 4 * 3)
        find->unmasked = UNMASKED;
    return rc;
}
