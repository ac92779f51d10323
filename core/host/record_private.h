/* Inside of a capture in the making, shared by the record*.c files only. */
#ifndef SHK_CORE_RECORD_PRIVATE_H
#define SHK_CORE_RECORD_PRIVATE_H

#include "core/host/host_private.h"

struct shk_record {
    char *dir;
    int fd;  /* of dir */
    int log; /* .shakedown/log: lines "E errno path", "N mode uid gid path", "V variable" */
};

/* Writes dir/name, whole, with its folders. */
int shk_record_put(const struct shk_record *record, const char *name, const char *data, size_t len,
                   struct shk_error *err) SHK_MUST_CHECK;

#endif
