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

#define LEFT(name, facts, verdict, says)                                                           \
    {                                                                                              \
        name, "single-node", "shm.leftover", "leftover shared memory", facts, verdict,             \
            verdict == SHK_UNKNOWN ? SHK_NOT_COVERED : SHK_TESTED, says                            \
    }
#define CALLS(name, facts, verdict, says)                                                          \
    {                                                                                              \
        name, "single-node", "kernel.syscalls", "system calls", facts, verdict,                    \
            verdict == SHK_UNKNOWN ? SHK_NOT_COVERED : SHK_TESTED, says                            \
    }
#define MTU(name, facts, verdict, evidence, says)                                                  \
    {                                                                                              \
        name, "single-node", "nic.mtu", "RDMA MTU", facts, verdict, evidence, says                 \
    }
#define SEGMENTS(bytes)                                                                            \
    "{'kind': 'file', 'uid': 1000, 'count': 290, 'bytes': " bytes                                  \
    ", 'since': '2026-11-28T02:11:00Z', 'last': '2026-11-28T02:11:04Z', 'name': "                  \
    "'vader_segment.n1'}"
#define LEAVES(list, unread)                                                                       \
    "'shm.leftover': {'judged': 300, 'left': [" list "], 'unread': " unread "}"
#define MEMORY "'host.memory': 1000000000000"
#define ANSWERS(policy, read)                                                                      \
    "'kernel.syscalls': {'get_mempolicy': " policy ", 'mbind': 'ok', 'process_vm_readv': " read    \
    ", 'userfaultfd': 'denied', 'userfaultfd_user': 'denied'}"
#define GPUS8  "'pci.count.gpu-nvidia': 8, "
#define NO_GPU "'pci.count.gpu-nvidia': 0, "
#define NIC(n, layer, state)                                                                       \
    "{'name': 'mlx5_" n "', 'pci': '0000:0" n ":00.0', 'ports': [{'port': 1, 'state': '" state     \
    "', 'link_layer': '" layer "', 'rate': 400}]}"
#define NICS(layer)                                                                                \
    "'rdma.devices': [" NIC("1", layer, "ACTIVE") ", " NIC("2", layer, "ACTIVE") ", " NIC(         \
        "3", layer, "ACTIVE") ", " NIC("4", layer, "DOWN") "]"
#define HOLDS(n, mtu)                                                                              \
    "{'name': 'mlx5_" n "', 'opens': true, 'ports': [{'port': 1, 'mtu': " mtu ", 'mtu_max': "      \
    "4096}]}"
#define HOLD(a, b, c)                                                                              \
    ", 'verbs.devices': [" HOLDS("1", a) ", " HOLDS("2", b) ", " HOLDS("3", c) ", " HOLDS(         \
        "4", "256") "]"
#define NEAR(n, gpus) "{'name': 'x', 'pci': '0000:0" n ":00.0', 'gpus': [" gpus "]}"

static const struct support_case cases[] = {
    LEFT("none", LEAVES("", "0"), SHK_PASS, "none"),
    LEFT("some", MEMORY ", " LEAVES(SEGMENTS("1300000000"), "0"), SHK_NOTE,
         "290 files of user 1000, 1.2 GiB, since 2026-11-28T02:11:00Z (vader_segment.n1)"),
    LEFT("just less than a twentieth", MEMORY ", " LEAVES(SEGMENTS("49999999999"), "0"), SHK_NOTE,
         NULL),
    LEFT("a twentieth", MEMORY ", " LEAVES(SEGMENTS("50000000000"), "0"), SHK_WARN,
         "shm-left-over"),
    LEFT("of two owners",
         MEMORY ", " LEAVES(SEGMENTS("30000000000") ", " SEGMENTS("30000000000"), "0"), SHK_WARN,
         NULL),
    LEFT("of how much memory unread", FAILED("host.memory") ", " LEAVES(SEGMENTS("5"), "0"),
         SHK_UNKNOWN, "gone"),
    LEFT("some untold", LEAVES("", "3"), SHK_UNKNOWN, "3 of other users"),
    LEFT("how many untold unread", "'shm.leftover': {'judged': 3, 'left': []}", SHK_UNKNOWN, NULL),
    LEFT("an entry without a size",
         MEMORY ", " LEAVES("{'kind': 'file', 'uid': 1000, 'count': 290}", "0"), SHK_UNKNOWN, NULL),
    LEFT("list unread", "'shm.leftover': {'judged': 3, 'unread': 0}", SHK_UNKNOWN, NULL),
    LEFT("unread", FAILED("shm.leftover"), SHK_UNKNOWN, "gone"),

    CALLS("all", GPUS8 ANSWERS("'ok'", "'ok'"), SHK_PASS, "3 tried, none refused"),
    CALLS("policy", GPUS8 ANSWERS("'denied'", "'ok'"), SHK_NOTE, "get_mempolicy: denied"),
    CALLS("policy, no GPU", NO_GPU ANSWERS("'denied'", "'ok'"), SHK_PASS, "2 tried"),
    CALLS("policy, GPUs unread", FAILED("pci.count.gpu-nvidia") ", " ANSWERS("'denied'", "'ok'"),
          SHK_UNKNOWN, NULL),
    CALLS("copies", NO_GPU ANSWERS("'ok'", "'missing'"), SHK_NOTE, "process_vm_readv: missing"),
    CALLS("kills", NO_GPU ANSWERS("'ok'", "'kills'"), SHK_FAIL, "seccomp-kills"),
    CALLS("one unread", GPUS8 ANSWERS("'ok'", "null, 'problems': {'process_vm_readv': 'EIO'}"),
          SHK_UNKNOWN, "EIO"),
    CALLS("unread", FAILED("kernel.syscalls"), SHK_UNKNOWN, "gone"),

    MTU("largest", NICS("InfiniBand") HOLD("4096", "4096", "4096"), SHK_PASS, SHK_EFFECT,
        "3 at 4096 B"),
    MTU("one smaller", NICS("InfiniBand") HOLD("4096", "2048", "4096"), SHK_WARN, SHK_EFFECT,
        "mlx5_2 2048 B"),
    MTU("one smaller, by cause", NICS("InfiniBand") HOLD("4096", "2048", "4096"), SHK_WARN,
        SHK_EFFECT, "mtu-mismatch"),
    MTU("all smaller", NICS("InfiniBand") HOLD("2048", "2048", "2048"), SHK_NOTE, SHK_EFFECT,
        "3 of 3 ports"),
    MTU("one unread", NICS("InfiniBand") HOLD("4096", "null, 'problems': {'mtu': 'x'}", "4096"),
        SHK_UNKNOWN, SHK_NOT_COVERED, "mlx5_2"),
    MTU("library unread", NICS("InfiniBand") ", " FAILED("verbs.devices"), SHK_UNKNOWN,
        SHK_NOT_COVERED, "gone"),
    MTU("of an older document",
        NICS("InfiniBand") ", 'verbs.devices': [{'name': 'mlx5_1', 'opens': "
                           "true}]",
        SHK_UNKNOWN, SHK_NOT_COVERED, "mlx5_1"),
    MTU("rails over Ethernet",
        NICS("Ethernet") HOLD("4096", "1024", "4096") ", 'topology.nics': [" NEAR(
            "1", "'a'") ", " NEAR("2", "'b'") ", " NEAR("3", "'c'") "]",
        SHK_WARN, SHK_EFFECT, "mlx5_2 1024 B"),
    MTU("storage over Ethernet",
        NICS("Ethernet") HOLD("4096", "1024", "4096") ", 'topology.nics': [" NEAR(
            "1", "'a'") ", " NEAR("2", "") ", " NEAR("3", "'c'") "]",
        SHK_NOTE, SHK_EFFECT, "1 of 3 ports"),
    MTU("which serve GPUs unread",
        NICS("Ethernet") HOLD("4096", "1024", "4096") ", " FAILED("topology.nics"), SHK_UNKNOWN,
        SHK_NOT_COVERED, NULL),
    MTU("no device", ABSENT("rdma.devices"), SHK_NA, SHK_NOT_COVERED, "no RDMA device"),
    MTU("devices unread", FAILED("rdma.devices"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),

    OK("tsc", CLOCK, "'clock.source': 'tsc', 'clock.sources': 'tsc hpet'", SHK_PASS, SHK_EFFECT,
       "tsc"),
    OK("a guest", CLOCK, "'clock.source': 'kvm-clock'", SHK_PASS, SHK_EFFECT, "kvm-clock"),
    OK("arm", CLOCK, "'clock.source': 'arch_sys_counter'", SHK_PASS, SHK_EFFECT, "arch_sys"),
    OK("hpet", CLOCK, "'clock.source': 'hpet', 'clock.sources': 'tsc hpet acpi_pm'", SHK_WARN,
       SHK_EFFECT, "hpet"),
    OK("unread", CLOCK, FAILED("clock.source"), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
    OK("no choice", CLOCK, ABSENT("clock.source"), SHK_NA, SHK_NOT_COVERED, "no choice"),
    OK("answers", MOUNTS, "'mounts.remote': [" MOUNT("true") "]", SHK_PASS, SHK_TESTED,
       "1 respond"),
    OK("hangs", MOUNTS, "'mounts.remote': [" MOUNT("true") ", " MOUNT("false") "]", SHK_WARN,
       SHK_TESTED, "no response within 2 s: /scratch (lustre)"),
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
       SHK_NOTE, SHK_TESTED, "no Slurm daemon on this node"),
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
       SHK_NOTE, SHK_TESTED, "no Slurm daemon on this node"),
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
