/* TCP between the ranks: what was sent and is not acknowledged tells of a way that is cut. */
#include "checks/hang/hang_private.h"

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
        shk_strbuf_puts(&text, " gets no answer to a connection");
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

void hang_wires(const struct hang_case *c, json_t *said)
{
    size_t told = 0, k;
    json_t *socket;
    for (size_t i = 0; i < c->count; i++)
        json_array_foreach(json_object_get(c->places[i].rank, "sockets"), k, socket)
        {
            if (hang_number(socket, "retransmits") < WIRES_RETRANSMITS)
                continue;
            if (told++ < WIRES_TOLD)
                wires_say(c, &c->places[i], socket, said);
        }
    if (told > WIRES_TOLD)
        json_array_append_new(said,
                              json_sprintf("%zu more connections like these", told - WIRES_TOLD));
}
