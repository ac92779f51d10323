/* Levels of distance that a user asks NCCL for: do they ever apply on this machine? */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/readers/readers_together.h"
#include "core/text/uses.h"

#include <string.h>

/* NCCL's path types, near first (NVIDIA/nccl:src/graph/topo.h). Host bridges of one NUMA node hang
 * on one CPU there, so what nvidia-smi calls NODE is PHB to NCCL. */
static const char *const levels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                     "P2C", "PXN", "PHB", "SYS", NULL};

/* The old numbers (NVIDIA/nccl:src/graph/paths.cc, levelsOldToNew). */
static const char *const numbers[] = {"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"};

static int level_rank(const char *name)
{
    for (int i = 0; levels[i]; i++)
        if (strcmp(levels[i], name) == 0)
            return i;
    return -1;
}

/* Rank of a value as NCCL reads it; -1: it does not. */
static int level_of(const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value)
        return level_rank(value);
    if (number < 0)
        return -1;
    return level_rank(numbers[number < 5 ? number : 5]);
}

/* Rank of a distance in the facts. */
static int distance_rank(const char *class)
{
    if (strncmp(class, "NV", 2) == 0 || strcmp(class, "XGMI") == 0)
        return level_rank("NVL");
    return level_rank(strcmp(class, "NODE") == 0 ? "PHB" : class);
}

struct reach {
    struct shk_tally tally;
    unsigned within;
    const char *nearest; /* class of the nearest */
};

static void reach_of(const json_t *list, int rank, struct reach *reach)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)list, i, row)
    {
        const char *class = NULL;
        enum shk_look look = shk_look_member_text(row, "class", &class);
        if (look == SHK_LOOK_ABSENT)
            continue; /* there is no NIC to be near to */
        if (look != SHK_LOOK_PRESENT) {
            shk_tally_unread(&reach->tally, "entry %zu", i);
            continue;
        }
        int distance = distance_rank(class);
        shk_tally_good(&reach->tally);
        reach->within += distance <= rank;
        if (!reach->nearest || distance < distance_rank(reach->nearest))
            reach->nearest = class;
    }
}

static const struct level {
    const char *use, *list, *between, *else_;
} asked[] = {
    {"distance-limit.nic", "topology.gpus", "GPUs to their nearest NIC",
     "GPUDirect RDMA is never used, all messages are copied through "
     "the host"},
    {"distance-limit.peer", "topology.peers", "pairs of GPUs",
     "peer access is never used, GPUs exchange data through shared memory"},
};

static void judge_level(struct shk_row *row, const struct level *level, int rank,
                        const struct reach *reach)
{
    shk_row_text(&row->observed, "%s holds for %u of %u %s", levels[rank], reach->within,
                 reach->tally.good, level->between);
    if (reach->within || reach->tally.unread)
        return;
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->expected, "at least %s, the nearest here", reach->nearest);
    shk_row_text(&row->why, "%s", level->else_);
    shk_row_fix(row, "level-too-near", "name", shk_variable(level->use), "level",
                levels[distance_rank(reach->nearest)], NULL);
}

static void level_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                      const struct level *level)
{
    char setting[160];
    snprintf(setting, sizeof setting, "%s on this machine", shk_variable(level->use));
    struct shk_row row = shk_row_begin(ctx, &shk_check_levels, setting);
    struct reach reach = {.tally = SHK_TALLY_INIT};
    const char *value = NULL;
    json_t *list = NULL;
    row.fact = level->list;
    row.source = "NVIDIA/nccl:src/graph/paths.cc";
    (void)shk_read_env_used(&row, shk_variable(level->use), &value);
    (void)shk_read_gpu_count(&row);
    int rank = value ? level_of(value) : -1;
    if (value && rank < 0) {
        shk_row_na(findings, &row, "%s is no level", value);
        return;
    }
    enum shk_look look = shk_read_array(&row, level->list, &list);
    reach_of(list, rank, &reach);
    bool any = shk_tally_judge(&reach.tally, &row, SHK_WARN, SHK_EFFECT, level->list, "distances");
    if (!any && (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT)) {
        shk_row_na(findings, &row, "nothing here is judged by it");
    } else {
        if (any && value)
            judge_level(&row, level, rank, &reach);
        shk_row_end(findings, &row);
    }
    shk_tally_free(&reach.tally);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const char *value = "";
        enum shk_look look = shk_look_env(ctx->facts, shk_variable(asked[i].use), &value);
        bool set = look == SHK_LOOK_FAILED || (look == SHK_LOOK_PRESENT && *value);
        if (set && shk_gpu_count(ctx->facts) != 0)
            level_row(ctx, findings, &asked[i]);
    }
}

const struct shk_check shk_check_levels = {
    .id = "topology.level",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "The distances set for NCCL occur on this machine",
    .eval = eval,
    .doc = "Facts: env.{distance-limit.nic}, env.{distance-limit.peer}, topology.gpus, "
           "topology.peers.\n"
           "A level below the nearest GPU and NIC, or pair of GPUs, is WARN: it switches direct "
           "access off altogether. NODE counts as PHB, as NCCL has it. No row when not set.",
};
