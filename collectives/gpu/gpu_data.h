/* Test data of the GPU all-reduce, on the host: the same values as the kernels make.
 *
 * Element i of rank r is sign(i) * 2^e(i) * (a(i) + w(r) * b(i)), without the power of two for
 * int32, with ranges so small that every partial sum is exact in the type, in any order: the
 * result must match bit for bit. A rank left out, added twice or stale changes every element. */
#ifndef SHK_COLLECTIVES_GPU_DATA_H
#define SHK_COLLECTIVES_GPU_DATA_H

#include "collectives/gpu/kernels/kernels.h"
#include <stdbool.h>
#include <stddef.h>

/* No element is ever this: a NaN in the float types, and out of range of the int32 data. */
#define SHK_GPU_POISON 0xffc1ffc1U

const char *shk_gpu_type_name(enum shk_gpu_type type); /* "float32", "float16", … */
const char *shk_gpu_type_tag(enum shk_gpu_type type);  /* "f32", … as in kernel names */
size_t shk_gpu_type_bytes(enum shk_gpu_type type);

/* What rank contributes; false when the type cannot hold exact sums of so many ranks. */
bool shk_gpu_spec_for(struct shk_gpu_spec *spec, enum shk_gpu_type type, unsigned rank,
                      unsigned ranks, uint32_t seed);

/* What the sum over all ranks must be. */
bool shk_gpu_spec_sum(struct shk_gpu_spec *spec, enum shk_gpu_type type, unsigned ranks,
                      uint32_t seed);

void shk_gpu_data_fill(const struct shk_gpu_spec *spec, void *to, size_t count);

/* Adds what is wrong to *result (start with {0, ~0}). */
void shk_gpu_data_check(const struct shk_gpu_spec *spec, const void *got, size_t count,
                        struct shk_gpu_check *result);

/* Number that the bytes of one element stand for. */
double shk_gpu_data_number(enum shk_gpu_type type, const void *at);

/* Conversions, exact or to nearest even. */
uint16_t shk_gpu_half_of(float value);
float shk_gpu_float_of_half(uint16_t half);
uint16_t shk_gpu_bfloat_of(float value);
float shk_gpu_float_of_bfloat(uint16_t bfloat);

#endif
