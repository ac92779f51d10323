#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#include <string.h>

static const char *const diagnosis_actors[] = {"user", "admin", "user, admin"};

static const char *const diagnosis_worlds[] = {"efa",    "cxi",       "verbs", "nvidia", "amd",
                                               "neuron", "container", "ib",    "roce"};

static bool diagnosis_valid_world(const char *text, struct shk_why *why)
{
    for (size_t i = 0; i < SHK_COUNT(diagnosis_worlds); i++)
        if (strcmp(text, diagnosis_worlds[i]) == 0)
            return true;
    snprintf(why->text, sizeof why->text,
             "not one of efa, cxi, verbs, nvidia, amd, neuron, container");
    return false;
}

static const char *const diagnosis_scopes[] = {"node", "launch"};

static const struct shk_field diagnosis_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_diagnosis, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "what findings and log signatures point to"},
    {.key = "title",
     SHK_AT(struct shk_diagnosis, title),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "the cause in one line"},
    {.key = "explanation",
     SHK_AT(struct shk_diagnosis, explanation),
     .kind = SHK_FIELD_LINES,
     .required = true,
     .doc = "two or three sentences for a user"},
    {.key = "shows",
     SHK_AT(struct shk_diagnosis, shows),
     .kind = SHK_FIELD_LINES,
     .doc = "symptoms: log lines, behaviour"},
    {.key = "like",
     SHK_AT(struct shk_diagnosis, like),
     .kind = SHK_FIELD_LINES,
     .doc =
         "what messages of any program say where this is the cause: phrases between commas, with "
         "which lines are compared that no signature knows"},
    {.key = "confirm",
     SHK_AT(struct shk_diagnosis, confirm),
     .kind = SHK_FIELD_LINES,
     .doc = "command or observation that confirms it"},
    {.key = "fix",
     SHK_AT(struct shk_diagnosis, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one shell line that fixes it, ready to run"},
    {.key = "advice",
     SHK_AT(struct shk_diagnosis, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "what to do, in words; required when there is no fix"},
    {.key = "who",
     SHK_AT(struct shk_diagnosis, who),
     .kind = SHK_FIELD_WORD,
     .required = true,
     SHK_NAMES(diagnosis_actors),
     .doc = "who can fix it"},
    {.key = "scope",
     SHK_AT(struct shk_diagnosis, scope),
     .kind = SHK_FIELD_WORD,
     SHK_NAMES(diagnosis_scopes),
     .doc =
         "whose fault: `node` (default) is a reason to drain it, `launch` (a setting, an option of "
         "the container, a library path of the job) is not"},
    {.key = "only-on",
     SHK_AT(struct shk_diagnosis, only_on),
     .kind = SHK_FIELD_TEXTS,
     .check = diagnosis_valid_world,
     .doc = "`efa` `cxi` `verbs` `ib` `roce` `nvidia` `amd` `neuron` `container`: the only places "
            "where it can occur. Where the logs or facts show another fabric, link layer or GPU "
            "vendor, or no container, a line with several causes does not count for it, and the "
            "line's usual cause is a guess"},
    {.key = "explains",
     SHK_AT(struct shk_diagnosis, explains),
     .kind = SHK_FIELD_TEXTS,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "keys of causes that are only effects of this one"},
    {.key = "confirmed-by",
     SHK_AT(struct shk_diagnosis, confirmed),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_condition,
     .doc = "conditions on facts: where one holds, a line that points to this cause is confirmed"},
    {.key = "refuted-by",
     SHK_AT(struct shk_diagnosis, refuted),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_condition,
     .doc = "conditions that rule this cause out: where one holds on every node, it is `possible` "
            "at most"},
    {.key = "benign",
     SHK_AT(struct shk_diagnosis, benign),
     .kind = SHK_FIELD_BOOL,
     .doc = "looks like an error but is none"},
    {.key = "symptom",
     SHK_AT(struct shk_diagnosis, symptom),
     .kind = SHK_FIELD_BOOL,
     .doc = "a general consequence: never ranked above a cause"},
    {.key = "source",
     SHK_AT(struct shk_diagnosis, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this is documented or reported"},
};

static int diagnosis_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                           const void *row)
{
    const struct shk_diagnosis *diagnosis = row;
    if (!diagnosis->fix && !diagnosis->advice)
        return shk_fill_error(fill, node, "fix", "or advice is needed");
    for (const char *const *key = diagnosis->explains; key && *key; key++)
        if (strcmp(*key, diagnosis->key) == 0)
            return shk_fill_error(fill, node, "explains", "names the diagnosis itself");
    if (diagnosis->benign && diagnosis->explains)
        return shk_fill_error(fill, node, "explains", "a benign line cannot be the cause of %s",
                              diagnosis->explains[0]);
    return 0;
}

const struct shk_record shk_record_diagnosis = {
    .what = "diagnosis",
    .type = "struct shk_diagnosis",
    .size = sizeof(struct shk_diagnosis),
    SHK_FIELDS(diagnosis_fields),
    .check = diagnosis_check,
    .name_offset = offsetof(struct shk_diagnosis, key),
    .place_offset = offsetof(struct shk_diagnosis, place),
};
