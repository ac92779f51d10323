#include "core/text/uses.h"
#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/job/launch.h"

#include <string.h>

static const struct shk_field use_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_use, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what the program uses them for; the name in the source"},
    {.key = "variables",
     SHK_AT(struct shk_use, variables),
     .kind = SHK_FIELD_TEXTS,
     .required = true,
     .check = shk_valid_variable,
     .doc = "the variables; where one is enough, the first that is set counts. A name that ends in "
            "`_` means all variables with that prefix"},
    {.key = "number",
     SHK_AT(struct shk_use, number),
     .kind = SHK_FIELD_BOOL,
     .doc = "of `job.*`: the fact is a number"},
    {.key = "separators",
     SHK_AT(struct shk_use, separators),
     .kind = SHK_FIELD_TEXT,
     .doc = "of `code-path.*`: the characters between the items; without it, there is one"},
    {.key = "library",
     SHK_AT(struct shk_use, library),
     .kind = SHK_FIELD_TEXT,
     .doc =
         "of `code-path.*`: what the file name of the library that reads it begins with; without "
         "it, the loader does for all"},
    {.key = "bare",
     SHK_AT(struct shk_use, bare),
     .kind = SHK_FIELD_BOOL,
     .doc = "of `code-path.*`: an item without `/` is a name, not a path"},
};

static int use_check(const struct shk_fill *fill, const struct shk_yaml_node *node, const void *row)
{
    const struct shk_use *use = row;
    bool path = strncmp(use->name, "code-path.", 10) == 0;
    if (!path && (use->separators || use->library || use->bare))
        return shk_fill_error(fill, node, "separators", "is for a code-path");
    return 0;
}

const struct shk_record shk_record_use = {
    .what = "use",
    .type = "struct shk_use",
    .size = sizeof(struct shk_use),
    SHK_FIELDS(use_fields),
    .check = use_check,
    .name_offset = offsetof(struct shk_use, name),
    .place_offset = offsetof(struct shk_use, place),
};

#define LAUNCHER_LIST(member, text)                                                                \
    {                                                                                              \
        .key = #member, SHK_AT(struct shk_launch, member), .kind = SHK_FIELD_TEXTS,                \
        .check = shk_valid_variable, .doc = text                                                   \
    }

static const struct shk_field launcher_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_launch, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "of the row; rows that a site adds are tried first"},
    {.key = "name",
     SHK_AT(struct shk_launch, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "value of the fact `job.launcher`"},
    {.key = "title",
     SHK_AT(struct shk_launch, title),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "the name its users know"},
    {.key = "allocation",
     SHK_AT(struct shk_launch, allocation),
     .kind = SHK_FIELD_BOOL,
     .doc = "not a launcher: the job of a process that no launcher started"},
    {.key = "inherits",
     SHK_AT(struct shk_launch, inherits),
     .kind = SHK_FIELD_BOOL,
     .doc = "its processes have the PMIx of the one task that started them all"},
    {.key = "needs",
     SHK_AT(struct shk_launch, needs),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_variable,
     .doc = "variables that are all set in its processes"},
    {.key = "processes",
     SHK_AT(struct shk_launch, processes),
     .kind = SHK_FIELD_TEXTS,
     .doc = "without `needs`, for `shakedown hang`: titles of its ranks' processes, as `ps` shows "
            "them; `*` stands for any characters"},
    LAUNCHER_LIST(nodes, "how many nodes; of several variables the first that is set counts"),
    LAUNCHER_LIST(ranks, "how many processes"),
    LAUNCHER_LIST(rank, "which of them this one is, from 0"),
    LAUNCHER_LIST(local_rank, "which of this node's"),
    LAUNCHER_LIST(local_ranks, "how many on this node"),
    LAUNCHER_LIST(tasks_per_node, "without `local_ranks`: how many on each node, as in `4(x2),1`"),
    LAUNCHER_LIST(node_rank, "which node of `tasks_per_node` this one is, from 0"),
    LAUNCHER_LIST(address, "the host of rank 0, for tasks that meet without PMIx"),
    LAUNCHER_LIST(port, "a port there that the job uses; shakedown takes one beside it"),
    LAUNCHER_LIST(nodelist, "without `address`: the nodes, as `nid[01-04]`; the first has rank 0"),
    LAUNCHER_LIST(job, "what tells this job from others on the same hosts; all that are set count"),
};

const struct shk_record shk_record_launcher = {
    .what = "launcher",
    .type = "struct shk_launch",
    .size = sizeof(struct shk_launch),
    SHK_FIELDS(launcher_fields),
    .name_offset = offsetof(struct shk_launch, key),
    .place_offset = offsetof(struct shk_launch, place),
};
