#include "probes/host/leftover.h"

#include "core/text/stamp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char leftover_key[] = "shm.leftover", leftover_dir[] = "/dev/shm";

enum { LEFTOVER_FRESH = 60, LEFTOVER_OWNERS = 64, LEFTOVER_MOST = 65536 };

/* How the names of segments begin that a library keeps mapped for as long as it uses them:
 * open-mpi/ompi (vader and sm), NVIDIA/nccl, cornelisnetworks/opa-psm2 and psm3, openucx/ucx,
 * pytorch/pytorch, the CUDA driver, NVSHMEM, MPICH, Intel MPI. */
static const char *const leftover_names[] = {"vader_segment.", "sm_segment.", "nccl-",
                                             "psm2_shm.",      "psm3_shm.",   "ucx_shm_posix_",
                                             "torch_",         "cuda.shm.",   "nvshmem-shm",
                                             "mpich_shar_tmp", "Intel_MPI_",  NULL};

enum owner { OWNER_UNKNOWN, OWNER_RUNS, OWNER_GONE };

/* What is left of one kind and owner. */
struct pile {
    const char *kind;
    uid_t uid;
    json_int_t count, bytes;
    time_t since, last;
    char name[256]; /* of the first */
};

struct leftover {
    const struct shk_host *host;
    time_t now;
    struct pile *piles;
    size_t count;
    size_t judged, unread;
    bool asked, told; /* the processes were counted; all of them are visible here */
    uid_t running[LEFTOVER_OWNERS];
    size_t owners;
};

static struct pile *leftover_pile(struct leftover *l, const char *kind, const struct stat *st,
                                  const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->piles[i].uid == st->st_uid && strcmp(l->piles[i].kind, kind) == 0)
            return &l->piles[i];
    struct pile *more = realloc(l->piles, (l->count + 1) * sizeof *more);
    if (!more)
        return NULL;
    l->piles = more;
    struct pile *pile = &more[l->count++];
    *pile =
        (struct pile){.kind = kind, .uid = st->st_uid, .since = st->st_mtime, .last = st->st_mtime};
    snprintf(pile->name, sizeof pile->name, "%s", name);
    return pile;
}

static void leftover_add(struct leftover *l, const char *kind, const struct stat *st,
                         const char *name)
{
    struct pile *pile = leftover_pile(l, kind, st, name);
    if (!pile)
        return;
    pile->count++;
    pile->bytes += (json_int_t)st->st_blocks * 512;
    if (st->st_mtime < pile->since)
        pile->since = st->st_mtime;
    if (st->st_mtime > pile->last)
        pile->last = st->st_mtime;
}

static json_t *leftover_list(const struct leftover *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->count; i++) {
        const struct pile *p = &l->piles[i];
        char since[SHK_STAMP], last[SHK_STAMP];
        shk_stamp(since, p->since);
        shk_stamp(last, p->last);
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:o}", "kind",
                                              p->kind, "uid", (json_int_t)p->uid, "count", p->count,
                                              "bytes", p->bytes, "since", since, "last", last,
                                              "name", shk_gather_str(p->name)));
    }
    return list;
}

/* Every process of the kernel is visible in its first namespace of process numbers, unless /proc
 * hides those of others (hidepid). */
static void leftover_count(struct leftover *l)
{
    char **names = NULL, *link = NULL;
    struct stat st;
    l->asked = true;
    bool whole = shk_host_readlink(l->host, &link, NULL, "/proc/self/ns/pid") == 0 &&
                 strcmp(link, "pid:[4026531836]") == 0 &&
                 shk_host_stat(l->host, "/proc/1", &st) == 0;
    free(link);
    if (!whole || shk_host_list(l->host, &names, NULL, NULL, "/proc"))
        return;
    l->told = true;
    for (char **n = names; *n && l->told; n++) {
        char path[64];
        size_t i = 0;
        snprintf(path, sizeof path, "/proc/%.20s", *n);
        if (strspn(*n, "0123456789") != strlen(*n) || shk_host_stat(l->host, path, &st))
            continue;
        while (i < l->owners && l->running[i] != st.st_uid)
            i++;
        if (i == LEFTOVER_OWNERS)
            l->told = false;
        else if (i == l->owners)
            l->running[l->owners++] = st.st_uid;
    }
    shk_host_list_free(names);
}

static enum owner leftover_owner(struct leftover *l, uid_t uid)
{
    if (!l->asked)
        leftover_count(l);
    for (size_t i = 0; i < l->owners; i++)
        if (l->running[i] == uid)
            return OWNER_RUNS;
    return l->told ? OWNER_GONE : OWNER_UNKNOWN;
}

static bool leftover_library(const char *name)
{
    for (const char *const *n = leftover_names; *n; n++)
        if (strncmp(name, *n, strlen(*n)) == 0)
            return true;
    return false;
}

static void leftover_file(struct leftover *l, const char *name)
{
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s/%.255s", leftover_dir, name);
    int rc = shk_host_unused(l->host, path, &st);
    if (rc == -ENOENT || rc == -EINVAL)
        return;
    l->judged++;
    if (rc == -EAGAIN || l->now - st.st_mtime < LEFTOVER_FRESH)
        return;
    if (rc == 0 && leftover_library(name)) {
        leftover_add(l, "file", &st, name);
        return;
    }
    /* open or not was not told: nobody but the owner is likely to have it */
    enum owner owner = leftover_owner(l, st.st_uid);
    if (owner == OWNER_GONE)
        leftover_add(l, "file", &st, name);
    else if (owner == OWNER_UNKNOWN)
        l->unread++;
}

static bool leftover_runs(long pid, void *arg)
{
    const struct leftover *l = arg;
    struct stat st;
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld", pid);
    return pid > 0 && shk_host_stat(l->host, path, &st) == 0;
}

/* "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap": of a
 * segment whose maker is in another namespace of process numbers the number is 0. */
enum shk_segment shk_segment_of(const char *line, long long now, bool (*runs)(long pid, void *arg),
                                void *arg, struct stat *st, long *id_p)
{
    long key = 0, maker = 0, last = 0, attached = 0, uid = 0, times[3] = {0}, rss = 0;
    unsigned long long size = 0;
    if (sscanf(line, "%ld %ld %*o %llu %ld %ld %ld %ld %*d %*d %*d %ld %ld %ld %ld", &key, id_p,
               &size, &maker, &last, &attached, &uid, &times[0], &times[1], &times[2], &rss) < 10)
        return SHK_SEGMENT_NONE;
    *st = (struct stat){.st_uid = (uid_t)uid, .st_blocks = (rss > 0 ? rss : 0) / 512};
    for (int i = 0; i < 3; i++)
        st->st_mtime = times[i] > st->st_mtime ? times[i] : st->st_mtime;
    if (attached || now - st->st_mtime < LEFTOVER_FRESH)
        return SHK_SEGMENT_USED;
    if (maker <= 0)
        return SHK_SEGMENT_UNKNOWN;
    return runs(maker, arg) || runs(last, arg) ? SHK_SEGMENT_USED : SHK_SEGMENT_LEFT;
}

static void leftover_segment(struct leftover *l, const char *line)
{
    struct stat st;
    char name[40];
    long id = 0;
    enum shk_segment what = shk_segment_of(line, l->now, leftover_runs, l, &st, &id);
    l->judged += what != SHK_SEGMENT_NONE;
    l->unread += what == SHK_SEGMENT_UNKNOWN;
    snprintf(name, sizeof name, "shmid %ld", id);
    if (what == SHK_SEGMENT_LEFT)
        leftover_add(l, "segment", &st, name);
}

static void leftover_segments(struct leftover *l)
{
    char *text = NULL, *rest = NULL;
    int rc = shk_host_read(l->host, "/proc/sysvipc/shm", &text, NULL, NULL);
    if (rc && rc != -ENOENT)
        l->unread++;
    if (rc)
        return;
    char *line = strtok_r(text, "\n", &rest); /* the heading */
    while (line && (line = strtok_r(NULL, "\n", &rest)))
        leftover_segment(l, line);
    free(text);
}

static void leftover_files(struct leftover *l, char *const *names)
{
    for (size_t i = 0; names && names[i]; i++) {
        if (i < LEFTOVER_MOST)
            leftover_file(l, names[i]);
        else
            l->unread++;
    }
}

void shk_leftover(struct shk_gather *g, char *const *names)
{
    struct leftover l = {.host = g->host, .now = time(NULL)};
    struct shk_error err = {""};
    char **own = NULL;
    if (!shk_host_is_live(g->host)) {
        shk_gather_failed(g, leftover_key, leftover_dir, "a capture has no processes");
        return;
    }
    int rc = names ? 0 : shk_host_list(g->host, &own, NULL, &err, "%s", leftover_dir);
    if (rc && rc != -ENOENT) {
        shk_gather_failed(g, leftover_key, leftover_dir, "%s", err.text);
        return;
    }
    leftover_files(&l, names ? names : own);
    shk_host_list_free(own);
    leftover_segments(&l);
    shk_gather_present(g, leftover_key,
                       json_pack("{s:I, s:o, s:I}", "judged", (json_int_t)l.judged, "left",
                                 leftover_list(&l), "unread", (json_int_t)l.unread),
                       NULL, leftover_dir);
    free(l.piles);
}
