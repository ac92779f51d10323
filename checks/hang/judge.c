#include "checks/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    hang_launcher_find(c, nodes);
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
            if (judge_known(c, &place) || hang_is_starter(c, rank))
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
bool hang_is_gone(const struct hang_place *place)
{
    return place->kind == HANG_DEAD || place->kind == HANG_ABSENT;
}

/* Nothing that others do is needed to see that it does not go on. */
bool hang_is_hard(const struct hang_place *place)
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

static void judge_name(const struct hang_case *c, struct hang_verdict *v,
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
    return (place->kind == HANG_SLEEP || place->kind == HANG_LOCK || place->kind == HANG_PEER ||
            place->kind == HANG_INPUT) &&
           place->still == HANG_YES;
}

bool hang_is_stopped(const struct hang_place *place)
{
    return place->kind == HANG_STOPPED || place->kind == HANG_DEBUGGED;
}

static void judge_end(struct hang_verdict *v, enum shk_hang_outcome outcome, const char *reason)
{
    v->outcome = outcome;
    v->reason = reason;
}

/* These ranks work. With ranks that were not looked at that is no progress of the job: they may be
 * waiting for one of these, and for ever. */
static void judge_work(const struct hang_case *c, struct hang_verdict *v, const char *reason)
{
    if (c->elsewhere)
        judge_end(v, SHK_HANG_UNDECIDED, "part-works");
    else
        judge_end(v, SHK_HANG_PROGRESS, reason);
}

/* All wait in functions of the catalogue, in different ones. */
static void judge_different(const struct hang_case *c, bool tie, struct hang_verdict *v)
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
static void judge_soft(const struct hang_case *c, bool tie, struct hang_verdict *v)
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
        judge_work(c, v, "most-work");
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
                judge_work(c, v, "file-moves");
                return;
            }
            v->named[i] = !waits;
            v->named_count += !waits;
        }
        judge_end(v, SHK_HANG_NAMED, "outside");
    }
}

static void judge_decide(const struct hang_case *c, struct hang_verdict *v)
{
    bool tie = false;
    v->waiting = judge_waiting(c, &tie);
    bool moves = v->waiting && v->waiting->still == HANG_NO;
    if (judge_count(c, hang_is_stopped)) {
        judge_name(c, v, hang_is_stopped);
        v->reason = "stopped";
    } else if (judge_count(c, hang_is_gone) && v->waiting && v->waiting->still == HANG_YES) {
        judge_name(c, v, hang_is_gone);
        v->reason = "stands";
    } else if (!c->count) {
        judge_end(v, SHK_HANG_UNDECIDED, "no-ranks");
    } else if (judge_count(c, hang_is_gone) == c->count) {
        judge_end(v, SHK_HANG_UNDECIDED, "ended");
    } else if (judge_count(c, hang_is_hard) && !moves) {
        judge_name(c, v, hang_is_hard);
        v->reason = "stands";
    } else if (v->waiting) {
        judge_soft(c, tie, v);
    } else if (judge_count(c, judge_unknown)) {
        judge_end(v, SHK_HANG_UNDECIDED, "ranks-unseen");
    } else if (judge_count(c, judge_asleep) && !judge_count(c, judge_moves)) {
        judge_end(v, SHK_HANG_UNDECIDED, "may-wait");
    } else if (judge_count(c, judge_goes_on)) {
        judge_work(c, v, "works");
    } else {
        judge_end(v, SHK_HANG_UNDECIDED, "nothing-known");
    }
}

/* Nothing moves and all wait: the counts of NCCL may know who is behind, where they stand as well.
 */
static void judge_behind(struct hang_case *c, const json_t *nodes, struct hang_verdict *v)
{
    bool *behind = calloc(2 * (c->count + 1), sizeof *behind);
    bool open = v->outcome == SHK_HANG_UNDECIDED && v->waiting && v->waiting->still == HANG_YES &&
                (strcmp(v->reason, "all-in-one-call") == 0 ||
                 strcmp(v->reason, "ranks-not-looked-at") == 0 || strcmp(v->reason, "tie") == 0);
    struct behind_marks marks = {.behind = open ? behind : NULL,
                                 .open = behind ? behind + c->count + 1 : NULL};
    size_t count = behind ? hang_behind(c, nodes, &marks, &v->said) : 0;
    v->cut = v->said ? hang_wires(c, v->said) : NULL;
    if (v->said && v->outcome != SHK_HANG_PROGRESS)
        hang_gpus_say(c, nodes, v->said);
    for (size_t i = 0; open && count && i < c->count; i++) {
        v->named[i] = behind[i];
        v->named_count += behind[i];
    }
    if (open && v->named_count)
        judge_end(v, SHK_HANG_NAMED, "behind");
    else if (open && marks.apart)
        judge_end(v, SHK_HANG_UNDECIDED, "different-calls");
    else if (open && v->cut)
        judge_end(v, SHK_HANG_NAMED, "network");
    free(behind);
}

static void judge_free(struct hang_case *c, struct hang_verdict *v)
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
    struct hang_case c = {.config = config, .unknown = json_array(), .ranks = -1};
    struct hang_verdict v = {.reason = ""};
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
        hang_unread_add(&c, nodes);
        *judgement_p = hang_result(&c, &v);
        *outcome_p = v.outcome;
        rc = *judgement_p ? 0 : -ENOMEM;
    }
    if (rc == -ENOMEM)
        shk_error_sys(err, ENOMEM, "hang");
    judge_free(&c, &v);
    return rc;
}
