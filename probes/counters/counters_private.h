/* Parts of the reading of counters, one file per kind of hardware. */
#ifndef SHK_PROBES_COUNTERS_PRIVATE_H
#define SHK_PROBES_COUNTERS_PRIVATE_H

#include "core/host/host.h"
#include "core/text/error.h"
#include <jansson.h>

struct counters {
    const struct shk_host *host;
    json_t *values, *kinds, *classes, *unread, *log;
};

struct counters_name {
    const char *name, *kind;
};

/* One counter of a scope that was begun. */
void counters_set(struct counters *c, const char *scope, const char *name, const char *kind,
                  unsigned long long value);
/* A scope of this class: what is set or unread later belongs to it. */
void counters_begin(struct counters *c, const char *scope, const char *class);
void counters_unread(struct counters *c, const char *scope, const char *why);

/* One file per counter below `dir`: "17", or with Slingshot "17@time". One that is not there is a
 * counter that this hardware lacks. `names` ends with a NULL name. */
void counters_files(struct counters *c, const char *scope, const char *dir,
                    const struct counters_name *names);

/* Names in a folder; none is none. NULL: there is none, or it cannot be read, which `scope` of this
 * class then tells. */
char **counters_list(struct counters *c, const char *dir, const char *scope, const char *class);

void counters_tcp(struct counters *c);
void counters_dev(struct counters *c);
/* How often the carrier of an interface went away (rtnetlink, Linux 4.16). A live host only. */
void counters_links(struct counters *c);
void counters_ethtool(struct counters *c);
void counters_rdma(struct counters *c);
void counters_cxi(struct counters *c);
void counters_pci(struct counters *c);
void counters_memory(struct counters *c);
/* Asks NVIDIA's GPUs in a child, before anything else is in c, and takes the answer. NULL: there
 * are none, or what is in c says why not. */
struct counters_gpus;
struct counters_gpus *counters_nvml_begin(struct counters *c);
void counters_nvml_end(struct counters *c, struct counters_gpus *gpus);
void counters_amd(struct counters *c);
void counters_kmsg(struct counters *c);

#endif
