#include "probes/log/logteam.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* More than four find nothing to do: one thread reads and folds what they find. */
enum { WORKERS_MAX = 4, JOBS_MAX = 2 * WORKERS_MAX };

struct job {
    char *data;
    size_t len, cap;
    unsigned long long first_line;
    struct shk_log_found found;
    int rc;
    bool done;
};

struct worker {
    pthread_t thread;
    struct shk_log_team *team;
    struct shk_logfind *find;
};

struct shk_log_team {
    pthread_mutex_t lock;
    pthread_cond_t given, done;
    struct job jobs[JOBS_MAX];        /* the i-th piece is in i % JOBS_MAX */
    size_t given_count, begun, taken; /* pieces */
    bool ends;
    struct worker workers[WORKERS_MAX];
    size_t count;
};

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct shk_log_team *team = worker->team;
    pthread_mutex_lock(&team->lock);
    while (!team->ends) {
        if (team->begun == team->given_count) {
            pthread_cond_wait(&team->given, &team->lock);
            continue;
        }
        struct job *job = &team->jobs[team->begun++ % JOBS_MAX];
        pthread_mutex_unlock(&team->lock);
        int rc = shk_logfind_piece(worker->find, job->data, job->len, &job->found);
        pthread_mutex_lock(&team->lock);
        job->rc = rc;
        job->done = true;
        pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

static bool worker_start(struct shk_log_team *team, const struct shk_log_wanted *wanted)
{
    struct worker *worker = &team->workers[team->count];
    sigset_t all, before;
    worker->team = team;
    worker->find = shk_logfind_create(wanted);
    if (!worker->find)
        return false;
    sigfillset(&all); /* the process's signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started)
        shk_logfind_destroy(worker->find);
    team->count += started;
    return started;
}

struct shk_log_team *shk_log_team_create(const struct shk_log_wanted *wanted)
{
    cpu_set_t cpus;
    size_t count = sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : (size_t)CPU_COUNT(&cpus);
    struct shk_log_team *team = count > 1 ? calloc(1, sizeof *team) : NULL;
    if (!team)
        return NULL;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->given, NULL);
    pthread_cond_init(&team->done, NULL);
    while (team->count < count && team->count < WORKERS_MAX && worker_start(team, wanted))
        ;
    if (team->count)
        return team;
    shk_log_team_destroy(team);
    return NULL;
}

void shk_log_team_destroy(struct shk_log_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    team->ends = true;
    pthread_cond_broadcast(&team->given);
    pthread_mutex_unlock(&team->lock);
    for (size_t i = 0; i < team->count; i++) {
        pthread_join(team->workers[i].thread, NULL);
        shk_logfind_destroy(team->workers[i].find);
    }
    for (size_t i = 0; i < JOBS_MAX; i++) {
        free(team->jobs[i].data);
        shk_log_found_free(&team->jobs[i].found);
    }
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->given);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

bool shk_log_team_full(const struct shk_log_team *team)
{
    return team->given_count - team->taken == 2 * team->count;
}

int shk_log_team_give(struct shk_log_team *team, const struct shk_logpiece *piece)
{
    struct job *job = &team->jobs[team->given_count % JOBS_MAX];
    if (piece->len > job->cap) {
        char *more = realloc(job->data, piece->len);
        if (!more)
            return -ENOMEM;
        job->data = more;
        job->cap = piece->len;
    }
    memcpy(job->data, piece->data, piece->len);
    job->len = piece->len;
    job->first_line = piece->first_line;
    job->done = false;
    pthread_mutex_lock(&team->lock);
    team->given_count++;
    pthread_cond_signal(&team->given);
    pthread_mutex_unlock(&team->lock);
    return 0;
}

int shk_log_team_take(struct shk_log_team *team, struct shk_logpiece *piece_p,
                      const struct shk_log_found **found_p)
{
    struct job *job = &team->jobs[team->taken % JOBS_MAX];
    if (team->taken == team->given_count)
        return 0;
    pthread_mutex_lock(&team->lock);
    while (!job->done)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
    team->taken++;
    *piece_p =
        (struct shk_logpiece){.data = job->data, .len = job->len, .first_line = job->first_line};
    *found_p = &job->found;
    return job->rc ? job->rc : 1;
}
