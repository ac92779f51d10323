/* Thresholds, each with its source, and what NVIDIA says of the numbers in the kernel's log. */
#include "checks/measured/moved.h"
#include "config/codes.h"

#include <stdlib.h>
#include <string.h>

/* PCIe replays per minute: NVIDIA/DCGM, dcgmlib/dcgm_gpu_hardware_limits.h,
 * DCGM_LIMIT_MAX_PCIREPLAY_RATE, "the maximum recommended". */
static const double replays_per_minute = 8;

/* Damaged flits per second: there, DCGM_LIMIT_MAX_NVLINK_CRC_ERROR, "CRC errors only matter at
 * rates of 100+ per second". Of other NVLink errors one is too many: DCGM_LIMIT_MAX_NVLINK_ERROR.
 */
static const double crc_per_second = 100;

/* Time at lower clocks that counts: drivers add to it in steps of 0.1 s, and a change of clocks may
 * be one of them. */
static const double slowed_seconds = 0.2;

/* The same of GPUs whose firmware counts cycles. */
static const double slowed_part = 0.01;

static const char peer_fix[] = "moved-nvlink";
static const char pcie_fix[] = "moved-pcie";

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct shk_moved_word note(void)
{
    return (struct shk_moved_word){.verdict = SHK_NOTE};
}

static struct shk_moved_word judge_replays(const struct shk_moved_item *item)
{
    double minutes = item->seconds / 60;
    if ((double)item->by <= replays_per_minute * (minutes > 1 ? minutes : 1))
        return note();
    return (struct shk_moved_word){
        SHK_WARN, "pcie-replays",
        "the PCIe link damages transfers and sends them again, more than 8 times per minute",
        pcie_fix};
}

static struct shk_moved_word judge_links(const struct shk_moved_item *item)
{
    bool crc = strcmp(item->kind, "link-crc") == 0;
    double seconds = item->seconds > 1 ? item->seconds : 1;
    if (starts(item->counter, "RAS ") || (crc && (double)item->by <= crc_per_second * seconds))
        return note();
    return (struct shk_moved_word){SHK_WARN, "gpu-nvlink-errors",
                                   "NVLink had to send again or to recover while data went over it",
                                   peer_fix};
}

static struct shk_moved_word judge_slowed(const struct shk_moved_item *item)
{
    bool power = starts(item->counter, "power brake");
    if ((double)item->by / 1e9 < slowed_seconds)
        return note();
    return (struct shk_moved_word){
        SHK_WARN, power ? "gpu-power-brake" : "gpu-thermal-slowdown",
        power ? "the GPU ran at lower clocks because the power supply asked for it"
              : "the GPU was too hot under load and ran at lower clocks",
        power ? "moved-power" : "gpu-warm"};
}

/* More than 0 % is what AMD calls a violation (rocm_smi.h, TVIOL); one cycle of it is no harm. */
static struct shk_moved_word judge_cycles(const struct shk_moved_item *item)
{
    if (item->cycles <= 0 || (double)item->by < slowed_part * (double)item->cycles)
        return note();
    return (struct shk_moved_word){
        SHK_WARN, "gpu-thermal-slowdown", "the GPU was too hot under load and ran at lower clocks",
        "amd-smi metric --temperature --throttle; see to fans, air flow or coolant"};
}

static struct shk_moved_word judge_uncorrected(const struct shk_moved_item *item)
{
    if (strcmp(item->class, "gpu") == 0)
        return (struct shk_moved_word){
            SHK_FAIL, starts(item->counter, "RAS ") ? "amd-gpu-uncorrected" : "gpu-memory-errors",
            "data was lost in the GPU during the run",
            starts(item->counter, "RAS ") ? "moved-amd-reset" : "moved-ecc"};
    if (strcmp(item->class, "memory") == 0)
        return (struct shk_moved_word){SHK_FAIL, "memory-errors",
                                       "data was lost in the memory of the node during the run",
                                       "memory-test"};
    return (struct shk_moved_word){starts(item->counter, "fatal") ? SHK_FAIL : SHK_WARN,
                                   "accelerator-hardware-fault",
                                   "PCIe lost a transfer during the run", "pci-errors"};
}

/* NVIDIA XID Errors, Xid Catalog: the immediate action of each. What is not here is an error of a
 * program, the echo of another error, or harmless. */
static const struct {
    const char *numbers; /* between spaces */
    enum shk_verdict verdict;
    const char *diagnosis, *why, *fix;
} xids[] = {
    {" 64 157 ", SHK_FAIL, "gpu-row-remap-failed", "faulty GPU memory could not be replaced",
     "moved-remap"},
    {" 46 109 110 119 120 155 156 158 ", SHK_FAIL, "gpu-reset-required",
     "the GPU or its firmware stopped answering; only a reset helps", "gpu-reset"},
    {" 48 62 74 79 94 95 136 140 143 171 172 ", SHK_FAIL, "accelerator-hardware-fault",
     "the GPU driver reported a fault of the GPU, its memory or one of its links during the run",
     "moved-xid"},
    {" 63 ", SHK_WARN, "gpu-repair-pending", "a row of GPU memory failed during the run",
     "gpu-remap-pending"},
};

/* One without a row above, by the action of the catalogue. */
static struct shk_moved_word judge_code(const struct shk_code *code)
{
    if (!code || code->action < SHK_ACTION_INSPECT)
        return note();
    return (struct shk_moved_word){
        code->action == SHK_ACTION_INSPECT ? SHK_WARN : SHK_FAIL, "accelerator-hardware-fault",
        code->means, code->action == SHK_ACTION_INSPECT ? "moved-inspect" : "moved-xid"};
}

static struct shk_moved_word judge_xid(const struct shk_config *config,
                                       const struct shk_moved_item *item)
{
    char number[24];
    size_t n = 0;
    number[n++] = ' ';
    for (const char *p = item->counter + 4; *p && n < sizeof number - 2; p++)
        number[n++] = *p;
    number[n++] = ' ';
    number[n] = '\0';
    for (size_t i = 0; i < sizeof xids / sizeof *xids; i++)
        if (strstr(xids[i].numbers, number))
            return (struct shk_moved_word){xids[i].verdict, xids[i].diagnosis, xids[i].why,
                                           xids[i].fix};
    return judge_code(shk_config_code(config, item->counter));
}

/* Lines of other drivers, by the words of probes/counters/counters_kmsg.c. */
static const struct {
    const char *counter;
    struct shk_moved_word word;
} events[] = {
    {"link down",
     {SHK_WARN, "network-link-flaps", "the link of the network card went down during the run",
      "moved-link"}},
    {"cable unplugged",
     {SHK_WARN, "network-link-flaps", "the network card lost its cable during the run",
      "moved-cable"}},
    {"module error",
     {SHK_WARN, "network-module", "the transceiver reported an error during the run",
      "moved-module"}},
    {"module too hot",
     {SHK_WARN, "network-module", "the transceiver was too hot during the run",
      "moved-module-hot"}},
    {"uncorrectable RAS error",
     {SHK_FAIL, "amd-gpu-uncorrected", "data was lost in the GPU during the run",
      "moved-amd-reset"}},
    {"poisoned memory consumed",
     {SHK_FAIL, "amd-gpu-uncorrected", "a program used GPU memory that had lost its data",
      "moved-amd-reset"}},
    {"GPU reset",
     {SHK_FAIL, "accelerator-hardware-fault", "the driver reset a GPU during the run",
      "moved-amd-again"}},
};

static struct shk_moved_word judge_event(const struct shk_moved_item *item)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strcmp(events[i].counter, item->counter) == 0)
            return events[i].word;
    return note();
}

/* An NVLink or NVSwitch error whose line says so. */
static struct shk_moved_word judge_fatal(const struct shk_moved_item *item)
{
    (void)item;
    return (struct shk_moved_word){SHK_FAIL, "accelerator-hardware-fault",
                                   "an NVLink or NVSwitch failed during the run", "moved-sxid"};
}

bool shk_moved_is_event(const struct shk_moved_item *item)
{
    return strcmp(item->kind, "event") == 0 || strcmp(item->kind, "fatal-event") == 0;
}

struct shk_moved_word shk_moved_judge(const struct shk_config *config,
                                      const struct shk_moved_item *item)
{
    static const struct {
        const char *kind;
        struct shk_moved_word (*judge)(const struct shk_moved_item *item);
    } rules[] = {
        {"event", judge_event},          {"fatal-event", judge_fatal},
        {"slowed-cycles", judge_cycles}, {"uncorrected", judge_uncorrected},
        {"replay", judge_replays},       {"link-replay", judge_links},
        {"link-crc", judge_links},       {"slowed", judge_slowed},
    };
    static const char *const noted[] = {"corrected", "link", "down", "resent", "missed"};
    if (strcmp(item->kind, "event") == 0 && starts(item->counter, "Xid "))
        return judge_xid(config, item);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].kind, item->kind) == 0)
            return rules[i].judge(item);
    for (size_t i = 0; i < sizeof noted / sizeof *noted; i++)
        if (strcmp(noted[i], item->kind) == 0)
            return note();
    return (struct shk_moved_word){.verdict = SHK_PASS};
}

char *shk_moved_by(const struct shk_moved_item *item)
{
    if (strcmp(item->kind, "slowed") == 0)
        return shk_strf("for %.1f s", (double)item->by / 1e9);
    return shk_moved_is_event(item) && item->by == 1 ? shk_strf("logged")
                                                     : shk_strf("+%lld", item->by);
}
