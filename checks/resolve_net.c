#include "checks/grammar.h"
#include "checks/resolve.h"

#include <stdlib.h>
#include <string.h>

/* Rules of NCCL: src/misc/socket.cc, src/misc/utils.cc (NVSHMEM's UID bootstrap and the net plugin
 * took them over). */
static const char *const nccl_rules[] = {"nccl", "rccl", "nvshmem", "ofi-plugin", "neuron", NULL};

static const char *const bridges[] = {"docker", "veth",  "virbr", "cni",    "flannel", "cali",
                                      "br-",    "lxc",   "lxd",   "podman", "tun",     "tap",
                                      "kube",   "weave", "vnet",  NULL};

enum { MAX_ITEM = 64 };

/* What a list comes to on this node. */
struct match {
    struct shk_strbuf missing; /* entries without a match */
    struct shk_strbuf picked;  /* names that match */
    struct shk_strbuf down;    /* those of them that are down */
    char near[MAX_ITEM];       /* suggestion for the first missing entry */
    char first[MAX_ITEM];      /* first missing entry */
    size_t missing_count, usable, loopback, bridge, local_only, no_addr, total;
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

bool shk_iface_is_bridge(const char *name)
{
    for (const char *const *b = bridges; *b; b++)
        if (strncmp(name, *b, strlen(*b)) == 0)
            return true;
    return false;
}

bool shk_iface_is_routable(const json_t *iface)
{
    size_t i;
    json_t *addr;
    json_array_foreach(json_object_get(iface, "addrs"), i, addr)
    {
        const char *text = shk_member_text(addr, "addr");
        if (text && strncmp(text, "fe80", 4) != 0 && strncmp(text, "169.254.", 8) != 0)
            return true;
    }
    return false;
}

bool shk_name_matches(const char *name, const char *item, size_t len, bool exact)
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
            const char *name = shk_member_text(json_array_get(devices, i), "name");
            if (name)
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

static void note_iface(struct match *m, const json_t *iface)
{
    const char *name = shk_member_text(iface, "name");
    m->total++;
    list_add(&m->picked, name);
    if (!shk_member_bool(iface, "up", true)) {
        list_add(&m->down, name);
        return;
    }
    bool loopback = shk_member_bool(iface, "loopback", strcmp(name, "lo") == 0);
    const json_t *addrs = json_object_get(iface, "addrs");
    m->loopback += loopback;
    m->bridge += !loopback && shk_iface_is_bridge(name);
    if (addrs && json_array_size(addrs) == 0)
        m->no_addr++;
    else if (addrs && !loopback && !shk_iface_is_routable(iface))
        m->local_only++;
    else if (!loopback && !shk_iface_is_bridge(name))
        m->usable++;
}

static bool listed(const char *body, const char *name, bool exact)
{
    const char *item;
    size_t len;
    while (shk_grammar_item(&body, ',', &item, &len)) {
        len = name_length(item, len);
        if (len && shk_name_matches(name, item, len, exact))
            return true;
    }
    return false;
}

static void match_interfaces(struct match *m, const json_t *ifaces, const char *body, bool exclude,
                             bool exact)
{
    const char *pos = body, *item;
    size_t len, i;
    json_t *iface;
    while (!exclude && shk_grammar_item(&pos, ',', &item, &len)) {
        bool hit = false;
        len = name_length(item, len);
        json_array_foreach((json_t *)ifaces, i, iface)
        {
            const char *name = shk_member_text(iface, "name");
            hit |= name && shk_name_matches(name, item, len, exact);
        }
        if (!hit && len)
            note_missing(m, ifaces, item, len);
    }
    json_array_foreach((json_t *)ifaces, i, iface)
    {
        const char *name = shk_member_text(iface, "name");
        if (name && listed(body, name, exact) != exclude)
            note_iface(m, iface);
    }
}

static char *iface_names(const json_t *devices)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device)
    {
        const char *name = shk_member_text(device, "name");
        if (name && sb.len < 120)
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

static void say_missing(struct shk_row *row, const struct match *m, const json_t *devices,
                        const char *what, const char *value)
{
    char *names = iface_names(devices);
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    shk_row_text(&row->why, "this node has no %s %s%s%s%s; it has: %s", what,
                 shk_strbuf_text(&m->missing), m->near[0] ? " (did you mean " : "", m->near,
                 m->near[0] ? "?)" : "", names ? names : "");
    if (m->total)
        shk_row_text(&row->observed, "%s (only %s match)", value, shk_strbuf_text(&m->picked));
    if (m->near[0]) {
        char *better = corrected(value, m->first, m->near);
        if (better)
            shk_row_text(&row->fix, "export %s=%s", row->setting, better);
        free(better);
    }
    free(names);
}

static void say_interfaces(struct shk_row *row, const struct match *m, long long nodes,
                           const char *value)
{
    const char *picked = shk_strbuf_text(&m->picked);
    size_t up = m->total - (m->down.len ? 1 : 0);
    enum shk_verdict many = nodes == 1 ? SHK_PASS : SHK_WARN;
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, "%s (%s)", value, picked);
    if (m->usable && !m->down.len)
        return;
    if (m->usable) {
        row->verdict = SHK_WARN;
        shk_row_text(&row->why, "%s is down", shk_strbuf_text(&m->down));
        return;
    }
    if (m->down.len && !m->loopback && !m->bridge && !m->local_only) {
        row->verdict = SHK_FAIL;
        row->diagnosis = "no-usable-socket-interface";
        shk_row_text(&row->why, "%s is down, and nothing else matches", shk_strbuf_text(&m->down));
    } else if (m->loopback && !m->bridge && !m->local_only) {
        row->verdict = nodes > 1 ? SHK_FAIL : many;
        row->diagnosis = "socket-ifname-loopback";
        shk_row_text(&row->why, "only the loopback interface matches; other nodes cannot reach it");
    } else if (m->local_only && !m->bridge) {
        row->verdict = many;
        row->diagnosis = "socket-ifname-picks-link-local";
        shk_row_text(&row->why, "%s has only link-local addresses, which other nodes cannot reach",
                     picked);
    } else if (m->bridge) {
        row->verdict = many;
        row->diagnosis = "socket-ifname-picks-virtual";
        shk_row_text(&row->why, "%s is a bridge of this node; other nodes cannot reach it", picked);
    } else if (up) {
        row->verdict = SHK_FAIL;
        row->diagnosis = "no-usable-socket-interface";
        shk_row_text(&row->why, "%s has no IP address", picked);
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
    const json_t *ifaces = shk_facts_get_array(ctx->facts, "net.ifaces");
    row->fact = "net.ifaces";
    if (!ifaces) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "the interfaces of this node were not read, so the names in the "
                                "value could not be compared");
        return true;
    }
    bool exclude, exact;
    const char *body = shk_grammar_list_body(value, &exclude, &exact);
    if (!uses_nccl_rules(setting))
        exact = true;
    bool names_excluded = strstr(setting->name, "EXCLUDE") != NULL;
    struct match m = {
        .missing = SHK_STRBUF_INIT, .picked = SHK_STRBUF_INIT, .down = SHK_STRBUF_INIT};
    match_interfaces(&m, ifaces, body, exclude || names_excluded, exact);
    if (m.missing_count) {
        say_missing(row, &m, ifaces, "interface", value);
        row->diagnosis = "socket-ifname-missing";
    } else if (!m.total) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "no-usable-socket-interface";
        shk_row_text(&row->why, "the list excludes every interface of this node");
    } else {
        say_interfaces(row, &m, shk_job_nodes(ctx->facts), value);
    }
    match_free(&m);
    return true;
}

static bool has_port(const json_t *device, long port)
{
    size_t i;
    json_t *p;
    json_t *ports = json_object_get(device, "ports");
    json_array_foreach(ports, i, p) if (shk_member_int(p, "port", -1) == port) return true;
    return json_array_size(ports) == 0;
}

/* One HCA entry: how many devices match, and a problem worth naming. */
static void match_hca(struct match *m, const json_t *devices, const char *item, size_t len,
                      bool exact, struct shk_row *row)
{
    size_t i, hits = 0, name_len = name_length(item, len);
    bool same = false, port_missing = false;
    json_t *device;
    long port = name_len < len ? strtol(item + name_len + 1, NULL, 10) : -1;
    json_array_foreach((json_t *)devices, i, device)
    {
        const char *name = shk_member_text(device, "name");
        if (!name || !shk_name_matches(name, item, name_len, exact))
            continue;
        hits++;
        same |= strlen(name) == name_len;
        port_missing |= port >= 0 && !has_port(device, port);
    }
    if (!hits) {
        note_missing(m, devices, item, name_len);
        return;
    }
    if (port_missing && row->verdict != SHK_FAIL) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "%.*s has no port %ld", (int)name_len, item, port);
    } else if (same && hits > 1 && row->verdict == SHK_PASS) {
        row->verdict = SHK_WARN;
        shk_row_text(&row->why,
                     "%.*s is a prefix and takes in %zu devices (such as %.*s0); put '=' in front "
                     "of the list for exact names",
                     (int)name_len, item, hits, (int)name_len, item);
        shk_row_text(&row->fix, "export %s='=…' (exact names)", row->setting);
    }
}

bool shk_resolve_hcas(const struct shk_check_context *ctx, const struct shk_setting *setting,
                      const char *value, struct shk_row *row)
{
    struct shk_fact fact;
    enum shk_look look = shk_look(ctx->facts, "rdma.devices", &fact);
    row->fact = "rdma.devices";
    if (look != SHK_LOOK_ABSENT && (look != SHK_LOOK_PRESENT || !json_is_array(fact.value))) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "the RDMA devices of this node were not read, so the names in the "
                                "value could not be compared");
        return true;
    }
    (void)setting;
    const json_t *devices = look == SHK_LOOK_ABSENT ? NULL : fact.value;
    bool exclude, exact;
    const char *pos = shk_grammar_list_body(value, &exclude, &exact), *item;
    size_t len;
    struct match m = {
        .missing = SHK_STRBUF_INIT, .picked = SHK_STRBUF_INIT, .down = SHK_STRBUF_INIT};
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    while (!exclude && shk_grammar_item(&pos, ',', &item, &len))
        if (len)
            match_hca(&m, devices, item, len, exact, row);
    if (m.missing_count)
        say_missing(row, &m, devices, "RDMA device", value);
    if (row->verdict != SHK_PASS)
        row->diagnosis = "wrong-hca-selected";
    match_free(&m);
    return true;
}
