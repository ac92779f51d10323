/* Root handle: the only way to read the host's files (/proc, /sys, /dev, /etc, /opt).
 *
 * A live handle is rooted at "/". A capture handle is rooted at a directory given by --sysroot;
 * path resolution, symbolic links included, never leaves it. All paths are absolute, as seen on
 * the machine that the tree describes. Thread-compatible; survives fork(). */
#ifndef SHK_CORE_HOST_H
#define SHK_CORE_HOST_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct shk_host;

/* sysroot NULL or "/" gives a live handle. Fails when the directory cannot be opened. The caller
 * closes the handle with shk_host_close(). */
int shk_host_open(struct shk_host **host_p, const char *sysroot,
                  struct shk_error *err) SHK_MUST_CHECK;
void shk_host_close(struct shk_host *host);

bool shk_host_is_live(const struct shk_host *host);

/* The directory given to shk_host_open(), "/" when live. Owned by host. */
const char *shk_host_root(const struct shk_host *host);

/* Default limit on the bytes read from one file: generous for any /proc or /sys file that a probe
 * reads, and small against the memory of a node. */
#define SHK_HOST_MAX_READ ((size_t)4 << 20)

/* Reads a whole regular file (a new NUL-terminated string in *data_p, length in *len_p if not
 * NULL; free with free()). Never blocks on a FIFO or device: anything but a regular file is
 * -EINVAL. -ENOENT: does not exist (no text is needed to tell absent from failed). -EFBIG: larger
 * than SHK_HOST_MAX_READ. */
int shk_host_read(const struct shk_host *host, const char *path, char **data_p, size_t *len_p,
                  struct shk_error *err) SHK_MUST_CHECK;

/* As shk_host_read() for one-line attributes: the first line, white space trimmed. printf-style
 * path. */
int shk_host_line(const struct shk_host *host, char **line_p, struct shk_error *err,
                  const char *pathf, ...) SHK_PRINTF(4, 5) SHK_MUST_CHECK;

/* A one-line decimal (or 0x…) integer. -EINVAL when the file holds something else. */
int shk_host_i64(const struct shk_host *host, long long *value_p, struct shk_error *err,
                 const char *pathf, ...) SHK_PRINTF(4, 5) SHK_MUST_CHECK;

/* Names in a directory, sorted in C locale with runs of digits compared as numbers (cxi2 before
 * cxi10), without "." and "..". NULL-terminated; free with shk_host_list_free(). */
int shk_host_list(const struct shk_host *host, char ***names_p, size_t *count_p,
                  struct shk_error *err, const char *pathf, ...) SHK_PRINTF(5, 6) SHK_MUST_CHECK;
void shk_host_list_free(char **names);

/* Target text of a symbolic link (free()). */
int shk_host_readlink(const struct shk_host *host, char **target_p, struct shk_error *err,
                      const char *pathf, ...) SHK_PRINTF(4, 5) SHK_MUST_CHECK;

/* stat(), following links inside the root. Captured trees cannot hold device nodes: there a
 * regular file stands for one, and hostcalls.json may give its real mode and owner as
 * "nodes": {"/dev/kfd": {"mode": "0660", "uid": 0, "gid": 110}} (reported as a character device,
 * unless the mode has type bits of its own: "041777" is a directory).
 * -ENOENT and friends without text. */
int shk_host_stat(const struct shk_host *host, const char *path, struct stat *st) SHK_MUST_CHECK;
bool shk_host_exists(const struct shk_host *host, const char *pathf, ...) SHK_PRINTF(2, 3);

/* Does any process of this kernel, in whatever namespace, have the regular file open or mapped? 0
 * none: the kernel granted this process a write lease on it (fcntl(2), F_SETLEASE), which was given
 * back at once; -EAGAIN: one has it; -EACCES: neither its owner nor allowed to ask; -ENODATA: a
 * captured tree; others as of open(). Of the last component a link is not followed. *st is that of
 * the file itself, filled unless it could not be looked at (-ENOENT). Not for threads: SIGIO is
 * ignored meanwhile, as whoever opens the file in that moment is made to wait and announced. */
int shk_host_unused(const struct shk_host *host, const char *path, struct stat *st) SHK_MUST_CHECK;

/* May this process open the path for reading and writing? 0 yes, -EACCES, -ENOENT, … Live: the
 * effective ids decide (faccessat AT_EACCESS). Capture: mode and owner as above against the
 * captured ids ("other" class when the capture has none; uid 0 may always). */
int shk_host_access_rw(const struct shk_host *host, const char *path) SHK_MUST_CHECK;

/* Writes one byte to the fifo at the absolute path, which `owner` must own and someone must read
 * from: nothing is waited for. Of the running host only. -ENXIO: nobody reads; -EPERM: no fifo, or
 * another one's. */
int shk_host_poke(const struct shk_host *host, const char *path, unsigned owner) SHK_MUST_CHECK;

/* Opens a regular file read-only under the root (for libraries that want a descriptor, such as
 * libelf). The caller closes it. */
int shk_host_open_file(const struct shk_host *host, const char *path, int *fd_p,
                       struct shk_error *err) SHK_MUST_CHECK;

#endif
