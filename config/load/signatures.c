#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/text/messages.h"

#include <string.h>

const char *const shk_log_role_names[] = {
    [SHK_LOG_CAUSE] = "cause",       [SHK_LOG_SYMPTOM] = "symptom", [SHK_LOG_CONTEXT] = "context",
    [SHK_LOG_PROOF] = "proof",       [SHK_LOG_BENIGN] = "benign",   [SHK_LOG_WORDS] = "error-words",
    [SHK_LOG_DOUBT] = "doubt-words", [SHK_LOG_NAMES] = "names",     [SHK_LOG_GUESS] = "guess",
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
     .doc = "regular expression for part of one line; `\\s`, `\\W`, `\\D` and an open end (`+`, "
            "`*`) are not allowed because they could run past the end of the line; required "
            "without `texts`"},
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
     .doc = "messages from the library's source with the same meaning, one per line, in place of "
            "`pattern`: `%s` is any text, `%d` a whole number, `%%` a percent sign; when a line "
            "fits several texts, the one with the most fixed words counts"},
    {.key = "object",
     SHK_AT(struct shk_signature, object),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_OBJECTS,
     .doc = "in place of `pattern`, with `errors`: a line that names this object"},
    {.key = "errors",
     SHK_AT(struct shk_signature, errors),
     .kind = SHK_FIELD_TEXTS,
     .refers = true,
     .section = SHK_SECTION_ERRORS,
     .doc = "and one of these errors, in any order and wording; looked at in lines that look like "
            "trouble and that no signature decides"},
    {.key = "yields",
     SHK_AT(struct shk_signature, yields),
     .kind = SHK_FIELD_BOOL,
     .doc = "the words of any program: where the line names an object that is not `general` beside "
            "an error, what that means counts in place of this"},
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
     .doc =
         "`cause`: evidence for a diagnosis; `symptom`: a general consequence, never ranked above "
         "a cause; `context`: for rules only; `proof`: shows what a setting did; `benign`: looks "
         "like an error and is none; `error-words`: a line that looks like an error, listed as "
         "unknown unless another role than `proof` and `names` matches it; `doubt-words`: a line "
         "that "
         "may tell of trouble, looked at where neither a signature nor `error-words` match it and "
         "nothing else is known; `names`: only names "
         "what is there, a device or a container; `guess`: words that any program may print; a "
         "symptom in a line that is not merely informational and that no other signature matches"},
    {.key = "diagnosis",
     SHK_AT(struct shk_signature, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause that it is evidence for"},
    {.key = "also",
     SHK_AT(struct shk_signature, also),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "other causes of the same line, the likelier first; the first weighs half, each "
            "further one less"},
    {.key = "weight",
     SHK_AT(struct shk_signature, weight),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 100,
     .doc = "how surely the line means the diagnosis; 100: it has no other cause; default 60"},
    {.key = "proves",
     SHK_AT(struct shk_signature, proves),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "settings that the line shows to be in effect"},
    {.key = "refutes",
     SHK_AT(struct shk_signature, refutes),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "settings that the line shows to have no effect"},
    {.key = "excludes",
     SHK_AT(struct shk_signature, excludes),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "causes that the line is evidence against; of a `symptom`, only where no other line is "
            "evidence for them"},
    {.key = "capture",
     SHK_AT(struct shk_signature, capture),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_capture,
     .doc = "regular expression on the line, with all that PCRE2 has; its named groups are kept as "
            "facts: `value`, "
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
     .doc = "signatures that healthy nodes print: a node that prints this line and none of them, "
            "while others do, differs, and `differs` is the root cause"},
    {.key = "ended-by",
     SHK_AT(struct shk_signature, ended_by),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "signatures that report recovery: where one of them follows for each `name` that the "
            "line captured (same node, same file), the line is only a guess, or with a weight "
            "below 60 nothing"},
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
     .doc = "a command, or settings for the next run, that give more detail than this kind of log; "
            "shown where the logs lack detail"},
    {.key = "version-of",
     SHK_AT(struct shk_signature, version_of),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_library,
     .doc = "the library whose release the group `version` of the capture is, for known "
            "[defects](#a-defect-of-a-release)"},
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
    if (!!s->pattern + !!s->texts + !!s->object != 1)
        return shk_fill_error(fill, node, "pattern", "either this, texts or object is needed");
    if (!s->object != !s->errors)
        return shk_fill_error(fill, node, "errors", "goes with object, and object with it");
    if (s->object && s->role != SHK_LOG_GUESS)
        return shk_fill_error(fill, node, "role", "with an object it is guess");
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
    if (s->version_of && (!s->capture || !strstr(s->capture, "(?<version>")))
        return shk_fill_error(fill, node, "version-of", "needs a capture with the group version");
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
