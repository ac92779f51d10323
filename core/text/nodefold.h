/* Lists of host names in short, as Slurm and ClusterShell write them: nid[001-002,004],login1. */
#ifndef SHK_CORE_NODEFOLD_H
#define SHK_CORE_NODEFOLD_H

#include "core/text/strbuf.h"

/* More names than any machine has nodes; a few bytes can mean billions. */
#define SHK_NODEFOLD_MAX ((size_t)65536)

/* Appends the folded list, sorted: names that differ only in their last number (same number of
 * digits) share one bracket. A name may itself be such a list. Lists that mean more names than
 * any machine has nodes are joined as they are. */
void shk_nodefold(struct shk_strbuf *out, const char *const *names, size_t count);

/* The other way: calls fn for each name of the list, `most` of them at most. Names that are no
 * names (empty, longer than DNS allows, with anything but numbers and ranges in up to four pairs of
 * brackets) are left out. 0: that was all, -E2BIG: there are more, -EINVAL: something was left
 * out. */
int shk_nodefold_each(const char *list, size_t most, void (*fn)(const char *name, void *arg),
                      void *arg);

#endif
