#include "probes/nccl/nccl_search.h"

#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Limits of NCCL's own table: 16 nets, of which IB and Socket are two; names below 255 bytes. */
enum { NCCL_MAX_EXTERNAL = 14, NCCL_MAX_NAME = 255 };

/* What a release tries for one name that it was given. "File" is a path, or looks like lib*.so. */
enum name_rule {
    NAME_SUFFIX,         /* libnccl-net-NAME.so, whatever NAME is: a path does not work */
    NAME_BOTH,           /* NAME, then libnccl-net-NAME.so */
    NAME_EITHER,         /* NAME when it looks like lib*.so, else libnccl-net-NAME.so */
    NAME_BOTH_BUT_FILES, /* NAME; then libnccl-net-NAME.so, unless NAME is a file */
};

/* How a release treats the value. Newest first; the first row whose `since` is not above the
 * installed version holds. From the tags of the releases: src/init.cc, src/net.cc,
 * src/plugin/plugin_open.cc and src/plugin/net.cc. */
struct rule {
    const char *since;
    enum name_rule name;
    bool unread;  /* the release does not know the variable */
    bool list;    /* commas separate several (net, gin and rma plugins) */
    bool none;    /* "none" means no external plugin */
    bool program; /* STATIC_PLUGIN */
};

static const struct rule nccl_rules[] = {
    {.since = "2.28.3", .name = NAME_BOTH_BUT_FILES, .list = true, .none = true, .program = true},
    {.since = "2.27.5", .name = NAME_BOTH_BUT_FILES, .list = true, .program = true},
    {.since = "2.27", .name = NAME_EITHER, .list = true},
    {.since = "2.22", .name = NAME_BOTH, .program = true},
    {.since = "2.21", .name = NAME_BOTH},
    {.since = "2.11", .name = NAME_SUFFIX},
    {.since = "0", .unread = true},
};

/* ROCm 5.0 has 2.10, 5.1 2.11, 6.2 2.20, 6.3 2.21, 6.4 2.22, 7.0 2.26, 7.1 2.27. */
static const struct rule rccl_rules[] = {
    {.since = "2.28", .name = NAME_BOTH_BUT_FILES, .list = true, .none = true, .program = true},
    {.since = "2.27", .name = NAME_BOTH_BUT_FILES, .list = true, .program = true},
    {.since = "2.22", .name = NAME_BOTH, .program = true},
    {.since = "2.21", .name = NAME_BOTH},
    {.since = "2.11", .name = NAME_SUFFIX},
    {.since = "0", .unread = true},
};

static const struct {
    const char *use, *word; /* word: libnccl-<word>.so */
} kinds[] = {
    [SHK_ABI_NET] = {.use = "plugin.net", .word = "net"},
    [SHK_ABI_COLLNET] = {.use = "plugin.net", .word = "net"},
    [SHK_ABI_TUNER] = {.use = "plugin.tuner", .word = "tuner"},
    [SHK_ABI_PROFILER] = {.use = "plugin.profiler", .word = "profiler"},
    [SHK_ABI_ENV] = {.use = "plugin.env", .word = "env"},
    [SHK_ABI_GIN] = {.use = "plugin.gin", .word = "gin"},
    [SHK_ABI_RMA] = {.use = "plugin.rma", .word = "rma"},
};

const char *shk_nccl_plugin_variable(enum shk_nccl_abi kind)
{
    return shk_variable(kinds[kind].use);
}

static const struct rule *search_rule(const struct shk_nccl_request *r)
{
    const struct rule *rules = r->owner == SHK_OWNER_RCCL ? rccl_rules : nccl_rules;
    const struct rule *rule = rules;
    if (!r->version || !*r->version)
        return rule;
    while (shk_version_cmp(r->version, rule->since) < 0)
        rule++;
    return rule;
}

static void search_add(struct shk_nccl_names *out, unsigned entry, const char *name,
                       const char *reasonf, ...) SHK_PRINTF(4, 5);

static void search_add(struct shk_nccl_names *out, unsigned entry, const char *name,
                       const char *reasonf, ...)
{
    if (out->count == SHK_NCCL_MAX_NAMES || strlen(name) >= sizeof out->list[0].name) {
        out->skipped++;
        return;
    }
    struct shk_nccl_name *n = &out->list[out->count++];
    va_list args;
    va_start(args, reasonf);
    vsnprintf(n->reason, sizeof n->reason, reasonf, args);
    va_end(args);
    snprintf(n->name, sizeof n->name, "%s", name);
    n->entry = entry;
}

static bool search_since(const struct shk_nccl_request *r, const char *version)
{
    return !r->version || !*r->version || shk_version_cmp(r->version, version) >= 0;
}

/* "libnccl-net". RCCL renamed all of them up to its 2.26 code, later only the net plugin's, and in
 * 2.27 the profiler's. */
static void search_prefix(const struct shk_nccl_request *r, char buf[64])
{
    bool rccl = r->owner == SHK_OWNER_RCCL;
    if (r->kind == SHK_ABI_PROFILER)
        rccl = rccl && !search_since(r, "2.28");
    else if (r->kind != SHK_ABI_NET)
        rccl = rccl && !search_since(r, "2.27");
    snprintf(buf, 64, "lib%s-%s", rccl ? "rccl" : "nccl", kinds[r->kind].word);
}

static bool search_is_library(const char *value)
{
    size_t len = strlen(value);
    return len > 6 && strncmp(value, "lib", 3) == 0 && strcmp(value + len - 3, ".so") == 0;
}

/* NCCL compares as many bytes as the value has, so every prefix of the word counts. */
static bool search_is_program(const char *value)
{
    return *value && strncasecmp(value, "STATIC_PLUGIN", strlen(value)) == 0;
}

/* Before 2.21 the tuner's variable was handed to dlopen() as it is. */
static enum name_rule search_name_rule(const struct shk_nccl_request *r, const struct rule *rule)
{
    return r->kind == SHK_ABI_TUNER && rule->name == NAME_SUFFIX ? NAME_BOTH_BUT_FILES : rule->name;
}

static void search_value(struct shk_nccl_names *out, const struct shk_nccl_request *r,
                         const struct rule *rule, unsigned entry, const char *value)
{
    char prefix[64], named[512];
    const char *variable = shk_variable(kinds[r->kind].use);
    enum name_rule how = search_name_rule(r, rule);
    bool library = search_is_library(value), file = library || strchr(value, '/');
    if (rule->program && search_is_program(value)) {
        out->program = true;
        return;
    }
    search_prefix(r, prefix);
    snprintf(named, sizeof named, "%s-%s.so", prefix, value);
    if (how != NAME_SUFFIX && (how != NAME_EITHER || library))
        search_add(out, entry, value, "%s=%s, taken as a file name", variable, value);
    if (how == NAME_SUFFIX || how == NAME_BOTH || (how == NAME_EITHER ? !library : !file))
        search_add(out, entry, named, "%s=%s, taken as the suffix of %s-%s.so", variable, value,
                   prefix, value);
}

static bool search_has_name(const struct shk_nccl_request *r, const char *name)
{
    size_t i;
    json_t *text;
    json_array_foreach(r->names, i,
                       text) if (json_is_string(text) &&
                                 strcmp(json_string_value(text), name) == 0) return true;
    return false;
}

static void search_default(struct shk_nccl_names *out, const struct shk_nccl_request *r)
{
    char prefix[64], name[80];
    bool rccl = r->owner == SHK_OWNER_RCCL;
    search_prefix(r, prefix);
    snprintf(name, sizeof name, "%s.so", prefix);
    /* RCCL's list of plugins, since 2.27, began with NCCL's file name and got its own later */
    bool renamed = rccl && r->kind == SHK_ABI_NET && search_since(r, "2.27");
    bool theirs = renamed && !search_has_name(r, name);
    bool ours = !renamed || !search_has_name(r, "libnccl-net.so");
    if (theirs)
        search_add(out, 0, "libnccl-net.so", "default of this RCCL: %s is not set",
                   shk_variable(kinds[r->kind].use));
    if (ours)
        search_add(out, 0, name, "default of %s: %s is not set", rccl ? "RCCL" : "NCCL",
                   shk_variable(kinds[r->kind].use));
}

static void search_list(struct shk_nccl_names *out, const struct shk_nccl_request *r,
                        const struct rule *rule)
{
    unsigned entry = 0;
    for (const char *p = r->value; *p;) {
        size_t n = strcspn(p, ",");
        char value[NCCL_MAX_NAME + 1];
        if (n >= NCCL_MAX_NAME || entry == NCCL_MAX_EXTERNAL) {
            out->skipped++;
        } else if (n) {
            snprintf(value, sizeof value, "%.*s", (int)n, p);
            search_value(out, r, rule, entry++, value);
        }
        p += n + (p[n] == ',');
    }
}

static bool search_takes_list(enum shk_nccl_abi kind)
{
    return kind == SHK_ABI_NET || kind == SHK_ABI_GIN || kind == SHK_ABI_RMA;
}

void shk_nccl_search(struct shk_nccl_names *names_p, const struct shk_nccl_request *request)
{
    const struct rule *rule = search_rule(request);
    bool list = rule->list && search_takes_list(request->kind);
    *names_p = (struct shk_nccl_names){.count = 0};
    names_p->unread = request->value && rule->unread;
    if (!request->value || rule->unread || (!*request->value && !list)) {
        search_default(names_p, request);
    } else if (rule->none && strcasecmp(request->value, "none") == 0) {
        names_p->none = true;
    } else if (list) {
        search_list(names_p, request, rule);
        /* an empty list is an answer too: since 2.27 no external plugin is looked for then */
        names_p->none = !names_p->count && !names_p->program && !names_p->skipped;
    } else {
        search_value(names_p, request, rule, 0, request->value);
    }
}
