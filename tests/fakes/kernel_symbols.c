/* Looks for a symbol of the kernel, as the verbs provider of libfabric does. */
#include <stdio.h>

FILE *kernel_symbols(void)
{
    return fopen("/proc/kallsyms", "r");
}
