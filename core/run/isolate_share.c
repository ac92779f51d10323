#include "core/run/isolate_share.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARE_THREADS = 256, SHARE_DEPTH = 4 };

/* One look at all processes below one. */
struct share_look {
    unsigned threads;
    bool runnable, nested;
    double ran, waited;
};

static bool share_read(char *text, size_t size, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* State and processor time (its ended children's too) from a stat file. The name in it may hold
 * anything, parentheses and spaces included. */
static bool share_stat(const char *path, char *state_p, double *ran_ms_p)
{
    char text[1024];
    unsigned long user, system;
    long ended_user, ended_system;
    if (!share_read(text, sizeof text, path))
        return false;
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                       state_p, &user, &system, &ended_user, &ended_system) != 5)
        return false;
    *ran_ms_p = ((double)user + (double)system + (double)ended_user + (double)ended_system) * 1e3 /
                (double)sysconf(_SC_CLK_TCK);
    return true;
}

static void share_process(struct share_look *look, pid_t pid, unsigned depth);

static void share_children(struct share_look *look, const char *path, unsigned depth)
{
    char text[4096], *save = NULL;
    if (!share_read(text, sizeof text, path))
        return;
    for (char *p = strtok_r(text, " \n", &save); p; p = strtok_r(NULL, " \n", &save))
        share_process(look, (pid_t)atol(p), depth + 1);
}

static void share_thread(struct share_look *look, pid_t pid, const char *tid, unsigned depth)
{
    char path[128], text[128], state = '?';
    double ran;
    unsigned long long on_cpu, delay;
    look->threads++;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, tid);
    if (share_stat(path, &state, &ran) && state == 'R')
        look->runnable = true;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, tid);
    if (share_read(text, sizeof text, path) && sscanf(text, "%llu %llu", &on_cpu, &delay) == 2 &&
        (double)delay / 1e6 > look->waited)
        look->waited = (double)delay / 1e6;
    if (depth >= SHARE_DEPTH)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)pid, tid);
    share_children(look, path, depth);
}

static void share_process(struct share_look *look, pid_t pid, unsigned depth)
{
    char path[64], state;
    double ran;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!share_stat(path, &state, &ran))
        return;
    look->ran += ran;
    look->nested |= depth > 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && look->threads < SHARE_THREADS && (e = readdir(dir));)
        if (*e->d_name != '.')
            share_thread(look, pid, e->d_name, depth);
    if (dir)
        closedir(dir);
}

void shk_isolate_share_look(struct isolate_share *share, pid_t pid, double now, double began,
                            double deadline_ms, double tail_ms)
{
    struct share_look look = {.threads = 0};
    share_process(&look, pid, 0);
    if (!look.threads)
        return;
    if (look.runnable)
        share->runnable += now - (share->seen > 0 ? share->seen : began);
    if (look.ran > share->ran)
        share->ran = look.ran;
    if (look.waited > share->waited)
        share->waited = look.waited;
    share->nested |= look.nested;
    share->seen = now;
    if (share->tail_began <= 0 && now - began >= deadline_ms - tail_ms) {
        share->tail_began = now;
        share->tail_ran = share->ran;
        share->tail_runnable = share->runnable;
    }
}

double shk_isolate_share_waited(const struct isolate_share *share, double ms)
{
    double open_wait = share->runnable - share->ran;
    double waited = share->waited > open_wait ? share->waited : open_wait;
    return waited < ms - share->ran ? waited : ms - share->ran;
}

bool shk_isolate_share_starved(const struct isolate_share *share, double ms)
{
    double tail = share->tail_began > 0 ? share->seen - share->tail_began : 0;
    double tail_ran = share->ran - share->tail_ran;
    double tail_waited = share->runnable - share->tail_runnable - tail_ran;
    if (share->seen <= 0 || share->ran >= ms / 4)
        return false;
    return shk_isolate_share_waited(share, ms) >= ms / 2 ||
           (share->nested && tail > 0 && tail_waited >= tail * 3 / 4);
}
