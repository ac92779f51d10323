/* Test data of the all-reduce: depends on rank, element and seed, and its sums are exact.
 *
 * Element i of rank r is sign(i) * 2^e(i) * (a(i) + w(r) * b(i)) with small whole a, b >= 1 and w
 * >= 1; for int32 without the power of two. Whatever the order of addition, each partial sum of
 * float32 is a whole number below 2^24 times a common power of two, hence exact: the result must
 * match bit for bit. A rank that is left out, added twice or stale changes every element. */
#ifndef SHK_COLLECTIVES_DATA_H
#define SHK_COLLECTIVES_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shk_type { SHK_FLOAT32, SHK_INT32, SHK_TYPE_COUNT };

const char *shk_type_name(enum shk_type type); /* "float32", "int32" */
#define SHK_TYPE_BYTES 4U                      /* of both */

/* First element that differs. */
struct shk_mismatch {
    size_t wrong; /* how many differ */
    size_t index;
    double expected;
    double got;
};

/* Writes rank's vector of count elements. */
void shk_data_fill(enum shk_type type, void *buf, size_t count, unsigned rank, unsigned ranks,
                   uint32_t seed);

/* Compares with the sum over all ranks; true when every element matches. *bad is written only when
 * one does not. */
bool shk_data_verify(enum shk_type type, const void *buf, size_t count, unsigned ranks,
                     uint32_t seed, struct shk_mismatch *bad);

#endif
