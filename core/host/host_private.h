/* Inside of the root handle, shared by host.c and hostcall.c only. */
#ifndef SHK_CORE_HOST_PRIVATE_H
#define SHK_CORE_HOST_PRIVATE_H

#include "core/host/host.h"
#include <jansson.h>

struct shk_host {
    char *root;
    int fd; /* O_PATH of the root */
    bool live;
    json_t *calls; /* .shakedown/hostcalls.json of a capture; NULL when live or missing */
    struct shk_record *record; /* where reads are written down; NULL: nowhere */
};

/* core/host/record.c: notes of what was read; nothing happens without a record. */
void shk_record_file(const struct shk_host *host, const char *path, const char *data, size_t len);
void shk_record_list(const struct shk_host *host, const char *path, char *const *names);
void shk_record_link(const struct shk_host *host, const char *path);
void shk_record_stat(const struct shk_host *host, const char *path, const struct stat *st);
void shk_record_error(const struct shk_host *host, const char *path, int errnum);
void shk_record_asked(const struct shk_host *host, const char *variable);
void shk_record_close(struct shk_record *record);

/* open() below the root; returns the descriptor or -1 with errno. */
int shk_host_openat(const struct shk_host *host, const char *path, int flags);

/* The same below the descriptor of a folder, without openat2(): links never lead out of it. -1 with
 * errno (ELOOP after 40 links, ENAMETOOLONG beyond 64 levels). */
int shk_host_walk(int root, const char *path, int flags);

/* Reads .shakedown/hostcalls.json. A capture without one is legal; one that does not parse is not.
 */
int shk_host_load_calls(struct shk_host *host, struct shk_error *err);

#endif
