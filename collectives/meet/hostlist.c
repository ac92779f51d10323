/* Lists of hosts as Slurm writes them: nid[001-003,7],login. Written by a launcher, read with
 * limits. */
#include "collectives/meet/meet.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_NAME   255U /* of a host, as in DNS */
#define LIST_DIGITS 9U
#define LIST_RANGES 4U /* brackets in one name */

struct list {
    json_t *hosts; /* NULL: only counted */
    size_t count, most;
    bool failed, full;
};

static void list_add(struct list *list, const char *name, size_t len)
{
    if (len == 0 || len > LIST_NAME) {
        list->failed = true;
        return;
    }
    list->full |= list->count >= list->most;
    if (list->full)
        return;
    list->count++;
    if (list->hosts)
        list->failed |= json_array_append_new(list->hosts, json_stringn(name, len)) != 0;
}

/* "001" at *at_p; its value, its width. */
static bool list_number(const char **at_p, unsigned long *value_p, int *width_p)
{
    size_t n = strspn(*at_p, "0123456789");
    if (n == 0 || n > LIST_DIGITS)
        return false;
    *value_p = strtoul(*at_p, NULL, 10);
    *width_p = (int)n;
    *at_p += n;
    return true;
}

/* One name, of which `head` is done: at the next bracket every number is tried. */
static void list_expand(struct list *list, const char *head, const char *rest, size_t len,
                        unsigned depth)
{
    const char *open = memchr(rest, '[', len), *close = open ? strchr(open, ']') : NULL;
    char name[LIST_NAME + 64];
    if (!open) {
        int n = snprintf(name, sizeof name, "%s%.*s", head, (int)len, rest);
        list_add(list, name, n > 0 && (size_t)n < sizeof name ? (size_t)n : 0);
        return;
    }
    if (!close || close >= rest + len || depth >= LIST_RANGES) {
        list->failed = true;
        return;
    }
    for (const char *at = open + 1; at < close && !list->failed && !list->full; at++) {
        unsigned long from = 0, to = 0;
        int width = 0, unused = 0;
        if (!list_number(&at, &from, &width))
            list->failed = true;
        to = from;
        if (*at == '-' && (at++, !list_number(&at, &to, &unused)))
            list->failed = true;
        list->failed |= to < from || (at != close && (*at != ',' || at + 1 == close));
        for (unsigned long i = from; i <= to && !list->failed && !list->full; i++) {
            int n = snprintf(name, sizeof name, "%s%.*s%0*lu", head, (int)(open - rest), rest,
                             width, i);
            list->failed |= n < 0 || (size_t)n > LIST_NAME;
            if (!list->failed)
                list_expand(list, name, close + 1, (size_t)(rest + len - close - 1), depth + 1);
        }
    }
}

static void list_read(struct list *list, const char *text)
{
    while (*text && !list->failed && !list->full) {
        size_t len = 0;
        for (bool in = false; text[len] && (in || text[len] != ','); len++) {
            in = text[len] == '[' || (in && text[len] != ']');
            list->failed |= !isgraph((unsigned char)text[len]);
        }
        if (len > 0x10000)
            list->failed = true;
        if (!list->failed)
            list_expand(list, "", text, len, 0);
        text += len + (text[len] == ',');
    }
}

json_t *shk_meet_hostlist(const char *text, size_t most)
{
    struct list list = {.hosts = json_array(), .most = most};
    if (!list.hosts)
        return NULL;
    list_read(&list, text);
    if (list.failed)
        json_array_clear(list.hosts);
    return list.hosts;
}

size_t shk_meet_hostlist_size(const char *text)
{
    struct list list = {.most = 1U << 20};
    list_read(&list, text);
    return list.failed || list.full ? 0 : list.count;
}
