/* Inside of the fact store, shared by facts.c and factdoc.c only. */
#ifndef SHK_CORE_FACTS_PRIVATE_H
#define SHK_CORE_FACTS_PRIVATE_H

#include "core/facts/facts.h"

struct shk_facts {
    json_t *table; /* key -> {state, value, unit, source, reason}: the JSON form itself */
    bool frozen;
    json_t *seen; /* keys that were asked for; NULL: nobody wants to know. Borrowed */
};

bool shk_facts_key_valid(const char *key);

/* Steals entry, also on failure. */
int shk_facts_store(struct shk_facts *facts, const char *key, json_t *entry);

/* enum shk_fact_state, or -1. */
int shk_facts_state_parse(const char *name);

#endif
