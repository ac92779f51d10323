/* What the loaded libfabric offers, for the fabric checks and for FI_PROVIDER. */
#ifndef SHK_CHECKS_FABRIC_H
#define SHK_CHECKS_FABRIC_H

#include "checks/base/coded.h"
#include "checks/base/row.h"

enum shk_provider_state {
    SHK_PROVIDER_UNKNOWN,
    SHK_PROVIDER_ABSENT,    /* not in the library */
    SHK_PROVIDER_NO_DOMAIN, /* there, but offers nothing on this node */
    SHK_PROVIDER_USABLE     /* fi_getinfo() offers at least one domain */
};

/* A list of providers against the loaded library; as shk_resolve() in checks/env/resolve.h. */
bool shk_resolve_provider(const struct shk_check_context *ctx, const char *value,
                          struct shk_row *row);

/* The name of a network against the networks that are here; an empty value, too, is a name. */
bool shk_resolve_network(const struct shk_check_context *ctx, const char *value,
                         struct shk_row *row);

/* Layered names ("verbs;ofi_rxm") match by their core part too. */
enum shk_provider_state shk_provider_state(const struct shk_facts *facts, const char *provider,
                                           size_t len);

/* Diagnosis key when `provider` is not usable, NULL when there is none. */
const char *shk_provider_diagnosis(const char *provider, size_t len, enum shk_provider_state state);

/* "libfabric /path (1.17.0)": a new string. */
char *shk_fabric_text(const struct shk_facts *facts);

/* Path of another copy of libfabric that is linked for the provider, when the one that is loaded is
 * not; NULL when there is none. Borrowed. */
const char *shk_fabric_copy_with(const struct shk_facts *facts, const char *provider);

/* Providers in the library: a new string, "a, b, c". */
char *shk_fabric_providers_text(const struct shk_facts *facts);

#endif
