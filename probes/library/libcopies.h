/* Every copy of one library that a job on this host might load. */
#ifndef SHK_PROBES_LIBCOPIES_H
#define SHK_PROBES_LIBCOPIES_H

#include "probes/library/ldsearch.h"

struct shk_libcopy {
    char *path;
    const char *via;     /* as in shk_ldsearch_hit, or "directory" for a well-known one */
    bool loader;         /* the loader finds this one first for the bare name */
    struct shk_elf *elf; /* NULL when it is no usable shared object … */
    char *problem;       /* … and then why */
};

struct shk_libcopies {
    struct shk_libcopy *list; /* the loader's order, then the directories' */
    size_t count;
};

/* Directory patterns to look into beside the loader's search: each component may hold one or more
 * '*'. Files are the same when device and inode are; the first path found is kept.
 * Fails only when out of memory. */
int shk_libcopies_find(struct shk_libcopies *copies_p, const struct shk_ldsearch *search,
                       const char *soname, const char *const *dirs,
                       struct shk_error *err) SHK_MUST_CHECK;
void shk_libcopies_free(struct shk_libcopies *copies);

/* The loader's copy, or else the first usable one; NULL when there is none. */
const struct shk_libcopy *shk_libcopies_chosen(const struct shk_libcopies *copies);

/* Calls fn with each existing path that matches an absolute pattern, until it returns non-zero. */
int shk_host_glob(const struct shk_host *host, const char *pattern,
                  int (*fn)(const char *path, void *arg), void *arg);

#endif
