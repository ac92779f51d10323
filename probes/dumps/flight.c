#include "probes/dumps/flight.h"
#include "probes/dumps/pickle.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DUMPS_MAX = 4096, GROUPS_MAX = 512, NAMES_MAX = 16, RANKS_SHOWN = 8 };

struct dump {
    long rank;
    json_t *data;
};

struct shk_flight {
    struct dump *dumps; /* in the order of their ranks */
    size_t count;
};

/* What one rank says of one group. */
struct view {
    long rank;
    json_t **calls; /* by sequence number from `first`; borrowed, NULL: not recorded */
    long long first, last, completed; /* last that it called; -1: none */
};

struct group {
    const char *name, *desc, *members; /* text of the dump, "" unknown: names may come twice */
    struct view *views;
    size_t count;
    long long first, last; /* of all */
    json_t *ranks;         /* that it has, when the dump says */
};

struct shk_flight *shk_flight_create(void)
{
    return calloc(1, sizeof(struct shk_flight));
}

void shk_flight_destroy(struct shk_flight *flight)
{
    if (!flight)
        return;
    for (size_t i = 0; i < flight->count; i++)
        json_decref(flight->dumps[i].data);
    free(flight->dumps);
    free(flight);
}

size_t shk_flight_count(const struct shk_flight *flight)
{
    return flight->count;
}

/* "/tmp/fr_order_12", "nccl_trace_rank_3", "rank3.pkl": the last number of the name; -1: none. */
static long rank_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *end;
    name = slash ? slash + 1 : name;
    end = name + strcspn(name, ".");
    while (end > name && !isdigit((unsigned char)end[-1]))
        end--;
    const char *start = end;
    while (start > name && isdigit((unsigned char)start[-1]))
        start--;
    return start < end && end - start < 8 ? strtol(start, NULL, 10) : -1;
}

static int by_rank(const void *a, const void *b)
{
    const struct dump *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int shk_flight_add(struct shk_flight *flight, const char *name, const void *data, size_t len,
                   struct shk_error *err)
{
    json_t *value = NULL;
    long rank = rank_of(name);
    int rc = shk_pickle_read(&value, data, len, err);
    if (!rc && !json_is_array(json_object_get(value, "entries")))
        rc = shk_error_set(err, EINVAL, "no dump of PyTorch's flight recorder");
    if (!rc && rank < 0)
        rc = shk_error_set(err, EINVAL, "the name of the file does not end in the rank");
    for (size_t i = 0; !rc && i < flight->count; i++)
        if (flight->dumps[i].rank == rank)
            rc = shk_error_set(err, EINVAL, "another dump of rank %ld", rank);
    if (!rc && flight->count == DUMPS_MAX)
        rc = shk_error_set(err, EINVAL, "more than %d dumps", DUMPS_MAX);
    struct dump *dumps =
        rc ? NULL : realloc(flight->dumps, (flight->count + 1) * sizeof *flight->dumps);
    if (!dumps) {
        json_decref(value);
        return rc ? rc : shk_error_sys(err, ENOMEM, "%s", name);
    }
    flight->dumps = dumps;
    dumps[flight->count++] = (struct dump){rank, value};
    qsort(dumps, flight->count, sizeof *dumps, by_rank);
    return 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* "nccl:all_reduce" without the backend. */
static const char *call_name(const json_t *call)
{
    const char *name = text_of(call, "profiling_name"), *colon = strchr(name, ':');
    return colon ? colon + 1 : name;
}

/* [name, description] of the group of a call. */
static const char *group_part(const json_t *call, size_t part)
{
    const char *text =
        json_string_value(json_array_get(json_object_get(call, "process_group"), part));
    return text ? text : "";
}

static long long sequence(const json_t *call)
{
    json_t *number = json_object_get(call, "collective_seq_id");
    bool peer = json_is_true(json_object_get(call, "is_p2p"));
    return json_is_integer(number) && !peer ? json_integer_value(number) : -1;
}

static bool completed(const json_t *call)
{
    return strcmp(text_of(call, "state"), "completed") == 0;
}

/* The calls of one dump that belong to the group, by number. 0 or -ENOMEM. */
static int view_read(struct view *view, const struct dump *dump, const struct group *group)
{
    enum { CALLS_MAX = 1000000 };
    json_t *call;
    size_t i;
    *view = (struct view){.rank = dump->rank, .first = -1, .last = -1, .completed = -1};
    json_array_foreach(json_object_get(dump->data, "entries"), i, call)
    {
        long long seq = sequence(call);
        if (seq < 0 || strcmp(group_part(call, 0), group->name) != 0)
            continue;
        view->first = view->first < 0 || seq < view->first ? seq : view->first;
        view->last = seq > view->last ? seq : view->last;
    }
    if (view->last < 0)
        return 0;
    if (view->last - view->first > CALLS_MAX)
        view->first = view->last - CALLS_MAX;
    view->calls = calloc((size_t)(view->last - view->first + 1), sizeof(json_t *));
    if (!view->calls)
        return -ENOMEM;
    json_array_foreach(json_object_get(dump->data, "entries"), i, call)
    {
        long long seq = sequence(call);
        if (seq < view->first || strcmp(group_part(call, 0), group->name) != 0)
            continue;
        view->calls[seq - view->first] = call;
        if (completed(call) && seq > view->completed)
            view->completed = seq;
    }
    return 0;
}

static json_t *call_at(const struct view *view, long long seq)
{
    return view->calls && seq >= view->first && seq <= view->last ? view->calls[seq - view->first]
                                                                  : NULL;
}

/* "rank 1", "ranks 1, 2, 5 and 40 more" */
static void say_ranks(struct shk_strbuf *text, const long *ranks, size_t count)
{
    shk_strbuf_puts(text, count == 1 ? "rank " : "ranks ");
    for (size_t i = 0; i < count && i < RANKS_SHOWN; i++)
        shk_strbuf_printf(text, "%s%ld", i ? ", " : "", ranks[i]);
    if (count > RANKS_SHOWN)
        shk_strbuf_printf(text, " and %zu more", count - RANKS_SHOWN);
}

/* Where the program made the call: the innermost frame outside of torch. */
static void say_place(struct shk_strbuf *text, const json_t *call)
{
    json_t *frame;
    size_t i;
    json_array_foreach(json_object_get(call, "frames"), i, frame)
    {
        const char *file = text_of(frame, "filename"), *slash = strrchr(file, '/');
        json_t *line = json_object_get(frame, "line");
        if (!*file || strstr(file, "/torch/") || *file == '<' || strstr(file, ".cpp"))
            continue;
        shk_strbuf_printf(text, " at %.60s:%lld", slash ? slash + 1 : file,
                          (long long)json_integer_value(line));
        return;
    }
}

/* What the line says, for who decides upon it; `findings` may be NULL. */
static void find(json_t *findings, const char *code, const json_t *call, long long seq,
                 const long *ranks, size_t count)
{
    json_t *list = findings ? json_array() : NULL;
    for (size_t i = 0; list && i < count; i++)
        json_array_append_new(list, json_integer(ranks[i]));
    if (list)
        json_array_append_new(findings,
                              json_pack("{s:s,s:s,s:I,s:o}", "code", code, "call", call_name(call),
                                        "collective", (json_int_t)seq, "ranks", list));
}

static void say_group(struct shk_strbuf *text, const char *code, const struct group *group)
{
    shk_strbuf_printf(text, "flight-recorder[%s]: group %.40s (%.60s)", code, group->name,
                      group->desc);
}

/* What must be the same on all ranks: the name, or the sizes and types. New string. */
static char *trait(const json_t *call, bool sizes)
{
    static const char *const equal[] = {"all_reduce",       "broadcast",
                                        "reduce",           "allreduce_coalesced",
                                        "_all_gather_base", "_reduce_scatter_base"};
    bool must = false;
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++)
        must |= strcmp(call_name(call), equal[i]) == 0;
    if (!sizes || !must)
        return strdup(sizes ? "" : call_name(call));
    char *size = json_dumps(json_object_get(call, "input_sizes"), JSON_COMPACT | JSON_ENCODE_ANY);
    char *type = json_dumps(json_object_get(call, "input_dtypes"), JSON_COMPACT | JSON_ENCODE_ANY);
    char *all = shk_strf("%.80s of %.60s", size ? size : "", type ? type : "");
    free(size);
    free(type);
    return all;
}

struct kinds {
    char *text[NAMES_MAX];
    const json_t *call[NAMES_MAX];
    long *ranks[NAMES_MAX];
    size_t count[NAMES_MAX], used;
};

static void kinds_add(struct kinds *kinds, char *text, const json_t *call, long rank, size_t max)
{
    size_t k = 0;
    while (text && k < kinds->used && strcmp(kinds->text[k], text) != 0)
        k++;
    if (!text || k == NAMES_MAX) {
        free(text);
        return;
    }
    if (k == kinds->used) {
        kinds->ranks[k] = calloc(max, sizeof(long));
        if (!kinds->ranks[k]) {
            free(text);
            return;
        }
        kinds->call[k] = call;
        kinds->text[kinds->used++] = text;
    } else {
        free(text);
    }
    kinds->ranks[k][kinds->count[k]++] = rank;
}

static void kinds_free(struct kinds *kinds)
{
    for (size_t k = 0; k < kinds->used; k++) {
        free(kinds->text[k]);
        free(kinds->ranks[k]);
    }
}

/* A line when the ranks differ at this place. */
static bool differs_at(struct shk_strbuf *text, const struct group *group, long long seq,
                       bool sizes, json_t *findings)
{
    struct kinds kinds = {.used = 0};
    for (size_t v = 0; v < group->count; v++) {
        json_t *call = call_at(&group->views[v], seq);
        if (call)
            kinds_add(&kinds, trait(call, sizes), call, group->views[v].rank, group->count);
    }
    bool differs = kinds.used > 1;
    if (differs) {
        say_group(text, sizes ? "size" : "order", group);
        shk_strbuf_printf(text, ", collective %lld:", seq);
    }
    for (size_t k = 0; differs && k < kinds.used; k++) {
        shk_strbuf_puts(text, k ? "; " : " ");
        say_ranks(text, kinds.ranks[k], kinds.count[k]);
        shk_strbuf_printf(text, " %s%s%s", sizes ? call_name(kinds.call[k]) : kinds.text[k],
                          sizes ? " " : "", sizes ? kinds.text[k] : "");
        say_place(text, kinds.call[k]);
    }
    if (differs)
        shk_strbuf_putc(text, '\n');
    for (size_t k = 0; differs && k < kinds.used; k++)
        find(findings, sizes ? "size" : "order", kinds.call[k], seq, kinds.ranks[k],
             kinds.count[k]);
    kinds_free(&kinds);
    return differs;
}

/* The first collective that did not end on some rank; beyond the last one: there is none. */
static long long group_open(const struct group *group)
{
    long long open = group->last + 1;
    for (size_t v = 0; v < group->count; v++) {
        const struct view *view = &group->views[v];
        long long next = view->completed >= 0 ? view->completed + 1 : view->first;
        if (next <= view->last && next < open)
            open = next;
    }
    return open;
}

/* Has the rank called anything that did not end, in whatever group? */
static bool waits(const struct shk_flight *flight, long rank)
{
    struct dump key = {.rank = rank}, *dump;
    json_t *call;
    size_t i;
    dump = bsearch(&key, flight->dumps, flight->count, sizeof key, by_rank);
    if (dump)
        json_array_foreach(json_object_get(dump->data, "entries"), i,
                           call) if (!completed(call)) return true;
    return false;
}

/* Who has not called what others wait in; false: all are as far. Ranks that wait themselves, in
 * another group, are not to blame: [waits]. */
static bool behind(struct shk_strbuf *text, const struct shk_flight *flight,
                   const struct group *group, json_t *findings)
{
    const struct view *ahead = NULL;
    long *ranks = calloc(group->count + 1, sizeof *ranks);
    size_t count = 0;
    long long least = group->last;
    for (size_t v = 0; v < group->count; v++) {
        const struct view *view = &group->views[v];
        least = view->last < least ? view->last : least;
        if (view->last == group->last && !completed(call_at(view, view->last)))
            ahead = view;
    }
    /* one whose host has enqueued fewer calls ahead, where all have called what does not end */
    if (group_open(group) <= least)
        ahead = NULL;
    bool free_rank = false;
    for (size_t v = 0; ranks && v < group->count; v++)
        if (group->views[v].last == least) {
            ranks[count++] = group->views[v].rank;
            free_rank |= !waits(flight, group->views[v].rank);
        }
    bool some = ahead && least < group->last && count;
    if (some) {
        json_t *waits = call_at(ahead, least + 1);
        find(findings, free_rank ? "behind" : "waits", waits ? waits : call_at(ahead, ahead->last),
             waits ? least + 1 : ahead->last, ranks, count);
        say_group(text, free_rank ? "behind" : "waits", group);
        shk_strbuf_puts(text, ": ");
        say_ranks(text, ranks, count);
        shk_strbuf_printf(
            text, " called no more than collective %lld, others wait in %s (collective %lld)",
            least, waits ? call_name(waits) : call_name(call_at(ahead, ahead->last)),
            waits ? least + 1 : ahead->last);
        say_place(text, waits ? waits : call_at(ahead, ahead->last));
        shk_strbuf_putc(text, '\n');
    }
    free(ranks);
    return some;
}

/* Of a collective that all have called: ranks on whose GPU it has not begun, where it runs on
 * others; something enqueued before it does not end there. Beginnings are recorded with
 * TORCH_NCCL_ENABLE_TIMING only. */
static size_t unbegun(const struct group *group, long long open, long *ranks)
{
    size_t begun = 0, count = 0;
    for (size_t v = 0; v < group->count; v++) {
        const char *state = text_of(call_at(&group->views[v], open), "state");
        begun += strcmp(state, "started") == 0;
        if (strcmp(state, "scheduled") == 0)
            ranks[count++] = group->views[v].rank;
    }
    return begun ? count : 0;
}

static bool stuck(struct shk_strbuf *text, const struct group *group, json_t *findings)
{
    size_t waiting = 0, late = 0;
    long long open = group_open(group);
    long *ranks = calloc(group->count + 1, sizeof *ranks);
    json_t *call = NULL;
    for (size_t v = 0; v < group->count; v++) {
        json_t *one = call_at(&group->views[v], open);
        waiting += one && !completed(one);
        call = one ? one : call;
    }
    bool all = ranks && waiting && group->count > 1 && waiting == group->count;
    if (all) {
        late = unbegun(group, open, ranks);
        say_group(text, late ? "unbegun" : "stuck", group);
        shk_strbuf_printf(text, ": all %zu ranks wait in %s (collective %lld)", waiting,
                          call_name(call), open);
        say_place(text, call);
    }
    if (all && late) {
        shk_strbuf_puts(text, "; it runs on the GPUs of the others, and has not begun on that of ");
        say_ranks(text, ranks, late);
        find(findings, "unbegun", call, open, ranks, late);
    }
    if (all)
        shk_strbuf_putc(text, '\n');
    free(ranks);
    return all;
}

/* Some wait and nothing stands out: of others there is no dump, or not yet. */
static bool open_still(struct shk_strbuf *text, const struct group *group, json_t *findings)
{
    json_t *call = NULL;
    size_t count = 0;
    long long open = group_open(group);
    long *ranks = calloc(group->count + 1, sizeof *ranks);
    for (size_t v = 0; ranks && v < group->count; v++) {
        json_t *one = call_at(&group->views[v], open);
        if (one && !completed(one)) {
            call = one;
            ranks[count++] = group->views[v].rank;
        }
    }
    if (count) {
        say_group(text, "open", group);
        shk_strbuf_puts(text, ": ");
        say_ranks(text, ranks, count);
        shk_strbuf_printf(text, " %s in %s (collective %lld)", count == 1 ? "waits" : "wait",
                          call_name(call), open);
        say_place(text, call);
        shk_strbuf_putc(text, '\n');
        find(findings, "open", call, open, ranks, count);
    }
    free(ranks);
    return count;
}

/* Ranks of the group that left no dump: where most did, they were gone or did not answer. */
static void missing(struct shk_strbuf *text, const struct shk_flight *flight,
                    const struct group *group)
{
    json_t *rank;
    size_t i, count = 0, all = json_array_size(group->ranks);
    long *ranks = calloc(all + 1, sizeof *ranks);
    json_array_foreach(group->ranks, i, rank)
    {
        struct dump key = {.rank = (long)json_integer_value(rank)};
        if (ranks && !bsearch(&key, flight->dumps, flight->count, sizeof key, by_rank))
            ranks[count++] = key.rank;
    }
    if (count && count * 2 < all) {
        say_group(text, "missing", group);
        shk_strbuf_puts(text, ": no dump of ");
        say_ranks(text, ranks, count);
        shk_strbuf_putc(text, '\n');
    }
    free(ranks);
}

static void group_compare(const struct shk_flight *flight, const struct group *group,
                          struct shk_strbuf *text, json_t *findings)
{
    bool said = false;
    for (long long seq = group->first; seq <= group->last && !said; seq++)
        said = differs_at(text, group, seq, false, findings) ||
               differs_at(text, group, seq, true, findings);
    said = said || behind(text, flight, group, findings) || stuck(text, group, findings) ||
           open_still(text, group, findings);
    if (!said) {
        say_group(text, "done", group);
        shk_strbuf_puts(text, ": nothing waits\n");
    } else {
        missing(text, flight, group);
    }
}

/* "[0, 1]" of pg_config; "": not said. */
static const char *members_of(const struct dump *dump, const char *name)
{
    return text_of(json_object_get(json_object_get(dump->data, "pg_config"), name), "ranks");
}

static int group_read(const struct shk_flight *flight, struct group *group)
{
    group->views = calloc(flight->count, sizeof *group->views);
    group->first = -1;
    group->last = -1;
    group->ranks = json_loads(group->members, 0, NULL);
    if (!group->views)
        return -ENOMEM;
    for (size_t d = 0; d < flight->count; d++) {
        struct view *view = &group->views[group->count];
        if (strcmp(members_of(&flight->dumps[d], group->name), group->members) != 0)
            continue;
        if (view_read(view, &flight->dumps[d], group))
            return -ENOMEM;
        if (view->last < 0)
            continue;
        group->count++;
        /* before the first one that all still have, nothing can be compared */
        group->first = view->first > group->first ? view->first : group->first;
        group->last = view->last > group->last ? view->last : group->last;
    }
    return 0;
}

static void group_free(struct group *group)
{
    for (size_t v = 0; v < group->count; v++)
        free(group->views[v].calls);
    free(group->views);
    json_decref(group->ranks);
}

static void one_group(const struct shk_flight *flight, struct group group, struct shk_strbuf *text,
                      json_t *findings)
{
    if (group_read(flight, &group) == 0 && group.count)
        group_compare(flight, &group, text, findings);
    group_free(&group);
}

/* Was it not seen before? */
static bool group_is_new(json_t *seen, const struct group *group)
{
    char *key = shk_strf("%s %s", group->name, group->members);
    bool is_new = key && !json_object_get(seen, key) && json_object_size(seen) < GROUPS_MAX &&
                  json_object_set_new(seen, key, json_true()) == 0;
    free(key);
    return is_new;
}

void shk_flight_compare(const struct shk_flight *flight, struct shk_strbuf *text, json_t *findings)
{
    json_t *seen = json_object(), *call;
    size_t i;
    for (size_t d = 0; seen && d < flight->count; d++)
        json_array_foreach(json_object_get(flight->dumps[d].data, "entries"), i, call)
        {
            struct group group = {.name = group_part(call, 0), .desc = group_part(call, 1)};
            group.members = members_of(&flight->dumps[d], group.name);
            if (sequence(call) >= 0 && group_is_new(seen, &group))
                one_group(flight, group, text, findings);
        }
    json_decref(seen);
}
