#include "collectives/launch/counters.h"
#include "collectives/launch/flows.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

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
}

static json_t *look(void)
{
    struct shk_error err = {{0}};
    struct shk_host *host = NULL;
    json_t *counters = NULL;

    cr_assert_eq(shk_host_open(&host, root, &err), 0, "%s", err.text);
    counters = shk_counters_read(host);
    shk_host_close(host);
    cr_assert_not_null(counters);
    return counters;
}

static json_t *moved_between(json_t *before, json_t *after)
{
    json_t *moved = shk_counters_moved(before, after);

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
           "[{\"scope\": \"rxe0/1\", \"counter\": \"completer_retry_err\", \"kind\": \"busy\", "
           "\"by\": 4}, {\"scope\": \"rxe0/1\", \"counter\": \"rcvd_seq_err\", \"kind\": "
           "\"resent\", \"by\": 4}, {\"scope\": \"rxe0/1\", \"counter\": \"out_of_seq_request\", "
           "\"kind\": \"missed\", \"by\": 4}, {\"scope\": \"rxe0/1\", \"counter\": "
           "\"link_downed\", \"kind\": \"link\", \"by\": 4}]");
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
    expect(moved, "read", "[\"tcp\", \"eth0\", \"mlx5_0/1\", \"cxi0\"]");
    expect(
        moved, "moved",
        "[{\"scope\": \"tcp\", \"counter\": \"RetransSegs\", \"kind\": \"resent\", \"by\": 30},"
        "{\"scope\": \"mlx5_0/1\", \"counter\": \"symbol_error\", \"kind\": \"link\", \"by\": 2},"
        "{\"scope\": \"cxi0\", \"counter\": \"pct_spt_timeouts\", \"kind\": \"resent\", \"by\": "
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
    json_t *moved = moved_between(before, look());

    expect(moved, "moved", "[]");
    expect(moved, "read", "[]");
    expect(moved, "unread",
           "[{\"scope\": \"eth0\", \"why\": \"a counter went back meanwhile\"},"
           "{\"scope\": \"mlx5_1/1\", \"why\": \"it was not there before\"},"
           "{\"scope\": \"tcp\", \"why\": \"its counters are not in the kernel's table\"},"
           "{\"scope\": \"mlx5_0/1\", \"why\": \"a counter is not a number\"},"
           "{\"scope\": \"cxi0\", \"why\": \"the driver offers no telemetry\"}]");
    json_decref(moved);
}

Test(counters, no_proc)
{
    json_t *before = look();
    json_t *moved = moved_between(before, look());

    cr_assert_eq(json_array_size(json_object_get(moved, "unread")), 2);
    expect(moved, "read", "[]");
    json_decref(moved);
}

/* An address of this host that is not its loopback: 0 when there is none. */
static in_addr_t own_address(void)
{
    struct ifaddrs *list = NULL;
    in_addr_t found = 0;

    cr_assert_eq(getifaddrs(&list), 0);
    for (struct ifaddrs *at = list; at && !found; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET && !(at->ifa_flags & IFF_LOOPBACK))
            found = ((struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(list);
    return found;
}

/* A connection from one address of this host to another. */
static void connect_self(in_addr_t to, int fds[3])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = to};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.2")};
    socklen_t len = sizeof address;
    char buf[4096] = "";

    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(fds[0], (struct sockaddr *)&address, len), 0);
    cr_assert_eq(listen(fds[0], 1), 0);
    cr_assert_eq(getsockname(fds[0], (struct sockaddr *)&address, &len), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(fds[1], (struct sockaddr *)&from, sizeof from), 0);
    cr_assert_eq(connect(fds[1], (struct sockaddr *)&address, len), 0);
    fds[2] = accept(fds[0], NULL, NULL);
    cr_assert_geq(fds[2], 0);
    cr_assert_eq(send(fds[1], buf, sizeof buf, 0), (ssize_t)sizeof buf);
    cr_assert_eq(recv(fds[2], buf, sizeof buf, MSG_WAITALL), (ssize_t)sizeof buf);
}

/* What this process sent is seen under the addresses of the connection, what others send is not. */
Test(counters, flows)
{
    static struct shk_flows flows;
    in_addr_t own = own_address();
    int fds[3];

    if (!own)
        cr_skip_test("no address but the loopback's");
    shk_flows_read(&flows, 0);
    if (flows.state == SHK_FLOWS_FAILED)
        cr_skip_test("%s", flows.why);
    cr_assert_eq(flows.count, 0);
    connect_self(own, fds);
    shk_flows_read(&flows, 0);
    cr_assert_eq(flows.state, SHK_FLOWS_READ, "%s", flows.why);
    cr_assert_eq(flows.count, 1);
    cr_assert_str_eq(flows.row[0].from, "127.0.0.2");
    cr_assert_str_eq(flows.row[0].to, inet_ntoa((struct in_addr){own}));
    cr_assert_geq(flows.row[0].sent, 1);
    cr_assert_eq(flows.row[0].again + flows.row[0].unsent + flows.row[0].stuck, 0);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

Test(counters, flows_of_nobody)
{
    static struct shk_flows flows, kept;

    shk_flows_read(&flows, 4194305); /* more than any process id */
    cr_assert_eq(flows.state, SHK_FLOWS_NONE);
    shk_flows_keep(&kept, &flows);
    json_t *doc = shk_flows_json(&kept);
    expect(doc, "read", "false");
    expect(doc, "rows", "[]");
    json_decref(doc);
}

/* What a connection counted is not lost when it is closed: the fuller picture stays. */
Test(counters, flows_keep)
{
    static struct shk_flows kept, full = {.state = SHK_FLOWS_READ, .count = 1, .sent = 50},
                                  failed = {.state = SHK_FLOWS_FAILED, .why = "gone"},
                                  empty = {.state = SHK_FLOWS_READ};

    shk_flows_keep(&kept, &failed);
    cr_assert_eq(kept.state, SHK_FLOWS_FAILED);
    shk_flows_keep(&kept, &full);
    shk_flows_keep(&kept, &failed);
    shk_flows_keep(&kept, &empty);
    cr_assert_eq(kept.state, SHK_FLOWS_READ);
    cr_assert_eq(kept.sent, 50);
}
