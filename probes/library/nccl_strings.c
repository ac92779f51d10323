#include "probes/library/nccl_strings.h"
#include "core/text/uses.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2.28 has 187 names; the bound ends what a hostile file could make us collect. */
enum { STRINGS_MAX_NAMES = 4096, STRINGS_MAX_NAME = 80 };

static const struct {
    const char *name, *prefix;
} kinds[] = {
    [SHK_ABI_NET] = {.name = "net", .prefix = "ncclNetPlugin_v"},
    [SHK_ABI_COLLNET] = {.name = "collnet", .prefix = "ncclCollNetPlugin_v"},
    [SHK_ABI_TUNER] = {.name = "tuner", .prefix = "ncclTunerPlugin_v"},
    [SHK_ABI_PROFILER] = {.name = "profiler", .prefix = "ncclProfiler_v"},
    [SHK_ABI_ENV] = {.name = "env", .prefix = "ncclEnvPlugin_v"},
    [SHK_ABI_GIN] = {.name = "gin", .prefix = "ncclGinPlugin_v"},
    [SHK_ABI_RMA] = {.name = "rma", .prefix = "ncclRmaPlugin_v"},
};

const char *shk_nccl_abi_name(enum shk_nccl_abi kind)
{
    return kinds[kind].name;
}

bool shk_nccl_abi_parse(const char *symbol, enum shk_nccl_abi *kind_p, unsigned *version_p)
{
    /* a library has tens of thousands of strings and a few of these */
    if (symbol[0] != 'n' || symbol[1] != 'c')
        return false;
    for (int k = 0; k < SHK_ABI_COUNT; k++) {
        size_t len = strlen(kinds[k].prefix);
        if (strncmp(symbol, kinds[k].prefix, len) != 0)
            continue;
        const char *digits = symbol + len;
        size_t n = strspn(digits, "0123456789");
        if (n < 1 || n > 3 || digits[n] || digits[0] == '0')
            return false;
        *kind_p = (enum shk_nccl_abi)k;
        *version_p = (unsigned)strtoul(digits, NULL, 10);
        return true;
    }
    return false;
}

void shk_nccl_abis_add(struct shk_nccl_abis *abis, const char *symbol)
{
    enum shk_nccl_abi kind;
    unsigned version;
    if (shk_nccl_abi_parse(symbol, &kind, &version) && version < 64)
        abis->set[kind] |= 1ull << version;
}

json_t *shk_nccl_abis_json(unsigned long long set)
{
    json_t *list = json_array();
    for (unsigned v = 0; v < 64 && list; v++) {
        if (set >> v & 1)
            json_array_append_new(list, json_integer(v));
    }
    return list;
}

struct names {
    char (*list)[STRINGS_MAX_NAME];
    size_t count;
    bool nomem;
};

static void names_add(struct names *names, const char *text, size_t len)
{
    if (len >= STRINGS_MAX_NAME || names->count == STRINGS_MAX_NAMES)
        return;
    if (!names->list && !(names->list = calloc(STRINGS_MAX_NAMES, sizeof *names->list))) {
        names->nomem = true;
        return;
    }
    memcpy(names->list[names->count], text, len);
    names->list[names->count++][len] = '\0';
}

static int names_cmp(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorted, without repeats; frees names. */
static json_t *names_take(struct names *names)
{
    json_t *list = names->nomem ? NULL : json_array();
    if (names->count)
        qsort(names->list, names->count, sizeof *names->list, names_cmp);
    for (size_t i = 0; i < names->count && list; i++) {
        if (!i || strcmp(names->list[i], names->list[i - 1]) != 0)
            json_array_append_new(list, json_string(names->list[i]));
    }
    free(names->list);
    *names = (struct names){0};
    return list;
}

/* Words of enumerations and macros that libraries print: log subsystems, levels, flags. */
static bool strings_is_word(const char *text, size_t len)
{
    static const char end[] = "_INITIALIZER";
    char word[128];
    snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), text);
    if (shk_variable_has("no-variables.nccl", word))
        return true;
    return len > sizeof end && strcmp(text + len - (sizeof end - 1), end) == 0;
}

static const char strings_of_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* Where the part of the text starts that could be the end of a name. */
static size_t strings_tail(const char *text, size_t len)
{
    while (len && (isupper((unsigned char)text[len - 1]) || isdigit((unsigned char)text[len - 1]) ||
                   text[len - 1] == '_'))
        len--;
    return len;
}

/* A whole string of capitals, digits and '_' with one of the prefixes and something after it. */
static bool strings_is_env_name(const char *text, size_t len, const char *const *prefixes)
{
    for (; *prefixes; prefixes++) {
        if (**prefixes != *text)
            continue;
        size_t n = strlen(*prefixes);
        if (len > n && strncmp(text, *prefixes, n) == 0 && text[len - 1] != '_' &&
            strspn(text + n, strings_of_names) == len - n)
            return !strings_is_word(text, len);
    }
    return false;
}

struct env_scan {
    const char *const *prefixes;
    struct names names;
};

/* Where a name starts that is glued to the end of another string: "/dev/shm/nccl-XXNCCL_NET_PLUGIN"
 * in NCCL 2.18.3, whose template has no end of its own. A name that a message ends with has a blank
 * in front, a longer name an underscore. NULL: none. */
static const char *strings_glued(const char *text, size_t len, const char *const *prefixes)
{
    size_t tail = strings_tail(text, len);
    for (size_t at = tail ? tail : 1; at < len; at++) {
        if (text[at - 1] != '_' && text[at - 1] != ' ' &&
            strings_is_env_name(text + at, len - at, prefixes))
            return text + at;
    }
    return NULL;
}

static int strings_env(const char *text, size_t len, void *arg)
{
    struct env_scan *scan = arg;
    const char *name = strings_is_env_name(text, len, scan->prefixes)
                           ? text
                           : strings_glued(text, len, scan->prefixes);
    if (name)
        names_add(&scan->names, name, len - (size_t)(name - text));
    return scan->names.nomem;
}

json_t *shk_elf_env_names(const struct shk_elf *elf, const char *const *prefixes)
{
    struct env_scan scan = {.prefixes = prefixes};
    shk_elf_each_string(elf, 4, strings_env, &scan);
    return names_take(&scan.names);
}

struct nccl_scan {
    struct shk_nccl_strings *out;
    struct env_scan env;
    struct names plugins;
};

/* "NCCL version 2.28.9+cuda13.0", "RCCL version 2.20.5+hip6.2"; the same text goes on differently
 * in log formats ("NCCL version %d"), which do not start with a digit. */
static void strings_version(struct shk_nccl_strings *out, const char *text)
{
    static const char *const starts[] = {"NCCL version ", "RCCL version "};
    if (text[0] && text[1] != 'C')
        return;
    for (int i = 0; i < 2; i++) {
        const char *p = text + strlen(starts[i]);
        if (strncmp(text, starts[i], strlen(starts[i])) != 0 || !isdigit((unsigned char)*p))
            continue;
        size_t n = strspn(p, "0123456789."),
               b = p[n] == '+' ? strspn(p + n + 1, "abcdefghijklmnopqrstuvwxyz0123456789.") : 0;
        if (!memchr(p, '.', n))
            continue;
        if (!*out->version)
            snprintf(out->version, sizeof out->version, "%.*s", (int)n, p);
        if (b && !*out->built_for)
            snprintf(out->built_for, sizeof out->built_for, "%.*s", (int)b, p + n + 1);
    }
}

static bool strings_is_plugin_name(const char *text)
{
    static const char *const kind[] = {"net", "tuner", "profiler", "env", "gin", "rma"};
    if (*text != 'l')
        return false;
    if (strncmp(text, "libnccl-", 8) != 0 && strncmp(text, "librccl-", 8) != 0)
        return false;
    const char *rest = text + 8;
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++) {
        size_t n = strlen(kind[i]);
        if (strncmp(rest, kind[i], n) == 0 && (!rest[n] || strcmp(rest + n, ".so") == 0))
            return true;
    }
    return false;
}

static int strings_nccl(const char *text, size_t len, void *arg)
{
    struct nccl_scan *scan = arg;
    strings_version(scan->out, text);
    shk_nccl_abis_add(&scan->out->accepts, text);
    if (strings_is_plugin_name(text))
        names_add(&scan->plugins, text, len);
    if (*text == 'S' && strcmp(text, "STATIC_PLUGIN") == 0)
        scan->out->static_plugin = true;
    return strings_env(text, len, &scan->env) || scan->plugins.nomem;
}

int shk_nccl_strings_read(struct shk_nccl_strings *strings_p, const struct shk_elf *elf,
                          struct shk_error *err)
{
    const char *const *prefixes = shk_variables("prefixes.nccl");
    struct shk_nccl_strings out = {0};
    struct nccl_scan scan = {.out = &out, .env = {.prefixes = prefixes}};
    shk_elf_each_string(elf, 4, strings_nccl, &scan);
    out.env_names = names_take(&scan.env.names);
    out.plugin_names = names_take(&scan.plugins);
    if (!out.env_names || !out.plugin_names) {
        shk_nccl_strings_free(&out);
        return shk_error_sys(err, ENOMEM, "strings of the library");
    }
    *strings_p = out;
    return 0;
}

void shk_nccl_strings_free(struct shk_nccl_strings *strings)
{
    json_decref(strings->env_names);
    json_decref(strings->plugin_names);
    *strings = (struct shk_nccl_strings){0};
}
