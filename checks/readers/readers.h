/* Who reads an environment variable? Asked from the libraries that were found (fi_getparams, names
 * in the binaries), else from the catalogue's version ranges. */
#ifndef SHK_CHECKS_READERS_H
#define SHK_CHECKS_READERS_H

#include "checks/base/check.h"
#include "checks/readers/known.h"

enum { SHK_READERS_LIBRARIES = 12 };

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
    const char *unread;   /* a fact about one of the libraries that could not be read, so that the
                             answer (unless YES) may be another; NULL, borrowed */
    const char *disputed; /* UNKNOWN because this list of what a library reads does not hold the
                             name, though the catalogue's versions say so; NULL, borrowed */
};

/* Who is asked: set facts and config, the rest to zero; what their libraries say is looked up when
 * it is needed, once. shk_readers_clear() frees that. */
/* A fact that was not read and would tell what a library reads; NULL: none. */
struct shk_unread {
    bool looked;
    const char *fact;
};

struct shk_readers {
    const struct shk_facts *facts;
    const struct shk_config *config;
    struct shk_known *libraries[SHK_READERS_LIBRARIES];
    struct shk_known *(*families)[2]; /* of each name of the catalogue, and of none */
    size_t families_count;
    enum shk_reads plugins; /* of a name that none of them has */
    struct shk_unread unread[SHK_READERS_LIBRARIES];
    size_t compared; /* by shk_readers_nearest() */
};

void shk_readers_clear(struct shk_readers *readers);

/* Does anything here read the catalogue row? YES when one reader does; NO when at least one reader
 * is here and none reads it. */
struct shk_read_answer shk_readers_ask(struct shk_readers *readers,
                                       const struct shk_setting *setting);

/* The prefix whose libraries own a name (libfabric owns its own); NULL when there is none. */
const struct shk_name *shk_name_family(const struct shk_config *config, const char *name);

/* As shk_readers_ask() for a name that the catalogue does not know. */
struct shk_read_answer shk_readers_ask_name(struct shk_readers *readers,
                                            const struct shk_name *family, const char *name);

/* The known name that was probably meant by `name`: borrowed, NULL when none is near, or when more
 * names were asked for than any node has. Libraries' own lists come first, then the catalogue's
 * current names. */
const char *shk_readers_nearest(struct shk_readers *readers, const struct shk_name *family,
                                const char *name);

/* …_HOME, …_DIR: says where something is installed, for build systems. */
bool shk_name_is_install(const char *name);

#endif
