/* What drivers of network cards count beyond /proc/net/dev: errors of the physical layer, pauses.
 */
#include "core/host/ethtool.h"
#include "probes/counters/counters_private.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>

/* Names of mlx5 (drivers/net/ethernet/mellanox/mlx5/core/en_stats.c), bnxt_en (bnxt_ethtool.c), ice
 * (ice_ethtool.c), ionic (ionic_stats.c), ena. The first that fits holds; queues of their own are
 * left out, their sums are there as well. */
static const struct counters_name ethtool_names[] = {
    {"link_down_events_phy", "down"},
    {"rx_symbol_err_phy", "link"},
    {"rx_crc_errors_phy", "link"},
    {"rx_pcs_symbol_err_phy", "link"},
    {"rx_fcs_err_frames", "link"},
    {"rx_crc_errors.nic", "link"},
    {"link_down_events", "down"},
    {"module_bus_stuck", "link"},
    {"module_high_temp", "link"},
    {"rx_discards_phy", "busy"},
    {"tx_discards_phy", "busy"},
    {"rx_prio[0-7]_pause", "busy"},
    {"tx_prio[0-7]_pause", "busy"},
    {"rx_prio[0-7]_discards", "busy"},
    {"rx_prio[0-7]_buf_discard", "busy"},
    {"[rt]x_pfc_ena_frames_pri[0-7]", "busy"},
    {"[rt]x_priority_[0-7]_xoff.nic", "busy"},
    {"frames_[rt]x_pripause", "busy"},
    {"[rt]x_pause_ctrl_phy", "busy"},
    {"outbound_pci_stalled_*", "busy"},
    {"[bp]w_*_allowance_exceeded", "busy"},
    {NULL, NULL},
};

struct ethtool_scope {
    struct counters *c;
    const char *scope;
};

static void ethtool_one(const char *name, unsigned long long value, void *arg)
{
    const struct ethtool_scope *of = arg;
    for (const struct counters_name *n = ethtool_names; n->name; n++)
        if (fnmatch(n->name, name, 0) == 0) {
            counters_set(of->c, of->scope, name, n->kind, value);
            return;
        }
}

/* Interfaces with a device below them; what has none (bridges, tunnels) counts nothing itself. */
void counters_ethtool(struct counters *c)
{
    char **names = shk_host_is_live(c->host)
                       ? counters_list(c, "/sys/class/net", "interfaces", "network")
                       : NULL;
    for (size_t i = 0; names && names[i]; i++) {
        struct ethtool_scope of = {c, names[i]};
        struct shk_error err = {""};
        if (!shk_host_exists(c->host, "/sys/class/net/%s/device", names[i]))
            continue;
        int rc = shk_ethtool_stats(names[i], ethtool_one, &of, &err);
        /* /sys may show another network namespace's interfaces */
        if (rc && rc != -EOPNOTSUPP && rc != -ENODEV) {
            counters_begin(c, names[i], "network");
            counters_unread(c, names[i], err.text);
        }
    }
    shk_host_list_free(names);
}
