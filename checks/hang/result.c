/* The judgement in words and as a document. */
#include "checks/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_codes[HANG_KINDS] = {
    [HANG_DEAD] = "dead",         [HANG_ABSENT] = "absent", [HANG_STOPPED] = "stopped",
    [HANG_DEBUGGED] = "debugger", [HANG_IO] = "io",         [HANG_DRIVER] = "gpu-driver",
    [HANG_KERNEL] = "kernel",     [HANG_SLEEP] = "sleep",   [HANG_LOCK] = "own-thread",
    [HANG_USER] = "user-code",    [HANG_CALL] = "call",     [HANG_PEER] = "socket",
    [HANG_INPUT] = "input",       [HANG_BEHIND] = "behind", [HANG_UNKNOWN] = "unknown",
};

static const char *result_confidence(const struct hang_case *c, const struct hang_verdict *v,
                                     const struct hang_place *place)
{
    bool seen = c->whole && c->count > 1;
    if (hang_is_hard(place) || hang_is_gone(place))
        return seen || hang_is_stopped(place) ? "confirmed" : "likely";
    if (place->kind == HANG_CALL)
        return seen && c->count >= 3 && v->named_count * 4 <= c->count ? "likely" : "possible";
    /* one that works may be about to join the others */
    return seen && !place->moving && !place->guessed ? "likely" : "possible";
}

static void result_reason(const struct hang_case *c, const struct hang_verdict *v,
                          struct shk_strbuf *out)
{
    static const struct {
        const char *reason, *text;
    } texts[] = {
        {"moves", "the ranks make progress: what they wait in changes from look to look"},
        {"most-work", "most ranks work; the others wait for them"},
        {"works", "the ranks work, and none waits for another"},
        {"part-works",
         "the ranks that were examined are working; whether others wait for them is not known"},
        {"file-moves", "the others wait for a rank whose file moves on"},
        {"tie", "none of the different calls has most of the ranks, so none is the wrong one"},
        {"stillness-unseen", "whether they move could not be seen"},
        {"ranks-unseen", "what those ranks do could not be seen"},
        {"most-elsewhere", "most ranks are elsewhere, and none of them works"},
        {"all-in-one-call", "nothing moves, and no rank is behind: they do not mean the same call, "
                            "or what carries it is cut"},
        {"different-calls",
         "nothing moves: as many ranks launched one collective as another instead; the program "
         "calls them in a different order"},
        {"ranks-not-looked-at", "nothing moves, and the rank that they wait for is not among those "
                                "looked at"},
        {"may-wait",
         "some ranks sleep all the time, the others do not leave the function that they "
         "are in, and whether that waits for others is not known (config/calls)"},
        {"no-ranks", "no rank was examined"},
        {"ended", "the job ended while it was being examined"},
        {"nothing-known", "no rank is in a call that is known to wait for others"},
    };
    (void)c;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].reason, v->reason) == 0)
            shk_strbuf_printf(out, "%s%s", out->len ? ": " : "", texts[i].text);
}

/* "511 of 512 ranks wait in all_reduce" */
static void result_say_group(const struct hang_case *c, const struct hang_group *group,
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

static void result_headline(const struct hang_case *c, const struct hang_verdict *v,
                            struct shk_strbuf *out)
{
    size_t told = 0;
    const struct hang_group *most = v->waiting;
    for (size_t g = 0; !most && g < c->groups_count && !v->named_count; g++)
        if (g == 0 || c->groups[g].count > most->count)
            most = &c->groups[g];
    bool is_named = most && v->named_count && v->named[most->first];
    if (most && !is_named)
        result_say_group(c, most, out);
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
            result_say_group(c, &c->groups[g], out);
        }
    if (v->outcome != SHK_HANG_NAMED)
        result_reason(c, v, out);
}

static json_t *result_group_json(const struct hang_case *c, const struct hang_group *group)
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

static json_t *result_named_json(const struct hang_case *c, const struct hang_verdict *v)
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
                      shk_strbuf_text(&text), "confidence", result_confidence(c, v, place));
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
static void result_add_unknown(struct hang_case *c, const char *what, const char *why,
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
static void result_unread_ras(struct hang_case *c, const json_t *node, json_t *counts)
{
    size_t i;
    json_t *service;
    json_array_foreach(json_object_get(node, "ras"), i, service)
    {
        const char *why = hang_text(service, "unread");
        if (why)
            result_add_unknown(c, hang_text(node, "host"), why, counts);
    }
}

void hang_unread_add(struct hang_case *c, const json_t *nodes)
{
    size_t n, i;
    const char *key;
    json_t *node, *text, *counts = json_object(), *value;
    json_array_foreach(nodes, n, node) json_array_foreach(json_object_get(node, "unread"), i, text)
    {
        if (json_is_string(text))
            result_add_unknown(c, hang_text(node, "host"), json_string_value(text), counts);
    }
    json_array_foreach(nodes, n, node) result_unread_ras(c, node, counts);
    for (i = 0; i < c->count; i++) {
        const char *why = hang_text(c->places[i].thread, "stack_unread");
        if (why)
            result_add_unknown(c, "stacks of first threads", why, counts);
        const char *sockets = hang_text(c->places[i].rank, "sockets_unread"),
                   *python = hang_text(c->places[i].rank, "python_unread");
        if (sockets)
            result_add_unknown(c, "sockets", sockets, counts);
        if (python)
            result_add_unknown(c, "frames of Python", python, counts);
        json_object_foreach(json_object_get(c->places[i].rank, "unread"), key, text)
        {
            if (json_is_string(text))
                result_add_unknown(c, key, json_string_value(text), counts);
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

static void result_audit(const struct hang_case *c, json_t *json)
{
    json_t *settings = NULL, *differences = NULL;
    if (hang_audit(c, &settings, &differences))
        json_array_append_new(c->unknown, json_string("variables of the ranks: not judged: out of "
                                                      "memory"));
    if (json_array_size(settings))
        json_object_set(json, "settings", settings);
    if (json_array_size(differences))
        json_object_set(json, "differences", differences);
    json_decref(settings);
    json_decref(differences);
}

/* The nodes of the named ranks, and the one that is cut off; each once. */
static json_t *result_suspects(const struct hang_case *c, const struct hang_verdict *v)
{
    json_t *seen = json_object(), *list = json_array(), *none;
    const char *host;
    for (size_t i = 0; v->outcome == SHK_HANG_NAMED && i < c->count; i++)
        if (v->named_count && v->named[i] && c->places[i].host)
            json_object_set_new(seen, c->places[i].host, json_null());
    if (v->outcome == SHK_HANG_NAMED && strcmp(v->reason, "network") == 0 && v->cut)
        json_object_set_new(seen, v->cut, json_null());
    json_object_foreach(seen, host, none) json_array_append_new(list, json_string(host));
    json_decref(seen);
    return list;
}

json_t *hang_result(const struct hang_case *c, const struct hang_verdict *v)
{
    static const char *const outcomes[] = {"progress", "named", "undecided"};
    struct shk_strbuf headline = SHK_STRBUF_INIT;
    json_t *groups = json_array(), *named = result_named_json(c, v);
    result_headline(c, v, &headline);
    for (size_t g = 0; g < c->groups_count; g++)
        json_array_append_new(groups, result_group_json(c, &c->groups[g]));
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:o,s:I,s:f,s:o,s:o,s:O,s:o,s:o}", "outcome", outcomes[v->outcome],
                  "reason", v->reason, "headline", shk_strbuf_text(&headline), "ranks",
                  c->ranks < 0 ? json_null() : json_integer(c->ranks), "seen", (json_int_t)c->count,
                  "seconds", c->seconds, "groups", groups, "named", named, "unknown", c->unknown,
                  "libraries", hang_libraries(c), "tree", hang_tree(c));
    if (json_array_size(v->said))
        json_object_set(json, "said", v->said);
    json_object_set_new(json, "suspects", result_suspects(c, v));
    result_audit(c, json);
    shk_strbuf_free(&headline);
    return json;
}
