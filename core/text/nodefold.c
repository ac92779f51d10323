#include "core/text/nodefold.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name split around its last run of digits: prefix [0, start), digits [start, end), suffix. */
struct fold_name {
    const char *text;
    size_t start, end;
    unsigned long long number;
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
    n.number = n.end > n.start ? strtoull(text + n.start, NULL, 10) : 0;
    return n;
}

static bool fold_alike(const struct fold_name *a, const struct fold_name *b)
{
    return a->end > a->start && a->start == b->start && a->end == b->end &&
           strncmp(a->text, b->text, a->start) == 0 &&
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

/* Appends names[0..count), which are alike and ascending. */
static void fold_group(struct shk_strbuf *out, const struct fold_name *names, size_t count)
{
    if (names[0].number == names[count - 1].number) {
        shk_strbuf_puts(out, names[0].text);
        return;
    }
    shk_strbuf_add(out, names[0].text, names[0].start);
    shk_strbuf_putc(out, '[');
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && names[end].number <= names[end - 1].number + 1; end++)
            ;
        shk_strbuf_puts(out, i ? "," : "");
        fold_number(out, &names[i]);
        if (names[end - 1].number > names[i].number) {
            shk_strbuf_putc(out, '-');
            fold_number(out, &names[end - 1]);
        }
    }
    shk_strbuf_putc(out, ']');
    shk_strbuf_puts(out, names[0].text + names[0].end);
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
    qsort(sorted, count, sizeof *sorted, fold_cmp);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && fold_alike(&sorted[i], &sorted[end]); end++)
            ;
        shk_strbuf_puts(out, i ? "," : "");
        fold_group(out, &sorted[i], end - i);
    }
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
