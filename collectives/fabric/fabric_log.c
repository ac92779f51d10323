/* libfabric's warnings, kept for the moment in which a call fails: its error number alone says
 * little. Only the last ones; nothing is printed. */
#include "collectives/fabric/fabric_private.h"
#include "core/text/uses.h"
#include <pthread.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LINES 8U

/* The callbacks get no argument of ours. */
static struct {
    pthread_mutex_t lock;
    char line[LOG_LINES][192];
    unsigned count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define LOG_IMPORT                                                                                 \
    (FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 16) /* headers before have no such */

#if LOG_IMPORT
static int log_enabled(const struct fi_provider *prov, enum fi_log_level level,
                       enum fi_log_subsys subsys, uint64_t flags)
{
    (void)prov, (void)subsys, (void)flags;
    return level == FI_LOG_WARN;
}

static int log_ready(const struct fi_provider *prov, enum fi_log_level level,
                     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
    (void)showtime;
    return log_enabled(prov, level, subsys, flags);
}

#endif

void fabric_log_add(const char *provider, const char *func, const char *text)
{
    char *line = NULL;
    size_t len = 0;

    (void)pthread_mutex_lock(&kept.lock);
    line = kept.line[kept.count++ % LOG_LINES];
    snprintf(line, sizeof kept.line[0], "%s %s: %s", provider, func, text);
    len = strlen(line);
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == ' '))
        line[--len] = '\0';
    (void)pthread_mutex_unlock(&kept.lock);
}

#if LOG_IMPORT
static void log_line(const struct fi_provider *prov, enum fi_log_level level,
                     enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
    (void)level, (void)subsys, (void)line;
    fabric_log_add(prov && prov->name ? prov->name : "libfabric", func, msg);
}

static struct fi_ops_log log_ops = {
    .size = sizeof log_ops,
    .enabled = log_enabled,
    .ready = log_ready,
    .log = log_line,
};
static struct fid_logging log_fid = {.fid = {.fclass = FI_CLASS_LOG}, .ops = &log_ops};
#endif

void fabric_log_keep(const struct fabric_lib *lib)
{
    fabric_log_clear();
#if LOG_IMPORT
    struct fid *open = NULL;

    /* A log that was asked for goes where it was asked to go. */
    if (!lib->api.open || getenv(shk_variable("fabric-log")) ||
        lib->api.open(lib->version, "logging", NULL, 0, 0, &open, NULL) != 0) {
        return;
    }
    (void)fi_import_fid(open, &log_fid.fid, 0);
    (void)fi_close(open);
#else
    (void)lib;
#endif
}

void fabric_log_clear(void)
{
    (void)pthread_mutex_lock(&kept.lock);
    kept.count = 0;
    (void)pthread_mutex_unlock(&kept.lock);
}

bool fabric_log_find(const char *text, char *buf, size_t size)
{
    bool found = false;

    (void)pthread_mutex_lock(&kept.lock);
    for (unsigned i = kept.count > LOG_LINES ? kept.count - LOG_LINES : 0; i < kept.count && !found;
         i++) {
        const char *line = kept.line[i % LOG_LINES];

        found = text == NULL || strstr(line, text) != NULL;
        if (found)
            snprintf(buf, size, "%s", line);
    }
    (void)pthread_mutex_unlock(&kept.lock);
    return found;
}
