/* Who reads an environment variable? Asked from the libraries that were found (fi_getparams, names
 * in the binaries), else from the catalogue's version ranges. */
#ifndef SHK_CHECKS_READERS_H
#define SHK_CHECKS_READERS_H

#include "checks/check.h"

enum shk_reads {
    SHK_READS_YES,
    SHK_READS_NO,        /* the library is here and does not */
    SHK_READS_NONE_HERE, /* no library that would read it was found */
    SHK_READS_UNKNOWN    /* nobody could be asked */
};

struct shk_read_answer {
    enum shk_reads reads;
    bool asked; /* by the library's own list, not by version range */
    char *
        text; /* "libfabric 1.17.0 (/usr/lib/libfabric.so.1)", the libraries that decided; free() */
};

/* Does anything here read the catalogue row? YES when one reader does; NO when at least one reader
 * is here and none reads it. */
struct shk_read_answer shk_readers_ask(const struct shk_facts *facts,
                                       const struct shk_setting *setting);

/* The libraries that own a name by its prefix ("FI_" is libfabric's). */
struct shk_name_family {
    const char *prefix;
    const char *family;       /* of the matrix */
    const char *libraries[4]; /* whom to ask; NULL-terminated */
    bool strict;              /* every variable with this prefix is meant for these libraries */
};

const struct shk_name_family *shk_name_family(const char *name);

/* As shk_readers_ask() for a name that the catalogue does not know. */
struct shk_read_answer shk_readers_ask_name(const struct shk_facts *facts,
                                            const struct shk_name_family *family, const char *name);

/* The known name that was probably meant by `name`: a new string, NULL when none is near.
 * Libraries' own lists come first, then the catalogue's current names. */
char *shk_readers_nearest(const struct shk_facts *facts, const struct shk_config *config,
                          const struct shk_name_family *family, const char *name);

/* NCCL_HOME, NVSHMEM_DIR …: says where something is installed, for build systems. */
bool shk_name_is_install(const char *name);

#endif
