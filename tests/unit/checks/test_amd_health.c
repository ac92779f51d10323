/* Health of AMD GPUs: each fault is named, healthy ones and such that do not offer a thing give
 * nothing, what was not read is unknown. */
#include "support.h"

#include <criterion/criterion.h>

#define MEMORY    "AMD GPU memory"
#define PARTITION "AMD GPU partitions"
#define FIRMWARE  "AMD GPU firmware"

#define RAS(ue)     "{'umc': {'ue': " ue ", 'ce': 4, 'de': 0}, 'gfx': {'ue': 0, 'ce': 0}}"
#define PAGES(p, f) "{'reserved': 2, 'pending': " p ", 'failed': " f "}"
#define NO_PAGES    "{'reserved': 0, 'pending': 0, 'failed': 0}"
#define GPU(n, ras, pages, mode, vbios, more)                                                      \
    "{'pci': '0000:0" n ":00.0', 'vbios': " vbios ", 'compute_partition': " mode                   \
    ", 'memory_partition': 'NPS1', 'pcie_replays': 900, 'ras': " ras ", 'bad_pages': " pages more  \
    "}"
#define FINE(n)    GPU(n, RAS("0"), NO_PAGES, "'SPX'", "'113-M'", "")
#define GPUS(list) "'probe.amd_health.status': 'ok', 'amdgpu.health': [" list "]"
#define WITH(gpu)  GPUS(FINE("1") ", " gpu)
#define CASE(name, setting, facts, verdict, says)                                                  \
    {                                                                                              \
        name, "single-node", "gpu.amd_health", setting, facts, verdict, SHK_TESTED, says           \
    }
#define OPEN(name, setting, facts, verdict, says)                                                  \
    {                                                                                              \
        name, "single-node", "gpu.amd_health", setting, facts, verdict, SHK_NOT_COVERED, says      \
    }

static const struct support_case cases[] = {
    CASE("healthy", MEMORY, WITH(FINE("2")), SHK_PASS, "no uncorrected error, no bad page, 2 GPUs"),
    CASE("uncorrected", MEMORY, WITH(GPU("2", RAS("3"), NO_PAGES, "'SPX'", "'113-M'", "")),
         SHK_WARN, "0000:02:00.0: 3 uncorrected (umc)"),
    CASE("a page in use", MEMORY, WITH(GPU("2", RAS("0"), PAGES("0", "1"), "'SPX'", "'113-M'", "")),
         SHK_WARN, "0000:02:00.0: 1 bad pages could not be set aside"),
    CASE("pages set aside", MEMORY,
         WITH(GPU("2", RAS("0"), PAGES("1", "0"), "'SPX'", "'113-M'", "")), SHK_PASS,
         "2 bad pages set aside, 1 to be"),
    OPEN("not offered", MEMORY, GPUS(GPU("1", "null", "null", "'SPX'", "'113-M'", "")), SHK_NA,
         "count no errors"),
    OPEN("errors unread", MEMORY,
         WITH(GPU("2", "null", NO_PAGES, "'SPX'", "'113-M'", ", 'problems': {'ras': 'gone'}")),
         SHK_UNKNOWN, "0000:02:00.0"),
    OPEN(
        "pages unread", MEMORY,
        WITH(GPU("2", RAS("0"), "null", "'SPX'", "'113-M'", ", 'problems': {'bad_pages': 'gone'}")),
        SHK_UNKNOWN, "0000:02:00.0"),
    OPEN("no AMD GPU", MEMORY,
         "'probe.amd_health.status': 'ok', 'amdgpu.health': {'state': 'absent', 'source': 'x', "
         "'reason': 'y'}",
         SHK_NA, "no AMD GPU"),
    OPEN("unread", MEMORY,
         "'probe.amd_health.status': 'ok', 'amdgpu.health': {'state': 'failed', 'source': 'x', "
         "'reason': 'gone'}",
         SHK_UNKNOWN, "gone"),
    CASE("alike", PARTITION, WITH(FINE("2")), SHK_PASS, "SPX, NPS1, 2 GPUs"),
    CASE("another mode", PARTITION, WITH(GPU("2", RAS("0"), NO_PAGES, "'CPX'", "'113-M'", "")),
         SHK_WARN, "0000:02:00.0: CPX, NPS1; 0000:01:00.0: SPX, NPS1"),
    OPEN("mode unread", PARTITION,
         WITH(GPU("2", RAS("0"), NO_PAGES, "null", "'113-M'",
                  ", 'problems': {'compute_partition': 'gone'}")),
         SHK_UNKNOWN, "0000:02:00.0"),
    CASE("firmware alike", FIRMWARE, WITH(FINE("2")), SHK_PASS, "113-M, 2 GPUs"),
    CASE("other firmware", FIRMWARE, WITH(GPU("2", RAS("0"), NO_PAGES, "'SPX'", "'113-N'", "")),
         SHK_NOTE, "0000:02:00.0: 113-N"),
    OPEN("firmware not told", FIRMWARE, GPUS(GPU("1", "null", "null", "null", "null", "")), SHK_NA,
         "does not report it"),
};

Test(amd_health, cases)
{
    support_cases(cases, sizeof cases / sizeof *cases);
}

/* Facts of a release that did not look: nobody knows. */
Test(amd_health, of_old)
{
    struct shk_findings *findings = support_run(support_config(), "single-node", "'x': 1");
    const struct shk_finding *f = support_find(findings, "gpu.amd_health", MEMORY);
    cr_assert(f && f->verdict == SHK_UNKNOWN);
    shk_findings_destroy(findings);
}
