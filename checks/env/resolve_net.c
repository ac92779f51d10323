#include "checks/base/remedy.h"
#include "checks/env/resolve.h"
#include "checks/value/grammar.h"
#include "checks/value/iface.h"

#include <stdlib.h>
#include <string.h>

/* Rules of NCCL: src/misc/socket.cc, src/misc/utils.cc (NVSHMEM's UID bootstrap and the net plugin
 * took them over). */
static const char *const nccl_rules[] = {"nccl", "rccl", "nvshmem", "ofi-plugin", "neuron", NULL};

enum { MAX_ITEM = 64 };

/* What a list comes to on this node. */
struct match {
    bool prefixes;             /* an item takes in more devices than it names */
    struct shk_strbuf missing; /* entries without a match */
    struct shk_strbuf picked;  /* names that match */
    struct shk_strbuf down;    /* those of them that are down */
    char near[MAX_ITEM];       /* suggestion for the first missing entry */
    char first[MAX_ITEM];      /* first missing entry */
    bool named_down;           /* one of those stands in the list itself, not only its prefix */
    size_t missing_count, usable, loopback, bridge, local_only, no_addr, total, unread, nameless;
};

static void match_free(struct match *m)
{
    shk_strbuf_free(&m->missing);
    shk_strbuf_free(&m->picked);
    shk_strbuf_free(&m->down);
}

static void list_add(struct shk_strbuf *sb, const char *text)
{
    shk_strbuf_printf(sb, "%s%s", sb->len ? ", " : "", text);
}

/* `name` matches NCCL's list entry [item, item + len): as prefix or exactly. */
static bool name_matches(const char *name, const char *item, size_t len, bool exact)
{
    return strncmp(name, item, len) == 0 && (!exact || name[len] == '\0');
}

/* Length of the entry's name, without ":port…". */
static size_t name_length(const char *item, size_t len)
{
    const char *colon = memchr(item, ':', len);
    return colon ? (size_t)(colon - item) : len;
}

static char *nearest_name(const json_t *devices, const char *item)
{
    size_t count = json_array_size(devices), used = 0;
    const char **names = calloc(count + 1, sizeof(*names));
    const char *near = NULL;
    if (names) {
        for (size_t i = 0; i < count; i++) {
            const char *name = NULL;
            if (shk_look_member_text(json_array_get(devices, i), "name", &name) == SHK_LOOK_PRESENT)
                names[used++] = name;
        }
        near = shk_nearest(item, names, used);
        /* Of equally near names ("hsn0" and "hsn3" for "hns3") the same ending is meant. */
        size_t len = strlen(item);
        for (size_t i = 0; near && len && i < used; i++)
            if (shk_edit_distance(item, names[i]) == shk_edit_distance(item, near) &&
                names[i][strlen(names[i]) - 1] == item[len - 1])
                near = names[i];
    }
    char *copy = near ? strdup(near) : NULL;
    free(names);
    return copy;
}

static void note_missing(struct match *m, const json_t *devices, const char *item, size_t len)
{
    char name[MAX_ITEM];
    if (len >= sizeof(name))
        len = sizeof(name) - 1;
    memcpy(name, item, len);
    name[len] = '\0';
    list_add(&m->missing, name);
    if (m->missing_count++)
        return;
    strcpy(m->first, name);
    char *near = nearest_name(devices, name);
    if (near && strlen(near) < sizeof(m->near))
        strcpy(m->near, near);
    free(near);
}

/* How far the addresses of an interface lead. */
enum reach { REACH_NONE, REACH_NODE, REACH_LINK, REACH_ALL, REACH_UNREAD };

static enum reach reach_of(const char *address)
{
    if (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0)
        return REACH_NODE;
    return strncmp(address, "fe80", 4) == 0 || strncmp(address, "169.254.", 8) == 0 ? REACH_LINK
                                                                                    : REACH_ALL;
}

/* The farthest of all; one that was not read could lead anywhere. */
static enum reach addresses_reach(struct shk_row *row, const json_t *addrs)
{
    enum reach farthest = REACH_NONE;
    size_t i, unread = 0;
    json_t *addr;
    json_array_foreach((json_t *)addrs, i, addr)
    {
        const char *text = NULL;
        if (shk_look_member_text(addr, "addr", &text) != SHK_LOOK_PRESENT)
            unread++;
        else if (reach_of(text) > farthest)
            farthest = reach_of(text);
    }
    if (!unread || farthest == REACH_ALL)
        return farthest;
    shk_row_lacks(row, "net.ifaces", "an address of an interface could not be read");
    return REACH_UNREAD;
}

static bool stands_in(const char *body, const char *name)
{
    const char *item;
    size_t len;
    while (shk_grammar_item(&body, ',', &item, &len))
        if (name_length(item, len) == strlen(name) && strncmp(item, name, strlen(name)) == 0)
            return true;
    return false;
}

/* An interface that is up, by where its addresses lead. */
static void note_up(struct match *m, struct shk_row *row, const json_t *iface, const char *name)
{
    json_t *addrs = NULL;
    bool bridge = shk_iface_is_bridge(name);
    if (strcmp(name, "lo") == 0) {
        m->loopback++;
        return;
    }
    m->bridge += bridge;
    if (shk_read_member_array(row, "net.ifaces", iface, "addrs", &addrs) != SHK_LOOK_PRESENT) {
        m->unread++;
        return;
    }
    switch (addresses_reach(row, addrs)) {
    case REACH_NONE: m->no_addr++; break;
    case REACH_NODE: m->loopback++; break;
    case REACH_LINK: m->local_only++; break;
    case REACH_ALL: m->usable += !bridge; break;
    case REACH_UNREAD: m->unread++; break;
    }
}

/* An interface that the list leaves to NCCL. */
static void note_iface(struct match *m, struct shk_row *row, const json_t *iface, const char *name,
                       const char *body)
{
    bool up = true;
    m->total++;
    list_add(&m->picked, name);
    if (shk_read_member_bool(row, "net.ifaces", iface, "up", &up) != SHK_LOOK_PRESENT) {
        m->unread++;
    } else if (!up) {
        list_add(&m->down, name);
        m->named_down |= stands_in(body, name);
    } else {
        note_up(m, row, iface, name);
    }
}

static bool listed(const char *body, const char *name, bool exact)
{
    const char *item;
    size_t len;
    while (shk_grammar_item(&body, ',', &item, &len)) {
        len = name_length(item, len);
        if (len && name_matches(name, item, len, exact))
            return true;
    }
    return false;
}

/* Entries of the list that no device of the array has; those without a name may be it. */
static void match_missing(struct match *m, const json_t *devices, const char *body, bool exact)
{
    const char *item;
    size_t len, i;
    json_t *device;
    while (shk_grammar_item(&body, ',', &item, &len)) {
        bool hit = false;
        len = name_length(item, len);
        json_array_foreach((json_t *)devices, i, device)
        {
            const char *name = NULL;
            if (shk_look_member_text(device, "name", &name) == SHK_LOOK_PRESENT)
                hit |= name_matches(name, item, len, exact);
        }
        if (!hit && len)
            note_missing(m, devices, item, len);
    }
}

static void match_interfaces(struct match *m, struct shk_row *row, const json_t *ifaces,
                             const char *body, bool exclude, bool exact)
{
    size_t i;
    json_t *iface;
    if (!exclude)
        match_missing(m, ifaces, body, exact);
    json_array_foreach((json_t *)ifaces, i, iface)
    {
        const char *name = NULL;
        if (shk_read_member_text(row, "net.ifaces", iface, "name", &name) != SHK_LOOK_PRESENT)
            m->nameless++;
        else if (listed(body, name, exact) != exclude)
            note_iface(m, row, iface, name, exclude ? NULL : body);
    }
}

static char *iface_names(const json_t *devices)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device)
    {
        const char *name = NULL;
        if (shk_look_member_text(device, "name", &name) == SHK_LOOK_PRESENT && sb.len < 120)
            list_add(&sb, name);
    }
    return sb.len ? shk_strbuf_take(&sb) : strdup("none");
}

/* The value with the first missing entry replaced by what was probably meant. */
static char *corrected(const char *value, const char *wrong, const char *right)
{
    const char *at = value;
    size_t len = strlen(wrong);
    while ((at = strstr(at, wrong))) {
        bool starts = at == value || strchr(",^=", at[-1]);
        if (starts && (at[len] == '\0' || at[len] == ',' || at[len] == ':'))
            return shk_strf("%.*s%s%s", (int)(at - value), value, right, at + len);
        at++;
    }
    return NULL;
}

/* Some entries match nothing. With another name close by that is a slip; where others match, it is
 * a list for nodes of several kinds. False: no opinion, something that was not read may match. */
static bool say_missing(struct shk_row *row, const struct match *m, const json_t *devices,
                        const char *what, const char *value)
{
    if (m->nameless)
        return false;
    char *names = iface_names(devices);
    bool harmless = m->total && !m->near[0];
    shk_row_verdict(row, harmless ? SHK_NOTE : SHK_FAIL, SHK_EFFECT);
    shk_row_text(&row->why, "this node has no %s %s%s%s%s; it has: %s", what,
                 shk_strbuf_text(&m->missing), m->near[0] ? " (did you mean " : "", m->near,
                 m->near[0] ? "?)" : "", names ? names : "");
    if (m->total)
        shk_row_text(&row->observed, "%s (only %s match)", value, shk_strbuf_text(&m->picked));
    if (m->near[0]) {
        char *better = corrected(value, m->first, m->near);
        if (better)
            shk_row_fix(row, "set-value", "name", row->setting, "value", better, NULL);
        free(better);
    }
    free(names);
    return !harmless;
}

static void say_bad(struct shk_row *row, enum shk_verdict verdict, const char *diagnosis,
                    const char *whyf, const char *names)
{
    row->verdict = verdict;
    row->diagnosis = diagnosis;
    shk_row_text(&row->why, whyf, names);
}

/* None of those that are left can be used. */
static void say_unusable(struct shk_row *row, const struct match *m)
{
    const char *picked = shk_strbuf_text(&m->picked);
    if (m->down.len && !m->loopback && !m->bridge && !m->local_only) {
        say_bad(row, SHK_FAIL, "no-usable-socket-interface", "%s is down, and nothing else matches",
                shk_strbuf_text(&m->down));
        return;
    }
    if (!m->loopback && !m->bridge && !m->local_only) {
        say_bad(row, SHK_FAIL, "no-usable-socket-interface", "%s has no IP address", picked);
        return;
    }
    long long nodes = shk_read_job_nodes(row); /* only other nodes miss anything */
    if (nodes <= 1)
        return;
    if (m->loopback && !m->bridge && !m->local_only)
        say_bad(row, SHK_FAIL, "socket-ifname-loopback",
                "only the loopback interface matches; other nodes cannot reach it", picked);
    else if (m->local_only && !m->bridge)
        say_bad(row, SHK_WARN, "socket-ifname-picks-link-local",
                "%s has only link-local addresses, which other nodes cannot reach", picked);
    else
        say_bad(row, SHK_WARN, "socket-ifname-picks-virtual",
                "%s is a bridge of this node; other nodes cannot reach it", picked);
}

static void say_interfaces(struct shk_row *row, const struct match *m, bool exclude,
                           const char *value)
{
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, "%s (%s)", value, shk_strbuf_text(&m->picked));
    if (!m->usable && !m->unread && !m->nameless) {
        say_unusable(row, m);
    } else if (m->usable && m->down.len && !exclude) {
        row->verdict = m->named_down ? SHK_WARN : SHK_NOTE;
        shk_row_text(&row->why, "%s is down", shk_strbuf_text(&m->down));
    }
}

static bool uses_nccl_rules(const struct shk_setting *setting)
{
    for (size_t i = 0; i < setting->readers_count; i++)
        if (shk_list_has(nccl_rules, setting->readers[i].library))
            return true;
    return setting->readers_count == 0;
}

bool shk_resolve_interfaces(const struct shk_check_context *ctx, const struct shk_setting *setting,
                            const char *value, struct shk_row *row)
{
    json_t *ifaces = NULL;
    (void)ctx;
    row->fact = "net.ifaces";
    if (shk_read_array(row, "net.ifaces", &ifaces) != SHK_LOOK_PRESENT)
        return false;
    bool exclude, exact;
    const char *body = shk_grammar_list_body(value, &exclude, &exact);
    if (!uses_nccl_rules(setting))
        exact = true;
    exclude |= strstr(setting->name, "EXCLUDE") != NULL;
    struct match m = {
        .missing = SHK_STRBUF_INIT, .picked = SHK_STRBUF_INIT, .down = SHK_STRBUF_INIT};
    match_interfaces(&m, row, ifaces, body, exclude, exact);
    if (m.missing_count) {
        if (say_missing(row, &m, ifaces, "interface", value))
            row->diagnosis = "socket-ifname-missing";
    } else if (m.total) {
        say_interfaces(row, &m, exclude, value);
    } else if (!m.nameless) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "no-usable-socket-interface";
        shk_row_text(&row->why, "the list excludes every interface of this node");
    }
    bool decided = row->verdict != SHK_UNKNOWN;
    match_free(&m);
    return decided;
}

/* Has the device that port? -1 not known; a device that tells no ports is not asked. */
static int has_port(struct shk_row *row, const json_t *device, long port)
{
    size_t i, unread = 0;
    json_t *ports = NULL, *p;
    if (shk_read_member_array(row, "rdma.devices", device, "ports", &ports) != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(ports, i, p)
    {
        long long number = -1;
        if (shk_read_member_int(row, "rdma.devices", p, "port", &number) != SHK_LOOK_PRESENT)
            unread++;
        else if (number == port)
            return 1;
    }
    return unread ? -1 : json_array_size(ports) == 0;
}

/* What one entry of the list comes to. */
struct hca_hits {
    size_t count;
    bool same;      /* a device of just that name */
    bool port_gone; /* and it has not that port */
};

static struct hca_hits match_hca(struct match *m, const json_t *devices, const char *item,
                                 size_t len, bool exact, struct shk_row *row)
{
    struct hca_hits hits = {0};
    size_t i, name_len = name_length(item, len);
    json_t *device;
    long port = name_len < len ? strtol(item + name_len + 1, NULL, 10) : -1;
    json_array_foreach((json_t *)devices, i, device)
    {
        const char *name = NULL;
        if (shk_read_member_text(row, "rdma.devices", device, "name", &name) != SHK_LOOK_PRESENT) {
            m->nameless++;
            continue;
        }
        if (!name_matches(name, item, name_len, exact))
            continue;
        hits.count++;
        hits.same |= strlen(name) == name_len;
        hits.port_gone |= port >= 0 && has_port(row, device, port) == 0;
    }
    m->total += hits.count;
    return hits;
}

static void judge_hca(struct match *m, const json_t *devices, const char *item, size_t len,
                      bool exact, struct shk_row *row)
{
    struct hca_hits hits = match_hca(m, devices, item, len, exact, row);
    int name_len = (int)name_length(item, len);
    if (!hits.count) {
        note_missing(m, devices, item, (size_t)name_len);
    } else if (hits.port_gone && row->verdict != SHK_FAIL) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "%.*s has no port %ld", name_len, item,
                     strtol(item + name_len + 1, NULL, 10));
    } else if (hits.same && hits.count > 1 && row->verdict == SHK_PASS) {
        row->verdict = SHK_WARN;
        shk_row_text(&row->why,
                     "%.*s is a prefix and takes in %zu devices (such as %.*s0); put '=' in front "
                     "of the list for exact names",
                     name_len, item, hits.count, name_len, item);
        m->prefixes = true;
    }
}

/* Adapters carry what goes between nodes: on one node a wrong list costs nothing. */
static void soften_alone(struct shk_row *row)
{
    if ((row->verdict != SHK_WARN && row->verdict != SHK_FAIL) ||
        shk_job_nodes(row->ctx->facts) != 1)
        return;
    row->verdict = row->verdict == SHK_FAIL ? SHK_WARN : SHK_NOTE;
}

bool shk_resolve_hcas(const struct shk_check_context *ctx, const struct shk_setting *setting,
                      const char *value, struct shk_row *row)
{
    json_t *devices = NULL;
    (void)ctx;
    (void)setting;
    row->fact = "rdma.devices";
    enum shk_look look = shk_read_array(row, "rdma.devices", &devices);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT)
        return false;
    bool exclude, exact;
    const char *pos = shk_grammar_list_body(value, &exclude, &exact), *item;
    size_t len;
    struct match m = {
        .missing = SHK_STRBUF_INIT, .picked = SHK_STRBUF_INIT, .down = SHK_STRBUF_INIT};
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    while (!exclude && shk_grammar_item(&pos, ',', &item, &len))
        if (len)
            judge_hca(&m, devices, item, len, exact, row);
    char *body = m.prefixes && row->verdict == SHK_WARN ? shk_strf("=%s", value) : NULL;
    if (body)
        shk_row_fix(row, "exact-names", "name", row->setting, "value", body, NULL);
    free(body);
    if (m.missing_count)
        (void)say_missing(row, &m, devices, "RDMA device", value);
    soften_alone(row);
    if (row->verdict == SHK_WARN || row->verdict == SHK_FAIL)
        row->diagnosis = "wrong-hca-selected";
    match_free(&m);
    return true;
}
