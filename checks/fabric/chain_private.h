/* Parts of checks/fabric/chain_build.c: the chain of one provider, from facts alone. */
#ifndef SHK_CHECKS_CHAIN_PRIVATE_H
#define SHK_CHECKS_CHAIN_PRIVATE_H

#include "checks/fabric/chain.h"

struct shk_why_kind {
    const char *name;
    const char *adapter;        /* for people: "EFA function (PCI 1d0f:efa0 to efaf)" */
    const char *count_key;      /* pci.count.… */
    const char *pci_kind;       /* of pci.devices[].kind */
    const char *const *modules; /* all of them are needed; NULL-terminated */
    bool verbs_class;           /* its devices are RDMA devices, else those of cxi.devices */
    const char *driver;         /* of its RDMA devices; NULL: every driver but efa's */
    const char *fork_use;       /* the use of the variables that make fork() safe */
    bool every_link;            /* each link should be up; else one is enough */
    bool service;               /* needs a network service from the launcher (CXI) */
    bool capability;            /* libefa tells what its devices can do */
};

/* NULL for a provider that needs no device of its own (tcp, shm …). */
const struct shk_why_kind *shk_why_kind_of(const char *provider);

struct shk_why {
    const struct shk_facts *known;
    const char *provider;
    const struct shk_why_kind *kind; /* may be NULL */
    struct shk_chain *chain;
    json_t *devices; /* its rows of rdma.devices or cxi.devices; NULL when not known */
    bool no_adapter; /* the PCI step is broken: the host steps after it do not apply */
};

/* pci, module, device, node, userlib, limits; then, where they apply, fork, capability, service */
void shk_why_host_steps(struct shk_why *why);
void shk_why_job_steps(struct shk_why *why);     /* limits, fork, capability, service */
void shk_why_library_steps(struct shk_why *why); /* library, dependencies, filter */
void shk_why_offer_steps(struct shk_why *why);   /* getinfo, hints, domains, link, mtu */

/* Does "tcp;ofi_rxm" hold "tcp"? Names compare without case, as libfabric does. */
bool shk_why_names(const char *layered, const char *provider);
bool shk_why_list_names(const json_t *names, const char *provider);

/* Reason why a key has no value, for steps that are not known: the fact's own, or that no probe
 * collected it. */
const char *shk_why_reason(const struct shk_facts *known, const char *key);

/* Marks the last step when `key` (a literal) could not be read, or, where `needed`, when no probe
 * collected it: whoever trusts the chain must know. */
void shk_why_unread(struct shk_why *why, const char *key, bool needed);

/* The same, for a member of a fact or a fact of a family. */
void shk_why_lacks(struct shk_why *why, const char *key);

/* Was libibverbs there to be asked? Not of a captured node, and not in documents of before: then
 * libfabric, which asks it as well, decides. One that failed on a live node was. */
bool shk_why_verbs_asked(const struct shk_why *why);

/* Text of env.<name>, NULL when it is not set. */
const char *shk_why_env(const struct shk_why *why, const char *name);

/* Text member of an object, "" when there is none. */
const char *shk_why_member(const json_t *row, const char *name);

/* Values of facts: NULL, or `fallback`, when there is none of that type. */
const char *shk_why_text(const struct shk_facts *known, const char *key);
json_t *shk_why_array(const struct shk_facts *known, const char *key);
json_t *shk_why_object(const struct shk_facts *known, const char *key);
long long shk_why_int(const struct shk_facts *known, const char *key, long long fallback);

/* FI_PROVIDER as libfabric saw it, else as the environment has it; NULL: not set, or not known. */
const char *shk_why_filter(const struct shk_facts *known);

/* Is FI_PROVIDER in the way? */
bool shk_why_filtered(const struct shk_why *why);

#endif
