/* A libfabric of our own: one provider, or one fault. The symbol versions come from a version
 * script (fabric_old.map, fabric_new.map), as those of the real library do. */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined STARVE || defined SPIN
#include "tests/fakes/starve.h"
#endif

#ifndef PROVIDER
#define PROVIDER "cxi"
#endif
#ifndef RELEASE
#define RELEASE "1.17.0"
#endif

#ifdef SEGV_CONSTRUCTOR
__attribute__((constructor)) static void fabric_constructor(void)
{
    *(volatile int *)8 = 1;
}
#endif

uint32_t fi_version(void)
{
    return FI_VERSION(RELEASE_MAJOR, RELEASE_MINOR);
}

#ifndef NO_DUPINFO
static struct fi_info *fabric_empty(void)
{
    struct fi_info *info = calloc(1, sizeof *info);
    info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
    info->domain_attr = calloc(1, sizeof *info->domain_attr);
    info->ep_attr = calloc(1, sizeof *info->ep_attr);
    info->tx_attr = calloc(1, sizeof *info->tx_attr);
    info->rx_attr = calloc(1, sizeof *info->rx_attr);
    return info;
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
    return info ? NULL : fabric_empty();
}

static struct fid_nic *fabric_nic(unsigned char bus)
{
    struct fid_nic *nic = calloc(1, sizeof *nic);
    nic->device_attr = calloc(1, sizeof *nic->device_attr);
    nic->bus_attr = calloc(1, sizeof *nic->bus_attr);
    nic->link_attr = calloc(1, sizeof *nic->link_attr);
    nic->device_attr->name = strdup("fake0");
    nic->bus_attr->bus_type = FI_BUS_PCI;
    nic->bus_attr->attr.pci.bus_id = bus;
    nic->link_attr->speed = 200000000000ull;
    nic->link_attr->mtu = 2048;
    nic->link_attr->state = FI_LINK_UP;
    return nic;
}

static struct fi_info *fabric_domain(const char *name, unsigned char bus)
{
    struct fi_info *info = fabric_empty();
    info->caps = FI_MSG | FI_TAGGED | FI_RMA;
    info->fabric_attr->prov_name = strdup(PROVIDER);
    info->fabric_attr->name = strdup(PROVIDER);
    info->fabric_attr->prov_version = fi_version();
    info->domain_attr->name = strdup(name);
    info->ep_attr->type = FI_EP_RDM;
    info->ep_attr->max_msg_size = 1 << 30;
    info->nic = fabric_nic(bus);
    return info;
}
#endif

/* The filter works as in the real library: a name that does not match hides the provider. */
static int fabric_hidden(void)
{
    const char *filter = getenv("FI_PROVIDER");
    if (!filter)
        return 0;
    return *filter == '^' ? strstr(filter, PROVIDER) != NULL : strstr(filter, PROVIDER) == NULL;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info)
{
    (void)version, (void)node, (void)service, (void)flags;
#if defined HANG
    for (;;)
        pause();
#elif defined SPIN
    starve_never();
    for (;;)
        ;
#elif defined STARVE
    starve_become();
    starve_work(1);
#elif defined SEGV
    *(volatile int *)8 = 1;
#elif defined ABORT
    abort();
#elif defined EXIT
    exit(0);
#elif defined MEMORY
    for (;;)
        memset(malloc(64 << 20), 1, 64 << 20);
#endif
    if (fabric_hidden())
        return -61; /* FI_ENODATA */
    if (hints && hints->fabric_attr->prov_name && strcmp(hints->fabric_attr->prov_name, PROVIDER))
        return -61;
    if (hints && hints->caps & FI_HMEM)
        return -61;
#ifndef NO_DUPINFO
    *info = fabric_domain(PROVIDER "0", 0xc3);
    (*info)->next = fabric_domain(PROVIDER "1", 0xc8);
#else
    (void)info;
#endif
    return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    (void)attr, (void)fabric, (void)context;
    return -38; /* FI_ENOSYS: there is nothing behind this library */
}

void fi_freeinfo(struct fi_info *info)
{
    (void)info; /* the process ends soon */
}

const char *fi_strerror(int errnum)
{
    return errnum == 61 ? "No data available" : "some error";
}

char *fi_tostr(const void *data, enum fi_type type)
{
    static const char release[] = RELEASE;
    static char ep[] = "FI_EP_RDM", caps[] = "FI_MSG, FI_TAGGED, FI_RMA", none[] = "";
    (void)data;
    return type == FI_TYPE_VERSION   ? (char *)release
           : type == FI_TYPE_EP_TYPE ? ep
           : type == FI_TYPE_CAPS    ? caps
                                     : none;
}

int fi_getparams(struct fi_param **params, int *count)
{
    static struct fi_param list[] = {
        {.name = "FI_FAKE_LIMIT", .type = FI_PARAM_SIZE_T, .help_string = "a limit", .value = "7"},
        {.name = "FI_FAKE_MODE", .type = FI_PARAM_STRING, .help_string = "a mode"},
    };
    *params = list;
    *count = 2;
    return 0;
}

void fi_freeparams(struct fi_param *params)
{
    (void)params;
}
