#include "checks/coded.h"

#include <string.h>
#include <strings.h>

static void eval_count(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_nic_count, "NICs");
    const char *kind = shk_profile_nic_kind(ctx->profile);
    row.fact = "pci.count.*";
    if (!kind || ctx->profile->nics <= 0) {
        shk_row_na(findings, &row, "profile %s does not say how many", ctx->profile->name);
        return;
    }
    long long count = shk_device_count(ctx->facts, kind);
    if (count < 0) {
        row.required = 1;
        shk_row_text(&row.why, "the devices of this node were not read");
        shk_row_end(findings, &row);
        return;
    }
    shk_row_text(&row.observed, "%lld %s", count, kind);
    shk_row_text(&row.expected, "%d", ctx->profile->nics);
    if (count >= ctx->profile->nics) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else {
        bool efa = strcmp(kind, "efa") == 0;
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = efa ? "efa-nic-count-low" : "rdma-device-partially-exposed";
        shk_row_text(&row.why, "bandwidth falls with every NIC that is missing");
        shk_row_text(&row.fix, efa ? "attach all EFA interfaces at launch of the instance"
                                   : "pass all NICs into the job or container, or report the node");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nic_count = {
    .id = "nic.count",
    .family = "devices",
    .title = "As many NICs as the profile says",
    .eval = eval_count,
    .doc = "Facts: pci.count.{cxi, efa, mlx5}.\nFewer than the profile's number is FAIL.",
};

struct links {
    unsigned up, down;
    struct shk_strbuf names;
};

static void note_link(struct links *links, const char *name, long long port, const char *state,
                      bool up)
{
    if (up) {
        links->up++;
        return;
    }
    links->down++;
    if (links->names.len > 160)
        return;
    shk_strbuf_printf(&links->names, "%s%s", links->names.len ? ", " : "", name);
    if (port >= 0)
        shk_strbuf_printf(&links->names, " port %lld", port);
    shk_strbuf_printf(&links->names, " (%s)", state);
}

static void rdma_links(const struct shk_facts *facts, const char *driver, struct links *links)
{
    size_t i, j;
    json_t *device, *port;
    json_array_foreach(shk_facts_get_array(facts, "rdma.devices"), i, device)
    {
        const char *name = shk_member_text(device, "name");
        const char *its = shk_member_text(device, "driver");
        if (!name || (driver && its && strncmp(its, driver, strlen(driver)) != 0))
            continue;
        json_array_foreach(json_object_get(device, "ports"), j, port)
        {
            const char *state = shk_member_text(port, "state");
            if (state)
                note_link(links, name, shk_member_int(port, "port", -1), state,
                          strcasestr(state, "active") != NULL);
        }
    }
}

static void cxi_links(const struct shk_facts *facts, struct links *links)
{
    size_t i;
    json_t *device;
    json_array_foreach(shk_facts_get_array(facts, "cxi.devices"), i, device)
    {
        const char *name = shk_member_text(device, "name");
        const char *state = shk_member_text(device, "link_state");
        if (name && state)
            note_link(links, name, -1, state,
                      strcasecmp(state, "up") == 0 || strcasecmp(state, "running") == 0);
    }
}

static void eval_link(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_nic_link, "NIC links");
    const char *kind = shk_profile_nic_kind(ctx->profile);
    struct links links = {.names = SHK_STRBUF_INIT};
    row.fact = "rdma.devices, cxi.devices";
    if (!kind) {
        shk_row_na(findings, &row, "profile %s needs no RDMA NIC", ctx->profile->name);
        return;
    }
    bool cxi = strcmp(kind, "cxi") == 0;
    if (cxi)
        cxi_links(ctx->facts, &links);
    else
        rdma_links(ctx->facts, kind, &links);
    if (!links.up && !links.down) {
        shk_row_unread(findings, &row, ctx->facts, cxi ? "cxi.devices" : "rdma.devices");
        return;
    }
    shk_row_text(&row.observed, "%u up, %u down", links.up, links.down);
    shk_row_text(&row.expected, "all up");
    shk_row_verdict(&row, links.down ? SHK_FAIL : SHK_PASS, SHK_EFFECT);
    if (links.down) {
        shk_row_text(&row.why, "down: %s", shk_strbuf_text(&links.names));
        shk_row_text(&row.fix, "drain the node and have the link repaired, or leave the NIC out");
    }
    shk_strbuf_free(&links.names);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nic_link = {
    .id = "nic.link",
    .family = "devices",
    .title = "The links of the fabric's NICs are up",
    .eval = eval_link,
    .doc = "Facts: rdma.devices[].ports[].state, cxi.devices[].link_state.\n"
           "Any link of the profile's kind of NIC that is not up is FAIL.",
};
