#include "core/host/netns.h"

#include "core/host/hostcall.h"

#include <stdlib.h>
#include <string.h>

#define NET_CLASS "/sys/class/net"

/* What the kernel says of an interface; NULL when it says nothing. */
static const json_t *netns_link(const json_t *answers, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(answers, i, item)
    {
        const char *its = json_string_value(json_object_get(item, "name"));
        if (its && strcmp(its, name) == 0)
            return json_object_get(item, "link");
    }
    return NULL;
}

/* Number and hardware address: one of them alone may be the same by chance. */
static bool netns_same(const struct shk_host *host, const json_t *link, const char *name)
{
    long long index = 0;
    char *mac = NULL;
    const char *want = json_string_value(json_object_get(link, "mac"));
    if (shk_host_i64(host, &index, NULL, NET_CLASS "/%s/ifindex", name) == 0 &&
        index != json_integer_value(json_object_get(link, "index")))
        return false;
    bool known = want && shk_host_line(host, &mac, NULL, NET_CLASS "/%s/address", name) == 0;
    bool same = !known || strcasecmp(mac, want) == 0;
    free(mac);
    return same;
}

bool shk_netns_differs(const struct shk_host *host, const json_t *answers, char *const *names)
{
    size_t kernel = 0, common = 0, sysfs = 0, i;
    json_t *item;
    json_array_foreach(answers, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        kernel += name && json_is_object(json_object_get(item, "link")) && strcmp(name, "lo") != 0;
    }
    if (!kernel && !netns_link(answers, "lo"))
        return false; /* a capture that does not tell */
    for (char *const *n = names; n && *n; n++) {
        if (strcmp(*n, "lo") == 0 || !shk_host_exists(host, NET_CLASS "/%s/ifindex", *n))
            continue;
        const json_t *link = netns_link(answers, *n);
        if (link && !netns_same(host, link, *n))
            return true;
        sysfs++;
        common += link != NULL;
    }
    /* an interface may come or go between the two looks, but not all of them */
    return names && !common && (sysfs || kernel);
}

bool shk_netns_foreign(const struct shk_host *host)
{
    json_t *answers = NULL;
    char **names = NULL;
    bool foreign = shk_hostcall(host, SHK_CALL_IFADDRS, &answers, NULL) == 0 &&
                   shk_host_list(host, &names, NULL, NULL, NET_CLASS) == 0 &&
                   shk_netns_differs(host, answers, names);
    json_decref(answers);
    shk_host_list_free(names);
    return foreign;
}
