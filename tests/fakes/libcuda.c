/* The CUDA driver as far as the cuda probe calls it: two GPUs with peer access. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int cuInit(unsigned flags)
{
    (void)flags;
#ifdef INIT_NOT_READY
    return 802;
#elif defined(INIT_HANG)
    for (;;)
        pause();
#elif defined(INIT_ABORT)
    raise(SIGABRT);
#endif
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "NVIDIA H100 80GB HBM3");
    return 0;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
#ifdef SECOND_MUTE
    if (device == 1)
        return 101;
#endif
    snprintf(text, (size_t)size, "0000:%s:00.0", device ? "4C" : "1B");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? 9 : attribute != 76;
    return attribute == 132 ? 1 : 0;
}

int cuDeviceGetP2PAttribute(int *value, int attribute, int a, int b)
{
    (void)attribute;
    *value = a != b;
    return 0;
}

int cuGetErrorString(int code, const char **text)
{
    *text = code == 802 ? "system not yet initialized" : "error";
    return 0;
}
