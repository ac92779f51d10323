/* Inside of the fabric transport: the only place that sees libfabric. */
#ifndef SHK_COLLECTIVES_FABRIC_PRIVATE_H
#define SHK_COLLECTIVES_FABRIC_PRIVATE_H

#include "collectives/algorithm/sweep.h"
#include "collectives/fabric/fabric.h"
#include "collectives/fabric/fabric_rails.h"
#include "collectives/fabric/fabric_verbs.h"
#include "collectives/gpu/gpu_memory.h"
#include "collectives/ranks/crew.h"
#include "core/text/strbuf.h"
#include <jansson.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* The library's entry points; everything else goes through the objects' own tables. */
struct fabric_api {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int errnum);
    uint32_t (*version)(void);
    char *(*tostr)(const void *data, enum fi_type type); /* optional, as all below */
    int (*getparams)(struct fi_param **params, int *count);
    void (*freeparams)(struct fi_param *params);
    int (*open)(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
                struct fid **fid, void *context);
};

struct fabric_lib {
    struct shk_dynlib dynlib;
    struct fabric_api api;
    uint32_t version; /* of the API: what both the library and our headers know */
    char text[24];    /* version of the library, "1.17.0" as far as it tells */
};

/* names NULL: libfabric.so.1. Undone by fabric_lib_close(). */
int fabric_lib_open(struct fabric_lib *lib, const char *const *names, struct shk_error *err);
void fabric_lib_close(struct fabric_lib *lib);

/* Everything that an all-reduce needs, as hints (freeinfo). provider may be NULL. */
struct fi_info *fabric_hints(const struct fabric_lib *lib, const char *provider);

/* One requirement of fabric_hints(), and how to do without it: for telling what excludes a
 * provider. */
struct fabric_hint {
    const char *name;
    void (*relax)(struct fi_info *hints);
};
extern const struct fabric_hint fabric_hint_list[];

/* Do both entries stand for the same device, used in the same way? */
bool fabric_info_same(const struct fi_info *a, const struct fi_info *b);

/* Asks libfabric and takes its first choice (freeinfo). *list_p, may be NULL: all that it offers
 * (freeinfo). */
int fabric_choose(const struct fabric_lib *lib, const char *provider, struct fi_info **info_p,
                  struct fi_info **list_p, struct shk_error *err);

/* The same entry, whose completions at the source say only that the buffer is free again, where it
 * can have that: the usual stronger promise costs some providers a round trip. And with room for
 * more to inject, where it offers little. NULL: no memory. */
struct fi_info *fabric_lazy(const struct fabric_lib *lib, const struct fi_info *info);

/* "0000:17:00.0" of the device behind an entry; false when the provider does not tell. */
bool fabric_pci(const struct fi_info *info, char *buf, size_t size);

/* Does the chosen provider offer FI_DELIVERY_COMPLETE? */
bool fabric_has_delivery(const struct fabric_lib *lib, const struct fi_info *info);

/* {provider, fabric, domain, endpoint, protocol, library, version, …} of what was chosen. */
json_t *fabric_identity(const struct fabric_lib *lib, const struct fi_info *info);

/* Why no provider fits, in an isolated process that ignores FI_PROVIDER: one line. False when that
 * could not be found out. */
bool fabric_why(const char *const *names, const char *provider, char *buf, size_t size);

/* The same for a library that is open and was started without FI_PROVIDER. provider: asked for by
 * option, NULL none; filter: the value of FI_PROVIDER in the run, NULL when unset. */
void fabric_why_text(const struct fabric_lib *lib, const char *provider, const char *filter,
                     struct shk_strbuf *text);

/* Where a rank crashed in phase open, and a file of its process number that libfabric's shm
 * provider did not make for it is in `dir` (/dev/shm), names that file as the reason. To be asked
 * after the crew has tidied up. */
bool fabric_leftover(const char *dir, const struct shk_job *job, struct shk_crew_result *result);

/* Replaces the reason "fi_getinfo: No data available" by what fabric_why() finds. */
void fabric_explain(const char *const *names, const char *provider, const struct shk_job *job,
                    struct shk_crew_result *result);

/* What a rank leaves in its result space. */
struct fabric_result {
    struct shk_sweep_result sweep; /* first: what reads sweeps finds it there */
    struct fabric_rails_report rails;
};

/* Values that ranks publish for the supervisor. */
#define FABRIC_IDENTITY   "fabric.identity"
#define FABRIC_NOTIFY     "fabric.notify"
#define FABRIC_HMEM       "fabric.hmem"
#define FABRIC_PLACE      "fabric.place"
#define FABRIC_PORT       "fabric.port"
#define FABRIC_QUEUES     "fabric.queues"
#define FABRIC_REFUSED    "fabric.refused"
#define FABRIC_NO_OFFER   "fabric.no_offer"  /* fi_getinfo gave nothing */
#define FABRIC_DIRECT     "fabric.direct_by" /* provider of the endpoints that drops take */
#define FABRIC_NOT_LOADED "library-load" /* its value when libfabric is there and does not load */
#define FABRIC_CAUSE      "gpu.cause"    /* the same as that of the GPU transports */

/* fabric_rails_facts.c: collective.fabric.rails, and lines of evidence. NULL: no memory. */
json_t *fabric_rails_json(const struct shk_job *job, const struct shk_crew_result *result);
void fabric_rails_evidence(const json_t *rows, void (*line)(json_t *lines, const char *text),
                           json_t *lines);

/* fabric_facts.c: collective.<transport>.* from what the crew and its ranks left. */
int fabric_facts(const char *transport, struct shk_facts *facts, const struct shk_job *job,
                 const struct shk_crew_result *result, struct shk_error *err);
int fabric_facts_not_run(const char *transport, struct shk_facts *facts, unsigned ranks,
                         const char *status, const char *why, struct shk_error *err);

enum fabric_use {
    FABRIC_FREE,
    FABRIC_WRITE,
    FABRIC_WRITE_THEN_SEND,
    FABRIC_SEND,
    FABRIC_RECV,
    FABRIC_READ
};

/* An operation under way. Its first member is what FI_CONTEXT and FI_CONTEXT2 want. */
struct fabric_op {
    struct fi_context2 context;
    struct fabric_op *next; /* free list, or list of sends to be retried */
    enum fabric_use use;
    unsigned peer;
    struct fabric_rail *rail;
    uint32_t note;       /* notification to send, or -received in- */
    unsigned char *mail; /* its small message, in the mailbox */
};

/* Small messages of the transport: host memory, since the CPU reads them, and apart from the heap,
 * which peers write to. */
struct fabric_mail {
    unsigned char *base;
    struct fid_mr *mr;
    void *desc;
};

/* The heap is in GPU memory. */
struct fabric_hmem {
    struct shk_gpu_memory *gpu;
    enum fi_hmem_iface iface;
    char usual[64];  /* provider that host memory uses */
    char answer[64]; /* to the request for peer to peer */
    const char *p2p; /* what is in effect */
    const char *cuda_calls;
};

struct fabric_direct_peer {
    struct fid_ep *ep;
    uint64_t base; /* as in struct fabric_peer */
    uint64_t key;
};

/* Endpoints connected to every rank, of the provider below ofi_rxm, for drops. */
struct fabric_direct {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *pep;
    struct fid_mr *mr;
    struct fabric_direct_peer *peers;
    unsigned connected;
    bool off;    /* for tests: as if there were none */
    bool deaf;   /* for tests: what is asked of this rank is not seen */
    bool ready;  /* this rank listens */
    bool failed; /* a connection */
    bool used;   /* by all ranks */
    bool last;   /* the last put went this way */
};

struct fabric {
    struct shk_wire wire; /* first: a struct shk_wire * is a struct fabric * */
    const struct fabric_lib *lib;
    struct fabric_rail rail[SHK_RAILS_MAX]; /* the first carries messages and small puts */
    unsigned rails;
    struct fabric_rail *lane[SHK_RAILS_MAX]; /* rails that carry large puts: the first, and … */
    unsigned lanes;
    struct fabric_rail *only; /* what carries all large puts, while it is measured */
    unsigned last_lane;       /* of a large put */
    unsigned last_poll;       /* lane that was polled */
    unsigned busy;            /* polls for which it is likely that the lanes have something */
    unsigned skipped;         /* polls of the first lane alone */
    unsigned other;           /* polls of the first lane or of the direct endpoints alone */
    unsigned quiet;           /* polls without an event */
    uint64_t quiet_ns;        /* since when; 0: not known yet */
    bool told;                /* the breadcrumb tells of it */
    struct fabric_rails_report *report;
    struct fabric_mail mail;
    struct fabric_direct direct;
    struct fabric_hmem *hmem; /* NULL: the heap is in host memory */
    struct fabric_op *ops;
    struct fabric_op *free;
    struct fabric_op *resend; /* notifications that met FI_EAGAIN */
    unsigned depth;           /* of ops for puts */
    enum shk_fabric_notify notify;
    size_t inject;
    char unlike[192]; /* first rank on another fabric, for errors: "" when none */
    unsigned probes;  /* probe notifications received */
    struct fabric_queues queues;
};

/* Small messages that the transport keeps ready to receive, and puts under way at most. */
#define FABRIC_RECVS      ((size_t)256)
#define FABRIC_DEPTH      ((size_t)256)
#define FABRIC_MAIL       ((size_t)16) /* bytes of one */
#define FABRIC_MAIL_BYTES ((FABRIC_RECVS + FABRIC_DEPTH) * FABRIC_MAIL)

/* Binds this rank to a CPU near the device of `info`, where that is ours to do, and publishes what
 * was done. Before memory is touched: it then lies near as well. */
int fabric_place(const struct fi_info *info, struct shk_job *job, struct shk_error *err);

/* What fi_endpoint() or fi_enable() returned; where libfabric's shm provider is stopped by a file
 * that a killed process left in /dev/shm, the text names it. */
int fabric_ep_error(const struct fabric_lib *lib, const struct fi_info *info, const char *call,
                    int rc, struct shk_error *err);

/* Phases of a rank. Each sets the breadcrumb before it enters the library. The rails are chosen
 * already; that others than the first do not open is no error. */
int fabric_open(struct fabric *fabric, struct shk_error *err);
int fabric_rail_open(struct fabric *fabric, struct fabric_rail *rail, struct shk_error *err);
int fabric_rail_register(struct fabric *fabric, struct fabric_rail *rail, struct shk_error *err);
int fabric_register(struct fabric *fabric, size_t max_put, struct shk_error *err);
int fabric_exchange(struct fabric *fabric, enum shk_fabric_notify notify, struct shk_error *err);
void fabric_close(struct fabric *fabric);

/* libfabric's warnings from here on, kept in this process instead of lost (libfabric 1.16 and
 * later, unless FI_LOG_LEVEL is set). find: the oldest of the last ones that has these words, or
 * the oldest (words NULL), as "verbs vrb_cq_open: Unable to create verbs CQ". */
void fabric_log_keep(const struct fabric_lib *lib);
void fabric_log_clear(void);
void fabric_log_add(const char *provider, const char *func, const char *text);
bool fabric_log_find(const char *words, char *buf, size_t size);

/* What failed. */
enum fabric_step {
    FABRIC_STEP_OTHER,    /* opening, or a transfer */
    FABRIC_STEP_OFFER,    /* fi_getinfo */
    FABRIC_STEP_REGISTER, /* memory */
    FABRIC_STEP_ADDRESS,  /* fi_av_insert */
};

/* Why a call failed over verbs. */
struct fabric_refusal {
    enum fabric_step step;
    int errnum;
    const char *provider;         /* asked for; NULL */
    const char *domain;           /* in use; NULL: none was to be had */
    size_t pinned;                /* bytes that this rank has to pin */
    struct fabric_queues *queues; /* most 0: not known */
};

/* A cause of collective.<t>.cause, or NULL when it cannot be told; in buf what explains it, "" for
 * nothing. */
const char *fabric_refusal(const struct shk_host *host, const struct fabric_refusal *refusal,
                           char *buf, size_t size);

/* The same for this rank's error: publishes the cause and adds the explanation to err. False: there
 * is none. */
bool fabric_refused(struct fabric *fabric, const char *provider, enum fabric_step step, int rc,
                    struct shk_error *err);

/* -errno with "call: libfabric's text" in err; rc is what the call returned. */
int fabric_error(const struct fabric_lib *lib, const char *call, ssize_t rc, struct shk_error *err);

/* fabric_hmem.c: FI_HMEM. What fails for a reason that is known has published it as FABRIC_CAUSE:
 * "na" (nothing to test here), "hmem-interface" (libfabric knows this kind of memory and does not
 * serve it), "hmem-registration", or one of the GPU transports. */
void fabric_hmem_want(struct fi_info *hints);
int fabric_hmem_fail(struct shk_job *job, const char *cause, int rc);
int fabric_hmem_choose(const struct fabric_lib *lib, const char *provider, struct shk_job *job,
                       struct fabric_hmem *hmem, struct fi_info **info_p, struct shk_error *err);
int fabric_hmem_open(struct fabric_hmem *hmem, const struct fi_info *info, struct shk_job *job,
                     const struct shk_gpu_tweaks *tweaks, struct shk_error *err);
/* Asks the endpoint for what NCCL's plugin asks for, before it is enabled; a refusal is no error.
 * What is in effect can be asked for only afterwards: shm crashes on it before. */
void fabric_hmem_ask(struct fabric *fabric);
void fabric_hmem_answer(struct fabric *fabric);
int fabric_hmem_register(struct fabric *fabric, struct fabric_rail *rail, void *base, size_t bytes,
                         uint64_t access, uint64_t key, struct fid_mr **mr_p,
                         struct shk_error *err);
/* {iface, driver, host_provider, sums, flushes, requested, effective} */
/* Was the library built for this kind of memory? True also when it does not tell. */
bool fabric_hmem_library_knows(const struct fabric_lib *lib, enum fi_hmem_iface iface);
/* Does rc of fi_mr_regattr() mean that the library was built without it? err then says so. */
bool fabric_hmem_lacks(const struct fabric_lib *lib, enum fi_hmem_iface iface, int rc,
                       struct shk_error *err);
json_t *fabric_hmem_json(const struct fabric *fabric);
/* {status: "offered" or "na", reason}: for the run on host memory */
json_t *fabric_hmem_offer(const struct fabric_lib *lib, const struct fi_info *info);

/* fabric_direct.c. Opens and listens where this applies; what fails is no error, all ranks then do
 * without. publish before the fence of the exchange, connect after it, on all ranks. */
void fabric_direct_open(struct fabric *fabric);
int fabric_direct_publish(struct fabric *fabric, struct shk_error *err);
int fabric_direct_connect(struct fabric *fabric, struct shk_error *err);
/* Where direct.used: puts `bytes` at data to offset `to` of the rank's heap, with no completion.
 * The source stays as it is until the rank is known to have it. */
ssize_t fabric_direct_drop(struct fabric *fabric, unsigned rank, const void *data, size_t bytes,
                           size_t to);
/* Moves them along. An error fails the wire. */
void fabric_direct_poll(struct fabric *fabric);
void fabric_direct_close(struct fabric *fabric);

/* fabric_put.c */
extern const struct shk_wire_ops fabric_wire_ops;
extern const struct shk_wire_ops fabric_wire_ops_no_get; /* where fi_read is not possible */
int fabric_ops_create(struct fabric *fabric, struct shk_error *err);

/* A put whose completion says that the target has the data. */
ssize_t fabric_put_delivered(struct fabric_rail *rail, const struct fabric_peer *peer, void *buf,
                             size_t bytes, uint64_t addr, void *context);

/* Readies the mailbox for notifications by message. */
int fabric_post_recvs(struct fabric *fabric);

/* Index of notifications that only try the way. */
#define FABRIC_NOTE_PROBE ((UINT32_C(1) << 24) - 1)

/* Tries one notification with data on the next rank. 0: sent; -FI_ENOSYS …: cannot. */
ssize_t fabric_probe(struct fabric *fabric);

#endif
