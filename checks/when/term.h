/* Terms of `when:`, of conflicts and of rules: does one hold for a node? */
#ifndef SHK_CHECKS_TERM_H
#define SHK_CHECKS_TERM_H

#include "checks/base/check.h"

struct shk_term_scope {
    const struct shk_config *config;
    const struct shk_facts *facts;      /* of the node that is asked about */
    const struct shk_facts *const *all; /* of every node */
    size_t nodes;
    bool logs; /* a variable may also have the value that processes print in a log */
};

/* 1 yes, 0 no, -1 not known: what was not read is neither. */
int shk_term_holds(const struct shk_term_scope *scope, const struct shk_term *term);

/* The value of a setting, as terms see it. */
enum shk_look shk_term_setting(const struct shk_term_scope *scope, const char *name,
                               const char **value_p);

/* The first value of the member of a fact that the term's pattern matches (free()); NULL: the term
 * has no member or pattern, or nothing matches. */
char *shk_term_value(const struct shk_term_scope *scope, const struct shk_term *term);

#endif
