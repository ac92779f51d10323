/* libibverbs and libefa in one file: two EFA devices and a ConnectX, of which NO_DRIVER leaves one
 * out, as the real library does when the user-space driver of a device is missing. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ibv_device {
    const char *name;
    uint32_t caps;
};
struct ibv_context {
    struct ibv_device *device;
};

#ifdef RXE
static struct ibv_device devices[] = {{"mlx5_0", 4194303}, {"rxe0", 32767}};
enum { COUNT = 2 };
#else
/* bit 0: RDMA read, bit 3: RDMA write */
static struct ibv_device devices[] = {
    {"rdmap16s27", 0x1 | 0x8}, {"rdmap32s27", 0x1}, {"mlx5_0", 0}};
#ifdef NO_DRIVER
enum { COUNT = 1 };
#else
enum { COUNT = 3 };
#endif
#endif

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = calloc(COUNT + 1, sizeof *list);
    for (int i = 0; list && i < COUNT; i++)
        list[i] = &devices[i];
    *count = COUNT;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
#ifdef NO_OPEN
    (void)device;
    errno = EACCES;
    return NULL;
#else
    struct ibv_context *context = calloc(1, sizeof *context);
    if (context)
        context->device = device;
    return context;
#endif
}

int ibv_close_device(struct ibv_context *context)
{
    free(context);
    return 0;
}

#ifndef OLD
/* state, largest and active MTU; then what the library has and nobody asks for here */
int ibv_query_port(struct ibv_context *context, uint8_t port, int *attr)
{
    if (port != 1)
        return EINVAL;
    memset(attr, 0x55, 80);
    attr[0] = 4;
    attr[1] = 5;
    attr[2] = context->device->caps ? 5 : 3;
    return 0;
}

int ibv_is_fork_initialized(void)
{
    return 2;
}
#endif

struct efadv_device_attr {
    uint64_t comp_mask;
    uint32_t max_sq_wr, max_rq_wr;
    uint16_t max_sq_sge, max_rq_sge, inline_buf_size;
    uint8_t reserved[2];
    uint32_t device_caps, max_rdma_size;
};

int efadv_query_device(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t size)
{
    if (size < offsetof(struct efadv_device_attr, max_rdma_size) + 4 || !context->device->caps)
        return ENOTSUP;
    attr->device_caps = context->device->caps;
    attr->max_rdma_size = 1 << 30;
    return 0;
}

#ifdef RXE
/* The head of struct ibv_device_attr; `caps` of these devices is their max_cqe. */
int ibv_query_device(struct ibv_context *context, void *attr);
int ibv_query_device(struct ibv_context *context, void *attr)
{
    ((int *)attr)[132 / sizeof(int)] = (int)context->device->caps;
    return 0;
}
#endif
