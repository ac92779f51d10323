/* NVML as far as the nvml probe calls it: eight GPUs on four NVSwitches, all NVLinks up. FAULT and
 * the others break one thing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef GPUS
#define GPUS 8
#endif
#ifndef LINKS
#define LINKS 18
#endif

struct device {
    unsigned index;
};

struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char text[32];
};

struct fabric {
    unsigned version;
    unsigned char uuid[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

static struct device devices[GPUS];
#ifndef BUSES
#define BUSES 0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf
#endif
static const unsigned buses[] = {BUSES};

int nvmlInit_v2(void)
{
#ifdef INIT_HANG
    for (;;)
        pause();
#elif defined(INIT_SEGV)
    raise(SIGSEGV);
#elif defined(INIT_MISMATCH)
    return 18;
#endif
    for (unsigned i = 0; i < GPUS; i++)
        devices[i].index = i;
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 18 ? "Driver/library version mismatch" : code == 15 ? "GPU is lost" : "Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "550.54.15");
    return 0;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
    snprintf(text, size, "12.550.54.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
#ifdef LOST
    if (index == 3)
        return 15;
#endif
    *device = &devices[index];
    return 0;
}

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->bus = buses[device->index];
    snprintf(pci->text, sizeof pci->text, "%08X:%02X:00.0", 0, pci->bus);
    return 0;
}

int nvmlDeviceGetName(struct device *device, char *text, unsigned size)
{
    (void)device;
    snprintf(text, size, "NVIDIA H100 80GB HBM3");
    return 0;
}

int nvmlDeviceGetMemoryInfo(struct device *device, unsigned long long *memory)
{
    (void)device;
    memory[0] = 85520809984ULL;
    memory[1] = memory[2] = 0;
    return 0;
}

int nvmlDeviceGetBAR1MemoryInfo(struct device *device, unsigned long long *memory)
{
    (void)device;
    memory[0] = 137438953472ULL;
    memory[1] = memory[2] = 0;
    return 0;
}

#ifndef OLD
int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, unsigned *active)
{
    if (link >= LINKS)
        return 2;
    *active = 1;
    const char *asked = getenv("NVML_FAULT");
    if (device->index == 2 && asked && strcmp(asked, "links-unread") == 0)
        return 999;
#ifdef LINKS_UNREAD
    if (device->index == 5 && link == 7)
        return 999;
#endif
#ifdef LINK_DOWN
    if (device->index == 5 && link == 7)
        *active = 0;
#endif
    (void)device;
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct device *device, unsigned link, unsigned *type)
{
    (void)device;
    (void)link;
    *type = 2;
    return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *device, unsigned link, struct pci *pci)
{
    (void)device;
    memset(pci, 0, sizeof *pci);
    pci->bus = 5 + link % 4;
    return 0;
}

int nvmlDeviceGetP2PStatus(struct device *a, struct device *b, unsigned index, unsigned *status)
{
    (void)a;
    (void)b;
    (void)index;
    *status = 0;
#ifdef P2P_BROKEN
    if (a->index == 0 && b->index == 1 && index < 2)
        *status = 3;
#endif
#ifdef P2P_ONE_WAY
    if (a->index == 5 && b->index == 2 && index < 2)
        *status = 1;
#endif
    return 0;
}

int nvmlDeviceGetGpuFabricInfoV(struct device *device, struct fabric *info)
{
    (void)device;
    if (info->version != (sizeof *info | 2u << 24))
        return 25;
#ifdef LINKS_UNREAD
    if (device->index == 5)
        return 15;
#endif
    info->status = 0;
    info->clique = 0;
#ifdef FABRIC_WAITS
    info->state = 2;
#else
    info->state = 3;
#endif
    return 0;
}
#endif
