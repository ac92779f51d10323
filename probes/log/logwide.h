/* Which patterns do not tell one number from another, and wider ones for those that do.
 *
 * Lines of many ranks are the same but for their numbers, and these shk_logmask() takes out. A
 * blind pattern matches a line where it matches every other line with the same mask: each of its
 * places takes all digits or none (or is the 0 of "0x"), and one that takes some hexadecimal
 * letters and not others cannot be behind "0x". Any other pattern is widened: where it takes a
 * digit, it takes those that stand for digits in a mask, too, and where it takes a letter that may
 * be behind "0x", what stands for it. Where the wider one does not match the mask, the pattern
 * matches no line that has this mask. */
#ifndef SHK_PROBES_LOGWIDE_H
#define SHK_PROBES_LOGWIDE_H

#include <stdbool.h>
#include <stddef.h>

/* *wide_p: NULL for a blind pattern, else new memory. -ENOTSUP: of a form that is not understood;
 * -ENOMEM. */
int shk_logwide(const char *pattern, char **wide_p);

#endif
