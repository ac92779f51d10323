/* The names of the built-in catalogue, which tests hand to probes. */
#ifndef SHK_TESTS_NAMES_H
#define SHK_TESTS_NAMES_H

#include "config/config.h"

#include <stdlib.h>

/* Made once and kept. */
static inline const struct shk_name_set *catalogue_names(void)
{
    static struct shk_config *config;
    static struct shk_name_set *names;
    struct shk_error err = {""};
    if (!names &&
        (shk_config_load(&config, NULL, NULL, &err) < 0 || shk_config_name_set(config, &names) < 0))
        abort();
    return names;
}

#endif
