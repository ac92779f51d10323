/* Vectorscan as an engine (logengine.h): a database and a scratch of it are what they are there. */
#include "probes/engine/logengine.h"

#include <errno.h>
#include <hs.h>
#include <stdint.h>
#include <stdlib.h>

struct vector_tell {
    shk_log_told *told;
    void *arg;
};

static hs_database_t *vector_database(const struct shk_log_set *set)
{
    return (hs_database_t *)(uintptr_t)set;
}

static bool vector_runs_here(void)
{
    return hs_valid_platform() == HS_SUCCESS;
}

static int vector_compile(const struct shk_log_expressions *list, enum shk_log_target target,
                          struct shk_log_set **set_p, size_t *bad_p, struct shk_error *err)
{
    static const hs_platform_info_t any = {.tune = HS_TUNE_FAMILY_GENERIC};
    hs_compile_error_t *bad = NULL;
    hs_database_t *database = NULL;
    unsigned *flags = calloc(list->count + 1, sizeof *flags);
    if (!flags)
        return shk_error_sys(err, ENOMEM, "log patterns");
    for (size_t i = 0; i < list->count; i++)
        flags[i] = HS_FLAG_MULTILINE;
    int rc = hs_compile_multi((const char *const *)list->texts, flags, list->ids,
                              (unsigned)list->count, HS_MODE_BLOCK,
                              target == SHK_LOG_ANY_PROCESSOR ? &any : NULL, &database, &bad);
    if (rc != HS_SUCCESS) {
        *bad_p = bad && bad->expression >= 0 ? (size_t)bad->expression : SIZE_MAX;
        rc = shk_error_set(err, EINVAL, "%s", bad ? bad->message : "refused");
    }
    hs_free_compile_error(bad);
    free(flags);
    *set_p = (struct shk_log_set *)database;
    return rc;
}

static int vector_save(const struct shk_log_set *set, char **data_p, size_t *size_p)
{
    return hs_serialize_database(vector_database(set), data_p, size_p) == HS_SUCCESS ? 0 : -ENOMEM;
}

static int vector_load(const char *data, size_t size, struct shk_log_set **set_p)
{
    hs_database_t *database = NULL;
    int rc = hs_deserialize_database(data, size, &database);
    *set_p = (struct shk_log_set *)database;
    return rc == HS_SUCCESS ? 0 : -EINVAL;
}

static void vector_destroy(struct shk_log_set *set)
{
    hs_free_database(vector_database(set));
}

static int vector_scratch(const struct shk_log_set *set, struct shk_log_scratch **scratch_p)
{
    hs_scratch_t *scratch = NULL;
    int rc = hs_alloc_scratch(vector_database(set), &scratch);
    *scratch_p = (struct shk_log_scratch *)scratch;
    return rc == HS_SUCCESS ? 0 : -ENOMEM;
}

static void vector_scratch_destroy(struct shk_log_scratch *scratch)
{
    hs_free_scratch((hs_scratch_t *)scratch);
}

static int vector_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                        void *arg)
{
    const struct vector_tell *tell = arg;
    (void)from;
    (void)flags;
    return tell->told(tell->arg, id, (size_t)to);
}

/* Line by line: in a block of many, Vectorscan 5.4.9 misses some matches of a line because of those
 * before it, and is slower. (Alone in a database, it misses some of short patterns without a fixed
 * text as well, such as `\.[a-c]$`: tests/unit/engines.) */
static int vector_search(const struct shk_log_set *set, struct shk_log_scratch *scratch,
                         const char *line, size_t len, shk_log_told *told, void *arg)
{
    struct vector_tell tell = {.told = told, .arg = arg};
    int rc = hs_scan(vector_database(set), line, (unsigned)len, 0, (hs_scratch_t *)scratch,
                     vector_match, &tell);
    return rc == HS_SUCCESS || rc == HS_SCAN_TERMINATED ? 0 : -EIO;
}

const struct shk_log_engine *shk_log_engine_vectorscan(void)
{
    static const struct shk_log_engine engine = {
        .name = "Vectorscan",
        .widen_from = 64 << 20,
        .runs_here = vector_runs_here,
        .compile = vector_compile,
        .save = vector_save,
        .load = vector_load,
        .destroy = vector_destroy,
        .scratch = vector_scratch,
        .scratch_destroy = vector_scratch_destroy,
        .search = vector_search,
    };
    return &engine;
}
