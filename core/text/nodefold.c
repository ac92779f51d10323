#include "core/text/nodefold.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name split around its last run of digits: prefix [0, start), digits [start, end), suffix. It
 * stands for all names up to the one with the number `last`. */
struct fold_name {
    const char *text;
    size_t start, end;
    unsigned long long number, last;
};

static struct fold_name fold_split(const char *text)
{
    struct fold_name n = {.text = text};
    n.end = strlen(text);
    while (n.end && !isdigit((unsigned char)text[n.end - 1]))
        n.end--;
    n.start = n.end;
    while (n.start && isdigit((unsigned char)text[n.start - 1]))
        n.start--;
    if (n.end - n.start > 18) /* more digits than the number can hold: not folded */
        n.start = n.end = strlen(text);
    for (size_t i = n.start; i < n.end; i++)
        n.number = 10 * n.number + (unsigned long long)(text[i] - '0');
    n.last = n.number;
    return n;
}

static bool fold_alike(const struct fold_name *a, const struct fold_name *b)
{
    return a->end > a->start && a->start == b->start && a->end == b->end &&
           memcmp(a->text, b->text, a->start) == 0 &&
           strcmp(a->text + a->end, b->text + b->end) == 0;
}

static int fold_cmp(const void *pa, const void *pb)
{
    const struct fold_name *a = pa, *b = pb;
    if (fold_alike(a, b) && a->number != b->number)
        return a->number < b->number ? -1 : 1;
    size_t la = a->start, lb = b->start;
    int d = strncmp(a->text, b->text, la < lb ? la : lb);
    if (d)
        return d;
    if (la != lb)
        return la < lb ? -1 : 1;
    size_t da = a->end - a->start, db = b->end - b->start;
    if (da != db)
        return da < db ? -1 : 1;
    d = strcmp(a->text + a->end, b->text + b->end);
    return d ? d : strcmp(a->text, b->text);
}

static void fold_number(struct shk_strbuf *out, const struct fold_name *n)
{
    shk_strbuf_add(out, n->text + n->start, n->end - n->start);
}

/* How many of names[0..count), which are alike and ascending, make one range; where it ends. */
static size_t fold_range(const struct fold_name *names, size_t count, unsigned long long *last_p)
{
    size_t end = 1;
    *last_p = names[0].last;
    for (; end < count && names[end].number <= *last_p + 1; end++)
        if (names[end].last > *last_p)
            *last_p = names[end].last;
    return end;
}

/* Appends names[0..count), which are alike and ascending. */
static void fold_group(struct shk_strbuf *out, const struct fold_name *names, size_t count)
{
    unsigned long long last;
    int width = (int)(names[0].end - names[0].start);
    if (fold_range(names, count, &last) == count && last == names[0].number) {
        shk_strbuf_puts(out, names[0].text);
        return;
    }
    shk_strbuf_add(out, names[0].text, names[0].start);
    shk_strbuf_putc(out, '[');
    for (size_t i = 0, n; i < count; i += n) {
        n = fold_range(names + i, count - i, &last);
        shk_strbuf_puts(out, i ? "," : "");
        fold_number(out, &names[i]);
        if (last > names[i].number)
            shk_strbuf_printf(out, "-%0*llu", width, last);
    }
    shk_strbuf_putc(out, ']');
    shk_strbuf_puts(out, names[0].text + names[0].end);
}

static bool fold_is_sorted(const struct fold_name *names, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (fold_cmp(&names[i - 1], &names[i]) > 0)
            return false;
    return true;
}

static void fold_write(struct shk_strbuf *out, struct fold_name *names, size_t count)
{
    if (!fold_is_sorted(names, count))
        qsort(names, count, sizeof *names, fold_cmp);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && fold_alike(&names[i], &names[end]); end++)
            ;
        shk_strbuf_puts(out, i ? "," : "");
        fold_group(out, &names[i], end - i);
    }
}

static void fold_plain(struct shk_strbuf *out, const char *const *names, size_t count)
{
    struct fold_name *sorted = calloc(count ? count : 1, sizeof *sorted);
    if (!sorted) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = fold_split(names[i]);
    fold_write(out, sorted, count);
    free(sorted);
}

enum {
    FOLD_NAME = 255,    /* longest host name that DNS allows */
    FOLD_DIGITS = 18,   /* of a number */
    FOLD_BRACKETS = 4,  /* in one name */
    FOLD_TOTAL = 262144 /* more than any machine has nodes; a few words can mean it */
};

struct fold_each {
    void (*fn)(const char *name, void *arg);
    void *arg;
    size_t left;
    bool bad, full; /* bad: this name */
};

static void fold_give(struct fold_each *each, const char *name, size_t len)
{
    each->bad |= !len || len > FOLD_NAME;
    each->full |= !each->bad && !each->left;
    if (!each->bad && !each->full) {
        each->left--;
        each->fn(name, each->arg);
    }
}

/* "001" at *at_p; its value, its width. */
static bool fold_read(const char **at_p, unsigned long long *value_p, int *width_p)
{
    size_t n = strspn(*at_p, "0123456789");
    if (!n || n > FOLD_DIGITS)
        return false;
    *value_p = strtoull(*at_p, NULL, 10);
    *width_p = (int)n;
    *at_p += n;
    return true;
}

/* One name, of which `head` is done: at the next bracket every number is tried. */
static void fold_expand(struct fold_each *each, const char *head, const char *rest, size_t len,
                        unsigned depth)
{
    const char *open = memchr(rest, '[', len), *close = open ? strchr(open, ']') : NULL;
    char name[FOLD_NAME + 1];
    if (!open) {
        int n = snprintf(name, sizeof name, "%s%.*s", head, (int)len, rest);
        fold_give(each, name, n > 0 ? (size_t)n : 0);
        return;
    }
    each->bad |= !close || close >= rest + len || close == open + 1 || depth >= FOLD_BRACKETS;
    for (const char *at = open + 1; !each->bad && !each->full && at < close; at++) {
        unsigned long long from = 0, to;
        int width = 0, unused;
        each->bad = !fold_read(&at, &from, &width);
        to = from;
        if (*at == '-' && (at++, !fold_read(&at, &to, &unused)))
            each->bad = true;
        each->bad |= to < from || (at != close && (*at != ',' || at + 1 == close));
        for (unsigned long long i = from; i <= to && !each->bad && !each->full; i++) {
            int n = snprintf(name, sizeof name, "%s%.*s%0*llu", head, (int)(open - rest), rest,
                             width, i);
            each->bad = n < 0 || (size_t)n >= sizeof name;
            if (!each->bad)
                fold_expand(each, name, close + 1, (size_t)(rest + len - close - 1), depth + 1);
        }
    }
}

/* Up to the next ',' that is in no bracket. */
static size_t fold_length(const char *list)
{
    size_t len = 0;
    for (bool in = false; list[len] && (in || list[len] != ','); len++)
        in = list[len] == '[' || (in && list[len] != ']');
    return len;
}

int shk_nodefold_each(const char *list, size_t most, void (*fn)(const char *name, void *arg),
                      void *arg)
{
    struct fold_each each = {.fn = fn, .arg = arg, .left = most};
    bool bad = false;
    for (size_t len; *list && !each.full; list += len + (list[len] == ',')) {
        len = fold_length(list);
        each.bad = false;
        fold_expand(&each, "", list, len, 0);
        bad |= each.bad;
    }
    return each.full ? -E2BIG : bad ? -EINVAL : 0;
}

struct fold_names {
    char **names;
    size_t count;
    bool failed, more; /* more: there are names beyond FOLD_TOTAL */
};

static void fold_collect(const char *name, void *arg)
{
    struct fold_names *all = arg;
    all->more |= all->count == FOLD_TOTAL;
    if (all->more)
        return;
    if ((all->count & (all->count - 1)) == 0) {
        char **more = realloc(all->names, (all->count ? 2 * all->count : 1) * sizeof *more);
        if (!more) {
            all->failed = true;
            return;
        }
        all->names = more;
    }
    all->names[all->count] = strdup(name);
    if (all->names[all->count])
        all->count++;
    else
        all->failed = true;
}

static void fold_join(struct shk_strbuf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        shk_strbuf_printf(out, "%s%s", i ? "," : "", names[i]);
}

/* Lists that are folded already, as ranges: no name is written out. */
struct fold_ranges {
    struct fold_name *names; /* each text is owned */
    size_t count, cap;
    unsigned long long total; /* names that they stand for */
    bool failed;
};

static void ranges_add(struct fold_ranges *ranges, char *text, unsigned long long last)
{
    if (text && ranges->count == ranges->cap) {
        size_t cap = ranges->cap ? 2 * ranges->cap : 16;
        struct fold_name *more = realloc(ranges->names, cap * sizeof *more);
        if (!more) {
            free(text);
            text = NULL;
        } else {
            ranges->names = more;
            ranges->cap = cap;
        }
    }
    ranges->failed |= !text;
    if (!text)
        return;
    struct fold_name name = fold_split(text);
    if (last > name.number)
        name.last = last;
    ranges->total += name.last - name.number + 1;
    ranges->names[ranges->count++] = name;
}

static bool ranges_fits(unsigned long long number, int width)
{
    while (width-- > 0)
        number /= 10;
    return !number;
}

/* One item, prefix[001-004,7]suffix, whose bracket holds the last digits of the names, or a plain
 * name. False: it is another form, and every name has to be written out. */
static bool ranges_item(struct fold_ranges *ranges, const char *item, size_t len)
{
    const char *open = memchr(item, '[', len);
    const char *close = open ? memchr(open, ']', len - (size_t)(open - item)) : NULL;
    if (!len || len > FOLD_NAME)
        return false;
    if (!open) {
        ranges_add(ranges, strndup(item, len), 0);
        return true;
    }
    if (!close || close == open + 1 || (open > item && isdigit((unsigned char)open[-1])))
        return false;
    int tail = (int)(item + len - close - 1);
    for (int i = 1; i <= tail; i++)
        if (isdigit((unsigned char)close[i]) || close[i] == '[')
            return false;
    for (const char *at = open + 1; at < close; at++) {
        unsigned long long from = 0, to;
        int width = 0, unused;
        if (!fold_read(&at, &from, &width))
            return false;
        to = from;
        if (*at == '-' && (at++, !fold_read(&at, &to, &unused)))
            return false;
        if (to < from || !ranges_fits(to, width) ||
            (at != close && (*at != ',' || at + 1 == close)))
            return false;
        ranges_add(
            ranges,
            shk_strf("%.*s%0*llu%.*s", (int)(open - item), item, width, from, tail, close + 1), to);
    }
    return true;
}

/* False: nothing was written. */
static bool fold_as_ranges(struct shk_strbuf *out, const char *const *names, size_t count)
{
    struct fold_ranges ranges = {0};
    bool done = true;
    for (size_t i = 0; i < count && done; i++) {
        unsigned long long before = ranges.total;
        for (size_t len, at = 0; names[i][at] && done; at += len + (names[i][at + len] == ',')) {
            len = fold_length(names[i] + at);
            done = ranges_item(&ranges, names[i] + at, len);
        }
        done = done && !ranges.failed && ranges.total - before <= SHK_NODEFOLD_MAX;
    }
    done = done && ranges.total <= FOLD_TOTAL;
    if (done)
        fold_write(out, ranges.names, ranges.count);
    for (size_t i = 0; i < ranges.count; i++)
        free((char *)(uintptr_t)ranges.names[i].text);
    free(ranges.names);
    return done;
}

void shk_nodefold(struct shk_strbuf *out, const char *const *names, size_t count)
{
    struct fold_names all = {0};
    bool folded = false;
    for (size_t i = 0; i < count; i++)
        folded |= strchr(names[i], '[') != NULL;
    if (!folded || count == 1) {
        if (folded)
            shk_strbuf_puts(out, names[0]);
        else
            fold_plain(out, names, count);
        return;
    }
    if (fold_as_ranges(out, names, count))
        return;
    for (size_t i = 0; i < count && !all.more; i++)
        (void)shk_nodefold_each(names[i], SHK_NODEFOLD_MAX, fold_collect, &all);
    if (all.more)
        fold_join(out, names, count);
    else
        fold_plain(out, (const char *const *)all.names, all.count);
    out->failed |= all.failed;
    for (size_t i = 0; i < all.count; i++)
        free(all.names[i]);
    free(all.names);
}
