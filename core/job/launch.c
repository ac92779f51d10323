#include "core/job/launch.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_launch *launch_rows;
static size_t launch_count;

void shk_launch_install(const struct shk_launch *rows, size_t count)
{
    launch_rows = rows;
    launch_count = count;
}

const struct shk_launch *shk_launch_find(shk_launch_get *get, void *arg)
{
    for (size_t i = launch_count; i-- > 0;) {
        const struct shk_launch *launch = &launch_rows[i];
        bool holds = launch->needs != NULL;
        for (const char *const *need = launch->needs; need && *need && holds; need++) {
            const char *value = get(*need, arg);
            holds = value && *value;
        }
        if (holds)
            return launch;
    }
    return NULL;
}

const struct shk_launch *shk_launch_next(size_t *at)
{
    return *at < launch_count ? &launch_rows[launch_count - ++*at] : NULL;
}

const struct shk_launch *shk_launch_titled(const char *title)
{
    for (size_t i = launch_count; i-- > 0;)
        for (const char *const *p = launch_rows[i].processes; p && *p; p++)
            if (fnmatch(*p, title, FNM_NOESCAPE) == 0)
                return &launch_rows[i];
    return NULL;
}

int shk_launch_depth(const char *name)
{
    for (size_t i = launch_count; name && i-- > 0;)
        if (strcmp(launch_rows[i].name, name) == 0)
            return (int)i;
    return -1;
}

unsigned shk_launch_tasks_of(const char *list, unsigned node)
{
    unsigned seen = 0;
    while (list && *list >= '0' && *list <= '9') {
        char *end = NULL;
        unsigned count = (unsigned)strtoul(list, &end, 10);
        unsigned times = strncmp(end, "(x", 2) == 0 ? (unsigned)strtoul(end + 2, &end, 10) : 1;
        seen += times;
        if (node < seen)
            return count;
        list = end + strcspn(end, ",");
        list += *list == ',';
    }
    return 0;
}
