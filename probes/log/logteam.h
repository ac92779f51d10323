/* Several threads that search the pieces of a log. Pieces come back in the order in which they were
 * given; what is found does not depend on how many threads there are. */
#ifndef SHK_PROBES_LOGTEAM_H
#define SHK_PROBES_LOGTEAM_H

#include "core/run/logfile.h"
#include "probes/log/logfind.h"

struct shk_log_team;

/* So many as this process may use processors, up to a limit; NULL: one is all, or it cannot be had.
 */
struct shk_log_team *shk_log_team_create(const struct shk_log_wanted *wanted);
void shk_log_team_destroy(struct shk_log_team *team);

/* Has to be asked before a piece is given: is one to be taken first? */
bool shk_log_team_full(const struct shk_log_team *team);

/* Copies the piece. -ENOMEM. */
int shk_log_team_give(struct shk_log_team *team, const struct shk_logpiece *piece) SHK_MUST_CHECK;

/* Waits for the oldest piece: 1, 0 when there is none, or what shk_logfind_piece() said. Borrowed
 * until the next one is given. */
int shk_log_team_take(struct shk_log_team *team, struct shk_logpiece *piece_p,
                      const struct shk_log_found **found_p) SHK_MUST_CHECK;

#endif
