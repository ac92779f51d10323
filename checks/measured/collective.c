/* Results of the collectives that were run. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/job/collective_why.h"
#include "checks/measured/unaligned.h"

#include <string.h>

struct results {
    const char *asked; /* transport that must run; NULL */
    bool asked_seen;
    const struct shk_facts *facts;
    struct shk_findings *findings;
    unsigned count;
    const struct shk_check_context *ctx;
};

static struct shk_fact member(const struct results *results, const char *transport, int len,
                              const char *name, bool *there_p)
{
    struct shk_fact fact = {0};
    char *key = shk_strf("collective.%.*s.%s", len, transport, name);
    *there_p = key && shk_facts_get(results->facts, key, &fact) && fact.state == SHK_FACT_PRESENT;
    free(key);
    return fact;
}

static const char *member_text(const struct results *r, const char *t, int len, const char *name)
{
    bool there;
    struct shk_fact fact = member(r, t, len, name, &there);
    return there ? json_string_value(fact.value) : NULL;
}

static long long member_int(const struct results *r, const char *t, int len, const char *name)
{
    bool there;
    struct shk_fact fact = member(r, t, len, name, &there);
    return there && json_is_integer(fact.value) ? json_integer_value(fact.value) : -1;
}

/* Sizes that were verified: number with no wrong element, number with some, fastest busbw. */
struct sweep {
    size_t right, wrong, unverified;
    double busbw;
    long long bytes;
};

static struct sweep sweep_of(const struct results *r, const char *t, int len)
{
    struct sweep sweep = {0};
    bool there;
    size_t i;
    json_t *size;
    struct shk_fact fact = member(r, t, len, "sizes", &there);
    json_array_foreach(there ? fact.value : NULL, i, size)
    {
        long long wrong = -1;
        (void)shk_look_member_int(size, "wrong", &wrong); /* else it was not verified */
        double busbw = json_number_value(json_object_get(size, "busbw"));
        sweep.right += wrong == 0;
        sweep.wrong += wrong > 0;
        sweep.unverified += wrong < 0;
        if (busbw > sweep.busbw) {
            sweep.busbw = busbw;
            (void)shk_look_member_int(size, "bytes", &sweep.bytes);
        }
    }
    return sweep;
}

/* GPU memory over the fabric: what was asked for and what is so, and host memory beside it. */
static void say_hmem(struct shk_strbuf *sb, const struct results *r, const char *t, int len)
{
    bool there;
    struct shk_fact hmem = member(r, t, len, "hmem", &there);
    const json_t *effective = there ? json_object_get(hmem.value, "effective") : NULL;
    const char *iface = there ? shk_member_words(hmem.value, "iface") : NULL;
    const char *sums = there ? shk_member_words(hmem.value, "sums") : NULL;
    const char *p2p = shk_member_words(effective, "p2p");
    const char *answer = shk_member_words(effective, "answer");
    struct sweep host = sweep_of(r, "fabric", (int)strlen("fabric"));
    const char *usual = member_text(r, "fabric", (int)strlen("fabric"), "provider");
    if (!iface)
        return;
    shk_strbuf_printf(sb, "; %s, sums %s; peer to peer: effective %s (asked to require it: %s)",
                      iface, sums ? sums : "not told", p2p ? p2p : "not told",
                      answer ? answer : "not told");
    if (host.busbw > 0)
        shk_strbuf_printf(sb, "; host memory over %s: best %.2f GB/s", usual ? usual : "the fabric",
                          host.busbw);
}

/* Nodes that did it at the same time, each among its own ranks; 0 for a transport across nodes. */
static size_t nodes_at_once(const struct results *r, const char *t, int len)
{
    bool there;
    struct shk_fact fact = member(r, t, len, "by_node", &there);
    return there ? json_array_size(fact.value) : 0;
}

/* A size that does not say how long its messages were, or how fast it was. */
static void read_sizes(struct shk_row *row, const struct results *r, const char *t, int len)
{
    bool there;
    size_t i;
    json_t *size;
    long long bytes;
    double busbw;
    struct shk_fact fact = member(r, t, len, "sizes", &there);
    json_array_foreach(there ? fact.value : NULL, i, size)
    {
        (void)shk_read_member_int(row, "collective.*.sizes", size, "bytes", &bytes);
        (void)shk_read_member_number(row, "collective.*.sizes", size, "busbw", &busbw);
    }
}

/* It ended well only when it was run once more, in ranks that no other transport had used. */
static void say_shared(struct shk_row *row, const struct results *r, const char *t, int len)
{
    const char *status = NULL, *reason = NULL;
    json_t *shared = NULL;
    char key[96];
    snprintf(key, sizeof key, "collective.%.*s.shared", len, t);
    if (row->verdict != SHK_PASS || shk_look(r->facts, key, NULL) == SHK_LOOK_MISSING ||
        shk_read_object(row, key, &shared) != SHK_LOOK_PRESENT ||
        shk_read_member_text(row, key, shared, "status", &status) != SHK_LOOK_PRESENT ||
        shk_read_member_text(row, key, shared, "reason", &reason) != SHK_LOOK_PRESENT)
        return;
    shk_row_verdict(row, SHK_WARN, SHK_TESTED);
    shk_row_text(&row->why,
                 "correct in ranks of its own, but %s before, after other transports over the same "
                 "communicator: %s",
                 status, reason);
}

static void say_ok(struct shk_row *row, const struct results *r, const char *t, int len)
{
    struct shk_strbuf more = SHK_STRBUF_INIT;
    struct sweep sweep = sweep_of(r, t, len);
    long long ranks = -1;
    char key[96];
    snprintf(key, sizeof key, "collective.%.*s.ranks", len, t);
    bool counted = shk_read_int(row, key, &ranks) == SHK_LOOK_PRESENT;
    const char *provider = member_text(r, t, len, "provider");
    const char *self = member_text(r, t, len, "self");
    if (!provider && len == 3 && strncmp(t, "shm", 3) == 0)
        provider = "own shared memory, without libfabric";
    if (sweep.wrong) {
        shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
        shk_row_text(&row->why, "wrong elements at %zu of %zu sizes", sweep.wrong,
                     sweep.wrong + sweep.right + sweep.unverified);
    } else if (!sweep.right || sweep.unverified) {
        shk_row_text(&row->why, sweep.right ? "some sizes were not verified"
                                            : "it ended, but no verified size was recorded");
    } else if (self) {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row->observed, "%s", self);
    } else if (!counted) {
        shk_row_text(&row->why, "the number of ranks was not recorded");
    } else if (ranks == 1) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "an all-reduce needs at least two ranks: use --ranks 2 or more");
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        read_sizes(row, r, t, len);
        char *bytes = shk_bytes_text(sweep.bytes);
        if (strcmp(t, "fabric-hmem") == 0)
            say_hmem(&more, r, t, len);
        size_t nodes = nodes_at_once(r, t, len);
        if (nodes > 1)
            shk_strbuf_printf(&more, ", on the slowest of %zu nodes", nodes);
        shk_row_text(&row->observed,
                     "%lld ranks%s%s, %zu sizes verified; best %.2f GB/s busbw at %s%s", ranks,
                     provider ? " over " : "", provider ? provider : "", sweep.right, sweep.busbw,
                     bytes ? bytes : "", shk_strbuf_text(&more));
        free(bytes);
        say_shared(row, r, t, len);
    }
    shk_strbuf_free(&more);
}

static bool is_asked(const struct results *r, const char *t, int len)
{
    return r->asked && strlen(r->asked) == (size_t)len && strncmp(r->asked, t, (size_t)len) == 0;
}

/* Was asked for by name, so that it does not apply here is no excuse. `apply`: does its cause? */
static void say_cannot(struct shk_row *row, const struct results *r, const char *t, int len,
                       const char *reason, bool apply)
{
    const char *cause = member_text(r, t, len, "cause");
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row->observed, "cannot run here");
    shk_row_text(&row->expected, "an all-reduce over %.*s, as requested", len, t);
    shk_row_text(&row->why, "%s", reason);
    shk_row_fix(row, "transports", NULL);
    row->diagnosis = shk_collective_cause_key(cause);
    if (!row->diagnosis || !apply)
        row->diagnosis = "transport-cannot-run";
}

/* A driver that does not start, and no device that it could drive: nothing is broken. */
static bool nothing_to_drive(const struct results *r, const char *t, const char *cause)
{
    static const char *const starts[] = {"driver", "driver-mismatch", "driver-not-ready",
                                         "visible-devices", NULL};
    bool amd = strcmp(t, "rccl") == 0;
    if (!cause || !shk_list_has(starts, cause))
        return false;
    return amd ? shk_device_count(r->facts, "gpu-amd") == 0 : shk_gpu_count(r->facts) == 0;
}

static void say_failed(struct shk_row *row, const struct results *r, const char *t, int len,
                       const char *status)
{
    const char *reason = member_text(r, t, len, "reason");
    const char *phase = member_text(r, t, len, "phase");
    const char *cause = member_text(r, t, len, "cause");
    long long rank = member_int(r, t, len, "rank");
    if (nothing_to_drive(r, t, cause) && is_asked(r, t, len)) {
        say_cannot(row, r, t, len, reason ? reason : "no device here that it could drive", false);
        return;
    }
    if (nothing_to_drive(r, t, cause)) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "no device here that it could drive%s%s", reason ? "; " : "",
                     reason ? reason : "");
        return;
    }
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    if (rank >= 0)
        shk_row_text(&row->observed, "%s: rank %lld%s%s", status, rank, phase ? " in phase " : "",
                     phase ? phase : "");
    else
        shk_row_text(&row->observed, "%s%s%s", status, phase ? " in phase " : "",
                     phase ? phase : "");
    shk_row_text(&row->why, "%s", reason ? reason : "no reason was recorded");
    shk_row_text(&row->expected, "every element right on every rank");
    shk_collective_why(row, r->facts, t, len, rank);
}

static void judge(struct shk_row *row, const struct results *r, const char *t, int len,
                  const char *status)
{
    static const char *const failures[] = {"wrong", "failed", "timeout", "crashed", NULL};
    if (strcmp(status, "ok") == 0) {
        say_ok(row, r, t, len);
    } else if (shk_list_has(failures, status)) {
        say_failed(row, r, t, len, status);
    } else if (strcmp(status, "starved") == 0) {
        const char *reason = member_text(r, t, len, "reason");
        shk_row_lacks(row, row->fact, "%s", reason ? reason : "the node was too busy");
    } else if (strcmp(status, "na") == 0) {
        const char *reason = member_text(r, t, len, "reason");
        reason = reason ? reason : "it does not apply here";
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "%s", reason);
        if (is_asked(r, t, len))
            say_cannot(row, r, t, len, reason, true);
    } else {
        shk_row_text(&row->why, "unknown status \"%s\"", status);
    }
}

/* The row of a transport that any fact speaks of. */
static void one_result(struct results *r, const char *t)
{
    int len = (int)strlen(t);
    char *key = shk_strf("collective.%s.status", t), *setting = shk_strf("all-reduce (%s)", t);
    struct shk_row row =
        shk_row_begin(r->ctx, &shk_check_collective, setting ? setting : "all-reduce");
    const char *status = NULL;
    row.fact = key;
    row.required = is_asked(r, t, len) ? SHK_ASKED : 1;
    r->asked_seen |= is_asked(r, t, len);
    r->count++;
    enum shk_look look = shk_read_text(&row, key ? key : "collective", &status);
    if (look == SHK_LOOK_PRESENT)
        judge(&row, r, t, len, status);
    else if (look == SHK_LOOK_ABSENT)
        shk_row_text(&row.why, "no status was recorded");
    shk_row_end(r->findings, &row);
    bool there;
    struct shk_fact nodes = member(r, t, len, "nodes", &there);
    if (there)
        shk_row_nodes(r->findings, nodes.value, NULL);
    shk_unaligned_row(r->ctx, r->findings, t, status && strcmp(status, "ok") == 0);
    free(setting);
    free(key);
}

static int note_transport(const struct shk_fact *fact, void *arg)
{
    const char *t = fact->key + strlen("collective."), *dot = strchr(t, '.');
    char name[64];
    if (!dot || (size_t)(dot - t) >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(dot - t), t);
    return json_object_set_new(arg, name, json_true());
}

/* Asked for, and nothing tells how it went: there was no chance to run it. */
static void not_run(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    char *setting = shk_strf("all-reduce (%s)", ctx->transport_asked);
    struct shk_row row = shk_row_begin(ctx, &shk_check_collective, setting ? setting : "asked");
    row.required = SHK_ASKED;
    shk_row_lacks(&row, "collective.*",
                  "--transport %s was requested but not run: it needs a "
                  "live node, and no --quick",
                  ctx->transport_asked);
    shk_row_end(findings, &row);
    free(setting);
}

/* Does libfabric offer it: "verbs" is "verbs;ofi_rxm", too. */
static bool is_offered(const json_t *providers, const char *name)
{
    const json_t *item;
    size_t i, len = strcspn(name, ";,");
    json_array_foreach((json_t *)providers, i, item)
    {
        const char *offered = json_string_value(item);
        if (!offered ||
            (strncmp(offered, name, len) == 0 && (!offered[len] || offered[len] == ';')))
            return true;
    }
    return false;
}

/* The same for --provider, which only the fabric all-reduce takes. That libfabric does not offer it
 * decides without a run. */
static void provider_not_run(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    json_t *providers = NULL;
    const char *status = NULL, *asked = ctx->provider_asked;
    enum shk_look look = shk_look_text(ctx->facts, "collective.fabric.status", &status);
    if (look == SHK_LOOK_PRESENT && strcmp(status, "na") != 0)
        return;
    struct shk_row row = shk_row_begin(ctx, &shk_check_collective, "provider asked for");
    row.required = SHK_ASKED;
    row.fact = "fabric.providers";
    shk_row_text(&row.expected, "an all-reduce over provider %s", asked);
    if (shk_read_texts(&row, "fabric.providers", &providers) == SHK_LOOK_PRESENT &&
        !is_offered(providers, asked)) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "provider-unusable";
        shk_row_text(&row.observed, "not offered");
        shk_row_text(&row.why, "--provider %s was requested, but libfabric does not offer it here",
                     asked);
    } else {
        shk_row_lacks(&row, "collective.fabric.status",
                      "--provider %s was requested, but the all-reduce over libfabric was not run: "
                      "that takes a live node, no --quick, and --transport fabric or auto",
                      asked);
    }
    shk_row_end(findings, &row);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct results results = {
        .asked = ctx->transport_asked, .facts = ctx->facts, .findings = findings, .ctx = ctx};
    json_t *transports = json_object(), *unused;
    const char *name;
    (void)shk_facts_each(ctx->facts, "collective.", note_transport, transports);
    json_object_foreach(transports, name, unused) one_result(&results, name);
    json_decref(transports);
    if (results.asked && !results.asked_seen)
        not_run(ctx, findings);
    if (ctx->provider_asked)
        provider_not_run(ctx, findings);
    if (results.count)
        return;
    struct shk_row row = shk_row_begin(ctx, &shk_check_collective, "all-reduce");
    row.required = 1;
    shk_row_text(&row.why, "no collective was run: shakedown run without --quick does");
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_collective = {
    .id = "collective.allreduce",
    .diagnosis = "all-reduce-failed",
    .family = "collectives",
    .of_job = true,
    .title = "A real all-reduce gives the correct result",
    .eval = eval,
    .doc =
        "Facts: collective.<transport>.{status, reason, rank, phase, ranks, provider, sizes, "
        "cause, unaligned, hmem, shared}.\n"
        "pass needs status ok, at least two ranks, at least one size, and zero wrong elements "
        "at each size. A failure names rank and phase. Nothing run is UNKNOWN; a provider that was "
        "asked for by name and that libfabric does not offer (fabric.providers) is FAIL. One that "
        "went wrong after others over the same communicator (shared), and right in ranks of its "
        "own, is WARN. Wrong "
        "sums that a "
        "library makes of 16-bit data at no multiple of 4 bytes have a row of their own: WARN, or "
        "a note when they happen in symmetric windows only and nothing here uses those.",
};
