/* Ranks of which no process was seen. */
#include "checks/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>

static bool absent_seen(const struct hang_case *c, long number)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->places[i].number == number)
            return true;
    return false;
}

static int absent_place(struct hang_case *c, const char *host, long number)
{
    struct hang_place *more = realloc(c->places, (c->count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    c->places = more;
    c->places[c->count++] = (struct hang_place){.host = host,
                                                .number = number,
                                                .process = -1,
                                                .kind = HANG_ABSENT,
                                                .still = HANG_YES,
                                                .seconds = -1};
    return 0;
}

/* What the ranks of a node say how many they are there; -1: they do not, or not the same. */
static long absent_local(const json_t *node)
{
    size_t i;
    long local = -1;
    json_t *rank;
    if (json_is_true(json_object_get(node, "partial")))
        return -1;
    json_array_foreach(json_object_get(node, "ranks"), i, rank)
    {
        long says = hang_number(rank, "local_ranks");
        if (says < 0 || (local >= 0 && says != local))
            return -1;
        local = says;
    }
    return local;
}

/* "4, 5 and 7", at most a few. */
static void absent_list(const struct hang_case *c, struct shk_strbuf *out)
{
    size_t told = 0;
    long left = 0;
    for (long number = 0; number < c->ranks && c->ranks <= 1 << 20; number++) {
        if (absent_seen(c, number))
            continue;
        if (told++ < 8)
            shk_strbuf_printf(out, "%s%ld", told > 1 ? ", " : " ", number);
        else
            left++;
    }
    if (left)
        shk_strbuf_printf(out, " and %ld more", left);
}

static void absent_say(struct hang_case *c, long missing)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    shk_strbuf_printf(&text, "%ld of %ld ranks were not looked at:", missing, c->ranks);
    absent_list(c, &text);
    json_array_append_new(c->unknown, json_string(shk_strbuf_text(&text)));
    shk_strbuf_free(&text);
}

int hang_absent_add(struct hang_case *c, const json_t *nodes)
{
    size_t n, seen = c->count;
    long missing = 0, local_missing = 0, lacking = 0;
    const char *host = NULL;
    const json_t *node;
    bool told = true;
    if (c->ranks < 0)
        return 0;
    for (size_t i = 0; i < seen; i++)
        if (c->places[i].number < 0 || c->places[i].number >= c->ranks)
            return 0;
    missing = c->ranks - (long)seen;
    json_array_foreach(nodes, n, node)
    {
        long local = absent_local(node),
             here = (long)json_array_size(json_object_get(node, "ranks"));
        told = told && local >= 0;
        if (local > here) {
            local_missing += local - here;
            lacking++;
            host = hang_text(node, "host");
        }
    }
    c->whole = missing == 0 || missing == local_missing;
    c->elsewhere = told && missing > local_missing;
    if (missing <= 0)
        return 0;
    if (missing != local_missing)
        absent_say(c, missing);
    /* Which of them belongs to which node is known where one node lacks some, and no rank is
     * elsewhere */
    int rc = 0;
    for (long number = 0; !rc && c->whole && missing <= 64 && number < c->ranks; number++)
        if (!absent_seen(c, number))
            rc = absent_place(c, lacking == 1 ? host : NULL, number);
    if (!rc && !c->whole && local_missing == 1)
        rc = absent_place(c, host, -1);
    return rc;
}
