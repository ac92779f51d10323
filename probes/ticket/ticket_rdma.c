/* RDMA devices: ibstat, ibstatus, ibv_devinfo, rdma link, show_gids. They are written when the list
 * is whole: a device that is not in it does not exist. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rdma {
    json_t *devices, *device, *port;
    bool open; /* a device or port was begun and its last field has not come */
};

static const char key[] = "rdma.devices";

static json_t *find(json_t *list, const char *member, json_t *value)
{
    json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (json_equal(json_object_get(entry, member), value)) {
            json_decref(value);
            return entry;
        }
    }
    entry = json_object();
    json_object_set_new(entry, member, value);
    json_array_append_new(list, entry);
    return entry;
}

static void device(struct rdma *r, const char *name, size_t len)
{
    r->device = find(r->devices, "name", ticket_text(name, len));
    r->port = NULL;
    r->open = true;
}

static void port(struct rdma *r, long number)
{
    if (!r->device)
        return;
    json_t *ports = json_object_get(r->device, "ports");
    if (!ports) {
        json_object_set_new(r->device, "ports", json_array());
        ports = json_object_get(r->device, "ports");
    }
    r->port = find(ports, "port", json_integer(number));
    r->open = true;
}

static void set_text(json_t *object, const char *name, const char *text, size_t len)
{
    if (object && !json_object_get(object, name))
        json_object_set_new(object, name, ticket_text(text, len));
}

/* "Active", "PORT_ACTIVE (4)", "4: ACTIVE", "ACTIVE": as the kernel writes it. */
static void set_state(struct rdma *r, const char *value)
{
    static const struct {
        const char *text, *state;
    } states[] = {{"active", "ACTIVE"},
                  {"down", "DOWN"},
                  {"init", "INIT"},
                  {"armed", "ARMED"},
                  {"defer", "ACTIVE_DEFER"}};
    const char *p = ticket_after(value, "PORT_");
    p = p                                                      ? p
        : isdigit((unsigned char)*value) && strchr(value, ':') ? ticket_skip(strchr(value, ':') + 1)
                                                               : value;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strncasecmp(p, states[i].text, strlen(states[i].text)) == 0)
            set_text(r->port, "state", states[i].state, strlen(states[i].state));
}

static void set_phys(struct rdma *r, const char *value)
{
    static const struct {
        const char *text, *state;
    } states[] = {{"LINK_UP", "LinkUp"},
                  {"LinkUp", "LinkUp"},
                  {"POLLING", "Polling"},
                  {"Polling", "Polling"},
                  {"DISABLED", "Disabled"},
                  {"Disabled", "Disabled"},
                  {"SLEEP", "Sleep"},
                  {"Sleep", "Sleep"},
                  {"LINK_ERROR_RECOVERY", "LinkErrorRecovery"}};
    const char *p = isdigit((unsigned char)*value) && strchr(value, ':')
                        ? ticket_skip(strchr(value, ':') + 1)
                        : value;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (ticket_after(p, states[i].text))
            set_text(r->port, "phys_state", states[i].state, strlen(states[i].state));
}

static void set_rate(struct rdma *r, const char *value)
{
    char *end;
    double rate = strtod(value, &end);
    if (r->port && end != value && rate >= 0 && rate < 1e5 && !json_object_get(r->port, "rate"))
        json_object_set_new(r->port, "rate", json_real(rate));
}

/* Behind a port's last field: all of it was pasted. */
static void set_layer(struct rdma *r, const char *value)
{
    set_text(r->port, "link_layer", value, strcspn(value, " "));
    r->open = false;
}

/* "CA 'mlx5_0'", "hca_id:	mlx5_0", "Infiniband device 'mlx5_0' port 1 status:" */
static bool header(struct rdma *r, const char *line)
{
    const char *p = ticket_after(line, "CA '");
    p = p ? p : ticket_after(line, "Infiniband device '");
    if (p) {
        size_t len = strcspn(p, "'");
        const char *number = strstr(p, "' port ");
        if (!p[len] || !len || len > 63)
            return false;
        device(r, p, len);
        if (number)
            port(r, strtol(number + 7, NULL, 10));
        return true;
    }
    p = ticket_after(line, "hca_id:");
    if (!p || !*ticket_skip(p))
        return false;
    p = ticket_skip(p);
    device(r, p, strcspn(p, " \t"));
    return true;
}

/* "	Port 1:", "		port:	1" */
static bool port_header(struct rdma *r, const char *line)
{
    const char *p = ticket_skip(line), *number = ticket_after(p, "Port ");
    if (number && isdigit((unsigned char)*number) && strchr(number, ':')) {
        port(r, strtol(number, NULL, 10));
        return true;
    }
    number = ticket_after(p, "port:");
    if (!number || p == line || !isdigit((unsigned char)*ticket_skip(number)))
        return false;
    port(r, strtol(number, NULL, 10));
    return true;
}

static void list_line(struct rdma *r, const char *line)
{
    const char *v;
    if (header(r, line) || port_header(r, line))
        return;
    if ((v = ticket_value(line, "Firmware version")) || (v = ticket_value(line, "fw_ver")))
        set_text(r->device, "fw", v, strlen(v));
    else if ((v = ticket_value(line, "State")) || (v = ticket_value(line, "state")))
        set_state(r, v);
    else if ((v = ticket_value(line, "Physical state")) || (v = ticket_value(line, "phys state")))
        set_phys(r, v);
    else if ((v = ticket_value(line, "Rate")) || (v = ticket_value(line, "rate")))
        set_rate(r, v);
    else if ((v = ticket_value(line, "Link layer")) || (v = ticket_value(line, "link_layer")))
        set_layer(r, v);
}

/* Adds to the devices that other outputs told of. */
static void put_ports(struct ticket_out *out, json_t *to, const json_t *from)
{
    json_t *mine = json_object_get(to, "ports"), *one, *value;
    const char *name;
    size_t i;
    if (!mine) {
        ticket_member(out, to, "ports", json_array());
        mine = json_object_get(to, "ports");
    }
    json_array_foreach(json_object_get(from, "ports"), i, one)
    {
        json_t *number = json_object_get(one, "port");
        if (!number || !mine)
            continue;
        json_t *entry = find(mine, "port", json_incref(number));
        json_object_foreach(one, name, value) if (!json_object_get(entry, name))
            json_object_set(entry, name, value);
    }
}

static void put_all(struct ticket_out *out, const struct rdma *r)
{
    json_t *one, *value;
    const char *name;
    size_t i;
    long long mlx5 = 0;
    json_array_foreach(r->devices, i, one)
    {
        json_t *entry = ticket_device(out, key, "name", json_incref(json_object_get(one, "name")));
        if (!entry)
            return;
        json_object_foreach(one, name,
                            value) if (strcmp(name, "ports") != 0 && strcmp(name, "name") != 0)
            ticket_member(out, entry, name, json_incref(value));
        put_ports(out, entry, one);
        const char *text = json_string_value(json_object_get(one, "name"));
        mlx5 += text && ticket_after(text, "mlx5_") != NULL;
    }
    if (mlx5)
        ticket_put_int(out, "pci.count.mlx5", mlx5, NULL);
}

/* An argument that names devices: `ibstat mlx5_0`, `ibv_devinfo -d mlx5_0`, `rdma link show a/1`.
 */
static bool names_devices(const char *command)
{
    const char *p = command ? strpbrk(command, " ") : NULL;
    for (; p && *p; p = strchr(p, ' ')) {
        p = ticket_skip(p);
        if (*p == '|' || *p == ';' || *p == '>' || *p == '2')
            return false;
        if (ticket_after(p, "-d") ||
            (isalpha((unsigned char)*p) && strpbrk(p, "0123456789") && !ticket_after(p, "ib")))
            return true;
    }
    return false;
}

static void finish(struct ticket_out *out, struct rdma *r, const struct ticket_block *block)
{
    bool any = json_array_size(r->devices) > 0;
    if (any && (block->part || r->open || names_devices(block->command)))
        out->note = r->open ? "the output is cut, left out" : "not all devices, left out";
    else if (any)
        put_all(out, r);
    json_decref(r->devices);
}

static bool list_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "CA '") || ticket_after(lines[0], "hca_id:") ||
           (ticket_after(lines[0], "Infiniband device '") && strstr(lines[0], "status:"));
}

static void list_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct rdma r = {.devices = json_array()};
    for (size_t i = 0; i < block->count; i++)
        list_line(&r, block->lines[i]);
    finish(out, &r, block);
}

const struct ticket_reader ticket_reader_ibstat = {.name = "ibstat",
                                                   .commands = "ibstat|ibstatus|ibv_devinfo",
                                                   .starts = list_starts,
                                                   .read = list_read};

/* "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0" */
static bool link_line(const char *line, char name[64], long *port_p)
{
    const char *p = ticket_after(line, "link "), *slash = p ? strchr(p, '/') : NULL;
    if (!slash || !strstr(p, " state ") || slash - p > 63 || slash == p ||
        !isdigit((unsigned char)slash[1]))
        return false;
    snprintf(name, 64, "%.*s", (int)(slash - p), p);
    *port_p = strtol(slash + 1, NULL, 10);
    return true;
}

static bool link_starts(char *const *lines, size_t left)
{
    char name[64];
    long number;
    (void)left;
    return link_line(lines[0], name, &number);
}

static void link_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct rdma r = {.devices = json_array()};
    char name[64];
    long number;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i], *p;
        if (!link_line(line, name, &number))
            continue;
        device(&r, name, strlen(name));
        port(&r, number);
        set_state(&r, strstr(line, " state ") + 7);
        if ((p = strstr(line, " physical_state ")) != NULL)
            set_phys(&r, p + 16);
        r.open = p == NULL;
    }
    finish(out, &r, block);
}

const struct ticket_reader ticket_reader_rdma_link = {
    .name = "rdma link", .commands = "rdma link", .starts = link_starts, .read = link_read};

static bool gids_starts(char *const *lines, size_t left)
{
    (void)left;
    return ticket_after(lines[0], "DEV\tPORT\tINDEX\tGID") != NULL ||
           (ticket_after(lines[0], "DEV ") && strstr(lines[0], "INDEX") && strstr(lines[0], "GID"));
}

/* "mlx5_0	1	3	0000:…:ffff:0a00:0001	10.0.0.1  	v2	ens1f0" */
static bool gids_line(struct rdma *r, const char *line)
{
    char name[64], word[64], gid[64];
    long long number, index;
    const char *p = line;
    p = ticket_skip(p + ticket_word(name, sizeof name, p, ""));
    if (!isalpha((unsigned char)*name) || !ticket_long(p, &number))
        return false;
    p = ticket_skip(p + strspn(p, "0123456789"));
    if (!ticket_long(p, &index) || index < 0 || index > 65535)
        return false;
    p = ticket_skip(p + strspn(p, "0123456789"));
    p = ticket_skip(p + ticket_word(gid, sizeof gid, p, ""));
    if (strlen(gid) < 15 || strspn(gid, "0123456789abcdefABCDEF:") != strlen(gid))
        return false;
    bool v4 = *p && strchr(p, '.') && isdigit((unsigned char)*p);
    if (v4)
        p = ticket_skip(p + strcspn(p, " \t"));
    ticket_word(word, sizeof word, p, "");
    device(r, name, strlen(name));
    port(r, (long)number);
    json_t *gids = json_object_get(r->port, "gids");
    if (!gids) {
        json_object_set_new(r->port, "gids", json_array());
        gids = json_object_get(r->port, "gids");
    }
    bool local = strncasecmp(gid, "fe80", 4) == 0;
    json_array_append_new(gids,
                          json_pack("{s:I,s:s,s:s}", "index", (json_int_t)index, "type",
                                    strcmp(word, "v2") == 0 ? "RoCE v2" : "IB/RoCE v1", "family",
                                    v4      ? "ipv4"
                                    : local ? "link-local"
                                            : "ipv6"));
    return true;
}

static void gids_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct rdma r = {.devices = json_array()};
    bool whole = false;
    size_t count = 0;
    for (size_t i = 0; i < block->count && !whole; i++) {
        count += gids_line(&r, block->lines[i]);
        const char *total = ticket_after(block->lines[i], "n_gids_found=");
        whole = total && (size_t)strtoul(total, NULL, 10) == count;
    }
    r.open = !whole;
    finish(out, &r, block);
}

const struct ticket_reader ticket_reader_gids = {
    .name = "show_gids", .commands = "show_gids", .starts = gids_starts, .read = gids_read};
