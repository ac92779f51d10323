/* TCP between the ranks: what was sent and is not acknowledged tells of a way that is cut. */
#include "checks/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

/* With the fifth retransmission a packet has been on its way for more than 6 s (RFC 6298: the first
 * after 0.2 s or more, each after twice the time): no loss that TCP mends in passing. */
enum { WIRES_RETRANSMITS = 5, WIRES_TOLD = 8 };

/* The place that has this address as its own end, and the other end as its peer. */
static const struct hang_place *wires_peer(const struct hang_case *c, const json_t *socket)
{
    const char *local = hang_text(socket, "local"), *peer = hang_text(socket, "peer");
    for (size_t i = 0; local && peer && i < c->count; i++) {
        size_t k;
        json_t *other;
        json_array_foreach(json_object_get(c->places[i].rank, "sockets"), k, other)
        {
            const char *its_local = hang_text(other, "local"), *its_peer = hang_text(other, "peer");
            if (its_local && its_peer && strcmp(its_local, peer) == 0 &&
                strcmp(its_peer, local) == 0)
                return &c->places[i];
        }
    }
    return NULL;
}

static void wires_say(const struct hang_case *c, const struct hang_place *place,
                      const json_t *socket, json_t *said)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const struct hang_place *peer = wires_peer(c, socket);
    const char *state = hang_text(socket, "state"), *to = hang_text(socket, "peer");
    bool opening = state && strcmp(state, "syn-sent") == 0;
    hang_say_rank(&text, place);
    if (opening)
        shk_strbuf_puts(&text, " gets no reply to a connection");
    else
        shk_strbuf_printf(&text, " has %ld bytes that are not acknowledged",
                          hang_number(socket, "send_queue"));
    shk_strbuf_printf(&text, ", sent again %ld times, to %s", hang_number(socket, "retransmits"),
                      to ? to : "?");
    if (peer) {
        shk_strbuf_puts(&text, " of ");
        hang_say_rank(&text, peer);
    }
    json_array_append_new(said, json_string(shk_strbuf_text(&text)));
    shk_strbuf_free(&text);
}

/* The other end: its host where it was looked at, else its address without the port. */
static char *wires_end(const struct hang_case *c, const json_t *socket)
{
    const struct hang_place *peer = wires_peer(c, socket);
    const char *address = hang_text(socket, "peer"),
               *colon = address ? strrchr(address, ':') : NULL;
    if (peer && peer->host)
        return shk_strf("%s", peer->host);
    return colon ? shk_strf("%.*s", (int)(colon - address), address) : NULL;
}

/* Takes a connection between two ends into the count of what they share. */
static void wires_count(json_t *ends, const char *one, const char *other)
{
    json_t *others = json_object_get(ends, one);
    if (!others)
        json_object_set_new(ends, one, others = json_object());
    json_object_set_new(others, other, json_null());
}

/* The end that all connections share, where they lead to two others at least. */
static char *wires_shared(const json_t *ends)
{
    const char *name, *most = NULL;
    json_t *others;
    size_t count = 0;
    json_object_foreach((json_t *)ends, name, others)
    {
        if (json_object_size(others) > count) {
            count = json_object_size(others);
            most = name;
        }
    }
    /* each other end knows this one alone */
    return most && count >= 2 && json_object_size(ends) == count + 1 ? shk_strf("%s", most) : NULL;
}

char *hang_wires(const struct hang_case *c, json_t *said)
{
    size_t told = 0, k;
    json_t *socket, *ends = json_object();
    for (size_t i = 0; i < c->count; i++)
        json_array_foreach(json_object_get(c->places[i].rank, "sockets"), k, socket)
        {
            if (hang_number(socket, "retransmits") < WIRES_RETRANSMITS)
                continue;
            if (told++ < WIRES_TOLD)
                wires_say(c, &c->places[i], socket, said);
            char *end = wires_end(c, socket);
            if (end && c->places[i].host && strcmp(end, c->places[i].host) != 0) {
                wires_count(ends, c->places[i].host, end);
                wires_count(ends, end, c->places[i].host);
            }
            free(end);
        }
    if (told > WIRES_TOLD)
        json_array_append_new(said,
                              json_sprintf("%zu more connections like these", told - WIRES_TOLD));
    char *host = wires_shared(ends);
    json_decref(ends);
    return host;
}
