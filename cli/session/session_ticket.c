/* Outputs of tools in the logs (probes/ticket) become facts of the nodes. */
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "probes/ticket/ticket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ticket_drop(const struct shk_fact *fact, void *arg)
{
    json_decref(shk_facts_swap(arg, fact->key, NULL));
    return 1; /* the list has changed */
}

/* Facts that were given win over what a text says, a whole environment over every variable in it.
 */
static int ticket_merge(struct shk_facts *into, const struct shk_facts *found)
{
    struct shk_fact fact;
    struct shk_facts *all = shk_facts_create();
    int rc = all ? shk_facts_merge(all, found) : -ENOMEM;
    if (!rc && shk_facts_get(into, "probe.env.status", &fact))
        while (shk_facts_each(all, "env.", ticket_drop, all))
            ;
    rc = rc ? rc : shk_facts_merge(all, into);
    rc = rc ? rc : shk_facts_merge(into, all);
    shk_facts_destroy(all);
    return rc;
}

/* A node of which no more than its name is known. */
static bool ticket_says_nothing(const struct shk_ticket_node *node)
{
    return shk_facts_count(node->facts) <= (*node->name ? 1 : 0);
}

static struct shk_facts *ticket_of_host(const struct shk_session *session, const char *name)
{
    for (size_t i = 0; i < session->nodes; i++) {
        const char *host = shk_facts_get_text(session->facts[i], "host.name");
        if (host && strcmp(host, name) == 0)
            return session->facts[i];
    }
    return NULL;
}

static int ticket_node(struct shk_session *session, const struct shk_ticket_node *node,
                       struct shk_error *err)
{
    struct shk_facts *into = *node->name ? ticket_of_host(session, node->name) : NULL;
    if (!into && session->nodes == 1 &&
        (!*node->name || !shk_facts_get_text(session->facts[0], "host.name")))
        into = session->facts[0];
    if (into)
        return ticket_merge(into, node->facts) ? shk_error_sys(err, ENOMEM, "ticket") : 0;
    struct shk_facts *own = shk_facts_create();
    if (!own || shk_facts_merge(own, node->facts)) {
        shk_facts_destroy(own);
        return shk_error_sys(err, ENOMEM, "ticket");
    }
    return shk_session_add(session, own, err);
}

/* Named nodes first: what is not said of any is then of the only one, else of one more. */
int shk_session_take_ticket(struct shk_session *session, struct shk_ticket *ticket,
                            struct shk_error *err)
{
    int rc = 0;
    for (int named = 1; named >= 0; named--)
        for (size_t i = 0; !rc && i < shk_ticket_nodes(ticket); i++) {
            struct shk_ticket_node node = shk_ticket_node(ticket, i);
            if ((*node.name != '\0') == named && !ticket_says_nothing(&node))
                rc = ticket_node(session, &node, err);
        }
    char *summary = rc ? NULL : shk_ticket_summary(ticket);
    if (summary && *summary)
        shk_say("read: %s", summary);
    free(summary);
    return rc;
}
