/* GPUs, NICs and what joins them, read back from the facts of a node: the model that the text and
 * the picture of the topology are drawn from. */
#ifndef SHK_REPORTS_TOPO_H
#define SHK_REPORTS_TOPO_H

#include "reports/model/model.h"

/* More are left out: no node has as many, and nothing could be read. */
enum { TOPO_GPUS = 32, TOPO_NICS = 64, TOPO_NODES = 16, TOPO_WORDS = 64 };

struct topo_end {
    const char *name; /* "GPU0", "hsn0"; raw text, borrowed from the facts */
    const char *pci;
    long long numa;         /* -1: none or not known */
    const char *class;      /* GPU: distance to its NIC, NULL when it has none */
    int nic;                /* GPU: index into nics; -1 none */
    unsigned gpus;          /* NIC: those that take it */
    double rate;            /* NIC: Gb/s; 0: not known */
    char model[TOPO_WORDS]; /* GPU: "H100 80GB HBM3"; NIC: "400 Gb/s"; "": not known */
    char wrong[TOPO_WORDS]; /* "down", "PCIe x8 of x16", "100 of 200 Gb/s"; "": nothing seen */
};

struct topo {
    const struct shk_facts *facts;
    struct topo_end gpus[TOPO_GPUS], nics[TOPO_NICS];
    size_t gpu_count, nic_count;
    const char *links[TOPO_GPUS][TOPO_GPUS]; /* class of each pair, NULL not known */
    const char *common;                      /* class that all pairs share, NULL when they differ */
    long long numa[TOPO_NODES + 1];          /* the NUMA nodes that occur, -1 last */
    size_t numa_count;
};

/* Fills topo from the facts; false when they tell of no GPU. Fabric NICs only, or all when there
 * is none of those. */
bool shk_topo_read(struct topo *topo, const struct shk_facts *facts);

/* Fills model and wrong of the ends (topo_ends.c); shk_topo_read() calls it. What a fact says of a
 * device is written down, what is missing stays empty. */
void shk_topo_ends(struct topo *topo);

/* Distance of a GPU and a NIC, as facts have it; NULL not known. */
const char *shk_topo_distance(const struct topo *topo, size_t gpu, size_t nic);

/* Is the class that of a direct link (NV#, XGMI)? */
bool shk_topo_is_link(const char *class);

/* Nodes whose topology is the same are drawn once: calls fn for each different one, with the
 * names of those that share it, folded, and how many they are. What is broken comes first. At most
 * `max` calls. */
void shk_topo_each(const struct shk_model *model, size_t max,
                   void (*fn)(const struct topo *topo, const char *names, size_t count, void *arg),
                   void *arg);

/* One <svg> per different node; a whole section, nothing when no node has a GPU. */
void shk_topo_html(struct shk_strbuf *out, const struct shk_model *model);

#endif
