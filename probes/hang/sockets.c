/* TCP sockets of a process with their queues, of its own network namespace. */
#include "probes/hang/hang_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOCKETS_MAX = 256 };

/* include/net/tcp_states.h */
static const char *const socket_states[] = {
    [1] = "established", [2] = "syn-sent",  [3] = "syn-recv", [4] = "fin-wait-1",
    [5] = "fin-wait-2",  [6] = "time-wait", [7] = "close",    [8] = "close-wait",
    [9] = "last-ack",    [10] = "listen",   [11] = "closing",
};

/* {"socket:[123]": null} of the process; NULL: unread. */
static json_t *sockets_own(const struct shk_host *host, long pid, struct shk_error *err)
{
    char **names = NULL;
    size_t count = 0;
    if (shk_host_list(host, &names, &count, err, "/proc/%ld/fd", pid))
        return NULL;
    json_t *own = json_object();
    for (size_t i = 0; i < count; i++) {
        char *target = NULL;
        if (!shk_host_readlink(host, &target, NULL, "/proc/%ld/fd/%s", pid, names[i]) &&
            strncmp(target, "socket:[", 8) == 0)
            json_object_set_new(own, target, json_null());
        free(target);
    }
    shk_host_list_free(names);
    return own;
}

/* "0100007F:1F90", each 32 bits in the order of this machine, into "127.0.0.1:8080". */
static json_t *socket_address(const char *hex, unsigned port)
{
    struct in6_addr address = {0};
    char text[INET6_ADDRSTRLEN] = "";
    size_t words = strlen(hex) / 8;
    for (size_t w = 0; w < words && w < 4; w++) {
        char part[9];
        snprintf(part, sizeof part, "%.8s", hex + 8 * w);
        address.s6_addr32[w] = (uint32_t)strtoul(part, NULL, 16);
    }
    if (words == 4 && IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, &address.s6_addr32[3], text, sizeof text);
    else
        inet_ntop(words == 4 ? AF_INET6 : AF_INET, &address, text, sizeof text);
    return json_sprintf(strchr(text, ':') ? "[%s]:%u" : "%s:%u", text, port);
}

static void sockets_line(const char *line, json_t *own, json_t *sockets)
{
    char local[33], peer[33], key[48];
    unsigned local_port, peer_port, state, send, receive, retransmits;
    unsigned long long inode;
    if (sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %x:%x %*x:%*x %x %*d %*d %llu", local,
               &local_port, peer, &peer_port, &state, &send, &receive, &retransmits, &inode) != 9)
        return;
    snprintf(key, sizeof key, "socket:[%llu]", inode);
    if (state == 10 || !json_object_get(own, key) || json_array_size(sockets) >= SOCKETS_MAX)
        return;
    size_t known = sizeof socket_states / sizeof *socket_states;
    const char *word = state < known && socket_states[state] ? socket_states[state] : "unknown";
    json_array_append_new(sockets,
                          json_pack("{s:s,s:o,s:o,s:s,s:I,s:I,s:I}", "inode", key, "local",
                                    socket_address(local, local_port), "peer",
                                    socket_address(peer, peer_port), "state", word, "send_queue",
                                    (json_int_t)send, "receive_queue", (json_int_t)receive,
                                    "retransmits", (json_int_t)retransmits));
}

json_t *hang_sockets(const struct shk_host *host, long pid, struct shk_error *err)
{
    json_t *own = sockets_own(host, pid, err), *sockets = own ? json_array() : NULL;
    static const char *const files[] = {"tcp", "tcp6"};
    for (size_t f = 0; sockets && f < 2; f++) {
        char path[64], *text = NULL, *save = NULL;
        snprintf(path, sizeof path, "/proc/%ld/net/%s", pid, files[f]);
        int rc = shk_host_read(host, path, &text, NULL, err);
        if (rc == -ENOENT) /* no IPv6 */
            continue;
        if (rc) {
            json_decref(sockets);
            sockets = NULL;
            break;
        }
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            sockets_line(line, own, sockets);
        free(text);
    }
    json_decref(own);
    return sockets;
}
