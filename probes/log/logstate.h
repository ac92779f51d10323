/* Parts of logscan: lines that say how something is, and lines that say later that it is over. */
#ifndef SHK_PROBES_LOGSTATE_H
#define SHK_PROBES_LOGSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of whom (a device of a node, in one file) a pattern's lines spoke, and where last. What does not
 * fit is not kept: `more` is then true. */
enum { SHK_LOG_STATES_MAX = 64 };
struct shk_log_state {
    uint64_t who;
    size_t file;
    unsigned long long line;
};
struct shk_log_states {
    struct shk_log_state items[SHK_LOG_STATES_MAX];
    size_t count;
    bool more;
};

/* One more line about `who`. */
void shk_log_states_note(struct shk_log_states *states, uint64_t who, size_t file,
                         unsigned long long line);

/* Where the state is over that `state` tells of: a later line about the same one in one of `ends`
 * (NULL entries are passed over); NULL: it is not. */
const struct shk_log_state *shk_log_state_end(const struct shk_log_state *state,
                                              const struct shk_log_states *const *ends,
                                              size_t count);

#endif
