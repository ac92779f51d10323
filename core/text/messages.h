/* Tables of messages: which text of a library's list a line holds. Thousands of texts cost no more
 * than the words of the line, since a line is looked at only behind a text that all messages of the
 * table have before them ("NCCL WARN "), and a text only when its rarest word is in the line. */
#ifndef SHK_TEXT_MESSAGES_H
#define SHK_TEXT_MESSAGES_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

struct shk_messages;

struct shk_messages *shk_messages_create(void); /* NULL: out of memory */
void shk_messages_destroy(struct shk_messages *table);

/* Adds the texts of one signature, one per line; they are borrowed. In a text `%s` is any text,
 * also none, `%d` a whole number, also with 0x, and `%%` a percent sign; all else is fixed.
 * -EINVAL: a text has nothing to be found by (shk_messages_fault()). */
int shk_messages_add(struct shk_messages *table, const char *texts, size_t id,
                     struct shk_error *err) SHK_MUST_CHECK;

/* Call once, after the last text and before the first search. */
int shk_messages_settle(struct shk_messages *table, struct shk_error *err) SHK_MUST_CHECK;

/* The id of the text that the message begins with; of several, the one with the most fixed
 * letters and digits, of those the first. A text with fewer than 16 of them has to be all of the
 * message. Looks at the first 1024 bytes of the message. *text_p (may be NULL): the text, up to its
 * line break. */
bool shk_messages_find(const struct shk_messages *table, const char *message, size_t len,
                       size_t *id_p, const char **text_p);

/* The text as a regular expression (Vectorscan, PCRE) for a part of a line: new memory, free(). */
char *shk_messages_regex(const char *text, size_t len);

/* The first of the texts that has fewer than 16 fixed letters and digits, too few to be looked for
 * just anywhere; NULL. */
const char *shk_messages_loose(const char *texts);

/* What is wrong with one text of a table; NULL when it is fine. Static. */
const char *shk_messages_fault(const char *text, size_t len);

/* Does the line say itself that it only informs (level words of NCCL, libfabric,
 * Slurm and Python, the letter of glog)? */
bool shk_message_informs(const char *line, size_t len);

/* Is it of the kernel's log: "[   12.345678] ..." of dmesg, or the tag "kernel: " of syslog? */
bool shk_message_of_kernel(const char *line);

#endif
