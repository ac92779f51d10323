/* Which of libfabric's entries are rails: equal to the first choice in all but the device. */
#include "collectives/fabric/fabric_private.h"
#include "core/host/netns.h"
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NET_CLASS "/sys/class/net"

/* What the kernel and the provider say of a device. */
struct rails_link {
    bool net;       /* the domain is a network interface */
    bool hardware;  /* … with a device of its own or of another below it */
    char **lowers;  /* files "lower_X" of the interface: X is below it */
    uint64_t speed; /* bit/s; 0: not known */
    const char *unfit;
};

/* Names of the files in the interface's folder that begin with "lower_". NULL when there are none.
 */
static char **rails_lowers(const struct shk_host *host, const char *domain)
{
    char **names = NULL;
    size_t count = 0;
    size_t kept = 0;

    if (shk_host_list(host, &names, &count, NULL, NET_CLASS "/%s", domain) != 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], "lower_", strlen("lower_")) == 0) {
            char *swap = names[kept];

            names[kept++] = names[i];
            names[i] = swap;
        }
    }
    for (size_t i = kept; i < count; i++) {
        free(names[i]);
        names[i] = NULL;
    }
    return names;
}

static const char *rails_kind(const struct shk_host *host, const char *domain)
{
    static const struct {
        const char *file, *what;
    } kinds[] = {
        {"bridge", "a bridge"},
        {"tun_flags", "a tunnel"},
        {"wireless", "a wireless interface"},
        {"phy80211", "a wireless interface"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (shk_host_exists(host, NET_CLASS "/%s/%s", domain, kinds[i].file))
            return kinds[i].what;
    }
    return NULL;
}

static bool rails_loopback(const struct shk_host *host, const char *domain)
{
    long long flags = 0;

    return host && shk_host_i64(host, &flags, NULL, NET_CLASS "/%s/flags", domain) == 0 &&
           (flags & IFF_LOOPBACK) != 0;
}

static bool rails_net_down(const struct shk_host *host, const char *domain)
{
    char *state = NULL;
    bool down = shk_host_line(host, &state, NULL, NET_CLASS "/%s/operstate", domain) == 0 &&
                (strcmp(state, "down") == 0 || strcmp(state, "lowerlayerdown") == 0);

    free(state);
    return down;
}

static void rails_net_read(const struct shk_host *host, const char *domain, struct rails_link *link)
{
    long long mbits = 0;

    link->net = !strchr(domain, '/') && shk_host_exists(host, NET_CLASS "/%s", domain);
    if (!link->net)
        return;
    link->lowers = rails_lowers(host, domain);
    link->hardware =
        shk_host_exists(host, NET_CLASS "/%s/device", domain) || (link->lowers && link->lowers[0]);
    link->unfit = rails_kind(host, domain);
    if (!link->unfit && rails_net_down(host, domain))
        link->unfit = "its link is down";
    if (link->speed == 0 && shk_host_i64(host, &mbits, NULL, NET_CLASS "/%s/speed", domain) == 0 &&
        mbits > 0) {
        link->speed = (uint64_t)mbits * 1000000U;
    }
}

static void rails_link_read(const struct shk_host *host, const struct fi_info *info,
                            struct rails_link *link)
{
    const struct fi_link_attr *attr = info->nic ? info->nic->link_attr : NULL;

    *link = (struct rails_link){.speed = attr ? attr->speed : 0};
    if (host)
        rails_net_read(host, info->domain_attr->name, link);
    if (!link->unfit && attr && attr->state == FI_LINK_DOWN)
        link->unfit = "its link is down";
}

static void rails_link_clear(struct rails_link *link)
{
    shk_host_list_free(link->lowers);
    link->lowers = NULL;
}

static bool rails_is_lower(const struct rails_link *link, const char *domain)
{
    for (size_t i = 0; link->lowers != NULL && link->lowers[i] != NULL; i++) {
        if (strcmp(link->lowers[i] + strlen("lower_"), domain) == 0)
            return true;
    }
    return false;
}

/* Does the traffic of both go through one device? */
static bool rails_share(const struct rails_link *a, const char *a_name, const struct rails_link *b,
                        const char *b_name)
{
    for (size_t i = 0; a->lowers != NULL && a->lowers[i] != NULL; i++) {
        if (rails_is_lower(b, a->lowers[i] + strlen("lower_")))
            return true;
    }
    return rails_is_lower(a, b_name) || rails_is_lower(b, a_name);
}

static bool rails_same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool rails_alike(const struct fi_info *first, const struct fi_info *info)
{
    return info->domain_attr->name &&
           rails_same_text(info->fabric_attr->prov_name, first->fabric_attr->prov_name) &&
           info->ep_attr->type == first->ep_attr->type &&
           info->ep_attr->protocol == first->ep_attr->protocol && info->caps == first->caps &&
           info->addr_format == first->addr_format;
}

static int rails_order(const void *a, const void *b)
{
    const struct fi_info *x = *(const struct fi_info *const *)a;
    const struct fi_info *y = *(const struct fi_info *const *)b;
    const char *fx = x->fabric_attr->name ? x->fabric_attr->name : "";
    const char *fy = y->fabric_attr->name ? y->fabric_attr->name : "";
    int order = strverscmp(fx, fy);

    return order != 0 ? order : strverscmp(x->domain_attr->name, y->domain_attr->name);
}

/* Those of the list that could be rails, in order, one per domain; free(). */
static const struct fi_info **rails_candidates(const struct fi_info *first,
                                               const struct fi_info *list, size_t *count_p)
{
    const struct fi_info **found = NULL;
    const struct fi_info *at = NULL;
    size_t room = 0;
    size_t kept = 0;

    for (at = list; at != NULL; at = at->next)
        room++;
    found = calloc(room + 1, sizeof(const struct fi_info *));
    for (at = list; at != NULL && found != NULL; at = at->next) {
        bool seen =
            !rails_alike(first, at) || strcmp(at->domain_attr->name, first->domain_attr->name) == 0;

        for (size_t i = 0; i < kept && !seen; i++)
            seen = strcmp(found[i]->domain_attr->name, at->domain_attr->name) == 0;
        if (!seen)
            found[kept++] = at;
    }
    if (found)
        qsort(found, kept, sizeof *found, rails_order);
    *count_p = kept;
    return found;
}

static struct fabric_rail_report *rails_report(struct fabric *fabric, const struct fi_info *info)
{
    struct fabric_rails_report *report = fabric->report;
    struct fabric_rail_report *row = NULL;

    if (report->count == FABRIC_REPORTS) {
        report->more++;
        return NULL;
    }
    row = &report->row[report->count++];
    snprintf(row->domain, sizeof row->domain, "%s", info->domain_attr->name);
    snprintf(row->fabric, sizeof row->fabric, "%s",
             info->fabric_attr->name ? info->fabric_attr->name : "");
    (void)fabric_pci(info, row->pci, sizeof row->pci);
    row->status = FABRIC_RAIL_LEFT_OUT;
    return row;
}

static void rails_speed_text(uint64_t speed, char *buf, size_t size)
{
    snprintf(buf, size, "%g Gb/s", (double)speed / 1e9);
}

/* Why this one is not a rail: "" when it is. */
static void rails_judge(const struct fabric *fabric, const struct rails_link *links,
                        const struct fi_info *info, const struct rails_link *link, char *buf,
                        size_t size)
{
    const struct rails_link *first = &links[0];
    const char *first_name = fabric->rail[0].info->domain_attr->name;
    char ours[32];
    char theirs[32];

    buf[0] = '\0';
    for (unsigned i = 0; i < fabric->rails && !link->unfit; i++) {
        const char *name = fabric->rail[i].info->domain_attr->name;

        if (rails_share(link, info->domain_attr->name, &links[i], name)) {
            snprintf(buf, size, "shares its link with %.60s", name);
            return;
        }
    }
    if (link->unfit) {
        snprintf(buf, size, "%s", link->unfit);
    } else if (link->net && first->net && first->hardware && !link->hardware) {
        snprintf(buf, size, "a virtual interface, %.60s is none", first_name);
    } else if (link->speed == 0 || first->speed == 0) {
        snprintf(buf, size, "the speed of %.60s is not known",
                 link->speed == 0 ? info->domain_attr->name : first_name);
    } else if (link->speed != first->speed) {
        rails_speed_text(link->speed, ours, sizeof ours);
        rails_speed_text(first->speed, theirs, sizeof theirs);
        snprintf(buf, size, "its speed is %s, that of %.60s %s", ours, first_name, theirs);
    }
}

static int rails_take(struct fabric *fabric, const struct fi_info *info,
                      struct fabric_rail_report *report)
{
    struct fabric_rail *rail = &fabric->rail[fabric->rails];

    rail->info = fabric_lazy(fabric->lib, info);
    if (!rail->info)
        return -ENOMEM;
    rail->report = report;
    fabric->rails++;
    return 0;
}

static int rails_consider(struct fabric *fabric, const struct shk_host *host,
                          const struct fi_info *info, unsigned limit, struct rails_link *links)
{
    bool loopback = rails_loopback(host, info->domain_attr->name);
    struct fabric_rail_report *report = loopback ? NULL : rails_report(fabric, info);
    struct rails_link *link = &links[fabric->rails];
    char why[sizeof report->reason];

    if (!report)
        return 0;
    rails_link_read(host, info, link);
    rails_judge(fabric, links, info, link, why, sizeof why);
    if (why[0] == '\0' && fabric->rails == limit)
        snprintf(why, sizeof why, "%u are in use, as many as were asked for", limit);
    if (why[0] != '\0') {
        snprintf(report->reason, sizeof report->reason, "%s", why);
        rails_link_clear(link);
        return 0;
    }
    return rails_take(fabric, info, report);
}

void fabric_rail_text(const struct fabric_rail *rail, char *buf, size_t size)
{
    const struct fabric_rail_report *report = rail->report;

    snprintf(buf, size, "%s%s%s", report->domain, report->fabric[0] != '\0' ? " of fabric " : "",
             report->fabric);
}

int fabric_rails_select(struct fabric *fabric, const struct shk_host *host,
                        const struct fi_info *list, unsigned limit, struct shk_error *err)
{
    struct rails_link links[SHK_RAILS_MAX + 1];
    const struct fi_info *first = fabric->rail[0].info;
    const struct fi_info **found = NULL;
    size_t count = 0;
    int rc = 0;

    memset(links, 0, sizeof links);
    memset(fabric->report, 0, sizeof *fabric->report);
    fabric->rails = 1;
    fabric->lanes = 1;
    fabric->lane[0] = &fabric->rail[0];
    fabric->rail[0].report = rails_report(fabric, first);
    fabric->rail[0].report->status = FABRIC_RAIL_USED;
    if (limit == 1)
        return 0;
    if (host && shk_netns_foreign(host)) {
        host = NULL; /* names there are those of other interfaces */
    }
    found = rails_candidates(first, list, &count);
    if (!found)
        return shk_error_set(err, ENOMEM, "out of memory");
    rails_link_read(host, first, &links[0]);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = rails_consider(fabric, host, found[i], limit, links);
    for (size_t i = 0; i <= SHK_RAILS_MAX; i++)
        rails_link_clear(&links[i]);
    free(found);
    return rc == 0 ? 0 : shk_error_set(err, -rc, "out of memory");
}
