#include "core/host/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than any driver has (mlx5 with 128 queues: about 8000); keeps a wrong answer from taking all
 * memory. */
#define ETHTOOL_STATS_MAX 65536U

static int ethtool_ask(int fd, const char *iface, void *command)
{
    struct ifreq request = {.ifr_data = command};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", iface);
    return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

static int ethtool_count(int fd, const char *iface, uint32_t *count_p)
{
    struct ethtool_sset_info *ask = calloc(1, sizeof *ask + sizeof ask->data[0]);
    if (!ask)
        return -ENOMEM;
    ask->cmd = ETHTOOL_GSSET_INFO;
    ask->sset_mask = 1ULL << ETH_SS_STATS;
    int rc = ethtool_ask(fd, iface, ask);
    *count_p = ask->data[0];
    if (!rc && (!ask->sset_mask || !*count_p || *count_p > ETHTOOL_STATS_MAX))
        rc = -EOPNOTSUPP;
    free(ask);
    return rc;
}

static int ethtool_read(int fd, const char *iface, uint32_t count, struct ethtool_gstrings *names,
                        struct ethtool_stats *values)
{
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_STATS;
    names->len = count;
    values->cmd = ETHTOOL_GSTATS;
    values->n_stats = count;
    int rc = ethtool_ask(fd, iface, names);
    return rc ? rc : ethtool_ask(fd, iface, values);
}

int shk_ethtool_stats(const char *iface,
                      void (*each)(const char *name, unsigned long long value, void *arg),
                      void *arg, struct shk_error *err)
{
    struct ethtool_gstrings *names = NULL;
    struct ethtool_stats *values = NULL;
    uint32_t count = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 ? -errno : ethtool_count(fd, iface, &count);
    if (!rc) {
        names = calloc(1, sizeof *names + (size_t)count * ETH_GSTRING_LEN);
        values = calloc(1, sizeof *values + count * sizeof values->data[0]);
        rc = names && values ? ethtool_read(fd, iface, count, names, values) : -ENOMEM;
    }
    for (uint32_t i = 0; !rc && i < count && i < names->len && i < values->n_stats; i++) {
        char name[ETH_GSTRING_LEN + 1] = "";
        memcpy(name, names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
        each(name, values->data[i], arg);
    }
    free(names);
    free(values);
    if (fd >= 0)
        close(fd);
    return rc ? shk_error_sys(err, -rc, "counters of %s", iface) : 0;
}
