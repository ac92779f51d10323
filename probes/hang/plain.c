/* Ranks that no launcher has marked: torch.multiprocessing and the like. */
#include "probes/hang/find.h"

#include <stdlib.h>
#include <string.h>

struct plain {
    struct hang_process *process;
    json_t *sockets; /* {inode: [local, peer]} of those with a peer */
};

static json_t *plain_sockets(const struct find_table *table, long pid)
{
    size_t i;
    json_t *socket, *inodes = json_object(), *all = hang_sockets(table->host, pid, NULL);
    json_array_foreach(all, i, socket)
    {
        const char *inode = json_string_value(json_object_get(socket, "inode"));
        if (inode)
            json_object_set_new(inodes, inode,
                                json_pack("[O,O]", json_object_get(socket, "local"),
                                          json_object_get(socket, "peer")));
    }
    json_decref(all);
    return inodes;
}

/* A loader of data that a rank has forked has the rank's connections. */
static bool plain_shares(const struct find_table *table, const struct plain *list, size_t count,
                         const struct plain *one)
{
    for (size_t i = 0; i < count; i++) {
        const char *inode;
        json_t *none;
        if (list[i].process == one->process ||
            !find_below(table, one->process, list[i].process->pid))
            continue;
        json_object_foreach(one->sockets, inode, none)
        {
            if (json_object_get(list[i].sockets, inode))
                return true;
        }
    }
    return false;
}

/* {"local peer": index in the list} of all connections. */
static json_t *plain_ends(const struct plain *list, size_t count)
{
    const char *inode;
    json_t *ends, *all = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_foreach(list[i].sockets, inode, ends)
        {
            char *key = shk_strf("%s %s", json_string_value(json_array_get(ends, 0)),
                                 json_string_value(json_array_get(ends, 1)));
            json_object_set_new(all, key ? key : "", json_integer((json_int_t)i));
            free(key);
        }
    return all;
}

/* Is the other end of one of its connections at another one of the list? */
static bool plain_is_paired(const struct plain *list, const json_t *all, size_t one)
{
    const char *inode;
    json_t *ends;
    json_object_foreach(list[one].sockets, inode, ends)
    {
        char *key = shk_strf("%s %s", json_string_value(json_array_get(ends, 1)),
                             json_string_value(json_array_get(ends, 0)));
        const json_t *at = key ? json_object_get(all, key) : NULL;
        free(key);
        if (at && json_integer_value(at) != (json_int_t)one)
            return true;
    }
    return false;
}

/* Those with connections of their own; where some are connected to each other, these alone: a
 * loader may have one to where the data are. */
static size_t plain_own(const struct find_table *table, const struct plain *list, size_t count,
                        bool paired, struct hang_process **found, size_t most)
{
    size_t n = 0;
    json_t *all = paired ? plain_ends(list, count) : NULL;
    for (size_t i = 0; i < count && n < most; i++)
        if (json_object_size(list[i].sockets) && !plain_shares(table, list, count, &list[i]) &&
            (!paired || plain_is_paired(list, all, i)))
            found[n++] = list[i].process;
    json_decref(all);
    return n;
}

/* Two ranks or more are below it: it started them. */
static bool plain_starts(const struct find_table *table, struct hang_process *const *found,
                         size_t count, const struct hang_process *process)
{
    size_t below = 0;
    for (size_t i = 0; i < count; i++)
        below += found[i] != process && find_below(table, found[i], process->pid);
    return below >= 2;
}

static size_t plain_connected(const struct find_table *table, const struct plain *list,
                              size_t count, struct hang_process **found, size_t most)
{
    size_t n = plain_own(table, list, count, true, found, most), kept = 0;
    if (n < 2)
        n = plain_own(table, list, count, false, found, most);
    struct hang_process **all = calloc(n + 1, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = found[i];
    for (size_t i = 0; all && i < n; i++)
        if (!plain_starts(table, all, n, all[i]))
            found[kept++] = all[i];
    free(all);
    return kept;
}

/* A program that has forked its ranks: they have its name. A helper that only sleeps is none. */
static size_t plain_forked(struct find_table *table, const struct hang_process *top,
                           struct hang_process **found, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; top && i < table->count && n < most; i++) {
        struct hang_process *process = &table->all[i];
        if (process->parent == top->pid && strcmp(process->name, top->name) == 0 &&
            process->state != 'Z' && process->ticks && !find_ours(table, process))
            found[n++] = process;
    }
    return n;
}

/* Started by Python's multiprocessing with the variables that its parent had then. */
static bool plain_is_spawned(const struct find_table *table, const struct hang_process *process)
{
    char path[64], *text = NULL;
    size_t length = 0;
    bool is = false;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", process->pid);
    if (shk_host_read(table->host, path, &text, &length, NULL))
        return false;
    for (const char *p = text; p < text + length; p += strlen(p) + 1)
        is = is || strcmp(p, "--multiprocessing-fork") == 0;
    free(text);
    return is;
}

/* The processes that it has spawned are of one rank. */
static bool plain_one_rank(const struct find_table *table, const struct hang_process *parent,
                           const struct hang_process *child)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hang_process *other = &table->all[i];
        if (other->parent == parent->pid && other->launch == child->launch &&
            other->rank != child->rank)
            return false;
    }
    return true;
}

void find_setters(struct find_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct hang_process *child = &table->all[i], *parent = find_by_pid(table, child->parent);
        bool set = child->rank >= 0 && !child->titled && parent && parent->rank < 0 &&
                   !parent->titled && !parent->unreadable && plain_is_spawned(table, child) &&
                   plain_one_rank(table, parent, child);
        json_t *sockets = set ? plain_sockets(table, parent->pid) : NULL;
        if (json_object_size(sockets)) {
            free(parent->group);
            free(parent->dump);
            parent->launch = child->launch;
            parent->rank = child->rank;
            parent->ranks = child->ranks;
            parent->local_rank = child->local_rank;
            parent->local_ranks = child->local_ranks;
            parent->group = child->group ? strdup(child->group) : NULL;
            parent->dump = child->dump ? strdup(child->dump) : NULL;
        }
        json_decref(sockets);
    }
}

size_t find_plain(struct find_table *table, const struct hang_process *top,
                  struct hang_process **found, size_t most)
{
    struct plain *list = calloc(table->count + 1, sizeof *list);
    size_t count = 0, n = 0;
    for (size_t i = 0; list && i < table->count; i++) {
        struct hang_process *process = &table->all[i];
        bool in = top ? find_below(table, process, top->pid) : find_in_container(table, process);
        if (!in || process->state == 'Z' || find_ours(table, process))
            continue;
        process->library = find_has_library(table, process);
        if (process->library)
            list[count++] = (struct plain){process, plain_sockets(table, process->pid)};
    }
    n = count ? plain_connected(table, list, count, found, most)
              : plain_forked(table, top, found, most);
    for (size_t i = 0; i < count; i++)
        json_decref(list[i].sockets);
    free(list);
    return n >= 2 ? n : 0;
}
