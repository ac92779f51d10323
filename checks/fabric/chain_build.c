/* Why does a provider not work here? The chain from the adapter to the domain, link by link, from
 * whatever part of the facts there is. */
#include "checks/fabric/chain_private.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

static const char *const efa_modules[] = {"efa", "ib_uverbs", NULL};
static const char *const cxi_modules[] = {"cxi_ss1", "cxi_user", NULL};
static const char *const verbs_modules[] = {"ib_uverbs", NULL};

static const struct shk_why_kind why_kinds[] = {
    {.name = "efa",
     .adapter = "EFA function (PCI 1d0f:efa0 and up)",
     .count_key = "pci.count.efa",
     .pci_kind = "efa",
     .modules = efa_modules,
     .verbs_class = true,
     .driver = "efa",
     .fork_use = "fork-safe.efa",
     .every_link = true,
     .capability = true},
    {.name = "cxi",
     .adapter = "Slingshot NIC (PCI 17db:0501 or 1590:0371)",
     .count_key = "pci.count.cxi",
     .pci_kind = "cxi",
     .modules = cxi_modules,
     .fork_use = "fork-safe.cxi",
     .every_link = true,
     .service = true},
    {.name = "verbs",
     .adapter = "RDMA adapter: neither a ConnectX (PCI 15b3) nor any device but EFA in "
                "/sys/class/infiniband",
     .count_key = "pci.count.mlx5",
     .pci_kind = "mlx5",
     .modules = verbs_modules,
     .verbs_class = true,
     .fork_use = "fork-safe.verbs"},
};

const struct shk_why_kind *shk_why_kind_of(const char *provider)
{
    for (size_t i = 0; i < sizeof why_kinds / sizeof why_kinds[0]; i++) {
        if (shk_why_names(provider, why_kinds[i].name))
            return &why_kinds[i];
    }
    return NULL;
}

bool shk_why_names(const char *layered, const char *provider)
{
    size_t want = strlen(provider);
    for (const char *p = layered; *p;) {
        size_t n = strcspn(p, ";");
        if (n == want && strncasecmp(p, provider, n) == 0)
            return true;
        p += n + (p[n] == ';');
    }
    /* a layered name asks for that very combination */
    return strcasecmp(layered, provider) == 0;
}

bool shk_why_list_names(const json_t *names, const char *provider)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        if (text && shk_why_names(text, provider))
            return true;
    }
    return false;
}

const char *shk_why_reason(const struct shk_facts *known, const char *key)
{
    struct shk_fact fact;
    if (!shk_facts_get(known, key, &fact))
        return "no probe collected it";
    return fact.reason ? fact.reason : "not of the expected type";
}

const char *shk_why_filter(const struct shk_facts *known)
{
    const char *filter = NULL;
    enum shk_look look = shk_look_text(known, "fabric.filter", &filter);
    return look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT
               ? filter
               : shk_why_text(known, shk_variable_fact("provider-filter"));
}

void shk_why_lacks(struct shk_why *why, const char *key)
{
    if (why->chain->count)
        why->chain->links[why->chain->count - 1].unread = key;
}

void shk_why_unread(struct shk_why *why, const char *key, bool needed)
{
    enum shk_look look = shk_look(why->known, key, NULL);
    /* of another type, where nobody could use it */
    if (look == SHK_LOOK_FAILED || look == SHK_LOOK_PRESENT || (look == SHK_LOOK_MISSING && needed))
        shk_why_lacks(why, key);
}

const char *shk_why_env(const struct shk_why *why, const char *name)
{
    char key[96];
    snprintf(key, sizeof key, "env.%s", name);
    return shk_why_text(why->known, key);
}

const char *shk_why_text(const struct shk_facts *known, const char *key)
{
    const char *text = NULL;
    (void)shk_look_text(known, key, &text);
    return text;
}

json_t *shk_why_array(const struct shk_facts *known, const char *key)
{
    json_t *array = NULL;
    (void)shk_look_list(known, key, &array);
    return array;
}

json_t *shk_why_object(const struct shk_facts *known, const char *key)
{
    json_t *object = NULL;
    (void)shk_look_object(known, key, &object);
    return object;
}

long long shk_why_int(const struct shk_facts *known, const char *key, long long fallback)
{
    (void)shk_look_int(known, key, &fallback);
    return fallback;
}

const char *shk_why_member(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

bool shk_chains_known(const struct shk_facts *facts)
{
    /* documents of before hold chains as facts: their words are not read, but that they are there
     * says that every probe ran */
    static const char *const marks[] = {"probe.pci.status", "probe.rdma.status", "why.efa",
                                        "why.cxi", "why.verbs"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (shk_look(facts, marks[i], NULL) != SHK_LOOK_MISSING)
            return true;
    }
    return false;
}

/* Does FI_PROVIDER ask for that very name? */
static bool why_asked(const struct shk_facts *facts, const char *provider)
{
    const char *filter = shk_why_filter(facts);
    size_t want = strlen(provider);
    for (const char *p = filter; p && *p && *filter != '^';) {
        size_t n = strcspn(p, ",");
        if (n == want && strncasecmp(p, provider, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

bool shk_chain_of(const struct shk_facts *facts, const char *provider, struct shk_chain *chain)
{
    char name[64];
    *chain = (struct shk_chain){.count = 0};
    if (!shk_chains_known(facts) || !*provider || strlen(provider) >= sizeof name)
        return false;
    bool asked = why_asked(facts, provider);
    snprintf(name, sizeof name, "%.*s", (int)(asked ? strlen(provider) : strcspn(provider, ";")),
             provider);
    struct shk_why why = {
        .known = facts, .provider = name, .kind = shk_why_kind_of(name), .chain = chain};
    if (!why.kind && !asked)
        return false;
    if (why.kind)
        shk_why_host_steps(&why);
    shk_why_library_steps(&why);
    shk_why_offer_steps(&why);
    json_decref(why.devices);
    return true;
}
