#include "checks/fabric/chain_private.h"

#include "checks/base/look.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What libfabric offers with FI_PROVIDER as it is, or, when that is in the way, without it: the
 * steps after the filter are about the node, not about the variable. */
static json_t *offer_list(const struct shk_why *why, const char *member)
{
    char key[64];
    snprintf(key, sizeof key, "fabric.%s", member);
    json_t *plain = shk_why_object(why->known, "fabric.unfiltered");
    if (shk_why_filtered(why) && plain) {
        json_t *list = json_object_get(plain, member);
        return json_is_array(list) ? list : NULL;
    }
    return shk_why_array(why->known, key);
}

/* The provider's own words: its first line in libfabric's log ("efa:fabric:…"). */
static const char *offer_log(const struct shk_why *why)
{
    size_t i, n = strlen(why->provider);
    json_t *line;
    json_t *lines = shk_why_array(why->known, "fabric.log");
    json_array_foreach(lines, i, line)
    {
        const char *text = json_string_value(line);
        if (text && strncasecmp(text, why->provider, n) == 0 && text[n] == ':')
            return text;
    }
    return NULL;
}

static bool offer_getinfo(struct shk_why *why)
{
    json_t *providers = offer_list(why, "providers");
    json_t *getinfo = shk_why_object(why->known, "fabric.getinfo");
    const char *text = json_string_value(json_object_get(getinfo, "text"));
    bool plain = shk_why_filtered(why) && shk_why_object(why->known, "fabric.unfiltered");
    char without[160];
    snprintf(without, sizeof without, "%s removed", shk_variable("provider-filter"));
    const char *how = plain ? without : NULL, *log = offer_log(why);
    bool offered = providers && shk_why_list_names(providers, why->provider);
    if (!providers)
        shk_chain_add(why->chain, "getinfo", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "fabric.providers"));
    else if (offered)
        shk_chain_add(why->chain, "getinfo", SHK_LINK_OK, how, "fi_getinfo offers it");
    else
        shk_chain_add(why->chain, "getinfo", SHK_LINK_BROKEN, log ? log : how,
                      "fi_getinfo offers nothing: %s",
                      text && strcmp(text, "success") != 0 ? text : "other providers only");
    shk_chain_where(why->chain, "fi_getinfo");
    return offered;
}

static bool offer_has_gpu(const struct shk_why *why)
{
    static const char *const keys[] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd",
                                       "pci.count.gpu-intel", "pci.count.neuron"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (shk_why_int(why->known, keys[i], 0) > 0)
            return true;
    }
    return false;
}

static json_t *offer_hint_steps(const struct shk_why *why)
{
    size_t i;
    json_t *row;
    json_t *hints = offer_list(why, "hints");
    json_array_foreach(hints, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "provider"));
        if (name && strcmp(name, why->provider) == 0)
            return json_object_get(row, "steps");
    }
    return NULL;
}

static void offer_hints(struct shk_why *why, bool offered)
{
    size_t i;
    json_t *step, *steps = offer_hint_steps(why);
    if (!json_array_size(steps) || !offered) {
        shk_chain_add(why->chain, "hints", offered ? SHK_LINK_UNKNOWN : SHK_LINK_NA, NULL, "%s",
                      offered ? "not asked" : "nothing to narrow down");
        return;
    }
    json_array_foreach(steps, i, step)
    {
        const char *hint = json_string_value(json_object_get(step, "hint"));
        if (json_integer_value(json_object_get(step, "count")) > 0)
            continue;
        if (hint && strcmp(hint, "FI_HMEM") == 0 && !offer_has_gpu(why))
            break; /* no accelerator, no accelerator memory */
        shk_chain_add(why->chain, "hints", SHK_LINK_BROKEN,
                      json_string_value(json_object_get(step, "text")),
                      "nothing is left when %s is requested", hint ? hint : "more");
        if (hint && strcmp(hint, "FI_HMEM") == 0)
            shk_chain_code(why->chain, SHK_CODE_NO_HMEM);
        return;
    }
    shk_chain_add(why->chain, "hints", SHK_LINK_OK, NULL,
                  "it has what collective libraries require");
}

/* Distinct domains of the provider, and the frame sizes they name. */
struct offer_domains {
    char names[64][64];
    size_t count;
    long long mtu_low, mtu_high; /* 0: none named */
    bool unread, mtu_unread;     /* a row does not say whose it is, or how large its frames are */
};

static void offer_mtu_take(struct offer_domains *d, long long mtu)
{
    if (mtu > 0 && (!d->mtu_low || mtu < d->mtu_low))
        d->mtu_low = mtu;
    if (mtu > d->mtu_high)
        d->mtu_high = mtu;
}

static void offer_count(const struct shk_why *why, struct offer_domains *d)
{
    size_t i, k;
    json_t *row;
    json_t *domains = offer_list(why, "domains");
    json_array_foreach(domains, i, row)
    {
        const char *provider = json_string_value(json_object_get(row, "provider"));
        const char *name = json_string_value(json_object_get(row, "domain"));
        long long mtu = 0;
        enum shk_look mtu_look = shk_look_member_int(row, "mtu", &mtu);
        d->unread |= !provider || !name;
        if (!provider || !name || !shk_why_names(provider, why->provider))
            continue;
        offer_mtu_take(d, mtu);
        d->mtu_unread |= mtu_look == SHK_LOOK_MISSING || mtu_look == SHK_LOOK_FAILED;
        /* endpoint types of one device have names of their own: "rdmap16s27-rdm" */
        size_t len = strcspn(name, "-");
        for (k = 0; k < d->count && (strncmp(d->names[k], name, len) || d->names[k][len]); k++)
            ;
        if (k == d->count && d->count < 64 && len < sizeof d->names[0])
            snprintf(d->names[d->count++], sizeof d->names[0], "%.*s", (int)len, name);
    }
}

/* The job may have been given, or have asked for, some of the devices only. */
static enum shk_look offer_selected(const struct shk_why *why)
{
    const char *value = NULL;
    enum shk_look all = SHK_LOOK_ABSENT;
    for (const char *const *v = shk_variables("fabric-devices"); *v; v++) {
        enum shk_look one = shk_look_env(why->known, *v, &value);
        if (one == SHK_LOOK_PRESENT)
            return one;
        if (one == SHK_LOOK_FAILED)
            all = one;
    }
    return all;
}

static void offer_domain_step(struct shk_why *why, const struct offer_domains *d)
{
    size_t nics = json_array_size(why->devices);
    char detail[64] = "";
    if (why->kind && nics && d->count != nics)
        snprintf(detail, sizeof detail, "%zu devices on this node", nics);
    enum shk_look selected = offer_selected(why);
    bool too_few =
        why->kind && why->kind->every_link && d->count < nics && selected != SHK_LOOK_PRESENT;
    bool short_of = !d->count || too_few;
    bool unread = d->unread || (d->count && selected == SHK_LOOK_FAILED);
    if (!offer_list(why, "domains") || (short_of && unread))
        shk_chain_add(why->chain, "domains", SHK_LINK_UNKNOWN, NULL, "%s",
                      shk_why_reason(why->known, "fabric.domains"));
    else if (!d->count)
        shk_chain_add(why->chain, "domains", SHK_LINK_BROKEN, detail, "none");
    else
        shk_chain_add(why->chain, "domains", too_few ? SHK_LINK_BROKEN : SHK_LINK_OK, detail, "%zu",
                      d->count);
    shk_chain_where(why->chain, "fi_getinfo");
    if (!offer_list(why, "domains"))
        shk_why_unread(why, "fabric.domains", true);
    else if (short_of && unread)
        shk_why_lacks(why, "fabric.domains");
}

/* 1 up, 0 down, -1 not known. */
static int offer_is(const json_t *of, const char *member, const char *up)
{
    const char *state = NULL;
    return shk_look_member_text(of, member, &state) == SHK_LOOK_PRESENT ? strcmp(state, up) == 0
                                                                        : -1;
}

static int offer_link_up(const struct shk_why *why, const json_t *device)
{
    size_t i;
    json_t *port, *ports = json_object_get(device, "ports");
    if (!why->kind->verbs_class)
        return offer_is(device, "link_state", "up");
    bool all = json_array_size(ports) > 0;
    json_array_foreach(ports, i, port)
    {
        int up = offer_is(port, "state", "ACTIVE");
        if (up == 1)
            return 1;
        all = all && up == 0;
    }
    return all ? 0 : -1;
}

static void offer_link(struct shk_why *why)
{
    struct shk_strbuf down = SHK_STRBUF_INIT;
    size_t i, up = 0, unknown = 0, total = json_array_size(why->devices);
    json_t *device;
    json_array_foreach(why->devices, i, device)
    {
        int state = offer_link_up(why, device);
        const char *name = json_string_value(json_object_get(device, "name"));
        up += state == 1;
        unknown += state < 0;
        if (state == 0)
            shk_strbuf_printf(&down, "%s%s", down.len ? ", " : "", name ? name : "?");
    }
    bool broken = down.len && (why->kind->every_link || !up);
    if (!total)
        shk_chain_add(why->chain, "link", why->devices ? SHK_LINK_NA : SHK_LINK_UNKNOWN, NULL, "%s",
                      why->devices ? "no device" : "the devices were not read");
    else if (broken)
        shk_chain_add(why->chain, "link", SHK_LINK_BROKEN, NULL, "down: %s",
                      shk_strbuf_text(&down));
    else if (unknown)
        shk_chain_add(why->chain, "link", SHK_LINK_UNKNOWN, NULL,
                      "the state of %zu links is not known", unknown);
    else
        shk_chain_add(why->chain, "link", SHK_LINK_OK, down.len ? shk_strbuf_text(&down) : NULL,
                      "%zu of %zu up", up, total);
    shk_chain_where(why->chain,
                    why->kind->verbs_class ? "/sys/class/infiniband" : "/sys/class/cxi");
    if (total && !broken && unknown && (why->kind->every_link || !up))
        shk_why_lacks(why, why->kind->verbs_class ? "rdma.devices" : "cxi.devices");
    shk_strbuf_free(&down);
}

/* The devices' own attribute counts the frame differently from what libfabric names: one or the
 * other, never both. */
static void offer_mtu(struct shk_why *why, struct offer_domains *d)
{
    size_t i;
    json_t *device;
    bool named = d->mtu_high > 0;
    json_array_foreach(why->devices, i, device)
    {
        const char *text = json_string_value(json_object_get(device, "mtu"));
        if (text && !named)
            offer_mtu_take(d, strtoll(text, NULL, 10));
    }
    if (!d->mtu_high)
        shk_chain_add(why->chain, "mtu", d->count ? SHK_LINK_UNKNOWN : SHK_LINK_NA, NULL, "%s",
                      d->count ? "no domain names its frame size" : "no domain");
    else if (d->mtu_low != d->mtu_high && why->kind->every_link)
        shk_chain_add(why->chain, "mtu", SHK_LINK_BROKEN, NULL, "differs: %lld to %lld bytes",
                      d->mtu_low, d->mtu_high);
    else
        shk_chain_add(why->chain, "mtu", SHK_LINK_OK, NULL, "%lld bytes", d->mtu_high);
    if (d->mtu_unread && why->kind->every_link && d->mtu_low == d->mtu_high)
        shk_why_lacks(why, "fabric.domains");
}

void shk_why_offer_steps(struct shk_why *why)
{
    struct offer_domains *d = calloc(1, sizeof *d);
    bool offered = offer_getinfo(why);
    offer_hints(why, offered);
    shk_chain_where(why->chain, "fi_getinfo");
    if (!d)
        return;
    offer_count(why, d);
    offer_domain_step(why, d);
    if (why->kind) {
        offer_link(why);
        offer_mtu(why, d);
        shk_chain_where(why->chain, d->mtu_high ? "fi_getinfo" : NULL);
    }
    free(d);
}
