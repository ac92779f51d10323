/* Providers of libfabric that are files of their own. */
#ifndef SHK_PROBES_LIBFABRIC_DL_H
#define SHK_PROBES_LIBFABRIC_DL_H

#include "probes/library/libcopies.h"

#include <jansson.h>

/* Rows of fabric.dl_providers, [{name, path, problem}], as libfabric itself looks for them: the
 * directories of FI_PROVIDER_PATH ("@" in front changes only the order, "+/file" names one file),
 * else libfabric/ beside the chosen copy and what the loader finds for the usual names. problem is
 * null when the file would load. New reference; NULL: out of memory. provider_path and chosen may
 * be NULL. */
json_t *shk_libfabric_dl(const struct shk_ldsearch *search, const char *provider_path,
                         const struct shk_libcopy *chosen);

#endif
