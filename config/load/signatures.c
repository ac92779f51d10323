#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/text/messages.h"

#include <string.h>

const char *const shk_log_role_names[] = {
    [SHK_LOG_CAUSE] = "cause", [SHK_LOG_SYMPTOM] = "symptom", [SHK_LOG_CONTEXT] = "context",
    [SHK_LOG_PROOF] = "proof", [SHK_LOG_BENIGN] = "benign",   [SHK_LOG_WORDS] = "error-words",
    [SHK_LOG_NAMES] = "names", [SHK_LOG_GUESS] = "guess",
};

static const char *const signature_libraries[] = {
    "nccl",       "rccl",          "ofi-plugin", "libfabric",      "efa",
    "cxi",        "verbs",         "tcp",        "nvshmem",        "deepep",
    "neuron",     "cuda",          "hip",        "miopen",         "torch",
    "gloo",       "ucx",           "openmpi",    "mpich",          "slurm",
    "pmix",       "munge",         "kernel",     "container",      "linker",
    "loader",     "gdrcopy",       "gasnet",     "fabric-manager", "system",
    "nccl-tests", "vendor-plugin",
};

static const struct shk_field signature_fields[] = {
    {.key = "id",
     SHK_AT(struct shk_signature, id),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "name of the signature"},
    {.key = "library",
     SHK_AT(struct shk_signature, library),
     .kind = SHK_FIELD_WORD,
     .required = true,
     SHK_NAMES(signature_libraries),
     .doc = "what prints the line"},
    {.key = "pattern",
     SHK_AT(struct shk_signature, pattern),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_log_pattern,
     .doc = "regular expression for part of one line, in the subset that Vectorscan has (no back "
            "references, no look-around); `\\s`, `\\W`, `\\D` and an open end (`+`, `*`) are not "
            "allowed, they could leave the line; needed without `texts`"},
    {.key = "after",
     SHK_AT(struct shk_signature, after),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_log_pattern,
     .doc = "with `texts`: what the library prints before each of its messages, as a pattern that "
            "ends where they begin; without it the texts are looked for anywhere in a line"},
    {.key = "texts",
     SHK_AT(struct shk_signature, texts),
     .kind = SHK_FIELD_LINES,
     .check = shk_valid_messages,
     .doc =
         "messages of the library's source that say the same, one per line, in place of "
         "`pattern`: `%s` is any text, `%d` a whole number, `%%` a percent sign; of several texts "
         "that a line fits, the one with the most fixed words counts"},
    {.key = "meaning",
     SHK_AT(struct shk_signature, meaning),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what the line says, for a user"},
    {.key = "role",
     SHK_AT(struct shk_signature, role),
     .kind = SHK_FIELD_ENUM,
     .required = true,
     SHK_NAMES(shk_log_role_names),
     .doc = "`cause`: speaks for a diagnosis; `symptom`: a general consequence, which never "
            "outranks a cause; `context`: for rules only; `proof`: shows what a setting did; "
            "`benign`: looks like an error and is none; `error-words`: a line that looks like an "
            "error, and is shown as not known where no other role but `proof` and `names` matches "
            "it; `names`: only names what is "
            "there, a device or a container; `guess`: words of any program, a symptom of a line "
            "that does not only inform and that no other signature knows"},
    {.key = "diagnosis",
     SHK_AT(struct shk_signature, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause that it speaks for"},
    {.key = "also",
     SHK_AT(struct shk_signature, also),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "other causes of the same line, likelier ones first; each weighs half, then less"},
    {.key = "weight",
     SHK_AT(struct shk_signature, weight),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 100,
     .doc = "how surely the line means the diagnosis; 100: nothing else prints it; default 60"},
    {.key = "proves",
     SHK_AT(struct shk_signature, proves),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "settings that the line shows in effect"},
    {.key = "refutes",
     SHK_AT(struct shk_signature, refutes),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "settings that the line shows without the effect they should have"},
    {.key = "excludes",
     SHK_AT(struct shk_signature, excludes),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "causes that the line speaks against"},
    {.key = "capture",
     SHK_AT(struct shk_signature, capture),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_capture,
     .doc = "regular expression (PCRE) on the line; its named groups are kept as facts: `value`, "
            "`name`, `iface`, `address`, `version` are compared between processes; of `errno`, "
            "`wc` (completion status), `cuda`, `hsa` and `exit` the name of the code is kept, "
            "whether the line has its number or its text (ENOMEM, RETRY_EXC_ERR, SIGBUS)"},
    {.key = "differs",
     SHK_AT(struct shk_signature, differs),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause when the captured values are not the same in all processes"},
    {.key = "elsewhere",
     SHK_AT(struct shk_signature, elsewhere),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "signatures that nodes print where all is well: a node that prints this line and none "
            "of them, while others do, is different, and `differs` is the root cause"},
    {.key = "ended-by",
     SHK_AT(struct shk_signature, ended_by),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "signatures that say that it is over: where one of them comes later for each `name` "
            "that the line captured (of the same node, in the same file), the line is a guess; of "
            "a weight below 60, nothing"},
    {.key = "behind",
     SHK_AT(struct shk_signature, behind),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause when one process has a lower `count` than all others: it stopped "
            "first"},
    {.key = "more",
     SHK_AT(struct shk_signature, more),
     .kind = SHK_FIELD_TEXT,
     .doc = "a command, or settings for the next run, that tell more than a log of this kind does; "
            "shown where the logs have no detail"},
    {.key = "reads",
     SHK_AT(struct shk_signature, reads),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_reads,
     .doc = "with a capture of `value`: the variable that the line says was read with this value; "
            "`{name}` and `{other}` are what these groups captured, in capitals"},
    {.key = "prefixes",
     SHK_AT(struct shk_signature, prefixes),
     .kind = SHK_FIELD_TEXTS,
     .doc = "with `reads`: how the names of such variables begin"},
    {.key = "source",
     SHK_AT(struct shk_signature, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "project:file that prints the line, or the manual that quotes it"},
};

static int signature_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                           const void *row)
{
    const struct shk_signature *s = row;
    if (!s->pattern == !s->texts)
        return shk_fill_error(fill, node, "pattern", "either this or texts is needed");
    if (s->after && !s->texts)
        return shk_fill_error(fill, node, "after", "goes with texts");
    const char *loose = s->texts && !s->after ? shk_messages_loose(s->texts) : NULL;
    if (loose)
        return shk_fill_error(fill, node, "texts",
                              "\"%.*s\": without `after`, a text needs 16 fixed letters",
                              (int)strcspn(loose, "\n"), loose);
    if (s->role == SHK_LOG_CAUSE && !s->diagnosis)
        return shk_fill_error(fill, node, "diagnosis", "missing, the role is cause");
    bool speaks =
        s->role == SHK_LOG_CAUSE || s->role == SHK_LOG_SYMPTOM || s->role == SHK_LOG_GUESS;
    if (!speaks && (s->diagnosis || s->also))
        return shk_fill_error(fill, node, s->diagnosis ? "diagnosis" : "also",
                              "a line of role %s speaks for no cause", shk_log_role_names[s->role]);
    if (s->differs && !s->capture && !s->elsewhere)
        return shk_fill_error(fill, node, "differs", "needs a capture, or elsewhere");
    if (s->elsewhere && !s->differs)
        return shk_fill_error(fill, node, "elsewhere", "needs differs");
    if (s->behind && (!s->capture || !strstr(s->capture, "(?<count>")))
        return shk_fill_error(fill, node, "behind", "needs a capture with the group count");
    if (s->reads && (!s->capture || !strstr(s->capture, "(?<value>")))
        return shk_fill_error(fill, node, "reads", "needs a capture with the group value");
    if (!s->reads != !s->prefixes)
        return shk_fill_error(fill, node, "prefixes", "goes with reads, and reads with it");
    if (s->role == SHK_LOG_PROOF && !s->proves && !s->refutes && !s->capture)
        return shk_fill_error(fill, node, "proves", "missing, the role is proof");
    return 0;
}

static const struct shk_signature signature_defaults = {.weight = 60};

const struct shk_record shk_record_signature = {
    .what = "signature",
    .type = "struct shk_signature",
    .size = sizeof(struct shk_signature),
    SHK_FIELDS(signature_fields),
    .defaults = &signature_defaults,
    .check = signature_check,
    .name_offset = offsetof(struct shk_signature, id),
    .place_offset = offsetof(struct shk_signature, place),
};
