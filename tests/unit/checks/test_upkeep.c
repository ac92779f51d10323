/* Time source, mounts, caches, munge: healthy, broken, unread. */
#include "support.h"

#include <criterion/criterion.h>

#define CLOCK          "time source"
#define MOUNTS         "network file systems"
#define CACHES         "places for caches"
#define MUNGE          "munge"
#define FAILED(key)    "'" key "': {'state': 'failed', 'source': 'x', 'reason': 'gone'}"
#define ABSENT(key)    "'" key "': {'state': 'absent', 'source': 'x', 'reason': 'none'}"
#define MOUNT(answers) "{'mount': '/scratch', 'type': 'lustre', 'answers': " answers "}"
#define REFUSED        "'munge.socket': {'path': '/x', 'connects': false, 'error': 'Connection refused'"
#define PLACE(options, free)                                                                       \
    "{'for': 'TMPDIR', 'type': 'xfs', 'mount': '/tmp', 'options': '" options "', 'free': " free    \
    ", 'size': 9000000000}"
#define OK(name, setting, facts, verdict, evidence, says)                                          \
    {                                                                                              \
        name, "single-node", "node.upkeep", setting, facts, verdict, evidence, says                \
    }

static const struct support_case cases[] = {
    OK("tsc", CLOCK, "'clock.source': 'tsc', 'clock.sources': 'tsc hpet'", SHK_PASS, SHK_EFFECT,
       "tsc"),
    OK("a guest", CLOCK, "'clock.source': 'kvm-clock'", SHK_PASS, SHK_EFFECT, "kvm-clock"),
    OK("arm", CLOCK, "'clock.source': 'arch_sys_counter'", SHK_PASS, SHK_EFFECT, "arch_sys"),
    OK("hpet", CLOCK, "'clock.source': 'hpet', 'clock.sources': 'tsc hpet acpi_pm'", SHK_WARN,
       SHK_EFFECT, "hpet"),
    OK("unread", CLOCK, FAILED("clock.source"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
    OK("no choice", CLOCK, ABSENT("clock.source"), SHK_NA, SHK_NOT_COVERED, "no choice"),
    OK("answers", MOUNTS, "'mounts.remote': [" MOUNT("true") "]", SHK_PASS, SHK_TESTED, "1 answer"),
    OK("hangs", MOUNTS, "'mounts.remote': [" MOUNT("true") ", " MOUNT("false") "]", SHK_WARN,
       SHK_TESTED, "no answer in 2 s: /scratch (lustre)"),
    OK("of a capture", MOUNTS, "'mounts.remote': [" MOUNT("null") "]", SHK_UNKNOWN, SHK_NOT_COVERED,
       "/scratch"),
    OK("none", MOUNTS, "'mounts.remote': []", SHK_NA, SHK_NOT_COVERED, "no file system"),
    OK("unread", MOUNTS, FAILED("mounts.remote"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
    OK("room", CACHES, "'caches': [" PLACE("rw,relatime", "5000000000") "]", SHK_PASS, SHK_EFFECT,
       "1 places with room"),
    OK("full", CACHES, "'caches': [" PLACE("rw,relatime", "4096") "]", SHK_WARN, SHK_EFFECT,
       "full: TMPDIR on /tmp"),
    OK("read only", CACHES, "'caches': [" PLACE("ro,relatime", "0") "]", SHK_NOTE, SHK_EFFECT,
       "read only: TMPDIR on /tmp"),
    OK("an option that starts so", CACHES, "'caches': [" PLACE("rw,rootcontext", "5000000000") "]",
       SHK_PASS, SHK_EFFECT, "room"),
    OK("place unread", CACHES,
       "'caches': [{'for': 'TMPDIR', 'mount': null, 'problems': {'mount': 'x'}}]", SHK_UNKNOWN,
       SHK_NOT_COVERED, "TMPDIR"),
    OK("unread", CACHES, FAILED("caches"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
    OK("answers", MUNGE, "'munge.socket': {'path': '/x', 'connects': true, 'error': null}",
       SHK_PASS, SHK_TESTED, "answers"),
    OK("does not", MUNGE, ABSENT("job.scheduler") ", " REFUSED ", 'slurm': []}", SHK_WARN,
       SHK_TESTED, "Connection refused"),
    OK("does not, Slurm unread", MUNGE, ABSENT("job.scheduler") ", " REFUSED ", 'slurm': 7}",
       SHK_UNKNOWN, SHK_NOT_COVERED, "not read"),
    OK("does not, Slurm asks elsewhere", MUNGE,
       ABSENT("job.scheduler") ", " REFUSED ", 'slurm': ['AuthInfo=socket=/run/own/socket']}",
       SHK_NOTE, SHK_TESTED, "no Slurm of this node"),
    OK("does not, slurm.conf may not be read", MUNGE,
       ABSENT("job.scheduler") ", " REFUSED
                               ", 'slurm': null, 'problems': {'slurm': 'Permission denied'}}",
       SHK_UNKNOWN, SHK_NOT_COVERED, "not read"),
    OK("does not, an older document", MUNGE, ABSENT("job.scheduler") ", " REFUSED "}", SHK_UNKNOWN,
       SHK_NOT_COVERED, "not read"),
    OK("does not, nobody knows whether in a job", MUNGE,
       FAILED("job.scheduler") ", " REFUSED ", 'slurm': null}", SHK_UNKNOWN, SHK_NOT_COVERED,
       "gone"),
    OK("does not, without Slurm", MUNGE, ABSENT("job.scheduler") ", " REFUSED ", 'slurm': null}",
       SHK_NOTE, SHK_TESTED, "no Slurm of this node"),
    OK("does not, in a job that came without it", MUNGE,
       "'job.scheduler': 'slurm', " REFUSED ", 'slurm': []}", SHK_NOTE, SHK_TESTED,
       "started without it"),
    OK("none", MUNGE, ABSENT("munge.socket"), SHK_NA, SHK_NOT_COVERED, "not installed"),
    OK("unread", MUNGE, FAILED("munge.socket"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
    OK("another form", MUNGE, "'munge.socket': {'path': '/x'}", SHK_UNKNOWN, SHK_NOT_COVERED, ""),
};

Test(upkeep, cases)
{
    support_cases(cases, sizeof cases / sizeof *cases);
}
