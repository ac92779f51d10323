#include "collectives/fabric/fabric_private.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[64];
static struct shk_host *host;

static void put(const char *path, const char *text)
{
    char full[512];
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
    cr_assert_eq(chmod(full, 0666), 0);
}

static void drop(const char *path)
{
    char full[512];

    snprintf(full, sizeof full, "%s%s", root, path);
    cr_assert_eq(unlink(full), 0);
}

#define RXE  "/sys/class/infiniband/rxe0/ports/1/"
#define GID0 "fe80:0000:0000:0000:5054:00ff:fe12:3401"
#define GID1 "0000:0000:0000:0000:0000:ffff:0a00:0001"
#define NONE "0000:0000:0000:0000:0000:0000:0000:0000"

/* Software RoCE as the kernel of a virtual machine shows it. */
static void begin(void)
{
    strcpy(root, "/tmp/shk-verbs-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    put(RXE "state", "4: ACTIVE\n");
    put(RXE "link_layer", "Ethernet\n");
    put(RXE "gids/0", GID0 "\n");
    put(RXE "gids/1", GID1 "\n");
    put(RXE "gids/2", NONE "\n");
    put(RXE "gid_attrs/types/0", "RoCE v2\n");
    put(RXE "gid_attrs/types/1", "RoCE v2\n");
    put(RXE "gid_attrs/ndevs/0", "shk-none0\n");
    put("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
    put("/dev/infiniband/uverbs0", "");
    put("/dev/infiniband/rdma_cm", "");
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
    unsetenv("FI_PROVIDER");
    unsetenv("FI_UNIVERSE_SIZE");
    unsetenv("FI_VERBS_GID_IDX");
    fabric_log_clear();
}

static void end(void)
{
    char command[96];

    shk_host_close(host);
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(verbs, .init = begin, .fini = end, .timeout = 60);

static struct fabric_queues plan(size_t most, unsigned ranks)
{
    struct fabric_queues queues = {.most = most};

    fabric_queues_plan(&queues, ranks);
    cr_expect_eq(queues.usual, 262144);
    return queues;
}

Test(verbs, queues_are_made_smaller_only_where_the_device_is_smaller)
{
    struct fabric_queues queues = plan(4194303, 512); /* mlx5 */

    cr_expect_eq(queues.universe, 0);
    queues = plan(32767, 2);
    cr_expect_eq(queues.universe, 2);
    cr_expect_eq(queues.msg, 0);
    queues = plan(32767, 127);
    cr_expect_eq(queues.msg, 0);
    queues = plan(32767, 200);
    cr_expect_eq(queues.universe, 200);
    cr_expect_eq(queues.msg, 64);
    cr_expect_leq(200 * 2 * (size_t)queues.msg, queues.most);
    queues = plan(1000, 1000);
    cr_expect_eq(queues.msg, FABRIC_MSG_QUEUE_MIN);
}

Test(verbs, who_takes_verbs)
{
    cr_expect(fabric_wants_verbs(NULL, true));
    cr_expect_not(fabric_wants_verbs(NULL, false));
    cr_expect(fabric_wants_verbs("verbs;ofi_rxm", false));
    cr_expect_not(fabric_wants_verbs("tcp", true));
    cr_expect_not(fabric_wants_verbs("^verbs", true));
    cr_expect(fabric_wants_verbs("^tcp", true));
    setenv("FI_PROVIDER", "cxi", 1);
    cr_expect_not(fabric_wants_verbs(NULL, true));
    cr_expect(fabric_wants_verbs("verbs", true));
}

static const char *const fake[] = {SHK_BUILD_DIR "/tests/fakes/rxe/libibverbs.so.1", NULL};
static const char *const none[] = {"/nonexistent/libibverbs.so.1", NULL};

Test(verbs, queues_are_set_from_what_the_device_says)
{
    struct fabric_queues queues;
    char text[320];

    cr_expect(fabric_queues_fit(host, fake, NULL, 3, &queues));
    cr_expect_str_eq(getenv("FI_UNIVERSE_SIZE"), "3");
    cr_expect_str_eq(queues.device, "rxe0");
    cr_expect_eq(queues.most, 32767);
    fabric_queues_text(&queues, text, sizeof text);
    cr_expect_not_null(strstr(text, "262144 entries, rxe0 takes 32767"), "%s", text);
    cr_expect_not_null(strstr(text, "FI_UNIVERSE_SIZE=3,"), "%s", text);
}

Test(verbs, what_is_set_already_stays)
{
    struct fabric_queues queues;

    setenv("FI_UNIVERSE_SIZE", "1024", 1);
    cr_expect_not(fabric_queues_fit(host, fake, NULL, 3, &queues));
    cr_expect_str_eq(getenv("FI_UNIVERSE_SIZE"), "1024");
    cr_expect_eq(queues.most, 32767); /* for the cause */
}

Test(verbs, limits_that_cannot_be_read_give_the_smallest_universe)
{
    struct fabric_queues queues;

    cr_expect(fabric_queues_fit(host, none, NULL, 3, &queues));
    cr_expect_eq(queues.most, 0);
    cr_expect_str_eq(getenv("FI_UNIVERSE_SIZE"), "3");
}

Test(verbs, other_providers_and_hosts_without_devices_are_left_alone)
{
    struct fabric_queues queues;
    struct shk_host *bare = NULL;

    cr_expect_not(fabric_queues_fit(host, fake, "tcp", 3, &queues));
    cr_assert_eq(shk_host_open(&bare, "/dev/shm", NULL), 0);
    cr_expect_not(fabric_queues_fit(bare, fake, NULL, 3, &queues));
    cr_expect_null(getenv("FI_UNIVERSE_SIZE"));
    shk_host_close(bare);
}

static struct fi_domain_attr domain = {.name = "rxe0"};
static struct fi_link_attr link_attr = {.mtu = 1024};
static struct fid_nic nic = {.link_attr = &link_attr};
static struct fi_info info = {.domain_attr = &domain, .nic = &nic};

static char *port(uint32_t format, const void *addr, size_t len)
{
    info.addr_format = format;
    json_t *row = fabric_port(host, &info, addr, len);
    char *text = row ? json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(row);
    return text;
}

static void expect_port(uint32_t format, const void *addr, size_t len, const char *want)
{
    char *text = port(format, addr, len);

    cr_expect_str_eq(text ? text : "", want);
    free(text);
}

Test(verbs, the_port_and_the_address_of_an_endpoint)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    unsigned char ud[40] = {0};
    static const char by_ip[] =
        "{\"device\":\"rxe0\",\"gid\":\"::ffff:10.0.0.1\",\"index\":1,\"link_layer\":\"Ethernet\","
        "\"mtu\":1024,\"port\":1,\"type\":\"RoCE v2\"}";

    cr_assert_eq(inet_pton(AF_INET, "10.0.0.1", &in.sin_addr), 1);
    expect_port(FI_SOCKADDR_IN, &in, sizeof in, by_ip);
    cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", ud), 1);
    domain.name = "rxe0-dgram";
    expect_port(FI_ADDR_IB_UD, ud, sizeof ud, by_ip);
    /* an address that the table does not have: no index */
    ud[15] = 9;
    expect_port(FI_ADDR_IB_UD, ud, sizeof ud,
                "{\"address\":\"::ffff:10.0.0.9\",\"device\":\"rxe0\",\"link_layer\":\"Ethernet\","
                "\"mtu\":1024,\"port\":1}");
    /* of version 1 and 2 with the same address, 2 */
    put(RXE "gids/2", GID1 "\n");
    put(RXE "gid_attrs/types/1", "IB/RoCE v1\n");
    put(RXE "gid_attrs/types/2", "RoCE v2\n");
    domain.name = "rxe0";
    char *text = port(FI_SOCKADDR_IN, &in, sizeof in);
    cr_expect_not_null(strstr(text, "\"index\":2"), "%s", text);
    free(text);
    expect_port(FI_ADDR_STR, "x", 1, "");
    domain.name = "eth0";
    expect_port(FI_SOCKADDR_IN, &in, sizeof in, "");
    domain.name = "rxe0";
}

Test(verbs, datagrams_go_from_the_ipv4_address)
{
    fabric_gid_choose(host, "verbs;ofi_rxm");
    cr_expect_null(getenv("FI_VERBS_GID_IDX"));
    fabric_gid_choose(host, "verbs;ofi_rxd");
    cr_expect_str_eq(getenv("FI_VERBS_GID_IDX"), "1");
    /* two devices that do not have it at the same place: libfabric's own choice */
    unsetenv("FI_VERBS_GID_IDX");
    put("/sys/class/infiniband/rxe1/ports/1/link_layer", "Ethernet\n");
    put("/sys/class/infiniband/rxe1/ports/1/gids/3", GID1 "\n");
    put("/sys/class/infiniband/rxe1/ports/1/gid_attrs/types/3", "RoCE v2\n");
    fabric_gid_choose(host, "verbs;ofi_rxd");
    cr_expect_null(getenv("FI_VERBS_GID_IDX"));
    /* InfiniBand has one address */
    put("/sys/class/infiniband/rxe1/ports/1/gids/1", GID1 "\n");
    put("/sys/class/infiniband/rxe1/ports/1/gid_attrs/types/1", "RoCE v2\n");
    put("/sys/class/infiniband/rxe1/ports/1/link_layer", "InfiniBand\n");
    fabric_gid_choose(host, "verbs;ofi_rxd");
    cr_expect_null(getenv("FI_VERBS_GID_IDX"));
}

static void expect_refusal(struct fabric_refusal refusal, const char *cause, const char *want)
{
    char text[320];
    const char *got = fabric_refusal(host, &refusal, text, sizeof text);

    cr_expect_str_eq(got ? got : "", cause, "%s (%s)", got ? got : "", text);
    cr_expect_not_null(strstr(text, want), "\"%s\" lacks \"%s\"", text, want);
}

#define GETINFO                                                                                    \
    (struct fabric_refusal)                                                                        \
    {                                                                                              \
        .step = FABRIC_STEP_OFFER, .errnum = ENODATA, .provider = "verbs;ofi_rxm"                  \
    }

static void meta(const char *mode)
{
    char text[160];

    snprintf(text, sizeof text,
             "{\"ids\": {\"euid\": 1000, \"egid\": 1000, \"groups\": [1000]}, \"nodes\": "
             "{\"/dev/infiniband/uverbs0\": "
             "{\"mode\": \"%s\", \"uid\": 0, \"gid\": 0}}}",
             mode);
    put("/.shakedown/hostcalls.json", text);
    shk_host_close(host);
    cr_assert_eq(shk_host_open(&host, root, NULL), 0);
}

Test(verbs, why_no_device_can_be_used)
{
    char text[160];

    cr_expect_null(fabric_verbs_blocked(host, text, sizeof text));
    expect_refusal(GETINFO, "", "");
    drop("/dev/infiniband/rdma_cm");
    expect_refusal(GETINFO, "verbs-no-cm", "/dev/infiniband/rdma_cm does not exist");
    put("/dev/infiniband/rdma_cm", "");
    put(RXE "gids/0", NONE "\n");
    put(RXE "gids/1", NONE "\n");
    expect_refusal(GETINFO, "verbs-no-gid", "rxe0 has no address (GID)");
    put(RXE "state", "1: DOWN\n");
    expect_refusal(GETINFO, "verbs-port-down", "rxe0 has no active port: its interface shk-none0");
    drop("/dev/infiniband/uverbs0");
    expect_refusal(GETINFO, "verbs-no-node", "/dev/infiniband/uverbs0 of rxe0 is not there");
    /* a second one that works: it is something else */
    put("/sys/class/infiniband/rxe1/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/rxe1/ports/1/gids/0", GID0 "\n");
    cr_expect_null(fabric_verbs_blocked(host, text, sizeof text));
    /* another provider has other reasons */
    struct fabric_refusal tcp = GETINFO;
    tcp.provider = "tcp";
    expect_refusal(tcp, "", "");
}

Test(verbs, a_device_that_others_own)
{
    meta("020600");
    expect_refusal(GETINFO, "verbs-permission",
                   "no permission to open /dev/infiniband/uverbs0 of rxe0 (mode 0600, owner 0");
    meta("020666");
    expect_refusal(GETINFO, "", "");
}

Test(verbs, no_device_and_a_port_that_cannot_be_read)
{
    struct shk_host *mine = host;

    cr_assert_eq(shk_host_open(&host, "/dev/shm", NULL), 0);
    expect_refusal(GETINFO, "verbs-no-device", "the kernel has no RDMA device");
    shk_host_close(host);
    host = mine;
    put("/sys/class/infiniband/odd0/node_type", "1: CA\n"); /* no ports: nothing is said of it */
    drop("/dev/infiniband/uverbs0");
    expect_refusal(GETINFO, "", "");
}

static struct fabric_refusal opened(enum fabric_step step, int errnum)
{
    static struct fabric_queues queues = {.most = 32767, .device = "rxe0"};

    return (struct fabric_refusal){
        .step = step, .errnum = errnum, .domain = "rxe0", .pinned = 1 << 20, .queues = &queues};
}

Test(verbs, what_libfabric_logs_is_a_cause)
{
    expect_refusal(opened(FABRIC_STEP_OTHER, EINVAL), "", "");
    fabric_log_add("verbs", "vrb_cq_open", "Unable to create verbs CQ\n");
    expect_refusal(opened(FABRIC_STEP_OTHER, EINVAL), "verbs-cq",
                   "a completion queue for 1024 processes with 256 operations each has 262144 "
                   "entries, rxe0 takes 32767");
    setenv("FI_UNIVERSE_SIZE", "4", 1);
    expect_refusal(opened(FABRIC_STEP_OTHER, EINVAL), "verbs-cq",
                   "the device refuses a completion queue (libfabric: verbs vrb_cq_open: Unable to "
                   "create verbs CQ)");
    fabric_log_clear();
    fabric_log_add("verbs", "vrb_ep_enable", "rdma_create_qp: Cannot allocate memory(12)");
    expect_refusal(opened(FABRIC_STEP_OTHER, ENOMEM), "verbs-qp", "a queue pair");
    fabric_log_clear();
    fabric_log_add("verbs", "vrb_get_rai_id", "rdma_resolve_addr: Invalid argument (22)");
    expect_refusal(opened(FABRIC_STEP_OTHER, ENODATA), "verbs-no-gid",
                   "shk-none0 of rxe0 has no IP address");
    drop(RXE "gid_attrs/ndevs/0"); /* not known which interface */
    expect_refusal(opened(FABRIC_STEP_OTHER, ENODATA), "verbs-address", "rdma_resolve_addr");
    fabric_log_clear();
    fabric_log_add("ofi_rxm", "f", "something else");
    expect_refusal(opened(FABRIC_STEP_OTHER, EFAULT), "", "libfabric: ofi_rxm f: something");
    expect_refusal(opened(FABRIC_STEP_REGISTER, EFAULT), "verbs-mr", "something else");
}

Test(verbs, the_limit_of_locked_memory)
{
    struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    fabric_log_add("verbs", "vrb_cq_open", "Unable to create verbs CQ");
    cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    cr_assert_eq(syscall(SYS_capset, &header, data), 0); /* no capability at all */
    expect_refusal(opened(FABRIC_STEP_OTHER, ENOMEM), "verbs-memlock",
                   "1048576 B must be pinned, but the locked memory limit is 65536 B");
    expect_refusal(opened(FABRIC_STEP_REGISTER, ENOMEM), "verbs-memlock", "");
    expect_refusal(opened(FABRIC_STEP_OTHER, EINVAL), "verbs-cq", "entries");
}
