/* Which processes are the ranks of a job: by the variables that its launcher gave them, or by their
 * titles; plain.c: by neither. */
#include "probes/hang/find.h"
#include "core/text/uses.h"
#include "probes/hang/ras.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without a variable, below the user's folder for what may be lost:
 * torch/csrc/distributed/c10d/FlightRecorder.cpp */
#define FIND_DUMP "torch/comm_lib_trace_rank_"

struct find_environ {
    const char *text;
    size_t length;
};

static const char *find_getenv(const char *name, void *arg)
{
    const struct find_environ *variables = arg;
    size_t length = strlen(name);
    for (const char *p = variables->text; p < variables->text + variables->length;
         p += strlen(p) + 1)
        if (strncmp(p, name, length) == 0 && p[length] == '=')
            return p + length + 1;
    return NULL;
}

static const char *find_first(const char *const *names, struct find_environ *variables)
{
    const char *value = NULL;
    for (; names && *names && !value; names++)
        value = find_getenv(*names, variables);
    return value;
}

static long find_number(const char *const *names, struct find_environ *variables)
{
    const char *text = find_first(names, variables);
    char *end;
    if (!text || !isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value > 1 << 24 ? -1 : value;
}

static long find_local_ranks(const struct shk_launch *launch, struct find_environ *variables)
{
    long told = find_number(launch->local_ranks, variables),
         node = find_number(launch->node_rank, variables);
    if (told >= 0 || node < 0)
        return told;
    unsigned tasks =
        shk_launch_tasks_of(find_first(launch->tasks_per_node, variables), (unsigned)node);
    return tasks ? (long)tasks : -1;
}

/* The values of all variables that tell one start of a job from another. */
static char *find_group(const struct shk_launch *launch, struct find_environ *variables)
{
    struct shk_strbuf group = SHK_STRBUF_INIT;
    shk_strbuf_puts(&group, launch->name);
    for (const char *const *v = shk_variables("rank-group"); *v; v++) {
        const char *value = find_getenv(*v, variables);
        if (value && *value)
            shk_strbuf_printf(&group, " %s=%.80s", *v, value);
    }
    return shk_strbuf_take(&group);
}

/* What ps shows of it: the first word of its command line, which setproctitle writes. */
static void find_title(const struct shk_host *host, struct hang_process *process)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", process->pid);
    if (shk_host_read(host, path, &text, NULL, NULL))
        return;
    const struct shk_launch *launch = shk_launch_titled(text);
    if (launch) {
        free(process->group);
        free(process->dump);
        process->launch = launch;
        process->titled = true;
        process->rank = process->ranks = process->local_rank = process->local_ranks = -1;
        process->group = shk_strf("%s of process %ld", launch->name, process->parent);
        process->dump = NULL;
        snprintf(process->name, sizeof process->name, "%s", text);
    }
    free(text);
}

/* The beginning of the name of the flight recorder's file. */
static char *find_dump(struct find_environ *variables)
{
    const char *dump = find_first(shk_variables("flight-dump"), variables),
               *cache = find_first(shk_variables("cache-home"), variables),
               *home = find_first(shk_variables("user-home"), variables);
    if (dump)
        return strdup(dump);
    if (cache && *cache)
        return shk_strf("%s/" FIND_DUMP, cache);
    return shk_strf("%s/.cache/" FIND_DUMP, home ? home : "/tmp");
}

static void find_environment(const struct shk_host *host, struct hang_process *process)
{
    char path[64], *text = NULL;
    struct shk_error err = {""};
    struct find_environ variables = {0};
    process->rank = process->ranks = process->local_rank = process->local_ranks = -1;
    snprintf(path, sizeof path, "/proc/%ld/environ", process->pid);
    if (shk_host_read(host, path, &text, &variables.length, &err)) {
        process->unreadable = true;
        return;
    }
    variables.text = text;
    process->launch = shk_launch_find(find_getenv, &variables);
    if (process->launch && !process->launch->allocation) {
        process->rank = find_number(process->launch->rank, &variables);
        process->ranks = find_number(process->launch->ranks, &variables);
        process->local_rank = find_number(process->launch->local_rank, &variables);
        process->local_ranks = find_local_ranks(process->launch, &variables);
        process->group = find_group(process->launch, &variables);
        process->dump = find_dump(&variables);
    }
    const char *pipe = find_first(shk_variables("flight-pipe"), &variables);
    process->pipe = pipe ? strdup(pipe) : NULL;
    const char *job = find_first(shk_variables("scheduler-job"), &variables);
    process->job = job ? strdup(job) : NULL;
    const char *step = find_first(shk_variables("job.slurm.step_id"), &variables);
    process->step = step ? strdup(step) : NULL;
    process->ras_port = shk_ras_port(find_first(shk_variables("ras-address"), &variables));
    free(text);
}

/* A process whose first thread is over goes on with its others: then one of these, whose folder in
 * /proc has what that of the first one has no more, stands for it. */
static void find_other_thread(const struct shk_host *host, struct hang_process *process)
{
    char **names = NULL;
    size_t count = 0;
    struct hang_process other = {0};
    if (process->state != 'Z' ||
        shk_host_list(host, &names, &count, NULL, "/proc/%ld/task", process->pid))
        return;
    for (size_t i = 0; i < count; i++) {
        long tid = strtol(names[i], NULL, 10);
        if (tid != process->pid && !hang_stat(host, tid, 0, &other) && other.state != 'Z' &&
            other.state != 'X') {
            *process = other;
            break;
        }
    }
    shk_host_list_free(names);
}

static int find_read(struct find_table *table, struct shk_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = shk_host_list(table->host, &names, &count, err, "/proc");
    if (rc)
        return rc;
    table->all = calloc(count + 1, sizeof *table->all);
    for (size_t i = 0; table->all && i < count; i++) {
        struct hang_process *process = &table->all[table->count];
        long pid = isdigit((unsigned char)*names[i]) ? strtol(names[i], NULL, 10) : 0;
        if (pid <= 0 || pid == getpid() || hang_stat(table->host, pid, 0, process))
            continue;
        find_other_thread(table->host, process);
        find_environment(table->host, process);
        find_title(table->host, process);
        table->count++;
    }
    shk_host_list_free(names);
    return table->all ? 0 : shk_error_sys(err, ENOMEM, "processes");
}

struct hang_process *find_by_pid(const struct find_table *table, long pid)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->all[i].pid == pid)
            return &table->all[i];
    return NULL;
}

bool find_below(const struct find_table *table, const struct hang_process *process, long ancestor)
{
    for (unsigned depth = 0; process && depth < 64; depth++) {
        if (process->pid == ancestor)
            return true;
        process = process->parent > 0 ? find_by_pid(table, process->parent) : NULL;
    }
    return false;
}

bool find_has_library(const struct find_table *table, struct hang_process *process)
{
    struct hang_maps maps = {0};
    bool has = false, nccl = false;
    if (!hang_maps_read(table->host, process->pid, &maps, NULL))
        for (size_t i = 0; i < maps.count && !(has && nccl); i++) {
            const char *slash = strrchr(maps.regions[i].path, '/');
            for (const char *const *l = table->want->libraries; slash && l && *l && !has; l++)
                has = strncmp(slash + 1, *l, strlen(*l)) == 0;
            nccl = nccl || (slash && strncmp(slash + 1, "libnccl.so", 10) == 0);
        }
    hang_maps_free(&maps);
    if (!nccl)
        process->ras_port = 0;
    return has;
}

/* Of two processes of one rank (a shell and what it started; a loader of data), which is it? The
 * one with a library for communication, of two the upper one; else the one that works more. */
static bool find_better(const struct find_table *table, const struct hang_process *a,
                        const struct hang_process *b)
{
    if (a->library != b->library)
        return a->library;
    if (a->library)
        return find_below(table, b, a->pid);
    if (a->ticks != b->ticks)
        return a->ticks > b->ticks;
    return find_below(table, a, b->pid);
}

/* "4711", or "4711.0" for one of its steps. */
static bool find_of_job(const struct hang_process *process, const char *job)
{
    const char *dot = strchr(job, '.');
    size_t length = dot ? (size_t)(dot - job) : strlen(job);
    if (!process->job || strncmp(process->job, job, length) != 0 || process->job[length])
        return false;
    return !dot || (process->step && strcmp(process->step, dot + 1) == 0);
}

/* We, what we started, and what started us: srun may have, with variables of a rank. */
bool find_ours(const struct find_table *table, const struct hang_process *process)
{
    return find_below(table, process, getpid()) ||
           find_below(table, find_by_pid(table, getppid()), process->pid);
}

/* Container engines put the ID of the container into the name of its control group:
 * "docker-ID.scope", "cri-containerd-ID.scope", "/docker/ID", "libpod-ID.scope". The argument may
 * be the beginning of it, as their tools print it. */
bool find_in_container(const struct find_table *table, const struct hang_process *process)
{
    char path[64], *text = NULL;
    const char *id = table->want->container;
    snprintf(path, sizeof path, "/proc/%ld/cgroup", process->pid);
    if (shk_host_read(table->host, path, &text, NULL, NULL))
        return false;
    bool in = false;
    for (const char *p = text; !in && (p = strstr(p, id)); p++)
        in = p > text && !isalnum((unsigned char)p[-1]);
    free(text);
    return in;
}

static bool find_is_rank(const struct hang_process *process)
{
    return process->launch && !process->launch->allocation &&
           (process->rank >= 0 || process->titled) && process->group && process->state != 'Z';
}

/* srun starts the daemon of mpirun or torchrun as a task on each node, and that starts the ranks:
 * what has ranks of another launcher below it is none itself. A rank that started a job of its own
 * by the same launcher has a library for communication. */
static void find_starters(struct find_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hang_process *rank = &table->all[i];
        if (!find_is_rank(rank))
            continue;
        struct hang_process *above = find_by_pid(table, rank->parent);
        for (unsigned depth = 0; above && depth < 64; depth++) {
            bool other = find_is_rank(above) && strcmp(above->group, rank->group) != 0;
            if (rank->titled && find_is_rank(above) && above->launch == rank->launch)
                table->all[i].starter = true; /* it has the title of the rank that forked it */
            else if (other)
                above->starter = above->starter || above->launch != rank->launch ||
                                 !find_has_library(table, above);
            above = above->parent > 0 ? find_by_pid(table, above->parent) : NULL;
        }
    }
}

static bool find_wanted(const struct find_table *table, const struct hang_process *process)
{
    const struct shk_hang_want *want = table->want;
    if (!find_is_rank(process) || process->starter || find_ours(table, process))
        return false;
    if (want->job && !find_of_job(process, want->job))
        return false;
    if (want->container && !find_in_container(table, process))
        return false;
    for (size_t i = 0; i < want->pids_count; i++)
        if (find_below(table, process, want->pids[i]))
            return true;
    return !want->pids_count;
}

static int find_two_jobs(const struct hang_process *a, const struct hang_process *b,
                         struct shk_error *err)
{
    return shk_error_set(err, EMLINK,
                         "ranks of several jobs run here, for one process %ld (%s) and process %ld "
                         "(%s): choose with --job or --pid",
                         a->pid, a->group, b->pid, b->group);
}

/* Adds the process, or puts it in place of another one of its rank. */
static int find_add(struct find_table *table, struct hang_process *process,
                    struct hang_process **found, size_t *count, struct shk_error *err)
{
    process->library = find_has_library(table, process);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(found[i]->group, process->group) != 0)
            return table->want->pids_count ? 0 : find_two_jobs(found[i], process, err);
        if (found[i]->rank != process->rank || process->rank < 0)
            continue;
        if (find_better(table, process, found[i]))
            found[i] = process;
        return 0;
    }
    if (*count < HANG_RANKS)
        found[(*count)++] = process;
    return 0;
}

/* A rank whose process is over but not yet waited for has no environment any more: of the children
 * of the others' parent it is the one without a rank, where one rank is missing. */
static void find_zombie(struct find_table *table, struct hang_process **found, size_t *count)
{
    struct hang_process *zombie = NULL;
    long ranks = *count ? found[0]->local_ranks : 0, missing = -1;
    bool local = ranks > 0;
    if (*count && !local) /* not told: where all others are here, it is, too */
        ranks = found[0]->ranks;
    if (ranks != (long)*count + 1 || *count >= HANG_RANKS)
        return;
    for (size_t i = 0; i < table->count; i++)
        if (table->all[i].state == 'Z' && table->all[i].parent == found[0]->parent) {
            if (zombie)
                return;
            zombie = &table->all[i];
        }
    for (long rank = 0; rank < ranks && missing < 0; rank++) {
        bool seen = false;
        for (size_t i = 0; i < *count; i++)
            seen = seen || (local ? found[i]->local_rank : found[i]->rank) == rank;
        missing = seen ? -1 : rank;
    }
    if (!zombie || missing < 0)
        return;
    zombie->local_rank = local ? missing : -1;
    zombie->local_ranks = local ? ranks : -1;
    zombie->ranks = found[0]->ranks;
    zombie->rank = found[0]->ranks == ranks ? missing : -1;
    zombie->launch = found[0]->launch;
    zombie->ras_port = 0;
    zombie->group = strdup(found[0]->group);
    found[(*count)++] = zombie;
}

/* The processes of --pid that no launcher started stand for themselves. */
static int find_named(struct find_table *table, struct hang_process **found, size_t *count,
                      struct shk_error *err)
{
    for (size_t i = 0; i < table->want->pids_count; i++) {
        long pid = table->want->pids[i];
        struct hang_process *process = find_by_pid(table, pid);
        bool covered = false;
        if (!process)
            return shk_error_set(err, ESRCH, "no process %ld on this host", pid);
        for (size_t k = 0; k < *count; k++)
            covered = covered || find_below(table, found[k], pid);
        if (covered)
            continue;
        size_t more = find_plain(table, process, found + *count, HANG_RANKS - *count);
        *count += more;
        if (!more && *count < HANG_RANKS) {
            process->library = find_has_library(table, process);
            found[(*count)++] = process;
        }
    }
    return 0;
}

/* Were some of them chosen one by one, or can a process beside them not be read? */
static bool find_partial(const struct find_table *table, struct hang_process *const *found,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < table->want->pids_count; p++)
            if (found[i]->pid == table->want->pids[p])
                return true;
    for (size_t i = 0; count && i < table->count; i++)
        if (table->all[i].unreadable && table->all[i].state != 'Z' &&
            table->all[i].parent == found[0]->parent)
            return true;
    return false;
}

static int find_order(const void *a, const void *b)
{
    const struct hang_process *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Moves the chosen ones out of the table. */
static int find_take(const struct find_table *table, struct hang_process **found, size_t count,
                     struct hang_process **found_p)
{
    struct hang_process *taken = calloc(count + 1, sizeof *taken);
    if (!taken)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        taken[i] = *found[i];
        found[i]->group = found[i]->job = found[i]->step = found[i]->dump = found[i]->pipe = NULL;
        if (table->want->names)
            hang_environment(table->host, table->want->names, &taken[i]);
    }
    qsort(taken, count, sizeof *taken, find_order);
    *found_p = taken;
    return 0;
}

bool hang_hidden(const struct shk_host *host)
{
    struct stat st;
    return shk_host_stat(host, "/proc/1", &st) != 0;
}

static int find_none(const struct find_table *table, struct shk_error *err)
{
    const struct shk_hang_want *want = table->want;
    const char *hidden = hang_hidden(table->host)
                             ? "; processes of other users cannot be seen (hidepid of /proc)"
                             : "";
    if (want->container)
        return shk_error_set(err, ESRCH,
                             "no rank on this host runs in a control group of container %s%s",
                             want->container, hidden);
    if (want->job)
        return shk_error_set(err, ESRCH, "no rank of job %s runs on this host%s", want->job,
                             hidden);
    return shk_error_set(err, ESRCH,
                         "no process that a launcher started as a rank runs on this host%s; name "
                         "processes with --pid",
                         hidden);
}

int hang_find(const struct shk_host *host, const struct shk_hang_want *want,
              struct hang_process **found_p, size_t *count_p, bool *partial_p,
              struct shk_error *err)
{
    struct find_table table = {.host = host, .want = want};
    struct hang_process *found[HANG_RANKS + 1];
    size_t count = 0;
    int rc = find_read(&table, err);
    find_setters(&table);
    find_starters(&table);
    for (size_t i = 0; !rc && i < table.count; i++)
        if (find_wanted(&table, &table.all[i]))
            rc = find_add(&table, &table.all[i], found, &count, err);
    if (!rc)
        find_zombie(&table, found, &count);
    if (!rc)
        rc = find_named(&table, found, &count, err);
    if (!rc && !count && want->container)
        count = find_plain(&table, NULL, found, HANG_RANKS);
    if (!rc && !count)
        rc = find_none(&table, err);
    *partial_p = !rc && find_partial(&table, found, count);
    if (!rc && find_take(&table, found, count, found_p))
        rc = shk_error_sys(err, ENOMEM, "processes");
    *count_p = rc ? 0 : count;
    hang_find_free(table.all, table.count);
    return rc;
}

void hang_find_free(struct hang_process *processes, size_t count)
{
    for (size_t i = 0; processes && i < count; i++) {
        free(processes[i].group);
        free(processes[i].job);
        free(processes[i].step);
        free(processes[i].dump);
        free(processes[i].pipe);
        json_decref(processes[i].environment);
        json_decref(processes[i].withheld);
    }
    free(processes);
}
