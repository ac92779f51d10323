/* One line on stderr that says what is being done; on a terminal it is gone when the work is,
 * elsewhere there is one every ten seconds at most, and none of a run that is over by then. */
#ifndef SHK_CLI_PROGRESS_H
#define SHK_CLI_PROGRESS_H

#include <stdbool.h>

/* `text` is one probe or phase. With verbose each becomes a line of its own that stays, on a
 * terminal or not. */
void shk_progress(const char *text, bool verbose);

/* Erases the line; shk_say() and every output do it first. */
void shk_progress_clear(void);

#endif
