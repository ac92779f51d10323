#include "checks/coded.h"
#include "checks/resolve.h"

#include <string.h>

static bool is_loopback(const char *addr)
{
    return strncmp(addr, "127.", 4) == 0 || strcmp(addr, "::1") == 0;
}

/* The fact is an array of addresses, or {addrs: [...], error}. */
static const json_t *resolved(const struct shk_facts *facts, const char **error_p)
{
    struct shk_fact fact;
    *error_p = NULL;
    if (shk_look(facts, "net.hostname_resolves_to", &fact) != SHK_LOOK_PRESENT)
        return NULL;
    if (json_is_array(fact.value))
        return fact.value;
    *error_p = shk_member_text(fact.value, "error");
    return json_object_get(fact.value, "addrs");
}

static void eval_hostname(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_hostname, "host name");
    const char *error;
    const json_t *addrs = resolved(ctx->facts, &error);
    long long nodes = shk_job_nodes(ctx->facts);
    bool many = nodes > 1 || (nodes < 0 && shk_profile_is_rdma(ctx->profile));
    struct shk_fact fact;
    row.fact = "net.hostname_resolves_to";
    bool absent = shk_look(ctx->facts, row.fact, &fact) == SHK_LOOK_ABSENT;
    if (!addrs && !absent && !error) {
        shk_row_unread(findings, &row, ctx->facts, "net.hostname_resolves_to");
        return;
    }
    size_t i, loop = 0, count = 0;
    json_t *addr;
    json_array_foreach((json_t *)addrs, i, addr)
    {
        const char *text = json_string_value(addr);
        count += text != NULL;
        loop += text && is_loopback(text);
    }
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_array(&sb, addrs, 4);
    shk_row_text(&row.observed, "%s", count ? shk_strbuf_text(&sb) : "does not resolve");
    shk_strbuf_free(&sb);
    if (count && !loop) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else if (!many) {
        shk_row_na(findings, &row, "matters only between nodes");
        return;
    } else {
        shk_row_verdict(&row, nodes > 1 && count && loop == count ? SHK_FAIL : SHK_WARN,
                        SHK_EFFECT);
        shk_row_text(&row.expected, "an address that other nodes can reach");
        row.diagnosis = count ? "hostname-resolves-to-loopback" : NULL;
        shk_row_text(&row.why, count ? "processes that advertise their host name (Gloo, MPI, "
                                       "torchrun) tell their peers a loopback address"
                                     : "processes that look up their own host name fail");
        shk_row_text(&row.fix, "name the real address of the host in /etc/hosts, or set "
                               "MASTER_ADDR and GLOO_SOCKET_IFNAME");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_hostname = {
    .id = "net.hostname",
    .family = "network",
    .title = "The host name resolves to an address that peers can reach",
    .eval = eval_hostname,
    .doc = "Facts: net.hostname_resolves_to, job.nodes.\n"
           "Loopback is FAIL in a job of several nodes, n/a on one node.",
};

struct choice {
    const char *name; /* first interface that NCCL would take */
    bool usable;
};

/* NCCL's own order without NCCL_SOCKET_IFNAME: names that begin with "ib", then anything but
 * docker, lo and virbr, then docker, then lo (src/misc/socket.cc). */
static struct choice nccl_choice(const json_t *ifaces)
{
    for (int round = 0; round < 4; round++) {
        size_t i;
        json_t *iface;
        json_array_foreach((json_t *)ifaces, i, iface)
        {
            const char *name = shk_member_text(iface, "name");
            if (!name || !shk_member_bool(iface, "up", true) ||
                json_array_size(json_object_get(iface, "addrs")) == 0)
                continue;
            bool docker = strncmp(name, "docker", 6) == 0, lo = strncmp(name, "lo", 2) == 0;
            bool other = !docker && !lo && strncmp(name, "virbr", 5) != 0;
            if ((round == 0 && strncmp(name, "ib", 2) == 0) || (round == 1 && other) ||
                (round == 2 && docker) || (round == 3 && lo))
                return (struct choice){name, round < 2 && !shk_iface_is_bridge(name) &&
                                                 shk_iface_is_routable(iface)};
        }
    }
    return (struct choice){NULL, false};
}

static void eval_choice(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_socket_choice, "bootstrap interface");
    const json_t *ifaces = shk_facts_get_array(ctx->facts, "net.ifaces");
    const char *set = shk_env_get(ctx->facts, "NCCL_SOCKET_IFNAME");
    row.fact = "net.ifaces";
    row.source = "NVIDIA/nccl:src/misc/socket.cc";
    if (set && strlen(set) > 1) {
        shk_row_na(findings, &row, "NCCL_SOCKET_IFNAME chooses it");
        return;
    }
    if (shk_job_nodes(ctx->facts) == 1) {
        shk_row_na(findings, &row, "one node: any interface will do");
        return;
    }
    if (!ifaces) {
        shk_row_unread(findings, &row, ctx->facts, "net.ifaces");
        return;
    }
    struct choice choice = nccl_choice(ifaces);
    bool fabric = shk_profile_is_rdma(ctx->profile);
    shk_row_text(&row.observed, "%s", choice.name ? choice.name : "none");
    if (choice.usable) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.why, "NCCL takes it when nothing is set");
    } else if (!fabric) {
        shk_row_na(findings, &row, "matters only between nodes");
        return;
    } else {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = !choice.name ? "no-usable-socket-interface" : "socket-ifname-picks-virtual";
        shk_row_text(&row.why,
                     choice.name ? "NCCL would choose %s, which other nodes cannot reach"
                                 : "no interface is up with an address",
                     choice.name);
        shk_row_text(&row.fix, "export NCCL_SOCKET_IFNAME=<interface of the cluster network>");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_socket_choice = {
    .id = "net.bootstrap",
    .family = "network",
    .title = "The interface that NCCL would choose for its bootstrap",
    .eval = eval_choice,
    .doc = "Fact: net.ifaces. Applies NCCL's own order when NCCL_SOCKET_IFNAME is not set.\n"
           "WARN on fabric profiles when that would be a bridge, or nothing.",
};
