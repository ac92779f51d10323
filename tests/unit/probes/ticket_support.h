/* A text read as a ticket, and what it must come to. */
#ifndef SHK_TESTS_TICKET_SUPPORT_H
#define SHK_TESTS_TICKET_SUPPORT_H

#include "probes/ticket/ticket.h"

/* The text as a file t.md; *names_p: to be destroyed after it. */
struct shk_ticket *ticket_of(const char *text, struct shk_name_set **names_p);

/* Of the node of that name; NULL: none. */
const struct shk_facts *ticket_facts_of(const struct shk_ticket *ticket, const char *name);

/* "key=JSON", "!key": nothing is known of it, "~key": absent. */
void ticket_expect(const struct shk_facts *facts, const char *want, const char *where);

struct sample {
    const char *what, *node, *text;
    const char *want[8];
};

void ticket_try(const struct sample *s, size_t count);
#define TRY(samples) ticket_try(samples, sizeof samples / sizeof *samples)

#endif
