#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/text/strbuf.h"

#include <string.h>

#define SETTING_TYPE(type) (1u << SHK_VALUE_##type)

static const char *const setting_families[] = {
    "nccl", "rccl",    "hsa",    "hip",    "miopen", "ofi-plugin", "libfabric", "efa",
    "cxi",  "nvshmem", "neuron", "kernel", "limits", "launcher",   "container", "framework",
};

const char *const shk_library_names[] = {
    "nccl",   "rccl",   "hsa",       "hip",     "miopen",    "ofi-plugin", "libfabric", "efa",
    "cxi",    "libcxi", "rdma-core", "nvshmem", "neuron",    "kernel",     "cuda",      "torch",
    "openmp", "mpi",    "ucx",       "slurm",   "container", "shell",
};
const size_t shk_library_names_count = SHK_COUNT(shk_library_names);

static const struct shk_field reader_fields[] = {
    {.key = "library",
     SHK_AT(struct shk_reader, library),
     .kind = SHK_FIELD_WORD,
     .required = true,
     SHK_NAMES(shk_library_names),
     .doc = "what reads the setting"},
    {.key = "since",
     SHK_AT(struct shk_reader, since),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_version,
     .doc = "first version that reads it; absent: every known older one does"},
    {.key = "until",
     SHK_AT(struct shk_reader, until),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_version,
     .doc = "last version that reads it; absent: still read"},
    {.key = "file",
     SHK_AT(struct shk_reader, file),
     .kind = SHK_FIELD_TEXT,
     .doc = "where in the library's source"},
};

static int reader_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                        const void *row)
{
    const struct shk_reader *reader = row;
    if (reader->since && reader->until && shk_version_cmp(reader->since, reader->until) > 0)
        return shk_fill_error(fill, node, "until", "%s is before since %s", reader->until,
                              reader->since);
    return 0;
}

static const struct shk_record record_reader = {
    .what = "reader",
    .type = "struct shk_reader",
    .size = sizeof(struct shk_reader),
    SHK_FIELDS(reader_fields),
    .check = reader_check,
};

static const struct shk_field grammar_fields[] = {
    {.key = "type",
     SHK_AT(struct shk_grammar, type),
     .kind = SHK_FIELD_ENUM,
     .required = true,
     SHK_NAMES(shk_value_type_names),
     .doc = "kind of value, see below"},
    {.key = "ignore-case",
     SHK_AT(struct shk_grammar, ignore_case),
     .kind = SHK_FIELD_BOOL,
     .doc = "upper and lower case are the same"},
    {.key = "negation",
     SHK_AT(struct shk_grammar, negation),
     .kind = SHK_FIELD_BOOL,
     .doc = "a leading `^` is allowed"},
    {.key = "empty",
     SHK_AT(struct shk_grammar, empty),
     .kind = SHK_FIELD_BOOL,
     .doc = "an empty value is as good as none"},
    {.key = "must-exist",
     SHK_AT(struct shk_grammar, must_exist),
     .kind = SHK_FIELD_BOOL,
     .doc = "`path`, `paths`: must exist on the node"},
    {.key = "directory",
     SHK_AT(struct shk_grammar, directory),
     .kind = SHK_FIELD_BOOL,
     .doc = "`path`: must be a directory"},
    {.key = "min",
     SHK_AT(struct shk_grammar, min),
     .kind = SHK_FIELD_INT64,
     SHK_EXTRA(struct shk_grammar, has_min),
     .doc = "`int`, `size`: minimum"},
    {.key = "max",
     SHK_AT(struct shk_grammar, max),
     .kind = SHK_FIELD_INT64,
     SHK_EXTRA(struct shk_grammar, has_max),
     .doc = "`int`, `size`: maximum"},
    {.key = "parser",
     SHK_AT(struct shk_grammar, int_parser),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_int_parser_names),
     .doc = "`int`: `strtol0` (libfabric) and `nccl` accept 0x and octal and read `16k` as 16; "
            "`nccl` uses the default for a number out of range; `decimal` does not accept 0x"},
    {.key = "separator",
     SHK_AT(struct shk_grammar, separator),
     .kind = SHK_FIELD_CHAR,
     .doc = "`list`: between items, default `,`"},
    {.key = "values",
     SHK_AT(struct shk_grammar, values),
     .kind = SHK_FIELD_TEXTS,
     .doc = "`enum`, `list`: what is allowed; `int`: words allowed besides numbers"},
    {.key = "wrong",
     SHK_AT(struct shk_grammar, wrong),
     .kind = SHK_FIELD_TEXTS,
     .doc = "values that look right but are not"},
};

/* Keys that only some types of value understand. */
static const struct {
    const char *key;
    unsigned types;
} grammar_rules[] = {
    {"ignore-case", ~(SETTING_TYPE(FLAG) | SETTING_TYPE(PATH) | SETTING_TYPE(PATHS))},
    {"negation", SETTING_TYPE(LIST) | SETTING_TYPE(INTERFACES) | SETTING_TYPE(HCAS) |
                     SETTING_TYPE(STRING) | SETTING_TYPE(ENUM) | SETTING_TYPE(DEVICES)},
    {"empty", ~SETTING_TYPE(FLAG)},
    {"must-exist", SETTING_TYPE(PATH) | SETTING_TYPE(PATHS)},
    {"directory", SETTING_TYPE(PATH) | SETTING_TYPE(PATHS)},
    {"min", SETTING_TYPE(INT) | SETTING_TYPE(SIZE)},
    {"max", SETTING_TYPE(INT) | SETTING_TYPE(SIZE)},
    {"parser", SETTING_TYPE(INT)},
    {"separator", SETTING_TYPE(LIST)},
    {"values", SETTING_TYPE(ENUM) | SETTING_TYPE(LIST) | SETTING_TYPE(INT) | SETTING_TYPE(SIZE)},
    {"wrong", ~SETTING_TYPE(FLAG)},
};

static int grammar_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                         const void *row)
{
    const struct shk_grammar *grammar = row;
    const char *type = shk_value_type_names[grammar->type];
    for (size_t i = 0; i < SHK_COUNT(grammar_rules); i++)
        if (shk_yaml_get(node, grammar_rules[i].key) &&
            !(grammar_rules[i].types & 1u << grammar->type))
            return shk_fill_error(fill, node, grammar_rules[i].key,
                                  "has no meaning for a value of type %s", type);
    if (grammar->type == SHK_VALUE_ENUM && !grammar->values)
        return shk_fill_error(fill, node, "values", "missing for a value of type enum");
    if (grammar->has_min && grammar->has_max && grammar->min > grammar->max)
        return shk_fill_error(fill, node, "max", "%lld is below min %lld", grammar->max,
                              grammar->min);
    for (const char *const *w = grammar->wrong; w && *w; w++)
        for (const char *const *v = grammar->values; v && *v; v++)
            if (strcmp(*w, *v) == 0)
                return shk_fill_error(fill, node, "wrong", "\"%.64s\" is in values too", *w);
    return 0;
}

static const struct shk_record record_grammar = {
    .what = "grammar",
    .type = "struct shk_grammar",
    .size = sizeof(struct shk_grammar),
    SHK_FIELDS(grammar_fields),
    .check = grammar_check,
};

static const struct shk_field setting_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_setting, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_setting,
     .doc = "environment variable, kernel parameter or limit"},
    {.key = "family",
     SHK_AT(struct shk_setting, family),
     .kind = SHK_FIELD_WORD,
     .required = true,
     SHK_NAMES(setting_families),
     .doc = "group in the report"},
    {.key = "kind",
     SHK_AT(struct shk_setting, kind),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_setting_kind_names),
     .doc = "`deprecated`: still read, but there is a new name; `retired`: only old versions read "
            "it; `folklore`: nothing ever read it; default `current`"},
    {.key = "variable",
     SHK_AT(struct shk_setting, variable),
     .kind = SHK_FIELD_BOOL,
     .doc = "an environment variable; `false` for kernel parameters and limits; default `true`"},
    {.key = "readers",
     SHK_AT(struct shk_setting, readers),
     .kind = SHK_FIELD_RECORDS,
     .required = true,
     .record = &record_reader,
     SHK_EXTRA(struct shk_setting, readers_count),
     .doc = "libraries that read it; `[]` only for folklore"},
    {.key = "grammar",
     SHK_AT(struct shk_setting, grammar),
     .kind = SHK_FIELD_RECORD,
     .required = true,
     .record = &record_grammar,
     .doc = "what a value may look like"},
    {.key = "default",
     SHK_AT(struct shk_setting, default_value),
     .kind = SHK_FIELD_TEXT,
     .doc = "the value in effect when it is not set"},
    {.key = "misread",
     SHK_AT(struct shk_setting, misread),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_misread_names),
     .doc = "what happens to a value that the library cannot use: the `default` applies, the "
            "process `ends`, or (`literal`, the usual case) the library uses whatever its parser "
            "makes of it; a `bool` keeps its default unless this is `ends`"},
    {.key = "moot",
     SHK_AT(struct shk_setting, moot),
     .kind = SHK_FIELD_TEXTS,
     .doc = "values that change nothing where no library reads the variable: only a note then; "
            "`*`: any value"},
    {.key = "effect",
     SHK_AT(struct shk_setting, effect),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what it does, one sentence"},
    {.key = "cost",
     SHK_AT(struct shk_setting, cost),
     .kind = SHK_FIELD_TEXT,
     .doc = "what it costs when set in production"},
    {.key = "production-warning",
     SHK_AT(struct shk_setting, production_warning),
     .kind = SHK_FIELD_BOOL,
     .doc = "only for validation runs: a warning when set in production, a note where it only adds "
            "log lines (severity `noise`)"},
    {.key = "costly",
     SHK_AT(struct shk_setting, costly),
     .kind = SHK_FIELD_TEXTS,
     .doc = "with `production-warning`: the values that cost performance; the others are a note"},
    {.key = "severity",
     SHK_AT(struct shk_setting, severity),
     .kind = SHK_FIELD_ENUM,
     .required = true,
     SHK_NAMES(shk_severity_names),
     .doc = "of a wrong value"},
    {.key = "if-wrong",
     SHK_AT(struct shk_setting, if_wrong),
     .kind = SHK_FIELD_TEXT,
     .doc = "what a wrong value leads to"},
    {.key = "replaced-by",
     SHK_AT(struct shk_setting, replaced_by),
     .kind = SHK_FIELD_TEXT,
     .doc = "the setting to use instead"},
    {.key = "diagnosis",
     SHK_AT(struct shk_setting, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "key of the diagnosis that a wrong value points to"},
    {.key = "missed",
     SHK_AT(struct shk_setting, missed),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "key of the diagnosis when a profile's recommendation is not met"},
    {.key = "rule",
     SHK_AT(struct shk_setting, rule),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_value_rule_names),
     .doc = "checks beyond the grammar: a `network` or `providers` that the loaded library must "
            "offer, its `algorithms` or `protocols`, a file `per-rank` (with `%p` in the name), a "
            "truncated host name (`short-host`), devices or `interfaces` of the node, a monitor "
            "that the kernel must allow (`mr-monitor`)"},
    {.key = "mask",
     SHK_AT(struct shk_setting, mask),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(shk_mask_names),
     .doc = "a list of visible GPUs, and of which vendor; `amd-first` is applied before the "
            "others, which renumber what it leaves"},
    {.key = "node-local",
     SHK_AT(struct shk_setting, node_local),
     .kind = SHK_FIELD_TEXT,
     .doc = "`path`: must not be on a shared file system; the text says what goes wrong there"},
    {.key = "audited",
     SHK_AT(struct shk_setting, audited),
     .kind = SHK_FIELD_BOOL,
     .doc = "has a row in every report, even when it is unset and no profile mentions it"},
    {.key = "fix",
     SHK_AT(struct shk_setting, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one shell line that fixes it, ready to run"},
    {.key = "advice",
     SHK_AT(struct shk_setting, advice),
     .kind = SHK_FIELD_LINES,
     .doc =
         "what to do, in words; this or a fix is required when severity is `perf-major` or worse"},
    {.key = "source",
     SHK_AT(struct shk_setting, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this is documented: project:file or a manual page"},
};

static int setting_check_readers(const struct shk_fill *fill, const struct shk_yaml_node *node,
                                 const struct shk_setting *setting)
{
    if (!setting->readers_count && setting->kind != SHK_SETTING_FOLKLORE)
        return shk_fill_error(fill, node, "readers",
                              "names no library, which only a setting of kind folklore may do");
    for (size_t i = 0; i < setting->readers_count; i++)
        if (setting->kind == SHK_SETTING_RETIRED && !setting->readers[i].until)
            return shk_fill_error(fill, node, "readers",
                                  "a retired setting needs the last version (until) of %s",
                                  setting->readers[i].library);
    return 0;
}

static int setting_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                         const void *row)
{
    const struct shk_setting *setting = row;
    struct shk_why why;
    if (setting->variable && !shk_valid_variable(setting->name, &why))
        return shk_fill_error(fill, node, "name", "\"%.64s\": %s (variable: false?)", setting->name,
                              why.text);
    if (setting->severity >= SHK_SEV_PERF_MAJOR && !setting->fix && !setting->advice)
        return shk_fill_error(fill, node, "fix", "or advice is needed, severity is %s",
                              shk_severity_name(setting->severity));
    if (setting->replaced_by && strcmp(setting->replaced_by, setting->name) == 0)
        return shk_fill_error(fill, node, "replaced-by", "is the setting itself");
    if (setting->node_local && setting->grammar.type != SHK_VALUE_PATH)
        return shk_fill_error(fill, node, "node-local", "is for a path");
    if (setting->mask && setting->grammar.type != SHK_VALUE_DEVICES)
        return shk_fill_error(fill, node, "mask", "is for a value of type devices");
    return setting_check_readers(fill, node, setting);
}

static const struct shk_setting setting_defaults = {.variable = true};

const struct shk_record shk_record_setting = {
    .what = "setting",
    .type = "struct shk_setting",
    .size = sizeof(struct shk_setting),
    SHK_FIELDS(setting_fields),
    .defaults = &setting_defaults,
    .check = setting_check,
    .name_offset = offsetof(struct shk_setting, name),
    .place_offset = offsetof(struct shk_setting, place),
};
