#include "collectives/meet/link.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_CHUNK ((size_t)1 << 16)

void shk_link_open(struct shk_link *link, int fd)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
    link->heard_ns = shk_job_now_ns();
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void link_hang_up(struct shk_link *link)
{
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
}

void shk_link_close(struct shk_link *link)
{
    link_hang_up(link);
    shk_strbuf_free(&link->in);
    shk_strbuf_free(&link->out);
    link->taken = 0;
    free(link->greeting);
    link->greeting = NULL;
}

/* Of thousands of links none keeps the room of its largest frame. */
static void link_shrink(struct shk_strbuf *empty)
{
    if (empty->cap > LINK_CHUNK)
        shk_strbuf_free(empty);
}

int shk_link_flush(struct shk_link *link)
{
    size_t at = 0;
    int rc = link->fd < 0 ? -EPIPE : 0;

    while (rc == 0 && at < link->out.len) {
        ssize_t n =
            send(link->fd, link->out.data + at, link->out.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            at += (size_t)n;
            link->sent += (uint64_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            rc = -errno;
        }
    }
    if (at > 0) {
        memmove(link->out.data, link->out.data + at, link->out.len - at);
        link->out.len -= at;
    }
    if (link->out.len == 0)
        link_shrink(&link->out);
    if (rc < 0)
        link_hang_up(link);
    return rc;
}

int shk_link_send(struct shk_link *link, uint32_t type, const void *data, size_t len)
{
    uint32_t head[2] = {type, (uint32_t)len};

    if (link->fd < 0)
        return -EPIPE;
    shk_strbuf_add(&link->out, head, sizeof head);
    if (len > 0)
        shk_strbuf_add(&link->out, data, len);
    if (link->out.failed) {
        link_hang_up(link);
        return -ENOMEM;
    }
    return shk_link_flush(link);
}

/* Drops the frames that were handed out. */
static void link_forget(struct shk_link *link)
{
    if (link->taken > 0) {
        memmove(link->in.data, link->in.data + link->taken, link->in.len - link->taken);
        link->in.len -= link->taken;
        link->taken = 0;
    }
    if (link->in.len == 0)
        link_shrink(&link->in);
}

int shk_link_fill(struct shk_link *link)
{
    char chunk[LINK_CHUNK];

    link_forget(link);
    while (link->fd >= 0) {
        ssize_t n = recv(link->fd, chunk, sizeof chunk, MSG_DONTWAIT);

        if (n > 0) {
            shk_strbuf_add(&link->in, chunk, (size_t)n);
            link->heard_ns = shk_job_now_ns();
            link->received += (uint64_t)n;
            if (link->in.failed) {
                link_hang_up(link);
                return -ENOMEM;
            }
            if ((size_t)n < sizeof chunk)
                return 0;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
            link_hang_up(link);
        } else if (errno != EINTR) {
            return 0;
        }
    }
    return -EPIPE;
}

bool shk_link_next(struct shk_link *link, struct shk_frame *frame)
{
    size_t limit = link->limit != 0 ? link->limit : SHK_LINK_MAX;
    size_t left = link->in.len - link->taken;
    uint32_t head[2];

    if (left < sizeof head)
        return false;
    memcpy(head, link->in.data + link->taken, sizeof head);
    if (head[1] > limit) {
        link_hang_up(link);
        return false;
    }
    if (left < sizeof head + head[1])
        return false;
    frame->type = head[0];
    frame->len = head[1];
    frame->data = (const unsigned char *)link->in.data + link->taken + sizeof head;
    link->taken += sizeof head + head[1];
    return true;
}
