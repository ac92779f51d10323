"""What a kernel and its settings do to a node: huge pages, sysctls, limits, control groups, processes killed for
memory, machine checks, namespaces and filters of containers, the clock."""
import re, time

from states import NOBODY, NORMAL, USER, States, gpu_node, main, metal

CG = "/sys/fs/cgroup"
NO = "touch /run/no; chmod 0 /run/no; mount --bind /run/no"
# as the default profile of engines of containers: these calls (x86-64) answer EPERM
DENIED = {"ptrace": 101, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "keyctl": 250, "perf_event_open": 298,
          "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "userfaultfd": 323}
FILTER = f"""import ctypes, os, struct, sys
code = struct.pack("<HBBI", 0x20, 0, 0, 0)
for number in {sorted(DENIED.values())}:
    code += struct.pack("<HBBI", 0x15, 0, 1, number) + struct.pack("<HBBI", 0x06, 0, 0, 0x50001)
code += struct.pack("<HBBI", 0x06, 0, 0, 0x7fff0000)
held = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Host(States):
    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt", cpu="max,-hypervisor,vendor=GenuineIntel"))
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def sysctl(self, name, value, *more, **how):
        before = self.machine.sh(f"sysctl -n {name}").strip()
        self.state(f"{name} = {value}", f"sysctl -qw {name}={value}", *more, undo=f"sysctl -qw {name}={before}", **how)

    def test_sysctls(self):
        self.sysctl("vm.overcommit_memory", 2, {"kernel.sysctl": "warn"}, {"kernel.sysctl": "vm.overcommit_memory"})
        self.sysctl("vm.zone_reclaim_mode", 1, {"kernel.sysctl": "warn"}, {"kernel.sysctl": "vm.zone_reclaim_mode"})
        self.sysctl("vm.max_map_count", 30000, {"kernel.sysctl": "warn"}, {"kernel.sysctl": "65530"})
        self.sysctl("kernel.yama.ptrace_scope", 1, {"kernel.sysctl": "pass"})
        self.sysctl("user.max_user_namespaces", 0, {"kernel.sysctl": "pass"})
        at = "/proc/sys/vm/max_map_count"
        self.state("sysctls that cannot be read", f"{NO} {at}",
                   {"kernel.sysctl": "unknown", **USER}, {"kernel.sysctl": "max_map_count"}, f"umount {at}",
                   prefix=NOBODY)

    def test_pages(self):
        at = "/sys/kernel/mm/transparent_hugepage"
        before = {name: re.search(r"\[(\w+)\]", self.machine.sh(f"cat {at}/{name}"))[1] for name in ("enabled", "defrag")}
        undo = "; ".join(f"echo {value} >{at}/{name}" for name, value in before.items())
        self.state("transparent huge pages, always compacted", f"echo always >{at}/enabled; echo always >{at}/defrag",
                   {"kernel.thp": "warn"}, {"kernel.thp": "always, defrag always"}, undo)
        self.state("transparent huge pages on request", f"echo madvise >{at}/enabled; echo always >{at}/defrag",
                   {"kernel.thp": "pass"}, undo=undo)
        self.state("the policy of huge pages cannot be read", f"chmod 0 {at}/enabled", {"kernel.thp": "unknown", **USER},
                   undo=f"chmod 644 {at}/enabled", prefix=NOBODY)
        # libfabric 1.17 does not read the variable that asks for them
        self.state("huge pages asked for by a variable that nobody reads", expected={"env.value": "warn", "kernel.hugepages": "na"},
                   prefix="FI_EFA_USE_HUGE_PAGE=1")
        self.state("huge pages reserved, nobody asks for them", "sysctl -qw vm.nr_hugepages=8", {"kernel.hugepages": "na"},
                   undo="sysctl -qw vm.nr_hugepages=0")

    def test_limits(self):
        limited = "sh -c 'ulimit -{} && exec \"$@\"' sh"
        bound = "setpriv --bounding-set -ipc_lock --inh-caps -all " + limited  # the limit does not bind CAP_IPC_LOCK
        self.state("memlock of 64 KiB, which does not bind root", expected={"limits.memlock": "pass"}, prefix=limited.format("l 64"))
        self.state("memlock of 64 KiB", expected={"limits.memlock": "fail"}, says={"limits.memlock": "64 KiB"},
                   prefix=bound.format("l 64"))
        self.state("memlock of 8 MiB", expected={"limits.memlock": "fail"}, prefix=bound.format("l 8192"))
        self.state("memlock of 4 GiB", expected={"limits.memlock": "warn"}, prefix=bound.format("l 4194304"))
        self.state("256 open files", expected={"limits.nofile": "warn"}, prefix=limited.format("n 256"))
        self.state("a /dev/shm of 64 MiB", "mount -o remount,size=64m /dev/shm", {"shm.size": "fail"},
                   undo="mount -o remount,size=2g /dev/shm")
        self.state("a full /dev/shm", "mount -o remount,size=1100m /dev/shm; fallocate -l 1095m /dev/shm/x", {"shm.size": "fail"},
                   {"shm.size": "full"}, "rm /dev/shm/x; mount -o remount,size=2g /dev/shm")

    def killed(self, group, limit, path):
        """A group in which one process asks for more than its limit."""
        return (f"set -e; mkdir -p {CG}/{group}; echo 20M >{CG}/{group}/{limit}; "
                f"bash -c 'echo $$ >{CG}/{path}/cgroup.procs; exec python3 -c \"len(bytes([1]) * (100 << 20))\"' || true")

    def inside(self, group):
        return f"sh -c 'echo $$ >{CG}/{group}/cgroup.procs; exec \"$@\"' sh"

    def test_groups(self):
        self.machine.sh(f"echo '+memory +pids +cpuset' >{CG}/cgroup.subtree_control")
        self.state("a memory limit, nobody killed", f"mkdir {CG}/calm; echo 1200M >{CG}/calm/memory.max", {"memory.kills": "pass"},
                   {"memory.kills": "none killed"}, prefix=self.inside("calm"))
        self.state("a process was killed for memory", self.killed("tight", "memory.max", "tight") +
                   f"; echo max >{CG}/tight/memory.max", {"memory.kills": "warn"}, {"memory.kills": "1 killed"},
                   prefix=self.inside("tight"))
        self.state("one of another step of the job was killed", f"mkdir -p {CG}/job_7; echo +memory >{CG}/job_7/cgroup.subtree_control; "
                   f"mkdir {CG}/job_7/step_1; " + self.killed("job_7/step_0", "memory.max", "job_7/step_0"),
                   {"memory.kills": "warn"}, {"memory.kills": "1 killed"}, prefix=self.inside("job_7/step_1"))
        self.state("one of another job was killed", expected={"memory.kills": "pass"}, prefix=self.inside("calm"))
        self.state("what was killed cannot be read", f"chmod 0 {CG}/calm/memory.events", {"memory.kills": "unknown", **USER},
                   prefix=self.inside("calm") + " " + NOBODY.replace("HOME=/", "env HOME=/"), undo=f"chmod 444 {CG}/calm/memory.events")

    def copies(self, name, prefix):
        """The all-reduce through shared memory, which copies out of the other process where that is allowed."""
        began = time.monotonic()
        with self.subTest(state=name):
            report = self.run_program("bench --transport fabric --provider shm --ranks 2 --sizes 4:64K --timeout 60 --format json",
                                      prefix)
            told = [(row["verdict"], row["observed"]) for row in report["findings"] if row["setting"] == "all-reduce (fabric)"]
            self.assertEqual([verdict for verdict, _ in told], ["pass"], told)
            self.assertTrue(all(size["wrong"] == 0 for size in report["collectives"]["fabric"]["sizes"]))
            States.done.append((type(self).__name__, name, {"collective.allreduce": "pass"}, time.monotonic() - began))

    def test_copies(self):
        """Whether ranks may read each other's memory: Yama's setting and a filter of system calls."""
        (self.machine.dir / "filter.py").write_text(FILTER)
        scope = "kernel.yama.ptrace_scope"
        before = self.machine.sh(f"sysctl -n {scope}").strip()
        self.addCleanup(self.machine.sh, f"sysctl -qw {scope}={before}")
        self.machine.sh("chmod 755 /mnt/out; python3 /mnt/out/filter.py true")
        for value in (0, 1, 2):
            self.machine.sh(f"sysctl -qw {scope}={value}")
            self.copies(f"all-reduce over shm as a user, {scope} = {value}", NOBODY)
        self.copies("all-reduce over shm, a filter of system calls", "python3 /mnt/out/filter.py")
        self.state("a filter of system calls as of containers", prefix="python3 /mnt/out/filter.py",
                   expected={"kernel.syscalls": "note"}, says={"kernel.syscalls": "process_vm_readv: denied"})

    def test_clock(self):
        """Nobody's deadline and no duration follows a clock that is set."""
        for name, step in (("forward", 3600), ("back", -7200), ("forward again", 3600)):
            self.state(f"the clock steps {name} in mid-run", prefix=f"sh -c '(sleep 1; date -s @$(($(date +%s) + {step}))) "
                       ">/dev/null 2>&1 & exec \"$@\"' sh")

    def test_namespaces(self):
        self.state("as root of a user namespace", prefix="unshare --user --map-root-user", expected=USER)

    def test_uncorrected(self):
        """The last one: a processor of Intel's kind reports errors of memory, and there is no way back."""
        self.state("no memory error", expected={"memory.errors": "pass"})
        self.state("machine checks that cannot be read", f"{NO} /proc/interrupts", {"memory.errors": "unknown", **USER},
                   {"memory.errors": "machine_checks"}, "umount /proc/interrupts", prefix=NOBODY)
        # corrected: a valid entry of bank 9, told by the next poll
        self.machine.monitor("mce 0 9 0x8c00004000010090 0 0x10000000 0x8c")
        self.state("a corrected memory error", expected={"memory.errors": "pass"})
        # uncorrected, found by the patrol scrubber, nobody's data yet: page frame 0x10000
        self.machine.monitor("mce -b 0 9 0xbd000000000000c0 0x5 0x10000000 0x8c")
        self.state("an uncorrected memory error", expected={"memory.errors": "warn"})


class Version1(States):
    """Control groups of version 1."""

    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt"))
        cls.machine.sh(f"umount {CG}; mount -t tmpfs cg {CG}; mkdir {CG}/memory; mount -t cgroup -o memory memory {CG}/memory")
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def test_groups(self):
        at = f"{CG}/memory"
        inside = f"sh -c 'echo $$ >{at}/job/cgroup.procs; exec \"$@\"' sh"
        self.state("version 1: a memory limit", f"mkdir {at}/job; echo 1200M >{at}/job/memory.limit_in_bytes", {"memory.kills": "pass"},
                   {"memory.kills": "none killed"}, prefix=inside)
        self.state("version 1: a process was killed", f"mkdir {at}/tight; echo 20M >{at}/tight/memory.limit_in_bytes; "
                   f"bash -c 'echo $$ >{at}/tight/cgroup.procs; exec python3 -c \"len(bytes([1]) * (100 << 20))\"' || true; "
                   f"echo 1200M >{at}/tight/memory.limit_in_bytes", {"memory.kills": "warn"}, {"memory.kills": "1 killed"},
                   prefix=inside.replace("/job/", "/tight/"))
        self.state("version 1: what was killed cannot be read", f"chmod 0 {at}/job/memory.oom_control",
                   {"memory.kills": "unknown", **USER}, undo=f"chmod 644 {at}/job/memory.oom_control",
                   prefix=inside + " " + NOBODY.replace("HOME=/", "env HOME=/"))


if __name__ == "__main__":
    main()
