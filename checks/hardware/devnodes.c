/* Device nodes that a job opens: there, and may be opened. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/value/makers.h"

#include <string.h>

static const struct family {
    const char *prefix;    /* of the facts */
    const char *maker;     /* of accelerators; NULL: a NIC */
    const char *kind;      /* of the hardware in pci.count.*; NULL: that of the profile's NIC */
    const char *diagnosis; /* when one may not be opened */
    const char *fix;       /* key in config/fixes */
} families[] = {
    {"dev.kfd", "amd", "gpu-amd", "gpu-device-permission", "render-group"},
    {"dev.dri/renderD", "amd", "gpu-amd", "gpu-device-permission", "render-group"},
    {"dev.nvidia", "nvidia", "gpu-nvidia", "gpu-device-permission", "list-nvidia"},
    {"dev.neuron", "neuron", "neuron", "gpu-device-permission", "list-neuron"},
    {"dev.cxi", NULL, "cxi", NULL, "list-cxi"},
    {"dev.infiniband/uverbs", NULL, NULL, "rdma-device-not-in-container", "list-infiniband"},
};

struct nodes {
    struct shk_tally tally;
    bool any; /* there is one */
    struct shk_strbuf absent;
};

static int note_node(const struct shk_fact *fact, void *arg)
{
    struct nodes *nodes = arg;
    const char *name = fact->key + strlen("dev.");
    bool rw = false;
    if (fact->state == SHK_FACT_ABSENT) {
        shk_strbuf_printf(&nodes->absent, "%s/dev/%s", nodes->absent.len ? ", " : "", name);
        return 0;
    }
    nodes->any = true;
    if (fact->state != SHK_FACT_PRESENT ||
        shk_look_member_bool(fact->value, "rw", &rw) != SHK_LOOK_PRESENT)
        shk_tally_unread(&nodes->tally, "/dev/%s", name);
    else if (rw)
        shk_tally_good(&nodes->tally);
    else
        shk_tally_bad(&nodes->tally, "/dev/%s", name);
    return 0;
}

static const struct shk_maker *maker_of(const struct family *family)
{
    for (size_t i = 0; family->maker && i < SHK_MAKERS; i++)
        if (strcmp(shk_makers[i].name, family->maker) == 0)
            return &shk_makers[i];
    return NULL;
}

/* Nodes that are known not to be there, of those that every job needs. */
static void absent_nodes(const struct shk_row *row, const struct family *family,
                         struct shk_strbuf *names)
{
    const struct shk_maker *maker = maker_of(family);
    for (const char *const *key = maker ? maker->needed : NULL; key && *key; key++)
        if (strncmp(*key, family->prefix, strlen(family->prefix)) == 0 &&
            shk_look(row->ctx->facts, *key, NULL) == SHK_LOOK_ABSENT)
            shk_strbuf_printf(names, "%s/dev/%s", names->len ? ", " : "", *key + strlen("dev."));
}

static void say_no_nic(struct shk_row *row, const char *container, const char *node)
{
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = "rdma-device-not-in-container";
    shk_row_text(&row->expected, "the device nodes of the NICs");
    if (container) {
        shk_row_text(&row->why, "the NICs are on the bus, but the container has no device to use "
                                "them: traffic goes over TCP");
        shk_row_fix(row, "node-pass", "node", node, NULL);
    } else {
        row->diagnosis = NULL;
        shk_row_text(&row->why, "the NICs are on the bus, but have no device to use them: traffic "
                                "goes over TCP");
        shk_row_fix(row, "load-modules", "modules",
                    strstr(node, "cxi") ? "cxi_ss1 cxi_user" : "ib_uverbs", NULL);
    }
}

static void say_no_gpu(struct shk_row *row, const char *container, const struct family *family,
                       const char *names)
{
    static const char *const loads[][3] = {{"nvidia", "nvidia-nodes", NULL},
                                           {"amd", "load-module", "amdgpu"},
                                           {"neuron", "load-module", "neuron"}};
    shk_row_text(&row->expected, "%s", names);
    if (container) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "gpu-device-not-in-container";
        shk_row_text(&row->why, "the accelerators are on the bus, but were not passed into the "
                                "container");
        shk_row_pass_in(row, container, family->maker);
        return;
    }
    /* The tool that comes with NVIDIA's driver makes them when the first program asks. */
    bool later = strcmp(family->maker, "nvidia") == 0, some = !strstr(names, "nvidia0");
    shk_row_verdict(row, !later ? SHK_FAIL : some ? SHK_NOTE : SHK_WARN, SHK_EFFECT);
    row->diagnosis = later ? NULL : "accelerator-driver-missing";
    shk_row_text(&row->why, later ? "the accelerators are on the bus, but nothing has made their "
                                    "device nodes yet"
                                  : "the accelerators are on the bus, but the driver offers no "
                                    "device to use them");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        if (strcmp(loads[i][0], family->maker) == 0)
            shk_row_fix(row, loads[i][1], "module", loads[i][2], NULL);
}

/* Nothing of the family is there, or not all that is needed. */
static bool judge_absent(struct shk_row *row, const struct family *family, bool any)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    const char *container = NULL;
    const char *nic = strcmp(family->prefix, "dev.cxi") == 0 ? "/dev/cxi0" : "/dev/infiniband";
    char *first = shk_strf("%s0", family->prefix);
    absent_nodes(row, family, &names);
    bool none = !family->maker && !any && first &&
                shk_look(row->ctx->facts, first, NULL) == SHK_LOOK_ABSENT;
    free(first);
    (void)shk_look_text(row->ctx->facts, "host.container", &container);
    container = container && strcmp(container, "none") != 0 ? container : NULL;
    if (none)
        say_no_nic(row, container, nic);
    else if (names.len)
        say_no_gpu(row, container, family, shk_strbuf_text(&names));
    if (none || names.len)
        shk_row_text(&row->observed, "no %s", none ? nic : shk_strbuf_text(&names));
    none |= names.len != 0;
    shk_strbuf_free(&names);
    return none;
}

/* A container has some of the NICs' nodes, and known not to have others. */
static bool is_partial(struct shk_row *row, const struct family *family, const struct nodes *nodes)
{
    if (family->maker || !nodes->any || !nodes->absent.len || !shk_container(row->ctx->facts))
        return false;
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = "rdma-device-partially-exposed";
    shk_row_text(&row->observed, "no %s", shk_strbuf_text(&nodes->absent));
    shk_row_text(&row->expected, "the device nodes of all NICs");
    shk_row_text(&row->why, "the container has the device nodes of some NICs only");
    shk_row_fix(row, family->fix, NULL);
    return true;
}

static void judge_access(struct shk_row *row, const struct family *family, struct nodes *nodes)
{
    const struct shk_tally *tally = &nodes->tally;
    if (!nodes->any) {
        shk_row_lacks(row, family->prefix, "nothing looked at /dev/%s*",
                      family->prefix + strlen("dev."));
    } else if (shk_tally_judge(tally, row, SHK_FAIL, SHK_EFFECT, family->prefix, "device nodes") &&
               tally->bad) {
        row->diagnosis = family->diagnosis;
        shk_row_text(&row->observed, "no access: %s", shk_strbuf_text(&tally->bad_names));
        if (family->diagnosis && !family->maker && !shk_container(row->ctx->facts))
            row->diagnosis = "rdma-device-no-permission";
        shk_row_text(&row->expected, "read and write access");
        shk_row_text(&row->why, "this user may not open the device");
        shk_row_fix(row, family->fix, NULL);
    } else {
        shk_row_text(&row->observed, "%s may be opened", tally->good > 1 ? "all" : "it");
    }
}

/* How many devices of the family's hardware: 0 when the row does not apply. */
static long long family_count(struct shk_row *row, const struct family *family, bool any)
{
    const char *kind = family->kind;
    if (kind)
        return shk_read_device_count(row, kind);
    shk_read_profile(row);
    kind = shk_profile_nic_kind(row->ctx->profile);
    if (!kind && row->ctx->profile_doubt && any)
        return -1;
    if (!kind || strcmp(kind, "cxi") == 0)
        return 0;
    return shk_read_device_count(row, kind);
}

/* A node or a count that could not be read makes a row; that nothing looked at either does not. */
static bool has_row(const struct shk_row *row, const struct family *family, long long count,
                    bool any)
{
    char *key = family->kind ? shk_strf("pci.count.%s", family->kind) : NULL;
    bool looked = key && shk_look(row->ctx->facts, key, NULL) != SHK_LOOK_MISSING;
    free(key);
    return count > 0 || (count < 0 && (any || looked));
}

static void eval_family(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const struct family *family)
{
    struct nodes nodes = {.tally = SHK_TALLY_INIT, .absent = SHK_STRBUF_INIT};
    char *setting = shk_strf("/dev/%s", family->prefix + strlen("dev."));
    struct shk_row row = shk_row_begin(ctx, &shk_check_dev_access, setting ? setting : "/dev");
    row.fact = family->prefix;
    (void)shk_facts_each(ctx->facts, family->prefix, note_node, &nodes);
    long long count = family_count(&row, family, nodes.any);
    if (has_row(&row, family, count, nodes.any)) {
        bool partial = !nodes.tally.bad && is_partial(&row, family, &nodes);
        if (!partial && (count < 0 || !judge_absent(&row, family, nodes.any)))
            judge_access(&row, family, &nodes);
        shk_row_end(findings, &row);
    }
    free(row.unread_why);
    shk_tally_free(&nodes.tally);
    shk_strbuf_free(&nodes.absent);
    free(setting);
}

static void eval_access(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        eval_family(ctx, findings, &families[i]);
}

const struct shk_check shk_check_dev_access = {
    .id = "devices.access",
    .diagnosis = "device-node-unusable",
    .family = "devices",
    .title = "The device nodes of accelerators and NICs exist and are accessible",
    .eval = eval_access,
    .doc = "Facts: dev.<node>.rw, pci.count.*, host.container.\n"
           "A node of hardware that is on the bus and may not be opened for reading and writing is "
           "FAIL. No node at all: for accelerators FAIL in a container (with the option of its "
           "engine) and where no driver made them, WARN where NVIDIA's tools make them on demand; "
           "for NICs WARN, as traffic then goes over TCP; and WARN in a container that has the "
           "nodes of "
           "some NICs, and is known not to have those of others.",
};
