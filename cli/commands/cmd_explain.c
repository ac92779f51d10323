#include "checks/base/check.h"
#include "checks/log/log.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/output.h"
#include "config/defects.h"
#include "core/host/host.h"
#include "core/redact/redact.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/probe.h"
#include "reports/text/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXPLAIN_GROUPS = 64 }; /* different demands on one setting */

/* What the text is wrapped to. */
static unsigned explain_width;

/* "Label      text", its lines aligned; nothing when there is no text. A line to run stays whole.
 */
static void explain_put(FILE *out, const char *label, const char *text, bool shell)
{
    struct shk_strbuf lines = SHK_STRBUF_INIT;
    char lead[32];
    if (!text || !*text)
        return;
    snprintf(lead, sizeof lead, "%-12s ", label);
    struct shk_wrap wrap = {.style = {.unicode = true},
                            .width = explain_width,
                            .lead = lead,
                            .shell = shell,
                            .block = true};
    size_t end = strlen(text);
    while (end && text[end - 1] == '\n')
        end--;
    char *whole = strndup(text, end);
    shk_wrap_put(&lines, &wrap, whole ? whole : text);
    fputs(shk_strbuf_text(&lines), out);
    shk_strbuf_free(&lines);
    free(whole);
}

static void explain_line(FILE *out, const char *label, const char *text)
{
    explain_put(out, label, text, false);
}

static char *explain_words(const char *const *words)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; words && words[i]; i++)
        shk_strbuf_printf(&sb, "%s%s", i ? ", " : "", words[i]);
    return shk_strbuf_take(&sb);
}

static void explain_readers(FILE *out, const struct shk_setting *s)
{
    for (size_t i = 0; i < s->readers_count; i++) {
        const struct shk_reader *r = &s->readers[i];
        char *text =
            shk_strf("%s%s%s%s%s%s%s%s", r->library, r->since ? " from " : "",
                     r->since ? r->since : "", r->until ? " until " : "", r->until ? r->until : "",
                     r->file ? " (" : "", r->file ? r->file : "", r->file ? ")" : "");
        explain_line(out, i ? "" : "Read by", text);
        free(text);
    }
    if (!s->readers_count)
        explain_line(out, "Read by", "no library");
}

static void explain_values(FILE *out, const struct shk_grammar *g)
{
    char *words = explain_words(g->values), *wrong = explain_words(g->wrong);
    char range[96] = "";
    if (g->has_min && g->has_max)
        snprintf(range, sizeof range, " from %lld to %lld", g->min, g->max);
    else if (g->has_min)
        snprintf(range, sizeof range, " of at least %lld", g->min);
    else if (g->has_max)
        snprintf(range, sizeof range, " of at most %lld", g->max);
    char *text = shk_strf("%s%s%s%s", shk_value_type_name(g->type), range,
                          words && *words ? ": " : "", words ? words : "");
    explain_line(out, "Values", text);
    explain_line(out, "Not", wrong);
    free(text);
    free(words);
    free(wrong);
}

struct explain_group {
    char *says;
    struct shk_strbuf names;
};

/* What a profile says of the setting; NULL: out of memory. */
static char *explain_demand(const struct shk_profile_setting *line)
{
    char *values = explain_words(line->accepted);
    const char *value = line->must_be_unset ? "unset" : values && *values ? values : "set";
    char *text = shk_strf("%s (%s)%s%s", value, shk_line_strength(line),
                          line->condition ? ", if " : "", line->condition ? line->condition : "");
    free(values);
    return text;
}

static void explain_join(struct explain_group *groups, size_t *count, char *says, const char *name)
{
    for (size_t g = 0; says && g < *count; g++) {
        if (strcmp(groups[g].says, says) == 0) {
            shk_strbuf_printf(&groups[g].names, ", %s", name);
            free(says);
            return;
        }
    }
    if (!says || *count == EXPLAIN_GROUPS) {
        free(says);
        return;
    }
    groups[*count] = (struct explain_group){.says = says, .names = SHK_STRBUF_INIT};
    shk_strbuf_puts(&groups[(*count)++].names, name);
}

/* Profiles that say the same are one line. */
static void explain_in_profiles(FILE *out, const struct shk_config *config, const char *name)
{
    struct explain_group groups[EXPLAIN_GROUPS];
    size_t n, count = 0;
    const struct shk_profile *all = shk_config_profiles(config, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; !all[i].abstract && k < all[i].settings_count; k++)
            if (strcmp(all[i].settings[k].name, name) == 0)
                explain_join(groups, &count, explain_demand(&all[i].settings[k]), all[i].name);
    for (size_t g = 0; g < count; g++) {
        char *text = shk_strf("%s: %s", groups[g].says, shk_strbuf_text(&groups[g].names));
        explain_line(out, g ? "" : "Profiles", text);
        free(text);
        free(groups[g].says);
        shk_strbuf_free(&groups[g].names);
    }
}

/* A kernel parameter that the system says by its own name. NULL: no such one. */
static char *explain_sysctl(const char *name)
{
    struct shk_host *host = NULL;
    struct shk_error err;
    char *path = shk_strf("/proc/sys/%s", name), *value = NULL;
    for (char *p = path ? path + strlen("/proc/sys/") : NULL; p && *p; p++)
        if (*p == '.')
            *p = '/';
    if (path && strchr(name, '.') && !strchr(name, '/') && !shk_host_open(&host, NULL, &err) &&
        shk_host_line(host, &value, &err, "%s", path))
        value = NULL;
    shk_host_close(host);
    free(path);
    return value;
}

/* What it is where this command runs. */
static void explain_here(FILE *out, const struct shk_setting *s)
{
    const char *why, *value = s->variable ? getenv(s->name) : NULL;
    char *text = NULL;
    if (s->variable)
        text = !value    ? strdup("not set in this environment")
               : !*value ? strdup("set, but empty, in this environment")
               : shk_redact_value(s->name, value, &why)
                   ? strdup("set in this environment; the value is a secret")
                   : shk_strf("%s in this environment", value);
    else if ((text = explain_sysctl(s->name))) {
        char *said = shk_strf("%s on this node", text);
        free(text);
        text = said;
    }
    explain_line(out, "Here", text);
    free(text);
}

/* What a log tells of the setting: lines that show it read, in effect, or without effect. */
static void explain_log(FILE *out, const struct shk_config *config, const struct shk_setting *s)
{
    size_t n, said = 0;
    const struct shk_signature *all = shk_config_signatures(config, &n);
    for (size_t i = 0; i < n; i++) {
        bool proves = all[i].proves && shk_list_has(all[i].proves, s->name);
        if (!proves && !(all[i].refutes && shk_list_has(all[i].refutes, s->name)))
            continue;
        char *text = shk_strf("%s: %s (%s)", proves ? "in effect" : "without effect",
                              all[i].meaning, all[i].id);
        explain_line(out, said++ ? "" : "In a log", text);
        free(text);
    }
    const struct shk_signature *reads = shk_log_reads(config, s->name);
    if (!reads)
        return;
    char *text = shk_strf("read, with its value: %s (%s)", reads->meaning, reads->id);
    explain_line(out, said ? "" : "In a log", text);
    free(text);
}

static bool explain_setting(const struct shk_config *config, const char *name, FILE *out)
{
    const struct shk_setting *s = shk_config_setting(config, name);
    if (!s)
        return false;
    char *title = shk_strf("%s (%s, %s)", s->name, s->family, shk_setting_kind_name(s->kind));
    explain_line(out, "Setting", title);
    free(title);
    explain_here(out, s);
    explain_line(out, "Effect", s->effect);
    explain_readers(out, s);
    explain_values(out, &s->grammar);
    explain_line(out, "Default", s->default_value);
    explain_line(out, "Costs", s->cost);
    char *wrong = shk_strf("%s (severity %s)", s->if_wrong ? s->if_wrong : "no known harm",
                           shk_severity_name(s->severity));
    explain_line(out, "If wrong", wrong);
    free(wrong);
    explain_line(out, "Instead", s->replaced_by);
    explain_log(out, config, s);
    explain_put(out, "Fix", s->fix, true);
    explain_line(out, "Advice", s->advice);
    explain_in_profiles(out, config, name);
    explain_line(out, "Source", s->source);
    explain_line(out, "Row", s->place);
    return true;
}

static bool explain_check(const struct shk_config *config, const char *name, FILE *out)
{
    size_t n;
    const struct shk_check *const *all = shk_checks(&n);
    (void)config;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i]->id, name) != 0)
            continue;
        explain_line(out, "Check", all[i]->id);
        explain_line(out, "Judges", all[i]->title);
        char *how = shk_uses_expand(all[i]->doc);
        explain_line(out, "How", how);
        free(how);
        return true;
    }
    return false;
}

static bool explain_diagnosis(const struct shk_config *config, const char *name, FILE *out)
{
    const struct shk_diagnosis *d = shk_config_diagnosis(config, name);
    if (!d)
        return false;
    char *explains = explain_words(d->explains);
    explain_line(out, "Diagnosis", d->key);
    explain_line(out, "Title", d->title);
    explain_line(out, "Meaning", d->explanation);
    explain_line(out, "Shows as", d->shows);
    explain_line(out, "Confirm", d->confirm);
    explain_put(out, "Fix", d->fix, true);
    explain_line(out, "Advice", d->advice);
    explain_line(out, "Who acts", d->who);
    explain_line(out, "Explains", explains);
    explain_line(out, "Source", d->source);
    free(explains);
    return true;
}

static bool explain_profile(const struct shk_config *config, const char *name, FILE *out)
{
    const struct shk_profile *p = shk_config_profile(config, name);
    if (!p)
        return false;
    char *providers = explain_words(p->providers);
    explain_line(out, "Profile", p->name);
    explain_line(out, "Title", p->title);
    explain_line(out, "Extends", p->extends);
    explain_line(out, "GPU", p->gpu);
    explain_line(out, "Providers", providers);
    explain_line(out, "Net plugin", p->plugin);
    free(providers);
    for (size_t i = 0; i < p->settings_count; i++) {
        const struct shk_profile_setting *line = &p->settings[i];
        char *values = explain_words(line->accepted);
        char *text = shk_strf("%s = %s (%s%s%s)", line->name,
                              line->must_be_unset ? "unset"
                              : values && *values ? values
                                                  : "any value",
                              shk_line_strength(line), line->condition ? "; if " : "",
                              line->condition ? line->condition : "");
        explain_line(out, i ? "" : "Settings", text);
        explain_line(out, "", line->why);
        free(text);
        free(values);
    }
    explain_line(out, "Source", p->source);
    return true;
}

/* "NCCL_NET is Socket" of a term of a conflict. */
static void explain_term(FILE *out, const char *label, const struct shk_term *t)
{
    char *words = explain_words(t->is ? t->is : t->is_not);
    const struct {
        const char *verb, *object;
    } tests[] = {
        {"is", t->is ? words : NULL},
        {"is none of", t->is_not ? words : NULL},
        {"matches", t->matches},
        {"does not match", t->matches_not},
        {"is not set, or does not match", t->lacks},
        {"differs from", t->differs_from},
        {"is known to", t->in},
        {"is not known to", t->not_in},
        {t->set       ? "is set"
         : t->unset   ? "is not set"
         : t->present ? "is there"
                      : "is absent",
         ""},
    };
    size_t i = 0;
    while (!tests[i].object)
        i++;
    const char *what = t->setting ? t->setting : t->fact ? t->fact : t->no_log ? t->no_log : t->log;
    bool plain = !t->setting && !t->fact && !t->capture;
    char *text = plain ? shk_strf("%s %s", what, t->no_log ? "is in no log" : "is in a log") : NULL;
    if (!text)
        text = shk_strf("%s%s%s %s%s%s", what, t->member ? "." : "", t->member ? t->member : "",
                        tests[i].verb, *tests[i].object ? " " : "", tests[i].object);
    explain_line(out, label, text);
    free(text);
    free(words);
}

static bool explain_conflict(const struct shk_config *config, const char *name, FILE *out)
{
    size_t n;
    const struct shk_conflict *all = shk_config_conflicts(config, &n), *c = NULL;
    for (size_t i = 0; i < n && !c; i++)
        if (strcmp(all[i].name, name) == 0)
            c = &all[i];
    if (!c)
        return false;
    explain_line(out, "Conflict", c->name);
    for (size_t i = 0; i < c->when_count; i++)
        explain_term(out, i ? "" : "When", &c->when[i]);
    explain_line(out, "Where", c->condition);
    explain_line(out, "Verdict", c->verdict);
    explain_line(out, "Because", c->why);
    explain_put(out, "Fix", c->fix, true);
    explain_line(out, "Advice", c->advice);
    explain_line(out, "Root cause", c->diagnosis);
    explain_line(out, "Source", c->source);
    return true;
}

static bool explain_defect(const struct shk_config *config, const char *name, FILE *out)
{
    size_t n;
    const struct shk_defect *all = shk_config_defects(config, &n), *d = NULL;
    for (size_t i = 0; i < n && !d; i++)
        if (strcmp(all[i].name, name) == 0)
            d = &all[i];
    if (!d)
        return false;
    explain_line(out, "Defect", d->name);
    explain_line(out, "Of", shk_defect_library(d->library)->label);
    for (size_t i = 0; i < d->releases_count; i++) {
        const struct shk_defect_range *r = &d->releases[i];
        char *text = shk_strf("%s%s%s%s", r->from ? r->from : "", r->from ? " and later, " : "",
                              r->fixed_in ? "before " : "no release is without it",
                              r->fixed_in ? r->fixed_in : "");
        explain_line(out, i ? "" : "Releases", text);
        free(text);
    }
    explain_line(out, "Title", d->title);
    explain_line(out, "Meaning", d->meaning);
    explain_line(out, "In a log", d->pattern);
    for (const char *const *id = d->signs; id && *id; id++)
        explain_line(out, d->pattern || id > d->signs ? "" : "In a log", *id);
    for (size_t i = 0; i < d->when_count; i++)
        explain_term(out, i ? "" : "When", &d->when[i]);
    explain_put(out, "Fix", d->fix, true);
    explain_line(out, "Advice", d->advice);
    explain_line(out, "Root cause", d->diagnosis ? d->diagnosis : "release-defect");
    explain_line(out, "Source", d->source);
    return true;
}

static bool explain_probe(const struct shk_config *config, const char *name, FILE *out)
{
    size_t n;
    const struct shk_probe *const *all = shk_probes(&n);
    (void)config;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i]->name, name) != 0)
            continue;
        explain_line(out, "Probe", all[i]->name);
        explain_line(out, "Reads", all[i]->doc);
        char *provides = explain_words(all[i]->provides);
        explain_line(out, "Facts", provides);
        free(provides);
        return true;
    }
    return false;
}

static bool (*const explainers[])(const struct shk_config *, const char *, FILE *) = {
    explain_setting,  explain_check,  explain_diagnosis, explain_profile,
    explain_conflict, explain_defect, explain_probe};
enum { EXPLAINERS = sizeof explainers / sizeof *explainers };

enum { EXPLAIN_PARTS = 8 }; /* names in one message */

struct explain_names {
    const char **items;
    size_t count, cap;
};

static void explain_name(struct explain_names *names, const char *name)
{
    if (names->count < names->cap)
        names->items[names->count++] = name;
}

/* Every name there is. NULL items when out of memory. */
static struct explain_names explain_all(const struct shk_config *config)
{
    size_t settings, checks, diagnoses, profiles, conflicts, defects, probes;
    const struct shk_setting *s = shk_config_settings(config, &settings);
    const struct shk_check *const *c = shk_checks(&checks);
    const struct shk_diagnosis *d = shk_config_diagnoses(config, &diagnoses);
    const struct shk_profile *p = shk_config_profiles(config, &profiles);
    const struct shk_conflict *x = shk_config_conflicts(config, &conflicts);
    const struct shk_defect *e = shk_config_defects(config, &defects);
    const struct shk_probe *const *b = shk_probes(&probes);
    struct explain_names names = {.cap = settings + checks + diagnoses + profiles + conflicts +
                                         defects + probes};
    names.items = calloc(names.cap + 1, sizeof *names.items);
    if (!names.items)
        names.cap = 0;
    for (size_t i = 0; i < settings; i++)
        explain_name(&names, s[i].name);
    for (size_t i = 0; i < checks; i++)
        explain_name(&names, c[i]->id);
    for (size_t i = 0; i < diagnoses; i++)
        explain_name(&names, d[i].key);
    for (size_t i = 0; i < profiles; i++)
        explain_name(&names, p[i].name);
    for (size_t i = 0; i < conflicts; i++)
        explain_name(&names, x[i].name);
    for (size_t i = 0; i < defects; i++)
        explain_name(&names, e[i].name);
    for (size_t i = 0; i < probes; i++)
        explain_name(&names, b[i]->name);
    return names;
}

/* Names that hold the word, in any case of letters, with commas between them. */
static size_t explain_parts(struct shk_strbuf *out, const struct explain_names *names,
                            const char *word)
{
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++)
        if (strcasestr(names->items[i], word) && found++ < EXPLAIN_PARTS)
            shk_strbuf_printf(out, "%s%s", found > 1 ? ", " : "", names->items[i]);
    if (found > EXPLAIN_PARTS)
        shk_strbuf_printf(out, " and %zu more", found - EXPLAIN_PARTS);
    return found;
}

static int explain_unknown(const struct shk_config *config, const char *name)
{
    struct explain_names names = explain_all(config);
    struct shk_strbuf parts = SHK_STRBUF_INIT;
    const char *near = shk_nearest(name, names.items, names.count);
    if (!near && strlen(name) > 2 && explain_parts(&parts, &names, name))
        shk_say("explain: nothing is called '%s'; there is %s", name, shk_strbuf_text(&parts));
    else
        shk_say("explain: nothing is called '%s'%s%s%s", name,
                near ? "; did you mean " : " (see: shakedown list)", near ? near : "",
                near ? "?" : "");
    shk_strbuf_free(&parts);
    free(names.items);
    return SHK_EXIT_USAGE;
}

/* Several names: a blank line between them. False at the first that nothing is called, *unknown_p.
 */
static bool explain_names_given(const struct shk_config *config, const struct shk_texts *names,
                                FILE *out, const char **unknown_p)
{
    for (size_t n = 0; n < names->count; n++) {
        bool found = false;
        if (n)
            fputc('\n', out);
        for (size_t i = 0; !found && i < EXPLAINERS; i++)
            found = explainers[i](config, names->items[n], out);
        if (!found) {
            *unknown_p = names->items[n];
            return false;
        }
    }
    return true;
}

int shk_cmd_explain(const struct shk_options *options, int argc, char **argv)
{
    const char *unknown = NULL;
    struct shk_error err = {""};
    struct shk_config *config = NULL;
    struct shk_output out;
    explain_width = shk_how(options, true).width;
    (void)argc;
    (void)argv;
    if (shk_config_load(&config, "/etc/shakedown", options->config_dir, &err)) {
        shk_say("%s", err.text);
        return SHK_EXIT_USAGE;
    }
    int code = SHK_EXIT_INTERNAL, rc = shk_output_begin(&out, &err);
    if (!rc && !explain_names_given(config, &options->arguments, out.stream, &unknown)) {
        shk_output_discard(&out);
        code = explain_unknown(config, unknown);
    } else if (!rc && !(rc = shk_output_finish(&out, NULL, &err))) {
        code = SHK_EXIT_OK;
    }
    if (rc)
        shk_say("%s", err.text);
    shk_config_free(config);
    return code;
}
