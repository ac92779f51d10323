/* Variables of libfabric's providers: which provider, and is it there to read them? */
#ifndef SHK_CHECKS_READERS_PROVIDER_H
#define SHK_CHECKS_READERS_PROVIDER_H

#include "checks/base/check.h"

enum shk_provider_look {
    SHK_PROVIDER_LOOKS_WORKS, /* it offers something, so all of its variables are registered */
    SHK_PROVIDER_LOOKS_IDLE,  /* in the library, but may have registered nothing: no device */
    SHK_PROVIDER_LOOKS_GONE,  /* the library does not have it */
    SHK_PROVIDER_LOOKS_UNREAD
};

/* Facts: fabric.providers, fabric.core_providers. */
enum shk_provider_look shk_provider_look(const struct shk_facts *facts, const char *provider);

/* Provider that a variable belongs to: `fixed` when it is not NULL; FI_PSM2_UUID, which prov/psm2
 * of libfabric's source defines (the source of the catalogue's row); without a row (setting NULL)
 * the provider of the library that the name carries. False: it is none of a provider's. */
bool shk_provider_of(const struct shk_facts *facts, const char *fixed, const char *name,
                     const struct shk_setting *setting, char buf[32]);

#endif
