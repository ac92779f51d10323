/* Which devices become rails, and what the ranks' reports become. Agreeing and probing need a
 * network: tests/program/test_fabric_net.py. */
#include "collectives/fabric/fabric_private.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An entry of a library that answers no questions. */
struct entry {
    struct fi_info info;
    struct fi_fabric_attr fabric;
    struct fi_domain_attr domain;
    struct fi_ep_attr ep;
    struct fi_tx_attr tx;
    struct fi_rx_attr rx;
    struct fid_nic nic;
    struct fi_link_attr link;
    struct fi_bus_attr bus;
    bool hints;
};

static int no_info(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info)
{
    (void)version, (void)node, (void)service, (void)flags, (void)hints, (void)info;
    return -FI_ENODATA;
}

static struct fi_info *entry_dup(const struct fi_info *info)
{
    struct entry *copy = calloc(1, sizeof(*copy));

    if (info != NULL) {
        *copy = *(const struct entry *)info;
    }
    copy->hints = info == NULL;
    copy->info.next = NULL;
    copy->info.fabric_attr = &copy->fabric;
    copy->info.domain_attr = &copy->domain;
    copy->info.ep_attr = &copy->ep;
    copy->info.tx_attr = &copy->tx;
    copy->info.rx_attr = &copy->rx;
    return &copy->info;
}

static void entry_free(struct fi_info *info)
{
    struct entry *entry = (struct entry *)info;

    if (entry->hints) {
        free(entry->fabric.prov_name);
        free(entry->fabric.name);
        free(entry->domain.name);
    }
    free(entry);
}

static const struct fabric_lib lib = {
    .api = {.getinfo = no_info, .dupinfo = entry_dup, .freeinfo = entry_free}};

static void entry_make(struct entry *entry, const char *fabric, const char *domain, uint64_t speed)
{
    *entry = (struct entry){.link = {.speed = speed, .state = FI_LINK_UP},
                            .bus = {.bus_type = FI_BUS_PCI, .attr.pci.bus_id = 0x17}};
    entry->fabric.prov_name = "fake";
    entry->fabric.name = (char *)fabric;
    entry->domain.name = (char *)domain;
    entry->info.fabric_attr = &entry->fabric;
    entry->info.domain_attr = &entry->domain;
    entry->info.ep_attr = &entry->ep;
    entry->info.tx_attr = &entry->tx;
    entry->info.rx_attr = &entry->rx;
    if (speed != 0) {
        entry->nic.link_attr = &entry->link;
        entry->nic.bus_attr = &entry->bus;
        entry->info.nic = &entry->nic;
    }
}

struct selection {
    struct entry entries[12];
    unsigned count;
    struct fabric fabric;
    struct fabric_rails_report report;
};

static void offer(struct selection *s, const char *fabric, const char *domain, uint64_t speed)
{
    entry_make(&s->entries[s->count], fabric, domain, speed);
    if (s->count > 0) {
        s->entries[s->count - 1].info.next = &s->entries[s->count].info;
    }
    s->count++;
}

static void choose(struct selection *s, const char *tree, unsigned limit)
{
    struct shk_host *host = NULL;
    struct shk_error err = {{0}};

    if (tree != NULL) {
        cr_assert_eq(shk_host_open(&host, tree, &err), 0, "%s", err.text);
    }
    s->fabric.lib = &lib;
    s->fabric.report = &s->report;
    s->fabric.rail[0].info = entry_dup(&s->entries[0].info);
    cr_assert_eq(fabric_rails_select(&s->fabric, host, &s->entries[0].info, limit, &err), 0, "%s",
                 err.text);
    shk_host_close(host);
}

static void forget(struct selection *s)
{
    unsigned i = 0;

    for (i = 0; i < s->fabric.rails; i++) {
        entry_free(s->fabric.rail[i].info);
    }
}

static const char *reason(const struct selection *s, const char *domain)
{
    uint32_t i = 0;

    for (i = 0; i < s->report.count; i++) {
        if (strcmp(s->report.row[i].domain, domain) == 0) {
            return s->report.row[i].reason;
        }
    }
    return "not told of";
}

static void expect_rails(const struct selection *s, const char *names)
{
    char text[256] = "";
    unsigned i = 0;

    for (i = 0; i < s->fabric.rails; i++) {
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                 s->fabric.rail[i].info->domain_attr->name);
    }
    cr_expect_str_eq(text, names);
}

Test(rails, devices_whose_speed_the_provider_tells)
{
    struct selection s = {.count = 0};

    offer(&s, "cxi", "cxi2", 200000000000U);
    offer(&s, "cxi", "cxi10", 200000000000U);
    offer(&s, "cxi", "cxi1", 200000000000U);
    offer(&s, "cxi", "cxi1", 200000000000U);
    offer(&s, "cxi", "cxi3", 100000000000U);
    offer(&s, "cxi", "cxi4", 200000000000U);
    offer(&s, "cxi", "cxi5", 0);
    offer(&s, "cxi", "cxi6", 200000000000U);
    s.entries[5].link.state = FI_LINK_DOWN;
    s.entries[7].info.caps = FI_TAGGED;
    choose(&s, NULL, SHK_RAILS_MAX);
    expect_rails(&s, "cxi2 cxi1 cxi10");
    cr_expect_str_eq(reason(&s, "cxi1"), "");
    cr_expect_str_eq(reason(&s, "cxi3"), "its speed is 100 Gb/s, that of cxi2 200 Gb/s");
    cr_expect_str_eq(reason(&s, "cxi4"), "its link is down");
    cr_expect_str_eq(reason(&s, "cxi5"), "the speed of cxi5 is not known");
    cr_expect_str_eq(reason(&s, "cxi6"), "not told of", "another kind of entry");
    cr_expect_str_eq(s.report.row[0].pci, "0000:17:00.0");
    cr_expect_eq(s.report.row[0].status, FABRIC_RAIL_USED);
    forget(&s);
}

Test(rails, no_more_than_are_wanted)
{
    struct selection s = {.count = 0};

    offer(&s, "efa", "efa_0", 100000000000U);
    offer(&s, "efa", "efa_1", 100000000000U);
    offer(&s, "efa", "efa_2", 100000000000U);
    choose(&s, NULL, 2);
    expect_rails(&s, "efa_0 efa_1");
    cr_expect_str_eq(reason(&s, "efa_2"), "2 are in use, as many as were asked for");
    forget(&s);

    choose(&s, NULL, 1);
    expect_rails(&s, "efa_0");
    cr_expect_eq(s.report.count, 1, "nothing else is looked at");
    forget(&s);
}

static char root[] = "/tmp/shk-rails-XXXXXX";

static void put_file(const char *text, const char *pathf, ...) SHK_PRINTF(2, 3);

static void put_file(const char *text, const char *pathf, ...)
{
    char path[256];
    size_t len = (size_t)snprintf(path, sizeof(path), "%s/sys/class/net/", root);
    va_list args;
    char *slash = NULL;
    FILE *file = NULL;

    va_start(args, pathf);
    vsnprintf(path + len, sizeof(path) - len, pathf, args);
    va_end(args);
    for (slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void put_interface(const char *name, const char *speed, const char *flags)
{
    put_file(speed, "%s/speed", name);
    put_file(flags, "%s/flags", name);
    put_file("up", "%s/operstate", name);
}

static void remove_tree(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_expect_eq(system(command), 0);
}

/* A /sys with interfaces that the kernel does not tell this process of: names mean others there. */
Test(rails, interfaces_of_another_network_namespace)
{
    struct selection s = {.count = 0};
    char path[64];
    FILE *file = NULL;

    cr_assert_not_null(mkdtemp(root));
    put_interface("hsn0", "200000", "0x1003");
    put_interface("hsn1", "200000", "0x1003");
    put_file("7", "hsn0/ifindex");
    put_file("8", "hsn1/ifindex");
    snprintf(path, sizeof(path), "%s/.shakedown", root);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/.shakedown/hostcalls.json", root);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("{\"ifaddrs\": [{\"name\": \"eth0\", \"flags\": [\"up\"], \"addrs\": [], "
          "\"link\": {\"index\": 2, \"mac\": \"00:00:00:00:00:02\"}}]}",
          file);
    fclose(file);
    offer(&s, "10.0.0.0/8", "hsn0", 0);
    offer(&s, "10.0.0.0/8", "hsn1", 0);
    choose(&s, root, SHK_RAILS_MAX);
    expect_rails(&s, "hsn0");
    cr_expect_str_eq(reason(&s, "hsn1"), "the speed of hsn1 is not known");
    forget(&s);
    remove_tree();
}

Test(rails, interfaces_that_are_none)
{
    static const char *const names[] = {"hsn0", "br0",   "tun0",  "wlan0", "lo",  "hsn1",
                                        "hsn2", "vlan5", "veth7", "eth0",  "hsn3"};
    struct selection s = {.count = 0};
    size_t i = 0;

    cr_assert_not_null(mkdtemp(root));
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put_interface(names[i], "200000", strcmp(names[i], "lo") == 0 ? "0x9" : "0x1003");
        offer(&s, "10.0.0.0/8", names[i], 0);
    }
    put_file("", "hsn0/device/vendor");
    put_file("", "hsn1/device/vendor");
    put_file("", "hsn2/device/vendor");
    put_file("", "hsn3/device/vendor");
    put_file("", "eth0/device/vendor");
    put_file("", "br0/bridge/bridge_id");
    put_file("0x1", "tun0/tun_flags");
    put_file("", "wlan0/wireless/status");
    put_file("down", "hsn1/operstate");
    put_file("", "vlan5/lower_hsn0");
    put_file("1000", "eth0/speed");
    put_file("-1", "hsn2/speed");
    choose(&s, root, SHK_RAILS_MAX);
    expect_rails(&s, "hsn0 hsn3");
    cr_expect_str_eq(reason(&s, "br0"), "a bridge");
    cr_expect_str_eq(reason(&s, "tun0"), "a tunnel");
    cr_expect_str_eq(reason(&s, "wlan0"), "a wireless interface");
    cr_expect_str_eq(reason(&s, "lo"), "not told of");
    cr_expect_str_eq(reason(&s, "hsn1"), "its link is down");
    cr_expect_str_eq(reason(&s, "hsn2"), "the speed of hsn2 is not known");
    cr_expect_str_eq(reason(&s, "vlan5"), "shares its link with hsn0");
    cr_expect_str_eq(reason(&s, "veth7"), "a virtual interface, hsn0 is none");
    cr_expect_str_eq(reason(&s, "eth0"), "its speed is 1 Gb/s, that of hsn0 200 Gb/s");
    forget(&s);
    remove_tree();
}

Test(rails, what_is_not_a_file_name_is_not_looked_for)
{
    struct selection s = {.count = 0};

    cr_assert_not_null(mkdtemp(root));
    put_interface("hsn0", "200000", "0x1003");
    put_interface("hsn1", "200000", "0x1003");
    offer(&s, "a", "hsn0", 0);
    offer(&s, "a", "../net/hsn1", 0);
    choose(&s, root, SHK_RAILS_MAX);
    expect_rails(&s, "hsn0");
    forget(&s);
    remove_tree();
}

/* Reports of ranks as facts. */

static struct fabric_rail_report *tell(struct shk_job *job, unsigned rank, const char *domain,
                                       enum fabric_rail_status status)
{
    struct fabric_result *result = shk_job_result(job, rank);
    struct fabric_rail_report *row = &result->rails.row[result->rails.count++];

    snprintf(row->domain, sizeof(row->domain), "%s", domain);
    snprintf(row->fabric, sizeof(row->fabric), "ib");
    row->status = status;
    return row;
}

static json_t *rows_of(struct shk_job *job)
{
    static struct shk_crew_rank ranks[4];
    const struct shk_crew_result result = {.ranks = ranks};
    unsigned rank = 0;

    for (rank = 0; rank < 4; rank++) {
        ranks[rank].id = rank;
        snprintf(ranks[rank].host, sizeof(ranks[rank].host), "n%u", rank);
    }
    return fabric_rails_json(job, &result);
}

static void expect_row(const json_t *rows, size_t i, const char *expected)
{
    char *text = json_dumps(json_array_get(rows, i), JSON_COMPACT | JSON_SORT_KEYS);

    cr_expect_str_eq(text, expected);
    free(text);
}

Test(rails, facts_name_the_slowest_rank)
{
    struct shk_job *job = NULL;
    json_t *rows = NULL;
    unsigned rank = 0;

    cr_assert_eq(shk_job_create(&job, 4, sizeof(struct fabric_result), NULL), 0);
    for (rank = 0; rank < 4; rank++) {
        tell(job, rank, "mlx5_0", FABRIC_RAIL_USED)->bandwidth = 20;
        tell(job, rank, "mlx5_1", FABRIC_RAIL_USED)->bandwidth = rank == 2 ? 9 : 20;
    }
    rows = rows_of(job);
    cr_expect_eq(json_array_size(rows), 2);
    expect_row(rows, 1,
               "{\"bandwidth\":9.0,\"domain\":\"mlx5_1\",\"fabric\":\"ib\",\"host\":\"n2\",\"pci\":"
               "null,\"rank\":2,\"reason\":null,\"status\":\"used\"}");
    json_decref(rows);
    shk_job_destroy(job);
}

/* Ranks 0 and 2 are the neighbours of rank 1: all three see that it fails, and it fails twice. */
Test(rails, facts_name_the_host_that_all_failures_have_in_common)
{
    static const uint32_t sides[] = {1, 3, 2, 0};
    struct shk_job *job = NULL;
    json_t *rows = NULL;
    unsigned rank = 0;

    cr_assert_eq(shk_job_create(&job, 4, sizeof(struct fabric_result), NULL), 0);
    for (rank = 0; rank < 4; rank++) {
        struct fabric_rail_report *row = tell(job, rank, "mlx5_1", FABRIC_RAIL_DEAD);

        row->sides = sides[rank];
        row->witness = sides[rank] != 0;
        snprintf(row->reason, sizeof(row->reason), "as rank %u sees it", rank);
    }
    rows = rows_of(job);
    cr_expect_eq(json_array_size(rows), 1);
    expect_row(
        rows, 0,
        "{\"blame\":[{\"host\":\"n0\",\"tokens\":2},{\"host\":\"n1\",\"tokens\":4},{\"host\":"
        "\"n2\",\"tokens\":2}],\"domain\":\"mlx5_1\",\"fabric\":\"ib\",\"host\":\"n0\",\"pci\":"
        "null,\"rank\":0,\"reason\":\"as rank 0 sees it\",\"status\":\"dead\"}");
    json_decref(rows);
    shk_job_destroy(job);
}

Test(rails, facts_name_the_rank_that_has_none_and_distrust_what_a_rank_left)
{
    struct shk_job *job = NULL;
    struct fabric_rail_report *row = NULL;
    json_t *rows = NULL;

    cr_assert_eq(shk_job_create(&job, 4, sizeof(struct fabric_result), NULL), 0);
    row = tell(job, 0, "mlx5_3", FABRIC_RAIL_MISSING);
    row->witness = 1;
    row->blamed = 3 + 1;
    memset(tell(job, 1, "torn", FABRIC_RAIL_USED)->domain, 'x', 64);
    tell(job, 2, "nonsense", (enum fabric_rail_status)77);
    ((struct fabric_result *)shk_job_result(job, 3))->rails.count = UINT32_MAX;
    rows = rows_of(job);
    cr_expect_eq(json_array_size(rows), 1);
    expect_row(
        rows, 0,
        "{\"blame\":[{\"host\":\"n3\",\"tokens\":1}],\"domain\":\"mlx5_3\",\"fabric\":\"ib\","
        "\"host\":\"n0\",\"pci\":null,\"rank\":0,\"reason\":null,\"status\":\"missing\"}");
    json_decref(rows);
    shk_job_destroy(job);
}

/* A device that injects little unasked. */
static struct {
    struct entry device;
    size_t most;
    unsigned asked;
} little;

static int little_info(uint32_t version, const char *node, const char *service, uint64_t flags,
                       const struct fi_info *hints, struct fi_info **info)
{
    size_t want = hints->tx_attr->inject_size;

    (void)version, (void)node, (void)service, (void)flags;
    little.asked++;
    if (want > little.most) {
        return -FI_ENODATA;
    }
    *info = entry_dup(&little.device.info);
    (*info)->tx_attr->inject_size = want != 0 ? want : little.device.tx.inject_size;
    (*info)->tx_attr->op_flags = hints->tx_attr->op_flags;
    return 0;
}

static size_t lazy_inject(size_t offered, size_t most)
{
    static const struct fabric_lib asked = {
        .api = {.getinfo = little_info, .dupinfo = entry_dup, .freeinfo = entry_free}};
    struct fi_info *lazy = NULL;
    size_t inject = 0;

    entry_make(&little.device, "net", "r0", 0);
    little.device.tx.inject_size = offered;
    little.most = most;
    little.asked = 0;
    lazy = fabric_lazy(&asked, &little.device.info);
    cr_assert_not_null(lazy);
    cr_expect_eq(lazy->tx_attr->op_flags, FI_INJECT_COMPLETE);
    inject = lazy->tx_attr->inject_size;
    entry_free(lazy);
    return inject;
}

Test(rails, asks_for_room_to_inject_where_little_is_offered)
{
    cr_expect_eq(lazy_inject(64, 4096), 128);
    cr_expect_eq(lazy_inject(64, 64), 64, "none: as offered");
    cr_expect_eq(little.asked, 2);
    cr_expect_eq(lazy_inject(4096, 4096), 4096, "asking would make it less");
    cr_expect_eq(little.asked, 1);
}
