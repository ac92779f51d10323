/* The counts of launched collectives, as NCCL's RAS service has them. They are a witness of their
 * own: counts are launches, so a rank may be ahead of what is done, and those of a job that goes on
 * differ by one at most times. Only what was the same at the beginning and at the end counts. */
#include "checks/hang/hang_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Does the first answer have the same row? */
static bool behind_before(const json_t *first, const json_t *row)
{
    size_t i;
    json_t *then;
    json_array_foreach(json_object_get(json_object_get(first, "answer"), "counts"), i, then)
    {
        if (json_equal(then, row))
            return true;
    }
    return false;
}

/* The place of a rank that NCCL knows by its process, else by its number in a communicator of all
 * ranks. SIZE_MAX: none of those looked at. */
static size_t behind_place(const struct hang_case *c, const json_t *known, long all)
{
    long pid = hang_number(known, "pid"), number = hang_number(known, "rank");
    size_t found = SIZE_MAX, times = 0;
    for (size_t i = 0; i < c->count; i++)
        if (pid > 0 && c->places[i].process == pid) {
            found = i;
            times++;
        }
    if (times == 1)
        return found;
    for (size_t i = 0; i < c->count; i++)
        if (all == c->ranks && number >= 0 && c->places[i].number == number)
            return i;
    return SIZE_MAX;
}

struct behind_row {
    const json_t *row, *last; /* the group that is behind */
    long least, most, all;    /* counts; ranks of all groups */
};

/* False: the row tells of no difference. */
static bool behind_read(const json_t *row, struct behind_row *r)
{
    size_t i;
    json_t *group;
    *r = (struct behind_row){.row = row, .least = -1, .most = -1};
    json_array_foreach(json_object_get(row, "groups"), i, group)
    {
        long count = hang_number(group, "count"), ranks = hang_number(group, "ranks");
        r->all += ranks > 0 && r->all < 1 << 24 ? ranks : 0;
        r->most = count > r->most ? count : r->most;
        if (count >= 0 && (r->least < 0 || count < r->least)) {
            r->least = count;
            r->last = group;
        }
    }
    return r->last && r->least < r->most;
}

static void behind_say(const struct behind_row *r, json_t *said)
{
    size_t k;
    json_t *known;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const char *operation = hang_text(r->row, "operation"),
               *communicator = hang_text(r->row, "communicator");
    json_array_foreach(json_object_get(r->last, "known"), k, known)
    {
        if (k < 8)
            shk_strbuf_printf(&text, "%s%ld", k ? ", " : "", hang_number(known, "rank"));
    }
    json_array_append_new(
        said,
        json_sprintf("NCCL's RAS: in communicator %s rank %s launched %s up to operation %ld, "
                     "others up to %ld; the same at the last look as at the first",
                     communicator ? communicator : "?", text.len ? shk_strbuf_text(&text) : "?",
                     operation ? operation : "?", r->least, r->most));
    shk_strbuf_free(&text);
}

static bool behind_knows(const struct behind_row *r, long rank)
{
    size_t k;
    json_t *known;
    json_array_foreach(json_object_get(r->last, "known"), k, known)
    {
        if (hang_number(known, "rank") == rank)
            return true;
    }
    return false;
}

static bool behind_has(const json_t *group, long pid)
{
    size_t k;
    json_t *known;
    json_array_foreach(json_object_get(group, "known"), k, known)
    {
        if (hang_number(known, "pid") == pid)
            return true;
    }
    return false;
}

/* Has a process that is behind here launched what others there have not, and one of those more
 * here? */
static bool behind_swapped(const struct behind_row *here, const struct behind_row *there)
{
    long pid = hang_number(json_array_get(json_object_get(here->last, "known"), 0), "pid");
    bool ahead = false, other = false;
    size_t i, k;
    json_t *group, *known;
    json_array_foreach(json_object_get(there->row, "groups"), i, group)
    {
        ahead |= group != there->last && behind_has(group, pid);
    }
    json_array_foreach(json_object_get(here->row, "groups"), i, group)
    {
        json_array_foreach(json_object_get(group, "known"), k, known)
        {
            other |= group != here->last && behind_has(there->last, hang_number(known, "pid"));
        }
    }
    return pid > 0 && ahead && other;
}

/* What these ranks have launched in its place: another operation of the same communicator, or one
 * of another, of which others are behind. NULL: nothing. */
static char *behind_instead(const json_t *first, const json_t *counts, const struct behind_row *r)
{
    size_t i;
    json_t *row;
    struct behind_row other;
    const char *communicator = hang_text(r->row, "communicator");
    long rank = hang_number(json_array_get(json_object_get(r->last, "known"), 0), "rank");
    json_array_foreach(counts, i, row)
    {
        const char *there = hang_text(row, "communicator"), *operation = NULL;
        if (row == r->row || !communicator || !there || !behind_before(first, row) ||
            !behind_read(row, &other))
            continue;
        bool same = strcmp(there, communicator) == 0;
        if (same ? !behind_knows(&other, rank) : behind_swapped(r, &other))
            operation = hang_text(row, "operation");
        if (operation)
            return same ? shk_strf("%s", operation)
                        : shk_strf("%s of another communicator", operation);
    }
    return NULL;
}

/* The ranks of the smallest count are behind, where they are the smaller part, or the one of two.
 */
static size_t behind_mark(const struct hang_case *c, const struct behind_row *r,
                          const char *instead, const struct behind_marks *marks)
{
    bool *behind = marks->behind;
    size_t k, marked = 0;
    json_t *known;
    const char *operation = hang_text(r->row, "operation");
    if (2 * hang_number(r->last, "ranks") > r->all)
        return 0;
    json_array_foreach(json_object_get(r->last, "known"), k, known)
    {
        size_t i = behind_place(c, known, r->all);
        if (i == SIZE_MAX || behind[i] || c->places[i].kind != HANG_CALL ||
            (marks->open && marks->open[i]))
            continue;
        behind[i] = true;
        marked++;
        /* of two that both wait for their GPU the other one may have launched what it should not */
        c->places[i].guessed |=
            2 * hang_number(r->last, "ranks") == r->all && c->places[i].call->kind == SHK_WAIT_GPU;
        c->places[i].kind = HANG_BEHIND;
        c->places[i].where = instead
                                 ? shk_strf("it launched %s where others launched %s", instead,
                                            operation ? operation : "?")
                                 : shk_strf("it launched %s up to operation %ld, others up to %ld",
                                            operation ? operation : "?", r->least, r->most);
    }
    return marked;
}

/* Lines that probes/dumps/flight.h made of the dumps. */
static void behind_dumps(const json_t *node, json_t *said)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(node, "dumps"), i, line)
    {
        if (json_is_string(line) && i < 64)
            json_array_append(said, line);
    }
}

/* One service's counts, the same at the first look as at the last. */
static size_t behind_counts(const struct hang_case *c, const json_t *first, const json_t *counts,
                            struct behind_marks *marks, json_t *said)
{
    size_t i, marked = 0;
    json_t *row;
    json_array_foreach(counts, i, row)
    {
        struct behind_row r;
        if (!behind_before(first, row) || !behind_read(row, &r))
            continue;
        behind_say(&r, said);
        char *instead = behind_instead(first, counts, &r);
        bool half = 2 * hang_number(r.last, "ranks") == r.all;
        marks->apart |= instead && half;
        if (marks->behind && !(instead && half))
            marked += behind_mark(c, &r, instead, marks);
        free(instead);
    }
    return marked;
}

size_t hang_behind(const struct hang_case *c, const json_t *nodes, struct behind_marks *marks,
                   json_t **said_p)
{
    size_t n, s, marked = 0;
    json_t *node, *service, *said = json_array();
    json_array_foreach(nodes, n, node)
    {
        const json_t *first = json_object_get(node, "ras_first");
        behind_dumps(node, said);
        marked += hang_flight(c, node, marks);
        json_array_foreach(json_object_get(node, "ras"), s, service)
        {
            const json_t *before = json_array_get(first, s);
            if (hang_number(before, "port") == hang_number(service, "port"))
                marked += behind_counts(
                    c, before, json_object_get(json_object_get(service, "answer"), "counts"), marks,
                    said);
        }
    }
    *said_p = said;
    return marked;
}
