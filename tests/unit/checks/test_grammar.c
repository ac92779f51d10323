#include "checks/value/grammar.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const levels[] = {"VERSION", "WARN", "INFO", "ABORT", "TRACE", NULL};
static const char *const distances[] = {"LOC", "PIX", "PXB", "PHB", "SYS", NULL};
static const char *const hmem[] = {"system", "cuda", "rocr", "ze", "neuron", NULL};
static const char *const hmem_wrong[] = {"1", "0", NULL};

static const struct shk_grammar g_level = {
    .type = SHK_VALUE_ENUM, .ignore_case = true, .values = levels};
static const struct shk_grammar g_bool = {.type = SHK_VALUE_BOOL};
static const struct shk_grammar g_flag = {.type = SHK_VALUE_FLAG};
static const struct shk_grammar g_int = {.type = SHK_VALUE_INT,
                                         .int_parser = SHK_INT_STRTOL0,
                                         .has_min = true,
                                         .has_max = true,
                                         .min = 0,
                                         .max = 1048576};
static const struct shk_grammar g_nccl = {.type = SHK_VALUE_INT, .int_parser = SHK_INT_NCCL};
static const struct shk_grammar g_named = {
    .type = SHK_VALUE_INT, .ignore_case = true, .values = distances};
static const struct shk_grammar g_size = {.type = SHK_VALUE_SIZE};
static const struct shk_grammar g_list = {
    .type = SHK_VALUE_LIST, .ignore_case = true, .negation = true, .values = levels};
static const struct shk_grammar g_binds = {.type = SHK_VALUE_LIST, .empty = true};
static const struct shk_grammar g_hmem = {
    .type = SHK_VALUE_LIST, .separator = ';', .values = hmem, .wrong = hmem_wrong};
static const struct shk_grammar g_if = {.type = SHK_VALUE_INTERFACES};
static const struct shk_grammar g_hca = {.type = SHK_VALUE_HCAS};
static const struct shk_grammar g_path = {.type = SHK_VALUE_PATH};
static const struct shk_grammar g_paths = {.type = SHK_VALUE_PATHS};
static const struct shk_grammar g_host = {.type = SHK_VALUE_HOST_PORT};
static const struct shk_grammar g_dev = {.type = SHK_VALUE_DEVICES};
static const struct shk_grammar g_text = {.type = SHK_VALUE_STRING};

static const struct grammar_case {
    const char *name;
    const struct shk_grammar *grammar;
    const char *value;
    enum shk_judgement judgement;
    const char *why; /* part of the reason */
    const char *suggestion;
} cases[] = {
    {"level", &g_level, "INFO", SHK_VALUE_OK, NULL, NULL},
    {"level in small letters", &g_level, "warn", SHK_VALUE_OK, NULL, NULL},
    {"level misspelled", &g_level, "INFOO", SHK_VALUE_WRONG, "not one of", "INFO"},
    {"level far off", &g_level, "verbose", SHK_VALUE_WRONG, "VERSION, WARN, INFO", NULL},
    {"level quoted", &g_level, "\"INFO\"", SHK_VALUE_WRONG, "quotation marks", "INFO"},
    {"level with line end", &g_level, "INFO\r", SHK_VALUE_WRONG, "line end", NULL},
    {"level with blank", &g_level, "INFO ", SHK_VALUE_WRONG, "blank", NULL},
    {"empty", &g_level, "", SHK_VALUE_ODD, "empty", NULL},
    {"empty list", &g_list, "", SHK_VALUE_ODD, "empty", NULL},
    {"empty and as good as none", &g_binds, "", SHK_VALUE_OK, NULL, NULL},
    {"quotation marks alone", &g_binds, "\"\"", SHK_VALUE_WRONG, "quotation marks", NULL},
    {"bool on", &g_bool, "on", SHK_VALUE_OK, NULL, NULL},
    {"bool 0", &g_bool, "0", SHK_VALUE_OK, NULL, NULL},
    {"bool True", &g_bool, "True", SHK_VALUE_OK, NULL, NULL},
    {"bool 2", &g_bool, "2", SHK_VALUE_WRONG, "default stays", NULL},
    {"bool ture", &g_bool, "ture", SHK_VALUE_WRONG, "not a boolean", "true"},
    {"bool enabled", &g_bool, "enabled", SHK_VALUE_WRONG, "not a boolean", NULL},
    {"flag 1", &g_flag, "1", SHK_VALUE_OK, NULL, NULL},
    {"flag 0", &g_flag, "0", SHK_VALUE_ODD, "presence", NULL},
    {"flag empty", &g_flag, "", SHK_VALUE_ODD, "presence", NULL},
    {"int", &g_int, "131072", SHK_VALUE_OK, NULL, NULL},
    {"int hex", &g_int, "0x20000", SHK_VALUE_OK, NULL, NULL},
    {"int with suffix", &g_int, "16k", SHK_VALUE_WRONG, "read as 16:", "16384"},
    {"int with MiB", &g_int, "4MiB", SHK_VALUE_WRONG, "read as 4:", "4194304"},
    {"int with unit", &g_int, "16 entries", SHK_VALUE_WRONG, "read as 16:", NULL},
    {"int word", &g_int, "large", SHK_VALUE_WRONG, "read as 0", NULL},
    {"int octal", &g_int, "010", SHK_VALUE_ODD, "read as 8", NULL},
    {"int too small", &g_int, "-1", SHK_VALUE_WRONG, "below", NULL},
    {"int too large", &g_int, "1048577", SHK_VALUE_WRONG, "above", NULL},
    {"int overflow", &g_int, "99999999999999999999", SHK_VALUE_WRONG, "too large", NULL},
    {"nccl int minus 2", &g_nccl, "-2", SHK_VALUE_OK, NULL, NULL},
    {"nccl int with suffix", &g_nccl, "8M", SHK_VALUE_WRONG, "read as 8:", "8388608"},
    {"nccl int out of range", &g_nccl, "99999999999999999999", SHK_VALUE_WRONG, "the default stays",
     NULL},
    {"nccl int true", &g_nccl, "true", SHK_VALUE_WRONG, "read as 0", NULL},
    {"nccl int float", &g_nccl, "1.5", SHK_VALUE_WRONG, "read as 1:", NULL},
    {"distance by name", &g_named, "PHB", SHK_VALUE_OK, NULL, NULL},
    {"distance by number", &g_named, "3", SHK_VALUE_OK, NULL, NULL},
    {"distance misspelled", &g_named, "PHP", SHK_VALUE_WRONG, "not one of", "PHB"},
    {"size", &g_size, "2g", SHK_VALUE_OK, NULL, NULL},
    {"size plain", &g_size, "1073741824", SHK_VALUE_OK, NULL, NULL},
    {"size half", &g_size, "1.5G", SHK_VALUE_OK, NULL, NULL},
    {"size word", &g_size, "big", SHK_VALUE_WRONG, "not a size", NULL},
    {"size negative", &g_size, "-1g", SHK_VALUE_WRONG, "no possible", NULL},
    {"list", &g_list, "INFO,WARN", SHK_VALUE_OK, NULL, NULL},
    {"list negated", &g_list, "^INFO", SHK_VALUE_OK, NULL, NULL},
    {"list misspelled", &g_list, "INFO,WARNN", SHK_VALUE_WRONG, "WARNN", "INFO,WARN"},
    {"list with blanks", &g_list, "INFO, WARN", SHK_VALUE_WRONG, "blank", "INFO,WARN"},
    {"list with semicolon", &g_list, "INFO;WARN", SHK_VALUE_WRONG, "separated by ','", "INFO,WARN"},
    {"list with end comma", &g_list, "INFO,", SHK_VALUE_ODD, "empty element", NULL},
    {"hmem 1", &g_hmem, "1", SHK_VALUE_WRONG, "it takes system, cuda, rocr", NULL},
    {"hmem", &g_hmem, "system;rocr", SHK_VALUE_OK, NULL, NULL},
    {"hmem with comma", &g_hmem, "system,rocr", SHK_VALUE_WRONG, "by ';'", "system;rocr"},
    {"hmem rocm", &g_hmem, "rocm", SHK_VALUE_WRONG, "rocm", "rocr"},
    {"interfaces", &g_if, "hsn0,hsn1", SHK_VALUE_OK, NULL, NULL},
    {"interfaces excluded", &g_if, "^docker,lo", SHK_VALUE_OK, NULL, NULL},
    {"interfaces exact", &g_if, "=eth0", SHK_VALUE_OK, NULL, NULL},
    {"interfaces excluded exactly", &g_if, "^=eth0", SHK_VALUE_OK, NULL, NULL},
    {"interfaces wrong order", &g_if, "=^eth0", SHK_VALUE_WRONG, "before '='", NULL},
    {"interfaces with blank", &g_if, "hsn0, hsn1", SHK_VALUE_WRONG, "part of a name", NULL},
    {"interfaces with semicolon", &g_if, "hsn0;hsn1", SHK_VALUE_WRONG, "part of a name", NULL},
    {"interfaces with star", &g_if, "hsn*", SHK_VALUE_WRONG, "no patterns", NULL},
    {"interfaces negated one by one", &g_if, "^docker,^lo", SHK_VALUE_WRONG, "only once", NULL},
    {"interfaces doubled comma", &g_if, "hsn0,,hsn1", SHK_VALUE_ODD, "empty element", NULL},
    {"hca", &g_hca, "=mlx5_0:1,mlx5_1:1", SHK_VALUE_OK, NULL, NULL},
    {"hca with slash", &g_hca, "mlx5_0/1", SHK_VALUE_WRONG, "':'", NULL},
    {"path", &g_path, "/tmp/x", SHK_VALUE_OK, NULL, NULL},
    {"path with tilde", &g_path, "~/x", SHK_VALUE_WRONG, "'~'", NULL},
    {"path with variable", &g_path, "/tmp/$USER", SHK_VALUE_WRONG, "shell variable", NULL},
    {"paths", &g_paths, "/a/lib:/b/lib", SHK_VALUE_OK, NULL, NULL},
    {"paths with empty end", &g_paths, "/a/lib:", SHK_VALUE_ODD, "current directory", NULL},
    {"paths relative", &g_paths, "lib:/b", SHK_VALUE_ODD, "relative", NULL},
    {"paths with variable", &g_paths, "/a:$HOME/lib", SHK_VALUE_WRONG, "shell variable", NULL},
    {"host and port", &g_host, "nid001:46820", SHK_VALUE_OK, NULL, NULL},
    {"IPv6 and port", &g_host, "[fd00::1]:46820", SHK_VALUE_OK, NULL, NULL},
    {"IPv6 without brackets", &g_host, "fd00::1:46820", SHK_VALUE_WRONG, "brackets", NULL},
    {"host alone", &g_host, "nid001", SHK_VALUE_WRONG, "not host:port", NULL},
    {"port too large", &g_host, "nid001:70000", SHK_VALUE_WRONG, "port", NULL},
    {"port word", &g_host, "nid001:http", SHK_VALUE_WRONG, "port", NULL},
    {"devices", &g_dev, "0,1,2,3", SHK_VALUE_OK, NULL, NULL},
    {"devices by UUID", &g_dev, "GPU-8932f937-d72c,MIG-1", SHK_VALUE_OK, NULL, NULL},
    {"devices as range", &g_dev, "0-15", SHK_VALUE_OK, NULL, NULL},
    {"devices twice", &g_dev, "0,1,1", SHK_VALUE_WRONG, "twice", NULL},
    {"devices word", &g_dev, "gpu0", SHK_VALUE_WRONG, "hidden", NULL},
    {"devices none", &g_dev, "-1", SHK_VALUE_ODD, "hidden", NULL},
    {"text", &g_text, "AWS Libfabric", SHK_VALUE_OK, NULL, NULL},
    {"text quoted", &g_text, "'AWS Libfabric'", SHK_VALUE_WRONG, "quotation marks",
     "AWS Libfabric"},
    {"text with typographic quotes", &g_text, "\xe2\x80\x9cOFI\xe2\x80\x9d", SHK_VALUE_WRONG,
     "typographic", NULL},
};

Test(grammar, cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct grammar_case *c = &cases[i];
        struct shk_judged judged;
        shk_grammar_judge(c->grammar, c->value, &judged);
        cr_expect_eq(judged.judgement, c->judgement, "%s: judgement %d, %s", c->name,
                     judged.judgement, judged.why);
        if (c->why)
            cr_expect(strstr(judged.why, c->why), "%s: \"%s\" lacks \"%s\"", c->name, judged.why,
                      c->why);
        else
            cr_expect_str_empty(judged.why, "%s", c->name);
        cr_expect_str_eq(judged.suggestion, c->suggestion ? c->suggestion : "", "%s", c->name);
    }
}

Test(grammar, hostile_values_are_cut_not_overflowed)
{
    static char value[1 << 16];
    static const struct shk_grammar *const all[] = {
        &g_level, &g_bool, &g_flag, &g_int,  &g_nccl,  &g_named, &g_size, &g_list,
        &g_hmem,  &g_if,   &g_hca,  &g_path, &g_paths, &g_host,  &g_dev,  &g_text};
    static const char fills[] = {'A', '9', ',', ':', '^', '=', '\'', '\xff', '$', ' ', '-'};
    for (size_t f = 0; f < sizeof(fills); f++) {
        memset(value, fills[f], sizeof(value) - 1);
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            struct shk_judged judged;
            shk_grammar_judge(all[i], value, &judged);
            cr_expect(strlen(judged.why) < sizeof(judged.why));
            cr_expect(strlen(judged.suggestion) < sizeof(judged.suggestion));
        }
    }
}

static const struct {
    const struct shk_grammar *grammar;
    const char *a, *b;
    bool same;
} pairs[] = {
    {&g_bool, "1", "on", true},
    {&g_bool, "1", "0", false},
    {&g_bool, "maybe", "perhaps", false},
    {&g_int, "0x10", "16", true},
    {&g_int, "16", "17", false},
    {&g_named, "phb", "PHB", true},
    {&g_named, "PHB", "PIX", false},
    {&g_list, "INFO,WARN", "WARN,info", true},
    {&g_list, "INFO", "INFO,WARN", false},
    {&g_if, "hsn1,hsn0", "hsn0,hsn1", true},
    {&g_if, "=hsn0", "hsn0", false},
    {&g_if, "^hsn0", "hsn0", false},
    {&g_text, "a", "A", false},
    {&g_level, "info", "INFO", true},
};

Test(grammar, same_meaning)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        cr_expect_eq(shk_grammar_same(pairs[i].grammar, pairs[i].a, pairs[i].b), pairs[i].same,
                     "%s and %s", pairs[i].a, pairs[i].b);
}
