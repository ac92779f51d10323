/* Log files in pieces of whole lines: plain, gzip or zstd (told by their first bytes), or stdin.
 * Memory does not depend on the size of the file or of a line. */
#ifndef SHK_CORE_LOGFILE_H
#define SHK_CORE_LOGFILE_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

struct shk_logfile;

/* Whole lines, borrowed until the next read. */
struct shk_logpiece {
    const char *data; /* any bytes; each line ends in '\n', the last one of the file may not */
    size_t len;
    unsigned long long first_line; /* counted from 1 */
};

/* Lines up to this length are always whole; of one that does not fit into the buffer only this much
 * is handed out. */
#define SHK_LOGFILE_LINE_MAX 65536

/* "-" is stdin. On failure the message names the file. */
int shk_logfile_open(struct shk_logfile **log_p, const char *path,
                     struct shk_error *err) SHK_MUST_CHECK;

/* 1 and a piece, 0 at the end, or a negative errno: the file cannot be read on, or the compressed
 * data are damaged. */
int shk_logfile_read(struct shk_logfile *log, struct shk_logpiece *piece_p,
                     struct shk_error *err) SHK_MUST_CHECK;

/* So far: bytes after unpacking, lines, and lines that were cut. */
struct shk_logfile_totals {
    unsigned long long bytes, lines, cut;
};
struct shk_logfile_totals shk_logfile_totals(const struct shk_logfile *log);

void shk_logfile_close(struct shk_logfile *log);

/* Line breaks in the data. */
size_t shk_logfile_breaks(const char *data, size_t len);

#endif
