/* A profile of a site from the documents of its good nodes. */
#include "cli/history/profile.h"
#include "checks/base/check.h"
#include "core/facts/metrics.h"
#include "core/text/strbuf.h"
#include "reports/model/hardware.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What outweighs the signals of the profile that is extended; values of one setting. */
enum { PROFILE_WEIGHT = 50, PROFILE_VALUES = 8, PROFILE_NAME = 48 };

struct making {
    const struct shk_config *config;
    const struct shk_facts *const *facts;
    size_t count;
    const struct shk_profile *base; /* "single-node" is none */
    struct shk_strbuf *out;
    char *who; /* "n1, n2": cleaned, for comments */
};

/* A text as YAML's double-quoted scalar, which is JSON's string. */
static void make_quoted(struct making *m, const char *text)
{
    json_t *value = shk_json_text(text, strlen(text));
    char *dump = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    shk_strbuf_puts(m->out, dump ? dump : "\"\"");
    m->out->failed |= !dump;
    free(dump);
    json_decref(value);
}

static char *make_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "true" : "false");
    return json_is_integer(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
}

/* The values of a fact over all documents: {value: number of documents}; *had_p: how many have
 * one. */
static json_t *make_values(const struct making *m, const char *key, size_t *had_p)
{
    json_t *values = json_object();
    *had_p = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct shk_fact fact;
        char *text = shk_facts_get(m->facts[i], key, &fact) && fact.state == SHK_FACT_PRESENT
                         ? make_text(fact.value)
                         : NULL;
        if (text && strlen(text) < 200) {
            json_int_t had = json_integer_value(json_object_get(values, text));
            json_object_set_new(values, text, json_integer(had + 1));
            ++*had_p;
        }
        free(text);
    }
    return values;
}

/* The one value that all documents have; NULL: none. Free it. */
static char *make_common(const struct making *m, const char *key)
{
    size_t had;
    json_t *values = make_values(m, key, &had);
    char *text = had == m->count && json_object_size(values) == 1
                     ? strdup(json_object_iter_key(json_object_iter(values)))
                     : NULL;
    json_decref(values);
    return text;
}

static void make_signal(struct making *m, const char *key, int weight)
{
    struct shk_strbuf pattern = SHK_STRBUF_INIT;
    char *value = make_common(m, key);
    if (!value || !*value || strlen(value) > 100) {
        free(value);
        return;
    }
    shk_strbuf_putc(&pattern, '^');
    for (const char *p = value; *p; p++)
        shk_strbuf_printf(&pattern, strchr(".[]{}()\\*+?^$|", *p) ? "\\%c" : "%c", *p);
    shk_strbuf_putc(&pattern, '$');
    shk_strbuf_printf(m->out, "  - {fact: %s, matches: ", key);
    make_quoted(m, shk_strbuf_text(&pattern));
    if (weight > 1)
        shk_strbuf_printf(m->out, ", weight: %d", weight);
    shk_strbuf_printf(m->out, "} # the same on %s\n", m->who);
    shk_strbuf_free(&pattern);
    free(value);
}

/* The machine and its devices; of a cloud or a cluster, its name. */
static void make_signals(struct making *m)
{
    static const char *const kinds[] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd",
                                        "pci.count.neuron",     "pci.count.cxi",
                                        "pci.count.efa",        "pci.count.mlx5"};
    char *product = make_common(m, "host.product");
    struct shk_strbuf lines = SHK_STRBUF_INIT, *out = m->out;
    m->out = &lines;
    make_signal(m, "host.product", PROFILE_WEIGHT);
    make_signal(m, "host.vendor", 1);
    make_signal(m, "job.slurm.cluster", product ? 2 : PROFILE_WEIGHT);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        make_signal(m, kinds[i], !product && i == 0 ? PROFILE_WEIGHT : 1);
    m->out = out;
    if (lines.len)
        shk_strbuf_printf(out, "signals:\n%s", shk_strbuf_text(&lines));
    else
        shk_strbuf_puts(
            out, "# no signals: nothing distinguishes these nodes from others; use --profile\n");
    out->failed |= lines.failed;
    shk_strbuf_free(&lines);
    free(product);
}

static long long make_count(const struct making *m, const char *const *keys, const char **which_p)
{
    for (; *keys; keys++) {
        char *text = make_common(m, *keys);
        long long count = text ? strtoll(text, NULL, 10) : 0;
        free(text);
        *which_p = *keys;
        if (count > 0)
            return count;
    }
    return 0;
}

static void make_counts(struct making *m)
{
    static const char *const gpus[] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd",
                                       "pci.count.neuron", NULL};
    static const char *const makers[] = {"nvidia", "amd", "neuron"};
    static const char *const nics[] = {"pci.count.cxi", "pci.count.efa", "pci.count.mlx5", NULL};
    const char *which = NULL;
    long long count = make_count(m, gpus, &which);
    for (size_t i = 0; count && gpus[i]; i++)
        if (which == gpus[i])
            shk_strbuf_printf(m->out, "gpu: %s # %s on %s\ngpus: %lld # %s on %s\n", makers[i],
                              which, m->who, count, which, m->who);
    count = make_count(m, nics, &which);
    if (count && count <= 64)
        shk_strbuf_printf(m->out, "nics: %lld # %s on %s\n", count, which, m->who);
}

static void make_list(struct making *m, const json_t *values)
{
    const char *value;
    json_t *count;
    size_t n = 0;
    shk_strbuf_putc(m->out, '[');
    json_object_foreach((json_t *)values, value, count)
    {
        shk_strbuf_puts(m->out, n++ ? ", " : "");
        make_quoted(m, value);
    }
    shk_strbuf_putc(m->out, ']');
}

static void make_facts(struct making *m)
{
    static const char *const versions[] = {"nvml.driver",     "rocm.version", "cuda.driver",
                                           "nccl.version",    "rccl.version", "fabric.version",
                                           "nvshmem.version", "host.kernel",  "host.bios"};
    bool title = false;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        size_t had;
        json_t *values = make_values(m, versions[i], &had);
        if (had == m->count && json_object_size(values) <= PROFILE_VALUES) {
            shk_strbuf_puts(m->out, title ? "" : "facts:\n");
            title = true;
            shk_strbuf_printf(m->out, "  - fact: %s\n    accepted: ", versions[i]);
            make_list(m, values);
            shk_strbuf_printf(m->out,
                              " # as on %s\n    why: Good nodes of this site have it.\n"
                              "    source: ",
                              m->who);
            make_quoted(m, m->who);
            shk_strbuf_putc(m->out, '\n');
        }
        json_decref(values);
    }
}

/* Values that belong to one job, one process or one node, or that are a file: nothing that other
 * nodes should have. */
static bool make_setting_general(const struct making *m, const struct shk_setting *setting,
                                 const char *key)
{
    size_t count;
    const struct shk_diff_rule *rules = shk_config_diff(m->config, &count);
    static const enum shk_value_type own[] = {SHK_VALUE_PATH, SHK_VALUE_PATHS, SHK_VALUE_HOST_PORT,
                                              SHK_VALUE_DEVICES};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (setting->grammar.type == own[i])
            return false;
    if (strcmp(setting->family, "launcher") == 0)
        return false;
    return !shk_diff_aside_rule(rules, count, key) && setting->variable &&
           !setting->production_warning && setting->kind == SHK_SETTING_CURRENT;
}

static bool make_in_base(const struct making *m, const char *name)
{
    for (size_t i = 0; m->base && i < m->base->settings_count; i++)
        if (strcmp(m->base->settings[i].name, name) == 0)
            return true;
    return false;
}

static void make_settings(struct making *m)
{
    size_t count;
    const struct shk_setting *all = shk_config_settings(m->config, &count);
    bool title = false;
    for (size_t i = 0; i < count; i++) {
        size_t had;
        char *key = shk_strf("env.%s", all[i].name);
        json_t *values = key ? make_values(m, key, &had) : NULL;
        if (values && had && json_object_size(values) <= PROFILE_VALUES &&
            make_setting_general(m, &all[i], key) && !make_in_base(m, all[i].name)) {
            shk_strbuf_puts(m->out, title ? "" : "settings:\n");
            title = true;
            shk_strbuf_printf(m->out, "  - name: %s\n    accepted: ", all[i].name);
            make_list(m, values);
            shk_strbuf_printf(m->out, " # set on %zu of %zu\n    strength: %s\n", had, m->count,
                              had == m->count ? "recommended" : "optional");
            shk_strbuf_puts(m->out, "    why: Good nodes of this site have it.\n    source: ");
            make_quoted(m, m->who);
            shk_strbuf_putc(m->out, '\n');
        }
        json_decref(values);
        free(key);
    }
}

/* The worst good value less what two runs may differ by. */
static void make_floors(struct making *m)
{
    json_t *worst = json_object(), *value;
    const char *name;
    bool title = false;
    for (size_t i = 0; i < m->count; i++) {
        json_t *metrics = shk_metrics_of(m->facts[i]);
        json_object_foreach(metrics, name, value)
        {
            const struct shk_metric *metric = shk_metric_find(name);
            json_t *had = json_object_get(worst, name);
            double a = json_number_value(value), b = json_number_value(had);
            bool more = metric && metric->kind == SHK_METRIC_MORE;
            if (metric && metric->kind != SHK_METRIC_COUNT && (!had || (more ? a < b : a > b)))
                json_object_set(worst, name, value);
        }
        json_decref(metrics);
    }
    json_object_foreach(worst, name, value)
    {
        const struct shk_metric *metric = shk_metric_find(name);
        bool more = metric->kind == SHK_METRIC_MORE;
        double number = json_number_value(value);
        shk_strbuf_puts(m->out, title ? "" : "floors:\n");
        title = true;
        shk_strbuf_printf(m->out,
                          "  - metric: %s\n    %s: \"%.4g\" # the worst of %zu good runs has %.4g "
                          "%s; %.0f %% are left to differ\n"
                          "    why: %.3g %s is what good nodes reach.\n    source: ",
                          name, more ? "at-least" : "at-most",
                          number * (more ? 1 - metric->least : 1 + metric->least), m->count, number,
                          metric->unit, metric->least * 100, number, metric->unit);
        make_quoted(m, m->who);
        shk_strbuf_putc(m->out, '\n');
    }
    json_decref(worst);
}

/* "hpe-cray-ex235a": what the machine is called, as a key. */
static void make_name(struct making *m)
{
    char *product = make_common(m, "host.product"), name[PROFILE_NAME + 1];
    const char *from = product && *product ? product : m->base ? m->base->name : "node";
    size_t len = 0;
    for (const char *p = from; *p && len < PROFILE_NAME; p++) {
        bool good = isalnum((unsigned char)*p) && isascii((unsigned char)*p);
        if (good)
            name[len++] = (char)tolower((unsigned char)*p);
        else if (len && name[len - 1] != '-')
            name[len++] = '-';
    }
    while (len && name[len - 1] == '-')
        len--;
    name[len] = '\0';
    shk_strbuf_printf(m->out, "name: site-%s\n", len ? name : "node");
    free(product);
}

static void make_title(struct making *m)
{
    char *kind = shk_hardware_kind(m->facts[0]), *hardware = kind ? shk_hardware_words(kind) : NULL;
    struct shk_strbuf title = SHK_STRBUF_INIT;
    for (const char *p = hardware; p && *p; p++)
        shk_strbuf_puts(&title, *p == '\n' ? "; " : (char[]){*p, '\0'});
    shk_strbuf_puts(m->out, "title: ");
    make_quoted(m, title.len ? shk_strbuf_text(&title) : "nodes of this site");
    shk_strbuf_putc(m->out, '\n');
    m->out->failed |= !hardware || title.failed;
    shk_strbuf_free(&title);
    free(hardware);
    free(kind);
}

/* Names for comments: on one line, printable. */
static char *make_who(const struct making *m, bool anonymize)
{
    struct shk_strbuf names = SHK_STRBUF_INIT, clean = SHK_STRBUF_INIT;
    for (size_t i = 0; i < m->count && i < PROFILE_VALUES && !anonymize; i++) {
        const char *name = shk_facts_get_text(m->facts[i], "host.name"),
                   *had = i ? shk_facts_get_text(m->facts[i - 1], "host.name") : NULL;
        if (name && had && strcmp(name, had) == 0) /* another run of the same node */
            continue;
        shk_strbuf_printf(&names, "%s%.64s", i ? ", " : "", name ? name : "a node without a name");
    }
    if (anonymize || m->count > PROFILE_VALUES)
        shk_strbuf_printf(&names, "%s%zu good node%s", names.len ? ", in all " : "", m->count,
                          m->count == 1 ? "" : "s");
    shk_text_clean(&clean, shk_strbuf_text(&names), names.len, SHK_CLEAN_LINES);
    shk_strbuf_free(&names);
    return shk_strbuf_take(&clean);
}

/* Nodes of one hardware and one profile; says what differs. */
static int make_same(struct making *m, struct shk_error *err)
{
    char *first = shk_hardware_kind(m->facts[0]);
    int rc = first ? 0 : shk_error_sys(err, ENOMEM, "profile");
    for (size_t i = 0; i < m->count && !rc; i++) {
        const struct shk_profile *base = shk_profile_detect(m->config, m->facts[i], NULL, NULL);
        char *kind = shk_hardware_kind(m->facts[i]);
        if (!kind)
            rc = shk_error_sys(err, ENOMEM, "profile");
        else if (i && base != m->base)
            rc = shk_error_set(
                err, EINVAL, "the documents are not of one kind: document 1 has profile %s, %zu %s",
                m->base->name, i + 1, base->name);
        else if (strcmp(kind, first) != 0)
            rc = shk_error_set(err, EINVAL,
                               "the documents are not of one kind: their accelerators "
                               "or NICs differ (shakedown diff says in what)");
        m->base = base;
        free(kind);
    }
    free(first);
    return rc;
}

int shk_profile_make(const struct shk_config *config, const struct shk_facts *const *facts,
                     size_t count, const char *version, bool anonymize, struct shk_strbuf *out,
                     struct shk_error *err)
{
    struct making m = {.config = config, .facts = facts, .count = count, .out = out};
    int rc = make_same(&m, err);
    if (rc)
        return rc;
    m.base = strcmp(m.base->name, "single-node") ? m.base : NULL;
    m.who = make_who(&m, anonymize);
    if (!m.who)
        return shk_error_sys(err, ENOMEM, "profile");
    shk_strbuf_printf(out,
                      "# Made by shakedown %s of %zu document%s of good nodes: %s.\n"
                      "# Keep what should hold for every node of the kind, and try it:\n"
                      "#   shakedown config check FILE; shakedown check NODE.json --profile FILE\n",
                      version, count, count == 1 ? "" : "s", m.who);
    make_name(&m);
    make_title(&m);
    if (m.base)
        shk_strbuf_printf(out, "extends: %s # what was detected on %s\n", m.base->name, m.who);
    make_signals(&m);
    make_counts(&m);
    make_settings(&m);
    make_facts(&m);
    make_floors(&m);
    shk_strbuf_puts(out, "source: ");
    make_quoted(&m, m.who);
    shk_strbuf_putc(out, '\n');
    free(m.who);
    return out->failed ? shk_error_sys(err, ENOMEM, "profile") : 0;
}
