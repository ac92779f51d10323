/* Sums of vectors, for any count and alignment of 4-byte elements. */
#ifndef SHK_COLLECTIVES_REDUCE_H
#define SHK_COLLECTIVES_REDUCE_H

#include "collectives/ranks/data.h"

/* dst = a + b; dst may be a or b. int32 wraps around. */
void shk_reduce_sum(enum shk_type type, void *dst, const void *a, const void *b, size_t count);

#endif
