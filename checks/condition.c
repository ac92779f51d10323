/* Conditions of profile lines: terms joined by "," or "&&", each "[!]NAME" or "NAME OP VALUE" with
 * OP one of = == != < <= > >=. A NAME with a dot is a fact key. */
#include "checks/row.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { KIND_NUMBER, KIND_VERSION, KIND_TEXT };

/* What a name stands for: text of the value, "" when known to be none, NULL when unknown. */
struct term {
    char *text;
    enum kind kind;
};

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static char *fact_text(const struct shk_facts *facts, const char *key)
{
    struct shk_fact fact;
    switch (shk_look(facts, key, &fact)) {
    case SHK_LOOK_ABSENT: return copy("");
    case SHK_LOOK_PRESENT: break;
    default: return NULL;
    }
    if (json_is_string(fact.value))
        return copy(json_string_value(fact.value));
    if (json_is_boolean(fact.value))
        return copy(json_is_true(fact.value) ? "1" : "0");
    return json_dumps(fact.value, JSON_ENCODE_ANY | JSON_COMPACT);
}

static struct term fact_term(const struct shk_facts *facts, const char *key, enum kind kind)
{
    return (struct term){fact_text(facts, key), kind};
}

static struct term nodes_term(const struct shk_facts *facts, const char *arg)
{
    (void)arg;
    long long nodes = shk_job_nodes(facts);
    return (struct term){nodes > 0 ? shk_strf("%lld", nodes) : NULL, KIND_NUMBER};
}

static struct term int_term(const struct shk_facts *facts, const char *key)
{
    return fact_term(facts, key, KIND_NUMBER);
}

static struct term version_term(const struct shk_facts *facts, const char *key)
{
    return fact_term(facts, key, KIND_VERSION);
}

static struct term text_term(const struct shk_facts *facts, const char *key)
{
    return fact_term(facts, key, KIND_TEXT);
}

static struct term container_term(const struct shk_facts *facts, const char *key)
{
    struct term t = text_term(facts, key);
    if (t.text && strcmp(t.text, "none") == 0)
        t.text[0] = '\0';
    return t;
}

static struct term count_term(const struct shk_facts *facts, const char *kind)
{
    long long count = shk_device_count(facts, kind);
    return (struct term){count >= 0 ? shk_strf("%lld", count) : NULL, KIND_NUMBER};
}

/* The version of the first plugin that loads, else of the first that was found. */
static struct term plugin_term(const struct shk_facts *facts, const char *key)
{
    const char *found = NULL;
    size_t i;
    json_t *plugin;
    json_array_foreach(shk_facts_get_array(facts, key), i, plugin)
    {
        const char *version = shk_member_text(plugin, "version");
        if (!version)
            continue;
        if (!found || shk_member_bool(json_object_get(plugin, "load"), "ok", false)) {
            found = version;
            if (shk_member_bool(json_object_get(plugin, "load"), "ok", false))
                break;
        }
    }
    return (struct term){copy(found), KIND_VERSION};
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
        if (count > 0)
            shk_strbuf_printf(&sb, "%s%s", sb.len ? "+" : "", kinds[i].name);
        unknown |= count < 0;
    }
    if (unknown && !sb.len) {
        shk_strbuf_free(&sb);
        return (struct term){NULL, KIND_TEXT};
    }
    return (struct term){sb.len ? shk_strbuf_take(&sb) : copy(""), KIND_TEXT};
}

static const struct {
    const char *name;
    struct term (*look)(const struct shk_facts *facts, const char *arg);
    const char *arg;
} names[] = {
    {"nodes", nodes_term, NULL},
    {"ranks", int_term, "job.ranks"},
    {"container", container_term, "host.container"},
    {"inside_container", container_term, "host.container"},
    {"virt", text_term, "host.virt"},
    {"launcher", text_term, "job.launcher"},
    {"arch", text_term, "host.arch"},
    {"gpu", gpu_term, NULL},
    {"kernel", version_term, "host.kernel"},
    {"nccl", version_term, "nccl.version"},
    {"rccl", version_term, "rccl.version"},
    {"rocm", version_term, "rocm.version"},
    {"libfabric", version_term, "fabric.version"},
    {"fabric", version_term, "fabric.version"},
    {"plugin", plugin_term, "plugin.candidates"},
    {"plugin_version", plugin_term, "plugin.candidates"},
    {"cxi", count_term, "cxi"},
    {"efa", count_term, "efa"},
    {"mlx5", count_term, "mlx5"},
};

static struct term look_up(const struct shk_facts *facts, const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].look(facts, names[i].arg);
    if (!strchr(name, '.'))
        return (struct term){NULL, KIND_TEXT};
    struct term t = text_term(facts, name);
    /* An environment was read as a whole: a variable that is not there is not set. */
    if (!t.text && strncmp(name, "env.", 4) == 0 && shk_env_known(facts) &&
        shk_look(facts, name, NULL) == SHK_LOOK_MISSING)
        t.text = copy("");
    return t;
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
            return text_equal(t->text, want) == (*op == '=');
        }
    }
    if (!*t->text)
        return -1; /* no such library or number: neither above nor below */
    long long a = strtoll(t->text, NULL, 10), b = strtoll(want, NULL, 10);
    int d = t->kind == KIND_VERSION ? shk_version_cmp(t->text, want) : (a > b) - (a < b);
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
