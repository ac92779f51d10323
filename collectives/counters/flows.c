#include "collectives/counters/flows.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* States of sockets that carry or carried data: all but LISTEN (10), TIME_WAIT (6), NEW_SYN_RECV
 * (12) and CLOSE (7), as numbered in the kernel's net/tcp_states.h. */
#define FLOWS_STATES (0xfffU & ~(1U << 6 | 1U << 7 | 1U << 10))

/* Open files of a process that are looked at. */
#define FLOWS_FILES ((size_t)65536)

#define FLOWS_BUFFER ((size_t)32768)

/* The usual least time-out is 200 ms, and an acknowledgement is put off for no longer. */
#define FLOWS_QUIET_MS 1000U

/* A kernel that does not answer is not waited for longer. */
#define FLOWS_WAIT_MS 500

/* struct tcp_info of Linux (include/uapi/linux/tcp.h), which only grows at its end: the headers of
 * the machine that builds may be older than the kernel that answers. */
struct flows_tcp {
    uint8_t state, ca_state, retransmits, probes, backoff, options, scales, flags;
    uint32_t rto, ato, snd_mss, rcv_mss;
    uint32_t unacked, sacked, lost, retrans, fackets;
    uint32_t last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
    uint32_t pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering;
    uint32_t rcv_rtt, rcv_space;
    uint32_t total_retrans;
    uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    uint32_t segs_out, segs_in;
    uint32_t notsent_bytes, min_rtt, data_segs_in, data_segs_out; /* 4.6 */
    uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
    uint32_t delivered, delivered_ce;
    uint64_t bytes_sent, bytes_retrans;
    uint32_t dsack_dups, reord_seen, rcv_ooopack, snd_wnd; /* 4.19, 5.4 */
    uint32_t rcv_wnd, rehash;
    uint16_t total_rto, total_rto_recoveries; /* 6.7 */
    uint32_t total_rto_time;
};
_Static_assert(offsetof(struct flows_tcp, total_retrans) == 100, "struct tcp_info");
_Static_assert(offsetof(struct flows_tcp, data_segs_out) == 156, "struct tcp_info");
_Static_assert(offsetof(struct flows_tcp, dsack_dups) == 216, "struct tcp_info");
_Static_assert(offsetof(struct flows_tcp, total_rto) == 240, "struct tcp_info");

#define FLOWS_HAS(len, member) ((len) > offsetof(struct flows_tcp, member))

struct flows_inodes {
    uint32_t *inode;
    size_t count;
};

static void flows_fail(struct shk_flows *flows, int errnum, const char *what)
{
    snprintf(flows->why, sizeof flows->why, "%s: %s", what, strerror(errnum));
    flows->count = 0;
    flows->state = SHK_FLOWS_FAILED;
}

static int flows_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sockets among the open files of a process. -errno. */
static int flows_inodes(struct flows_inodes *inodes, pid_t pid)
{
    char path[64];
    DIR *dir = NULL;
    struct dirent *entry = NULL;
    size_t room = 0;

    snprintf(path, sizeof path, pid != 0 ? "/proc/%d/fd" : "/proc/self/fd", (int)pid);
    dir = opendir(path);
    if (!dir)
        return -errno;
    while (inodes->count < FLOWS_FILES && (entry = readdir(dir)) != NULL) {
        char link[64] = "";
        unsigned inode = 0;

        if (readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) <= 0 ||
            sscanf(link, "socket:[%u]", &inode) != 1) {
            continue;
        }
        if (inodes->count == room) {
            uint32_t *more = realloc(inodes->inode, (room = room * 2 + 64) * sizeof *more);

            if (!more) {
                closedir(dir);
                return -ENOMEM;
            }
            inodes->inode = more;
        }
        inodes->inode[inodes->count++] = inode;
    }
    closedir(dir);
    if (inodes->count > 0)
        qsort(inodes->inode, inodes->count, sizeof *inodes->inode, flows_compare);
    return 0;
}

/* An IPv4 address in IPv6's clothes is IPv4. */
static void flows_address(char *text, unsigned char family, const __be32 *address)
{
    bool mapped =
        family == AF_INET6 && address[0] == 0 && address[1] == 0 && address[2] == htonl(0xffffU);

    if (inet_ntop(mapped ? AF_INET : family, mapped ? &address[3] : address, text,
                  SHK_FLOW_ADDRESS) == NULL) {
        text[0] = '\0';
    }
}

/* The row of two addresses: the one there is, a new one, or that of the flow that lost least. */
static struct shk_flow *flows_row(struct shk_flows *flows, const struct shk_flow *key,
                                  uint64_t again)
{
    struct shk_flow *least = &flows->row[0];

    for (uint32_t i = 0; i < flows->count; i++) {
        struct shk_flow *row = &flows->row[i];

        if (strcmp(row->from, key->from) == 0 && strcmp(row->to, key->to) == 0)
            return row;
        least = row->again < least->again ? row : least;
    }
    if (flows->count == SHK_FLOWS_MAX) {
        flows->left_out++;
        if (least->again >= again)
            return NULL;
    } else {
        least = &flows->row[flows->count++];
    }
    *least = *key;
    return least;
}

/* What TCP handed to the layers below and did not get rid of: it counts every attempt as sent, but
 * not as a retransmission when the attempt failed on this host (__tcp_transmit_skb() in the
 * kernel's net/ipv4/tcp_output.c). */
static uint64_t flows_unsent(const struct flows_tcp *tcp)
{
    uint64_t once = tcp->bytes_sent - tcp->bytes_retrans;
    uint64_t more = once > tcp->bytes_acked ? once - tcp->bytes_acked : 0;
    uint64_t segments = tcp->snd_mss > 0 ? more / tcp->snd_mss : 0;

    return segments > tcp->unacked ? segments - tcp->unacked : 0;
}

/* Data waits and nothing of it gets there: a second time-out in a row, or attempts that fail on
 * this host, which TCP makes twice a second and neither counts nor backs off from
 * (tcp_send_probe0() and tcp_retransmit_timer(), TCP_RESOURCE_PROBE_INTERVAL), or no
 * acknowledgement for as long as three time-outs. A peer that does not read is none of these: it
 * acknowledges, with its window closed. */
static bool flows_stuck(const struct flows_tcp *tcp)
{
    bool quiet = tcp->last_ack_recv >= FLOWS_QUIET_MS;

    if (tcp->unacked > 0 &&
        (tcp->backoff >= 2 || (quiet && tcp->last_ack_recv >= 3ULL * tcp->rto / 1000))) {
        return true;
    }
    return quiet && (tcp->unacked > 0 || tcp->notsent_bytes > 0) && flows_unsent(tcp) >= 2;
}

static void flows_add(struct shk_flows *flows, const struct inet_diag_msg *msg,
                      const struct flows_tcp *tcp, size_t len)
{
    struct shk_flow key = {.rtt_us = UINT32_MAX};
    struct shk_flow *row = NULL;

    flows_address(key.from, msg->idiag_family, msg->id.idiag_src);
    flows_address(key.to, msg->idiag_family, msg->id.idiag_dst);
    if (key.from[0] == '\0' || strcmp(key.from, key.to) == 0 || strncmp(key.to, "127.", 4) == 0)
        return;
    flows->sent += tcp->data_segs_out;
    flows->again += tcp->total_retrans;
    row = flows_row(flows, &key, tcp->total_retrans);
    if (!row)
        return;
    row->sockets++;
    row->stuck += flows_stuck(tcp);
    row->mss = tcp->snd_mss > row->mss ? tcp->snd_mss : row->mss;
    row->rtt_us = tcp->min_rtt != 0 && tcp->min_rtt < row->rtt_us ? tcp->min_rtt : row->rtt_us;
    row->sent += tcp->data_segs_out;
    row->again += tcp->total_retrans;
    row->needless += tcp->dsack_dups;
    row->unsent += flows_unsent(tcp);
    if (FLOWS_HAS(len, total_rto_time) && row->timeouts >= 0) {
        row->timeouts += tcp->total_rto;
        row->waited_ms += tcp->total_rto_time;
    } else {
        row->timeouts = row->waited_ms = -1;
    }
}

static void flows_message(struct shk_flows *flows, const struct flows_inodes *inodes,
                          struct nlmsghdr *head)
{
    struct inet_diag_msg *msg = NLMSG_DATA(head);
    int len = (int)head->nlmsg_len - (int)NLMSG_LENGTH(sizeof *msg);
    struct rtattr *attr = (struct rtattr *)(msg + 1);
    uint32_t inode = msg->idiag_inode;

    if (len < 0 || inodes->count == 0 ||
        !bsearch(&inode, inodes->inode, inodes->count, sizeof inode, flows_compare)) {
        return;
    }
    for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
        struct flows_tcp tcp = {0};
        size_t size = RTA_PAYLOAD(attr);

        /* Older than 4.6: no number of segments with data, so no ratio. */
        if (attr->rta_type == INET_DIAG_INFO && FLOWS_HAS(size, data_segs_out)) {
            memcpy(&tcp, RTA_DATA(attr), size < sizeof tcp ? size : sizeof tcp);
            flows_add(flows, msg, &tcp, size);
        }
    }
}

/* One answer of the kernel. 1: there is more, 0: that was all, -errno. */
static int flows_answer(struct shk_flows *flows, const struct flows_inodes *inodes, void *buf,
                        ssize_t got)
{
    struct nlmsghdr *head = buf;
    size_t len = (size_t)got;

    for (; NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (head->nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *error = NLMSG_DATA(head);

            return error->error < 0 ? error->error : -EPROTO;
        }
        if (head->nlmsg_type == SOCK_DIAG_BY_FAMILY)
            flows_message(flows, inodes, head);
    }
    return 1;
}

static int flows_ask(int fd, unsigned char family)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 req;
    } ask = {
        .head = {.nlmsg_len = sizeof ask,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .req = {.sdiag_family = family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_ext = 1U << (INET_DIAG_INFO - 1),
                .idiag_states = FLOWS_STATES},
    };

    return send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask ? 0 : -errno;
}

static int flows_dump(struct shk_flows *flows, const struct flows_inodes *inodes, int fd,
                      unsigned char family, void *buf)
{
    int rc = flows_ask(fd, family);

    rc = rc == 0 ? 1 : rc;
    while (rc == 1) {
        ssize_t got = recv(fd, buf, FLOWS_BUFFER, 0);

        rc = got > 0 ? flows_answer(flows, inodes, buf, got) : got == 0 ? -EPROTO : -errno;
        rc = rc == -EINTR ? 1 : rc;
    }
    return rc;
}

static int flows_fill(struct shk_flows *flows, const struct flows_inodes *inodes)
{
    struct timeval wait = {.tv_usec = FLOWS_WAIT_MS * 1000L};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    void *buf = malloc(FLOWS_BUFFER);
    int rc = fd < 0 ? -errno : !buf ? -ENOMEM : 0;

    if (rc == 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        rc = flows_dump(flows, inodes, fd, AF_INET, buf);
    }
    /* A kernel without IPv6 has no such sockets. */
    if (rc == 0 && flows_dump(flows, inodes, fd, AF_INET6, buf) == -ENOMEM)
        rc = -ENOMEM;
    if (fd >= 0)
        close(fd);
    free(buf);
    return rc;
}

void shk_flows_read(struct shk_flows *flows, pid_t pid)
{
    struct flows_inodes inodes = {0};
    int rc = flows_inodes(&inodes, pid);

    memset(flows, 0, sizeof *flows);
    if (rc == -ENOENT || rc == -ESRCH) {
        return; /* the process is gone: not looked at */
    }
    if (rc < 0) {
        flows_fail(flows, -rc, "open files of the rank");
    } else if ((rc = flows_fill(flows, &inodes)) < 0) {
        flows_fail(flows, -rc, "the kernel's list of TCP sockets (inet_diag)");
    } else {
        for (uint32_t i = 0; i < flows->count; i++)
            flows->row[i].rtt_us = flows->row[i].rtt_us == UINT32_MAX ? 0 : flows->row[i].rtt_us;
        __atomic_store_n(&flows->state, SHK_FLOWS_READ, __ATOMIC_RELEASE);
    }
    free(inodes.inode);
}

void shk_flows_keep(struct shk_flows *flows, const struct shk_flows *other)
{
    uint32_t state = __atomic_load_n(&other->state, __ATOMIC_ACQUIRE);

    if (state > SHK_FLOWS_FAILED || other->count > SHK_FLOWS_MAX)
        return;
    if (flows->state == SHK_FLOWS_NONE ||
        (state == SHK_FLOWS_READ &&
         (flows->state == SHK_FLOWS_FAILED || other->sent >= flows->sent))) {
        *flows = *other;
    }
}

static json_t *flows_row_json(const struct shk_flow *row)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "from",
                     row->from, "to", row->to, "sockets", (int)row->sockets, "stuck",
                     (int)row->stuck, "mss", (int)row->mss, "rtt_us", (int)row->rtt_us, "sent",
                     (json_int_t)row->sent, "again", (json_int_t)row->again, "needless",
                     (json_int_t)row->needless, "unsent", (json_int_t)row->unsent, "timeouts",
                     (json_int_t)row->timeouts, "waited_ms", (json_int_t)row->waited_ms);
}

json_t *shk_flows_json(const struct shk_flows *flows)
{
    json_t *rows = json_array();
    uint32_t i = 0;

    for (i = 0; flows->state == SHK_FLOWS_READ && i < flows->count; i++)
        (void)json_array_append_new(rows, flows_row_json(&flows->row[i]));
    return json_pack("{s:b, s:s?, s:i, s:o}", "read", flows->state == SHK_FLOWS_READ, "why",
                     flows->state == SHK_FLOWS_READ ? NULL
                     : flows->state == SHK_FLOWS_FAILED
                         ? flows->why
                         : "the rank ended before its sockets were looked at",
                     "left_out", (int)flows->left_out, "rows", rows);
}
