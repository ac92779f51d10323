#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/value/iface.h"
#include "core/text/uses.h"

#include <string.h>

static bool is_loopback(const char *addr)
{
    return strncmp(addr, "127.", 4) == 0 || strcmp(addr, "::1") == 0;
}

/* The fact is an array of addresses, or {addrs: [...], error}. False: it was not read. */
static bool read_resolved(struct shk_row *row, json_t **addrs_p)
{
    static const char key[] = "net.hostname_resolves_to";
    struct shk_fact fact;
    const char *error = NULL;
    enum shk_look look = shk_read(row, key, &fact);
    *addrs_p = NULL;
    if (look == SHK_LOOK_ABSENT)
        return true;
    if (look != SHK_LOOK_PRESENT)
        return false;
    if (json_is_array(fact.value)) {
        *addrs_p = fact.value;
        return true;
    }
    if (shk_look_member_array(fact.value, "addrs", addrs_p) == SHK_LOOK_PRESENT ||
        shk_look_member_text(fact.value, "error", &error) == SHK_LOOK_PRESENT)
        return true;
    shk_row_lacks(row, key, "%s has an unexpected form", key);
    return false;
}

static void unreachable(struct shk_row *row, bool resolves, bool all_loopback)
{
    shk_row_verdict(row, resolves && all_loopback ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = resolves ? "hostname-resolves-to-loopback" : NULL;
    shk_row_text(&row->expected, "an address that other nodes can reach");
    shk_row_text(&row->why, resolves ? "processes that advertise their host name (Gloo, MPI, "
                                       "torchrun) tell their peers a loopback address"
                                     : "processes that look up their own host name fail");
    shk_row_fix(row, "hosts-file", NULL);
}

static void eval_hostname(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_hostname, "host name");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    json_t *addrs = NULL, *addr;
    size_t i, loop = 0, count = 0;
    row.fact = "net.hostname_resolves_to";
    if (!read_resolved(&row, &addrs)) {
        shk_row_end(findings, &row);
        return;
    }
    json_array_foreach(addrs, i, addr)
    {
        const char *text = json_string_value(addr);
        count += text != NULL;
        loop += text && is_loopback(text);
        if (!text)
            shk_row_lacks(&row, "net.hostname_resolves_to", "an address has an unexpected form");
    }
    shk_strbuf_array(&sb, addrs, 4);
    shk_row_text(&row.observed, "%s", count ? shk_strbuf_text(&sb) : "does not resolve");
    shk_strbuf_free(&sb);
    if (count && !loop) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else if (shk_read_job_nodes(&row) <= 1) {
        shk_row_na(findings, &row, "matters only between nodes");
        return;
    } else if (count || !shk_row_lacking(&row)) {
        unreachable(&row, count > 0, loop == count);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_hostname = {
    .id = "net.hostname",
    .diagnosis = "hostname-resolves-to-loopback",
    .family = "network",
    .title = "The host name resolves to an address that peers can reach",
    .eval = eval_hostname,
    .doc =
        "Facts: net.hostname_resolves_to, job.nodes.\n"
        "Nothing but loopback is FAIL in a job of several nodes, loopback beside other addresses "
        "or none at all WARN; n/a on one node.",
};

struct choice {
    const char *name; /* first interface that NCCL would take */
    bool usable;
};

/* Interfaces that have an address and are up; remembered for the row when that was not read. */
static bool is_candidate(struct shk_row *row, const json_t *iface)
{
    json_t *addrs = NULL;
    bool up = false;
    const char *name = NULL;
    (void)shk_read_told_text(row, "net.ifaces", iface, "name", &name);
    (void)shk_read_told_bool(row, "net.ifaces", iface, "up", &up);
    if (name && up)
        (void)shk_read_told_array(row, "net.ifaces", iface, "addrs", &addrs);
    return json_array_size(addrs) > 0;
}

/* Remembered for the row when an address was not read. */
static void read_addresses(struct shk_row *row, const json_t *iface)
{
    size_t i;
    json_t *addr;
    const char *text = NULL;
    json_array_foreach(json_object_get(iface, "addrs"), i, addr)(void)
        shk_read_member_text(row, "net.ifaces", addr, "addr", &text);
}

/* NCCL's own order without NCCL_SOCKET_IFNAME: names that begin with "ib", then anything but
 * docker, lo and virbr, then docker, then lo (src/misc/socket.cc). */
static struct choice nccl_choice(struct shk_row *row, const json_t *ifaces)
{
    for (int round = 0; round < 4; round++) {
        size_t i;
        json_t *iface;
        json_array_foreach((json_t *)ifaces, i, iface)
        {
            const char *name = shk_member_name(iface, "name");
            if (!is_candidate(row, iface))
                continue;
            bool docker = strncmp(name, "docker", 6) == 0, lo = strncmp(name, "lo", 2) == 0;
            bool other = !docker && !lo && strncmp(name, "virbr", 5) != 0;
            if ((round == 0 && strncmp(name, "ib", 2) == 0) || (round == 1 && other) ||
                (round == 2 && docker) || (round == 3 && lo)) {
                read_addresses(row, iface);
                return (struct choice){name, round < 2 && !shk_iface_is_bridge(name) &&
                                                 shk_iface_is_routable(iface)};
            }
        }
    }
    return (struct choice){NULL, false};
}

static void bad_choice(struct shk_row *row, const struct choice *choice)
{
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = !choice->name ? "no-usable-socket-interface" : "socket-ifname-picks-virtual";
    shk_row_text(&row->why,
                 choice->name ? "NCCL would choose %s, which other nodes cannot reach"
                              : "no interface is up with an address",
                 choice->name);
    shk_row_fix(row, "choose-interface", NULL);
}

static void eval_choice(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_socket_choice, "bootstrap interface");
    json_t *ifaces = NULL;
    const char *set = NULL;
    row.fact = "net.ifaces";
    row.source = "NVIDIA/nccl:src/misc/socket.cc";
    (void)shk_read_env(&row, shk_variable("socket-interface"), &set);
    if (set && strlen(set) > 1) {
        shk_row_na(findings, &row, "%s chooses it", shk_variable("socket-interface"));
        return;
    }
    if (shk_read_job_nodes(&row) == 1) {
        shk_row_na(findings, &row, "one node: any interface will do");
        return;
    }
    if (shk_read_array(&row, "net.ifaces", &ifaces) != SHK_LOOK_PRESENT) {
        shk_row_lacks(&row, "net.ifaces", "the network interfaces were not read");
        shk_row_end(findings, &row);
        return;
    }
    struct choice choice = nccl_choice(&row, ifaces);
    shk_row_text(&row.observed, "%s", choice.name ? choice.name : "none");
    if (choice.usable) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.why, "NCCL takes it when nothing is set");
    } else if (!shk_profile_is_rdma(ctx->profile)) {
        shk_read_profile(&row);
        shk_row_na(findings, &row, "matters only between nodes");
        return;
    } else if (!shk_row_lacking(&row)) {
        bad_choice(&row, &choice);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_socket_choice = {
    .id = "net.bootstrap",
    .diagnosis = "no-usable-socket-interface",
    .family = "network",
    .title = "The interface that NCCL would choose for its bootstrap",
    .eval = eval_choice,
    .doc = "Fact: net.ifaces. Applies NCCL's own order when {socket-interface} is not set.\n"
           "WARN on fabric profiles when that would be a bridge, or nothing.",
};
