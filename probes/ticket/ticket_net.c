/* Network interfaces: ip addr, ip link, ifconfig, ethtool. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char key[] = "net.ifaces";

static void set(json_t *iface, const char *name, json_t *value)
{
    if (!iface || json_object_get(iface, name))
        json_decref(value);
    else
        json_object_set_new(iface, name, value);
}

static bool has_flag(const char *flags, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = strstr(flags, name); p; p = strstr(p + 1, name))
        if (strchr("<,", p[-1]) && strchr(",>", p[len]))
            return true;
    return false;
}

/* "4: eth0@if5: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc … state UP …": a new entry, else NULL. */
static json_t *ip_header(const char *line)
{
    char name[64], flags[256], word[64];
    const char *p = line + strspn(line, "0123456789"), *at;
    int used = 0;
    long mtu;
    if (p == line || p[0] != ':' || p[1] != ' ' ||
        sscanf(p + 2, "%63[^: ]: <%250[^>]%n", name, flags + 1, &used) != 2 || !used)
        return NULL;
    flags[0] = '<';
    strcat(flags, ">");
    char *peer = strchr(name, '@');
    if (peer)
        *peer = '\0';
    json_t *iface = json_pack("{s:s,s:b,s:b}", "name", name, "up", has_flag(flags, "UP"),
                              "loopback", has_flag(flags, "LOOPBACK"));
    if (!iface)
        return NULL;
    set(iface, "running", json_boolean(has_flag(flags, "LOWER_UP")));
    if (peer)
        set(iface, "virtual", json_true());
    if ((at = strstr(p, " mtu ")) && sscanf(at, " mtu %ld", &mtu) == 1)
        set(iface, "mtu", json_integer(mtu));
    if ((at = strstr(p, " master ")) && ticket_word(word, sizeof word, at + 8, ""))
        set(iface, "master", json_string(word));
    if ((at = strstr(p, " state ")) && ticket_word(word, sizeof word, at + 7, "")) {
        for (char *c = word; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        set(iface, "operstate", json_string(word));
    }
    return iface;
}

static void add_address(json_t *iface, const char *family, const char *addr, long prefix,
                        const char *scope)
{
    json_t *addrs = json_object_get(iface, "addrs");
    if (!addrs) {
        set(iface, "addrs", json_array());
        addrs = json_object_get(iface, "addrs");
    }
    json_t *one = json_pack("{s:s,s:s,s:i}", "family", family, "addr", addr, "prefix", (int)prefix);
    if (one && *scope)
        json_object_set_new(one, "scope", json_string(scope));
    json_array_append_new(addrs, one);
}

/* "    link/ether …", "    inet 10.0.0.1/24 brd … scope global eth0" */
static void ip_detail(json_t *iface, const char *line)
{
    static const struct {
        const char *text;
        int type; /* ARPHRD_*, linux/if_arp.h */
    } types[] = {
        {"link/ether", 1}, {"link/infiniband", 32}, {"link/loopback", 772}, {"link/none", 65534}};
    char family[8], addr[64], scope[16] = "";
    const char *p = ticket_skip(line), *at;
    int prefix = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (ticket_after(p, types[i].text))
            set(iface, "type", json_integer(types[i].type));
    if (sscanf(p, "%7[inet6] %63[0-9a-fA-F.:]/%d", family, addr, &prefix) != 3)
        return;
    if ((at = strstr(p, " scope ")) != NULL)
        ticket_word(scope, sizeof scope, at + 7, "");
    if (strcmp(family, "inet") == 0 || strcmp(family, "inet6") == 0)
        add_address(iface, family, addr, prefix, scope);
}

/* Whole when it begins with lo, and nothing says that it is a part. */
static void finish(struct ticket_out *out, json_t *list, bool addresses,
                   const struct ticket_block *block)
{
    json_t *first = json_array_get(list, 0), *iface;
    bool lo = false;
    size_t i;
    json_array_foreach(list, i, iface)
    {
        lo |= json_is_true(json_object_get(iface, "loopback"));
        if (addresses)
            set(iface, "addrs", json_array());
    }
    const char *command = block->command ? block->command : "";
    if (first && (!lo || block->part || strstr(command, " dev ") || strstr(command, " show ")))
        out->note = "not all interfaces, left out";
    else if (first)
        ticket_put(out, key, json_incref(list), NULL);
    json_decref(list);
}

static bool ip_starts(char *const *lines, size_t left)
{
    (void)left;
    json_t *iface = ip_header(lines[0]);
    json_decref(iface);
    return iface != NULL;
}

static void ip_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array(), *iface = NULL;
    bool addresses = false;
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i];
        json_t *next = ip_header(line);
        if (next)
            json_array_append_new(list, iface = next);
        else if (iface && (*line == ' ' || *line == '\t'))
            ip_detail(iface, line);
        addresses |= strstr(line, "inet ") != NULL;
    }
    finish(out, list, addresses, block);
}

/* "eth0@if5  UP  10.0.7.4/24 fe80::1/64": name, state, addresses; NULL: another line. */
static json_t *brief_line(const char *line)
{
    static const char *const states[] = {"UP", "DOWN", "UNKNOWN", "DORMANT", "LOWERLAYERDOWN"};
    char name[64], state[32], addr[64];
    const char *p = line + ticket_word(name, sizeof name, line, "@");
    int prefix, used;
    bool is = false;
    p = ticket_skip(p + strcspn(p, " "));
    size_t len = ticket_word(state, sizeof state, p, "");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        is |= strcmp(state, states[i]) == 0;
    if (!is || !*name || !isalpha((unsigned char)*name))
        return NULL;
    bool lo = strcmp(name, "lo") == 0, up = strcmp(state, "UP") == 0;
    json_t *iface = json_pack("{s:s,s:b,s:o}", "name", name, "loopback", lo, "addrs", json_array());
    if (up || lo)
        set(iface, "up", json_true());
    if (!lo && strcmp(state, "UNKNOWN") != 0)
        set(iface, "running", json_boolean(up));
    for (char *c = state; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    set(iface, "operstate", json_string(state));
    for (p = ticket_skip(p + len); *p; p = ticket_skip(p + used)) {
        if (sscanf(p, "%63[0-9a-fA-F.:]/%d%n", addr, &prefix, &used) != 2)
            used = (int)strcspn(p, " ");
        else
            add_address(iface, strchr(addr, ':') ? "inet6" : "inet", addr, prefix, "");
        if (!used)
            break;
    }
    return iface;
}

static bool brief_starts(char *const *lines, size_t left)
{
    json_t *iface = ticket_after(lines[0], "lo ") ? brief_line(lines[0]) : NULL;
    bool is = iface && (json_array_size(json_object_get(iface, "addrs")) || left == 1);
    json_decref(iface);
    return is;
}

static void brief_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array(), *iface;
    for (size_t i = 0; i < block->count && (iface = brief_line(block->lines[i])); i++)
        json_array_append_new(list, iface);
    bool more =
        json_array_size(list) < block->count && *ticket_skip(block->lines[json_array_size(list)]);
    if (more || !block->ended) {
        if (json_array_size(list))
            out->note = "it is not told where the list ends, left out";
        json_decref(list);
        return;
    }
    finish(out, list, false, block);
}

const struct ticket_reader ticket_reader_brief = {
    .name = "ip -br", .starts = brief_starts, .read = brief_read};

const struct ticket_reader ticket_reader_ip = {.name = "ip",
                                               .commands = "ip a|ip addr|ip link|ip l|ip address",
                                               .starts = ip_starts,
                                               .read = ip_read};

/* "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500" */
static json_t *ifconfig_header(const char *line)
{
    char name[64], flags[256];
    int number, used = 0;
    long mtu;
    if (sscanf(line, "%63[^: \t]: flags=%d<%250[^>]%n", name, &number, flags + 1, &used) != 3 ||
        !used)
        return NULL;
    flags[0] = '<';
    strcat(flags, ">");
    json_t *iface =
        json_pack("{s:s,s:b,s:b,s:b}", "name", name, "up", has_flag(flags, "UP"), "running",
                  has_flag(flags, "RUNNING"), "loopback", has_flag(flags, "LOOPBACK"));
    if (iface && sscanf(line + used, "> mtu %ld", &mtu) == 1)
        set(iface, "mtu", json_integer(mtu));
    return iface;
}

static int mask_bits(const char *mask)
{
    unsigned a, b, c, d;
    if (sscanf(mask, "%u.%u.%u.%u", &a, &b, &c, &d) != 4 || a > 255 || b > 255 || c > 255 ||
        d > 255)
        return 0;
    return __builtin_popcount(a << 24 | b << 16 | c << 8 | d);
}

static void ifconfig_detail(json_t *iface, const char *line)
{
    char addr[64], mask[32];
    int prefix = 0;
    const char *p = ticket_skip(line);
    if (sscanf(p, "inet %63[0-9.] netmask %31[0-9.]", addr, mask) == 2)
        add_address(iface, "inet", addr, mask_bits(mask), "");
    else if (sscanf(p, "inet6 %63[0-9a-fA-F:] prefixlen %d", addr, &prefix) == 2)
        add_address(iface, "inet6", addr, prefix, "");
}

static bool ifconfig_starts(char *const *lines, size_t left)
{
    (void)left;
    json_t *iface = strstr(lines[0], ": flags=") ? ifconfig_header(lines[0]) : NULL;
    json_decref(iface);
    return iface != NULL;
}

static void ifconfig_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *list = json_array(), *iface = NULL;
    for (size_t i = 0; i < block->count; i++) {
        json_t *next = ifconfig_header(block->lines[i]);
        if (next)
            json_array_append_new(list, iface = next);
        else if (iface)
            ifconfig_detail(iface, block->lines[i]);
    }
    finish(out, list, true, block);
}

const struct ticket_reader ticket_reader_ifconfig = {
    .name = "ifconfig", .commands = "ifconfig", .starts = ifconfig_starts, .read = ifconfig_read};
