/* Short form of a list of host names: nid001, nid002, nid004 -> nid[001-002,004]. */
#ifndef SHK_REPORTS_NODEFOLD_H
#define SHK_REPORTS_NODEFOLD_H

#include "core/text/strbuf.h"

/* Appends the folded list, sorted: names that differ only in their last number (same number of
 * digits) share one bracket, as in Slurm's and ClusterShell's notation. A name may itself be such a
 * list. Lists that mean more names than any machine has nodes are joined as they are. */
void shk_nodefold(struct shk_strbuf *out, const char *const *names, size_t count);

/* The other way: calls fn for each name of "nid[001-002,004],login1". Names with two pairs of
 * brackets, or with anything in them but numbers and ranges, are left out; the list is cut at
 * SHK_NODEFOLD_MAX names. */
#define SHK_NODEFOLD_MAX 65536
void shk_nodefold_each(const char *list, void (*fn)(const char *name, void *arg), void *arg);

#endif
