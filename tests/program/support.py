"""Shared by the test_*.py files here: run the program, keep its output, check what it says."""
import atexit, collections, contextlib, functools, json, os, pathlib, shutil, signal, subprocess, sys, tempfile, time, unittest

# A shell gives what it runs in the background an interrupt that is ignored, nohup a hang-up: the tests send them
for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

BINARY = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()
# What the tests were built with; the program may be another build's
BUILD = pathlib.Path(os.environ.get("SHAKEDOWN_BUILD", BINARY.parent)).resolve()
CAPTURES = BUILD / "captures"
FAKES = BUILD / "tests" / "fakes"


def roots_own(path):
    """As core/host/trust.h has it, for a folder without links on the way."""
    return all(p.stat().st_uid == 0 and (not p.stat().st_mode & 0o022 or p.stat().st_mode & 0o1000)
               for p in (path, *path.parents))


if FAKES.is_dir() and os.geteuid() == 0 and not roots_own(FAKES):
    # root loads nothing from a build tree that belongs to somebody else
    _copy = tempfile.TemporaryDirectory()
    FAKES = pathlib.Path(shutil.copytree(FAKES, pathlib.Path(_copy.name) / "fakes",
                                         ignore=shutil.ignore_patterns("CMakeFiles")))
    for _path in (pathlib.Path(_copy.name), *pathlib.Path(_copy.name).rglob("*")):
        _path.chmod(0o755)
BASE_ENV = {k: v for k, v in os.environ.items()
            if k in ("PATH", "HOME", "LANG", "TMPDIR") or k.startswith(("ASAN_", "UBSAN_", "LSAN_"))}


def run(*args, env=None, stdin=subprocess.DEVNULL, **kw):
    """The finished process; its stdout and stderr are text."""
    return subprocess.run([str(BINARY), *map(str, args)], env={**BASE_ENV, **(env or {})},
                          stdin=stdin, capture_output=True, text=True, timeout=180, **kw)


@functools.cache
def read_yaml(path):
    """What is in the file, read once and by libyaml, which is many times as fast as Python."""
    import yaml
    return yaml.load(pathlib.Path(path).read_text(), Loader=yaml.CSafeLoader)


def healthy_node(name):
    """The facts of a node of tests/mutate/nodes."""
    doc = json.loads((SOURCE / "tests/mutate/nodes" / f"{name}.json").read_text())
    facts = healthy_node(doc["like"]) if "like" in doc else {}
    for key in doc.get("without", []):
        facts.pop(key, None)
    return {**facts, **doc["facts"]}


def own_shm():
    """Names in /dev/shm but for those of Criterion's tests, which run beside this one."""
    return {n for n in os.listdir("/dev/shm") if not n.startswith(("bxfi_", "shk-fuzz"))}


def left_behind(before):
    """Names in /dev/shm that were not there before and that stay; those of programs beside us go with them."""
    left, until = own_shm() - before, time.monotonic() + 15
    while left and time.monotonic() < until:
        time.sleep(0.1)
        left &= own_shm()
    return left


COUNTS = collections.defaultdict(lambda: {"cases": 0, "survived": 0, "wrong": 0})


def count(area, cases=1, survived=1, wrong=0):
    """Faults of one kind that were planted, those after which the report was written in time, and those of which it
    said something wrong or nothing. tests/tools/reliability prints the sums."""
    for key, value in (("cases", cases), ("survived", survived), ("wrong", wrong)):
        COUNTS[area][key] += value


@atexit.register
def write_counts():
    """A line per area to the file that SHAKEDOWN_COUNTS names."""
    if COUNTS and "SHAKEDOWN_COUNTS" in os.environ:
        with open(os.environ["SHAKEDOWN_COUNTS"], "a", encoding="utf-8") as out:
            for area, numbers in COUNTS.items():
                out.write(json.dumps({"test": pathlib.Path(sys.argv[0]).stem, "area": area, **numbers}) + "\n")


class Fault:
    survived = False


class Case(unittest.TestCase):
    @contextlib.contextmanager
    def fault(self, area, name):
        """A sub-test that counts as one planted fault. Its body sets `survived` when the report is there."""
        fault = Fault()
        with self.subTest(name):
            try:
                yield fault
            except BaseException:
                count(area, survived=int(fault.survived), wrong=1)
                raise
            self.assertTrue(fault.survived, "the test does not say whether the program survived")
            count(area)

    def one_line(self, process, code, *says):
        """Exit code, and exactly one line on stderr that holds every text; nothing on stdout."""
        self.assertEqual(process.returncode, code, process.stderr)
        self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)
        self.assertTrue(process.stderr.startswith("shakedown: "), process.stderr)
        for text in says:
            self.assertIn(text, process.stderr)
        self.assertEqual(process.stdout, "")

    def json_of(self, process):
        """The report; stdout must be that one JSON value and nothing else."""
        return json.loads(process.stdout)

    def finding(self, report, setting, verdict):
        rows = [f for f in report["findings"] if f["setting"] == setting and f["verdict"] == verdict]
        self.assertTrue(rows, f"no {verdict} for {setting} in " + json.dumps(
            [(f["setting"], f["verdict"]) for f in report["findings"] if f["verdict"] != "na"]))
        return rows[0]

    def scratch(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)


def main():
    unittest.main(argv=[sys.argv[0]], verbosity=2)
