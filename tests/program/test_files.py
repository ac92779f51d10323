"""Every kind of file that a probe reads, damaged in every way: the run goes on, ends in time, and nothing passes
that did not pass while the file was whole."""
import collections, os, pathlib, re, shutil, subprocess, time
from concurrent.futures import ThreadPoolExecutor
from stuck import StuckFile
from support import CAPTURES, FAKES, Case, count, main, run

CAPTURE = "slingshot-amd"
SLOW_S = 20  # a loaded machine; a hang would be the probes' deadline of 5 s and more


def areas(tree):
    """Files by area (/proc/sys/net, one PCI root, one class …); an area is damaged as a whole."""
    found = collections.defaultdict(list)
    for folder, _, names in os.walk(tree):
        for name in sorted(names):
            path = pathlib.Path(folder) / name
            if path.is_symlink() or path.name in (".keep", "NOTES.md") or ".shakedown" in path.parts:
                continue
            name = path.relative_to(tree)
            area = re.sub(r"\d[0-9a-f:]*", "#", "/".join(name.parent.parts[:4]))
            found[area].append(name)
    return sorted(found.items())


def truncated(path):
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2])


def emptied(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\xff\x00\x1b[31m\x80 -1 99999999999999999999 0x" + bytes(range(256)) * 8)


def missing(path):
    path.unlink()


def dangling(path):
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def looped(path):
    path.unlink()
    path.symlink_to(path.name)


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


def huge(path):
    path.unlink()
    with open(path, "wb") as f:
        f.truncate(8 << 30)


DAMAGES = [truncated, emptied, garbage, missing, dangling, looped, fifo, folder, huge]


def rows(report):
    """Rows by what they are about; the value is the set of verdicts."""
    found = collections.defaultdict(set)
    for f in report["findings"]:
        found[(f["id"], f["setting"])].add(f["verdict"])
    return found


class Files(Case):
    @classmethod
    def setUpClass(cls):
        cls.tree = CAPTURES / CAPTURE
        cls.areas = areas(cls.tree)

    def judge(self, tree):
        return run("--sysroot", tree, "--transport", "none", "--format", "json")

    def restore(self, target, name):
        if target.is_dir() and not target.is_symlink():
            target.rmdir()
        elif target.is_symlink() or target.exists():
            target.unlink()
        shutil.copy2(self.tree / name, target)

    def damage(self, scratch, damage):
        """Every area in turn, in one tree of its own; what is wrong with the answers."""
        tree = scratch / damage.__name__
        shutil.copytree(self.tree, tree, symlinks=True)
        healthy = rows(self.json_of(self.judge(tree)))
        wrong, noticed = [], []
        for area, names in self.areas:
            already = len(wrong)
            for name in names:
                damage(tree / name)
            start = time.monotonic()
            p = self.judge(tree)
            took = time.monotonic() - start
            for name in names:
                self.restore(tree / name, name)
            where = f"{damage.__name__} {area}"
            if p.returncode not in (0, 1) or took > SLOW_S:
                wrong.append(f"{where}: exit {p.returncode} after {took:.1f} s: {p.stderr[:300]}")
                count("damaged files", survived=0, wrong=1)
                continue
            now = rows(self.json_of(p))
            noticed += [area] * (now != healthy)
            dead = [k for k, v in now.items() if k[1].startswith("probe ") and v != {"pass"} and k not in healthy]
            wrong += [f"{where}: {k[1]} died" for k in dead if self.died(p, k)]
            wrong += [f"{where}: {k} passes now, was {healthy[k]}" for k, v in now.items()
                      if v == {"pass"} and k in healthy and "pass" not in healthy[k]]
            count("damaged files", wrong=int(len(wrong) > already))
        return wrong, noticed

    def died(self, process, key):
        row = [f for f in self.json_of(process)["findings"] if (f["id"], f["setting"]) == key][0]
        return row.get("observed") in ("crashed", "timeout", "memory", "exited")

    def refused(self, part, fault):
        """The healthy capture, in which reads of these files fail."""
        env = {"LD_PRELOAD": str(FAKES / "files" / "libshk-files.so"), "FAKE_FILES_PATH": part,
               "FAKE_FILES_FAULT": fault,
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        start = time.monotonic()
        p = run("--sysroot", self.tree, "--transport", "none", "--timeout", "3", "--format", "json", env=env)
        return p, time.monotonic() - start

    def test_reads_that_fail_or_never_return(self):
        healthy = rows(self.json_of(self.judge(self.tree)))
        for part in ("proc/sys/kernel/numa_balancing", "proc/self/mountinfo", "sys/devices/pci", "sys/devices/virtual/kfd",
                     "proc/cmdline", "os-release"):
            for fault in ("EIO", "EACCES", "hang"):
                with self.fault("reads that fail or never return", f"{fault} {part}") as planted:
                    p, took = self.refused(part, fault)
                    self.assertIn(p.returncode, (0, 1), p.stderr[:300])
                    self.assertLess(took, SLOW_S)
                    planted.survived = True
                    now = rows(self.json_of(p))
                    worse = [k for k, v in now.items() if v == {"pass"} and k in healthy and "pass" not in healthy[k]]
                    self.assertEqual(worse, [])
                    if fault == "hang":
                        died = [f for f in self.json_of(p)["findings"] if f.get("observed") == "timeout"]
                        self.assertTrue(died, "no row says that a probe hung")

    def test_a_read_that_cannot_even_be_killed(self):
        """Uninterruptible sleep, as on a network file system whose server is gone."""
        tree = self.scratch() / "tree"
        shutil.copytree(self.tree, tree, symlinks=True)
        for name in ("proc/cmdline", "etc/os-release", "proc/meminfo"):
            try:
                stuck = StuckFile(tree / name).__enter__()
            except OSError as err:
                self.skipTest(f"no FUSE here: {err}")
            try:
                with self.fault("reads that fail or never return", f"uninterruptible {name}") as planted:
                    start = time.monotonic()
                    p = run("--sysroot", tree, "--transport", "none", "--timeout", "3", "--format", "json")
                    self.assertIn(p.returncode, (0, 1), p.stderr[:300])
                    self.assertLess(time.monotonic() - start, SLOW_S)
                    planted.survived = True
                    self.assertGreater(stuck.readers, 0)
                    died = [f for f in self.json_of(p)["findings"] if f.get("observed") == "timeout"]
                    self.assertTrue(died, "no row says that a probe hung")
            finally:
                stuck.__exit__()

    def test_damaged_files(self):
        scratch = self.scratch()
        self.assertGreater(len(self.areas), 20)
        with ThreadPoolExecutor(2) as pool:
            for damage, (wrong, noticed) in zip(DAMAGES, pool.map(lambda d: self.damage(scratch, d), DAMAGES)):
                with self.subTest(damage.__name__):
                    self.assertEqual(wrong, [])
                    self.assertGreater(len(noticed), 0)
                    print(f"{damage.__name__}: {len(self.areas)} areas, {len(noticed)} change a row")


main()
