#include "reports/model/nodefold.h"

#include <ctype.h>
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
    FOLD_NAME = 255,                  /* longest host name that DNS allows */
    FOLD_TOTAL = 4 * SHK_NODEFOLD_MAX /* more than any machine has nodes; a few words can mean it */
};

/* Names prefix + "[...]" (ranges, up to the ']') + suffix; *left_p of them at most. */
static void fold_expand(const char *prefix, int prefix_len, const char *ranges, const char *suffix,
                        int suffix_len, size_t *left_p, void (*fn)(const char *name, void *arg),
                        void *arg)
{
    char name[FOLD_NAME + 1];
    while (*ranges && *ranges != ']') {
        char *end, *last_end;
        unsigned long long first = strtoull(ranges, &end, 10), last = first;
        int digits = (int)(end - ranges);
        if (end == ranges)
            return;
        if (*end == '-') {
            last = strtoull(end + 1, &last_end, 10);
            if (last_end == end + 1)
                return;
            end = last_end;
        }
        for (unsigned long long n = first; n <= last && *left_p; n++, --*left_p) {
            int len = snprintf(name, sizeof name, "%.*s%0*llu%.*s", prefix_len, prefix, digits, n,
                               suffix_len, suffix);
            if (len > 0 && len <= FOLD_NAME)
                fn(name, arg);
        }
        ranges = end + (*end == ',');
        if (*end != ',' && *end != ']')
            return;
    }
}

void shk_nodefold_each(const char *list, void (*fn)(const char *name, void *arg), void *arg)
{
    size_t left = SHK_NODEFOLD_MAX;
    while (*list && left) {
        size_t open = strcspn(list, "[,"), end = open;
        if (list[open] == '[') {
            size_t close = open + strcspn(list + open, "]");
            end = close + strcspn(list + close, ",");
            const char *suffix = list + close + (list[close] == ']');
            int suffix_len = (int)(list + end - suffix);
            if (list[close] == ']' && !memchr(suffix, '[', (size_t)suffix_len) &&
                open <= FOLD_NAME && suffix_len <= FOLD_NAME)
                fold_expand(list, (int)open, list + open + 1, suffix, suffix_len, &left, fn, arg);
        } else if (open && open <= FOLD_NAME) {
            char name[FOLD_NAME + 1];
            snprintf(name, sizeof name, "%.*s", (int)open, list);
            fn(name, arg);
            left--;
        }
        list += end + (list[end] == ',');
    }
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
        shk_nodefold_each(names[i], fold_collect, &all);
    if (all.more)
        fold_join(out, names, count);
    else
        fold_plain(out, (const char *const *)all.names, all.count);
    out->failed |= all.failed;
    for (size_t i = 0; i < all.count; i++)
        free(all.names[i]);
    free(all.names);
}
