#include "probes/nccl_search.h"

#include "core/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Limits of NCCL's own table: 16 nets, of which IB and Socket are two; names below 255 bytes. */
enum { NCCL_MAX_EXTERNAL = 14, NCCL_MAX_NAME = 255 };

/* How a release treats the value. Newest first; the first row whose `since` is not above the
 * installed version holds. From src/net.cc, src/plugin/plugin_open.cc and src/plugin/net.cc of the
 * releases. */
struct rule {
    const char *since;
    bool as_given;   /* the value itself is tried as a file name */
    bool never_both; /* … and then, if it is a path or looks like lib*.so, nothing else */
    bool list;       /* commas separate several */
    bool none;       /* "none" means no external plugin */
    bool program;    /* STATIC_PLUGIN */
};

static const struct rule nccl_rules[] = {
    {.since = "2.28.3",
     .as_given = true,
     .never_both = true,
     .list = true,
     .none = true,
     .program = true},
    {.since = "2.27", .as_given = true, .never_both = true, .list = true, .program = true},
    {.since = "2.26", .as_given = true, .never_both = true, .program = true},
    {.since = "2.22", .as_given = true, .program = true},
    {.since = "2.21", .as_given = true},
    {.since = "0"},
};

static const struct rule rccl_rules[] = {
    {.since = "2.27", .as_given = true, .never_both = true, .list = true, .program = true},
    {.since = "2.26", .as_given = true, .never_both = true, .program = true},
    {.since = "2.22", .as_given = true, .program = true},
    {.since = "0", .as_given = true},
};

static const struct {
    const char *variable, *word; /* word: libnccl-<word>.so */
} kinds[] = {
    [SHK_ABI_NET] = {.variable = "NCCL_NET_PLUGIN", .word = "net"},
    [SHK_ABI_COLLNET] = {.variable = "NCCL_NET_PLUGIN", .word = "net"},
    [SHK_ABI_TUNER] = {.variable = "NCCL_TUNER_PLUGIN", .word = "tuner"},
    [SHK_ABI_PROFILER] = {.variable = "NCCL_PROFILER_PLUGIN", .word = "profiler"},
    [SHK_ABI_ENV] = {.variable = "NCCL_ENV_PLUGIN", .word = "env"},
    [SHK_ABI_GIN] = {.variable = "NCCL_GIN_PLUGIN", .word = "gin"},
    [SHK_ABI_RMA] = {.variable = "NCCL_RMA_PLUGIN", .word = "rma"},
};

const char *shk_nccl_plugin_variable(enum shk_nccl_abi kind)
{
    return kinds[kind].variable;
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

/* "libnccl-net"; RCCL's own prefix is used for the net and the profiler plugin only since its
 * 2.27 code, before that for all. */
static void search_prefix(const struct shk_nccl_request *r, char buf[64])
{
    bool rccl = r->owner == SHK_OWNER_RCCL && r->kind != SHK_ABI_TUNER;
    snprintf(buf, 64, "lib%s-%s", rccl ? "rccl" : "nccl", kinds[r->kind].word);
}

static bool search_is_file(const char *value)
{
    size_t len = strlen(value);
    return strchr(value, '/') ||
           (len > 6 && strncmp(value, "lib", 3) == 0 && strcmp(value + len - 3, ".so") == 0);
}

/* NCCL compares as many bytes as the value has, so every prefix of the word counts. */
static bool search_is_program(const char *value)
{
    return *value && strncasecmp(value, "STATIC_PLUGIN", strlen(value)) == 0;
}

static void search_value(struct shk_nccl_names *out, const struct shk_nccl_request *r,
                         const struct rule *rule, unsigned entry, const char *value)
{
    char prefix[64], named[512];
    const char *variable = kinds[r->kind].variable;
    if (rule->program && search_is_program(value)) {
        out->program = true;
        return;
    }
    search_prefix(r, prefix);
    snprintf(named, sizeof named, "%s-%s.so", prefix, value);
    if (rule->as_given)
        search_add(out, entry, value, "%s=%s, taken as a file name", variable, value);
    if (!rule->as_given || !rule->never_both || !search_is_file(value))
        search_add(out, entry, named, "%s=%s, taken as the suffix of %s-%s.so", variable, value,
                   prefix, value);
}

static void search_default(struct shk_nccl_names *out, const struct shk_nccl_request *r)
{
    char prefix[64], name[80];
    bool rccl = r->owner == SHK_OWNER_RCCL;
    search_prefix(r, prefix);
    snprintf(name, sizeof name, "%s.so", prefix);
    /* RCCL's 2.27 code looks for NCCL's file name by default; earlier code for its own */
    bool both = rccl && r->kind == SHK_ABI_NET &&
                (!r->version || !*r->version || shk_version_cmp(r->version, "2.22") >= 0);
    if (both)
        search_add(out, 0, "libnccl-net.so", "default of newer RCCL: %s is not set",
                   kinds[r->kind].variable);
    search_add(out, 0, name, "default of %s: %s is not set", rccl ? "RCCL" : "NCCL",
               kinds[r->kind].variable);
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

void shk_nccl_search(struct shk_nccl_names *names_p, const struct shk_nccl_request *request)
{
    const struct rule *rule = search_rule(request);
    *names_p = (struct shk_nccl_names){.count = 0};
    if (!request->value || (!*request->value && !rule->list)) {
        search_default(names_p, request);
    } else if (rule->none && strcasecmp(request->value, "none") == 0) {
        names_p->none = true;
    } else if (rule->list) {
        search_list(names_p, request, rule);
        /* an empty list is an answer too: since 2.27 no external plugin is looked for then */
        names_p->none = !names_p->count && !names_p->program && !names_p->skipped;
    } else {
        search_value(names_p, request, rule, 0, request->value);
    }
}
