/* What makes a node of a profile's kind. */
#ifndef SHK_CHECKS_NAMED_H
#define SHK_CHECKS_NAMED_H

#include "checks/base/read.h"

/* Do the profile's numbers of GPUs and NICs hold for this node? 1: the profile was named, or its
 * `needs` are here; 0: a fact says that this is other hardware (an instance of another size), for
 * which the profile was only the nearest; -1: not told, which the row remembers. Needs of the fact
 * `counted`, which the caller judges itself, are left out; NULL: none is. */
int shk_profile_sized(struct shk_row *row, const char *counted);

#endif
