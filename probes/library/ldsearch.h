/* Which file the dynamic loader would take for a library name, worked out without loading it.
 *
 * Follows glibc (ld.so(8)): DT_RPATH of the asking object and of its loaders (only where the object
 * has no DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH of the asking object, ld.so.cache, the default
 * directories. A file of another class or machine is passed over in a directory search, as is what
 * cannot be opened; one that is no ELF file at all, or a directory, is taken, and the load then
 * fails.
 * Not modelled: glibc-hwcaps subdirectories, the RPATH of the program that will run the job, and
 * libraries already loaded there, which win over every file. */
#ifndef SHK_PROBES_LDSEARCH_H
#define SHK_PROBES_LDSEARCH_H

#include "core/host/host.h"
#include "core/run/dynlib.h"
#include "probes/base/filestate.h"
#include "probes/library/elf.h"

struct shk_ldsearch;

/* Reads LD_LIBRARY_PATH and the loader's cache of the host. A missing or damaged cache is not an
 * error: nothing is found there then. */
int shk_ldsearch_create(struct shk_ldsearch **search_p, const struct shk_host *host,
                        struct shk_error *err) SHK_MUST_CHECK;
void shk_ldsearch_destroy(struct shk_ldsearch *search);

const struct shk_host *shk_ldsearch_host(const struct shk_ldsearch *search);

/* Whether a library that is found nowhere is therefore not there. False on a capture without the
 * loader's cache: it then simply does not hold the libraries. */
bool shk_ldsearch_complete(const struct shk_ldsearch *search);

/* e_machine of the host; EM_NONE when not known. */
unsigned shk_ldsearch_machine(const struct shk_ldsearch *search);

/* True: the loader finds none of the library's names for this program, since nothing leads it
 * elsewhere (a path of its own, LD_LIBRARY_PATH) than to the cache and the default directories, and
 * these lack it. Looks at nothing that could hang. True on a capture, where nothing is loaded. */
bool shk_ldsearch_lacks(const struct shk_host *host, const struct shk_library *library);

/* The object that asks: its own tags first, then those of the object that loaded it, and so on. */
struct shk_ldsearch_asker {
    const struct shk_elf *elf;
    const char *path; /* for $ORIGIN */
    const struct shk_ldsearch_asker *loader;
};

struct shk_ldsearch_hit {
    char path[1024];
    const char
        *via; /* "path", "RPATH", the variable of the loader, "RUNPATH", "ld.so.cache", "default" */
};

/* The file for `name` (a bare name, or a path when it holds a '/'). asker may be NULL: a program
 * without RPATH asks. -ENOENT: nowhere. */
int shk_ldsearch_find(const struct shk_ldsearch *search, const char *name,
                      const struct shk_ldsearch_asker *asker,
                      struct shk_ldsearch_hit *hit_p) SHK_MUST_CHECK;

/* The first file of that name that a search passes over, because it is for another class or
 * machine. -ENOENT: none. */
int shk_ldsearch_passed_over(const struct shk_ldsearch *search, const char *name,
                             const struct shk_ldsearch_asker *asker,
                             struct shk_ldsearch_hit *hit_p) SHK_MUST_CHECK;

/* What a search for the name meets on its way that is there, but cannot be opened: dangling links,
 * links in a circle, files without permission. In the loader's order, up to the file that is taken,
 * until fn returns non-zero (which is returned). */
int shk_ldsearch_each_obstacle(const struct shk_ldsearch *search, const char *name,
                               const struct shk_ldsearch_asker *asker,
                               int (*fn)(const struct shk_ldsearch_hit *hit,
                                         enum shk_file_state state, const char *text, void *arg),
                               void *arg);

/* Every file of that bare name in LD_LIBRARY_PATH, the cache and the default directories, in the
 * loader's order, until fn returns non-zero (which is returned). The first is what
 * shk_ldsearch_find() gives. The same file may appear under several names. */
int shk_ldsearch_each(const struct shk_ldsearch *search, const char *name,
                      int (*fn)(const struct shk_ldsearch_hit *hit, void *arg), void *arg);

/* One line for messages: where a bare name was looked for. Free with free(); NULL: no memory. */
char *shk_ldsearch_places(const struct shk_ldsearch *search);

#endif
