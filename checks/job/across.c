#include "checks/job/across.h"

#include <stdlib.h>
#include <string.h>

struct across_search {
    const struct shk_across *across;
    const struct shk_facts *facts;
    json_t *transports; /* {name: true} in the order of the facts */
};

static bool across_has(const struct across_search *search, const char *transport,
                       const char *member)
{
    char *key = shk_strf("collective.%s.%s", transport, member);
    bool has = key && shk_look(search->facts, key, NULL) != SHK_LOOK_MISSING;
    free(key);
    return has;
}

/* The collective was run over enough nodes for the fact to be there. */
static bool across_owes(const struct across_search *search, const char *transport,
                        const char *status)
{
    json_t *layout = NULL;
    const struct shk_across *across = search->across;
    if (!status || (across->only && strcmp(across->only, transport) != 0) ||
        across_has(search, transport, "by_node"))
        return false;
    return (across->ok ? strcmp(status, "ok") == 0 : strcmp(status, "na") != 0) &&
           shk_look_array(search->facts, "job.layout", &layout) == SHK_LOOK_PRESENT &&
           json_array_size(layout) >= across->nodes;
}

static int across_fact(const struct shk_fact *fact, void *arg)
{
    struct across_search *search = arg;
    const char *name = fact->key + strlen("collective."), *dot = strchr(name, '.');
    char *transport = dot ? shk_strf("%.*s", (int)(dot - name), name) : NULL;
    const char *status = fact->state == SHK_FACT_PRESENT ? json_string_value(fact->value) : NULL;
    if (transport && (strcmp(dot + 1, search->across->member) == 0 ||
                      (strcmp(dot + 1, "status") == 0 && across_owes(search, transport, status))))
        json_object_set_new(search->transports, transport, json_true());
    free(transport);
    return 0;
}

void shk_across_eval(const struct shk_across *across, const struct shk_check_context *ctx,
                     struct shk_findings *findings)
{
    struct across_search search = {across, ctx->facts, json_object()};
    const char *transport;
    json_t *value;
    (void)shk_facts_each(ctx->facts, "collective.", across_fact, &search);
    json_object_foreach(search.transports, transport, value)
    {
        char *setting = shk_strf("%s (%s)", across->setting, transport);
        char *key = shk_strf("collective.%s.%s", transport, across->member);
        if (setting && key) {
            struct shk_row row = shk_row_begin(ctx, across->check, setting);
            row.fact = key;
            across->judge(&row, findings, key);
        }
        free(setting);
        free(key);
    }
    json_decref(search.transports);
}
