/* Do small packets pass where large ones do not? Asked for peers to which a worker's data is stuck,
 * with a request for a connection, whatever the answer: also a refusal has come all the way. */
#include "collectives/launch/world_private.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A round trip through a network that works takes far less, also on a crowded machine. */
#define PATH_WAIT_MS 1000

/* Peers that are asked: any of them tells. */
#define PATH_PEERS 8U

/* Port of the service "discard" (RFC 863): hardly ever served, so that it is refused at once. */
#define PATH_PORT "9"

static int path_address(const char *text, const char *port, struct addrinfo **info_p)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};

    return getaddrinfo(text, port, &hints, info_p);
}

enum path_state { PATH_NOT_ASKED, PATH_ASKED, PATH_SILENT, PATH_ANSWERED };

static enum path_state path_connect(int fd, const struct addrinfo *here,
                                    const struct addrinfo *there)
{
    if (fd < 0 || bind(fd, here->ai_addr, here->ai_addrlen) != 0)
        return PATH_NOT_ASKED;
    if (connect(fd, there->ai_addr, there->ai_addrlen) == 0)
        return PATH_ANSWERED;
    switch (errno) {
    case EINPROGRESS: return PATH_ASKED;
    case ECONNREFUSED: return PATH_ANSWERED;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT: return PATH_SILENT;
    default: return PATH_NOT_ASKED;
    }
}

/* Asks for a connection from the address that is stuck. */
static enum path_state path_ask(const char *from, const char *to, int *fd_p)
{
    struct addrinfo *here = NULL;
    struct addrinfo *there = NULL;
    enum path_state state = PATH_NOT_ASKED;

    *fd_p = -1;
    if (path_address(from, "0", &here) == 0 && path_address(to, PATH_PORT, &there) == 0) {
        *fd_p = socket(there->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        state = path_connect(*fd_p, here, there);
    }
    if (here)
        freeaddrinfo(here);
    if (there)
        freeaddrinfo(there);
    return state;
}

static bool path_answer(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 &&
           (error == 0 || error == ECONNREFUSED);
}

static void path_wait(const int *fds, enum path_state *state, nfds_t count)
{
    uint64_t end = shk_job_now_ns() + PATH_WAIT_MS * 1000000ULL;
    struct pollfd polled[PATH_PEERS];
    nfds_t left = 0;
    nfds_t i = 0;
    bool late = false;

    for (i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = state[i] == PATH_ASKED ? fds[i] : -1, .events = POLLOUT};
        left += state[i] == PATH_ASKED;
    }
    /* once more at the end: an answer may be there that this process had no time to see */
    while (left > 0 && !late) {
        late = shk_job_now_ns() >= end;
        if (poll(polled, count, late ? 0 : PATH_WAIT_MS / 10) < 0)
            break;
        for (i = 0; i < count; i++) {
            if (polled[i].fd >= 0 && polled[i].revents != 0) {
                state[i] = path_answer(polled[i].fd) ? PATH_ANSWERED : PATH_SILENT;
                polled[i].fd = -1;
                left--;
            }
        }
    }
}

void agent_path(json_t *rows)
{
    json_t *asked[PATH_PEERS];
    enum path_state state[PATH_PEERS];
    int fds[PATH_PEERS];
    nfds_t count = 0;
    nfds_t i = 0;
    json_t *row = NULL;
    size_t k = 0;

    json_array_foreach(rows, k, row)
    {
        const char *from = json_string_value(json_object_get(row, "from"));
        const char *to = json_string_value(json_object_get(row, "to"));

        if (count < PATH_PEERS && from && to &&
            json_integer_value(json_object_get(row, "stuck")) > 0) {
            state[count] = path_ask(from, to, &fds[count]);
            asked[count++] = row;
        }
    }
    path_wait(fds, state, count);
    for (i = 0; i < count; i++) {
        if (state[i] != PATH_NOT_ASKED)
            (void)json_object_set_new(asked[i], "answers", json_boolean(state[i] == PATH_ANSWERED));
        if (fds[i] >= 0)
            close(fds[i]);
    }
}
