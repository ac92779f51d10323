/* TCP and interfaces of this network namespace. */
#include "core/host/hostcall.h"
#include "probes/counters/counters_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
enum { DEV_COLUMNS = sizeof dev_columns / sizeof *dev_columns };

/* Two lines that belong together: "Tcp: A B …" with names, then with values. */
static bool tcp_pair(struct counters *c, char *text, const char *table)
{
    char *names = strstr(text, table);
    char *values = names ? strstr(names + 1, table) : NULL;
    char *name_state = NULL, *value_state = NULL;
    bool found = false;
    if (!values)
        return false;
    values[-1] = '\0';
    values[strcspn(values, "\n")] = '\0';
    names = strtok_r(names, " \n", &name_state);
    values = strtok_r(values, " \n", &value_state);
    while (names && values) {
        for (const struct counters_name *want = tcp_names; want->name; want++)
            if (strcmp(want->name, names) == 0) {
                counters_set(c, "tcp", want->name, want->kind, strtoull(values, NULL, 10));
                found = true;
            }
        names = strtok_r(NULL, " \n", &name_state);
        values = strtok_r(NULL, " \n", &value_state);
    }
    return found;
}

/* The process's own view: /proc/net may be another namespace's where /proc was mounted outside. */
void counters_tcp(struct counters *c)
{
    static const char *const files[][2] = {{"/proc/self/net/snmp", "Tcp:"},
                                           {"/proc/self/net/netstat", "TcpExt:"}};
    counters_begin(c, "tcp", "network");
    for (size_t i = 0; i < 2; i++) {
        struct shk_error err = {""};
        char *text = NULL;
        if (shk_host_read(c->host, files[i][0], &text, NULL, &err) != 0)
            counters_unread(c, "tcp", *err.text ? err.text : files[i][0]);
        else if (!tcp_pair(c, text, files[i][1]))
            counters_unread(c, "tcp", "its counters are not in the kernel's table");
        free(text);
    }
}

static void dev_line(struct counters *c, char *line)
{
    char *colon = strrchr(line, ':');
    char *at = colon ? colon + 1 : NULL;
    const char *name = line + strspn(line, " ");
    if (!at)
        return;
    *colon = '\0';
    if (strcmp(name, "lo") == 0)
        return;
    counters_begin(c, name, "network");
    for (size_t i = 0; i < DEV_COLUMNS; i++) {
        char *end = at;
        unsigned long long value = strtoull(at, &end, 10);
        if (end == at) {
            counters_unread(c, name, "its line in /proc/self/net/dev has too few columns");
            return;
        }
        if (dev_columns[i].name)
            counters_set(c, name, dev_columns[i].name, dev_columns[i].kind, value);
        at = end;
    }
}

void counters_dev(struct counters *c)
{
    struct shk_error err = {""};
    char *text = NULL, *state = NULL;
    if (shk_host_read(c->host, "/proc/self/net/dev", &text, NULL, &err) != 0) {
        counters_begin(c, "interfaces", "network");
        counters_unread(c, "interfaces", *err.text ? err.text : "there is no /proc/self/net/dev");
        return;
    }
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
        dev_line(c, line);
    free(text);
}

/* Bridges, tunnels and their like lose their carrier whenever the last of those behind them goes,
 * as with each container that ends. */
static bool links_of_its_own(const json_t *link)
{
    const char *kind = json_string_value(json_object_get(link, "kind"));
    return !kind || strcmp(kind, "veth") == 0;
}

void counters_links(struct counters *c)
{
    struct shk_error err = {""};
    json_t *answers = NULL, *answer;
    size_t i;
    if (!shk_host_is_live(c->host))
        return;
    if (shk_hostcall(c->host, SHK_CALL_IFADDRS, &answers, &err) != 0) {
        counters_begin(c, "interfaces", "network");
        counters_unread(c, "interfaces", err.text);
    }
    json_array_foreach(answers, i, answer)
    {
        const char *name = json_string_value(json_object_get(answer, "name"));
        const json_t *link = json_object_get(answer, "link");
        const json_t *down = json_object_get(link, "carrier_down");
        if (!name || strcmp(name, "lo") == 0 || !json_is_integer(down) || !links_of_its_own(link))
            continue;
        counters_begin(c, name, "network");
        counters_set(c, name, "carrier_down", "down", (unsigned long long)json_integer_value(down));
    }
    json_decref(answers);
}
