#include "collectives/gpu/nccl/nccl_log.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024U

static void copy_word(char *to, size_t size, const char *from)
{
    size_t n = 0;

    while (n + 1 < size && from[n] != '\0' && !isspace((unsigned char)from[n])) {
        to[n] = from[n];
        n++;
    }
    to[n] = '\0';
}

/* "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read" */
static void read_channel(struct nccl_log *log, const char *line)
{
    const char *via = strstr(line, " via ");

    if (!via)
        return;
    via += strlen(" via ");
    if (strncmp(via, "P2P", 3) == 0) {
        log->p2p++;
        copy_word(log->via, sizeof log->via, via);
    } else if (strncmp(via, "SHM", 3) == 0) {
        log->shm++;
    } else if (strncmp(via, "NET", 3) == 0) {
        log->net++;
        log->gdr += strstr(via, "GDRDMA") != NULL;
        copy_word(log->net_name, sizeof log->net_name, via);
    }
}

/* "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 1 …" or
 * "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}" */
static void read_choice(struct nccl_log *log, const char *line, const char *arrow)
{
    struct nccl_log_choice choice = {0};
    const char *colon = arrow;
    const char *at = NULL;
    char algo[24] = "";
    char proto[24] = "";

    while (colon > line && *colon != ':')
        colon--;
    if (colon == line || log->choices >= NCCL_LOG_CHOICES)
        return;
    choice.bytes = strtoull(colon + 1, NULL, 10);
    at = strstr(arrow, "Kernel ");
    if (at) {
        choice.symmetric = true;
        copy_word(choice.how, sizeof choice.how, at + strlen("Kernel "));
    } else {
        at = strstr(arrow, "Algo ");
        if (!at)
            return;
        copy_word(algo, sizeof algo, at + strlen("Algo "));
        at = strstr(at, "proto ");
        copy_word(proto, sizeof proto, at ? at + strlen("proto ") : "");
        snprintf(choice.how, sizeof choice.how, "%s %s", algo, proto);
    }
    if (!nccl_log_find(log, choice.bytes))
        log->choice[log->choices++] = choice;
}

/* Lines that tell of a setting or of a choice made once; channels and buffers come by the hundred.
 */
static void keep_line(struct nccl_log *log, const char *line)
{
    static const char *const words[] = {"environment", "NCCL WARN ", "NET/",   "Using network",
                                        "Bootstrap",   "GPU Direct", "plugin", "NCCL version"};
    bool channel = strstr(line, "Channel ") && !strstr(line, "NCCL WARN ");
    size_t len = strlen(line);

    if (channel || log->kept_len + len + 2 > sizeof log->kept)
        return;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(line, words[i])) {
            memcpy(log->kept + log->kept_len, line, len);
            log->kept_len += len;
            log->kept[log->kept_len++] = '\n';
            log->kept[log->kept_len] = '\0';
            return;
        }
    }
}

static void read_line(struct nccl_log *log, const char *line, enum nccl_log_part part)
{
    const char *at = NULL;

    if (strstr(line, "Channel "))
        read_channel(log, line);
    if (part != NCCL_LOG_CONNECTION)
        log->symmetric_va = log->symmetric_va || strstr(line, "Symmetric VA size=") != NULL;
    if (part != NCCL_LOG_ALL)
        return;
    keep_line(log, line);
    if ((at = strstr(line, " Bytes -> ")) != NULL)
        read_choice(log, line, at);
    log->symmetric_no = log->symmetric_no || strstr(line, "Symmetric memory is not supported") ||
                        strstr(line, "does not support symmetric memory");
    log->nvls = log->nvls || strstr(line, "NVLS multicast support is available") != NULL;
    if ((at = strstr(line, "isAllCudaP2p ")) != NULL ||
        (at = strstr(line, "isAllDirectP2p ")) != NULL) {
        log->all_p2p = strchr(at, ' ')[1] == '1';
    }
    if (strstr(line, "egister") && strstr(line, "comm "))
        log->registered++;
    at = strstr(line, "NCCL WARN ");
    if (at && log->warning[0] == '\0')
        snprintf(log->warning, sizeof log->warning, "%.199s", at + strlen("NCCL WARN "));
}

void nccl_log_add(struct nccl_log *log, const char *text, size_t len, enum nccl_log_part part)
{
    char line[LINE_MAX_BYTES];
    size_t at = 0;

    while (at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) : len - at;
        size_t keep = n < sizeof line - 1 ? n : sizeof line - 1;
        size_t i = 0;

        for (i = 0; i < keep; i++) {
            char c = text[at + i];

            line[i] = c >= ' ' && c <= '~' ? c : ' ';
        }
        line[keep] = '\0';
        read_line(log, line, part);
        at += n + 1;
    }
}

const struct nccl_log_choice *nccl_log_find(const struct nccl_log *log, uint64_t bytes)
{
    for (unsigned i = 0; i < log->choices; i++) {
        if (log->choice[i].bytes == bytes)
            return &log->choice[i];
    }
    return NULL;
}
