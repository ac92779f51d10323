/* What `history` and `fleet` share: the day that is asked about, and where their document goes. */
#ifndef SHK_CLI_HISTORY_PRINT_H
#define SHK_CLI_HISTORY_PRINT_H

#include "cli/session/session.h"

/* --until, else now. Returns an enum shk_exit. */
int shk_history_until(const struct shk_session *session, long long *until_p);

/* Checks --format and the places of -o before the work. */
int shk_history_outputs(const struct shk_options *options);

/* Prints the document to every -o, else to stdout; formats are term, html and json. */
int shk_history_print(const struct shk_options *options, const json_t *document);

/* "2026-11-28T18:49:07Z" */
json_t *shk_history_stamp(long long at);

#endif
