"""A vendor library that crashes, hangs or exits is a finding; the report is written all the same."""
import contextlib, os, pathlib, resource, struct, subprocess, sys, time
from support import BASE_ENV, BINARY, FAKES, Case, left_behind, main, own_shm, run

# fake library -> what the report must say of it
FAULTS = {
    "fabric_segv": r"SIGSEGV",
    "fabric_getinfo_segv": r"SIGSEGV.*fi_getinfo|fi_getinfo.*SIGSEGV",
    "fabric_getinfo_abort": r"SIGABRT.*fi_getinfo|fi_getinfo.*SIGABRT",
    "fabric_getinfo_exit": r"exit.*fi_getinfo|fi_getinfo.*exit",
    "fabric_getinfo_hang": r"fi_getinfo",
    "fabric_getinfo_spin": r"no answer.*fi_getinfo",
    "fabric_getinfo_memory": r"fi_getinfo",
    "fabric_no_symbol": r"fi_dupinfo",
}


class Faults(Case):
    def broken(self, fake, *args):
        """With a deadline that only a library that hangs should reach; the report and how late it came after that."""
        deadline = 6 if "hang" in fake or "spin" in fake else 60
        start = time.monotonic()
        p = run(*args, "--format", "json", "--timeout", deadline, "--sizes", "4:64",
                env={"LD_LIBRARY_PATH": str(FAKES / fake)})
        return p, self.json_of(p), time.monotonic() - start - deadline

    def test_probe_survives_and_names_library_and_call(self):
        for fake, says in FAULTS.items():
            with self.fault("broken libfabric", f"probes: {fake}") as fault:
                p, report, late = self.broken(fake, "run", "--quick")
                self.assertIn(p.returncode, (0, 1), p.stderr)
                self.assertLess(late, 9)
                fault.survived = True
                rows = [f for f in report["findings"]
                        if f["verdict"] in ("fail", "unknown") and "libfabric" in str(f)]
                self.assertTrue(rows, "no row says that libfabric is broken")
                text = " ".join(f"{f.get('observed')} {f.get('why')}" for f in rows)
                self.assertRegex(text, says)
                self.assertIn(fake, text)

    def test_collective_survives(self):
        for fake in ("fabric_getinfo_segv", "fabric_getinfo_abort", "fabric_getinfo_exit", "fabric_getinfo_hang"):
            with self.fault("broken libfabric", f"all-reduce: {fake}") as fault:
                p, report, late = self.broken(fake, "bench")
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertLess(late, 14)
                fault.survived = True
                row = self.finding(report, "all-reduce (fabric)", "fail")
                self.assertRegex(f"{row.get('observed')} {row.get('why')}", "rank 0|rank 1|fi_getinfo")

    def test_a_library_that_lacks_one_of_its_own(self):
        """It cannot be loaded: a cause of the catalogue, under the probes and under the all-reduce."""
        with self.fault("broken libfabric", "fabric_needy") as fault:
            for args, code, verdict in ((("run", "--quick"), 0, "warn"), (("bench",), 1, "fail"), (("run",), 1, "fail")):
                p, report, _ = self.broken("fabric_needy", *args)
                fault.survived = True
                self.assertEqual((p.returncode, report["summary"]["verdict"]), (code, verdict), p.stderr)
                self.assertEqual([d["key"] for d in report["diagnoses"]], ["libfabric-does-not-load"])
                self.assertIn("shk-gone", str(report["diagnoses"]))

    def test_a_node_that_is_too_busy_is_no_broken_library(self):
        """The library works, but gets no processor before the deadline: nobody knows, and nobody is blamed."""
        processor = min(os.sched_getaffinity(0))
        with self.fault("broken libfabric", "probes: no processor time") as fault, contextlib.ExitStack() as others:
            for _ in range(2):
                spins = others.enter_context(subprocess.Popen(
                    ["sh", "-c", "while :; do :; done"], preexec_fn=lambda: os.sched_setaffinity(0, {processor})))
                others.callback(spins.kill)
            p = run("run", "--quick", "--format", "json", "--timeout", "6",
                    env={"LD_LIBRARY_PATH": str(FAKES / "fabric_getinfo_starve")})
            report = self.json_of(p)
            fault.survived = True
            self.assertEqual(p.returncode, 0, [f for f in report["findings"] if f["verdict"] == "fail"])
            row = self.finding(report, "probe libfabric", "unknown")
            self.assertRegex(str(row), r"the node was too busy: it got 0\.\d s of processor time in \d\.\d s")
            self.finding(report, "libfabric", "unknown")

    def test_nothing_is_left_behind(self):
        before = own_shm()
        self.broken("fabric_getinfo_segv", "bench")
        self.assertEqual(left_behind(before), set())


DEADLINE = 60  # a loaded machine


def limit(which, value):
    return lambda: resource.setrlimit(which, (value, value))


class Scarcity(Case):
    """An all-reduce on a node that is short of something: it works, or the report says what was short."""

    def scarce(self, fault, *args, env=None, before=None, prefix=()):
        """The report, and the row of the all-reduce, which is either right or wrong for a reason."""
        sizes = [] if "--sizes" in args else ["--sizes", "4:64"]
        argv = [*map(str, prefix), str(BINARY), *args, "--transport", "fabric", *sizes, "--timeout", str(DEADLINE),
                "--format", "json"]
        start = time.monotonic()
        p = subprocess.run(argv, env={**BASE_ENV, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=3 * DEADLINE, preexec_fn=before)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertLess(time.monotonic() - start, DEADLINE + 30)
        report = self.json_of(p)
        fault.survived = True
        rows = [f for f in report["findings"] if f["setting"] == "all-reduce (fabric)"]
        self.assertEqual(len(rows), 1)
        self.assertIn(rows[0]["verdict"], ("pass", "fail"))
        if rows[0]["verdict"] == "fail":
            self.assertEqual(p.returncode, 1)
        return report, rows[0]

    def test_descriptors(self):
        for number in (64, 24):
            with self.fault("scarce resources", f"{number} descriptors") as fault:
                report, row = self.scarce(fault, before=limit(resource.RLIMIT_NOFILE, number))
                self.assertIn(self.verdict_of(report, "RLIMIT_NOFILE"), ("warn", "fail"))
                if row["verdict"] == "fail":
                    self.assertRegex(f"{row['why']}", "(?i)too many open files|descriptor")

    def verdict_of(self, report, setting):
        return [f["verdict"] for f in report["findings"] if f["setting"] == setting][0]

    def test_locked_memory(self):
        with self.fault("scarce resources", "64 KiB of locked memory") as fault:
            report, row = self.scarce(fault, "--profile", "lumi-g", before=limit(resource.RLIMIT_MEMLOCK, 65536))
            self.assertIn("64 KiB", self.finding(report, "RLIMIT_MEMLOCK", "fail")["observed"])
            self.assertEqual(row["verdict"], "pass", row)  # tcp registers nothing with a NIC

    def test_memory(self):
        env = {"LD_PRELOAD": str(FAKES / "files" / "libshk-files.so"), "FAKE_FILES_MEMORY": str(256 << 10),
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        with self.fault("scarce resources", "no memory for the buffers of the ranks") as fault:
            _, row = self.scarce(fault, "--sizes", "4:1M", env=env)
            self.assertEqual(row["verdict"], "fail")
            self.assertRegex(row["why"], "Cannot allocate memory|out of memory")

    def own_shm(self, options, then=":"):
        """What to put before a command, so that it has a /dev/shm of its own."""
        script = f'mount -t tmpfs -o {options} none /dev/shm || exit 97; {then}; exec "$@"'
        prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
        if os.geteuid() != 0 or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mounts of our own")
        return prefix

    def test_shared_memory(self):
        prefix = self.own_shm("size=64k", "head -c 1M /dev/zero >/dev/shm/fill 2>/dev/null")
        with self.fault("scarce resources", "full /dev/shm") as fault:
            _, row = self.scarce(fault, prefix=prefix)
            self.assertEqual(row["verdict"], "pass", row)  # nothing of ours has a name there
        with self.fault("scarce resources", "full /dev/shm, provider shm") as fault:
            report, row = self.scarce(fault, prefix=prefix, env={"FI_PROVIDER": "shm"})
            self.assertEqual(row["verdict"], "fail")
            self.assertIn("shm", row["why"])
            self.assertRegex(self.finding(report, "FI_PROVIDER", "fail")["why"], "space available|available space|/dev/shm")

    def test_memory_of_the_control_group(self):
        """The kernel takes a rank, not the supervisor, and the report says so."""
        with self.control_group(400 << 20) as group:
            with self.fault("scarce resources", "a rank that the kernel kills for memory") as fault:
                report, row = self.scarce(fault, "bench", "--sizes", "4:1G",
                                          prefix=["sh", "-c", 'echo $$ >"$0" && exec "$@"', group / "cgroup.procs"])
                self.assertEqual(row["verdict"], "fail")
                self.assertRegex(row["why"], r"rank \d .* killed by SIGKILL when the kernel ran out of memory")
                self.assertEqual(report["diagnoses"][0]["key"], "container-memory-limit-oom")

    @contextlib.contextmanager
    def control_group(self, most):
        """Of our own, below the one that we are in, with so much memory; version 1 or 2."""
        of = {l.split(":")[1]: l.strip().split(":", 2)[2] for l in pathlib.Path("/proc/self/cgroup").read_text().splitlines()}
        for base, name in (("/sys/fs/cgroup/memory" + of.get("memory", "?"), "memory.limit_in_bytes"),
                           ("/sys/fs/cgroup" + of.get("", "?"), "memory.max")):
            group = pathlib.Path(base) / f"shk-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                if (group / name).exists():
                    (group / name).write_text(str(most))
                    yield group
                    return
            finally:
                group.rmdir()
        self.skipTest("no control group of our own")

    def test_files_that_killed_processes_left(self):
        """Names that libfabric's shm provider will choose: of process numbers that come next. Seen by this run only."""
        plant = ("import os, struct, sys\n"
                 "for pid in range(os.getpid(), os.getpid() + 500):\n"
                 "    with open(f'/dev/shm/{pid}:{os.geteuid()}:0', 'wb') as f:\n"
                 "        f.write(bytes.fromhex(sys.argv[1]))\n"
                 "        f.truncate(int(sys.argv[2]))\n"
                 "os.execv(sys.argv[3], sys.argv[3:])\n")
        prefix = [*self.own_shm("mode=1777"), sys.executable, "-c", plant]
        alive = struct.pack("<HHi", 4, 1, os.getpid())  # version, flags, owner
        for name, head, size in (("of a region", alive, 16 << 20), ("that are empty", b"", 0)):
            with self.fault("scarce resources", f"files {name} in /dev/shm") as fault:
                _, row = self.scarce(fault, prefix=[*prefix, head.hex(), size], env={"FI_PROVIDER": "shm"})
                if row["verdict"] == "fail":
                    self.assertRegex(row["why"], r"/dev/shm/\d+:\d+:0.*(remove it|run again)")

    def test_launcher_that_is_gone(self):
        """PMIx's variables of a job whose server has ended."""
        uri = "gone.0;tcp4://127.0.0.1:9"
        env = {"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0",
               **{f"PMIX_SERVER_URI{v}": uri for v in ("", "2", "21", "3", "4", "41")}}
        with self.fault("scarce resources", "PMIx server gone") as fault:
            report, row = self.scarce(fault, env=env)
            self.assertIn("PMIx", self.finding(report, "PMIx", "fail")["why"])
            self.assertEqual(row["verdict"], "pass", row)  # of the ranks on this node


main()
