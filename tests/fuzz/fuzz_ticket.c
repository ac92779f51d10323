/* Tickets from a stranger: every reader of outputs of tools. */
#include "fuzz.h"
#include "probes/ticket/ticket.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct shk_name_rule rule = {.name = "NCCL_", .family = "nccl", .prefix = true};
    struct shk_name_set *names = shk_name_set_create();
    if (!names || shk_name_set_add(names, &rule) != 0)
        abort();
    struct shk_ticket *ticket = shk_ticket_create(names);
    if (!ticket || shk_ticket_add(ticket, "fuzz", (const char *)data, size) != 0 ||
        shk_ticket_read(ticket) != 0)
        abort();
    for (size_t i = 0; i < shk_ticket_nodes(ticket); i++) {
        json_t *doc = shk_facts_to_json(shk_ticket_node(ticket, i).facts);
        struct shk_facts *again = NULL;
        struct shk_error err = {""};
        if (!doc || shk_facts_from_json(&again, doc, &err) != 0)
            abort(); /* facts that no other command could read */
        shk_facts_destroy(again);
        json_decref(doc);
    }
    char *summary = shk_ticket_summary(ticket);
    if (!summary)
        abort();
    free(summary);
    shk_ticket_destroy(ticket);
    shk_name_set_destroy(names);
    return 0;
}
