/* Status codes in lines of logs: the same error is printed as a number by one library and as a text
 * by the next. */
#ifndef SHK_PROBES_LOGCODES_H
#define SHK_PROBES_LOGCODES_H

#include <stddef.h>

/* The name of what a group captured, or NULL when the group holds no code or the code is not known.
 * Groups and what they take, a sign and "0x" allowed:
 *   errno  "12", "-12", "ENOMEM" or "Cannot allocate memory": "ENOMEM"
 *   wc     completion status of verbs, "12" or "IBV_WC_RETRY_EXC_ERR": "RETRY_EXC_ERR"
 *   cuda   cudaError_t and CUresult (the numbers agree), "802": "SYSTEM_NOT_READY"
 *   hsa    hsa_status_t, "4104" or "0x1008": "OUT_OF_RESOURCES"
 *   exit   how a process ended, "-9", "137", "SIGKILL", "Killed": "SIGKILL"
 * The names are those of errno.h, infiniband/verbs.h, cuda.h, hsa.h and signal.h without prefix. */
const char *shk_log_code(const char *group, const char *text, size_t len);

#endif
