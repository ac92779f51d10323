#include "collectives/launch/counters.h"
#include "core/facts/facts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counters_name {
    const char *name, *kind;
};

/* /proc/net/snmp (RFC 4022) and the kernel's net/ipv4/proc.c. */
static const struct counters_name tcp_names[] = {
    {"RetransSegs", "resent"},
    {"TCPTimeouts", "resent"},
    {NULL, NULL},
};

/* In the order of the columns of /proc/net/dev (net/core/net-procfs.c). Not the column "drop": it
 * also counts frames of protocols that nobody listens to, which switches send all the time. */
static const struct counters_name dev_columns[] = {
    {NULL, NULL}, /* bytes */
    {NULL, NULL}, /* packets */
    {"rx_errors", "link"},
    {NULL, NULL}, /* drop */
    {"rx_fifo_errors", "busy"},
    {"rx_frame_errors", "link"},
    {NULL, NULL}, /* compressed */
    {NULL, NULL}, /* multicast */
    {NULL, NULL}, /* bytes */
    {NULL, NULL}, /* packets */
    {"tx_errors", "link"},
    {NULL, NULL}, /* drop */
    {"tx_fifo_errors", "busy"},
    {NULL, NULL}, /* colls */
    {"tx_carrier_errors", "link"},
};
#define DEV_COLUMNS (sizeof(dev_columns) / sizeof(dev_columns[0]))

/* ports/N/counters: InfiniBand Architecture Specification 1.4, 16.1.3.5 (PortCounters); names as in
 * drivers/infiniband/core/sysfs.c. Not port_rcv_remote_physical_errors and port_xmit_wait: the
 * first is an error elsewhere, the second is back-pressure. */
static const struct counters_name port_names[] = {
    {"symbol_error", "link"},
    {"link_error_recovery", "link"},
    {"link_downed", "link"},
    {"port_rcv_errors", "link"},
    {"local_link_integrity_errors", "link"},
    {"excessive_buffer_overrun_errors", "busy"},
    {"port_xmit_discards", "busy"},
    {NULL, NULL},
};

/* ports/N/hw_counters: mlx5 drivers/infiniband/hw/mlx5/counters.c ("Understanding mlx5 Linux
 * counters"), bnxt_re hw_counters.c, irdma verbs.c, efa efa_verbs.c, rxe sw/rxe/rxe_hw_counters.c.
 * Not rxe's duplicate_request (the echo of what a peer sends again), nor ack_deferred and lifespan,
 * which are no errors. */
static const struct counters_name hw_names[] = {
    {"packet_seq_err", "resent"},
    {"implied_nak_seq_err", "resent"},
    {"local_ack_timeout_err", "resent"},
    {"roce_adp_retrans", "resent"},
    {"roce_adp_retrans_to", "resent"},
    {"roce_slow_restart", "resent"},
    {"out_of_sequence", "missed"},
    {"rx_icrc_encapsulated", "missed"},
    {"rnr_nak_retry_err", "busy"},
    {"out_of_buffer", "busy"},
    {"to_retransmits", "resent"},
    {"seq_err_naks_rcvd", "resent"},
    {"max_retry_exceeded", "resent"},
    {"oos_drop_count", "missed"},
    {"RetransSegs", "resent"},
    {"retrans_pkts", "resent"},
    {"retrans_timeout_events", "resent"},
    {"unresponsive_remote_events", "resent"},
    {"impaired_remote_conn_events", "resent"},
    {"rdma_read_wr_err", "resent"},
    {"rdma_write_wr_err", "resent"},
    {"rx_drops", "busy"},
    {"completer_retry_err", "busy"}, /* rxe's timer: its peer is a processor, which may be late */
    {"rcvd_seq_err", "resent"},
    {"retry_exceeded_err", "resent"},
    {"out_of_seq_request", "missed"},
    {"rcvd_rnr_err", "busy"},
    {"send_rnr_err", "busy"},
    {"retry_rnr_exceeded_err", "busy"},
    {"send_err", "link"},
    {"link_downed", "link"},
    {NULL, NULL},
};

/* /sys/class/cxi/cxiN/device/telemetry: the group CxiErrStats of HPE's counters (Cassini's
 * performance counters guide; Open MPI's and Cray MPICH's lists have the same names). */
static const struct counters_name cxi_names[] = {
    {"pct_spt_timeouts", "resent"},       {"pct_sct_timeouts", "resent"},
    {"pct_retry_srb_requests", "resent"}, {"hni_llr_tx_replay_event", "link"},
    {"hni_llr_rx_replay_event", "link"},  {"hni_pcs_uncorrected_cw", "link"},
    {"pct_no_tct_nacks", "busy"},         {"pct_no_trs_nacks", "busy"},
    {"pct_no_mst_nacks", "busy"},         {NULL, NULL},
};

static const struct counters_name *const all_names[] = {tcp_names, port_names, hw_names, cxi_names};

struct counters {
    const struct shk_host *host;
    json_t *values, *unread;
};

static void counters_set(struct counters *c, const char *scope, const char *name,
                         unsigned long long value)
{
    json_t *of = json_object_get(c->values, scope);

    if (of == NULL && json_object_set_new(c->values, scope, of = json_object()) != 0) {
        return;
    }
    (void)json_object_set_new(of, name, json_integer((json_int_t)value));
}

static void counters_unread(struct counters *c, const char *scope, const char *why)
{
    (void)json_object_set_new(c->unread, scope, shk_json_text(why, strlen(why)));
}

/* Two lines that belong together: "Tcp: A B …" with names, then with values. */
static bool counters_pair(struct counters *c, char *text, const char *table)
{
    char *names = strstr(text, table);
    char *values = names != NULL ? strstr(names + 1, table) : NULL;
    char *name_state = NULL;
    char *value_state = NULL;
    const struct counters_name *want = NULL;
    bool found = false;

    if (values == NULL) {
        return false;
    }
    values[-1] = '\0';
    values[strcspn(values, "\n")] = '\0';
    names = strtok_r(names, " \n", &name_state);
    values = strtok_r(values, " \n", &value_state);
    while (names != NULL && values != NULL) {
        for (want = tcp_names; want->name != NULL; want++) {
            if (strcmp(want->name, names) == 0) {
                counters_set(c, "tcp", want->name, strtoull(values, NULL, 10));
                found = true;
            }
        }
        names = strtok_r(NULL, " \n", &name_state);
        values = strtok_r(NULL, " \n", &value_state);
    }
    return found;
}

/* The process's own view: /proc/net may be another namespace's where /proc was mounted outside. */
static void counters_tcp(struct counters *c)
{
    static const char *const files[][2] = {{"/proc/self/net/snmp", "Tcp:"},
                                           {"/proc/self/net/netstat", "TcpExt:"}};
    struct shk_error err = {{0}};
    size_t i = 0;

    for (i = 0; i < 2; i++) {
        char *text = NULL;

        if (shk_host_read(c->host, files[i][0], &text, NULL, &err) != 0) {
            counters_unread(c, "tcp", err.text[0] != '\0' ? err.text : files[i][0]);
        } else if (!counters_pair(c, text, files[i][1])) {
            counters_unread(c, "tcp", "its counters are not in the kernel's table");
        }
        free(text);
    }
}

static void counters_dev_line(struct counters *c, char *line)
{
    char *colon = strrchr(line, ':');
    char *at = colon != NULL ? colon + 1 : NULL;
    const char *name = line + strspn(line, " ");
    size_t i = 0;

    if (at == NULL) {
        return;
    }
    *colon = '\0';
    for (i = 0; i < DEV_COLUMNS && strcmp(name, "lo") != 0; i++) {
        char *end = at;
        unsigned long long value = strtoull(at, &end, 10);

        if (end == at) {
            counters_unread(c, name, "its line in /proc/self/net/dev has too few columns");
            return;
        }
        if (dev_columns[i].name != NULL) {
            counters_set(c, name, dev_columns[i].name, value);
        }
        at = end;
    }
}

static void counters_dev(struct counters *c)
{
    struct shk_error err = {{0}};
    char *text = NULL;
    char *state = NULL;
    char *line = NULL;

    if (shk_host_read(c->host, "/proc/self/net/dev", &text, NULL, &err) != 0) {
        counters_unread(c, "interfaces",
                        err.text[0] != '\0' ? err.text : "there is no /proc/self/net/dev");
        return;
    }
    for (line = strtok_r(text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
        counters_dev_line(c, line);
    }
    free(text);
}

/* One file per counter: "17", or with Slingshot "17@time". One that is not there is a counter that
 * this hardware lacks. */
static void counters_files(struct counters *c, const char *scope, const char *dir,
                           const struct counters_name *names)
{
    for (; names->name != NULL; names++) {
        struct shk_error err = {{0}};
        char *line = NULL;
        int rc = shk_host_line(c->host, &line, &err, "%s/%s", dir, names->name);
        char *end = line;
        unsigned long long value = rc == 0 ? strtoull(line, &end, 10) : 0;

        if (rc == 0 && end != line && (*end == '\0' || *end == '@')) {
            counters_set(c, scope, names->name, value);
        } else if (rc != -ENOENT) {
            counters_unread(c, scope, rc == 0 ? "a counter is not a number" : err.text);
        }
        free(line);
    }
}

static void counters_port(struct counters *c, const char *device, const char *port)
{
    char scope[96];
    char dir[256];

    snprintf(scope, sizeof(scope), "%.64s/%.16s", device, port);
    snprintf(dir, sizeof(dir), "/sys/class/infiniband/%.64s/ports/%.16s/counters", device, port);
    counters_files(c, scope, dir, port_names);
    snprintf(dir, sizeof(dir), "/sys/class/infiniband/%.64s/ports/%.16s/hw_counters", device, port);
    counters_files(c, scope, dir, hw_names);
}

/* Devices of a class; none is none. NULL. */
static char **counters_list(struct counters *c, const char *dir, const char *scope)
{
    struct shk_error err = {{0}};
    char **names = NULL;
    int rc = shk_host_list(c->host, &names, NULL, &err, "%s", dir);

    if (rc != 0 && rc != -ENOENT) {
        counters_unread(c, scope, err.text);
    }
    return rc == 0 ? names : NULL;
}

static void counters_rdma(struct counters *c)
{
    char **devices = counters_list(c, "/sys/class/infiniband", "RDMA devices");
    size_t i = 0;

    for (i = 0; devices != NULL && devices[i] != NULL; i++) {
        char dir[160];
        char **ports = NULL;
        size_t k = 0;

        snprintf(dir, sizeof(dir), "/sys/class/infiniband/%.64s/ports", devices[i]);
        ports = counters_list(c, dir, devices[i]);
        for (k = 0; ports != NULL && ports[k] != NULL; k++) {
            counters_port(c, devices[i], ports[k]);
        }
        shk_host_list_free(ports);
    }
    shk_host_list_free(devices);
}

static void counters_cxi(struct counters *c)
{
    char **devices = counters_list(c, "/sys/class/cxi", "Slingshot devices");
    size_t i = 0;

    for (i = 0; devices != NULL && devices[i] != NULL; i++) {
        char dir[160];

        snprintf(dir, sizeof(dir), "/sys/class/cxi/%.64s/device/telemetry", devices[i]);
        counters_files(c, devices[i], dir, cxi_names);
        if (json_object_get(c->values, devices[i]) == NULL) {
            counters_unread(c, devices[i], "the driver offers no telemetry");
        }
    }
    shk_host_list_free(devices);
}

json_t *shk_counters_read(const struct shk_host *host)
{
    struct counters c = {.host = host, .values = json_object(), .unread = json_object()};

    if (c.values != NULL && c.unread != NULL) {
        counters_tcp(&c);
        counters_dev(&c);
        counters_rdma(&c);
        counters_cxi(&c);
    }
    return json_pack("{s:o, s:o}", "values", c.values, "unread", c.unread);
}

static const char *counters_kind(const char *name)
{
    size_t i = 0;

    for (i = 0; i < sizeof(all_names) / sizeof(all_names[0]); i++) {
        const struct counters_name *at = all_names[i];

        for (; at->name != NULL; at++) {
            if (strcmp(at->name, name) == 0) {
                return at->kind;
            }
        }
    }
    for (i = 0; i < DEV_COLUMNS; i++) {
        if (dev_columns[i].name != NULL && strcmp(dev_columns[i].name, name) == 0) {
            return dev_columns[i].kind;
        }
    }
    return "busy";
}

static void moved_unread(json_t *unread, const char *scope, const char *why)
{
    (void)json_array_append_new(unread, json_pack("{s:s, s:s}", "scope", scope, "why", why));
}

/* NULL, or why the scope is not known. */
static const char *moved_scope(json_t *moved, const char *scope, json_t *before, json_t *after)
{
    const char *name = NULL;
    json_t *value = NULL;

    json_object_foreach(after, name, value)
    {
        const json_t *was = json_object_get(before, name);
        json_int_t by = json_integer_value(value) - json_integer_value(was);

        if (was == NULL) {
            return "it was not there before";
        }
        if (by < 0) {
            return "a counter went back meanwhile";
        }
        if (by > 0) {
            (void)json_array_append_new(moved,
                                        json_pack("{s:s, s:s, s:s, s:I}", "scope", scope, "counter",
                                                  name, "kind", counters_kind(name), "by", by));
        }
    }
    return json_object_size(before) > json_object_size(after) ? "it was there only before" : NULL;
}

json_t *shk_counters_moved(const json_t *before, const json_t *after)
{
    json_t *was = json_object_get(before, "values");
    json_t *now = json_object_get(after, "values");
    json_t *failed = json_object_get(after, "unread");
    json_t *read = json_array();
    json_t *moved = json_array();
    json_t *unread = json_array();
    const char *scope = NULL;
    json_t *value = NULL;

    json_object_foreach(now, scope, value)
    {
        const char *why = moved_scope(moved, scope, json_object_get(was, scope), value);

        if (json_object_get(failed, scope) != NULL) {
            continue;
        }
        if (why != NULL) {
            moved_unread(unread, scope, why);
        } else {
            (void)json_array_append_new(read, json_string(scope));
        }
    }
    json_object_foreach(failed, scope, value)
    {
        moved_unread(unread, scope, json_string_value(value));
    }
    json_object_foreach(was, scope, value)
    {
        if (json_object_get(now, scope) == NULL && json_object_get(failed, scope) == NULL) {
            moved_unread(unread, scope, "it was there only before");
        }
    }
    return json_pack("{s:o, s:o, s:o}", "read", read, "moved", moved, "unread", unread);
}
