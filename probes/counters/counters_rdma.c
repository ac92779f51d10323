/* RDMA ports (InfiniBand, RoCE, iWARP, EFA) and Slingshot. */
#include "probes/counters/counters_private.h"

#include <stdio.h>

/* ports/N/counters: InfiniBand Architecture Specification 1.4, 16.1.3.5 (PortCounters); names as in
 * drivers/infiniband/core/sysfs.c. Not port_rcv_remote_physical_errors and port_xmit_wait: the
 * first is an error elsewhere, the second is back-pressure. */
static const struct counters_name port_names[] = {
    {"symbol_error", "link"},
    {"link_error_recovery", "link"},
    {"link_downed", "down"},
    {"port_rcv_errors", "link"},
    {"local_link_integrity_errors", "link"},
    {"port_rcv_switch_relay_errors", "missed"},
    {"port_rcv_constraint_errors", "missed"},
    {"port_xmit_constraint_errors", "missed"},
    {"excessive_buffer_overrun_errors", "busy"},
    {"port_xmit_discards", "busy"},
    {"VL15_dropped", "busy"},
    {NULL, NULL},
};

/* ports/N/hw_counters. Not rxe's duplicate_request (the echo of what a peer sends again), nor
 * ack_deferred and lifespan, which are no errors; not the errors of requests (req_*, resp_*_err of
 * the wrong key or length): programs make those. */
static const struct counters_name hw_names[] = {
    /* drivers/infiniband/hw/mlx5/counters.c; NVIDIA "Understanding mlx5 Linux Counters" */
    {"packet_seq_err", "resent"},
    {"implied_nak_seq_err", "resent"},
    {"local_ack_timeout_err", "resent"},
    {"roce_adp_retrans", "resent"},
    {"roce_adp_retrans_to", "resent"},
    {"roce_slow_restart", "resent"},
    {"roce_slow_restart_trans", "resent"},
    {"out_of_sequence", "missed"},
    {"rx_icrc_encapsulated", "missed"},
    {"rnr_nak_retry_err", "busy"},
    {"out_of_buffer", "busy"},
    {"rp_cnp_handled", "busy"},
    {"rp_cnp_ignored", "busy"},
    {"np_cnp_sent", "busy"},
    {"np_ecn_marked_roce_packets", "busy"},
    {"roce_slow_restart_cnps", "busy"},
    /* drivers/infiniband/hw/bnxt_re/hw_counters.c */
    {"to_retransmits", "resent"},
    {"seq_err_naks_rcvd", "resent"},
    {"max_retry_exceeded", "resent"},
    {"missing_resp", "resent"},
    {"oos_drop_count", "missed"},
    {"rx_roce_errors", "missed"},
    {"rx_roce_error_pkts", "missed"},
    {"tx_roce_errors", "link"},
    {"tx_roce_error_pkts", "link"},
    {"rx_roce_discards", "busy"},
    {"tx_roce_discards", "busy"},
    {"rx_roce_discard_pkts", "busy"},
    {"tx_roce_discard_pkts", "busy"},
    {"rnr_naks_rcvd", "busy"},
    {"local_qp_op_err", "missed"},
    {"res_tx_pci_err", "uncorrected"},
    {"res_rx_pci_err", "uncorrected"},
    {"unrecoverable_err", "uncorrected"},
    {"rx_ecn_marked_pkts", "busy"},
    {"rx_cnp_pkts", "busy"},
    {"tx_cnp_pkts", "busy"},
    /* drivers/infiniband/hw/irdma/verbs.c */
    {"tcpRetransSegs", "resent"},
    {"RetransSegs", "resent"},
    {"tcpInProtoErrors", "missed"},
    {"ip4InDiscards", "busy"},
    {"ip6InDiscards", "busy"},
    {"cnpHandled", "busy"},
    {"cnpIgnored", "busy"},
    {"cnpSent", "busy"},
    {"RxECNMrkd", "busy"},
    /* drivers/infiniband/hw/efa/efa_verbs.c */
    {"retrans_pkts", "resent"},
    {"retrans_timeout_events", "resent"},
    {"unresponsive_remote_events", "resent"},
    {"impaired_remote_conn_events", "resent"},
    {"rdma_read_wr_err", "resent"},
    {"rdma_write_wr_err", "resent"},
    {"rx_drops", "busy"},
    /* drivers/infiniband/hw/ionic (AMD Pensando) */
    {"tx_rdma_retx_pkts", "resent"},
    {"tx_rdma_ack_timeout", "resent"},
    {"req_rx_pkt_seq_err", "resent"},
    {"req_tx_retry_excd_err", "resent"},
    {"resp_rx_outouf_seq", "missed"},
    {"req_rx_rnr_retry_err", "busy"},
    {"rx_rdma_ecn_pkts", "busy"},
    {"rx_rdma_cnp_pkts", "busy"},
    {"tx_rdma_cnp_pkts", "busy"},
    /* drivers/infiniband/sw/rxe/rxe_hw_counters.c; its timer's peer is a processor, which may be
     * late */
    {"completer_retry_err", "busy"},
    {"rcvd_seq_err", "resent"},
    {"retry_exceeded_err", "resent"},
    {"out_of_seq_request", "missed"},
    {"rcvd_rnr_err", "busy"},
    {"send_rnr_err", "busy"},
    {"retry_rnr_exceeded_err", "busy"},
    {"send_err", "link"},
    {"link_downed", "down"},
    {NULL, NULL},
};

/* /sys/class/cxi/cxiN/device/telemetry: the group CxiErrStats of HPE's counters (Cassini
 * performance counters guide; Open MPI's and Cray MPICH's lists have the same names), and pauses
 * and corrected code words, which are load and as expected. */
static const struct counters_name cxi_names[] = {
    {"pct_spt_timeouts", "resent"},       {"pct_sct_timeouts", "resent"},
    {"pct_retry_srb_requests", "resent"}, {"pct_trs_rsp_nack_drops", "resent"},
    {"hni_llr_tx_replay_event", "link"},  {"hni_llr_rx_replay_event", "link"},
    {"hni_pcs_uncorrected_cw", "link"},   {"pct_no_tct_nacks", "busy"},
    {"pct_no_trs_nacks", "busy"},         {"pct_no_mst_nacks", "busy"},
    {"hni_pause_sent", "busy"},           {"hni_rx_paused_0", "busy"},
    {"hni_rx_paused_1", "busy"},          {"hni_tx_paused_0", "busy"},
    {"hni_tx_paused_1", "busy"},          {NULL, NULL},
};

static void rdma_port(struct counters *c, const char *device, const char *port)
{
    char scope[96], dir[256];
    snprintf(scope, sizeof scope, "%.64s/%.16s", device, port);
    counters_begin(c, scope, "network");
    snprintf(dir, sizeof dir, "/sys/class/infiniband/%.64s/ports/%.16s/counters", device, port);
    counters_files(c, scope, dir, port_names);
    snprintf(dir, sizeof dir, "/sys/class/infiniband/%.64s/ports/%.16s/hw_counters", device, port);
    counters_files(c, scope, dir, hw_names);
}

void counters_rdma(struct counters *c)
{
    char **devices = counters_list(c, "/sys/class/infiniband", "RDMA devices", "network");
    for (size_t i = 0; devices && devices[i]; i++) {
        char dir[160];
        snprintf(dir, sizeof dir, "/sys/class/infiniband/%.64s/ports", devices[i]);
        char **ports = counters_list(c, dir, devices[i], "network");
        for (size_t k = 0; ports && ports[k]; k++)
            rdma_port(c, devices[i], ports[k]);
        shk_host_list_free(ports);
        /* EFA: of the device, not of a port, before Linux 5.15 */
        snprintf(dir, sizeof dir, "/sys/class/infiniband/%.64s/hw_counters", devices[i]);
        if (shk_host_exists(c->host, "%s", dir)) {
            counters_begin(c, devices[i], "network");
            counters_files(c, devices[i], dir, hw_names);
        }
    }
    shk_host_list_free(devices);
}

void counters_cxi(struct counters *c)
{
    char **devices = counters_list(c, "/sys/class/cxi", "Slingshot devices", "network");
    for (size_t i = 0; devices && devices[i]; i++) {
        char dir[160];
        snprintf(dir, sizeof dir, "/sys/class/cxi/%.64s/device/telemetry", devices[i]);
        counters_begin(c, devices[i], "network");
        counters_files(c, devices[i], dir, cxi_names);
        if (!json_object_get(c->values, devices[i]))
            counters_unread(c, devices[i], "the driver offers no telemetry");
    }
    shk_host_list_free(devices);
}
