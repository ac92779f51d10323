/* amd_smi as far as the probe asks it: two GPUs of one socket. AMD_SMI_FAULT names what is wrong
 * with the second one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct links {
    uint32_t count, status[8];
    uint64_t reserved[7];
};

static int socket_handle, gpus[2];

static int fault(const void *gpu, const char *name)
{
    const char *asked = getenv("AMD_SMI_FAULT");
    return asked && strcmp(asked, name) == 0 && (!gpu || gpu == &gpus[1]);
}

int amdsmi_init(uint64_t flags)
{
    (void)flags;
    return fault(NULL, "no-driver") ? 34 : 0;
}

int amdsmi_shut_down(void)
{
    return 0;
}

int amdsmi_get_socket_handles(uint32_t *count, void **list)
{
    *count = 1;
    if (list)
        list[0] = &socket_handle;
    return 0;
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **list)
{
    (void)socket;
    *count = 2;
    for (int i = 0; list && i < 2; i++)
        list[i] = &gpus[i];
    return 0;
}

int amdsmi_get_gpu_bdf_id(void *gpu, uint64_t *bdf)
{
    *bdf = gpu == &gpus[0] ? 0x0000c100u : 0x0000c300u;
    return 0;
}

static int refused(const void *gpu)
{
    return fault(NULL, "not-offered") ? 2 : fault(gpu, "unread") ? 12 : 0;
}

int amdsmi_get_gpu_ecc_enabled(void *gpu, uint64_t *blocks)
{
    *blocks = fault(gpu, "ecc-off") ? 0 : 1;
    return refused(gpu);
}

#ifndef OLD
int amdsmi_get_gpu_bad_page_threshold(void *gpu, uint32_t *pages)
{
    *pages = 256;
    return refused(gpu);
}

int amdsmi_get_gpu_xgmi_link_status(void *gpu, struct links *links)
{
    links->count = 3;
    for (int i = 0; i < 3; i++)
        links->status[i] = i == 2 ? 2 : 1;
    if (fault(gpu, "link-down"))
        links->status[0] = 0;
    return refused(gpu);
}
#endif

int amdsmi_status_code_to_string(int status, const char **text)
{
    *text = status == 34 ? "driver not loaded" : status == 12 ? "I/O error" : "error";
    return 0;
}
