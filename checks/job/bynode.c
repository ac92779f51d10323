/* All-reduces within nodes, on every node at once: nodes that are slower, or have no GPU. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/order.h"

#include <stdlib.h>
#include <string.h>

/* Fewer nodes than this have no majority. */
#define BYNODE_MIN 3

/* Small messages measure latency, which scatters: as in layers.c. */
#define BYNODE_BYTES (4LL << 20)

struct bynode {
    const json_t *rows;
    double *busbw; /* of nodes that are right */
    size_t right;
    bool compared; /* there are enough of them, with long messages */
    double least, median, most;
};

static bool bynode_is(const json_t *row, const char *status)
{
    const char *text = NULL;
    return shk_look_member_text(row, "status", &text) == SHK_LOOK_PRESENT &&
           strcmp(text, status) == 0;
}

static double bynode_busbw(const json_t *row)
{
    return json_number_value(json_object_get(row, "busbw"));
}

/* A node that is right but does not say how fast, or says nothing at all. */
static void bynode_lacks(struct shk_row *row, const char *key, const json_t *node)
{
    const char *status = NULL;
    double busbw;
    long long bytes;
    if (shk_read_member_text(row, key, node, "status", &status) != SHK_LOOK_PRESENT ||
        strcmp(status, "ok") != 0)
        return;
    (void)shk_read_member_number(row, key, node, "busbw", &busbw);
    (void)shk_read_member_int(row, key, node, "bytes", &bytes);
}

static bool bynode_read(struct bynode *all, const json_t *rows)
{
    size_t i;
    json_t *row;
    bool brief = false;
    all->rows = rows;
    all->busbw = calloc(json_array_size(rows) + 1, sizeof *all->busbw);
    if (!all->busbw)
        return false;
    json_array_foreach((json_t *)rows, i, row)
    {
        if (!bynode_is(row, "ok") || !json_is_number(json_object_get(row, "busbw")))
            continue;
        all->busbw[all->right++] = bynode_busbw(row);
        long long bytes = 0;
        brief = brief || shk_look_member_int(row, "bytes", &bytes) != SHK_LOOK_PRESENT ||
                bytes < BYNODE_BYTES;
    }
    all->compared = all->right >= BYNODE_MIN && !brief;
    qsort(all->busbw, all->right, sizeof *all->busbw, shk_order_double);
    if (all->right) {
        all->least = all->busbw[0];
        all->most = all->busbw[all->right - 1];
        all->median = all->busbw[(all->right - 1) / 2];
    }
    return true;
}

static bool bynode_slow(const struct bynode *all, const json_t *row)
{
    return all->compared && bynode_is(row, "ok") && json_is_number(json_object_get(row, "busbw")) &&
           bynode_busbw(row) * 2 < all->median;
}

/* Nodes that are slow or where it does not apply, with the reason. */
static void bynode_name(const struct bynode *all, struct shk_strbuf *sb, json_t *names)
{
    size_t i, said = 0;
    json_t *row;
    json_array_foreach((json_t *)all->rows, i, row)
    {
        const char *node = shk_member_words(row, "node"), *reason = shk_member_words(row, "reason");
        bool slow = bynode_slow(all, row);
        if (!node || !(slow || bynode_is(row, "na")))
            continue;
        json_array_append_new(names, json_string(node));
        if (++said > 8)
            continue;
        shk_strbuf_printf(sb, "%s%s: ", said > 1 ? "; " : "", node);
        if (slow)
            shk_strbuf_printf(sb, "%.2f GB/s (median %.2f)", bynode_busbw(row), all->median);
        else
            shk_strbuf_puts(sb, reason ? reason : "it does not apply there");
    }
    if (said > 8)
        shk_strbuf_printf(sb, "; and %zu more", said - 8);
}

static void bynode_judge(struct shk_row *row, const struct bynode *all, json_t *names)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bynode_name(all, &sb, names);
    if (json_array_size(names)) {
        shk_row_verdict(row, SHK_WARN, SHK_TESTED);
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
        shk_row_text(&row->expected, "on every node, with at least half of the median busbw");
        shk_row_text(&row->why, "a job is as fast as its slowest node");
        shk_row_fix(row, "gpus-compare", NULL);
    } else {
        shk_row_text(&row->observed, "%zu nodes, %.2f to %.2f GB/s at best", all->right, all->least,
                     all->most);
        if (all->compared) {
            shk_row_verdict(row, SHK_PASS, SHK_TESTED);
        } else {
            shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
            shk_row_text(&row->why, "not compared: fewer than 3 nodes, or messages below 4 MiB");
        }
    }
    shk_strbuf_free(&sb);
}

struct bynode_walk {
    const struct shk_check_context *ctx;
    struct shk_findings *findings;
};

static int bynode_each(const struct shk_fact *fact, void *arg)
{
    const struct bynode_walk *walk = arg;
    struct shk_findings *findings = walk->findings;
    size_t i;
    json_t *node, *rows = NULL;
    const char *transport = fact->key + strlen("collective."), *dot = strchr(transport, '.');
    struct bynode all = {0};
    if (!dot || strcmp(dot, ".by_node") != 0)
        return 0;
    char *setting = shk_strf("nodes (%.*s)", (int)(dot - transport), transport);
    struct shk_row row = shk_row_begin(walk->ctx, &shk_check_by_node, setting ? setting : "nodes");
    json_t *names = json_array();
    row.fact = fact->key;
    enum shk_look look = shk_read_array(&row, fact->key, &rows);
    json_array_foreach(rows, i, node) bynode_lacks(&row, fact->key, node);
    if (look != SHK_LOOK_PRESENT) {
        shk_row_end(findings, &row);
    } else if (bynode_read(&all, rows) && json_array_size(rows) > 1 && all.right) {
        bynode_judge(&row, &all, names);
        shk_row_end(findings, &row);
        if (json_array_size(names))
            shk_row_nodes(findings, names, NULL);
    }
    free(all.busbw);
    free(setting);
    json_decref(names);
    return 0;
}

static void eval_by_node(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct bynode_walk walk = {.ctx = ctx, .findings = findings};
    (void)shk_facts_each(ctx->facts, "collective.", bynode_each, &walk);
}

const struct shk_check shk_check_by_node = {
    .id = "collective.by_node",
    .family = "collectives",
    .of_job = true,
    .title = "GPUs within each node are as fast as on the other nodes",
    .eval = eval_by_node,
    .doc = "Fact: collective.<transport>.by_node, of transports that stay within a node and that "
           "every node runs at the same time. Nodes that fail are in the row of the all-reduce.\n"
           "WARN: a node whose best busbw, of messages of 4 MiB or more, is below half of the "
           "median of three nodes or more, and a node where the transport does not apply although "
           "it does on others. No row when it "
           "applies nowhere, or for a single node; n/a where fewer nodes or shorter messages "
           "leave nothing to compare.",
};
