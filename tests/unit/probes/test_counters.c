#include "core/job/moved.h"
#include "libs_support.h"
#include "probes/counters/counters.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static json_t *read_counters(const struct shk_host *host)
{
    return shk_counters_read_end(shk_counters_read_begin(host));
}

static void begin(void)
{
    strcpy(root, "/tmp/shk-counters-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(counters, .init = begin, .fini = end, .timeout = 300);

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file = NULL;

    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    file = fopen(full, "w");
    cr_assert_not_null(file, "%s", full);
    fputs(text, file);
    fclose(file);
}

static void drop(const char *path)
{
    char full[256];

    snprintf(full, sizeof full, "%s%s", root, path);
    cr_assert_eq(unlink(full), 0);
}

#define HCA "/sys/class/infiniband/mlx5_0/ports/1/"

static void put_node(int resent, int dev_errors, int symbol, const char *cxi)
{
    char text[512];

    snprintf(text, sizeof text,
             "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens RetransSegs InErrs\nTcp: 200 7 %d 0\n",
             resent);
    put("/proc/self/net/snmp", text);
    put("/proc/self/net/netstat", "TcpExt: TCPTimeouts TCPDSACKRecv\nTcpExt: 3 9\n");
    snprintf(text, sizeof text,
             "Inter-|   Receive\n face |bytes\n"
             "    lo: 1 2 99 0 0 0 0 0 1 2 99 0 0 0 0 0\n"
             "  eth0: 10 20 %d 77 0 0 0 0 10 20 0 0 0 0 4 0\n",
             dev_errors);
    put("/proc/self/net/dev", text);
    snprintf(text, sizeof text, "%d\n", symbol);
    put(HCA "counters/symbol_error", text);
    put(HCA "counters/port_xmit_wait", "123\n");
    put(HCA "hw_counters/packet_seq_err", "5\n");
    put("/sys/class/cxi/cxi0/device/telemetry/pct_spt_timeouts", cxi);
    put("/dev/kmsg", "6,10,1000,-;nothing of interest\n");
}

static json_t *look(void)
{
    struct shk_error err = {{0}};
    struct shk_host *host = NULL;
    json_t *counters = NULL;

    cr_assert_eq(shk_host_open(&host, root, &err), 0, "%s", err.text);
    counters = read_counters(host);
    shk_host_close(host);
    cr_assert_not_null(counters);
    return counters;
}

static json_t *moved_between(json_t *before, json_t *after)
{
    json_t *moved = shk_moved(before, after);

    cr_assert_not_null(moved);
    json_decref(before);
    json_decref(after);
    return moved;
}

static void expect(json_t *doc, const char *member, const char *want)
{
    json_t *wanted = json_loads(want, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(json_object_get(doc, member), JSON_SORT_KEYS | JSON_COMPACT);

    cr_assert_not_null(wanted, "%s", want);
    cr_assert(json_equal(json_object_get(doc, member), wanted), "%s: %s", member, text);
    free(text);
    json_decref(wanted);
}

/* Software RoCE (rdma_rxe): what its own timers count is load, what arrives out of order is loss.
 */
Test(counters, software_roce)
{
    static const char *const names[] = {"completer_retry_err", "out_of_seq_request", "rcvd_seq_err",
                                        "duplicate_request",   "sent_pkts",          "link_downed"};
    char path[160];
    json_t *before = NULL;

    put_node(0, 0, 0, "0\n");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            snprintf(path, sizeof path, "/sys/class/infiniband/rxe0/ports/1/hw_counters/%s",
                     names[i]);
            put(path, round ? "7\n" : "3\n");
        }
        before = round ? before : look();
    }
    json_t *moved = moved_between(before, look());
    expect(moved, "unread", "[]");
    expect(moved, "moved",
           "[{\"scope\": \"rxe0/1\", \"class\": \"network\", \"counter\": \"completer_retry_err\", "
           "\"kind\": \"busy\", "
           "\"by\": 4}, {\"scope\": \"rxe0/1\", \"class\": \"network\", \"counter\": "
           "\"rcvd_seq_err\", \"kind\": "
           "\"resent\", \"by\": 4}, {\"scope\": \"rxe0/1\", \"class\": \"network\", \"counter\": "
           "\"out_of_seq_request\", "
           "\"kind\": \"missed\", \"by\": 4}, {\"scope\": \"rxe0/1\", \"class\": \"network\", "
           "\"counter\": "
           "\"link_downed\", \"kind\": \"down\", \"by\": 4}]");
    json_decref(moved);
}

/* Old totals say nothing; what moved does, with the kind that tells who counted it. */
Test(counters, what_moved)
{
    put_node(100, 1, 40, "6@1700000000.1\n");
    json_t *before = look();
    put_node(130, 1, 42, "8@1700000009.1\n");
    json_t *moved = moved_between(before, look());

    expect(moved, "unread", "[]");
    expect(moved, "read", "[\"tcp\", \"eth0\", \"mlx5_0/1\", \"cxi0\", \"kernel log\"]");
    expect(moved, "moved",
           "[{\"scope\": \"tcp\", \"class\": \"network\", \"counter\": \"RetransSegs\", \"kind\": "
           "\"resent\", \"by\": 30},"
           "{\"scope\": \"mlx5_0/1\", \"class\": \"network\", \"counter\": \"symbol_error\", "
           "\"kind\": \"link\", \"by\": 2},"
           "{\"scope\": \"cxi0\", \"class\": \"network\", \"counter\": \"pct_spt_timeouts\", "
           "\"kind\": \"resent\", \"by\": "
           "2}]");
    json_decref(moved);
}

Test(counters, nothing_moved)
{
    put_node(100, 1, 40, "6\n");
    json_t *before = look();
    json_t *moved = moved_between(before, look());

    expect(moved, "moved", "[]");
    expect(moved, "unread", "[]");
    json_decref(moved);
}

/* Not read is not zero: neither what is no number, nor what went back, nor what came or went. */
Test(counters, unread)
{
    put_node(100, 1, 40, "6\n");
    json_t *before = look();
    put_node(100, 0, 40, "6\n");
    put(HCA "counters/symbol_error", "N/A\n");
    put("/sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error", "0\n");
    put("/proc/self/net/snmp", "Ip: Forwarding\nIp: 1\n");
    drop("/sys/class/cxi/cxi0/device/telemetry/pct_spt_timeouts");
    drop("/dev/kmsg");
    json_t *moved = moved_between(before, look());

    expect(moved, "moved", "[]");
    expect(moved, "read", "[]");
    expect(moved, "unread",
           "[{\"scope\": \"eth0\", \"why\": \"a counter went back meanwhile\"},"
           "{\"scope\": \"mlx5_1/1\", \"why\": \"it was not there before\"},"
           "{\"scope\": \"tcp\", \"why\": \"its counters are not in the kernel's table\"},"
           "{\"scope\": \"mlx5_0/1\", \"why\": \"a counter is not a number\"},"
           "{\"scope\": \"cxi0\", \"why\": \"the driver offers no telemetry\"},"
           "{\"scope\": \"kernel log\", \"why\": \"/dev/kmsg: No such file or directory\"}]");
    json_decref(moved);
}

Test(counters, no_proc)
{
    json_t *before = look();
    json_t *moved = moved_between(before, look());

    cr_assert_eq(json_array_size(json_object_get(moved, "unread")), 3);
    expect(moved, "read", "[]");
    json_decref(moved);
}

/* Every kind of hardware: what moves is told with its device, its class and its kind. */
static const struct {
    const char *path, *before, *after, *moved;
} faults[] = {
    {"/sys/class/infiniband/bnxt_re0/ports/1/hw_counters/to_retransmits", "3\n", "9\n",
     "bnxt_re0/1 network to_retransmits resent 6"},
    {"/sys/class/infiniband/irdma0/ports/1/hw_counters/tcpRetransSegs", "0\n", "2\n",
     "irdma0/1 network tcpRetransSegs resent 2"},
    {"/sys/class/infiniband/rdmap0/ports/1/hw_counters/retrans_pkts", "0\n", "5\n",
     "rdmap0/1 network retrans_pkts resent 5"},
    {"/sys/class/infiniband/rdmap1/hw_counters/rx_drops", "0\n", "5\n",
     "rdmap1 network rx_drops busy 5"},
    {HCA "hw_counters/rnr_nak_retry_err", "0\n", "4\n",
     "mlx5_0/1 network rnr_nak_retry_err busy 4"},
    {HCA "hw_counters/np_ecn_marked_roce_packets", "0\n", "4\n",
     "mlx5_0/1 network np_ecn_marked_roce_packets busy 4"},
    {HCA "counters/link_downed", "1\n", "2\n", "mlx5_0/1 network link_downed down 1"},
    {HCA "counters/port_xmit_discards", "1\n", "2\n", "mlx5_0/1 network port_xmit_discards busy 1"},
    {"/sys/class/cxi/cxi0/device/telemetry/hni_llr_tx_replay_event", "1@5.1\n", "2@9.1\n",
     "cxi0 network hni_llr_tx_replay_event link 1"},
    {"/sys/bus/pci/devices/0000:9b:00.0/aer_dev_correctable", "BadTLP 3\nTOTAL_ERR_COR 3\n",
     "BadTLP 15\nTOTAL_ERR_COR 15\n", "PCIe of 0000:9b:00.0 (mlx5_3) pci BadTLP replay 12"},
    {"/sys/bus/pci/devices/0000:9b:00.0/aer_dev_nonfatal", "CmpltTO 0\nUnsupReq 1\n",
     "CmpltTO 1\nUnsupReq 9\n", "PCIe of 0000:9b:00.0 (mlx5_3) pci nonfatal CmpltTO uncorrected 1"},
    {"/sys/devices/system/edac/mc/mc1/ue_count", "0\n", "1\n", "mc1 memory ue_count uncorrected 1"},
    {"/sys/devices/system/edac/mc/mc1/ce_count", "7\n", "8\n", "mc1 memory ce_count corrected 1"},
    {"/sys/bus/pci/devices/0000:03:00.0/pcie_replay_count", "7\n", "8\n",
     "0000:03:00.0 gpu pcie_replay_count replay 1"},
    {"/sys/bus/pci/devices/0000:03:00.0/ras/umc_err_count", "ue: 0\nce: 1\nde: 0\n",
     "ue: 2\nce: 1\nde: 0\n", "0000:03:00.0 gpu RAS umc ue uncorrected 2"},
    {"/sys/bus/pci/devices/0000:03:00.0/ras/xgmi_wafl_err_count", "ue: 0\nce: 1\n",
     "ue: 0\nce: 4\n", "0000:03:00.0 gpu RAS xgmi_wafl ce link-replay 3"},
    {"/dev/kmsg", "6,10,1000,-;NVRM: Xid (PCI:0000:41:00): 79, old\n",
     "6,10,1000,-;NVRM: Xid (PCI:0000:41:00): 79, old\n"
     "4,11,2000,-;NVRM: Xid (PCI:0000:C1:00): 63, pid=9, Row Remapper\n SUBSYSTEM=pci\n"
     "4,12,2000,-;NVRM: Xid (PCI:0000:C1:00): 63, pid=9, Row Remapper\n",
     "0000:c1:00.0 gpu Xid 63 event 2"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n"
     "4,11,2000,-;nvidia-nvswitch3: SXid (PCI:0000:0b:00.0): 12028, Non-fatal, Link 32\n",
     "0000:0b:00.0 gpu SXid 12028 event 1"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n"
     "4,11,2000,-;nvidia-nvswitch3: SXid (PCI:0000:0b:00.0): 20034, Fatal, Link 30\n",
     "0000:0b:00.0 gpu SXid 20034 fatal-event 1"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n"
     "4,12,2000,-;NVRM: Xid (PCI:0000:41:00): 145, RLW_REMAP Fatal XC0\n",
     "0000:41:00.0 gpu Xid 145 fatal-event 1"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n"
     "4,11,2000,-;NVRM: Xid (PCI:0000:41:00): 31, pid=9, Fatal access\n",
     "0000:41:00.0 gpu Xid 31 event 1"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n4,11,2000,-;mlx5_core 0000:9b:00.0 ens3: Link down\n",
     "0000:9b:00.0 network link down event 1"},
    {"/dev/kmsg", "6,10,1000,-;nothing\n",
     "6,10,1000,-;nothing\n4,11,2000,-;amdgpu 0000:03:00.0: amdgpu: 2 uncorrectable hardware "
     "errors detected in umc block\n",
     "0000:03:00.0 gpu uncorrectable RAS error event 1"},
};

static void put_hardware(void)
{
    put_node(0, 0, 0, "0\n");
    put("/sys/bus/pci/devices/0000:9b:00.0/infiniband/mlx5_3/fw_ver", "1\n");
    put("/sys/bus/pci/devices/0000:9b:00.0/aer_dev_correctable", "BadTLP 0\nTOTAL_ERR_COR 0\n");
    put("/sys/bus/pci/drivers/amdgpu/0000:03:00.0", "");
    put("/sys/bus/pci/drivers/amdgpu/new_id", "");
}

Test(counters, each_kind)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char seen[256] = "";

        end();
        begin();
        put_hardware();
        put(faults[i].path, faults[i].before);
        json_t *before = look();
        put(faults[i].path, faults[i].after);
        json_t *moved = moved_between(before, look());
        json_t *row = json_array_get(json_object_get(moved, "moved"), 0);
        snprintf(seen, sizeof seen, "%s %s %s %s %lld",
                 json_string_value(json_object_get(row, "scope")),
                 json_string_value(json_object_get(row, "class")),
                 json_string_value(json_object_get(row, "counter")),
                 json_string_value(json_object_get(row, "kind")),
                 json_integer_value(json_object_get(row, "by")));
        cr_expect_str_eq(seen, faults[i].moved, "%s: %s", faults[i].path, seen);
        cr_expect_eq(json_array_size(json_object_get(moved, "moved")), 1, "%s", faults[i].path);
        expect(moved, "unread", "[]");
        json_decref(moved);
    }
}

/* What cannot be read is unread, of each class. */
Test(counters, each_unread)
{
    static const struct {
        const char *path, *text, *scope;
    } odd[] = {
        {"/sys/bus/pci/devices/0000:9b:00.0/aer_dev_fatal", "what\n",
         "PCIe of 0000:9b:00.0 (mlx5_3)"},
        {"/sys/devices/system/edac/mc/mc1/ue_count", "N/A\n", "mc1"},
        {"/sys/bus/pci/devices/0000:03:00.0/ras/umc_err_count", "what\n", "0000:03:00.0"},
        {"/sys/bus/pci/devices/0000:03:00.0/pcie_replay_count", "what\n", "0000:03:00.0"},
    };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        end();
        begin();
        put_hardware();
        put(odd[i].path, odd[i].text);
        json_t *before = look();
        json_t *moved = moved_between(before, look());
        json_t *row = json_array_get(json_object_get(moved, "unread"), 0);
        const char *scope = json_string_value(json_object_get(row, "scope"));
        cr_expect_str_eq(scope ? scope : "none", odd[i].scope, "%s", odd[i].path);
        json_decref(moved);
    }
}

/* Of this machine's own interfaces, as its sysfs has them. A bridge's carrier is nobody's link. */
Test(counters, carrier)
{
    struct shk_error err = {{0}};
    struct shk_host *host = NULL;
    cr_assert_eq(shk_host_open(&host, NULL, &err), 0, "%s", err.text);
    json_t *counters = read_counters(host), *of;
    json_t *values = json_object_get(counters, "values");
    const char *name;
    shk_host_close(host);
    json_object_foreach(values, name, of)
    {
        const json_t *down = json_object_get(of, "carrier_down");
        char path[128];
        long long same = -1;
        if (!down)
            continue;
        snprintf(path, sizeof path, "/sys/class/net/%s/carrier_down_count", name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%lld", &same) == 1)
            cr_expect_eq(json_integer_value(down), same, "%s", name);
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "/sys/class/net/%s/bridge", name);
        cr_expect(access(path, F_OK) != 0, "%s is a bridge", name);
    }
    cr_assert_null(json_object_get(json_object_get(values, "lo"), "carrier_down"));
    json_decref(counters);
}

/* The network's part and the rest: each has its own. */
Test(counters, parts)
{
    put_hardware();
    json_t *before = look();
    put("/sys/bus/pci/devices/0000:9b:00.0/aer_dev_correctable", "BadTLP 9\nTOTAL_ERR_COR 9\n");
    json_t *moved = moved_between(before, look());
    json_t *network = shk_moved_part(moved, true), *others = shk_moved_part(moved, false);

    cr_assert(shk_moved_quiet(network));
    cr_assert_not(shk_moved_quiet(others));
    expect(network, "moved", "[]");
    cr_assert_eq(json_array_size(json_object_get(others, "moved")), 1);
    cr_assert_eq(json_array_size(json_object_get(network, "read")) +
                     json_array_size(json_object_get(others, "read")),
                 json_array_size(json_object_get(moved, "read")));
    json_decref(network);
    json_decref(others);
    json_decref(moved);
}

/* On this host, with the stand-in for NVML: its faults move the counters of GPU 2. */
static json_t *look_live(const char *fault)
{
    struct shk_host *host = NULL;

    setenv("SHAKEDOWN_NVML", FAKES "/nvml/libnvidia-ml.so.1", 1);
    setenv("NVML_FAULT", fault, 1);
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    json_t *counters = read_counters(host);
    shk_host_close(host);
    return counters;
}

/* "counter kind by" of the GPUs that moved; "" when none did. */
static void gpu_moved(const json_t *moved, char *buf, size_t size)
{
    json_t *row;
    size_t i;

    *buf = '\0';
    json_array_foreach(json_object_get(moved, "moved"), i, row)
    {
        size_t used = strlen(buf);
        if (strcmp(json_string_value(json_object_get(row, "class")), "gpu") == 0 && used < size)
            snprintf(buf + used, size - used, "%s%s %s %lld", used ? "; " : "",
                     json_string_value(json_object_get(row, "counter")),
                     json_string_value(json_object_get(row, "kind")),
                     json_integer_value(json_object_get(row, "by")));
    }
}

Test(counters, nvml)
{
    static const struct {
        const char *fault, *moved;
    } nvml[] = {
        {"", ""},
        {"replays", "PCIe replays replay 12"},
        {"dram-errors", "ECC errors uncorrected uncorrected 3"},
        {"link-errors", "NVLink 4 recoveries link-replay 12"},
        {"slowed-hw", "HW thermal slowdown slowed 6499999500"},
        {"slowed-sw", "SW thermal slowdown slowed 6499999500"},
        {"slowed-brake", "power brake slowdown slowed 6499999500"},
        {"smoothed", ""}, /* where newer drivers have the time, a setting of another kind */
        {"power-limit", ""},
    };
    enum { CASES = sizeof nvml / sizeof *nvml };

    for (size_t k = 0; k < 2 * CASES; k++) {
        char seen[512];
        size_t i = k % CASES;
        if (k >= CASES)
            setenv("NVML_NUMBERS", "later", 1);
        json_t *before = look_live("");
        json_t *moved = moved_between(before, look_live(nvml[i].fault));
        gpu_moved(moved, seen, sizeof seen);
        cr_expect_str_eq(seen, nvml[i].moved, "%s: %s", nvml[i].fault, seen);
        json_decref(moved);
    }
}

static size_t unread_gpus(const json_t *moved)
{
    json_t *row;
    size_t i, count = 0;

    json_array_foreach(json_object_get(moved, "unread"), i, row)
    {
        const char *scope = json_string_value(json_object_get(row, "scope"));
        const json_t *class = json_object_get(json_object_get(moved, "classes"), scope);
        count += class && strcmp(json_string_value(class), "gpu") == 0;
    }
    return count;
}

/* What NVML refuses is unread; what no GPU offers is not there, and is no complaint. */
Test(counters, nvml_unread)
{
    static const struct {
        const char *fault;
        size_t unread;
    } nvml[] = {{"unread", 1}, {"lost-later", 1}, {"links-unread", 1}, {"not-offered", 0}};

    for (size_t i = 0; i < sizeof nvml / sizeof *nvml; i++) {
        json_t *before = look_live(nvml[i].fault);
        json_t *moved = moved_between(before, look_live(nvml[i].fault));
        cr_expect_eq(unread_gpus(moved), nvml[i].unread, "%s: %zu", nvml[i].fault,
                     unread_gpus(moved));
        json_decref(moved);
    }
}

Test(counters, nvml_crash)
{
    setenv("SHAKEDOWN_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    struct shk_host *host = NULL;
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    json_t *before = read_counters(host);
    json_t *moved = moved_between(before, read_counters(host));
    shk_host_close(host);
    cr_assert_eq(unread_gpus(moved), 1);
    json_decref(moved);
}
