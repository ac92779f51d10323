/* Ranks of which no process was seen. */
#include "checks/hang/hang_private.h"
#include "core/job/launch.h"

#include <errno.h>
#include <stdlib.h>

void hang_launcher_find(struct hang_case *c, const json_t *nodes)
{
    size_t n, r;
    const json_t *node, *rank;
    c->launcher = -1;
    json_array_foreach(nodes, n, node)
    {
        json_array_foreach(json_object_get(node, "ranks"), r, rank)
        {
            int depth = shk_launch_depth(hang_text(rank, "launcher"));
            c->launcher = depth > c->launcher ? depth : c->launcher;
        }
    }
}

bool hang_is_starter(const struct hang_case *c, const json_t *rank)
{
    int depth = shk_launch_depth(hang_text(rank, "launcher"));
    return depth >= 0 && depth < c->launcher;
}

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

/* The same document was given before. */
static bool absent_again(const json_t *nodes, size_t n)
{
    const json_t *node = json_array_get(nodes, n),
                 *first = json_array_get(json_object_get(node, "ranks"), 0);
    for (size_t i = 0; i < n; i++) {
        const json_t *other = json_array_get(nodes, i),
                     *its = json_array_get(json_object_get(other, "ranks"), 0);
        if (json_equal(json_object_get(node, "host"), json_object_get(other, "host")) &&
            hang_number(first, "pid") == hang_number(its, "pid"))
            return true;
    }
    return false;
}

/* What the nodes lack, as those say that were looked at. */
struct absent_sum {
    long ranks;                    /* that nodes lack of those that they should have */
    size_t nodes;                  /* of these */
    size_t empty;                  /* of the job, without any of its ranks */
    bool told;                     /* all nodes with ranks say how many they should have */
    bool answered;                 /* all nodes of the job did, as far as they are known */
    const char *host, *empty_host; /* the last one that lacks some, or is empty */
};

/* Of the job, and none of its ranks is there. */
static bool absent_empty(const struct hang_case *c, const json_t *node)
{
    const json_t *ranks = json_object_get(node, "ranks");
    if (!json_array_size(ranks))
        return json_is_true(json_object_get(node, "empty"));
    for (size_t i = 0; i < json_array_size(ranks); i++)
        if (!hang_is_starter(c, json_array_get(ranks, i)))
            return false;
    return true;
}

static struct absent_sum absent_count(const struct hang_case *c, const json_t *nodes)
{
    size_t n;
    const json_t *node;
    struct absent_sum sum = {.told = true, .answered = true};
    json_array_foreach(nodes, n, node)
    {
        long local = absent_local(node),
             here = (long)json_array_size(json_object_get(node, "ranks"));
        bool empty = absent_empty(c, node);
        if (absent_again(nodes, n))
            continue;
        sum.told = sum.told && (local >= 0 || empty);
        sum.answered = sum.answered && (here || empty);
        sum.empty += empty;
        bool lacks = !empty && local > here;
        sum.ranks += lacks ? local - here : 0;
        sum.nodes += lacks;
        if (lacks)
            sum.host = hang_text(node, "host");
        else if (empty)
            sum.empty_host = hang_text(node, "host");
    }
    return sum;
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
    shk_strbuf_printf(&text, "%ld of %ld ranks were not examined:", missing, c->ranks);
    absent_list(c, &text);
    json_array_append_new(c->unknown, json_string(shk_strbuf_text(&text)));
    shk_strbuf_free(&text);
}

int hang_absent_add(struct hang_case *c, const json_t *nodes)
{
    size_t seen = c->count;
    if (c->ranks < 0)
        return 0;
    for (size_t i = 0; i < seen; i++)
        if (c->places[i].number < 0 || c->places[i].number >= c->ranks)
            return 0;
    struct absent_sum sum = absent_count(c, nodes);
    long missing = c->ranks - (long)seen;
    /* All other nodes have what they should have: the rest was on the empty ones */
    if (sum.empty && sum.told && sum.answered && missing > sum.ranks) {
        sum.ranks = missing;
        sum.nodes += sum.empty;
        sum.host = sum.empty_host;
    }
    c->whole = missing == 0 || missing == sum.ranks;
    c->elsewhere = sum.told && missing > sum.ranks;
    if (missing <= 0)
        return 0;
    if (missing != sum.ranks)
        absent_say(c, missing);
    /* Which of them belongs to which node is known where one node lacks some, and no rank is
     * elsewhere */
    int rc = 0;
    for (long number = 0; !rc && c->whole && missing <= 64 && number < c->ranks; number++)
        if (!absent_seen(c, number))
            rc = absent_place(c, sum.nodes == 1 ? sum.host : NULL, number);
    if (!rc && !c->whole && sum.ranks == 1)
        rc = absent_place(c, sum.host, -1);
    return rc;
}
