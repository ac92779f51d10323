/* Takes names, addresses and serial numbers out of a capture. Made-up ones have the same form, so
 * that the probes read them as they read the real ones. */
#include "core/host/record.h"

#include "core/redact/redact.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRUB_FILE_MAX = 8 << 20, SCRUB_GROUPS = 20, SCRUB_FILES = 64, SCRUB_SHORT = 4 };

struct scrub {
    bool names_too; /* else only secrets */
    json_t *map;    /* what was seen, in lower case -> what stands for it */
    json_t *names;  /* words to replace -> by what */
    json_t *known;  /* IP addresses of this host, as text */
    long long uid;  /* of the user who captured */
    unsigned macs, guids, uuids, nets, subnets, hosts;
    int rc;
    struct shk_error *err;
};

/* The stand-in of a text, made by `fmt` with the next number when it is new. Borrowed. */
static const char *scrub_stand_in(struct scrub *s, const char *text, size_t len, unsigned *counter,
                                  const char *fmt, const char *prefix)
{
    char key[128];
    snprintf(key, sizeof key, "%.*s", (int)len, text);
    for (char *p = key; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    json_t *known = json_object_get(s->map, key);
    if (!known) {
        char made[160];
        unsigned n = ++*counter;
        snprintf(made, sizeof made, fmt, prefix, n >> 8 & 0xff, n & 0xff);
        json_object_set_new(s->map, key, json_string(made));
        known = json_object_get(s->map, key);
    }
    const char *value = json_string_value(known);
    return value ? value : "";
}

static size_t scrub_hex(const char *p)
{
    size_t n = 0;
    while (isxdigit((unsigned char)p[n]))
        n++;
    return n;
}

/* MAC addresses (six groups of two, or the twenty of InfiniBand), GUIDs (four groups of four) and
 * GIDs (eight of them): bytes that match. All zeros stay. */
static size_t scrub_groups(struct scrub *s, const char *p, struct shk_strbuf *out)
{
    size_t count = 0, width = scrub_hex(p), len = 0;
    bool zero = true;
    if (width != 2 && width != 4)
        return 0;
    for (;;) {
        if (scrub_hex(p + len) != width || count == SCRUB_GROUPS)
            return 0;
        for (size_t i = 0; i < width; i++)
            zero &= p[len + i] == '0';
        len += width;
        count++;
        if (p[len] != ':')
            break;
        len++;
    }
    if (zero || isalnum((unsigned char)p[len]) ||
        (p[len] == '.' && isxdigit((unsigned char)p[len + 1])))
        return 0;
    if (width == 2 && (count == 6 || count == SCRUB_GROUPS)) {
        shk_strbuf_puts(out, scrub_stand_in(s, p, len, &s->macs, "%s02:00:00:00:%02x:%02x", ""));
        return len;
    }
    if (width != 4 || (count != 4 && count != 8))
        return 0;
    /* a GID keeps its kind: link-local, or an IPv4 address in its last two groups */
    size_t keep = count == 8 ? (strncmp(p + 25, "ffff", 4) == 0 ? 30 : 20) : 0;
    shk_strbuf_add(out, p, keep);
    if (keep == 30)
        shk_strbuf_puts(out,
                        scrub_stand_in(s, p + keep, len - keep, &s->hosts, "%s0a00:%02x%02x", ""));
    else
        shk_strbuf_puts(out, scrub_stand_in(s, p + keep, len - keep, &s->guids,
                                            "%s0200:0000:0000:%02x%02x", ""));
    return len;
}

static size_t scrub_uuid(struct scrub *s, const char *p, struct shk_strbuf *out)
{
    static const size_t widths[] = {8, 4, 4, 4, 12};
    size_t len = 0;
    for (size_t i = 0; i < 5; i++) {
        if (scrub_hex(p + len) != widths[i] || (i < 4 && p[len + widths[i]] != '-'))
            return 0;
        len += widths[i] + (i < 4);
    }
    shk_strbuf_puts(out, scrub_stand_in(s, p, len, &s->uuids,
                                        "%s00000000-0000-4000-8000-00000000%02x%02x", ""));
    return len;
}

/* A number from 1 to 254 that stands for a text. */
static unsigned scrub_number(struct scrub *s, const char *text, unsigned *counter)
{
    json_t *known = json_object_get(s->map, text);
    if (!known) {
        json_object_set_new(s->map, text, json_integer(++*counter % 254));
        known = json_object_get(s->map, text);
    }
    return (unsigned)json_integer_value(known);
}

/* 10.NET.SUBNET.HOST: the first two parts make a network, so that what was in one stays in one. */
static void scrub_ipv4_put(struct scrub *s, const unsigned part[4], struct shk_strbuf *out)
{
    char net[32], subnet[40], host[48];
    snprintf(net, sizeof net, "net %u.%u", part[0], part[1]);
    snprintf(subnet, sizeof subnet, "subnet %u.%u.%u", part[0], part[1], part[2]);
    snprintf(host, sizeof host, "host %u.%u.%u.%u", part[0], part[1], part[2], part[3]);
    shk_strbuf_printf(out, "10.%u.%u.%u", scrub_number(s, net, &s->nets),
                      scrub_number(s, subnet, &s->subnets), scrub_number(s, host, &s->hosts));
}

static size_t scrub_ipv4(struct scrub *s, const char *p, bool all, struct shk_strbuf *out)
{
    unsigned part[4];
    int len = 0;
    char text[24];
    if (sscanf(p, "%3u.%3u.%3u.%3u%n", &part[0], &part[1], &part[2], &part[3], &len) != 4 ||
        isalnum((unsigned char)p[len]) || (p[len] == '.' && isdigit((unsigned char)p[len + 1])))
        return 0;
    snprintf(text, sizeof text, "%.*s", len, p);
    if (part[0] > 255 || part[1] > 255 || part[2] > 255 || part[3] > 255 || part[0] == 127 ||
        part[0] == 0 || part[0] == 255 || (!all && !json_object_get(s->known, text)))
        return 0;
    scrub_ipv4_put(s, part, out);
    return (size_t)len;
}

/* IPv6 addresses of this host only: their form is that of too many other things. */
static size_t scrub_ipv6(struct scrub *s, const char *p, struct shk_strbuf *out)
{
    char text[64];
    size_t len = strspn(p, "0123456789abcdefABCDEF:");
    if (len < 3 || len >= sizeof text)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)len, p);
    if (!strchr(text, ':') || !json_object_get(s->known, text) || strcmp(text, "::1") == 0)
        return 0;
    bool local = strncasecmp(text, "fe80", 4) == 0;
    shk_strbuf_puts(
        out, scrub_stand_in(s, p, len, &s->hosts, "%s%02x%02x", local ? "fe80::" : "fd00::"));
    return len;
}

static size_t scrub_name(const struct scrub *s, const char *text, const char *p,
                         struct shk_strbuf *out)
{
    const char *name;
    json_t *by;
    json_object_foreach(s->names, name, by)
    {
        size_t n = strlen(name);
        if (strncasecmp(p, name, n) != 0 || isalnum((unsigned char)p[n]) || p[n] == '_')
            continue;
        /* a short name is a word of many texts: only where it is a whole value */
        if (n < SCRUB_SHORT && (p == text || p[-1] != '"' || p[n] != '"'))
            continue;
        shk_strbuf_puts(out, json_string_value(by));
        return n;
    }
    return 0;
}

/* hwloc writes serial numbers, asset tags and UUIDs of the board as attributes; amdgpu a unique
 * number of each GPU. Returns the bytes up to and with the value. */
static size_t scrub_serial(const char *p, struct shk_strbuf *out)
{
    static const char *const marks[] = {"Serial\" value=\"", "UUID\" value=\"",
                                        "AssetTag\" value=\"", "SerialNumber\" value=\""};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t n = strlen(marks[i]);
        if (strncmp(p, marks[i], n) == 0) {
            shk_strbuf_add(out, p, n);
            return n + strcspn(p + n, "\"");
        }
    }
    static const char unique[] = "unique_id ";
    if (strncmp(p, unique, sizeof unique - 1) != 0)
        return 0;
    shk_strbuf_printf(out, "%s0", unique);
    return sizeof unique - 1 + strspn(p + sizeof unique - 1, "0123456789");
}

/* A new text; all_addresses: every IPv4 address goes, not only those of this host. */
static char *scrub_text(struct scrub *s, const char *text, bool all_addresses)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    for (const char *p = text; *p;) {
        bool starts = p == text || !(isalnum((unsigned char)p[-1]) || strchr("_:", p[-1]));
        size_t n = scrub_serial(p, &out);
        if (!n && starts && p > text && p[-1] == '.' && isdigit((unsigned char)*p))
            starts = false;
        if (!n && starts)
            n = scrub_name(s, text, p, &out);
        if (!n && starts)
            n = scrub_uuid(s, p, &out);
        if (!n && starts)
            n = scrub_groups(s, p, &out);
        if (!n && starts)
            n = scrub_ipv4(s, p, all_addresses, &out);
        if (!n && (starts || *p == ':'))
            n = scrub_ipv6(s, p, &out);
        if (!n)
            shk_strbuf_putc(&out, *p), n = 1;
        p += n;
    }
    return out.len ? shk_strbuf_take(&out) : strdup("");
}

/* Device Serial Number of a configuration space (extended capability 3), made of the MAC address.
 */
static void scrub_config(unsigned char *config, size_t len)
{
    size_t at = 0x100;
    for (int steps = 0; steps < 960 && at >= 0x100 && at + 12 <= len; steps++) {
        unsigned header = config[at] | config[at + 1] << 8 | config[at + 2] << 16 |
                          (unsigned)config[at + 3] << 24;
        if ((header & 0xffff) == 0x0003)
            memset(config + at + 4, 0, 8);
        at = header >> 20 & 0xffc;
    }
}

static int scrub_load(const char *path, char **data_p, size_t *len_p)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) ? -errno : st.st_size > SCRUB_FILE_MAX ? -EFBIG : 0;
    char *data = rc ? NULL : malloc((size_t)st.st_size + 1);
    if (!rc && !data)
        rc = -ENOMEM;
    size_t len = 0;
    for (ssize_t n = 1; !rc && n > 0 && len<(size_t)st.st_size; len += n> 0 ? (size_t)n : 0)
        if ((n = read(fd, data + len, (size_t)st.st_size - len)) < 0)
            rc = -errno;
    close(fd);
    if (rc) {
        free(data);
        return rc;
    }
    data[len] = '\0';
    *data_p = data;
    *len_p = len;
    return 0;
}

static int scrub_save(const char *path, const char *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, data, len);
    int rc = n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
    close(fd);
    return rc;
}

static bool scrub_ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* "name:password:uid:gid:comment:home:shell": does the line belong to the user who captured? */
static bool scrub_is_own(const struct scrub *s, const char *line)
{
    const char *uid = strchr(line, ':');
    uid = uid ? strchr(uid + 1, ':') : NULL;
    char *end = NULL;
    return uid && strtoll(uid + 1, &end, 10) == s->uid && end != uid + 1 && *end == ':';
}

/* Of /etc/passwd only the line of the user who captured, cut in place. */
static void scrub_passwd(const struct scrub *s, char *text)
{
    char *out = text;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (!scrub_is_own(s, line))
            continue;
        size_t n = (size_t)(next - line);
        memmove(out, line, n);
        out += n;
    }
    *out = '\0';
}

/* Of a text: written back only where there was a secret. */
static int scrub_secrets(const char *path, char **data_p, size_t *len_p)
{
    char *clean = shk_redact(*data_p);
    if (!clean)
        return -ENOMEM;
    int rc = strcmp(clean, *data_p) ? scrub_save(path, clean, strlen(clean)) : 0;
    free(*data_p);
    *data_p = clean;
    *len_p = strlen(clean);
    return rc;
}

static int scrub_file(struct scrub *s, const char *path)
{
    static const char *const lists[] = {"/hostcalls.json", "/etc/hosts", "/nodes_config.cfg"};
    char *data = NULL, *clean = NULL;
    size_t len = 0;
    bool all = false;
    int rc = scrub_load(path, &data, &len);
    if (!rc && !memchr(data, '\0', len))
        rc = scrub_secrets(path, &data, &len);
    if (!s->names_too) {
        free(data);
        return rc ? shk_error_sys(s->err, -rc, "%s", path) : 0;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        all |= scrub_ends(path, lists[i]);
    if (!rc && memchr(data, '\0', len)) {
        if (scrub_ends(path, "/config")) {
            scrub_config((unsigned char *)data, len);
            rc = scrub_save(path, data, len);
        }
    } else if (!rc) {
        if (scrub_ends(path, "/etc/passwd"))
            scrub_passwd(s, data);
        clean = scrub_text(s, data, all);
        rc = clean ? scrub_save(path, clean, strlen(clean)) : -ENOMEM;
    }
    free(clean);
    free(data);
    return rc ? shk_error_sys(s->err, -rc, "%s", path) : 0;
}

/* nftw() has no argument for its callback. */
static struct scrub *scrub_current;

/* A folder with a name in it, such as that of a home directory; what is below was visited before.
 */
static int scrub_folder(struct scrub *s, const char *path, const char *name)
{
    const char *by = json_string_value(json_object_get(s->names, name));
    char to[4096];
    if (strstr(path, "/proc/") || strstr(path, "/sys/") || strstr(path, "/dev/"))
        return 0; /* words of the kernel, whatever the host is called */
    if (!by || snprintf(to, sizeof to, "%.*s%s", (int)(name - path), path, by) >= (int)sizeof to)
        return 0;
    return rename(path, to) == 0 ? 0 : shk_error_sys(s->err, errno, "%s", path);
}

static int scrub_visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    return type == FTW_F ? scrub_file(scrub_current, path)
           : type == FTW_DP && where->level > 0
               ? scrub_folder(scrub_current, path, path + where->base)
               : 0;
}

static void scrub_learn_name(struct scrub *s, const char *name, const char *by)
{
    if (!name || !*name || strcmp(name, "root") == 0 || strcmp(name, "localhost") == 0 ||
        json_object_get(s->names, name))
        return;
    json_object_set_new(s->names, name, json_string(by));
}

static void scrub_learn_host(struct scrub *s, const char *name)
{
    char head[256];
    if (!name)
        return;
    scrub_learn_name(s, name, "node1");
    snprintf(head, sizeof head, "%.*s", (int)strcspn(name, "."), name);
    scrub_learn_name(s, head, "node1");
}

static void scrub_learn_addresses(struct scrub *s, const json_t *calls)
{
    size_t i, k;
    json_t *iface, *addr;
    json_array_foreach(json_object_get(calls, "ifaddrs"), i, iface)
    {
        json_array_foreach(json_object_get(iface, "addrs"), k, addr)
        {
            const char *text = json_string_value(json_object_get(addr, "addr"));
            if (text)
                json_object_set_new(s->known, text, json_true());
        }
    }
    json_array_foreach(json_object_get(json_object_get(calls, "resolve"), "addrs"), i, addr)
    {
        if (json_string_value(addr))
            json_object_set_new(s->known, json_string_value(addr), json_true());
    }
}

/* Variables of the job that hold a name as a whole. */
static void scrub_learn_environ(struct scrub *s, json_t *env)
{
    static const struct {
        const char *use, *by;
    } rows[] = {
        {"identity.user", "user1"},
        {"identity.account", "account1"},
        {"identity.nodelist", "node1"},
        {"identity.host", "node1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *const *v = shk_variables(rows[i].use); *v; v++) {
            scrub_learn_name(s, json_string_value(json_object_get(env, *v)), rows[i].by);
            /* a variable that nobody asked for is not in the capture, but its value may be */
            scrub_learn_name(s, getenv(*v), rows[i].by);
        }
}

static void scrub_learn_user(struct scrub *s, const char *dir)
{
    char path[4096], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/etc/passwd", dir);
    if (scrub_load(path, &text, &len) != 0)
        return;
    scrub_passwd(s, text);
    text[strcspn(text, ":")] = '\0';
    scrub_learn_name(s, text, "user1");
    free(text);
}

static int scrub_learn(struct scrub *s, const char *dir)
{
    char path[4096], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/.shakedown/hostcalls.json", dir);
    int rc = scrub_load(path, &text, &len);
    if (rc)
        return shk_error_sys(s->err, -rc, "%s", path);
    json_t *calls = json_loadb(text, len, 0, NULL);
    free(text);
    scrub_learn_host(
        s, json_string_value(json_object_get(json_object_get(calls, "uname"), "nodename")));
    scrub_learn_host(
        s, json_string_value(json_object_get(json_object_get(calls, "resolve"), "hostname")));
    scrub_learn_environ(s, json_object_get(calls, "environ"));
    scrub_learn_addresses(s, calls);
    s->uid = json_integer_value(json_object_get(json_object_get(calls, "ids"), "uid"));
    json_decref(calls);
    scrub_learn_user(s, dir);
    return 0;
}

int shk_record_scrub(const char *dir, bool names_too, struct shk_error *err)
{
    struct shk_error mine = {""};
    struct scrub s = {.names_too = names_too,
                      .map = json_object(),
                      .names = json_object(),
                      .known = json_object(),
                      .err = &mine};
    int rc = names_too ? scrub_learn(&s, dir) : 0;
    scrub_current = &s;
    if (!rc && nftw(dir, scrub_visit, SCRUB_FILES, FTW_PHYS | FTW_DEPTH) != 0)
        rc = *mine.text ? -EIO : shk_error_sys(&mine, errno, "%s", dir);
    if (rc)
        shk_error_set(err, -rc, "%s", mine.text);
    json_decref(s.map);
    json_decref(s.names);
    json_decref(s.known);
    return rc;
}
