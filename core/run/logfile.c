#include "core/run/logfile.h"

#include "core/run/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* STOP_MS: how often a request to end is looked at while nothing comes. */
enum { RAW = 1 << 17, PIECE = 1 << 20, STOP_MS = 200 };
_Static_assert(PIECE > 2 * SHK_LOGFILE_LINE_MAX, "a line fits into a piece");

enum packing { PLAIN, GZIP, ZSTD };

struct shk_logfile {
    const char *path;
    int fd;
    bool eof; /* of the packed bytes */
    enum packing packing;
    z_stream gzip;
    bool gzip_done; /* a member ended, and no other one has begun */
    ZSTD_DStream *zstd;
    size_t zstd_left; /* 0: between frames */
    unsigned char *raw;
    size_t raw_at, raw_len;
    char *text; /* PIECE bytes: [0, used) is done with, [used, len) is left */
    size_t used, len;
    bool skipping; /* the rest of a line that was cut */
    struct shk_logfile_totals totals;
};

/* Waits until there is something to read; false when the process is asked to end first. */
static bool log_wait(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int rc = 0;
    while (!shk_stop_signal() && rc == 0) {
        rc = poll(&polled, 1, STOP_MS);
        if (rc < 0 && errno == EINTR)
            rc = 0;
    }
    return !shk_stop_signal();
}

/* Reads; sets eof, also when the process is asked to end: then what was read is all. */
static int log_read(struct shk_logfile *log, void *to, size_t cap, size_t *got_p,
                    struct shk_error *err)
{
    ssize_t n;
    do
        n = log_wait(log->fd) ? read(log->fd, to, cap) : 0;
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return shk_error_sys(err, errno, "%s", log->path);
    *got_p = (size_t)n;
    log->eof = n == 0;
    return 0;
}

/* Refills raw. */
static int log_fill(struct shk_logfile *log, struct shk_error *err)
{
    log->raw_at = log->raw_len = 0;
    return log_read(log, log->raw, RAW, &log->raw_len, err);
}

static int log_damaged(struct shk_logfile *log, const char *what, struct shk_error *err)
{
    return shk_error_set(err, EIO, "%s: the %s data are damaged after %llu lines", log->path, what,
                         log->totals.lines);
}

/* Each unpacks into [out, out + cap) what one call gives: *got_p bytes. */
static int unpack_plain(struct shk_logfile *log, char *out, size_t cap, size_t *got_p)
{
    size_t n = log->raw_len - log->raw_at;
    n = n < cap ? n : cap;
    memcpy(out, log->raw + log->raw_at, n);
    log->raw_at += n;
    *got_p = n;
    return 0;
}

static int unpack_gzip(struct shk_logfile *log, char *out, size_t cap, size_t *got_p,
                       struct shk_error *err)
{
    z_stream *z = &log->gzip;
    if (log->gzip_done && log->raw_at < log->raw_len) {
        log->gzip_done = false;
        inflateReset(z);
    }
    z->next_in = log->raw + log->raw_at;
    z->avail_in = (uInt)(log->raw_len - log->raw_at);
    z->next_out = (Bytef *)out;
    z->avail_out = (uInt)cap;
    int rc = inflate(z, Z_NO_FLUSH);
    log->raw_at = log->raw_len - z->avail_in;
    *got_p = cap - z->avail_out;
    log->gzip_done = rc == Z_STREAM_END;
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return log_damaged(log, "gzip", err);
    return 0;
}

static int unpack_zstd(struct shk_logfile *log, char *out, size_t cap, size_t *got_p,
                       struct shk_error *err)
{
    ZSTD_inBuffer in = {.src = log->raw, .size = log->raw_len, .pos = log->raw_at};
    ZSTD_outBuffer to = {.dst = out, .size = cap};
    log->zstd_left = ZSTD_decompressStream(log->zstd, &to, &in);
    log->raw_at = in.pos;
    *got_p = to.pos;
    return ZSTD_isError(log->zstd_left) ? log_damaged(log, "zstd", err) : 0;
}

static bool log_unfinished(const struct shk_logfile *log)
{
    return (log->packing == GZIP && !log->gzip_done) || (log->packing == ZSTD && log->zstd_left);
}

/* Appends to text what one step gives; *more_p is false at the end. */
static int log_more(struct shk_logfile *log, bool *more_p, struct shk_error *err)
{
    char *out = log->text + log->len;
    size_t cap = PIECE - log->len, got = 0;
    int rc = 0;
    while (!rc && !got) {
        bool empty = log->raw_at == log->raw_len;
        if (empty && log->packing == PLAIN)
            rc = log_read(log, out, cap, &got, err);
        else if (empty)
            rc = log_fill(log, err);
        if (rc || got)
            break;
        *more_p = !log->eof;
        if (log->eof)
            return log_unfinished(log) && !shk_stop_signal()
                       ? shk_error_set(err, EIO, "%s: ends in the middle of the compressed data",
                                       log->path)
                       : 0;
        switch (log->packing) {
        case PLAIN: rc = unpack_plain(log, out, cap, &got); break;
        case GZIP: rc = unpack_gzip(log, out, cap, &got, err); break;
        case ZSTD: rc = unpack_zstd(log, out, cap, &got, err); break;
        }
    }
    log->len += got;
    log->totals.bytes += got;
    return rc;
}

static int log_packing(struct shk_logfile *log, struct shk_error *err)
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    int rc = log_fill(log, err);
    if (rc)
        return rc;
    if (log->raw_len >= sizeof gzip && memcmp(log->raw, gzip, sizeof gzip) == 0)
        log->packing = GZIP;
    if (log->raw_len >= sizeof zstd && memcmp(log->raw, zstd, sizeof zstd) == 0)
        log->packing = ZSTD;
    /* 16 + the largest window: a gzip header is expected, see zlib.h. */
    if (log->packing == GZIP && inflateInit2(&log->gzip, 16 + MAX_WBITS) != Z_OK)
        return shk_error_sys(err, ENOMEM, "%s", log->path);
    if (log->packing == ZSTD && !(log->zstd = ZSTD_createDStream()))
        return shk_error_sys(err, ENOMEM, "%s", log->path);
    return 0;
}

int shk_logfile_open(struct shk_logfile **log_p, const char *path, struct shk_error *err)
{
    struct shk_logfile *log = calloc(1, sizeof *log);
    if (!log)
        return shk_error_sys(err, ENOMEM, "%s", path);
    bool is_stdin = strcmp(path, "-") == 0;
    log->path = is_stdin ? "standard input" : path;
    log->raw = malloc(RAW);
    log->text = malloc(PIECE);
    log->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int rc = 0;
    if (log->fd < 0)
        rc = shk_error_sys(err, errno, "%s", log->path);
    else if (!log->raw || !log->text)
        rc = shk_error_sys(err, ENOMEM, "%s", log->path);
    if (!rc)
        rc = log_packing(log, err);
    if (rc) {
        shk_logfile_close(log);
        return rc;
    }
    *log_p = log;
    return 0;
}

/* Drops what is left of a cut line from the front of what is there. */
static void log_skip(struct shk_logfile *log)
{
    const char *end = memchr(log->text + log->used, '\n', log->len - log->used);
    log->skipping = !end;
    log->used = end ? (size_t)(end + 1 - log->text) : log->len;
}

/* Sixteen at a time: this is done to every byte of a log. */
size_t shk_logfile_breaks(const char *data, size_t len)
{
    typedef unsigned char block __attribute__((vector_size(16)));
    size_t breaks = 0, at = 0;
    while (len - at >= sizeof(block)) {
        block sum = {0}, c;
        for (int i = 0; i < 255 && len - at >= sizeof c; i++, at += sizeof c) {
            memcpy(&c, data + at, sizeof c);
            sum -= (block)(c == '\n');
        }
        for (size_t i = 0; i < sizeof sum; i++)
            breaks += sum[i];
    }
    for (; at < len; at++)
        breaks += data[at] == '\n';
    return breaks;
}

/* Hands out [used, end). */
static int log_give(struct shk_logfile *log, size_t end, struct shk_logpiece *piece)
{
    *piece = (struct shk_logpiece){
        .data = log->text + log->used, .len = end - log->used, .first_line = log->totals.lines + 1};
    log->totals.lines += shk_logfile_breaks(piece->data, piece->len);
    if (piece->len && piece->data[piece->len - 1] != '\n')
        log->totals.lines++;
    log->used = end;
    return 1;
}

static void log_compact(struct shk_logfile *log)
{
    if (log->used)
        memmove(log->text, log->text + log->used, log->len - log->used);
    log->len -= log->used;
    log->used = 0;
}

int shk_logfile_read(struct shk_logfile *log, struct shk_logpiece *piece_p, struct shk_error *err)
{
    for (bool more = true;;) {
        if (log->skipping)
            log_skip(log);
        log_compact(log);
        if (!more) /* the last line need not end */
            return log->len ? log_give(log, log->len, piece_p) : 0;
        if (log->len == PIECE)
            break;
        int rc = log_more(log, &more, err);
        if (rc < 0)
            return rc;
    }
    const char *last = memrchr(log->text, '\n', log->len);
    if (last)
        return log_give(log, (size_t)(last + 1 - log->text), piece_p);
    /* One line fills the buffer: its head is looked at, the rest is not. */
    log->totals.cut++;
    log->skipping = true;
    return log_give(log, SHK_LOGFILE_LINE_MAX, piece_p);
}

struct shk_logfile_totals shk_logfile_totals(const struct shk_logfile *log)
{
    return log->totals;
}

void shk_logfile_close(struct shk_logfile *log)
{
    if (!log)
        return;
    if (log->packing == GZIP)
        inflateEnd(&log->gzip);
    ZSTD_freeDStream(log->zstd);
    if (log->fd >= 0)
        close(log->fd);
    free(log->raw);
    free(log->text);
    free(log);
}
