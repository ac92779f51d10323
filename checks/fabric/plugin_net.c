/* NCCL_NET and the plugins: which network is left when one does not work, and whether the network
 * that NCCL_NET names is there. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/fabric/fabric.h"
#include "checks/fabric/plugin.h"
#include "checks/value/grammar.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

/* Names that the libraries' own networks have (RCCL since 2.28: IB-CAST). */
static const char *const builtin_ib[] = {"IB", "IB-CAST", NULL};

/* aws-ofi-nccl's constructor takes the one of these that NCCL_NET asks for. */
static const char *const ofi_names[] = {"Libfabric", "AWS Libfabric", "OFI", NULL};

enum shk_told shk_plugin_is_considered(const json_t *plugin)
{
    const char *kind;
    bool considered;
    if (shk_look_member_text(plugin, "kind", &kind) != SHK_LOOK_PRESENT)
        return SHK_TOLD_UNREAD;
    if (strcmp(kind, "net") != 0)
        return SHK_TOLD_NO;
    if (shk_look_member_bool(plugin, "considered", &considered) != SHK_LOOK_PRESENT)
        return SHK_TOLD_UNREAD;
    return considered ? SHK_TOLD_YES : SHK_TOLD_NO;
}

enum shk_told shk_plugin_is_found(const json_t *plugin)
{
    bool found;
    if (shk_look_member_bool(plugin, "found", &found) != SHK_LOOK_PRESENT)
        return SHK_TOLD_UNREAD;
    return found ? SHK_TOLD_YES : SHK_TOLD_NO;
}

const json_t *shk_plugin_blocked(const json_t *plugin)
{
    json_t *list;
    return shk_look_member_array(plugin, "blocked", &list) == SHK_LOOK_PRESENT
               ? json_array_get(list, 0)
               : NULL;
}

const char *shk_plugin_text(const json_t *object, const char *name)
{
    const char *text = "";
    (void)shk_look_member_text(object, name, &text);
    return text;
}

/* A release that does not know NCCL_NET_PLUGIN takes no notice of it. */
static bool is_ignored(const struct shk_facts *facts)
{
    size_t i;
    json_t *requests, *request;
    bool unread;
    if (shk_look_array(facts, "plugin.requests", &requests) != SHK_LOOK_PRESENT)
        return false;
    json_array_foreach(requests, i, request)
    {
        if (strcmp(shk_plugin_text(request, "kind"), "net") == 0 &&
            shk_look_member_bool(request, "unread", &unread) == SHK_LOOK_PRESENT && unread)
            return true;
    }
    return false;
}

const char *shk_plugin_requested(const struct shk_facts *facts)
{
    const char *name = NULL;
    if (is_ignored(facts))
        return NULL;
    enum shk_look look = shk_look_text(facts, "plugin.requested", &name);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT)
        (void)shk_look_env(facts, shk_variable("net-plugin"), &name);
    return name && *name && strcasecmp(name, "none") != 0 ? name : NULL;
}

enum shk_net_demand shk_net_demand(const struct shk_facts *facts, const char **value_p)
{
    const char *value;
    if (shk_look_env(facts, shk_variable("net-choice"), &value) != SHK_LOOK_PRESENT)
        return SHK_NET_ANY;
    if (value_p)
        *value_p = value;
    return strcasecmp(value, "Socket") == 0 || shk_word_is_one_of(builtin_ib, value)
               ? SHK_NET_BUILTIN
               : SHK_NET_PLUGIN;
}

char *shk_plugin_library(const struct shk_facts *facts, const char *owner)
{
    const char *version = NULL;
    if (owner) {
        bool rccl = strcmp(owner, "rccl") == 0;
        (void)shk_look_text(facts, rccl ? "rccl.version" : "nccl.version", &version);
        return shk_strf("%s%s%s", rccl ? "RCCL" : "NCCL", version ? " " : "",
                        version ? version : "");
    }
    if (shk_look_text(facts, "nccl.version", &version) == SHK_LOOK_PRESENT)
        return shk_plugin_library(facts, "nccl");
    bool rccl = shk_look_text(facts, "rccl.version", &version) == SHK_LOOK_PRESENT;
    return shk_plugin_library(facts, rccl ? "rccl" : "nccl");
}

/* Another candidate of the list is what the library ends up with. */
static bool is_replaced(const struct shk_check_context *ctx, const json_t *plugin)
{
    const char *chosen;
    return shk_look_text(ctx->facts, "plugin.chosen", &chosen) == SHK_LOOK_PRESENT &&
           strcmp(chosen, shk_plugin_text(plugin, "path")) != 0;
}

/* Does the library get as far as this step in spite of NCCL_NET? It loads every plugin; from 2.28.7
 * on it starts only those whose name is asked for. */
static bool is_reached(const struct shk_check_context *ctx, const json_t *plugin,
                       const struct shk_link *link)
{
    static const char *const loading[] = {"file",     "format", "abi", "dependencies",
                                          "versions", "load",   NULL};
    const char *version;
    bool rccl = strcmp(shk_plugin_text(plugin, "owner"), "rccl") == 0;
    if (shk_list_has(loading, link->step) || shk_net_demand(ctx->facts, NULL) != SHK_NET_BUILTIN)
        return true;
    return shk_look_text(ctx->facts, rccl ? "rccl.version" : "nccl.version", &version) ==
               SHK_LOOK_PRESENT &&
           shk_version_cmp(version, "2.28.7") < 0;
}

/* No network adapter of any kind: nothing that a plugin could drive. */
static bool without_adapters(const struct shk_facts *facts)
{
    json_t *devices;
    enum shk_look look = shk_look_array(facts, "rdma.devices", &devices);
    bool none =
        look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && json_array_size(devices) == 0);
    return none && shk_device_count(facts, "cxi") == 0 && shk_device_count(facts, "efa") == 0;
}

static bool is_wanted(const struct shk_check_context *ctx)
{
    const char *policy = ctx->profile->plugin;
    return shk_plugin_requested(ctx->facts) || (policy && strcmp(policy, "none") != 0);
}

enum shk_verdict shk_plugin_verdict(const struct shk_check_context *ctx, const json_t *plugin,
                                    const struct shk_link *link)
{
    enum shk_net_demand demand = shk_net_demand(ctx->facts, NULL);
    bool replaced = is_replaced(ctx, plugin);
    if (link->code == SHK_CODE_DIED && is_reached(ctx, plugin, link))
        return SHK_FAIL;
    if (demand == SHK_NET_BUILTIN)
        return SHK_NOTE;
    if (demand == SHK_NET_PLUGIN || is_wanted(ctx))
        return replaced ? SHK_WARN : SHK_FAIL;
    return without_adapters(ctx->facts) ? SHK_NOTE : SHK_WARN;
}

char *shk_plugin_consequence(const struct shk_check_context *ctx, const json_t *plugin,
                             const struct shk_link *link)
{
    static const char *const unnoticed[] = {"properties", "loopback", NULL};
    const char *value = NULL, *owner = shk_plugin_text(plugin, "owner");
    enum shk_net_demand demand = shk_net_demand(ctx->facts, &value);
    char *library = shk_plugin_library(ctx->facts, *owner ? owner : NULL), *text;
    const char *name = library ? library : "NCCL";
    if (link->code == SHK_CODE_DIED && is_reached(ctx, plugin, link))
        text = shk_strf("; in a job this takes the rank with it");
    else if (demand == SHK_NET_BUILTIN)
        text = shk_strf("; with %s=%s %s does not use it", shk_variable("net-choice"), value, name);
    else if (shk_list_has(unnoticed, link->step))
        text = strdup("");
    else if (is_replaced(ctx, plugin))
        text = shk_strf("; %s takes the next plugin of the list", name);
    else if (demand == SHK_NET_PLUGIN)
        text = shk_strf("; %s=\"%s\" allows no other network, so %s ends the job",
                        shk_variable("net-choice"), value, name);
    else
        text = shk_strf("; %s continues without it, over its own IB or Socket network", name);
    free(library);
    return text;
}

/* ---- NCCL_NET against the node ---- */

/* The plugins that the library considers, as far as NCCL_NET is concerned. */
struct names {
    struct shk_strbuf known;  /* "Libfabric (path)" of those that could be asked */
    struct shk_strbuf broken; /* why the ones that do not work do not */
    bool match;
    bool unknown; /* one was not asked, or may have another name where there are GPUs */
    bool unread;  /* one was asked, and what it said could not be read */
};

static bool is_ofi(const json_t *plugin)
{
    size_t i;
    json_t *reads, *name;
    if (shk_look_member_array(plugin, "env_names", &reads) != SHK_LOOK_PRESENT)
        return false;
    json_array_foreach(reads, i, name)
    {
        const char *text = json_string_value(name);
        if (text && shk_variable_has("plugin-own.ofi", text))
            return true;
    }
    return false;
}

/* The releases differ in when they compare: the name of the table before init (2.28.7 and later, or
 * a table of an older version), or the one that init left. */
static void add_names(struct names *names, const json_t *plugin, const char *value)
{
    static const char *const steps[] = {"load", "init"};
    const char *name, *shown = NULL;
    json_t *tried;
    bool asked = false;
    for (size_t i = 0; i < 2; i++) {
        enum shk_look look = shk_look_member_object(plugin, steps[i], &tried);
        asked |= look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED;
        if (look != SHK_LOOK_PRESENT ||
            shk_look_member_text(tried, "name", &name) != SHK_LOOK_PRESENT)
            continue;
        names->match |= strcasecmp(name, value) == 0;
        shown = name;
    }
    if (shown)
        shk_strbuf_printf(&names->known, "%s\"%s\" (%s)", names->known.len ? ", " : "", shown,
                          shk_plugin_text(plugin, "path"));
    else if (shk_word_is_one_of(ofi_names, value) && is_ofi(plugin))
        names->match = true;
    else if (asked)
        names->unread = true;
    else
        names->unknown = true;
}

static enum shk_told is_broken(const json_t *plugin, const struct shk_chain *chain)
{
    json_t *load = NULL;
    bool ok;
    if (shk_chain_first(chain, SHK_LINK_BROKEN))
        return SHK_TOLD_YES;
    for (size_t i = 0; i < chain->count; i++)
        if (chain->links[i].unread)
            return SHK_TOLD_UNREAD;
    enum shk_look look = shk_look_member_object(plugin, "load", &load);
    if (look == SHK_LOOK_MISSING)
        return SHK_TOLD_NO;
    return look == SHK_LOOK_PRESENT && shk_look_member_bool(load, "ok", &ok) == SHK_LOOK_PRESENT
               ? SHK_TOLD_NO
               : SHK_TOLD_UNREAD;
}

/* Steps after which the library drops a plugin; later ones it does not notice. */
static bool is_dropped(const struct shk_link *link)
{
    static const char *const unnoticed[] = {"properties", "loopback", NULL};
    return !shk_list_has(unnoticed, link->step);
}

static void one_broken(const struct shk_check_context *ctx, struct names *names,
                       const struct shk_link *link)
{
    char *text = shk_link_text(link);
    /* a plugin may well start where there are GPUs */
    names->unknown |= strcmp(link->step, "init") == 0 && shk_gpu_count(ctx->facts) == 0;
    shk_strbuf_printf(&names->broken, "%s%s", names->broken.len ? "; " : "",
                      text ? text : link->what);
    free(text);
}

static void one_plugin(const struct shk_check_context *ctx, struct names *names,
                       const json_t *plugin, const char *value)
{
    struct shk_chain chain;
    enum shk_told considered = shk_plugin_is_considered(plugin);
    enum shk_told found = shk_plugin_is_found(plugin);
    bool nowhere = found == SHK_TOLD_NO && !shk_plugin_blocked(plugin) &&
                   !*shk_plugin_text(plugin, "passed_over");
    if (considered == SHK_TOLD_NO || (considered == SHK_TOLD_YES && nowhere))
        return;
    shk_plugin_chain(plugin, &chain);
    enum shk_told broken = is_broken(plugin, &chain);
    const struct shk_link *link = shk_chain_first(&chain, SHK_LINK_BROKEN);
    if (considered == SHK_TOLD_UNREAD || found == SHK_TOLD_UNREAD || broken == SHK_TOLD_UNREAD)
        names->unread = true;
    else if (link && is_dropped(link))
        one_broken(ctx, names, link);
    else if (found == SHK_TOLD_YES)
        add_names(names, plugin, value);
    shk_chain_clear(&chain);
}

static void say_ends(const struct shk_check_context *ctx, struct shk_row *row, const char *why)
{
    char *library = shk_plugin_library(ctx->facts, NULL);
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    shk_row_text(&row->expected, "a network that is here");
    shk_row_text(&row->why,
                 "%s; %s takes no other network than the one that %s names, and "
                 "ends the job with \"invalid usage\"",
                 why, library ? library : "NCCL", shk_variable("net-choice"));
    shk_row_fix(row, "net-unset", NULL);
    row->diagnosis = "net-plugin-name-wrong";
    free(library);
}

/* The value against the names of the plugins. */
static bool resolve_plugin(const struct shk_check_context *ctx, const char *value,
                           struct shk_row *row)
{
    size_t i;
    json_t *list = NULL, *plugin;
    enum shk_look look = shk_look_array(ctx->facts, SHK_PLUGIN_FACT, &list);
    struct names names = {.known = SHK_STRBUF_INIT, .broken = SHK_STRBUF_INIT};
    bool decided = true;
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "which net plugins are here was not read");
        return true;
    }
    json_array_foreach(list, i, plugin) one_plugin(ctx, &names, plugin, value);
    if (names.match) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    } else if (names.unread) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "what the net plugins here call themselves was not read");
    } else if (names.unknown) {
        decided = false;
    } else {
        char *why = names.known.len
                        ? shk_strf("no network calls itself \"%s\": there are %s, IB and Socket",
                                   value, shk_strbuf_text(&names.known))
                    : names.broken.len
                        ? shk_strf("no plugin works that could be \"%s\": %s", value,
                                   shk_strbuf_text(&names.broken))
                        : shk_strf("no net plugin was found that could be \"%s\"", value);
        say_ends(ctx, row, why ? why : "no such network");
        if (names.broken.len && !names.known.len)
            shk_row_fix(row, "net-repair-or-unset", NULL);
        free(why);
    }
    shk_strbuf_free(&names.known);
    shk_strbuf_free(&names.broken);
    return decided;
}

/* Ports that NCCL's own network takes: InfiniBand or Ethernet, and active. *unread_p: some could
 * not be read. */
static size_t usable_ports(const json_t *devices, size_t *ports_p, bool *unread_p)
{
    size_t i, k, usable = 0;
    json_t *device, *port, *ports;
    json_array_foreach((json_t *)devices, i, device)
    {
        enum shk_look look = shk_look_member_array(device, "ports", &ports);
        *unread_p |= look != SHK_LOOK_PRESENT;
        if (look != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(ports, k, port)
        {
            const char *layer, *state;
            if (shk_look_member_text(port, "link_layer", &layer) != SHK_LOOK_PRESENT ||
                shk_look_member_text(port, "state", &state) != SHK_LOOK_PRESENT) {
                *unread_p = true;
                continue;
            }
            bool takes = strcmp(layer, "InfiniBand") == 0 || strcmp(layer, "Ethernet") == 0;
            *ports_p += takes;
            usable += takes && strcmp(state, "ACTIVE") == 0;
        }
    }
    return usable;
}

static bool resolve_ib(const struct shk_check_context *ctx, struct shk_row *row)
{
    json_t *devices = NULL;
    size_t ports = 0;
    bool unread = false;
    enum shk_look look = shk_look_array(ctx->facts, "rdma.devices", &devices);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "which RDMA devices this node has was not read");
        return true;
    }
    size_t usable = usable_ports(devices, &ports, &unread);
    if (usable) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        return true;
    }
    if (unread) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_row_text(&row->why, "the ports of the RDMA devices were not all read");
        return true;
    }
    say_ends(ctx, row,
             ports                      ? "none of this node's InfiniBand or RoCE ports is active"
             : json_array_size(devices) ? "this node has RDMA devices, but none with an InfiniBand "
                                          "or Ethernet port, which is what NCCL's IB network needs"
                                        : "this node has no RDMA device");
    return true;
}

bool shk_resolve_network(const struct shk_check_context *ctx, const char *value,
                         struct shk_row *row)
{
    struct shk_fact fact;
    row->fact = shk_word_is_one_of(builtin_ib, value) ? "rdma.devices" : SHK_PLUGIN_FACT;
    if (shk_look(ctx->facts, "nccl.version", &fact) != SHK_LOOK_PRESENT &&
        shk_look(ctx->facts, "rccl.version", &fact) != SHK_LOOK_PRESENT)
        return false;
    if (strcasecmp(value, "Socket") == 0)
        return false;
    if (shk_word_is_one_of(builtin_ib, value))
        return resolve_ib(ctx, row);
    if (!*value) {
        say_ends(ctx, row, "the name is empty, and no network is called that");
        return true;
    }
    return resolve_plugin(ctx, value, row);
}
