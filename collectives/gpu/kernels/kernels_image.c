#include "collectives/gpu/gpu_private.h"

#ifdef SHK_KERNELS_FATBIN
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".global shk_kernels_begin\n"
        ".hidden shk_kernels_begin\n"
        "shk_kernels_begin:\n"
        ".incbin \"" SHK_KERNELS_FATBIN "\"\n"
        ".global shk_kernels_end\n"
        ".hidden shk_kernels_end\n"
        "shk_kernels_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const unsigned char shk_kernels_begin[];
extern const unsigned char shk_kernels_end[];

const void *shk_kernels_image(size_t *len_p)
{
    *len_p = (size_t)(shk_kernels_end - shk_kernels_begin);
    return shk_kernels_begin;
}
#else
const void *shk_kernels_image(size_t *len_p)
{
    *len_p = 0;
    return NULL;
}
#endif
