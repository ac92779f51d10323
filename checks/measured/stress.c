/* GPUs under load, where that was asked for: wrong data, and who slows down. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>

/* As for copies one at a time: like GPUs differ by a few percent. */
static const double part_of_first = 0.8;

static const char key[] = "collective.peer.stress";

struct stress {
    struct shk_row *row;
    struct shk_tally tally;
    json_t *nodes;
    bool wrong;
    double seconds;
};

static void one_gpu(struct stress *s, const char *node, const json_t *gpu)
{
    const char *pci = shk_member_name(gpu, "pci");
    double first = 0, least = 0;
    long long bad = 0;
    bool read = shk_read_member_int(s->row, key, gpu, "bad", &bad) == SHK_LOOK_PRESENT;
    read &= shk_read_member_number(s->row, key, gpu, "seconds", &s->seconds) == SHK_LOOK_PRESENT;
    read &= shk_read_member_number(s->row, key, gpu, "first", &first) == SHK_LOOK_PRESENT;
    read &= shk_read_member_number(s->row, key, gpu, "least", &least) == SHK_LOOK_PRESENT;
    if (bad > 0)
        shk_tally_bad(&s->tally, "%s: %lld wrong words at %s", node, bad, pci);
    else if (read && least < part_of_first * first)
        shk_tally_bad(&s->tally, "%s: %s from %.0f down to %.0f GB/s", node, pci, first, least);
    else if (read)
        shk_tally_good(&s->tally);
    else
        shk_tally_unread(&s->tally, "%s", pci);
    s->wrong |= bad > 0;
    if ((bad > 0 || (read && least < part_of_first * first)) &&
        !shk_array_has(s->nodes, node, false))
        json_array_append_new(s->nodes, json_string(node));
}

static void tell(struct stress *s, struct shk_findings *findings)
{
    struct shk_row *row = s->row;
    (void)shk_tally_judge(&s->tally, row, s->wrong ? SHK_FAIL : SHK_WARN, SHK_TESTED, key, "GPUs");
    if (s->tally.bad) {
        row->diagnosis = s->wrong ? "gpu-wrong-data" : NULL;
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&s->tally.bad_names));
        shk_row_text(&row->expected, "what was sent, and 80 %% of the first round's rate");
        shk_row_text(&row->why, s->wrong ? "data was corrupted on its way through a GPU"
                                         : "the GPU slows down under load: heat, power, or another "
                                           "program");
        shk_row_fix(row, s->wrong ? "stress-wrong" : "stress-slow", NULL);
    } else if (s->tally.good) {
        shk_row_text(&row->observed, "%u GPUs for %.0f s, no wrong word", s->tally.good,
                     s->seconds);
    }
    shk_row_end(findings, row);
    if (json_array_size(s->nodes))
        shk_row_nodes(findings, s->nodes, NULL);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_stress, "GPUs under load");
    struct stress s = {.row = &row, .tally = SHK_TALLY_INIT, .nodes = json_array()};
    json_t *nodes = NULL, *node, *gpus = NULL, *gpu;
    size_t i, k;
    row.fact = key;
    if (shk_look(ctx->facts, key, NULL) == SHK_LOOK_MISSING) {
        shk_row_drop(&row); /* nobody asked for it, or no GPU got so far */
    } else {
        if (shk_read_array(&row, key, &nodes) == SHK_LOOK_PRESENT)
            json_array_foreach(nodes, i, node)
            {
                if (shk_read_member_array(&row, key, node, "gpus", &gpus) == SHK_LOOK_PRESENT)
                    json_array_foreach(gpus, k, gpu)
                        one_gpu(&s, shk_member_name(node, "node"), gpu);
            }
        tell(&s, findings);
    }
    shk_tally_free(&s.tally);
    json_decref(s.nodes);
}

const struct shk_check shk_check_stress = {
    .id = "gpu.stress",
    .diagnosis = "gpu-wrong-data",
    .family = "collectives",
    .of_job = true,
    .title = "GPUs compute correctly and keep their speed under load (--stress)",
    .eval = eval,
    .doc =
        "Fact: collective.peer.stress: with --stress SEC all GPUs of a node copy at once, within "
        "their memory, to the next GPU and over PCIe both ways; every word is compared.\n"
        "A wrong word is FAIL. A round slower than 80 % of the first one is WARN. Errors and "
        "time at lower clocks meanwhile are in the rows of collective.moved.",
};
