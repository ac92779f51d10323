#include "core/facts/elements.h"

#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* The first set of members that every element of an array has and that no two share. */
static const char *const element_identities[SHK_ELEMENT_IDENTITIES][4] = {
    {"bytes"},
    {"provider", "fabric", "domain", "ep"},
    {"provider", "domain"},
    {"gpu", "peer"},
    {"gpu", "nic"},
    {"reader", "path"},
    {"path", "kind"},
    {"path"},
    {"name", "line"},
    {"name"},
    {"addr"},
    {"pci"},
    {"step"},
    {"hint"},
    {"provider"},
    {"port"},
    {"index"},
    {"group"},
    {"node"},
    {"minor"},
    {"link"},
};

char *shk_element_identity(const json_t *element, size_t which)
{
    const char *const *members = element_identities[which];
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < 4 && members[i]; i++) {
        const json_t *m = json_object_get(element, members[i]);
        if (json_is_string(m))
            shk_strbuf_printf(&sb, "%s%s", i ? " " : "", json_string_value(m));
        else if (json_is_integer(m))
            shk_strbuf_printf(&sb, "%s%lld", i ? " " : "", (long long)json_integer_value(m));
        else
            sb.failed = true;
    }
    return shk_strbuf_take(&sb);
}

size_t shk_elements_identity(const json_t *array)
{
    for (size_t which = 0; which < SHK_ELEMENT_IDENTITIES; which++) {
        json_t *seen = json_object(), *element;
        size_t i;
        bool apart = seen != NULL;
        json_array_foreach((json_t *)array, i, element)
        {
            char *id = apart ? shk_element_identity(element, which) : NULL;
            apart = id && !json_object_get(seen, id) && !json_object_set(seen, id, element);
            free(id);
            if (!apart)
                break;
        }
        json_decref(seen);
        if (apart)
            return which;
    }
    return SHK_ELEMENT_IDENTITIES;
}

static bool element_has(const json_t *element, size_t which)
{
    const char *const *members = element_identities[which];
    bool has = true;
    for (size_t i = 0; i < 4 && members[i] && has; i++) {
        const json_t *m = json_object_get(element, members[i]);
        has = json_is_string(m) || json_is_integer(m);
    }
    return has;
}

static bool element_says_nothing(const json_t *element)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)element, name, value)
    {
        if (!json_is_null(value) && strcmp(name, "problems") != 0)
            return false;
    }
    return true;
}

/* How many elements have the set; 0 at once when neither of those at its ends and in its middle
 * has. */
static size_t elements_with(const json_t *array, size_t n, size_t which)
{
    size_t with = 0;
    if (!element_has(json_array_get(array, 0), which) &&
        !element_has(json_array_get(array, n / 2), which) &&
        !element_has(json_array_get(array, n - 1), which))
        return 0;
    for (size_t i = 0; i < n; i++)
        with += element_has(json_array_get(array, i), which);
    return with;
}

bool shk_elements_told(const json_t *array)
{
    size_t n = json_array_size(array);
    bool most = false, all = false;
    for (size_t i = 0; i < n; i++)
        if (element_says_nothing(json_array_get(array, i)))
            return false;
    for (size_t i = 0; n > 1 && i < SHK_ELEMENT_IDENTITIES && !all; i++) {
        size_t with = elements_with(array, n, i);
        all = with == n;
        most |= 2 * with > n;
    }
    return all || !most;
}
