/* Conditions on a node: terms joined by "," or "&&", each "[!]NAME" or "NAME OP VALUE" with
 * OP one of = == != < <= > >=. A NAME with a dot is a fact key, or one and a member of its object.
 */
#include "checks/base/coded.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { KIND_NUMBER, KIND_VERSION, KIND_TEXT };

/* What a name stands for: text of the value, "" when known to be none, NULL when unknown. */
struct term {
    char *text;
    enum kind kind;
    bool partial; /* there may be more than the text says; of a number: it is at least that */
};

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static char *value_text(const json_t *value, enum kind kind)
{
    if (kind == KIND_NUMBER ? !json_is_integer(value)
                            : kind == KIND_VERSION && !json_is_string(value))
        return NULL; /* of another type: not read */
    if (json_is_string(value))
        return copy(json_string_value(value));
    if (json_is_boolean(value))
        return copy(json_is_true(value) ? "1" : "0");
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* A member of a fact that is an object, as limits.memlock.soft: NULL when it was not read. */
static char *member_text(const struct shk_facts *facts, const char *key, enum kind kind)
{
    struct shk_fact fact;
    char *parent = strdup(key), *dot = parent ? strrchr(parent, '.') : NULL, *text = NULL;
    if (dot) {
        *dot = '\0';
        const json_t *member = NULL;
        if (shk_look(facts, parent, &fact) == SHK_LOOK_PRESENT)
            member = json_object_get(fact.value, dot + 1);
        if (member && !json_is_null(member) && !json_is_object(member))
            text = value_text(member, kind);
    }
    free(parent);
    return text;
}

static struct term fact_term(const struct shk_facts *facts, const char *key, enum kind kind)
{
    struct shk_fact fact;
    switch (shk_look(facts, key, &fact)) {
    case SHK_LOOK_ABSENT: return (struct term){.text = copy(""), .kind = kind};
    case SHK_LOOK_PRESENT: return (struct term){.text = value_text(fact.value, kind), .kind = kind};
    case SHK_LOOK_MISSING:
        return (struct term){.text = member_text(facts, key, kind), .kind = kind};
    default: return (struct term){.kind = kind};
    }
}

/* One that is text or nothing. */
static struct term word_term(const struct shk_facts *facts, const char *key)
{
    const char *word = NULL;
    enum shk_look look = shk_look_text(facts, key, &word);
    if (look == SHK_LOOK_ABSENT)
        word = "";
    return (struct term){.text = copy(word), .kind = KIND_TEXT};
}

/* How many of a kind there are at least, as other facts imply (checks/cause/imply.c); 0: none do.
 */
static long long implied(const struct shk_facts *facts, const char *kind)
{
    char key[64];
    long long count = 0;
    snprintf(key, sizeof key, "implied.%s", kind);
    (void)shk_look_int(facts, key, &count);
    return count;
}

/* A count; where it is not known, what is implied. */
static struct term number_term(long long count, long long least)
{
    bool known = count >= 0;
    char *text = known || least > 0 ? shk_strf("%lld", known ? count : least) : NULL;
    return (struct term){.text = text, .kind = KIND_NUMBER, .partial = !known};
}

static struct term nodes_term(const struct shk_facts *facts, const char *arg)
{
    (void)arg;
    return number_term(shk_job_nodes(facts), implied(facts, "nodes"));
}

/* Accelerators of the node, of any maker. */
static struct term gpus_term(const struct shk_facts *facts, const char *arg)
{
    (void)arg;
    long long least = implied(facts, "gpu-nvidia");
    if (implied(facts, "gpu-amd") > least)
        least = implied(facts, "gpu-amd");
    if (implied(facts, "neuron") > least)
        least = implied(facts, "neuron");
    return number_term(shk_gpu_count(facts), least);
}

static struct term int_term(const struct shk_facts *facts, const char *key)
{
    return fact_term(facts, key, KIND_NUMBER);
}

static struct term version_term(const struct shk_facts *facts, const char *key)
{
    return fact_term(facts, key, KIND_VERSION);
}

static struct term container_term(const struct shk_facts *facts, const char *key)
{
    struct term t = word_term(facts, key);
    if (t.text && strcmp(t.text, "none") == 0)
        t.text[0] = '\0';
    return t;
}

static struct term count_term(const struct shk_facts *facts, const char *kind)
{
    return number_term(shk_device_count(facts, kind), implied(facts, kind));
}

/* Does the plugin load? -1 not known. */
static int plugin_loads(const json_t *plugin)
{
    json_t *load = NULL;
    bool ok = false;
    enum shk_look look = shk_look_member_object(plugin, "load", &load);
    if (look == SHK_LOOK_PRESENT)
        look = shk_look_member_bool(load, "ok", &ok);
    return look == SHK_LOOK_PRESENT ? ok : look == SHK_LOOK_ABSENT ? 0 : -1;
}

/* The version of the first plugin that loads, else of the first that was found. */
static struct term plugin_term(const struct shk_facts *facts, const char *key)
{
    struct term none = {.kind = KIND_VERSION};
    const char *found = NULL;
    size_t i;
    json_t *plugins = NULL, *plugin;
    if (shk_look_array(facts, key, &plugins) != SHK_LOOK_PRESENT)
        return none;
    json_array_foreach(plugins, i, plugin)
    {
        const char *version = NULL;
        int loads = plugin_loads(plugin);
        (void)shk_look_member_text(plugin, "version", &version);
        if (loads < 0 && i + 1 < json_array_size(plugins))
            return none; /* it may be this one or one behind it */
        if (loads > 0) {
            found = version;
            break;
        }
        if (!found)
            found = version;
    }
    return (struct term){.text = copy(found), .kind = KIND_VERSION};
}

/* "amd", "nvidia", "neuron", several joined by '+', "" when none is there. */
static struct term gpu_term(const struct shk_facts *facts, const char *arg)
{
    static const struct {
        const char *kind, *name;
    } kinds[] = {{"gpu-nvidia", "nvidia"}, {"gpu-amd", "amd"}, {"neuron", "neuron"}};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool unknown = false;
    (void)arg;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        long long count = shk_device_count(facts, kinds[i].kind);
        if (count > 0 || (count < 0 && implied(facts, kinds[i].kind) > 0))
            shk_strbuf_printf(&sb, "%s%s", sb.len ? "+" : "", kinds[i].name);
        unknown |= count < 0;
    }
    if (unknown && !sb.len) {
        shk_strbuf_free(&sb);
        return (struct term){.kind = KIND_TEXT};
    }
    return (struct term){
        .text = sb.len ? shk_strbuf_take(&sb) : copy(""), .kind = KIND_TEXT, .partial = unknown};
}

static const struct {
    const char *name;
    struct term (*look)(const struct shk_facts *facts, const char *arg);
    const char *arg;
} names[] = {
    {"nodes", nodes_term, NULL},
    {"gpus", gpus_term, NULL},
    {"ranks", int_term, "job.ranks"},
    {"container", container_term, "host.container"},
    {"inside_container", container_term, "host.container"},
    {"virt", word_term, "host.virt"},
    {"launcher", word_term, "job.launcher"},
    {"arch", word_term, "host.arch"},
    {"gpu", gpu_term, NULL},
    {"kernel", version_term, "host.kernel"},
    {"nccl", version_term, "nccl.version"},
    {"rccl", version_term, "rccl.version"},
    {"nvshmem", version_term, "nvshmem.version"},
    {"rocm", version_term, "rocm.version"},
    {"libfabric", version_term, "fabric.version"},
    {"fabric", version_term, "fabric.version"},
    {"plugin", plugin_term, "plugin.candidates"},
    {"plugin_version", plugin_term, "plugin.candidates"},
    {"cxi", count_term, "cxi"},
    {"efa", count_term, "efa"},
    {"mlx5", count_term, "mlx5"},
};

/* What the job sees of a variable, its files included. */
static struct term env_term(const struct shk_facts *facts, const char *name)
{
    const char *value = NULL;
    if (shk_look_env(facts, name, &value) == SHK_LOOK_ABSENT)
        value = "";
    return (struct term){.text = copy(value), .kind = KIND_TEXT};
}

static struct term look_up(const struct shk_facts *facts, const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].look(facts, names[i].arg);
    if (!strchr(name, '.'))
        return (struct term){.kind = KIND_TEXT};
    if (strncmp(name, "env.", 4) == 0 && strncmp(name, "env.file.", 9) != 0)
        return env_term(facts, name + 4);
    return fact_term(facts, name, KIND_TEXT);
}

char *shk_condition_text(const char *name, const struct shk_facts *facts)
{
    return look_up(facts, name).text;
}

static bool text_equal(const char *have, const char *want)
{
    /* "amd+nvidia" holds both. */
    size_t len = strlen(want);
    for (const char *p = have; *p; p += strcspn(p, "+"), p += *p == '+')
        if (strcspn(p, "+") == len && strncasecmp(p, want, len) == 0)
            return true;
    return strcasecmp(have, want) == 0;
}

static int compare(const struct term *t, const char *op, const char *want)
{
    if (t->kind == KIND_TEXT) {
        char *end;
        bool numbers = *want && (strtoll(want, &end, 10), *end == '\0') && *t->text &&
                       (strtoll(t->text, &end, 10), *end == '\0');
        if (!numbers) {
            if (*op == '<' || *op == '>')
                return -1;
            bool equal = text_equal(t->text, want);
            return !equal && t->partial ? -1 : equal == (*op == '=');
        }
    }
    if (!*t->text)
        return -1; /* no such library or number: neither above nor below */
    long long a = strtoll(t->text, NULL, 10), b = strtoll(want, NULL, 10);
    int d = t->kind == KIND_VERSION ? shk_version_cmp(t->text, want) : (a > b) - (a < b);
    if (t->partial && d <= 0 && !(d == 0 && strcmp(op, ">=") == 0))
        return -1; /* there may be more */
    switch (op[0]) {
    case '<': return d < 0 || (op[1] == '=' && d == 0);
    case '>': return d > 0 || (op[1] == '=' && d == 0);
    case '!': return d != 0;
    default: return d == 0;
    }
}

static int term_holds(char *text, const struct shk_facts *facts)
{
    bool negate = false;
    text = shk_trim(text);
    while (*text == '!') {
        negate = !negate;
        text = shk_trim(text + 1);
    }
    char *op = strpbrk(text, "=!<>");
    char sign[3] = "";
    char *value = NULL;
    if (op) {
        size_t len = op[1] == '=' ? 2 : 1;
        sign[0] = op[0];
        sign[1] = len == 2 ? op[1] : '\0';
        value = op + len;
        *op = '\0';
    }
    text = shk_trim(text);
    if (!*text || (op && sign[0] == '!' && sign[1] != '='))
        return -1;
    struct term t = look_up(facts, text);
    int holds = -1;
    if (t.text)
        holds = op ? compare(&t, sign, shk_trim(value)) : *t.text && strcmp(t.text, "0") != 0;
    free(t.text);
    return holds < 0 ? -1 : negate ? !holds : holds;
}

int shk_condition_holds(const char *condition, const struct shk_facts *facts)
{
    if (!condition || !*condition)
        return 1;
    char *text = strdup(condition);
    if (!text)
        return -1;
    int all = 1;
    for (char *p = text, *next; p && all != 0; p = next) {
        next = strpbrk(p, ",&");
        if (next) {
            bool two = next[0] == '&' && next[1] == '&';
            *next = '\0';
            next += two ? 2 : 1;
        }
        int one = term_holds(p, facts);
        if (one <= 0)
            all = one == 0 ? 0 : -1;
    }
    free(text);
    return all;
}
