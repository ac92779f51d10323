#include "collectives/gpu/multicast/gpu_multicast.h"
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Goes with each descriptor: sockets of this kind take from anyone on the host, but only ranks of
 * the job know the owner's secret. */
struct post_note {
    uint64_t secret;
    uint32_t rank;
    uint32_t zero;
};

/* What a rank publishes. */
struct post_box {
    uint64_t secret;
    struct sockaddr_un address;
    socklen_t len;
};

union post_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int gpu_post_open(struct gpu_rank *g, int *socket_p, struct shk_error *err)
{
    struct post_box box = {.address = {.sun_family = AF_UNIX}, .len = sizeof box.address};
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *socket_p = made;
    /* Without a name the kernel gives one that is free, in the abstract name space. */
    if (made < 0 || getrandom(&box.secret, sizeof box.secret, 0) != sizeof box.secret ||
        bind(made, (struct sockaddr *)&box.address, sizeof(sa_family_t)) != 0 ||
        getsockname(made, (struct sockaddr *)&box.address, &box.len) != 0) {
        return shk_error_sys(err, errno, "socket for handles of GPU memory");
    }
    return shk_job_put(g->job, GPU_KEY_POST, &box, sizeof box, err);
}

int gpu_post_send(struct gpu_rank *g, int socket, unsigned peer, int fd, struct shk_error *err)
{
    struct post_note note = {.rank = g->rank};
    struct iovec part = {&note, sizeof note};
    struct post_box box;
    union post_control control;
    struct msghdr message = {.msg_name = &box.address,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = NULL;
    size_t len = 0;
    int rc = shk_job_get(g->job, peer, GPU_KEY_POST, &box, sizeof box, &len, err);

    if (rc < 0)
        return rc;
    memset(&control, 0, sizeof control);
    message.msg_namelen = box.len;
    note.secret = box.secret;
    head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof note
               ? 0
               : shk_error_sys(err, errno, "handle of GPU memory to rank %u", peer);
}

/* The descriptor of one message; -1 when there is none. */
static int post_descriptor(struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int fd = -1;

    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof fd)) {
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    }
    return fd;
}

int gpu_post_take(struct gpu_rank *g, int socket, unsigned peer, int *fd_p, struct shk_error *err)
{
    struct post_box mine;
    size_t len = 0;
    int rc = shk_job_get(g->job, g->rank, GPU_KEY_POST, &mine, sizeof mine, &len, err);

    while (rc == 0) {
        struct post_note note = {0};
        struct iovec part = {&note, sizeof note};
        union post_control control;
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        int fd = got >= 0 ? post_descriptor(&message) : -1;

        if (got < 0)
            return shk_error_sys(err, errno, "handle of GPU memory from rank %u", peer);
        if (fd >= 0 && got == (ssize_t)sizeof note && note.secret == mine.secret &&
            note.rank == peer) {
            *fd_p = fd;
            return 0;
        }
        if (fd >= 0)
            close(fd);
    }
    return rc;
}
