/* Terms of rules: what they look at, and whether they hold. */
#ifndef SHK_CHECKS_TERM_H
#define SHK_CHECKS_TERM_H

#include "config/config.h"
#include "core/facts/facts.h"

struct shk_rule_scope {
    const struct shk_config *config;
    const struct shk_facts *facts;      /* of the node that is asked about */
    const struct shk_facts *const *all; /* of every node */
    size_t nodes;
};

/* 1 or 0; -1 for a variable that should not be set when nobody knows whether it is. Anything else
 * that was not read holds for no term, whatever it tests. */
int shk_rule_term_holds(const struct shk_rule_scope *scope, const struct shk_rule_term *term);

/* The first value of the member of a fact that the term's pattern matches (free()); NULL: the term
 * has no member or pattern, or nothing matches. */
char *shk_rule_term_value(const struct shk_rule_scope *scope, const struct shk_rule_term *term);

#endif
