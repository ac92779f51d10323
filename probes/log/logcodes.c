#include "probes/log/logcodes.h"

#include "core/text/errnos.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct code {
    long number;
    const char *name, *text; /* text: as strerror() and strsignal() have it; NULL */
};

#define CODE(name, text)                                                                           \
    {                                                                                              \
        name, #name, text                                                                          \
    }

/* enum ibv_wc_status, in its order (infiniband/verbs.h). */
static const char *const completions[] = {
    "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
    "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
    "RESP_TIMEOUT_ERR", "GENERAL_ERR",
};

/* cudaError_t and CUresult, which have had the same numbers since CUDA 10.1 (cuda.h). */
static const struct code cuda[] = {
    {1, "INVALID_VALUE", NULL},
    {2, "OUT_OF_MEMORY", NULL},
    {3, "NOT_INITIALIZED", NULL},
    {35, "INSUFFICIENT_DRIVER", NULL},
    {46, "DEVICES_UNAVAILABLE", NULL},
    {100, "NO_DEVICE", NULL},
    {101, "INVALID_DEVICE", NULL},
    {209, "NO_BINARY_FOR_GPU", NULL},
    {214, "ECC_UNCORRECTABLE", NULL},
    {217, "PEER_ACCESS_UNSUPPORTED", NULL},
    {220, "NVLINK_UNCORRECTABLE", NULL},
    {222, "UNSUPPORTED_PTX_VERSION", NULL},
    {304, "OPERATING_SYSTEM", NULL},
    {700, "ILLEGAL_ADDRESS", NULL},
    {702, "LAUNCH_TIMEOUT", NULL},
    {710, "ASSERT", NULL},
    {719, "LAUNCH_FAILED", NULL},
    {800, "NOT_PERMITTED", NULL},
    {801, "NOT_SUPPORTED", NULL},
    {802, "SYSTEM_NOT_READY", NULL},
    {803, "SYSTEM_DRIVER_MISMATCH", NULL},
    {804, "COMPAT_NOT_SUPPORTED_ON_DEVICE", NULL},
    {999, "UNKNOWN", NULL},
};

/* hsa_status_t (hsa.h, hsa_ext_amd.h). */
static const struct code hsa[] = {
    {41, "MEMORY_APERTURE_VIOLATION", NULL},
    {42, "ILLEGAL_INSTRUCTION", NULL},
    {43, "MEMORY_FAULT", NULL},
    {0x1000, "ERROR", NULL},
    {0x1001, "INVALID_ARGUMENT", NULL},
    {0x1003, "INVALID_ALLOCATION", NULL},
    {0x1008, "OUT_OF_RESOURCES", NULL},
    {0x100B, "NOT_INITIALIZED", NULL},
    {0x100F, "INVALID_ISA", NULL},
    {0x1016, "EXCEPTION", NULL},
};

static const struct code ends[] = {
    CODE(SIGHUP, "Hangup"),
    CODE(SIGINT, "Interrupt"),
    CODE(SIGILL, "Illegal instruction"),
    CODE(SIGABRT, "Aborted"),
    CODE(SIGBUS, "Bus error"),
    CODE(SIGFPE, "Floating point exception"),
    CODE(SIGKILL, "Killed"),
    CODE(SIGSEGV, "Segmentation fault"),
    CODE(SIGPIPE, "Broken pipe"),
    CODE(SIGTERM, "Terminated"),
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* By number when there is one, else by name or text. */
static const char *find(const struct code *codes, size_t count, const char *text, bool number,
                        long value)
{
    for (size_t i = 0; i < count; i++)
        if (number ? codes[i].number == value
                   : strcasecmp(codes[i].name, text) == 0 ||
                         (codes[i].text && strcasecmp(codes[i].text, text) == 0))
            return codes[i].name;
    return NULL;
}

static const char *completion(const char *text, bool number, long value)
{
    if (number)
        return value >= 0 && (size_t)value < COUNT(completions) ? completions[value] : NULL;
    const char *prefix = strstr(text, "_WC_");
    text = prefix ? prefix + 4 : text;
    for (size_t i = 0; i < COUNT(completions); i++)
        if (strcmp(completions[i], text) == 0)
            return completions[i];
    return NULL;
}

/* Launchers print -signal (Python, waitpid()) or 128 + signal (shells). */
static const char *ended(const char *text, bool number, long value)
{
    if (number && value < 0)
        value = -value;
    else if (number && value > 128)
        value -= 128;
    else if (number)
        return NULL;
    return find(ends, COUNT(ends), text, number, value);
}

static const char *errno_name(const char *text, bool number, long value)
{
    const struct shk_errno *row = shk_errno_find(text, number, value);
    return row ? row->name : NULL;
}

const char *shk_log_code(const char *group, const char *text, size_t len)
{
    char word[64], *end;
    if (!len || len >= sizeof word)
        return NULL;
    memcpy(word, text, len);
    word[len] = '\0';
    long value = strtol(word, &end, 0);
    bool number = end != word && !*end;
    if (strcmp(group, "errno") == 0)
        return errno_name(word, number, labs(value));
    if (strcmp(group, "wc") == 0)
        return completion(word, number, value);
    if (strcmp(group, "cuda") == 0)
        return find(cuda, COUNT(cuda), word, number, value);
    if (strcmp(group, "hsa") == 0)
        return find(hsa, COUNT(hsa), word, number, value);
    return strcmp(group, "exit") == 0 ? ended(word, number, value) : NULL;
}
