/* What is read of the kernel, for those who find it elsewhere than on the host. */
#ifndef SHK_PROBES_KERNEL_H
#define SHK_PROBES_KERNEL_H

/* Names of the sysctls that become facts; NULL-terminated. */
extern const char *const shk_kernel_sysctls[];

#endif
