/* Versions and bounds of a site's profile: as on good nodes, otherwise, and not read. */
#include "support.h"

#include <criterion/criterion.h>

#define STATUS(text) "'collective.nccl.status': '" text "'"
#define SIZES(us, gb)                                                                              \
    "'collective.nccl.sizes': [{'bytes': 8, 'time_us': " us ", 'busbw': 0.1}, "                    \
    "{'bytes': 268435456, 'time_us': 900.0, 'busbw': " gb "}]"
#define FAILED(key) "'" key "': {'state': 'failed', 'reason': 'denied'}"
#define ABSENT(key) "'" key "': {'state': 'absent', 'reason': 'none'}"
#define ROW(name, setting, facts, verdict, evidence, says)                                         \
    {                                                                                              \
        name, "test-good", "site.expected", setting, facts, verdict, evidence, says                \
    }

Test(expected, facts_and_bounds)
{
    static const struct support_case cases[] = {
        ROW("version", "fabric.version", "'fabric.version': '1.20.1'", SHK_PASS, SHK_TESTED, NULL),
        ROW("other version", "fabric.version", "'fabric.version': '1.11'", SHK_WARN, SHK_TESTED,
            "1.20.1 or 1.22.0"),
        ROW("a number", "host.numa", "'host.numa': 8", SHK_PASS, SHK_TESTED, NULL),
        ROW("other number", "host.numa", "'host.numa': 4", SHK_FAIL, SHK_TESTED, "4"),
        ROW("gone", "fabric.version", ABSENT("fabric.version"), SHK_WARN, SHK_TESTED, "none"),
        ROW("denied", "fabric.version", FAILED("fabric.version"), SHK_UNKNOWN, SHK_NOT_COVERED,
            "denied"),
        ROW("missing", "fabric.version", "'host.name': 'n'", SHK_UNKNOWN, SHK_NOT_COVERED, NULL),
        ROW("no version", "fabric.version", "'fabric.version': [1]", SHK_UNKNOWN, SHK_NOT_COVERED,
            NULL),
        ROW("fast", "busbw.nccl", STATUS("ok") ", " SIZES("20.0", "380.0"), SHK_PASS, SHK_TESTED,
            "380"),
        ROW("slow", "busbw.nccl", STATUS("ok") ", " SIZES("20.0", "300.0"), SHK_WARN, SHK_TESTED,
            "300"),
        ROW("late", "latency.nccl", STATUS("ok") ", " SIZES("90.0", "380.0"), SHK_WARN, SHK_TESTED,
            "90 us"),
        ROW("early", "latency.nccl", STATUS("ok") ", " SIZES("20.0", "380.0"), SHK_PASS, SHK_TESTED,
            NULL),
        ROW("not run", "busbw.nccl", STATUS("na"), SHK_NA, SHK_NOT_COVERED, "not run"),
        ROW("not well", "busbw.nccl", STATUS("failed"), SHK_UNKNOWN, SHK_NOT_COVERED, NULL),
        ROW("nothing", "busbw.nccl", "'host.name': 'n'", SHK_UNKNOWN, SHK_NOT_COVERED, NULL),
        ROW("no sizes", "busbw.nccl", STATUS("ok"), SHK_UNKNOWN, SHK_NOT_COVERED, NULL),
        ROW("no numbers", "busbw.nccl", STATUS("ok") ", 'collective.nccl.sizes': [{'bytes': 8}]",
            SHK_UNKNOWN, SHK_NOT_COVERED, NULL),
    };
    support_cases(cases, sizeof cases / sizeof *cases);
}
