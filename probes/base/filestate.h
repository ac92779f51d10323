/* Why a file cannot be opened, told apart: it is not there, or it is and something is in the way.
 */
#ifndef SHK_PROBES_FILESTATE_H
#define SHK_PROBES_FILESTATE_H

#include "core/host/host.h"

enum shk_file_state {
    SHK_FILE_READABLE,
    SHK_FILE_MISSING,
    SHK_FILE_DANGLING,  /* a link, and what it names is not there */
    SHK_FILE_LOOP,      /* links in a circle */
    SHK_FILE_DENIED,    /* this user may not read it, or not enter a directory on the way */
    SHK_FILE_DIRECTORY, /* a directory of that name */
    SHK_FILE_SPECIAL,   /* a device, FIFO or socket */
    SHK_FILE_OTHER,     /* the text says what */
    SHK_FILE_STATES
};

/* The state of a path. text (may be NULL) gets one clause for people: "a link to x.so.1, which does
 * not exist", "no permission to read it (mode 000, owner root)". */
enum shk_file_state shk_file_state(const struct shk_host *host, const char *path, char *text,
                                   size_t size);

/* "missing", "dangling", "loop", "denied", "directory", "special", "other", "readable". */
const char *shk_file_state_name(enum shk_file_state state);

#endif
