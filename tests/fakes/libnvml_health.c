/* The health part of the stand-in for NVML. GPU 2 has the fault that NVML_FAULT names; every other
 * value is that of a healthy H100 at rest. */
#include <stdio.h>
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

/* The numbers of CUDA 12.9 and 13.0, or, with NVML_NUMBERS=later, those of 13.1, where the older
 * ones are settings of power smoothing. */
static unsigned slowed_first(void)
{
    return getenv("NVML_NUMBERS") ? 269 : 251;
}

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
        else if (fields[i].id >= slowed_first() && fields[i].id <= slowed_first() + 2) {
            static const char *const names[] = {"slowed-sw", "slowed-hw", "slowed-brake"};
            fields[i].type = 3;
            fields[i].value.ull =
                fault(device, names[fields[i].id - slowed_first()]) ? 6500000000ULL : 500;
        } else if (fields[i].id >= 251 && fields[i].id <= 253) {
            fields[i].value.u = fault(device, "smoothed") && fields[i].id == 251;
        } else if (fields[i].id == 29 || fields[i].id == 30) {
            fields[i].rc = fault(device, "worn-pages") ? 0 : refused(device) ? fields[i].rc : 3;
            fields[i].type = 3;
            fields[i].value.ull = fields[i].id == 29 ? 40 : 23;
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
    const char *held =
        getenv("NVML_HELD"); /* a process each on the GPUs from the first on: "12,13" */
    for (unsigned i = 0; held && i < device->index; i++)
        held = strchr(held, ',') ? strchr(held, ',') + 1 : NULL;
    if (held && room > 0) {
        *count = 1;
        list[0] = (struct process){.pid = (unsigned)atol(held), .memory = 1 << 30};
        return refused(device);
    }
    *count = fault(device, "held-by-nobody") && room > 0;
    if (*count)
        list[0] = (struct process){.pid = 4194305, .memory = 1 << 30};
    return refused(device);
}

/* Percent by GPU: "100,0". */
int nvmlDeviceGetUtilizationRates(struct device *device, unsigned rates[2])
{
    const char *busy = getenv("NVML_BUSY");
    for (unsigned i = 0; busy && i < device->index; i++)
        busy = strchr(busy, ',') ? strchr(busy, ',') + 1 : NULL;
    rates[0] = busy ? (unsigned)atol(busy) : 0;
    rates[1] = 0;
    return refused(device);
}

#define TEXT(fn, healthy, name, broken)                                                            \
    int nvmlDeviceGet##fn(struct device *device, char *text, unsigned size)                        \
    {                                                                                              \
        snprintf(text, size, "%s", fault(device, name) ? broken : healthy);                        \
        return refused(device);                                                                    \
    }
TEXT(VbiosVersion, "96.00.99.00.01", "other-vbios", "96.00.30.00.01")
TEXT(InforomImageVersion, "G520.0200.00.05", "other-inforom", "G520.0200.00.03")

int nvmlDeviceGetGspFirmwareVersion(struct device *device, char *text)
{
    memset(text, 'x', 64); /* all of the room that it may use, and no end */
    if (!fault(device, "endless-gsp"))
        snprintf(text, 64, "550.54.15");
    return fault(device, "no-gsp") ? 3 : refused(device);
}

int nvmlDeviceValidateInforom(struct device *device)
{
    return fault(device, "inforom") ? 14 : refused(device);
}

struct sram {
    unsigned version;
    unsigned long long counts[11];
    unsigned exceeded;
};

int nvmlDeviceGetSramEccErrorStatus(struct device *device, struct sram *sram)
{
    if (sram->version != (1 << 24 | sizeof *sram))
        return 25;
    memset(sram->counts, 0, sizeof sram->counts);
    sram->counts[0] = fault(device, "worn-sram") ? 6 : 0;
    sram->exceeded = fault(device, "worn-sram");
    return getenv("NVML_NOT_ROOT") ? 4 : refused(device);
}

int nvmlDeviceGetRepairStatus(struct device *device, unsigned *status)
{
    if (status[0] != (1 << 24 | 12))
        return 25;
    status[1] = fault(device, "repair-channel");
    status[2] = fault(device, "repair-tpc");
    return refused(device);
}

int nvmlDeviceGetVirtualizationMode(struct device *device, unsigned *mode)
{
    *mode = fault(device, "mode-unheard-of") ? 9
            : fault(device, "vgpu-licensed") || fault(device, "vgpu-unlicensed") ||
                    fault(device, "vgpu-licence-unread")
                ? 2
                : 1;
    return refused(device);
}

struct licences {
    int needed;
    unsigned count;
    struct {
        int code;
        unsigned state;
        char info[128], product[128];
        unsigned enabled, year;
        unsigned short month, day, hour, minute, second;
        unsigned char status;
    } features[3];
};

int nvmlDeviceGetGridLicensableFeatures_v4(struct device *device, struct licences *licences)
{
    memset(licences, 0, sizeof *licences);
    licences->needed = 1;
    licences->count = 2;
    for (int i = 0; i < 2; i++) {
        snprintf(licences->features[i].product, 128, "%s",
                 i ? "NVIDIA Virtual Compute Server" : "NVIDIA RTX Virtual Workstation");
        licences->features[i].enabled = (unsigned)i;
    }
    licences->features[1].state = fault(device, "vgpu-licensed");
    licences->features[1].year = 2026;
    licences->features[1].month = 12;
    licences->features[1].day = 24;
    licences->features[1].hour = 18;
    licences->features[1].status = fault(device, "vgpu-licensed") ? 2 : 0;
    return fault(device, "vgpu-licence-unread") ? 999 : refused(device);
}

/* Of the system. NVML_CC: off, on, not-ready, devtools, pcie, unread. */
static int confidential(const char *name)
{
    const char *asked = getenv("NVML_CC");
    return asked && strcmp(asked, name) == 0;
}

int nvmlSystemGetConfComputeSettings(unsigned *settings)
{
    if (settings[0] != (1 << 24 | 20))
        return 25;
    if (!getenv("NVML_CC"))
        return 3;
    settings[1] = 2;
    settings[2] = !confidential("off") && !confidential("pcie");
    settings[3] = confidential("devtools");
    settings[4] = confidential("pcie");
    return confidential("unread") ? 999 : 0;
}

int nvmlSystemGetConfComputeGpusReadyState(unsigned *ready)
{
    *ready = !confidential("not-ready");
    return confidential("ready-unread") ? 999 : 0;
}
#endif
