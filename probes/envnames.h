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

/* Secrets stay in the process. True when a value must be withheld; *why_p says on what grounds (a
 * literal). Decided by the name (TOKEN, SECRET, PASSWORD, KEY, …) or by the value's shape (JSON web
 * tokens, known token prefixes, URLs with a password, long random strings). Paths, host lists and
 * UUIDs are no secrets. */
bool shk_env_is_secret(const char *name, const char *value, const char **why_p);

#endif
