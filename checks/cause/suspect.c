/* What a few facts point to, although more would be needed for a verdict. A check that could not
 * read all that it rests on says UNKNOWN. Here it is asked once more, with the usual value in
 * the place of what nobody looked at: what it then calls bad is a suspicion. */
#include "checks/cause/clue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Weights of a suspicion, as those of clues: FAIL and WARN of an effect that was read, and one that
 * rests on a variable of which nobody knows whether it is set, or on mere settings. */
enum { FAIL_WEIGHT = 62, WARN_WEIGHT = 55, ENV_WEIGHT = 40 };

/* Gates of checks, and what is so on most nodes: a machine of one's own, outside a container, with
 * a kernel of today. Nothing here is a fault in itself, and no device is made up. */
static const struct {
    const char *key, *text; /* text NULL: absent */
} usual[] = {
    {"host.virt", "none"},         {"host.container", "none"},
    {"host.kernel", "6.8.0"},      {"probe.env.status", "ok"},
    {"kernel.memory_peers", NULL}, {"job.scheduler", NULL},
    {"job.launcher", NULL},        {"job.pmix", NULL},
    {"cuda.error", NULL},          {"nvml.error", NULL},
    {"topology.nccl_file", NULL},  {"plugin.requested", NULL},
};

/* Kinds of NICs and accelerators: where one was counted, the others are not there. */
static const char *const kinds[] = {"cxi", "efa", "mlx5", "gpu-nvidia", "gpu-amd", "neuron"};
enum { FIRST_GPU = 3, KINDS = sizeof kinds / sizeof *kinds };

static bool looked(const struct shk_facts *facts, const char *key)
{
    return shk_look(facts, key, NULL) != SHK_LOOK_MISSING;
}

/* Is a NIC (accelerator) of another kind there? */
static bool other_kind(const struct shk_facts *facts, bool nics)
{
    char key[64];
    for (size_t i = nics ? 0 : FIRST_GPU; i < (nics ? FIRST_GPU : KINDS); i++) {
        snprintf(key, sizeof key, "pci.count.%s", kinds[i]);
        if (shk_look(facts, key, NULL) == SHK_LOOK_PRESENT)
            return true;
    }
    return false;
}

/* How many of a kind the list of devices has; -1: there is no list. */
static long long listed(const struct shk_facts *facts, const char *kind)
{
    json_t *devices = NULL, *device;
    size_t i;
    long long count = 0;
    if (shk_look_array(facts, "pci.devices", &devices) != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(devices, i, device)
    {
        const char *text = NULL;
        (void)shk_look_member_text(device, "kind", &text);
        count += text && strcmp(text, kind) == 0;
    }
    return count;
}

static int count_kind(struct shk_facts *all, const struct shk_facts *facts, size_t kind)
{
    char key[64];
    long long count = listed(facts, kinds[kind]);
    snprintf(key, sizeof key, "pci.count.%s", kinds[kind]);
    if (looked(facts, key))
        return 0;
    if (count > 0)
        return shk_facts_int(all, key, count, NULL, "assumed");
    if (count < 0 && !other_kind(facts, kind < FIRST_GPU))
        return 0;
    return shk_facts_absent(all, key, "assumed", "not counted");
}

/* A copy with the usual values where nobody looked; NULL: out of memory. */
static struct shk_facts *completed(const struct shk_facts *facts)
{
    struct shk_facts *all = shk_facts_create();
    int rc = all ? shk_facts_merge(all, facts) : -ENOMEM;
    for (size_t i = 0; !rc && i < sizeof usual / sizeof *usual; i++)
        if (!looked(facts, usual[i].key))
            rc = shk_facts_text(all, usual[i].key, usual[i].text, "assumed");
    for (size_t i = 0; !rc && i < KINDS; i++)
        rc = count_kind(all, facts, i);
    if (rc) {
        shk_facts_destroy(all);
        return NULL;
    }
    return all;
}

/* Of one check: what it asked for and nobody had looked at. */
struct unread {
    struct shk_strbuf names; /* the first few */
    size_t count;
    bool env; /* a variable among them */
};

static void find_unread(struct unread *unread, const struct shk_facts *facts, json_t *asked)
{
    const char *key;
    json_t *value;
    json_object_foreach(asked, key, value)
    {
        bool env = strncmp(key, "env.", 4) == 0;
        if (strncmp(key, "env.file.", 9) == 0 || looked(facts, key))
            continue;
        if (env && shk_env_known(facts))
            continue;
        unread->env |= env;
        if (++unread->count <= 3)
            shk_strbuf_printf(&unread->names, "%s%s", unread->names.len ? ", " : "", key);
    }
}

static bool was_found(const struct shk_findings *findings, const struct shk_finding *row)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if ((f->verdict == SHK_FAIL || f->verdict == SHK_WARN) && strcmp(f->id, row->id) == 0 &&
            strcmp(f->setting, row->setting) == 0)
            return true;
    }
    return false;
}

/* Is it about a variable of which nothing is known? */
static bool about_unknown(const struct shk_clue_source *src, const struct shk_finding *row)
{
    const struct shk_setting *setting = shk_config_setting(src->config, row->setting);
    const char *value;
    if (!setting || !setting->variable)
        return false;
    return shk_look_env(src->facts, row->setting, &value) == SHK_LOOK_MISSING;
}

static int weight_of(const struct shk_finding *row, const struct unread *unread)
{
    if (unread->env || row->evidence >= SHK_DECLARED)
        return ENV_WEIGHT;
    return row->verdict == SHK_FAIL ? FAIL_WEIGHT : WARN_WEIGHT;
}

static void suspect(struct shk_clues *clues, const struct shk_clue_source *src,
                    const struct shk_finding *row, const struct unread *unread)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const struct shk_diagnosis *entry = shk_config_diagnosis(src->config, row->diagnosis);
    int weight = weight_of(row, unread);
    if (!entry)
        return;
    shk_strbuf_puts(&sb, row->setting);
    if (row->observed && *row->observed)
        shk_strbuf_printf(&sb, " = %s", row->observed);
    if (row->why && *row->why)
        shk_strbuf_printf(&sb, ": %s", row->why);
    if (unread->count)
        shk_strbuf_printf(&sb, " (not read, taken as usual: %s", shk_strbuf_text(&unread->names));
    if (unread->count > 3)
        shk_strbuf_printf(&sb, " and %zu more", unread->count - 3);
    if (unread->count)
        shk_strbuf_putc(&sb, ')');
    shk_clue_add(clues, entry->key, weight, weight > ENV_WEIGHT, shk_strbuf_take(&sb));
}

static void ask(struct shk_clues *clues, const struct shk_clue_source *src,
                const struct shk_check *check, struct shk_check_context *ctx,
                struct shk_facts *usual_facts)
{
    struct shk_findings *rows = shk_findings_create();
    json_t *asked = json_object();
    struct unread unread = {.names = SHK_STRBUF_INIT};
    if (rows && asked) {
        shk_facts_watch(usual_facts, asked);
        check->eval(ctx, rows);
        shk_facts_watch(usual_facts, NULL);
        find_unread(&unread, src->facts, asked);
    } else {
        clues->failed = true;
    }
    for (size_t i = 0; rows && i < shk_findings_count(rows); i++) {
        const struct shk_finding *row = shk_findings_at(rows, i);
        bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
        if (bad && row->diagnosis && !row->general && !was_found(src->findings, row) &&
            !about_unknown(src, row))
            suspect(clues, src, row, &unread);
    }
    shk_strbuf_free(&unread.names);
    json_decref(asked);
    shk_findings_destroy(rows);
}

void shk_clues_from_checks(struct shk_clues *clues, const struct shk_clue_source *src)
{
    struct shk_facts *facts = completed(src->facts);
    size_t count;
    const struct shk_check *const *checks = shk_checks(&count);
    if (!facts) {
        clues->failed = true;
        return;
    }
    struct shk_check_context ctx = {
        .facts = facts,
        .config = src->config,
        .profile = shk_profile_detect(src->config, facts, NULL, NULL),
    };
    for (size_t i = 0; i < count; i++)
        if (strncmp(checks[i]->id, "log.", 4) != 0)
            ask(clues, src, checks[i], &ctx, facts);
    shk_facts_destroy(facts);
}
