/* The health part of the stand-in for NVML. GPU 2 has the fault that NVML_FAULT names; every other
 * value is that of a healthy H100 at rest. */
#include <stdlib.h>
#include <string.h>

#ifndef OLD
struct device {
    unsigned index;
};

static int fault(const struct device *device, const char *name)
{
    const char *asked = getenv("NVML_FAULT");
    return device->index == 2 && asked && strcmp(asked, name) == 0;
}

/* What every question gives: NVML's error, or 0. */
static int refused(const struct device *device)
{
    const char *asked = getenv("NVML_FAULT");
    if (asked && strcmp(asked, "not-offered") == 0)
        return 3;
    return fault(device, "reset-required") ? 16
           : fault(device, "lost-later")   ? 15
           : fault(device, "unread")       ? 999
                                           : 0;
}

#define NUMBER(fn, healthy, name, broken)                                                          \
    int nvmlDeviceGet##fn(struct device *device, unsigned *value)                                  \
    {                                                                                              \
        *value = fault(device, name) ? broken : healthy;                                           \
        return refused(device);                                                                    \
    }
NUMBER(PowerManagementLimit, 700000, "power-limit", 400000)
NUMBER(PowerManagementDefaultLimit, 700000, "", 0)
NUMBER(EnforcedPowerLimit, 700000, "power-limit", 400000)
NUMBER(CurrPcieLinkGeneration, 1, "", 0) /* at rest */
NUMBER(MaxPcieLinkGeneration, 5, "", 0)
NUMBER(CurrPcieLinkWidth, 16, "pcie-width", 8)
NUMBER(MaxPcieLinkWidth, 16, "", 0)
NUMBER(PcieReplayCounter, 3, "replays", 15)

int nvmlDeviceGetComputeMode(struct device *device, unsigned *mode)
{
    *mode = fault(device, "prohibited") ? 2 : fault(device, "exclusive") ? 3 : 0;
    return refused(device);
}

/* As on every GPU with row remapping. */
int nvmlDeviceGetRetiredPagesPendingStatus(struct device *device, unsigned *pending)
{
    *pending = 1;
    return fault(device, "retired") ? 0 : 3;
}

int nvmlDeviceGetEccMode(struct device *device, unsigned *current, unsigned *pending)
{
    *current = !fault(device, "ecc-off");
    *pending = *current && !fault(device, "ecc-off-next");
    return refused(device);
}

int nvmlDeviceGetTotalEccErrors(struct device *device, int error, int counter,
                                unsigned long long *count)
{
    *count = error == 0 ? 7 : counter == 1 ? 2 : 0; /* old and corrected ones mean nothing */
    if (error == 1 && (fault(device, "dram-errors") || fault(device, "sram-errors")))
        *count = 3;
    return refused(device);
}

int nvmlDeviceGetMemoryErrorCounter(struct device *device, int error, int counter, int place,
                                    unsigned long long *count)
{
    *count = error == 1 && counter == 0 &&
                     ((place == 2 && fault(device, "dram-errors")) ||
                      (place == 7 && fault(device, "sram-errors")))
                 ? 3
                 : 0;
    return place == 2 || place == 7 ? refused(device) : 3;
}

int nvmlDeviceGetRemappedRows(struct device *device, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failure)
{
    *correctable = 0;
    *uncorrectable = 1; /* done long ago */
    *pending = fault(device, "remap-pending");
    *failure = fault(device, "remap-failure");
    return refused(device);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *mask)
{
    static int asked;
    *mask = fault(device, "hw-thermal")       ? 0x48
            : fault(device, "sw-thermal")     ? 0x20
            : fault(device, "power-brake")    ? 0x88
            : fault(device, "hw-slowdown")    ? 0x8
            : fault(device, "power-cap")      ? 0x4
            : fault(device, "changing-clock") ? (asked++ % 2 ? 0x0 : 0x8)
                                              : 0x1;
    return refused(device);
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
    *celsius = fault(device, "hot") ? 90 : 34;
    return sensor ? 2 : refused(device);
}

int nvmlDeviceGetTemperatureThreshold(struct device *device, int threshold, unsigned *celsius)
{
    *celsius = 87;
    return threshold == 1 ? refused(device) : 3;
}

int nvmlDeviceGetMarginTemperature(struct device *device, int *margin)
{
    if (margin[0] != (1 << 24 | 8))
        return 25;
    margin[1] = fault(device, "hot") ? -3 : 53;
    return refused(device);
}

struct field {
    unsigned id, scope;
    long long time, latency;
    int type, rc;
    union {
        unsigned u;
        unsigned long long ull;
    } value;
};

int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        fields[i].rc = refused(device);
        fields[i].type = 1;
        fields[i].value.u = 0;
        if (fields[i].id == 164)
            fields[i].value.u = fields[i].scope == 4 && fault(device, "slow-link") ? 12500 : 26562;
        else if (fields[i].id == 230 && !fields[i].rc)
            fields[i].value.u = fault(device, "wants-reset")        ? 1
                                : fault(device, "wants-reboot")     ? 2
                                : fault(device, "wants-peers")      ? 3
                                : fault(device, "wants-drain")      ? 4
                                : fault(device, "wants-unheard-of") ? 77
                                                                    : 0;
        else if (fields[i].id >= 251 && fields[i].id <= 253) {
            static const char *const names[] = {"slowed-sw", "slowed-hw", "slowed-brake"};
            fields[i].type = 3;
            fields[i].value.ull = fault(device, names[fields[i].id - 251]) ? 6500000000ULL : 500;
        } else if (fields[i].id != 230) {
            fields[i].rc = 3;
        }
    }
    return 0;
}

int nvmlDeviceGetNvLinkErrorCounter(struct device *device, unsigned link, int counter,
                                    unsigned long long *count)
{
    *count = fault(device, "link-errors") && link == 4 && counter == 1 ? 12 : 0;
    return refused(device);
}

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute;
};

/* No process has that number, nor may one: it is above the kernel's limit. */
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *device, unsigned *count,
                                            struct process *list)
{
    unsigned room = *count;
    *count = fault(device, "held-by-nobody") && room > 0;
    if (*count)
        list[0] = (struct process){.pid = 4194305, .memory = 1 << 30};
    return refused(device);
}
#endif
