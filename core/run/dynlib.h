/* Vendor libraries: dlopen() by versioned name into a table of functions.
 *
 * A missing or broken library is a finding, so nothing here aborts: the outcome says which library
 * or symbol is missing, and where it was looked for. Opening a library runs its constructors: do
 * it in a child of core/run/isolate.h. */
#ifndef SHK_CORE_DYNLIB_H
#define SHK_CORE_DYNLIB_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

/* One function pointer of an ops structure. */
struct shk_symbol {
    const char *name;
    size_t offset;     /* offsetof(struct ops, member); the member is a function pointer */
    bool optional;     /* left NULL when the library lacks it */
    const char *since; /* library version that has it, for the message; may be NULL */
};

struct shk_library {
    const char *const *names; /* candidates in order, e.g. {"libcuda.so.1", NULL}; never the
                                 development link alone */
    const char *env_override; /* variable that may hold a path to use instead; may be NULL */
    const struct shk_symbol *symbols; /* ends with name NULL; may be NULL */
};

struct shk_dynlib {
    void *handle;
    char path[512]; /* file that was really loaded (from the link map) */
};

/* For runs as root, in a prolog for example: from now on, and in all children, a process of root
 * opens no library that others can change. Off until somebody turns it on. What LD_PRELOAD and
 * LD_AUDIT name was run before main(): against that, only a clean environment helps. */
void shk_dynlib_guard(bool on);

/* With the guard on and as root (of the host, not of a user namespace): 0 when neither `name`, if
 * it is a path, nor what a variable leads the loader or this library to (LD_LIBRARY_PATH,
 * FI_PROVIDER_PATH, NCCL_NET_PLUGIN …) can be changed by others, see core/host/trust.h. Else -EPERM
 * with a text that names the place. Otherwise 0. */
int shk_dynlib_permitted(const char *name, struct shk_error *err) SHK_MUST_CHECK;

/* dlopen(RTLD_NOW | RTLD_LOCAL), after which the handlers of fatal signals are what they were: some
 * libraries (libpsm2, which libfabric loads) take them over, write a file to the working directory
 * when something crashes, and exit. NULL: dlerror() tells. */
void *shk_dynlib_load(const char *name);

/* Opens the first candidate that loads (RTLD_NOW | RTLD_LOCAL), resolves every symbol into *ops.
 * -ENOENT: no candidate found; -ENOSYS: a required symbol is missing; -ENOEXEC: found but does not
 * load (the loader's reason is in the text); -EPERM: see shk_dynlib_permitted(). Nothing stays open
 * on failure. Sets the breadcrumb. */
int shk_dynlib_open(struct shk_dynlib *lib, const struct shk_library *desc, void *ops,
                    struct shk_error *err) SHK_MUST_CHECK;

/* Deliberately does not dlclose() libraries known to crash in their destructors when unloaded:
 * closing is left to process exit unless `really`. Safe on a zeroed lib. */
void shk_dynlib_close(struct shk_dynlib *lib, bool really);

/* Where the loader would look for a bare name: LD_LIBRARY_PATH entries, then the cache and default
 * directories, as one line for messages. Writes at most size bytes. */
void shk_dynlib_search_text(char *buf, size_t size);

#endif
