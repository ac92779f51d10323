/* Lines without their numbers: each digit becomes '0', but one of 1..9 before an x '9', and each
 * digit or letter a..f of a number behind "0x" becomes '1'. Lines that differ in nothing else have
 * the same mask, of their length.
 */
#ifndef SHK_PROBES_LOGMASK_H
#define SHK_PROBES_LOGMASK_H

#include <stddef.h>
#include <stdint.h>

#define SHK_LOGMASK_MAX 1024 /* longest line */

struct shk_logmask {
    char text[SHK_LOGMASK_MAX + 32]; /* zeros behind `len` up to the next multiple of 16 */
    size_t len;
    uint64_t hash;
};

/* `room`: bytes from the line's first one on that may be read; the more than `len`, the faster. */
void shk_logmask(struct shk_logmask *mask, const char *line, size_t len, size_t room);

#endif
