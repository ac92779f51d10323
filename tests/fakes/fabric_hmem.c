/* libfabric with FI_HMEM for every provider: the real one, which is told nothing of it. "GPU
 * memory" of the stand-in driver is host memory, so whatever a provider does with it works.
 *
 *   SHK_FAKE_HMEM         none (no provider offers it), refuse, nosys, crash, hang: what happens to
 *                         a registration of GPU memory
 *   SHK_FAKE_HMEM_RANK    … only in the process whose CUDA device is this one
 *   SHK_FAKE_HMEM_P2P     1: peer to peer may be required
 *   SHK_FAKE_HMEM_KNOWN   1: the library was built for CUDA, as its settings show */
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CUDA_PERMITTED ((int)FI_OPT_XPU_TRIGGER + 1)

static struct fi_ops_fabric fabric_ops, *real_fabric;
static struct fi_ops_domain domain_ops, *real_domain;
static struct fi_ops_mr mr_ops, *real_mr;
static struct fi_ops_ep ep_ops, *real_ep;
static struct fi_ops fid_ops, *real_fid;
static int enabled; /* the endpoint */

static void *real(const char *name)
{
    void *library = dlopen(REAL_LIBFABRIC, RTLD_NOW | RTLD_LOCAL);
    void *at = library != NULL ? dlsym(library, name) : NULL;

    if (at == NULL) {
        abort();
    }
    return at;
}

/* Not by the handler of the psm providers, which leaves a file behind. */
static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static int is(const char *variable, const char *value)
{
    const char *have = getenv(variable);

    return have != NULL && strcmp(have, value) == 0;
}

void fi_freeinfo(struct fi_info *info)
{
    ((void (*)(struct fi_info *))real("fi_freeinfo"))(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
    return ((struct fi_info * (*)(const struct fi_info *)) real("fi_dupinfo"))(info);
}

const char *fi_strerror(int errnum)
{
    return ((const char *(*)(int))real("fi_strerror"))(errnum);
}

char *fi_tostr(const void *data, enum fi_type type)
{
    return ((char *(*)(const void *, enum fi_type))real("fi_tostr"))(data, type);
}

uint32_t fi_version(void)
{
    return FI_VERSION(1, 22);
}

int fi_getparams(struct fi_param **params, int *count)
{
    static struct fi_param known = {.name = "FI_HMEM_CUDA_USE_GDRCOPY"};

    *params = &known;
    *count = is("SHK_FAKE_HMEM_KNOWN", "1");
    return 0;
}

void fi_freeparams(struct fi_param *params)
{
    (void)params;
}

static struct fi_info *plain(const struct fi_info *info)
{
    struct fi_info *copy = fi_dupinfo(info);

    copy->caps &= ~(uint64_t)FI_HMEM;
    copy->domain_attr->mr_mode &= ~FI_MR_HMEM;
    return copy;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info)
{
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
                   struct fi_info **) = real("fi_getinfo");
    struct fi_info *copy = NULL;
    struct fi_info *each = NULL;
    int rc = 0;

    if (hints == NULL || (hints->caps & FI_HMEM) == 0) {
        return getinfo(version, node, service, flags, hints, info);
    }
    if (is("SHK_FAKE_HMEM", "none")) {
        return -FI_ENODATA;
    }
    copy = plain(hints);
    rc = getinfo(version, node, service, flags, copy, info);
    fi_freeinfo(copy);
    for (each = rc == 0 ? *info : NULL; each != NULL; each = each->next) {
        each->caps |= FI_HMEM;
        each->domain_attr->mr_mode |= FI_MR_HMEM;
    }
    return rc;
}

static int hmem_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                        struct fid_mr **mr)
{
    struct fi_mr_attr copy = *attr;
    const char *rank = getenv("SHK_FAKE_HMEM_RANK");

    if (attr->iface != FI_HMEM_SYSTEM && (rank == NULL || atoi(rank) == attr->device.cuda)) {
        if (is("SHK_FAKE_HMEM", "refuse")) {
            return -FI_EINVAL;
        }
        if (is("SHK_FAKE_HMEM", "nosys")) {
            return -FI_ENOSYS;
        }
        if (is("SHK_FAKE_HMEM", "crash")) {
            crash();
        }
        while (is("SHK_FAKE_HMEM", "hang")) {
            pause();
        }
    }
    copy.iface = FI_HMEM_SYSTEM;
    copy.device.reserved = 0;
    return real_mr->regattr(fid, &copy, flags, mr);
}

static int p2p = FI_HMEM_P2P_ENABLED;

static int hmem_control(struct fid *fid, int command, void *arg)
{
    enabled = enabled || command == FI_ENABLE;
    return real_fid->control(fid, command, arg);
}

static int hmem_setopt(fid_t fid, int level, int option, const void *value, size_t len)
{
    if (enabled) {
        return -FI_EBUSY;
    }
    if (option == FI_OPT_FI_HMEM_P2P && len == sizeof(p2p)) {
        if (!is("SHK_FAKE_HMEM_P2P", "1")) {
            return -FI_EOPNOTSUPP;
        }
        memcpy(&p2p, value, len);
        return 0;
    }
    if (option == CUDA_PERMITTED) {
        return *(const _Bool *)value || is("SHK_FAKE_HMEM_P2P", "1") ? 0 : -FI_EOPNOTSUPP;
    }
    return real_ep->setopt(fid, level, option, value, len);
}

static int hmem_getopt(fid_t fid, int level, int option, void *value, size_t *len)
{
    if (!enabled) {
        crash(); /* as shm does */
    }
    if (option == FI_OPT_FI_HMEM_P2P) {
        memcpy(value, &p2p, sizeof(p2p));
        return 0;
    }
    return real_ep->getopt(fid, level, option, value, len);
}

static int hmem_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                         void *context)
{
    struct fi_info *copy = plain(info);
    int rc = real_domain->endpoint(domain, copy, ep, context);

    fi_freeinfo(copy);
    if (rc == 0) {
        real_ep = (*ep)->ops;
        ep_ops = *real_ep;
        ep_ops.setopt = hmem_setopt;
        ep_ops.getopt = hmem_getopt;
        (*ep)->ops = &ep_ops;
        real_fid = (*ep)->fid.ops;
        fid_ops = *real_fid;
        fid_ops.control = hmem_control;
        (*ep)->fid.ops = &fid_ops;
    }
    return rc;
}

static int hmem_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                       void *context)
{
    struct fi_info *copy = plain(info);
    int rc = real_fabric->domain(fabric, copy, domain, context);

    fi_freeinfo(copy);
    if (rc == 0) {
        real_domain = (*domain)->ops;
        domain_ops = *real_domain;
        domain_ops.endpoint = hmem_endpoint;
        (*domain)->ops = &domain_ops;
        real_mr = (*domain)->mr;
        mr_ops = *real_mr;
        mr_ops.regattr = hmem_regattr;
        (*domain)->mr = &mr_ops;
    }
    return rc;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    int (*open)(struct fi_fabric_attr *, struct fid_fabric **, void *) = real("fi_fabric");
    int rc = open(attr, fabric, context);

    if (rc == 0 && real_fabric == NULL) { /* another provider's tables would replace these */
        real_fabric = (*fabric)->ops;
        fabric_ops = *real_fabric;
        fabric_ops.domain = hmem_domain;
        (*fabric)->ops = &fabric_ops;
    }
    return rc;
}
