/* Which plugin file names an NCCL or RCCL release tries, and why, in its own order. Pure: no host
 * access. */
#ifndef SHK_PROBES_NCCL_SEARCH_H
#define SHK_PROBES_NCCL_SEARCH_H

#include "core/text/error.h"
#include "probes/library/nccl_strings.h"

enum shk_nccl_owner { SHK_OWNER_NCCL, SHK_OWNER_RCCL };

struct shk_nccl_request {
    enum shk_nccl_owner owner;
    const char *version;    /* "2.28.9"; NULL or "": unknown, the newest rules are used */
    enum shk_nccl_abi kind; /* which plugin: SHK_ABI_NET, SHK_ABI_TUNER … (not COLLNET) */
    const char *value;      /* of the variable, NULL: unset */
    const json_t *names;    /* plugin file names among the strings of the library; NULL unknown */
};

struct shk_nccl_name {
    char name[256];   /* as handed to dlopen() */
    char reason[192]; /* one line, for people */
    unsigned entry;   /* index of the list element it comes from; names of one entry are
                         alternatives, the first that loads is taken */
};

enum { SHK_NCCL_MAX_NAMES = 32 };

struct shk_nccl_names {
    struct shk_nccl_name list[SHK_NCCL_MAX_NAMES];
    size_t count;
    bool none;      /* the value asks for no external plugin at all */
    bool program;   /* the value asks for a plugin inside the program itself (STATIC_PLUGIN) */
    bool unread;    /* a value is set, but this release does not know the variable */
    size_t skipped; /* list elements that NCCL ignores: too long, or beyond its table */
};

/* The variable that names plugins of a kind */
const char *shk_nccl_plugin_variable(enum shk_nccl_abi kind);

/* Fills names. A value that is set but empty is a value. */
void shk_nccl_search(struct shk_nccl_names *names_p, const struct shk_nccl_request *request);

#endif
