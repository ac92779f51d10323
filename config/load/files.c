/* Files and folders of YAML. */
#include "config/load/load.h"
#include "core/text/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int files_read_all(int fd, char *data, size_t room, size_t *size_p)
{
    size_t size = 0;
    while (size < room) {
        ssize_t n = read(fd, data + size, room - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        size += (size_t)n;
    }
    *size_p = size;
    return 0;
}

static int files_read_fd(int fd, const char *path, char **data_p, size_t *size_p,
                         struct shk_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return shk_error_sys(err, errno, "%s: cannot be read", path);
    if (!S_ISREG(st.st_mode))
        return shk_error_set(err, EINVAL, "%s: not a regular file", path);
    if ((unsigned long long)st.st_size > SHK_YAML_MAX_BYTES)
        return shk_error_set(err, EFBIG, "%s: larger than %zu MiB", path, SHK_YAML_MAX_BYTES >> 20);
    /* The file may grow meanwhile: one byte more than allowed is read, and found by the parser. */
    size_t room = (size_t)st.st_size + 1;
    char *data = malloc(room);
    if (!data)
        return shk_error_set(err, ENOMEM, "out of memory");
    int rc = files_read_all(fd, data, room, size_p);
    if (rc < 0) {
        free(data);
        return shk_error_sys(err, -rc, "%s: cannot be read", path);
    }
    *data_p = data;
    return 0;
}

int shk_config_read(const char *path, char **data_p, size_t *size_p, struct shk_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return shk_error_sys(err, errno, "%s: cannot be read", path);
    int rc = files_read_fd(fd, path, data_p, size_p, err);
    close(fd);
    return rc;
}

struct files_names {
    char **names;
    size_t count, cap;
};

static int files_name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void files_names_free(struct files_names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
}

static int files_names_add(struct files_names *list, const char *name)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 32;
        char **names = reallocarray(list->names, cap, sizeof *names);
        if (!names)
            return -ENOMEM;
        list->names = names;
        list->cap = cap;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    list->names[list->count++] = copy;
    return 0;
}

/* Entries that are not hidden, sorted. -ENOENT and friends come without text. */
static int files_list(const char *dir, struct files_names *list)
{
    DIR *handle = opendir(dir);
    if (!handle)
        return -errno;
    int rc = 0;
    errno = 0;
    for (const struct dirent *entry; !rc && (entry = readdir(handle)); errno = 0)
        if (entry->d_name[0] != '.')
            rc = files_names_add(list, entry->d_name);
    if (!rc && errno)
        rc = -errno;
    closedir(handle);
    if (!rc && list->count)
        qsort(list->names, list->count, sizeof *list->names, files_name_compare);
    return rc;
}

static bool files_ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static int files_add_entry(struct shk_config *config, enum shk_section section, const char *folder,
                           const char *name, struct shk_error *err)
{
    if (files_ends_in(name, ".yml"))
        return shk_error_set(err, EINVAL, "%s/%s: only files named *.yaml are read", folder, name);
    if (!files_ends_in(name, ".yaml"))
        return 0;
    char *path = shk_strf("%s/%s", folder, name);
    if (!path)
        return shk_error_set(err, ENOMEM, "out of memory");
    int rc = shk_config_add_file(config, section, path, err);
    free(path);
    return rc;
}

/* All *.yaml of one sub-folder. */
static int files_add_folder(struct shk_config *config, enum shk_section section, const char *folder,
                            struct shk_error *err)
{
    struct files_names list = {0};
    int rc = files_list(folder, &list);
    if (rc < 0)
        shk_error_sys(err, -rc, "%s: cannot be read", folder);
    for (size_t i = 0; !rc && i < list.count; i++)
        rc = files_add_entry(config, section, folder, list.names[i], err);
    files_names_free(&list);
    return rc;
}

/* One entry of the configuration folder. *found_p: it is one of ours. */
static int files_add_sub(struct shk_config *config, const char *dir, const char *name,
                         bool *found_p, struct shk_error *err)
{
    enum shk_section section;
    struct stat st;
    const char *folders[SHK_SECTION_COUNT];
    char hint[SHK_HINT];
    int rc = 0;
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        folders[s] = shk_sections[s].folder;
    char *path = shk_strf("%s/%s", dir, name);
    if (!path)
        return shk_error_set(err, ENOMEM, "out of memory");
    if (shk_section_find(name, &section) == 0) {
        *found_p = true;
        rc = files_add_folder(config, section, path, err);
    } else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
               *shk_hint(hint, name, folders, SHK_SECTION_COUNT)) {
        rc = shk_error_set(err, EINVAL, "%s: unknown folder%s", path, hint);
    }
    free(path);
    return rc;
}

int shk_config_add_dir(struct shk_config *config, const char *dir, bool need_any,
                       struct shk_error *err)
{
    struct files_names list = {0};
    bool found = false;
    int rc = files_list(dir, &list);
    if (rc < 0)
        shk_error_sys(err, -rc, "%s: configuration folder cannot be read", dir);
    for (size_t i = 0; !rc && i < list.count; i++)
        rc = files_add_sub(config, dir, list.names[i], &found, err);
    if (!rc && need_any && !found)
        rc = shk_error_set(err, ENOENT,
                           "%s: has none of the folders settings, profiles, "
                           "diagnoses, conflicts, diff, signatures, rules, names, fixes, calls, "
                           "codes, defects, errors, objects",
                           dir);
    files_names_free(&list);
    return rc;
}
