/* Which environment variables may be written down: those of the libraries that this tool judges,
 * and near misses of their names. Everything else in an environment is none of our business. */
#ifndef SHK_PROBES_ENVNAMES_H
#define SHK_PROBES_ENVNAMES_H

#include <stdbool.h>

enum shk_env_how {
    SHK_ENV_PREFIX, /* begins with a known prefix */
    SHK_ENV_NAME,   /* is a known name */
    SHK_ENV_NEAR,   /* one typing error away from either, or in the wrong case */
};

struct shk_env_match {
    const char *family; /* "nccl", "libfabric", … */
    enum shk_env_how how;
    const char *of; /* the prefix or name that it matches */
};

/* False for names that must not be captured. */
bool shk_env_classify(const char *name, struct shk_env_match *match_p);

const char *shk_env_how_name(enum shk_env_how how); /* "prefix", "name", "near" */

/* True when the name has only characters that shells and libraries use in names. */
bool shk_env_name_ok(const char *name);

#endif
