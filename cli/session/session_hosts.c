/* One host is one node, however many documents of it were given. */
#include "cli/output.h"
#include "cli/session/session.h"

#include <string.h>

static bool hosts_equal(const struct shk_facts *a, const struct shk_facts *b)
{
    json_t *x = shk_facts_to_json(a), *y = shk_facts_to_json(b);
    bool equal = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return equal;
}

void shk_session_drop(struct shk_session *session, size_t node)
{
    shk_facts_destroy(session->facts[node]);
    session->nodes--;
    memmove(&session->facts[node], &session->facts[node + 1],
            (session->nodes - node) * sizeof(struct shk_facts *));
}

/* A later document of the same host; 0: there is none. */
static size_t hosts_later(const struct shk_session *session, size_t node)
{
    const char *name = shk_facts_get_text(session->facts[node], "host.name");
    for (size_t i = session->nodes - 1; name && i > node; i--) {
        const char *other = shk_facts_get_text(session->facts[i], "host.name");
        if (other && strcmp(name, other) == 0)
            return i;
    }
    return 0;
}

void shk_session_one_per_host(struct shk_session *session)
{
    if (session->fleet) {
        shk_fleet_one_per_host(session);
        return;
    }
    for (size_t node = 0; node < session->nodes;) {
        size_t later = hosts_later(session, node);
        if (!later) {
            node++;
            continue;
        }
        if (!hosts_equal(session->facts[node], session->facts[later]))
            shk_say(SHK_HOST_DIFFERS, shk_facts_get_text(session->facts[node], "host.name"));
        shk_session_drop(session, node);
    }
}
