/* Lines that look like errors and that no signature explains, folded by their shape. */
#ifndef SHK_PROBES_LOGUNKNOWN_H
#define SHK_PROBES_LOGUNKNOWN_H

#include "core/run/logfile.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct shk_log_unknown;

struct shk_log_unknown *shk_log_unknown_create(void); /* NULL: out of memory */
void shk_log_unknown_destroy(struct shk_log_unknown *unknown);

/* In the piece that is being scanned, the line that begins at this offset looks like an error; a
 * signature explains it. Any order; the same line may be told again. */
void shk_log_unknown_error(struct shk_log_unknown *unknown, size_t line_start);
void shk_log_unknown_explained(struct shk_log_unknown *unknown, size_t line_start);

/* Ends the piece: folds the lines that nothing explains. Two lines have the same shape when they
 * differ in words with digits only (ranks, addresses, times, process ids). The first
 * SHK_LOG_UNKNOWN_SHAPES shapes are kept, lines of others are counted. False: out of memory. */
#define SHK_LOG_UNKNOWN_SHAPES 32
bool shk_log_unknown_settle(struct shk_log_unknown *unknown, const struct shk_logpiece *piece,
                            const char *file);

/* {lines, shapes: [{file, line, text, lines}]}, in the order of appearance; NULL when there is no
 * such line. New reference. */
json_t *shk_log_unknown_json(const struct shk_log_unknown *unknown);

#endif
