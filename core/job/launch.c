#include "core/job/launch.h"

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
