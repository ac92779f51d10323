#include "probes/log/logstate.h"

void shk_log_states_note(struct shk_log_states *states, uint64_t who, size_t file,
                         unsigned long long line)
{
    size_t i = 0;
    while (i < states->count && (states->items[i].who != who || states->items[i].file != file))
        i++;
    if (i == SHK_LOG_STATES_MAX) {
        states->more = true;
        return;
    }
    states->count += i == states->count;
    states->items[i] = (struct shk_log_state){.who = who, .file = file, .line = line};
}

const struct shk_log_state *shk_log_state_end(const struct shk_log_state *state,
                                              const struct shk_log_states *const *ends,
                                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; ends[i] && k < ends[i]->count; k++) {
            const struct shk_log_state *end = &ends[i]->items[k];
            if (end->who == state->who && end->file == state->file && end->line > state->line)
                return end;
        }
    return NULL;
}
