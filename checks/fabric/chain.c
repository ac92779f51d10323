#include "checks/fabric/chain.h"
#include "core/text/prose.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char *chain_copy(const char *text)
{
    char *copy = strdup(text ? text : "");
    return copy ? copy : strdup("");
}

void shk_chain_add(struct shk_chain *chain, const char *step, enum shk_link_state state,
                   const char *detail, const char *whatf, ...)
{
    char *what = NULL;
    va_list args;
    if (chain->count == SHK_CHAIN_MAX)
        return;
    va_start(args, whatf);
    if (vasprintf(&what, whatf, args) < 0)
        what = chain_copy(NULL);
    va_end(args);
    shk_prose(what);
    chain->links[chain->count++] = (struct shk_link){.step = step,
                                                     .state = state,
                                                     .what = what,
                                                     .where = chain_copy(NULL),
                                                     .detail = chain_copy(detail)};
    shk_prose(chain->links[chain->count - 1].detail);
}

void shk_chain_where(struct shk_chain *chain, const char *where)
{
    if (!chain->count || !where || !*where)
        return;
    struct shk_link *last = &chain->links[chain->count - 1];
    free(last->where);
    last->where = chain_copy(where);
}

struct shk_link *shk_chain_last(struct shk_chain *chain)
{
    return chain->count ? &chain->links[chain->count - 1] : NULL;
}

void shk_chain_code(struct shk_chain *chain, enum shk_link_code code)
{
    if (chain->count)
        chain->links[chain->count - 1].code = code;
}

void shk_chain_clear(struct shk_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        free(chain->links[i].what);
        free(chain->links[i].where);
        free(chain->links[i].detail);
    }
    chain->count = 0;
}

static const struct shk_link *chain_find(const struct shk_chain *chain, enum shk_link_state state,
                                         bool software)
{
    for (size_t i = 0; i < chain->count; i++) {
        const struct shk_link *link = &chain->links[i];
        if (link->state == state && (!software || shk_link_is_software(link)))
            return link;
    }
    return NULL;
}

const struct shk_link *shk_chain_first(const struct shk_chain *chain, enum shk_link_state state)
{
    return chain_find(chain, state, false);
}

const struct shk_link *shk_chain_software(const struct shk_chain *chain)
{
    const struct shk_link *first = chain_find(chain, SHK_LINK_BROKEN, false);
    const struct shk_link *also = chain_find(chain, SHK_LINK_BROKEN, true);
    return also == first ? NULL : also;
}

char *shk_link_text(const struct shk_link *link)
{
    bool where = *link->where && !strstr(link->what, link->where);
    return shk_strf("%s%s%s%s%s%s", link->what, where ? " (" : "", where ? link->where : "",
                    where ? ")" : "", *link->detail ? "; " : "", link->detail);
}

bool shk_link_is_software(const struct shk_link *link)
{
    static const char *const steps[] = {"library", "dependencies", "filter", NULL};
    return shk_list_has(steps, link->step);
}

bool shk_link_is_quality(const struct shk_link *link)
{
    static const char *const steps[] = {"limits",  "fork", "capability", "hints",
                                        "domains", "link", "mtu",        NULL};
    return shk_list_has(steps, link->step);
}
