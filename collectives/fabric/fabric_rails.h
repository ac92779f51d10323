/* Rails: the network devices (libfabric's domains) that the fabric all-reduce uses side by side.
 * The first is libfabric's first choice, which must work. The others are chosen (fabric_rails.c),
 * agreed on by all ranks and probed (fabric_rails_agree.c), and measured (fabric_rails_speed.c). */
#ifndef SHK_COLLECTIVES_FABRIC_RAILS_H
#define SHK_COLLECTIVES_FABRIC_RAILS_H

#include "collectives/fabric/fabric.h"
#include "core/host/host.h"
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

/* Devices that are told of; beyond that only their number. */
#define FABRIC_REPORTS 32U

/* Puts of at least this many bytes take turns on the rails; below it latency counts. */
#define FABRIC_SPREAD_BYTES ((size_t)65536)

/* Time for the first tokens of all rails. */
#define FABRIC_PROBE_NS UINT64_C(2000000000)

/* Of the heap: a token to and from either side, for each rail. */
#define FABRIC_TOKEN_BYTES ((size_t)16 * 4 * SHK_RAILS_MAX)

enum fabric_rail_status {
    FABRIC_RAIL_USED = 1,
    FABRIC_RAIL_LEFT_OUT, /* nothing is wrong with it */
    FABRIC_RAIL_MISSING,  /* some rank has none that pairs with it */
    FABRIC_RAIL_DEAD,     /* does not open, or its probe failed */
};

/* What a rank leaves for the supervisor about one device. */
struct fabric_rail_report {
    char domain[64];
    char fabric[48];
    char pci[16];
    uint32_t status;  /* enum fabric_rail_status */
    uint32_t witness; /* 1: this rank itself saw what the reason tells */
    uint32_t sides;   /* it failed to the next rank: 1, to the one before: 2 */
    uint32_t blamed;  /* the rank at fault, plus 1; 0: as sides tells */
    double bandwidth; /* GB/s (10^9) of this rank's puts over it alone; 0: not measured */
    char reason[192];
};

struct fabric_rails_report {
    uint32_t count;
    uint32_t more; /* devices that found no room above */
    struct fabric_rail_report row[FABRIC_REPORTS];
};

struct fabric_peer {
    fi_addr_t addr;
    uint64_t base; /* address of its heap in its own terms; 0 when offsets are used */
    uint64_t key;
};

struct fabric_rail {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    void *desc;
    struct fabric_peer *peers;
    struct fabric_rail_report *report;
    unsigned pending; /* puts and reads under way */
    unsigned events;  /* that came from its completion queue */
    bool ready;       /* open and registered */
};

struct fabric;
struct fabric_lib;

/* Chooses up to `limit` rails out of libfabric's list, fabric->rail[0] being there already, and
 * begins the report. host NULL: interfaces cannot be looked at. */
int fabric_rails_select(struct fabric *fabric, const struct shk_host *host,
                        const struct fi_info *list, unsigned limit,
                        struct shk_error *err) SHK_MUST_CHECK;

/* Opens and registers all but the first. What fails is kept as dead. */
void fabric_rails_open(struct fabric *fabric);

/* Before the fence of the exchange: what the others need to know of this rank's rails. */
int fabric_rails_publish(struct fabric *fabric, struct shk_error *err) SHK_MUST_CHECK;

/* After it, when the way of notification is known: pairs, probes and drops rails, alike on all
 * ranks. An error only when the first rail fails. */
int fabric_rails_agree(struct fabric *fabric, struct shk_error *err) SHK_MUST_CHECK;

/* Bandwidth of each rail alone, when there are several. */
int fabric_rails_measure(struct fabric *fabric, size_t max_bytes,
                         uint64_t budget_ns) SHK_MUST_CHECK;

/* "r1 of fabric 10.1.0.0/24" */
void fabric_rail_text(const struct fabric_rail *rail, char *buf, size_t size);

#endif
