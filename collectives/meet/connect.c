#include "collectives/meet/connect.h"
#include "collectives/meet/card.h"
#include "collectives/meet/link.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* One address that does not answer must not use up the time of the others. */
#define CONNECT_MS 1500
/* How long who takes the connection may take to say the first word; doubled in every round, since
 * rank 0 may be busy with a thousand others. */
#define CONNECT_WORD_MS      2000U
#define CONNECT_WORD_MOST_MS 8000U
/* Between two rounds, and at most for one round of names. */
#define CONNECT_NAP_NS     100000000L
#define CONNECT_RESOLVE_MS 6000U

/* No more from one who is not known yet. */
#define CONNECT_FRAME_MAX ((size_t)512)

static int connect_resolve(void *arg, json_t **result_p, struct shk_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    json_t *host, *list = json_array();
    char text[NI_MAXHOST];
    size_t i;
    (void)err;
    json_array_foreach((json_t *)arg, i, host)
    {
        struct addrinfo *info = NULL;
        shk_crumb_call("getaddrinfo of %s", json_string_value(host));
        if (getaddrinfo(json_string_value(host), NULL, &hints, &info))
            continue;
        for (const struct addrinfo *at = info; at; at = at->ai_next)
            if (!getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0,
                             NI_NUMERICHOST))
                json_array_append_new(list, json_string(text));
        freeaddrinfo(info);
    }
    *result_p = list;
    return 0;
}

/* Nothing to look up. */
static bool connect_numeric(const json_t *hosts)
{
    json_t *host;
    size_t i;
    json_array_foreach((json_t *)hosts, i, host)
    {
        struct in6_addr unused;
        const char *text = json_string_value(host);
        if (inet_pton(AF_INET, text, &unused) != 1 && inet_pton(AF_INET6, text, &unused) != 1)
            return false;
    }
    return true;
}

json_t *shk_connect_resolve(const json_t *hosts, unsigned deadline_ms)
{
    if (connect_numeric(hosts))
        return json_incref((json_t *)hosts);
    struct shk_isolate_job job = {
        .name = "names", .fn = connect_resolve, .arg = (void *)hosts, .deadline_ms = deadline_ms};
    struct shk_isolate_result result;
    struct shk_error err = {""};
    json_t *list = NULL;
    if (shk_isolate_run(&job, &result, 1, 1, &err))
        return json_array();
    if (json_is_array(result.result))
        list = json_incref(result.result);
    shk_isolate_result_clear(&result);
    return list ? list : json_array();
}

static int connect_try(const char *address, unsigned port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    struct pollfd ready = {.events = POLLOUT};
    int error = 0, one = 1;
    socklen_t len = sizeof error;
    char service[16];
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(address, service, &hints, &info))
        return -EINVAL;
    ready.fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    error = ready.fd < 0 ? errno : 0;
    shk_card_segments(ready.fd);
    if (!error && connect(ready.fd, info->ai_addr, info->ai_addrlen)) {
        error = errno;
        if (error == EINPROGRESS && poll(&ready, 1, CONNECT_MS) == 1 &&
            getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &len))
            error = errno;
    }
    freeaddrinfo(info);
    if (error == EINPROGRESS)
        error = ETIMEDOUT;
    if (error && ready.fd >= 0)
        close(ready.fd);
    if (error)
        return -error;
    (void)setsockopt(ready.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return ready.fd;
}

/* The next frame, which must be of this type; until then. */
static bool connect_frame(struct shk_link *link, uint32_t type, struct shk_frame *frame,
                          uint64_t end_ns)
{
    for (;;) {
        uint64_t now = shk_job_now_ns();
        struct pollfd ready = {.fd = link->fd, .events = POLLIN};
        if (shk_link_next(link, frame))
            return frame->type == type;
        if (link->fd < 0 || now >= end_ns)
            return false;
        (void)poll(&ready, 1, (int)((end_ns - now) / 1000000U) + 1);
        (void)shk_link_fill(link);
    }
}

/* Is it rank 0 at the other end, and does it take this rank? */
static enum shk_greet_verdict connect_greet(const struct shk_connect *connect,
                                            struct shk_link *link, uint64_t word_ns,
                                            struct shk_greet_welcome *welcome)
{
    struct shk_greet_challenge challenge;
    struct shk_greet_proof proof;
    struct shk_frame frame;
    if (!connect_frame(link, SHK_FRAME_CHALLENGE, &frame, word_ns))
        return SHK_GREET_GARBLED;
    enum shk_greet_verdict verdict =
        shk_greet_answer(connect->self, frame.data, frame.len, &challenge, &proof);
    if (verdict == SHK_GREET_GARBLED || verdict == SHK_GREET_OTHER_JOB)
        return verdict;
    if (shk_link_send(link, SHK_FRAME_PROOF, &proof, sizeof proof))
        return SHK_GREET_GARBLED;
    bool came = connect_frame(link, SHK_FRAME_WELCOME, &frame, connect->end_ns);
    if (verdict != SHK_GREET_WELCOME) /* known beforehand; rank 0 was told so that it can say it */
        return verdict;
    return came ? shk_greet_end(connect->self, &challenge, &proof, frame.data, frame.len, welcome)
                : SHK_GREET_GARBLED;
}

/* What was seen where, the last time. */
struct connect_seen {
    char text[160];
};

/* One address and port. A socket, -EAGAIN: not rank 0, -errno with text: refused. */
static int connect_one(const struct shk_connect *connect, const char *address, unsigned port,
                       uint64_t word_ns, struct shk_greet_welcome *welcome,
                       struct connect_seen *seen, struct shk_error *err)
{
    struct shk_link link;
    int fd = connect_try(address, port);
    if (fd < 0) {
        if (fd != -ECONNREFUSED || !*seen->text)
            snprintf(seen->text, sizeof seen->text, "%.64s port %u: %s", address, port,
                     strerror(-fd));
        return -EAGAIN;
    }
    shk_link_open(&link, fd);
    link.limit = CONNECT_FRAME_MAX;
    enum shk_greet_verdict verdict = connect_greet(connect, &link, word_ns, welcome);
    if (verdict == SHK_GREET_WELCOME && link.fd >= 0 && link.in.len == link.taken) {
        link.fd = -1;
        shk_link_close(&link);
        return fd;
    }
    shk_link_close(&link);
    if (verdict == SHK_GREET_WELCOME || verdict == SHK_GREET_GARBLED ||
        verdict == SHK_GREET_OTHER_JOB) {
        snprintf(seen->text, sizeof seen->text, "%.64s port %u: %s", address, port,
                 verdict == SHK_GREET_OTHER_JOB ? "rank 0 of another job" : "no shakedown answers");
        return -EAGAIN;
    }
    return shk_greet_refused(connect->self, verdict, welcome, err);
}

static int connect_round(const struct shk_connect *connect, const json_t *addresses,
                         unsigned word_ms, struct shk_greet_welcome *welcome,
                         struct connect_seen *seen, struct shk_error *err)
{
    json_t *address;
    size_t i;
    int refused = -EAGAIN; /* perhaps by a run that was there before: the next port may be ours */
    json_array_foreach((json_t *)addresses, i, address)
    {
        for (unsigned p = 0; p < connect->ports; p++) {
            uint64_t now = shk_job_now_ns(), word_ns = now + word_ms * 1000000ULL;
            if (now >= connect->end_ns)
                return refused;
            int rc = connect_one(connect, json_string_value(address), connect->port[p],
                                 word_ns < connect->end_ns ? word_ns : connect->end_ns, welcome,
                                 seen, err);
            if (rc >= 0)
                return rc;
            refused = rc != -EAGAIN ? rc : refused;
        }
    }
    return refused;
}

/* "shk1, shk2 and 4 more" */
static void connect_names(char *buf, size_t size, const json_t *hosts)
{
    size_t n = json_array_size(hosts);
    const char *first = json_string_value(json_array_get(hosts, 0));
    if (n > 1)
        snprintf(buf, size, "%.100s and %zu more", first ? first : "?", n - 1);
    else
        snprintf(buf, size, "%.120s", first ? first : "?");
}

int shk_connect(const struct shk_connect *connect, struct shk_greet_welcome *welcome,
                struct shk_error *err)
{
    struct timespec nap = {.tv_nsec = CONNECT_NAP_NS};
    struct connect_seen seen = {""};
    unsigned word_ms = CONNECT_WORD_MS;
    char names[160];
    for (;;) {
        uint64_t now = shk_job_now_ns();
        if (now >= connect->end_ns)
            break;
        uint64_t left_ms = (connect->end_ns - now) / 1000000U + 1;
        json_t *addresses = shk_connect_resolve(
            connect->hosts, left_ms < CONNECT_RESOLVE_MS ? (unsigned)left_ms : CONNECT_RESOLVE_MS);
        if (json_array_size(addresses) == 0)
            snprintf(seen.text, sizeof seen.text, "this host cannot resolve the name");
        int rc = connect_round(connect, addresses, word_ms, welcome, &seen, err);
        json_decref(addresses);
        if (rc != -EAGAIN)
            return rc;
        word_ms = word_ms < CONNECT_WORD_MOST_MS ? 2 * word_ms : word_ms;
        (void)nanosleep(&nap, NULL);
    }
    connect_names(names, sizeof names, connect->hosts);
    return shk_error_set(err, EHOSTUNREACH, "rank %u of %u cannot reach rank 0 at %s (%s)",
                         connect->self->rank, connect->self->size, names, seen.text);
}
