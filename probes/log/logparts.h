/* Lines that no signature was written for, by what they are made of: an object (a path, a library,
 * a port, a function) and an error, in any order and wording. */
#ifndef SHK_PROBES_LOGPARTS_H
#define SHK_PROBES_LOGPARTS_H

#include "probes/log/logscan.h"

struct shk_log_parts;

/* Of the patterns that have an object; the texts are borrowed. -EINVAL, -ENOMEM. */
int shk_log_parts_create(struct shk_log_parts **parts_p, const struct shk_log_pattern *patterns,
                         size_t count, struct shk_error *err) SHK_MUST_CHECK;
void shk_log_parts_destroy(struct shk_log_parts *parts);

/* Tells each pattern whose object the line names beside one of its errors. 0 or -EIO. */
typedef void shk_log_part(void *arg, size_t pattern);
int shk_log_parts_find(struct shk_log_parts *parts, const char *line, size_t len, shk_log_part *fn,
                       void *arg) SHK_MUST_CHECK;

#endif
