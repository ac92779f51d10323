/* Without SQLite. */
#include "core/search/search.h"

#include <errno.h>

bool shk_search_built(void)
{
    return false;
}

int shk_search_create(struct shk_search **search_p, struct shk_error *err)
{
    *search_p = NULL;
    return shk_error_set(err, ENOTSUP, "full-text index: this build has no SQLite");
}

void shk_search_destroy(struct shk_search *search)
{
    (void)search;
}

int shk_search_add(struct shk_search *search, size_t id, const char *text, struct shk_error *err)
{
    (void)search, (void)id, (void)text;
    return shk_error_set(err, ENOTSUP, "full-text index: this build has no SQLite");
}

int shk_search_find(struct shk_search *search, const char *text, struct shk_search_hit *hits,
                    size_t cap, struct shk_error *err)
{
    (void)search, (void)text, (void)hits, (void)cap;
    return shk_error_set(err, ENOTSUP, "full-text index: this build has no SQLite");
}
