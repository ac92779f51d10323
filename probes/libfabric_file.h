/* What a libfabric file tells without being loaded. */
#ifndef SHK_PROBES_LIBFABRIC_FILE_H
#define SHK_PROBES_LIBFABRIC_FILE_H

#include "probes/libcopies.h"

#include <jansson.h>

/* Row of fabric.copies: {path, via, loader, version, abi, releases, links: [text], error}. version
 * is the release text among its strings, abi the highest FABRIC_ symbol version, releases the
 * libfabric releases that end there. New reference; NULL: out of memory. */
json_t *shk_libfabric_copy_json(const struct shk_libcopy *copy);

#endif
