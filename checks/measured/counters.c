/* Error counters of network devices that moved while something was measured. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/job/across.h"

#include <string.h>

#define COUNTERS_SHOWN 8

/* What one node's devices counted, over all measurements. */
struct counted {
    const char *name;
    double link, resent, missed;
    double down, perhaps; /* links that the collective used, or of which that is not known */
};

struct counters {
    struct counted *nodes;
    size_t count, devices;
    unsigned measurements, with_errors;
    struct shk_strbuf moved;
    size_t shown, more;
};

static struct counted *counted_node(struct counters *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->nodes[i].name, name) == 0)
            return &c->nodes[i];
    struct counted *more = realloc(c->nodes, (c->count + 1) * sizeof *more);
    if (!more)
        return NULL;
    c->nodes = more;
    more[c->count] = (struct counted){.name = name};
    return &more[c->count++];
}

static void counted_show(struct counters *c, const char *node, const char *scope, const char *name,
                         long long by)
{
    if (c->shown == COUNTERS_SHOWN)
        c->more++;
    else
        shk_strbuf_printf(&c->moved, "%s%s: %s %s +%lld", c->shown++ ? "; " : "", node, scope, name,
                          by);
}

enum counted_use { COUNTED_UNUSED, COUNTED_USED, COUNTED_UNKNOWN };

/* The entry of that name, of an interface or an RDMA device; NULL: the node that speaks for the job
 * has none. */
static const json_t *counted_device(const struct shk_facts *facts, const char *name, size_t len)
{
    static const char *const keys[] = {"net.ifaces", "rdma.devices"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        json_t *list = NULL, *entry;
        size_t i;
        (void)shk_look_array(facts, keys[k], &list);
        json_array_foreach(list, i, entry)
        {
            const char *its = shk_member_name(entry, "name");
            if (strncmp(its, name, len) == 0 && its[len] == '\0')
                return entry;
        }
    }
    return NULL;
}

/* Does a rail of this name, or of this card, carry the collective? Domains of verbs and EFA are
 * called as their device, with what they do behind it: mlx5_0-dgram, rdmap16s27-rdm. */
static enum counted_use counted_by_rail(const struct shk_facts *facts, const json_t *rail,
                                        const char *scope, const json_t *device)
{
    const char *domain = shk_member_name(rail, "domain"), *at = NULL, *pci = NULL;
    size_t len = strcspn(scope, "/");
    if (strncmp(domain, scope, len) == 0 && (domain[len] == '\0' || domain[len] == '-'))
        return COUNTED_USED;
    if (!device)
        return COUNTED_UNKNOWN; /* of a node whose devices have other names */
    if (shk_look_member_text(device, "pci", &pci) == SHK_LOOK_PRESENT &&
        shk_look_member_text(rail, "pci", &at) == SHK_LOOK_PRESENT)
        return strcmp(at, pci) == 0 ? COUNTED_USED : COUNTED_UNUSED;
    return counted_device(facts, domain, strcspn(domain, "-")) ? COUNTED_UNUSED : COUNTED_UNKNOWN;
}

static enum counted_use counted_use(const struct shk_facts *facts, const char *scope)
{
    const json_t *device = counted_device(facts, scope, strcspn(scope, "/"));
    enum counted_use use = COUNTED_UNUSED;
    json_t *rails = NULL, *rail;
    size_t i;
    if (shk_look_array(facts, "collective.fabric.rails", &rails) != SHK_LOOK_PRESENT)
        return COUNTED_UNKNOWN;
    json_array_foreach(rails, i, rail)
    {
        enum counted_use by = counted_by_rail(facts, rail, scope, device);
        if (by == COUNTED_USED)
            return by;
        use = by == COUNTED_UNKNOWN ? by : use;
    }
    return use;
}

static void counted_down(struct counted *of, const struct shk_row *row, const char *scope,
                         double by)
{
    enum counted_use use = counted_use(row->ctx->facts, scope);
    *(use == COUNTED_USED ? &of->down : use == COUNTED_UNKNOWN ? &of->perhaps : &of->link) += by;
}

/* True when it speaks of an error rather than of load. */
static bool counted_moved(struct counters *c, struct shk_row *row, const char *key,
                          const char *node, const json_t *moved)
{
    const char *scope = NULL, *name = NULL, *kind = NULL;
    long long by = 0;
    if (shk_read_member_text(row, key, moved, "scope", &scope) != SHK_LOOK_PRESENT ||
        shk_read_member_text(row, key, moved, "counter", &name) != SHK_LOOK_PRESENT ||
        shk_read_member_text(row, key, moved, "kind", &kind) != SHK_LOOK_PRESENT ||
        shk_read_member_int(row, key, moved, "by", &by) != SHK_LOOK_PRESENT || by <= 0 ||
        strcmp(scope, "tcp") == 0)
        return false;
    struct counted *of = counted_node(c, node);
    if (!of || strcmp(kind, "busy") == 0)
        return false;
    of->link += strcmp(kind, "link") == 0 ? (double)by : 0;
    of->resent += strcmp(kind, "resent") == 0 ? (double)by : 0;
    of->missed += strcmp(kind, "missed") == 0 ? (double)by : 0;
    if (strcmp(kind, "down") == 0)
        counted_down(of, row, scope, (double)by);
    counted_show(c, node, scope, name, by);
    return true;
}

static bool counters_node(struct counters *c, struct shk_row *row, const char *key,
                          const json_t *counters)
{
    const char *node = shk_member_name(counters, "node");
    json_t *list = NULL, *item;
    bool errors = false;
    size_t i;
    if (shk_read_member_array(row, key, counters, "moved", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item) errors |= counted_moved(c, row, key, node, item);
    if (shk_read_member_texts(row, key, counters, "read", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item) c->devices +=
            json_is_string(item) && strcmp(json_string_value(item), "tcp") != 0;
    if (shk_read_member_array(row, key, counters, "unread", &list) == SHK_LOOK_PRESENT)
        json_array_foreach(list, i, item)
        {
            const char *why = shk_member_words(item, "why");
            const char *scope = shk_member_name(item, "scope");
            if (strcmp(scope, "tcp") != 0)
                shk_row_lacks(row, key, "counters of %s on %s: %s", scope, node,
                              why ? why : "no reason was recorded");
        }
    return errors;
}

static void counters_run(struct counters *c, struct shk_row *row, const char *key,
                         const json_t *run)
{
    json_t *list = NULL, *item;
    long long quiet = 0;
    bool errors = false;
    size_t i;
    if (shk_read_member_array(row, key, run, "counters", &list) != SHK_LOOK_PRESENT ||
        shk_read_member_int(row, key, run, "quiet", &quiet) != SHK_LOOK_PRESENT)
        return;
    json_array_foreach(list, i, item) errors |= counters_node(c, row, key, item);
    c->devices += quiet > 0 ? (size_t)quiet : 0;
    c->measurements += json_array_size(list) > 0 || quiet > 0;
    c->with_errors += errors;
}

/* Nodes of which a link that was used went down; without one those where it may have been. */
static json_t *counters_down(const struct counters *c, bool *used_p)
{
    json_t *used = json_array(), *perhaps = json_array();
    for (size_t i = 0; i < c->count; i++) {
        if (c->nodes[i].down > 0)
            json_array_append_new(used, json_string(c->nodes[i].name));
        else if (c->nodes[i].perhaps > 0)
            json_array_append_new(perhaps, json_string(c->nodes[i].name));
    }
    *used_p = json_array_size(used) > 0;
    json_decref(*used_p ? perhaps : used);
    return *used_p ? used : perhaps;
}

/* Nodes whose own link has errors; else the one node that takes part in most of what was sent again
 * or missed: each lost packet is counted at its sender, at its receiver, or at both. */
static json_t *counters_blame(const struct counters *c)
{
    json_t *names = json_array();
    double most = 0, second = 0;
    size_t best = 0;
    for (size_t i = 0; i < c->count; i++) {
        double all = c->nodes[i].resent + c->nodes[i].missed;
        if (c->nodes[i].link > 0)
            json_array_append_new(names, json_string(c->nodes[i].name));
        second = all > most ? most : all > second ? all : second;
        best = all > most ? i : best;
        most = all > most ? all : most;
    }
    if (!json_array_size(names) && c->count > 2 && second > 0 && most >= 1.5 * second)
        json_array_append_new(names, json_string(c->nodes[best].name));
    for (size_t i = 0, none = !json_array_size(names); none && i < c->count; i++)
        if (c->nodes[i].resent + c->nodes[i].missed > 0)
            json_array_append_new(names, json_string(c->nodes[i].name));
    return names;
}

static void counters_bad(struct counters *c, struct shk_row *row)
{
    bool repeated = c->with_errors > 1;
    if (c->more)
        shk_strbuf_printf(&c->moved, "; and %zu more", c->more);
    shk_row_verdict(row, repeated ? SHK_WARN : SHK_NOTE, SHK_TESTED);
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&c->moved));
    shk_row_text(&row->expected, "no error counted while the collective runs");
    if (repeated)
        shk_row_text(&row->why,
                     "errors in %u of %u measurements: what is lost on the way is sent "
                     "again, often only when a timer expires, and all ranks wait; the "
                     "sender counts that, whoever lost it",
                     c->with_errors, c->measurements);
    else
        shk_row_text(&row->why, "in one of %u measurements", c->measurements);
    shk_row_fix(row, "counters", NULL);
    row->diagnosis = repeated ? "network-errors" : NULL;
}

static void counters_lost_link(struct counters *c, struct shk_row *row, bool used)
{
    if (c->more)
        shk_strbuf_printf(&c->moved, "; and %zu more", c->more);
    shk_row_verdict(row, used ? SHK_FAIL : SHK_WARN, SHK_TESTED);
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&c->moved));
    shk_row_text(&row->expected, "links that stay up while the collective runs");
    shk_row_text(&row->why, used
                                ? "a link that the collective used went down during the run: what "
                                  "is on its way is lost, and a job ends or hangs when it stays "
                                  "down for longer than its transport waits"
                                : "a link went down during the run; whether the collective used it "
                                  "is not known");
    shk_row_fix(row, "moved-link", NULL);
    row->diagnosis = "network-link-flaps";
}

static void counters_row(struct shk_row *row, struct shk_findings *findings, const char *key)
{
    struct counters c = {.moved = SHK_STRBUF_INIT};
    json_t *runs = NULL, *run, *names = NULL;
    bool used = false;
    size_t i;
    if (shk_read_array(row, key, &runs) == SHK_LOOK_PRESENT)
        json_array_foreach(runs, i, run) counters_run(&c, row, key, run);
    if (runs && !c.measurements)
        shk_row_lacks(row, key, "no node reported its devices' counters");
    names = counters_down(&c, &used);
    if (json_array_size(names)) {
        counters_lost_link(&c, row, used); /* what was lost is its echo */
    } else if (c.with_errors) {
        counters_bad(&c, row);
        json_decref(names);
        names = counters_blame(&c);
    } else if (c.devices) {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row->observed, "none moved in %u measurement%s", c.measurements,
                     c.measurements == 1 ? "" : "s");
    } else if (runs) {
        shk_row_lacks(row, key, "no network device with counters was found");
    }
    shk_row_end(findings, row);
    if (json_array_size(names))
        shk_row_nodes(findings, names, NULL);
    json_decref(names);
    shk_strbuf_free(&c.moved);
    free(c.nodes);
}

static void eval_counters(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const struct shk_across across = {.check = &shk_check_counters,
                                             .member = "counters",
                                             .setting = "network error counters",
                                             .nodes = 2,
                                             .judge = counters_row};
    shk_across_eval(&across, ctx, findings);
}

const struct shk_check shk_check_counters = {
    .id = "collective.counters",
    .family = "collectives",
    .of_job = true,
    .title = "No network device counts errors during the collective",
    .eval = eval_counters,
    .doc = "Fact: collective.<transport>.counters, member counters: error and retry counters of "
           "interfaces, RDMA ports and Slingshot devices, before and after each measurement; only "
           "what moved counts.\nErrors of a link, and what was sent again or missed, are a note "
           "when they show in one measurement and WARN in two or more. A link that the collective "
           "used "
           "(a rail) and that went down during it is FAIL; WARN when the rails are not known. "
           "Counters of load (no room at "
           "the receiver, discards) are not judged. Named are nodes whose own link has errors, "
           "else the one that takes part in most of the losses. A counter that was not read is "
           "UNKNOWN.",
};
