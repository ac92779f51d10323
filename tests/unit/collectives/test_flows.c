#include "collectives/counters/flows.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(flows, .timeout = 300);

static void expect(json_t *doc, const char *member, const char *want)
{
    json_t *wanted = json_loads(want, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(json_object_get(doc, member), JSON_SORT_KEYS | JSON_COMPACT);

    cr_assert_not_null(wanted, "%s", want);
    cr_assert(json_equal(json_object_get(doc, member), wanted), "%s: %s", member, text);
    free(text);
    json_decref(wanted);
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
Test(flows, own)
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

Test(flows, of_nobody)
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
Test(flows, keep)
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
