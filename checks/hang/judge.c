#include "checks/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_codes[HANG_KINDS] = {
    [HANG_DEAD] = "dead",         [HANG_ABSENT] = "absent",   [HANG_STOPPED] = "stopped",
    [HANG_DEBUGGED] = "debugger", [HANG_IO] = "io",           [HANG_DRIVER] = "gpu-driver",
    [HANG_KERNEL] = "kernel",     [HANG_SLEEP] = "sleep",     [HANG_LOCK] = "own-thread",
    [HANG_USER] = "user-code",    [HANG_CALL] = "call",       [HANG_PEER] = "socket",
    [HANG_BEHIND] = "behind",     [HANG_UNKNOWN] = "unknown",
};

const char *hang_kind_code(enum hang_kind kind)
{
    return kind_codes[kind];
}

/* What the case comes to. */
struct judge_verdict {
    enum shk_hang_outcome outcome;
    const char *reason;
    const struct hang_group *waiting; /* NULL: none */
    bool *named;                      /* by place */
    size_t named_count;
    char *cut;    /* host that nothing gets to or from; NULL */
    json_t *said; /* what other witnesses said; sentences */
};

/* A rank that is there twice (a node's document given twice) counts once. */
static bool judge_known(const struct hang_case *c, const struct hang_place *place)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct hang_place *other = &c->places[i];
        bool host = place->host && other->host && strcmp(place->host, other->host) == 0;
        if (host && place->process == other->process)
            return true;
    }
    return false;
}

static int judge_places(struct hang_case *c, const json_t *nodes)
{
    size_t n, r, all = 0;
    const json_t *node, *rank;
    json_array_foreach(nodes, n, node) all += json_array_size(json_object_get(node, "ranks"));
    c->places = calloc(all + 1, sizeof *c->places);
    if (!c->places)
        return -ENOMEM;
    c->ranks = c->seconds = -1;
    json_array_foreach(nodes, n, node)
    {
        double seconds = json_number_value(json_object_get(node, "seconds"));
        c->seconds = c->seconds < 0 || seconds < c->seconds ? seconds : c->seconds;
        json_array_foreach(json_object_get(node, "ranks"), r, rank)
        {
            struct hang_place place = {.rank = rank,
                                       .host = hang_text(node, "host"),
                                       .number = hang_number(rank, "rank"),
                                       .process = hang_number(rank, "pid")};
            long ranks = hang_number(rank, "ranks");
            if (judge_known(c, &place))
                continue;
            c->ranks = ranks > c->ranks ? ranks : c->ranks;
            hang_place_find(c, &place);
            c->places[c->count++] = place;
        }
    }
    return 0;
}

static bool judge_alike(const struct hang_place *a, const struct hang_group *group)
{
    if (a->kind != group->kind || a->call != group->call)
        return false;
    if (a->kind == HANG_CALL || !a->where || !group->where)
        return a->kind == HANG_CALL || a->where == group->where;
    return strcmp(a->where, group->where) == 0;
}

static int judge_groups(struct hang_case *c)
{
    c->groups = calloc(c->count + 1, sizeof *c->groups);
    if (!c->groups)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        struct hang_place *place = &c->places[i];
        size_t g = 0;
        while (g < c->groups_count && !judge_alike(place, &c->groups[g]))
            g++;
        struct hang_group *group = &c->groups[g];
        if (g == c->groups_count) {
            *group = (struct hang_group){.kind = place->kind,
                                         .call = place->call,
                                         .where = place->where,
                                         .first = i,
                                         .still = HANG_YES};
            c->groups_count++;
        }
        place->group = g;
        group->count++;
        if (place->still == HANG_NO)
            group->still = HANG_NO;
        else if (place->still == HANG_UNSEEN && group->still == HANG_YES)
            group->still = HANG_UNSEEN;
    }
    return 0;
}

/* The largest group that waits for others: in a function of the catalogue, else asleep at sockets
 * without the least work. *tie_p: another one is as large. */
static const struct hang_group *judge_waiting(const struct hang_case *c, bool *tie_p)
{
    const struct hang_group *best = NULL;
    *tie_p = false;
    for (int turn = 0; turn < 2 && !best; turn++)
        for (size_t g = 0; g < c->groups_count; g++) {
            const struct hang_group *group = &c->groups[g];
            bool waits =
                turn ? group->kind == HANG_PEER && group->where && 2 * group->count > c->count
                     : group->kind == HANG_CALL;
            if (!waits)
                continue;
            if (best && group->count == best->count)
                *tie_p = true;
            if (!best || group->count > best->count) {
                best = group;
                *tie_p = false;
            }
        }
    return best;
}

/* A job that ends loses one rank after the other: only who still waits for it tells. */
static bool judge_gone(const struct hang_place *place)
{
    return place->kind == HANG_DEAD || place->kind == HANG_ABSENT;
}

/* Nothing that others do is needed to see that it does not go on. */
static bool judge_hard(const struct hang_place *place)
{
    switch (place->kind) {
    case HANG_STOPPED:
    case HANG_DEBUGGED: return true;
    case HANG_DRIVER:
    case HANG_KERNEL:
    case HANG_IO: return place->still == HANG_YES && !place->working;
    default: return false;
    }
}

static size_t judge_count(const struct hang_case *c, bool (*is)(const struct hang_place *))
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += is(&c->places[i]);
    return count;
}

static void judge_name(const struct hang_case *c, struct judge_verdict *v,
                       bool (*is)(const struct hang_place *))
{
    for (size_t i = 0; i < c->count; i++) {
        v->named[i] = is(&c->places[i]);
        v->named_count += v->named[i];
    }
    v->outcome = SHK_HANG_NAMED;
}

static bool judge_outside(const struct hang_place *place)
{
    return place->kind != HANG_CALL && place->kind != HANG_UNKNOWN;
}

static bool judge_unknown(const struct hang_place *place)
{
    return place->kind == HANG_UNKNOWN;
}

static bool judge_working(const struct hang_place *place)
{
    return place->working || place->kind == HANG_USER;
}

static bool judge_goes_on(const struct hang_place *place)
{
    return judge_working(place) || place->moving;
}

static bool judge_call_moves(const struct hang_place *place)
{
    return place->kind == HANG_CALL && place->still == HANG_NO;
}

static bool judge_moves(const struct hang_place *place)
{
    return place->moving;
}

/* Asleep all the time, so that those who work may well be waiting for it. */
static bool judge_asleep(const struct hang_place *place)
{
    return (place->kind == HANG_SLEEP || place->kind == HANG_LOCK || place->kind == HANG_PEER) &&
           place->still == HANG_YES;
}

static bool judge_stopped(const struct hang_place *place)
{
    return place->kind == HANG_STOPPED || place->kind == HANG_DEBUGGED;
}

static void judge_end(struct judge_verdict *v, enum shk_hang_outcome outcome, const char *reason)
{
    v->outcome = outcome;
    v->reason = reason;
}

/* All wait in functions of the catalogue, in different ones. */
static void judge_different(const struct hang_case *c, bool tie, struct judge_verdict *v)
{
    if (c->ranks >= 0 && !c->whole) { /* the others may be where these wait for them */
        judge_end(v, SHK_HANG_UNDECIDED, "ranks-not-looked-at");
        return;
    }
    if (tie || 2 * v->waiting->count <= c->count) {
        judge_end(v, SHK_HANG_UNDECIDED, "tie");
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        v->named[i] = &c->groups[c->places[i].group] != v->waiting;
        v->named_count += v->named[i];
    }
    judge_end(v, SHK_HANG_NAMED, "other-call");
}

/* No rank is found that stands for a plain reason, and some wait. */
static void judge_soft(const struct hang_case *c, bool tie, struct judge_verdict *v)
{
    size_t outside = judge_count(c, judge_outside), unknown = judge_count(c, judge_unknown);
    if (v->waiting->kind != HANG_CALL)
        outside = c->count - v->waiting->count - unknown;
    if (v->waiting->still == HANG_NO || judge_count(c, judge_call_moves))
        judge_end(v, SHK_HANG_PROGRESS, "moves");
    else if (v->waiting->still == HANG_UNSEEN)
        judge_end(v, SHK_HANG_UNDECIDED, "stillness-unseen");
    else if (unknown)
        judge_end(v, SHK_HANG_UNDECIDED, "ranks-unseen");
    else if (judge_count(c, judge_working) && 2 * outside > c->count)
        judge_end(v, SHK_HANG_PROGRESS, "most-work");
    else if (2 * outside > c->count)
        judge_end(v, SHK_HANG_UNDECIDED, "most-elsewhere");
    else if (!outside && c->groups_count > 1)
        judge_different(c, tie, v);
    else if (!outside)
        judge_end(v, SHK_HANG_UNDECIDED, c->whole ? "all-in-one-call" : "ranks-not-looked-at");
    else {
        for (size_t i = 0; i < c->count; i++) {
            const struct hang_place *place = &c->places[i];
            bool waits = &c->groups[place->group] == v->waiting || place->kind == HANG_CALL;
            if (!waits && place->working) {
                v->named_count = 0;
                judge_end(v, SHK_HANG_PROGRESS, "file-moves");
                return;
            }
            v->named[i] = !waits;
            v->named_count += !waits;
        }
        judge_end(v, SHK_HANG_NAMED, "outside");
    }
}

static void judge_decide(const struct hang_case *c, struct judge_verdict *v)
{
    bool tie = false;
    v->waiting = judge_waiting(c, &tie);
    bool moves = v->waiting && v->waiting->still == HANG_NO;
    if (judge_count(c, judge_stopped)) {
        judge_name(c, v, judge_stopped);
        v->reason = "stopped";
    } else if (judge_count(c, judge_gone) && v->waiting && v->waiting->still == HANG_YES) {
        judge_name(c, v, judge_gone);
        v->reason = "stands";
    } else if (!c->count) {
        judge_end(v, SHK_HANG_UNDECIDED, "no-ranks");
    } else if (judge_count(c, judge_gone) == c->count) {
        judge_end(v, SHK_HANG_UNDECIDED, "ended");
    } else if (judge_count(c, judge_hard) && !moves) {
        judge_name(c, v, judge_hard);
        v->reason = "stands";
    } else if (v->waiting) {
        judge_soft(c, tie, v);
    } else if (judge_count(c, judge_unknown)) {
        judge_end(v, SHK_HANG_UNDECIDED, "ranks-unseen");
    } else if (judge_count(c, judge_asleep) && !judge_count(c, judge_moves)) {
        judge_end(v, SHK_HANG_UNDECIDED, "may-wait");
    } else if (judge_count(c, judge_goes_on)) {
        judge_end(v, SHK_HANG_PROGRESS, "works");
    } else {
        judge_end(v, SHK_HANG_UNDECIDED, "nothing-known");
    }
}

/* Nothing moves and all wait: the counts of NCCL may know who is behind, where they stand as well.
 */
static void judge_behind(struct hang_case *c, const json_t *nodes, struct judge_verdict *v)
{
    bool *behind = calloc(c->count + 1, sizeof *behind);
    bool open = v->outcome == SHK_HANG_UNDECIDED && v->waiting && v->waiting->still == HANG_YES &&
                (strcmp(v->reason, "all-in-one-call") == 0 ||
                 strcmp(v->reason, "ranks-not-looked-at") == 0 || strcmp(v->reason, "tie") == 0);
    size_t count = behind ? hang_behind(c, nodes, open, behind, &v->said) : 0;
    v->cut = v->said ? hang_wires(c, v->said) : NULL;
    for (size_t i = 0; open && count && i < c->count; i++) {
        v->named[i] = behind[i];
        v->named_count += behind[i];
    }
    if (open && v->named_count)
        judge_end(v, SHK_HANG_NAMED, "behind");
    else if (open && v->cut)
        judge_end(v, SHK_HANG_NAMED, "network");
    free(behind);
}

static const char *judge_confidence(const struct hang_case *c, const struct judge_verdict *v,
                                    const struct hang_place *place)
{
    bool seen = c->whole && c->count > 1;
    if (judge_hard(place) || judge_gone(place))
        return seen || judge_stopped(place) ? "confirmed" : "likely";
    if (place->kind == HANG_CALL)
        return seen && c->count >= 3 && v->named_count * 4 <= c->count ? "likely" : "possible";
    /* one that works may be about to join the others */
    return seen && !place->moving ? "likely" : "possible";
}

static void judge_reason(const struct hang_case *c, const struct judge_verdict *v,
                         struct shk_strbuf *out)
{
    static const struct {
        const char *reason, *text;
    } texts[] = {
        {"moves", "the ranks go on: what they wait in changes from look to look"},
        {"most-work", "most ranks work; the others wait for them"},
        {"works", "the ranks work, and none waits for another"},
        {"file-moves", "the others wait for a rank whose file moves on"},
        {"tie", "none of the different calls has most of the ranks, so none is the wrong one"},
        {"stillness-unseen", "whether they move could not be seen"},
        {"ranks-unseen", "what other ranks do could not be seen"},
        {"most-elsewhere", "most ranks are elsewhere, and none of them works"},
        {"all-in-one-call", "nothing moves, and no rank is behind: they do not mean the same call, "
                            "or what carries it is cut"},
        {"ranks-not-looked-at", "nothing moves, and the rank that they wait for is not among those "
                                "looked at"},
        {"may-wait",
         "some ranks sleep all the time, the others do not leave the function that they "
         "are in, and whether that waits for others is not known (config/calls)"},
        {"no-ranks", "no rank was looked at"},
        {"ended", "the job ended while it was looked at"},
        {"nothing-known", "no rank is in a call that is known to wait for others"},
    };
    (void)c;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].reason, v->reason) == 0)
            shk_strbuf_printf(out, "%s%s", out->len ? ": " : "", texts[i].text);
}

/* "511 of 512 ranks wait in all_reduce" */
static void judge_say_group(const struct hang_case *c, const struct hang_group *group,
                            struct shk_strbuf *out)
{
    size_t all = c->ranks > (long)c->count ? (size_t)c->ranks : c->count;
    const char *noun = c->ranks < 0 && c->places[0].number < 0 ? "process" : "rank";
    if (all == 1)
        hang_say_rank(out, &c->places[group->first]);
    else
        shk_strbuf_printf(out, "%zu of %zu %s%s", group->count, all, noun,
                          noun[0] == 'p' ? "es" : "s");
    shk_strbuf_putc(out, ' ');
    hang_say_group(out, group, group->count == 1);
}

static void judge_headline(const struct hang_case *c, const struct judge_verdict *v,
                           struct shk_strbuf *out)
{
    size_t told = 0;
    const struct hang_group *most = v->waiting;
    for (size_t g = 0; !most && g < c->groups_count && !v->named_count; g++)
        if (g == 0 || c->groups[g].count > most->count)
            most = &c->groups[g];
    bool is_named = most && v->named_count && v->named[most->first];
    if (most && !is_named)
        judge_say_group(c, most, out);
    for (size_t i = 0; i < c->count && v->named_count; i++) {
        if (!v->named[i] || told++ >= 3)
            continue;
        shk_strbuf_puts(out, out->len ? "; " : "");
        hang_say_rank(out, &c->places[i]);
        shk_strbuf_putc(out, ' ');
        hang_say_place(out, &c->places[i]);
    }
    if (strcmp(v->reason, "network") == 0)
        shk_strbuf_printf(out, "; what goes to and from %s is not acknowledged", v->cut);
    if (v->named_count > 3)
        shk_strbuf_printf(out, "; and %zu more", v->named_count - 3);
    for (size_t g = 0; !v->named_count && g < c->groups_count && strcmp(v->reason, "tie") == 0; g++)
        if (&c->groups[g] != most && told++ < 3) {
            shk_strbuf_puts(out, "; ");
            judge_say_group(c, &c->groups[g], out);
        }
    if (v->outcome != SHK_HANG_NAMED)
        judge_reason(c, v, out);
}

static json_t *judge_group_json(const struct hang_case *c, const struct hang_group *group)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    json_t *ranks = json_array(), *processes = json_array(), *hosts = json_array();
    static const char *const still[] = {"no", "yes", "unseen"};
    hang_say_group(&text, group, group->count == 1);
    for (size_t i = 0; i < c->count; i++) {
        const struct hang_place *place = &c->places[i];
        if (&c->groups[place->group] != group)
            continue;
        json_array_append_new(ranks, place->number < 0 ? json_null() : json_integer(place->number));
        json_array_append_new(processes,
                              place->process < 0 ? json_null() : json_integer(place->process));
        json_array_append_new(hosts, place->host ? json_string(place->host) : json_null());
    }
    json_t *json = json_pack("{s:s,s:s,s:s,s:o,s:o,s:o}", "kind", kind_codes[group->kind], "text",
                             shk_strbuf_text(&text), "still", still[group->still], "ranks", ranks,
                             "processes", processes, "hosts", hosts);
    if (group->call)
        json_object_set_new(json, "call", json_string(group->call->key));
    shk_strbuf_free(&text);
    return json;
}

static json_t *judge_named_json(const struct hang_case *c, const struct judge_verdict *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->count; i++) {
        const struct hang_place *place = &c->places[i];
        struct shk_strbuf text = SHK_STRBUF_INIT;
        if (!v->named[i] || !v->named_count)
            continue;
        hang_say_rank(&text, place);
        shk_strbuf_putc(&text, ' ');
        hang_say_place(&text, place);
        char *advice = hang_say_advice(place);
        json_t *one =
            json_pack("{s:s,s:s,s:s}", "kind", kind_codes[place->kind], "text",
                      shk_strbuf_text(&text), "confidence", judge_confidence(c, v, place));
        if (place->number >= 0)
            json_object_set_new(one, "rank", json_integer(place->number));
        if (place->process >= 0)
            json_object_set_new(one, "pid", json_integer(place->process));
        if (place->host)
            json_object_set_new(one, "host", json_string(place->host));
        if (place->call)
            json_object_set_new(one, "call", json_string(place->call->key));
        if (place->seconds >= 0)
            json_object_set_new(one, "seconds", json_real(place->seconds));
        if (advice)
            json_object_set_new(one, "advice", json_string(advice));
        json_array_append_new(list, one);
        free(advice);
        shk_strbuf_free(&text);
    }
    if (strcmp(v->reason, "network") == 0)
        json_array_append_new(
            list, json_pack("{s:s,s:o,s:s,s:s}", "kind", "network", "text",
                            json_sprintf("what goes to and from %s is not acknowledged", v->cut),
                            "host", v->cut, "confidence", "likely"));
    return list;
}

/* The same sentence of many processes is one. */
static void judge_add_unknown(struct hang_case *c, const char *what, const char *why,
                              json_t *counts)
{
    char *text = what ? shk_strf("%s: %s", what, why) : shk_strf("%s", why);
    json_t *count = text ? json_object_get(counts, text) : NULL;
    (void)c;
    if (text)
        json_object_set_new(counts, text, json_integer(json_integer_value(count) + 1));
    free(text);
}

/* NCCL's service, where NCCL is, and did not answer. */
static void judge_unread_ras(struct hang_case *c, const json_t *node, json_t *counts)
{
    size_t i;
    json_t *service;
    json_array_foreach(json_object_get(node, "ras"), i, service)
    {
        const char *why = hang_text(service, "unread");
        if (why)
            judge_add_unknown(c, hang_text(node, "host"), why, counts);
    }
}

static void judge_unread(struct hang_case *c, const json_t *nodes)
{
    size_t n, i;
    const char *key;
    json_t *node, *text, *counts = json_object(), *value;
    json_array_foreach(nodes, n, node) json_array_foreach(json_object_get(node, "unread"), i, text)
    {
        if (json_is_string(text))
            judge_add_unknown(c, hang_text(node, "host"), json_string_value(text), counts);
    }
    json_array_foreach(nodes, n, node) judge_unread_ras(c, node, counts);
    for (i = 0; i < c->count; i++) {
        const char *why = hang_text(c->places[i].thread, "stack_unread");
        if (why)
            judge_add_unknown(c, "stacks of first threads", why, counts);
        const char *sockets = hang_text(c->places[i].rank, "sockets_unread"),
                   *python = hang_text(c->places[i].rank, "python_unread");
        if (sockets)
            judge_add_unknown(c, "sockets", sockets, counts);
        if (python)
            judge_add_unknown(c, "frames of Python", python, counts);
        json_object_foreach(json_object_get(c->places[i].rank, "unread"), key, text)
        {
            if (json_is_string(text))
                judge_add_unknown(c, key, json_string_value(text), counts);
        }
    }
    json_object_foreach(counts, key, value)
    {
        json_int_t count = json_integer_value(value);
        json_array_append_new(c->unknown,
                              count > 1 ? json_sprintf("%s (%lld times)", key, (long long)count)
                                        : json_string(key));
    }
    json_decref(counts);
}

static json_t *judge_json(const struct hang_case *c, const struct judge_verdict *v)
{
    static const char *const outcomes[] = {"progress", "named", "undecided"};
    struct shk_strbuf headline = SHK_STRBUF_INIT;
    json_t *groups = json_array(), *named = judge_named_json(c, v);
    judge_headline(c, v, &headline);
    for (size_t g = 0; g < c->groups_count; g++)
        json_array_append_new(groups, judge_group_json(c, &c->groups[g]));
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:o,s:I,s:f,s:o,s:o,s:O,s:o,s:o}", "outcome", outcomes[v->outcome],
                  "reason", v->reason, "headline", shk_strbuf_text(&headline), "ranks",
                  c->ranks < 0 ? json_null() : json_integer(c->ranks), "seen", (json_int_t)c->count,
                  "seconds", c->seconds, "groups", groups, "named", named, "unknown", c->unknown,
                  "libraries", hang_libraries(c), "tree", hang_tree(c));
    if (json_array_size(v->said))
        json_object_set(json, "said", v->said);
    shk_strbuf_free(&headline);
    return json;
}

static void judge_free(struct hang_case *c, struct judge_verdict *v)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->places[i].where);
    free(c->places);
    free(c->groups);
    free(v->named);
    free(v->cut);
    json_decref(c->unknown);
    json_decref(v->said);
}

int shk_hang_judge(const struct shk_config *config, const json_t *nodes, json_t **judgement_p,
                   enum shk_hang_outcome *outcome_p, struct shk_error *err)
{
    struct hang_case c = {.unknown = json_array(), .ranks = -1};
    struct judge_verdict v = {.reason = ""};
    c.calls = shk_config_calls(config, &c.calls_count);
    int rc = c.unknown ? judge_places(&c, nodes) : -ENOMEM;
    rc = rc ? rc : hang_absent_add(&c, nodes);
    rc = rc ? rc : judge_groups(&c);
    v.named = rc ? NULL : calloc(c.count + 1, sizeof *v.named);
    if (!rc && !v.named)
        rc = -ENOMEM;
    if (!rc) {
        judge_decide(&c, &v);
        judge_behind(&c, nodes, &v);
        judge_unread(&c, nodes);
        *judgement_p = judge_json(&c, &v);
        *outcome_p = v.outcome;
        rc = *judgement_p ? 0 : -ENOMEM;
    }
    if (rc == -ENOMEM)
        shk_error_sys(err, ENOMEM, "hang");
    judge_free(&c, &v);
    return rc;
}
