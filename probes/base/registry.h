/* Descriptors of all probes; probes/base/list.def has their order. */
#ifndef SHK_PROBES_REGISTRY_H
#define SHK_PROBES_REGISTRY_H

#include "probes/base/probe.h"

#define PROBE(name) extern const struct shk_probe shk_probe_##name;
#include "probes/base/list.def"
#undef PROBE

#endif
