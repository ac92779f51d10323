/* A build without SQLite: no database can be opened, so that nothing else is ever called. */
#include "core/history/history.h"

#include <errno.h>
#include <stddef.h>

#define NONE(err)                                                                                  \
    shk_error_set(err, ENOSYS, "this build has no SQLite (libsqlite3-dev, sqlite-devel)")

int shk_history_open(struct shk_history **history_p, const char *path, bool write,
                     struct shk_error *err)
{
    (void)path;
    (void)write;
    *history_p = NULL;
    return NONE(err);
}

const char *shk_history_network(unsigned long type)
{
    (void)type;
    return NULL;
}

void shk_history_close(struct shk_history *history)
{
    (void)history;
}

int shk_history_begin(struct shk_history *history, struct shk_error *err)
{
    (void)history;
    return NONE(err);
}

int shk_history_commit(struct shk_history *history, struct shk_error *err)
{
    (void)history;
    return NONE(err);
}

int shk_history_put(struct shk_history *history, const struct shk_history_run *run, bool *new_p,
                    struct shk_error *err)
{
    (void)history;
    (void)run;
    *new_p = false;
    return NONE(err);
}

int shk_history_retain(struct shk_history *history, long long before, long long most,
                       struct shk_error *err)
{
    (void)history;
    (void)before;
    (void)most;
    return NONE(err);
}

int shk_history_runs(struct shk_history *history, const char *node, long long since,
                     long long until, int (*fn)(const struct shk_history_run *run, void *arg),
                     void *arg, struct shk_error *err)
{
    (void)history, (void)node, (void)since, (void)until, (void)fn, (void)arg;
    return NONE(err);
}

int shk_history_samples(struct shk_history *history, const char *metric, const char *zero,
                        const char *node, long long since, long long until,
                        int (*fn)(const struct shk_history_sample *sample, void *arg), void *arg,
                        struct shk_error *err)
{
    (void)history, (void)metric, (void)zero, (void)node, (void)since, (void)until, (void)fn,
        (void)arg;
    return NONE(err);
}

int shk_history_metrics(struct shk_history *history, int (*fn)(const char *name, void *arg),
                        void *arg, struct shk_error *err)
{
    (void)history, (void)fn, (void)arg;
    return NONE(err);
}

int shk_history_nodes(struct shk_history *history, int (*fn)(const char *name, void *arg),
                      void *arg, struct shk_error *err)
{
    (void)history, (void)fn, (void)arg;
    return NONE(err);
}

int shk_history_states(struct shk_history *history, long long id, json_t **states_p,
                       struct shk_error *err)
{
    (void)history, (void)id;
    *states_p = NULL;
    return NONE(err);
}

int shk_history_issues(struct shk_history *history, long long run, json_t **issues_p,
                       struct shk_error *err)
{
    (void)history, (void)run;
    *issues_p = NULL;
    return NONE(err);
}
