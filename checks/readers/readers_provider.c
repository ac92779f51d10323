#include "checks/readers/readers_provider.h"

#include "checks/base/row.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

/* The prefix of libfabric, <PROVIDER>_…? */
static bool name_is_of(const char *name, const char *provider, size_t len)
{
    const char *prefix = shk_variable("prefixes.libfabric");
    size_t start = strlen(prefix);
    return len && len < 32 && strncmp(name, prefix, start) == 0 &&
           strncasecmp(name + start, provider, len) == 0 && name[start + len] == '_';
}

/* The provider in the library whose name a variable carries that the catalogue does not know. */
static bool provider_by_name(const struct shk_facts *facts, const char *name, char buf[32])
{
    size_t i;
    json_t *core, *item;
    if (shk_look_texts(facts, "fabric.core_providers", &core) != SHK_LOOK_PRESENT)
        return false;
    json_array_foreach(core, i, item)
    {
        const char *provider = json_string_value(item);
        if (provider && name_is_of(name, provider, strlen(provider))) {
            strcpy(buf, provider);
            return true;
        }
    }
    return false;
}

bool shk_provider_of(const struct shk_facts *facts, const char *fixed, const char *name,
                     const struct shk_setting *setting, char buf[32])
{
    const char *at = setting && setting->source ? strstr(setting->source, ":prov/") : NULL;
    if (fixed) {
        strcpy(buf, fixed);
        return true;
    }
    if (!setting)
        return provider_by_name(facts, name, buf);
    size_t len = at ? strcspn(at + 6, "/") : 0;
    if (!name_is_of(name, at ? at + 6 : "", len))
        return false;
    memcpy(buf, at + 6, len);
    buf[len] = '\0';
    return true;
}

/* Has a list of providers this one, alone, under "ofi_", or layered ("udp;ofi_rxd")? */
static bool provider_in(const json_t *list, const char *provider)
{
    size_t i, n = strlen(provider);
    json_t *item;
    json_array_foreach((json_t *)list, i, item)
    {
        const char *name = json_string_value(item);
        if (name && strncmp(name, "ofi_", 4) == 0)
            name += 4;
        const char *layer = name ? strstr(name, ";ofi_") : NULL;
        if (name && ((strncmp(name, provider, n) == 0 && (!name[n] || name[n] == ';')) ||
                     (layer && strcmp(layer + 5, provider) == 0)))
            return true;
    }
    return false;
}

enum shk_provider_look shk_provider_look(const struct shk_facts *facts, const char *provider)
{
    json_t *core, *offered;
    bool known = shk_look_texts(facts, "fabric.core_providers", &core) == SHK_LOOK_PRESENT;
    enum shk_look look = shk_look_texts(facts, "fabric.providers", &offered);
    if (look == SHK_LOOK_PRESENT && provider_in(offered, provider))
        return SHK_PROVIDER_LOOKS_WORKS;
    if (!known)
        return SHK_PROVIDER_LOOKS_UNREAD;
    if (!provider_in(core, provider))
        return SHK_PROVIDER_LOOKS_GONE;
    return SHK_PROVIDER_LOOKS_IDLE;
}
