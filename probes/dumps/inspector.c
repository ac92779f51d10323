#include "probes/dumps/inspector.h"
#include "core/facts/facts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* SHARE_PERCENT, GROUPS_MIN: one rank is late by chance in some collectives, not in most of them.
 * WAIT_MIN_US: below it the kernels' own start-up differs. SHORTER: the others' time over its own.
 */
enum {
    CALLS_MAX = 1 << 20,
    NAMES_MAX = 4096,
    RANKS_MAX = 1 << 16,
    GROUPS_MIN = 10,
    SHARE_PERCENT = 70,
    WAIT_MIN_US = 1000,
    SHORTER = 4
};

struct call {
    unsigned kind; /* communicator and operation */
    unsigned host;
    long rank, ranks;
    long long sequence, took_us;
};

struct shk_inspector {
    struct call *calls;
    size_t count, cap;
    json_t *kinds, *hosts; /* {text: number} */
};

struct shk_inspector *shk_inspector_create(void)
{
    struct shk_inspector *inspector = calloc(1, sizeof *inspector);
    if (!inspector)
        return NULL;
    inspector->kinds = json_object();
    inspector->hosts = json_object();
    if (inspector->kinds && inspector->hosts)
        return inspector;
    shk_inspector_destroy(inspector);
    return NULL;
}

void shk_inspector_destroy(struct shk_inspector *inspector)
{
    if (!inspector)
        return;
    json_decref(inspector->kinds);
    json_decref(inspector->hosts);
    free(inspector->calls);
    free(inspector);
}

/* The number of a text; -1: too many, or out of memory. */
static long number_of(json_t *names, const char *text)
{
    json_t *known = json_object_get(names, text);
    size_t count = json_object_size(names);
    if (known)
        return (long)json_integer_value(known);
    if (count == NAMES_MAX || json_object_set_new(names, text, json_integer((json_int_t)count)))
        return -1;
    return (long)count;
}

static const char *text_of(const json_t *names, unsigned number)
{
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)names, text,
                        value) if (json_integer_value(value) == number) return text;
    return "";
}

int shk_inspector_add(struct shk_inspector *inspector, const struct shk_inspector_call *call)
{
    if (call->rank < 0 || call->ranks < 2 || call->ranks > RANKS_MAX || call->rank >= call->ranks ||
        call->sequence < 0 || call->took_us < 0 || call->took_us > (1LL << 50) ||
        inspector->count == CALLS_MAX)
        return 0;
    if (inspector->count == inspector->cap) {
        size_t cap = inspector->cap ? inspector->cap * 2 : 256;
        struct call *calls = realloc(inspector->calls, cap * sizeof *calls);
        if (!calls)
            return -ENOMEM;
        inspector->calls = calls;
        inspector->cap = cap;
    }
    char *kind = shk_strf("%s of communicator %s", call->operation, call->communicator);
    long which = kind ? number_of(inspector->kinds, kind) : -1;
    long host = number_of(inspector->hosts, call->host);
    if (kind && which >= 0 && host >= 0)
        inspector->calls[inspector->count++] = (struct call){.kind = (unsigned)which,
                                                             .host = (unsigned)host,
                                                             .rank = call->rank,
                                                             .ranks = call->ranks,
                                                             .sequence = call->sequence,
                                                             .took_us = call->took_us};
    free(kind);
    return kind ? 0 : -ENOMEM;
}

static int by_call(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_time(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    return x->took_us < y->took_us ? -1 : x->took_us > y->took_us;
}

/* Of one communicator and operation. */
struct kind {
    size_t groups;
    unsigned *last; /* by rank: in how many it came last */
    unsigned *host;
    long long waited_us; /* all groups in which one came last */
};

/* All ranks of one collective; they are sorted by their time here. */
static void group_count(struct kind *kind, struct call *calls, size_t count)
{
    qsort(calls, count, sizeof *calls, by_time);
    long long least = calls[0].took_us, next = calls[1].took_us;
    long long middle = calls[count / 2].took_us;
    kind->groups++;
    kind->host[calls[0].rank] = calls[0].host;
    if (middle - least < WAIT_MIN_US || least > middle / SHORTER || least == next)
        return;
    kind->last[calls[0].rank]++;
    kind->waited_us += middle - least;
}

/* Does this run of calls hold each rank once? */
static bool group_is_whole(const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i].rank != (long)i || calls[i].ranks != (long)count)
            return false;
    return count >= 2;
}

static void kind_say(const struct shk_inspector *inspector, const struct kind *kind, size_t ranks,
                     unsigned which, struct shk_strbuf *text)
{
    size_t worst = 0, all = 0;
    for (size_t r = 0; r < ranks; r++) {
        worst = kind->last[r] > kind->last[worst] ? r : worst;
        all += kind->last[r];
    }
    if (kind->groups < GROUPS_MIN)
        return;
    const char *name = text_of(inspector->kinds, which);
    if (kind->last[worst] * 100 < kind->groups * SHARE_PERCENT) {
        shk_strbuf_printf(text, "nccl-inspector[even] %s: no rank came last in most of %zu\n", name,
                          kind->groups);
        return;
    }
    shk_strbuf_printf(text,
                      "nccl-inspector[late] %s: rank %zu on %s came last in %u of %zu, and the "
                      "others waited %.1f ms each time\n",
                      name, worst, text_of(inspector->hosts, kind->host[worst]), kind->last[worst],
                      kind->groups, (double)kind->waited_us / 1e3 / (double)all);
}

static void kind_compare(struct shk_inspector *inspector, struct call *calls, size_t count,
                         struct shk_strbuf *text)
{
    size_t ranks = (size_t)calls[0].ranks;
    struct kind kind = {.last = calloc(ranks, sizeof *kind.last),
                        .host = calloc(ranks, sizeof *kind.host)};
    unsigned which = calls[0].kind;
    for (size_t i = 0, end; kind.last && kind.host && i < count; i = end) {
        for (end = i; end < count && calls[end].sequence == calls[i].sequence;)
            end++;
        if (end - i == ranks && group_is_whole(calls + i, end - i))
            group_count(&kind, calls + i, end - i);
    }
    if (kind.last && kind.host)
        kind_say(inspector, &kind, ranks, which, text);
    free(kind.last);
    free(kind.host);
}

/* A collective that a rank wrote twice counts once. */
static void drop_repeated(struct shk_inspector *inspector)
{
    size_t kept = 0;
    for (size_t i = 0; i < inspector->count; i++)
        if (!kept || by_call(&inspector->calls[kept - 1], &inspector->calls[i]))
            inspector->calls[kept++] = inspector->calls[i];
    inspector->count = kept;
}

void shk_inspector_compare(struct shk_inspector *inspector, struct shk_strbuf *text)
{
    if (!inspector->count)
        return;
    qsort(inspector->calls, inspector->count, sizeof *inspector->calls, by_call);
    drop_repeated(inspector);
    for (size_t i = 0, end; i < inspector->count; i = end) {
        for (end = i;
             end < inspector->count && inspector->calls[end].kind == inspector->calls[i].kind;)
            end++;
        kind_compare(inspector, inspector->calls + i, end - i, text);
    }
}
