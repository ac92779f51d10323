/* What a libfabric file tells without being loaded. */
#ifndef SHK_PROBES_LIBFABRIC_FILE_H
#define SHK_PROBES_LIBFABRIC_FILE_H

#include "probes/library/libcopies.h"

#include <jansson.h>
#include <stdbool.h>

/* Row of fabric.copies: {path, via, loader, version, abi, releases, links: [text], error}. version
 * is the release text among its strings, abi the highest FABRIC_ symbol version, releases the
 * libfabric releases that end there. New reference; NULL: out of memory. */
json_t *shk_libfabric_copy_json(const struct shk_libcopy *copy);

/* Releases of libfabric whose highest symbol version is `node` ("FABRIC_1.6": "1.14 to 1.19"); NULL
 * when it is none that we know. */
const char *shk_libfabric_releases(const char *node);

/* The release text among the strings of a libfabric file ("1.17.0"); false when there is none, or
 * several. */
bool shk_libfabric_version(const struct shk_elf *elf, char *buf, size_t size);

#endif
