/* Interfaces as the kernel tells them to this process, of its own network namespace: rtnetlink(7),
 * and ethtool's ioctl for what rtnetlink does not have. */
#include "core/facts/facts.h"
#include "core/host/hostcall_private.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* At least what the kernel puts into one answer (NLMSG_GOODSIZE, up to 32 KiB in a dump). */
enum { NETLINK_BYTES = 64 << 10, NETLINK_WAIT_S = 2 };

static void link_text(json_t *link, const char *name, const char *text, size_t len)
{
    json_object_set_new(link, name, shk_json_text(text, strnlen(text, len)));
}

/* IF_OPER_* of linux/if.h, in the words of /sys/class/net/NAME/operstate. */
static void link_operstate(json_t *link, unsigned state)
{
    static const char *const words[] = {"unknown", "notpresent", "down", "lowerlayerdown",
                                        "testing", "dormant",    "up"};
    if (state < sizeof words / sizeof *words)
        json_object_set_new(link, "operstate", json_string(words[state]));
}

static void link_mac(json_t *link, const unsigned char *bytes, size_t len)
{
    char text[3 * 32 + 2] = "";
    for (size_t i = 0; i < len && i < 32; i++)
        snprintf(text + 3 * i, 4, i + 1 < len && i < 31 ? "%02x:" : "%02x", bytes[i]);
    json_object_set_new(link, "mac", json_string(text));
}

static void link_kind(json_t *link, struct rtattr *info)
{
    int len = (int)RTA_PAYLOAD(info);
    for (struct rtattr *a = RTA_DATA(info); RTA_OK(a, len); a = RTA_NEXT(a, len))
        if ((a->rta_type & NLA_TYPE_MASK) == IFLA_INFO_KIND)
            link_text(link, "kind", RTA_DATA(a), RTA_PAYLOAD(a));
}

static uint32_t link_number(const struct rtattr *a)
{
    uint32_t value = 0;
    if (RTA_PAYLOAD(a) >= sizeof value)
        memcpy(&value, RTA_DATA(a), sizeof value);
    return value;
}

static void link_attribute(json_t *link, struct rtattr *a)
{
    const unsigned char *data = RTA_DATA(a);
    size_t len = RTA_PAYLOAD(a);
    switch (a->rta_type & NLA_TYPE_MASK) {
    case IFLA_IFNAME: link_text(link, "name", RTA_DATA(a), len); break;
    case IFLA_MTU: json_object_set_new(link, "mtu", json_integer(link_number(a))); break;
    case IFLA_MASTER: json_object_set_new(link, "master", json_integer(link_number(a))); break;
    case IFLA_OPERSTATE:
        if (len)
            link_operstate(link, data[0]);
        break;
    case IFLA_CARRIER:
        if (len)
            json_object_set_new(link, "carrier", json_boolean(data[0]));
        break;
    case IFLA_CARRIER_DOWN_COUNT:
        json_object_set_new(link, "carrier_down", json_integer(link_number(a)));
        break;
    case IFLA_ADDRESS: link_mac(link, data, len); break;
    case IFLA_LINKINFO: link_kind(link, a); break;
    default: break;
    }
}

static void link_message(json_t *list, struct nlmsghdr *header)
{
    struct ifinfomsg *info = NLMSG_DATA(header);
    int len = (int)IFLA_PAYLOAD(header);
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *info))
        return;
    json_t *link = json_pack("{s:i,s:i}", "index", info->ifi_index, "type", (int)info->ifi_type);
    for (struct rtattr *a = IFLA_RTA(info); RTA_OK(a, len); a = RTA_NEXT(a, len))
        link_attribute(link, a);
    json_array_append_new(list, link);
}

/* Answers up to the end of the dump; 0 or a negative errno. */
static int link_answers(int fd, char *buffer, json_t *list)
{
    for (;;) {
        ssize_t got = recv(fd, buffer, NETLINK_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        int len = (int)got;
        for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buffer;
             len > 0 && NLMSG_OK(h, (unsigned)len); h = NLMSG_NEXT(h, len)) {
            if (h->nlmsg_type == NLMSG_DONE)
                return 0;
            if (h->nlmsg_type == NLMSG_ERROR)
                return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
            if (h->nlmsg_type == RTM_NEWLINK)
                link_message(list, h);
        }
    }
}

static int link_dump(json_t *list)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg info;
    } ask = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                        .nlmsg_type = RTM_GETLINK,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                        .nlmsg_seq = 1}};
    struct timeval wait = {.tv_sec = NETLINK_WAIT_S};
    char *buffer = malloc(NETLINK_BYTES);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), rc = 0;
    if (!buffer || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
        send(fd, &ask, ask.header.nlmsg_len, 0) < 0)
        rc = buffer ? -errno : -ENOMEM;
    if (!rc)
        rc = link_answers(fd, buffer, list);
    if (fd >= 0)
        close(fd);
    free(buffer);
    return rc;
}

static int ethtool_ask(int fd, const char *name, void *request)
{
    struct ifreq ifr = {.ifr_data = request};
    memcpy(ifr.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
    return ioctl(fd, SIOCETHTOOL, &ifr);
}

/* The first question tells how many words the masks have, the second brings them. */
static void ethtool_speed(int fd, const char *name, json_t *link)
{
    /* masks of three kinds, at most 127 words each */
    struct ethtool_link_settings *ask = calloc(1, sizeof *ask + (size_t)3 * 128 * sizeof(uint32_t));
    if (!ask)
        return;
    ask->cmd = ETHTOOL_GLINKSETTINGS;
    if (ethtool_ask(fd, name, ask) == 0 && ask->link_mode_masks_nwords < 0) {
        ask->cmd = ETHTOOL_GLINKSETTINGS;
        ask->link_mode_masks_nwords = (signed char)-ask->link_mode_masks_nwords;
        if (ethtool_ask(fd, name, ask) == 0 && ask->speed != (uint32_t)SPEED_UNKNOWN &&
            ask->speed > 0)
            json_object_set_new(link, "speed_mbps", json_integer(ask->speed));
    }
    free(ask);
}

static void ethtool_driver(int fd, const char *name, json_t *link)
{
    struct ethtool_drvinfo ask = {.cmd = ETHTOOL_GDRVINFO};
    if (ethtool_ask(fd, name, &ask) != 0)
        return;
    link_text(link, "driver", ask.driver, sizeof ask.driver);
    link_text(link, "bus", ask.bus_info, sizeof ask.bus_info);
}

/* The name of an index of the list. */
static const char *link_name(const json_t *list, json_int_t index)
{
    size_t i;
    json_t *link;
    json_array_foreach(list, i, link)
    {
        if (json_integer_value(json_object_get(link, "index")) == index)
            return json_string_value(json_object_get(link, "name"));
    }
    return NULL;
}

int shk_netlink_links(json_t **value_p)
{
    json_t *list = json_array(), *by_name = json_object(), *link;
    size_t i;
    int rc = link_dump(list), fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    json_array_foreach(rc ? NULL : list, i, link)
    {
        const char *name = json_string_value(json_object_get(link, "name"));
        json_t *master = json_object_get(link, "master");
        if (!name)
            continue;
        if (master) {
            const char *its = link_name(list, json_integer_value(master));
            json_object_set_new(link, "master", its ? json_string(its) : json_null());
        }
        ethtool_speed(fd, name, link);
        ethtool_driver(fd, name, link);
        json_object_set(by_name, name, link);
    }
    json_array_foreach(list, i, link) json_object_del(link, "name");
    if (fd >= 0)
        close(fd);
    json_decref(list);
    *value_p = by_name;
    return rc;
}
