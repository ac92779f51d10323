/* Where results go. Everything is rendered to memory first, so that a renderer's failure and a full
 * disk are told apart, and no half-written report is left without an error. */
#ifndef SHK_CLI_OUTPUT_H
#define SHK_CLI_OUTPUT_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stdio.h>

/* Prints "shakedown: TEXT" on stderr. */
void shk_say(const char *fmt, ...) SHK_PRINTF(1, 2);

/* Prints text on stderr as it is, which must be printable and free of secrets. */
void shk_tell(const char *text);

/* Memory stream: FILE to write to; shk_output_finish() closes it and writes its content to `path`
 * (NULL or "-": stdout); a regular file is replaced as a whole. Returns 0 or a negative errno with
 * text. A pipe on stdout whose reader is gone is not an error. */
struct shk_output {
    FILE *stream;
    char *text;
    size_t len;
};
/* Could `path` be written ("-": stdout)? Asked before the work; nothing is created or changed.
 * Returns 0 or a negative errno with text. */
int shk_output_check(const char *path, struct shk_error *err) SHK_MUST_CHECK;
int shk_output_begin(struct shk_output *out, struct shk_error *err) SHK_MUST_CHECK;
int shk_output_finish(struct shk_output *out, const char *path,
                      struct shk_error *err) SHK_MUST_CHECK;
/* Is stdout a pipe that nobody reads any more? */
bool shk_output_unread(void);
void shk_output_discard(struct shk_output *out);

/* One line on stderr that says what is being done, until anything else is written; on a terminal it
 * is gone when the work is, elsewhere there is one every ten seconds at most, and none of a run
 * that is over by then. `text` is one probe or phase. With verbose each becomes a line of its own
 * that stays, on a terminal or not. */
void shk_progress(const char *text, bool verbose);

#endif
