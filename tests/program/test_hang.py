"""shakedown hang: planted hangs of a real MPI job, each with the rank and the kind that must be named; healthy jobs, of
which none may be; saved documents; what may not be looked at."""
import contextlib, ctypes, json, os, pathlib, shutil, signal, subprocess, time, unittest

import jsonschema

import support
from support import BASE_ENV, SOURCE, Case, main, run

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANKS, VICTIM = 3, 1
HEALTHY = ("tight", "compute", "uneven", "ring", "barrier", "mixed", "files", "request", "threads", "alone")


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


class Hang(Case):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("mpicc") or not shutil.which("mpirun"):
            raise unittest.SkipTest("no mpicc and mpirun (libopenmpi-dev, openmpi-bin)")
        cls.folder = support.tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = pathlib.Path(cls.folder.name) / "hang_job"
        subprocess.run(["mpicc", "-O1", "-g0", "-o", cls.program, SOURCE / "tests/program/hang_job.c", "-lm", "-lpthread"],
                       check=True, capture_output=True)

    @contextlib.contextmanager
    def job(self, mode, *args, options=()):
        """The job, once all ranks are past their common work: (mpirun, {rank: pid})."""
        job = subprocess.Popen(["mpirun", "--oversubscribe", *options, "-np", str(RANKS), self.program, mode, str(VICTIM),
                                *map(str, args)], env={**BASE_ENV, **MPI}, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            pids = {}
            while len(pids) < RANKS:
                words = job.stdout.readline().split()
                self.assertEqual(len(words), 4, f"mpirun ended: {words}")
                pids[int(words[1])] = int(words[3])
            yield job, pids
        finally:
            for pid in pids.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.stdout.close()
            job.wait()

    def look(self, job, *args, interval=1):
        p = run("hang", "--pid", job.pid, "--interval", interval, "--format", "json", *args)
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        return p.returncode, json.loads(p.stdout)

    def named(self, mode, kind, *args, words=(), wait=None, options=()):
        """Exactly the victim is named, as of that kind; within the looks that a human has the patience for."""
        with self.job(mode, *args, options=options) as (job, pids):
            if wait:
                until(lambda: wait(pids[VICTIM]))
            code, doc = self.look_when_it_stands(job)
            judgement = doc["judgement"]
            self.assertEqual((code, judgement["outcome"]), (1, "named"), judgement["headline"])
            self.assertEqual([(n.get("rank"), n["kind"]) for n in judgement["named"]], [(VICTIM, kind)], judgement["headline"])
            for word in words:
                self.assertIn(word, judgement["headline"])
            return doc

    def look_when_it_stands(self, job):
        """The first look that does not see the ranks on their way to where they hang."""
        seen = []

        def look():
            seen[:] = self.look(job)
            return seen[0] != 0
        until(look)
        return seen

    def test_in_a_loop(self):
        doc = self.named("loop", "user-code", words=[f"{RANKS - 1} of {RANKS} ranks wait in all_reduce", "solve()"])
        self.valid(doc)

    def test_asleep(self):
        self.named("sleep", "sleep")

    def test_stopped(self):
        self.named("stop", "stopped", wait=lambda pid: state(pid) == "T", words=["stopped by a signal"])

    def test_other_collective(self):
        self.named("other", "call", words=["waits in barrier"])

    def test_receive_that_nobody_sends(self):
        self.named("receive", "call", words=["waits in a receive"])

    def test_lock(self):
        self.named("lock", "own-thread")

    def test_fifo(self):
        fifo = self.scratch() / "fifo"
        os.mkfifo(fifo)
        self.named("open", "io", fifo, words=[f"open() on {fifo}"])

    def test_file_system_that_does_not_answer(self):
        folder = self.scratch() / "mount"
        folder.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            fuse = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            self.skipTest(f"/dev/fuse: {error.strerror}")
        options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if libc.mount(b"shakedown-test", bytes(folder), b"fuse", 0, options.encode()):
            os.close(fuse)
            self.skipTest(f"mount: {os.strerror(ctypes.get_errno())}")
        try:
            self.named("stat", "io", folder / "file", words=[f"on {folder}/file", "(fuse at "])
        finally:
            os.close(fuse)
            libc.umount2(bytes(folder), 2)

    def test_killed(self):
        with self.job("receive", options=("--enable-recovery",)) as (job, pids):
            os.kill(pids[VICTIM], signal.SIGKILL)
            until(lambda: state(pids[VICTIM]) in "XZ")
            code, doc = self.look_when_it_stands(job)
            named = doc["judgement"]["named"]
            self.assertEqual(code, 1, doc["judgement"]["headline"])
            self.assertEqual([n.get("rank") for n in named], [VICTIM])
            self.assertIn(named[0]["kind"], ("absent", "dead"))

    def test_healthy_jobs(self):
        for mode in HEALTHY:
            with self.subTest(mode), self.job(mode, self.scratch() / "file") as (job, pids):
                code, doc = self.look(job)
                self.assertEqual(doc["judgement"]["named"], [], doc["judgement"]["headline"])
                self.assertEqual(code, 0, doc["judgement"]["headline"])
                until(lambda pid=pids[0]: state(pid) in "RS")

    def valid(self, doc):
        schema = json.loads((SOURCE / "reports/schema/hang-1.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(doc)


if __name__ == "__main__":
    main()
