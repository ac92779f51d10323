#include "collectives/ranks/debris.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct debris_names {
    char **names;
    size_t count;
    bool failed;
};

struct shk_debris {
    char *dir;
    struct debris_names before;
    struct debris_names mapped;
};

static bool debris_has(const struct debris_names *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0)
            return true;
    }
    return false;
}

static void debris_add(struct debris_names *list, const char *name)
{
    char **names = NULL;
    char *copy = NULL;

    if (list->failed || debris_has(list, name))
        return;
    names = realloc(list->names, (list->count + 1) * sizeof *names);
    copy = strdup(name);
    if (names)
        list->names = names;
    if (!names || !copy) {
        free(copy);
        list->failed = true;
        return;
    }
    list->names[list->count++] = copy;
}

static void debris_free(struct debris_names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
}

struct shk_debris *shk_debris_create(const char *dir)
{
    struct shk_debris *debris = calloc(1, sizeof *debris);
    DIR *stream = opendir(dir);
    struct dirent *entry = NULL;

    if (debris && stream) {
        debris->dir = strdup(dir);
        while ((entry = readdir(stream)) != NULL)
            debris_add(&debris->before, entry->d_name);
    }
    if (stream)
        closedir(stream);
    /* An incomplete memory of what was there would make us delete what is not ours. */
    if (debris && (!debris->dir || debris->before.failed)) {
        shk_debris_destroy(debris);
        debris = NULL;
    }
    return debris;
}

void shk_debris_destroy(struct shk_debris *debris)
{
    if (!debris)
        return;
    debris_free(&debris->before);
    debris_free(&debris->mapped);
    free(debris->dir);
    free(debris);
}

void shk_debris_note(struct shk_debris *debris, pid_t pid)
{
    char path[64];
    char *line = NULL;
    size_t cap = 0;
    size_t dirlen = 0;
    FILE *maps = NULL;

    if (!debris)
        return;
    dirlen = strlen(debris->dir);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps && getline(&line, &cap, maps) > 0) {
        char *name = strchr(line, '/');

        if (!name || strncmp(name, debris->dir, dirlen) != 0 || name[dirlen] != '/')
            continue;
        name += dirlen + 1;
        name[strcspn(name, "\n")] = '\0';
        if (!strchr(name, '/') && !debris_has(&debris->before, name))
            debris_add(&debris->mapped, name);
    }
    if (maps)
        fclose(maps);
    free(line);
}

/* The process id as a whole number somewhere in the name. */
static bool debris_names_pid(const char *name, pid_t pid)
{
    const char *at = name;

    while (*at != '\0') {
        char *end = NULL;

        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        if (strtoull(at, &end, 10) == (unsigned long long)pid) {
            return true;
        }
        at = end;
    }
    return false;
}

static bool debris_ours(const struct shk_debris *debris, const char *name, const pid_t *pids,
                        size_t count)
{
    if (debris_has(&debris->before, name))
        return false;
    if (debris_has(&debris->mapped, name))
        return true;
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0 && debris_names_pid(name, pids[i]))
            return true;
    }
    return false;
}

size_t shk_debris_sweep(struct shk_debris *debris, const pid_t *pids, size_t count)
{
    DIR *stream = debris ? opendir(debris->dir) : NULL;
    struct dirent *entry = NULL;
    struct stat st;
    size_t removed = 0;

    while (stream && (entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;

        if (debris_ours(debris, name, pids, count) &&
            fstatat(dirfd(stream), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_uid == geteuid() && unlinkat(dirfd(stream), name, 0) == 0) {
            removed++;
        }
    }
    if (stream)
        closedir(stream);
    return removed;
}
