/* What is wrong in a file is told in one line: file, line, key, what, and the nearest right word.
 */
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

struct bad_case {
    const char *name;
    enum shk_section section;
    const char *yaml;
    const char *message; /* after "x.yaml:" */
};

/* A setting with one part replaced: lines 1-2 name and family, 3 readers, 4 grammar, 5-8 the rest.
 */
#define HEAD    "- name: NCCL_X\n  family: nccl\n"
#define READERS "  readers: [{library: nccl}]\n"
#define GRAMMAR "  grammar: {type: string}\n"
#define REST    "  effect: Does something.\n  severity: noise\n  source: project:file\n"

static const struct bad_case setting_cases[] = {
    {"unknown key", 0, SETTING_ROW("NCCL_X") "  serverity: fatal\n",
     "8: serverity: unknown key of a setting, did you mean \"severity\"?"},
    {"unknown key, case", 0, SETTING_ROW("NCCL_X") "  Default: 1\n",
     "8: Default: unknown key of a setting, did you mean \"default\"?"},
    {"unknown key, underscore", 0, SETTING_ROW("NCCL_X") "  replaced_by: NCCL_Y\n",
     "8: replaced_by: unknown key of a setting, did you mean \"replaced-by\"?"},
    {"unknown key, nothing near", 0, SETTING_ROW("NCCL_X") "  colour: red\n",
     "8: colour: unknown key of a setting"},
    {"merge key", 0, SETTING_ROW("NCCL_X") "  <<: {cost: high}\n",
     "8: <<: unknown key of a setting"},
    {"key twice", 0, SETTING_ROW("NCCL_X") "  effect: Again.\n",
     "8: effect: given twice, first on line 5"},
    {"no value", 0, SETTING_ROW("NCCL_X") "  cost:\n", "8: cost: has no value"},
    {"tilde", 0, SETTING_ROW("NCCL_X") "  cost: ~\n", "8: cost: has no value"},
    {"null", 0, SETTING_ROW("NCCL_X") "  default: null\n", "8: default: has no value"},
    {"empty text", 0, SETTING_ROW("NCCL_X") "  default: \"\"\n", "8: default: is empty"},
    {"blank text", 0, SETTING_ROW("NCCL_X") "  default: \"  \"\n", "8: default: is empty"},
    {"text wanted, list given", 0, SETTING_ROW("NCCL_X") "  cost: [much]\n",
     "8: cost: must be a text, not a list"},
    {"text wanted, mapping given", 0, SETTING_ROW("NCCL_X") "  cost:\n    how: much\n",
     "9: cost: must be a text, not a mapping"},
    {"several lines", 0, SETTING_ROW("NCCL_X") "  cost: |\n    much\n    more\n",
     "8: cost: must be one line"},
    {"escape character", 0, SETTING_ROW("NCCL_X") "  cost: \"\\e[31mred\"\n",
     "8: cost: has a control character in it"},
    {"C1 control", 0, SETTING_ROW("NCCL_X") "  cost: \"a\\x9bb\"\n",
     "8: cost: has a control character in it"},
    {"carriage return in lines", 0, SETTING_ROW("NCCL_X") "  fix: \"a\\rb\"\n",
     "8: fix: has a control character in it"},
    {"NUL", 0, SETTING_ROW("NCCL_X") "  cost: \"a\\0b\"\n", "8: YAML: a NUL character in a text"},
    {"no name", 0, "- family: nccl\n" READERS GRAMMAR REST, "1: name: missing in this setting"},
    {"no family", 0, "- name: NCCL_X\n" READERS GRAMMAR REST, "1: family: missing in this setting"},
    {"no readers", 0, HEAD GRAMMAR REST, "1: readers: missing in this setting"},
    {"no grammar", 0, HEAD READERS REST, "1: grammar: missing in this setting"},
    {"no effect", 0, HEAD READERS GRAMMAR "  severity: none\n  source: x\n",
     "1: effect: missing in this setting"},
    {"no severity", 0, HEAD READERS GRAMMAR "  effect: x\n  source: x\n",
     "1: severity: missing in this setting"},
    {"no source in the second row", 0,
     SETTING_ROW("NCCL_A") HEAD READERS GRAMMAR "  effect: x\n  severity: none\n",
     "8: source: missing in this setting"},
    {"no fix for a fatal one", 0,
     HEAD READERS GRAMMAR "  effect: x\n  severity: fatal\n  source: x\n",
     "1: fix: or advice is needed, severity is fatal"},
    {"no fix for perf-major", 0,
     HEAD READERS GRAMMAR "  effect: x\n  severity: perf-major\n  source: x\n",
     "1: fix: or advice is needed, severity is perf-major"},
    {"unknown family", 0, "- name: NCCL_X\n  family: ncll\n" READERS GRAMMAR REST,
     "2: family: unknown value \"ncll\", did you mean \"nccl\"?"},
    {"unknown severity", 0, HEAD READERS GRAMMAR "  effect: x\n  severity: Fatal\n  source: x\n",
     "6: severity: unknown value \"Fatal\", did you mean \"fatal\"?"},
    {"unknown severity, nothing near", 0,
     HEAD READERS GRAMMAR "  effect: x\n  severity: terrible\n  source: x\n",
     "6: severity: unknown value \"terrible\"; known are none, noise, perf-minor, perf-major, "
     "hang, "
     "corrupt, fatal"},
    {"unknown kind", 0, SETTING_ROW("NCCL_X") "  kind: depreciated\n",
     "8: kind: unknown value \"depreciated\", did you mean \"deprecated\"?"},
    {"yes is not a boolean", 0, SETTING_ROW("NCCL_X") "  production-warning: yes\n",
     "8: production-warning: must be true or false, not \"yes\""},
    {"a text is not a boolean", 0, SETTING_ROW("NCCL_X") "  variable: \"true\"\n",
     "8: variable: must be true or false, not the text \"true\""},
    {"a variable with a dot", 0, SETTING_ROW("iommu.passthrough"),
     "1: name: \"iommu.passthrough\": not the name of an environment variable (variable: false?)"},
    {"a name with a blank", 0, SETTING_ROW("NCCL X"),
     "1: name: \"NCCL X\": not a name: letters, digits and _ . / : + - only"},
    {"a name with a dollar", 0, SETTING_ROW("$NCCL_X"),
     "1: name: \"$NCCL_X\": not a name: letters, digits and _ . / : + - only"},
    {"readers is no list", 0, HEAD "  readers: nccl\n" GRAMMAR REST,
     "3: readers: must be a list, not a text"},
    {"a reader is no mapping", 0, HEAD "  readers: [nccl]\n" GRAMMAR REST,
     "3: readers: must be a mapping, not a text"},
    {"readers is empty", 0, HEAD "  readers: []\n" GRAMMAR REST,
     "3: readers: names no library, which only a setting of kind folklore may do"},
    {"unknown library", 0, HEAD "  readers:\n    - {library: libfabrics}\n" GRAMMAR REST,
     "4: readers.library: unknown value \"libfabrics\", did you mean \"libfabric\"?"},
    {"reader without library", 0, HEAD "  readers: [{since: \"2.8\"}]\n" GRAMMAR REST,
     "3: readers.library: missing in this reader"},
    {"unknown key of a reader", 0,
     HEAD "  readers: [{library: nccl, form: \"2.8\"}]\n" GRAMMAR REST,
     "3: readers.form: unknown key of a reader"},
    {"not a version", 0, HEAD "  readers: [{library: nccl, since: \"<=2.8\"}]\n" GRAMMAR REST,
     "3: readers.since: \"<=2.8\": not a version such as 2.18.3"},
    {"versions reversed", 0,
     HEAD "  readers:\n    - library: nccl\n      since: 2.10\n      until: 2.9\n" GRAMMAR REST,
     "6: readers.until: 2.9 is before since 2.10"},
    {"retired, but still read", 0, SETTING_ROW("NCCL_X") "  kind: retired\n",
     "3: readers: a retired setting needs the last version (until) of nccl"},
    {"unknown type", 0, HEAD READERS "  grammar: {type: integer}\n" REST,
     "4: grammar.type: unknown value \"integer\"; known are string, bool, flag, int, size, enum, "
     "list, interfaces, hcas, path, paths, host-port, devices"},
    {"misspelt type", 0, HEAD READERS "  grammar: {type: strign}\n" REST,
     "4: grammar.type: unknown value \"strign\", did you mean \"string\"?"},
    {"grammar without type", 0, HEAD READERS "  grammar: {min: 1}\n" REST,
     "4: grammar.type: missing in this grammar"},
    {"grammar is a text", 0, HEAD READERS "  grammar: string\n" REST,
     "4: grammar: must be a mapping, not a text"},
    {"unknown key of a grammar", 0, HEAD READERS "  grammar: {type: int, mim: 1}\n" REST,
     "4: grammar.mim: unknown key of a grammar, did you mean \"min\"?"},
    {"enum without values", 0, HEAD READERS "  grammar: {type: enum}\n" REST,
     "4: grammar.values: missing for a value of type enum"},
    {"values twice", 0, HEAD READERS "  grammar: {type: enum, values: [a, b, a]}\n" REST,
     "4: grammar.values: \"a\" is given twice"},
    {"value missing", 0,
     HEAD READERS "  grammar:\n    type: enum\n    values:\n      - a\n      -\n" REST,
     "8: grammar.values: has an item without a value"},
    {"value is a list", 0, HEAD READERS "  grammar: {type: enum, values: [[a]]}\n" REST,
     "4: grammar.values: must be a text, not a list"},
    {"values of a path", 0, HEAD READERS "  grammar: {type: path, values: [a]}\n" REST,
     "4: grammar.values: has no meaning for a value of type path"},
    {"min of a string", 0, HEAD READERS "  grammar: {type: string, min: 1}\n" REST,
     "4: grammar.min: has no meaning for a value of type string"},
    {"min is no number", 0, HEAD READERS "  grammar: {type: int, min: 4k}\n" REST,
     "4: grammar.min: must be a whole number, not \"4k\""},
    {"min is octal", 0, HEAD READERS "  grammar: {type: int, min: 010}\n" REST,
     "4: grammar.min: must be a whole number, not \"010\""},
    {"max is too large", 0, HEAD READERS "  grammar: {type: int, max: 9223372036854775808}\n" REST,
     "4: grammar.max: 9223372036854775808 does not fit into 64 bits"},
    {"max below min", 0, HEAD READERS "  grammar:\n    type: int\n    min: 2\n    max: 1\n" REST,
     "7: grammar.max: 1 is below min 2"},
    {"parser of a size", 0, HEAD READERS "  grammar: {type: size, parser: nccl}\n" REST,
     "4: grammar.parser: has no meaning for a value of type size"},
    {"unknown parser", 0, HEAD READERS "  grammar: {type: int, parser: strtol}\n" REST,
     "4: grammar.parser: unknown value \"strtol\", did you mean \"strtol0\"?"},
    {"separator of two characters", 0,
     HEAD READERS "  grammar: {type: list, separator: \"::\"}\n" REST,
     "4: grammar.separator: must be one ASCII character"},
    {"separator of an enum", 0,
     HEAD READERS "  grammar: {type: enum, values: [a], separator: \":\"}\n" REST,
     "4: grammar.separator: has no meaning for a value of type enum"},
    {"must-exist of an int", 0, HEAD READERS "  grammar: {type: int, must-exist: true}\n" REST,
     "4: grammar.must-exist: has no meaning for a value of type int"},
    {"wrong and right", 0, HEAD READERS "  grammar: {type: enum, values: [a], wrong: [a]}\n" REST,
     "4: grammar.wrong: \"a\" is in values too"},
    {"replaced by itself", 0, SETTING_ROW("NCCL_X") "  replaced-by: NCCL_X\n",
     "8: replaced-by: is the setting itself"},
    {"unknown diagnosis", 0, SETTING_ROW("NCCL_X") "  diagnosis: no-such-cause\n",
     "8: diagnosis: unknown diagnosis \"no-such-cause\""},
    {"name twice", 0, SETTING_ROW("NCCL_X") "\n" SETTING_ROW("NCCL_X"),
     "9: name: setting \"NCCL_X\" is at x.yaml:1 already"},
    {"row is a text", 0, "- NCCL_X\n", "1: setting: must be a mapping, not a text"},
    {"file is a mapping", 0, "name: NCCL_X\n", "1: settings: must be a list (\"- name: ...\")"},
    {"file is a text", 0, "\n\nNCCL_X\n", "3: settings: must be a list (\"- name: ...\")"},
};

static const struct bad_case profile_cases[] = {
    {"file is a list", SHK_SECTION_PROFILES, "- name: a\n",
     "1: profile: must be a mapping, not a list"},
    {"unknown key", SHK_SECTION_PROFILES, PROFILE_ROW("a") "extend: b\n",
     "4: extend: unknown key of a profile, did you mean \"extends\"?"},
    {"no title", SHK_SECTION_PROFILES, "name: a\nsource: x\n", "1: title: missing in this profile"},
    {"name in upper case", SHK_SECTION_PROFILES, PROFILE_ROW("LUMI"),
     "1: name: \"LUMI\": not a key: lower-case letters, digits, - and . only"},
    {"unknown base", SHK_SECTION_PROFILES, PROFILE_ROW("a") "extends: no-such-base\n",
     "4: extends: unknown profile \"no-such-base\""},
    {"extends itself", SHK_SECTION_PROFILES, PROFILE_ROW("a") "extends: a\n",
     "4: extends: a cycle: a -> a"},
    {"unknown plugin word", SHK_SECTION_PROFILES, PROFILE_ROW("a") "plugin: requird\n",
     "4: plugin: unknown value \"requird\", did you mean \"required\"?"},
    {"unknown GPU", SHK_SECTION_PROFILES, PROFILE_ROW("a") "gpu: nvdia\n",
     "4: gpu: unknown value \"nvdia\", did you mean \"nvidia\"?"},
    {"no NICs", SHK_SECTION_PROFILES, PROFILE_ROW("a") "nics: 0\n",
     "4: nics: must be 1 to 64, not 0"},
    {"too many NICs", SHK_SECTION_PROFILES, PROFILE_ROW("a") "nics: 65\n",
     "4: nics: must be 1 to 64, not 65"},
    {"NICs as a list", SHK_SECTION_PROFILES, PROFILE_ROW("a") "nics: [4]\n",
     "4: nics: must be a text, not a list"},
    {"providers as a text", SHK_SECTION_PROFILES, PROFILE_ROW("a") "providers: cxi\n",
     "4: providers: must be a list, not a text"},
    {"signal without fact", SHK_SECTION_PROFILES, PROFILE_ROW("a") "signals:\n- {weight: 2}\n",
     "5: signals.fact: missing in this signal"},
    {"fact with a blank", SHK_SECTION_PROFILES, PROFILE_ROW("a") "signals:\n- {fact: pci count}\n",
     "5: signals.fact: \"pci count\": not a fact key such as pci.count.cxi"},
    {"weight 0", SHK_SECTION_PROFILES, PROFILE_ROW("a") "signals:\n- {fact: a.b, weight: 0}\n",
     "5: signals.weight: must be 1 to 100, not 0"},
    {"bad pattern", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: \"[a\"}\n",
     "5: signals.matches: \"[a\": a class that begins with [ does not end"},
    {"signal with an escape of Perl", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: 'NCCL \\Q+'}\n",
     "5: signals.matches: \"NCCL \\Q+\": \\Q is not understood"},
    {"signal with an edge of a word as others write it", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: '\\<NCCL'}\n",
     "5: signals.matches: \"\\<NCCL\": \\<: write \\b for the edge of a word, < for the character"},
    {"signal that looks ahead", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: '(?=a)b'}\n",
     "5: signals.matches: \"(?=a)b\": \"(?=a\" is not understood: of (?...) there are (?:...) and "
     "a "
     "leading (?i)"},
    {"signal that explodes", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: '((a{1,200}){1,200}){1,200}'}\n",
     "5: signals.matches: \"((a{1,200}){1,200}){1,200}\": what is repeated becomes too large"},
    {"signal of many plus signs", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: 'a[+]\\+{3}++++++++++++'}\n",
     "5: signals.matches: \"a[+]\\+{3}++++++++++++\": + behind what is repeated already"},
    {"signal of many plus signs before a group that does not end", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: 'a++++++++++++(b'}\n",
     "5: signals.matches: \"a++++++++++++(b\": + behind what is repeated already"},
    {"signal of a group that does not end", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "signals:\n- {fact: a.b, matches: 'a(b'}\n",
     "5: signals.matches: \"a(b\": a group that begins with ( does not end"},
    {"unknown setting", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: NCCL_Y, why: x, source: y}\n",
     "5: settings.name: unknown setting \"NCCL_Y\""},
    {"setting without why", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: NCCL_X, source: y}\n",
     "5: settings.why: missing in this profile setting"},
    {"values although unset", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, unset: true, accepted: [a], why: x, source: y}\n",
     "5: settings.accepted: has values although unset is true"},
    {"misspelt strength", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, strength: require, why: x, source: y}\n",
     "5: settings.strength: unknown value \"require\", did you mean \"required\"?"},
    {"condition without value", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, condition: nodes>, why: x, source: y}\n",
     "5: settings.condition: \"nodes>\": needs one value behind the comparison"},
    {"condition with an unknown name", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, condition: node>1, why: x, source: y}\n",
     "5: settings.condition: \"node>1\": unknown name \"node\" in a condition, did you mean "
     "\"nodes\"?"},
    {"condition with one ampersand", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, condition: gpu=amd & cxi, why: x, source: y}\n",
     "5: settings.condition: \"gpu=amd & cxi\": terms are joined by ',' or '&&'"},
    {"condition with an empty term", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, condition: \"cxi,\", why: x, source: y}\n",
     "5: settings.condition: \"cxi,\": a condition without a name"},
    {"setting twice", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, why: x, source: y}\n- {name: X, why: z, source: y}\n",
     "4: settings: X has two lines"},
    {"setting twice under one condition", SHK_SECTION_PROFILES,
     PROFILE_ROW("a") "settings:\n- {name: X, condition: cxi, why: x, source: y}\n"
                      "- {name: X, condition: cxi, why: z, source: y}\n",
     "4: settings: X has two lines with the condition cxi"},
};

static const struct bad_case diagnosis_cases[] = {
    {"unknown key", SHK_SECTION_DIAGNOSES, DIAGNOSIS_ROW("a") "  explain: b\n",
     "7: explain: unknown key of a diagnosis, did you mean \"explains\"?"},
    {"no fix", SHK_SECTION_DIAGNOSES,
     "- key: a\n  title: x\n  explanation: x\n  who: user\n  source: x\n",
     "1: fix: or advice is needed"},
    {"who", SHK_SECTION_DIAGNOSES,
     "- key: a\n  title: x\n  explanation: x\n  fix: x\n  who: user,admin\n  source: x\n",
     "5: who: unknown value \"user,admin\", did you mean \"user, admin\"?"},
    {"key with an underscore", SHK_SECTION_DIAGNOSES, DIAGNOSIS_ROW("a_b"),
     "1: key: \"a_b\": not a key: lower-case letters, digits, - and . only"},
    {"title of two lines", SHK_SECTION_DIAGNOSES,
     "- key: a\n  title: |\n    x\n    y\n  explanation: x\n  fix: x\n  who: user\n  source: x\n",
     "2: title: must be one line"},
    {"explains itself", SHK_SECTION_DIAGNOSES, DIAGNOSIS_ROW("a") "  explains: [a]\n",
     "7: explains: names the diagnosis itself"},
    {"explains the unknown", SHK_SECTION_DIAGNOSES,
     DIAGNOSIS_ROW("link-down") DIAGNOSIS_ROW("b") "  explains: [link-dwn]\n",
     "13: explains: unknown diagnosis \"link-dwn\", did you mean \"link-down\"?"},
    {"benign cause", SHK_SECTION_DIAGNOSES,
     DIAGNOSIS_ROW("a") "  benign: true\n  explains: [b]\n" DIAGNOSIS_ROW("b"),
     "8: explains: a benign line cannot be the cause of b"},
    {"key twice", SHK_SECTION_DIAGNOSES, DIAGNOSIS_ROW("a") DIAGNOSIS_ROW("a"),
     "7: key: diagnosis \"a\" is at x.yaml:1 already"},
};

static void check_cases(const struct bad_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct bad_case *c = &cases[i];
        struct shk_error err = {""};
        struct shk_config *config = NULL;
        int rc = load_alone(c->section, "x.yaml", c->yaml, strlen(c->yaml), &config, &err);
        cr_expect_eq(rc, -EINVAL, "%s: status %d", c->name, rc);
        cr_expect_null(config, "%s", c->name);
        cr_expect(strncmp(err.text, "x.yaml:", 7) == 0 && strcmp(err.text + 7, c->message) == 0,
                  "%s:\n  got  %s\n  want x.yaml:%s", c->name, err.text, c->message);
        cr_expect_null(strchr(err.text, '\n'), "%s", c->name);
        shk_config_free(config);
    }
}

Test(schema, bad_settings)
{
    check_cases(setting_cases, SHK_COUNT(setting_cases));
}

Test(schema, bad_profiles)
{
    check_cases(profile_cases, SHK_COUNT(profile_cases));
}

Test(schema, bad_diagnoses)
{
    check_cases(diagnosis_cases, SHK_COUNT(diagnosis_cases));
}

Test(schema, message_may_be_null)
{
    struct shk_config *config = NULL;
    cr_expect_eq(load_alone(SHK_SECTION_SETTINGS, "x.yaml", "- a", 3, &config, NULL), -EINVAL);
}

/* Names that are too long to show are cut between characters. */
Test(schema, long_texts_are_cut)
{
    struct shk_error err;
    struct shk_config *config = NULL;
    struct shk_strbuf yaml = SHK_STRBUF_INIT;
    shk_strbuf_puts(&yaml, "- name: X\n  ");
    for (int i = 0; i < 400; i++)
        shk_strbuf_puts(&yaml, "\xc3\xa4");
    shk_strbuf_puts(&yaml, ": 1\n");
    cr_expect_lt(load_alone(SHK_SECTION_SETTINGS, "x.yaml", yaml.data, yaml.len, &config, &err), 0);
    cr_expect_lt(strlen(err.text), 200);
    cr_expect_not_null(strstr(err.text, "\xc3\xa4...: unknown key of a setting"), "%s", err.text);
    shk_strbuf_free(&yaml);
}

static const char whole_diagnosis[] = DIAGNOSIS_ROW("b-cause");
static const char whole_setting[] =
    "# a comment\n"
    "- name: FI_X\n"
    "  family: libfabric\n"
    "  kind: deprecated\n"
    "  variable: true\n"
    "  readers:\n"
    "    - {library: libfabric, since: \"1.10\", until: 2.1, file: src/x.c}\n"
    "    - library: rccl\n"
    "  grammar: {type: list, ignore-case: true, negation: true, separator: \";\",\n"
    "            values: [\"no\", on], wrong: [\"1\"]}\n"
    "  default: \"null\"\n"
    "  effect: >\n"
    "    Two lines that\n"
    "    become one.\n"
    "  cost: 'some: thing'\n"
    "  production-warning: true\n"
    "  severity: hang\n"
    "  if-wrong: It hangs.\n"
    "  replaced-by: FI_Y\n"
    "  diagnosis: b-cause\n"
    "  fix: unset FI_X\n"
    "  advice: |\n"
    "    first\n"
    "    second\n"
    "  source: \"project:file\"\n";

static void expect_whole_grammar(const struct shk_grammar *grammar)
{
    cr_expect_eq(grammar->type, SHK_VALUE_LIST);
    cr_expect(grammar->ignore_case && grammar->negation && !grammar->has_min);
    cr_expect_eq(grammar->separator, ';');
    cr_expect_str_eq(grammar->values[0], "no");
    cr_expect_str_eq(grammar->values[1], "on");
    cr_expect_null(grammar->values[2]);
    cr_expect_str_eq(grammar->wrong[0], "1");
}

Test(schema, every_key_of_a_setting)
{
    struct shk_error err = {""};
    struct shk_config *config = shk_config_create();
    cr_assert_eq(shk_config_add_buffer(config, SHK_SECTION_DIAGNOSES, "d.yaml", whole_diagnosis,
                                       sizeof whole_diagnosis - 1, &err),
                 0, "%s", err.text);
    cr_assert_eq(shk_config_add_buffer(config, SHK_SECTION_SETTINGS, "s.yaml", whole_setting,
                                       sizeof whole_setting - 1, &err),
                 0, "%s", err.text);
    cr_assert_eq(shk_config_finish(config, &err), 0, "%s", err.text);
    const struct shk_setting *s = shk_config_setting(config, "FI_X");
    cr_assert_not_null(s);
    cr_expect_str_eq(s->family, "libfabric");
    cr_expect_eq(s->kind, SHK_SETTING_DEPRECATED);
    cr_expect(s->variable);
    cr_expect_eq(s->readers_count, 2);
    cr_expect_str_eq(s->readers[0].since, "1.10");
    cr_expect_str_eq(s->readers[0].until, "2.1");
    cr_expect_str_eq(s->readers[0].file, "src/x.c");
    cr_expect_str_eq(s->readers[1].library, "rccl");
    cr_expect_null(s->readers[1].since);
    expect_whole_grammar(&s->grammar);
    cr_expect_str_eq(s->default_value, "null");
    cr_expect_str_eq(s->effect, "Two lines that become one.");
    cr_expect_str_eq(s->cost, "some: thing");
    cr_expect(s->production_warning);
    cr_expect_eq(s->severity, SHK_SEV_HANG);
    cr_expect_str_eq(s->if_wrong, "It hangs.");
    cr_expect_str_eq(s->replaced_by, "FI_Y");
    cr_expect_str_eq(s->diagnosis, "b-cause");
    cr_expect_str_eq(s->fix, "unset FI_X");
    cr_expect_str_eq(s->advice, "first\nsecond");
    cr_expect_str_eq(s->source, "project:file");
    cr_expect_str_eq(s->place, "s.yaml:2");
    shk_config_free(config);
}

Test(schema, numbers_and_defaults)
{
    static const char text[] = HEAD READERS
        "  grammar: {type: int, min: -9223372036854775808, max: 0, parser: decimal}\n" REST;
    struct shk_error err = {""};
    struct shk_config *config = NULL;
    cr_assert_eq(load_alone(SHK_SECTION_SETTINGS, "s.yaml", text, sizeof text - 1, &config, &err),
                 0, "%s", err.text);
    const struct shk_setting *s = shk_config_setting(config, "NCCL_X");
    cr_expect(s->variable);
    cr_expect_eq(s->kind, SHK_SETTING_CURRENT);
    cr_expect(s->grammar.has_min && s->grammar.has_max);
    cr_expect_eq(s->grammar.min, -9223372036854775807LL - 1);
    cr_expect_eq(s->grammar.max, 0);
    cr_expect_eq(s->grammar.int_parser, SHK_INT_DECIMAL);
    cr_expect_null(s->default_value);
    cr_expect_null(s->grammar.values);
    shk_config_free(config);
}
