/* The fabric transport in ranks of this process, and what its facts say. */
#ifndef SHK_TESTS_FABRIC_RUN_H
#define SHK_TESTS_FABRIC_RUN_H

#include "collectives/fabric/fabric.h"

#include <criterion/criterion.h>

static inline struct shk_facts *fabric_run(const struct shk_collective_options *options,
                                           const struct shk_fabric_tweaks *tweaks)
{
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_not_null(facts);
    cr_assert_eq(shk_fabric_run(options, tweaks, facts, &err), 0, "%s", err.text);
    return facts;
}

static inline const char *fabric_text(const struct shk_facts *facts, const char *key)
{
    const char *value = shk_facts_get_text(facts, key);

    return value != NULL ? value : "";
}

#endif
