"""shakedown hang over three hosts of a real Slurm, with an Open MPI job: from the login host, which is on none of them.
Usage: test_hang.py BINARY"""
import contextlib, json, os, pathlib, shutil, subprocess, sys, time, unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "program"))
from hosts import Hosts, environment, main  # noqa: E402
BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
RANKS, VICTIM = 6, 3  # on shk2
SRUN = ["srun", "--mpi=pmix", "-N3", "--ntasks-per-node=2", "--kill-on-bad-exit=0"]
# Slurm's PMIx ends a step with a rank that is over, mpirun does not
MPIRUN = ["salloc", "-N3", "--ntasks-per-node=2", "mpirun", "--enable-recovery", "--map-by", "ppr:2:node"]
ENV = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "hsn0", "OMPI_ALLOW_RUN_AS_ROOT": "1",
       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_oob_tcp_if_include": "10.77.1.0/24"}


class Hang(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("mpicc"):
            raise unittest.SkipTest("no mpicc (libopenmpi-dev)")
        cls.hosts = Hosts(3, BINARY.parent)
        cls.addClassCleanup(cls.hosts.down)
        cls.program = cls.hosts.dir / "hang_job"
        subprocess.run(["mpicc", "-O1", "-o", cls.program, HERE.parent / "program" / "hang_job.c", "-lm", "-lpthread"], check=True)

    def setUp(self):
        self.path = self.hosts.dir / f"file-{self._testMethodName}"

    def start(self, mode, launcher, ranks):
        """(launcher, {rank: pid} of its ranks, past their common work); None for the ranks when it ended before that."""
        env = {**environment(), **ENV}
        process = subprocess.Popen(self.hosts.run(*launcher, self.program, mode, VICTIM, self.path), env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        pids = {}
        while len(pids) < ranks:
            words = process.stdout.readline().split()
            if len(words) != 4:
                process.wait()
                process.stdout.close()
                return process, None
            pids[int(words[1])] = int(words[3])
        return process, pids

    @contextlib.contextmanager
    def job(self, mode, launcher=SRUN, ranks=RANKS):
        """Its number, and {rank: pid}. Open MPI 4.1 over tcp crashes at times while two ranks connect to each other at once: then
        it is started again."""
        process, pids = self.start(mode, launcher, ranks)
        for _ in range(3):
            if ranks and not pids:
                process, pids = self.start(mode, launcher, ranks)
        self.assertTrue(ranks == 0 or pids, f"{launcher[0]} ended")
        number = self.number()
        try:
            yield number, pids
        finally:
            subprocess.run(self.hosts.run("scancel", "--signal=KILL", number), check=False)
            subprocess.run(self.hosts.run("scancel", number), check=False, stderr=subprocess.DEVNULL)
            process.kill()
            process.stdout.close()
            process.wait()

    def number(self):
        """Of the newest job, once it runs."""
        for _ in range(100):
            running = subprocess.check_output(self.hosts.run("squeue", "--noheader", "--states=RUNNING", "--format=%A"), text=True).split()
            if running:
                return max(running, key=int)
            time.sleep(0.2)
        raise AssertionError("no job runs")

    def look(self, number, until):
        """Looks of the login host until one is as it should be; what a hang is on its way to is progress."""
        end = time.monotonic() + 90
        while True:
            p = subprocess.run(self.hosts.run(BINARY, "hang", "--job", number, "--interval", "2", "--format", "json"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env=environment())
            self.assertIn(p.returncode, (0, 1, 3), p.stderr)
            doc = json.loads(p.stdout)
            if until(p.returncode, doc) or time.monotonic() > end:
                return p.returncode, doc
            time.sleep(0.5)

    def named(self, mode, kind):
        with self.job(mode) as (number, _):
            code, doc = self.look(number, lambda code, _: code != 0)
            judgement = doc["judgement"]
            self.assertEqual(code, 1, judgement["headline"] + str(judgement["unknown"]))
            self.assertEqual([(n["rank"], n["kind"], n["host"]) for n in judgement["named"]], [(VICTIM, kind, "shk2")],
                             judgement["headline"])
            self.assertEqual(sorted(n["host"] for n in doc["nodes"]), ["shk1", "shk2", "shk3"])

    def test_in_a_loop(self):
        self.named("loop", "user-code")

    def test_other_collective(self):
        self.named("other", "call")

    def test_mismatched_counts(self):
        """The victim reduces fewer numbers, gets an error, and waits in a barrier."""
        self.named("counts", "call")

    def test_lock_of_a_file(self):
        self.named("flock", "io")

    def test_file_system_that_does_not_answer(self):
        """One that shk2 has mounted and nobody serves."""
        self.path.mkdir()
        code = ("import ctypes, os, sys, time\n"
                "fd = os.open('/dev/fuse', os.O_RDWR)\n"
                "options = f'fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other'\n"
                "rc = ctypes.CDLL(None).mount(b'stopped', sys.argv[1].encode(), b'fuse', 0, options.encode())\n"
                "print('mounted' if rc == 0 else 'refused', flush=True)\n"
                "time.sleep(600)")
        serve = subprocess.Popen(self.hosts.command("shk2", sys.executable, "-c", code, self.path), stdout=subprocess.PIPE, text=True,
                                 env=environment())
        try:
            if serve.stdout.readline().strip() != "mounted":
                self.skipTest("no FUSE here")
            folder, self.path = self.path, self.path / "file"
            self.named("stat", "io")
        finally:
            serve.kill()
            serve.wait()
            serve.stdout.close()
            self.hosts.on("shk2", "umount", "-l", folder)

    def test_stopped(self):
        self.named("stop", "stopped")

    def gone(self, number, ranks, host):
        code, doc = self.look(number, lambda code, _: code == 1)
        judgement = doc["judgement"]
        self.assertEqual(code, 1, judgement["headline"] + str(judgement["unknown"]))
        self.assertEqual([(n.get("rank"), n["host"]) for n in judgement["named"]], [(rank, host) for rank in ranks], judgement["headline"])
        self.assertLessEqual({n["kind"] for n in judgement["named"]}, {"dead", "absent"})
        self.assertEqual(judgement["named"][0]["confidence"], "confirmed")

    def test_killed(self):
        """mpirun in the allocation: its daemons are the tasks of Slurm's step, and no ranks."""
        with self.job("receive", MPIRUN) as (number, pids):
            self.hosts.signal("shk2", "KILL", pids[VICTIM])
            self.gone(number, [VICTIM], "shk2")

    def test_exited(self):
        """With code 0."""
        with self.job("exit", MPIRUN) as (number, _):
            self.gone(number, [VICTIM], "shk2")

    def test_never_started(self):
        """Instead of one rank, of two on the node, a shell ends at once; the others wait in MPI_Init()."""
        shell = f'[ "$OMPI_COMM_WORLD_RANK" != {VICTIM} ] || exit 0; exec "$0" "$@"'
        with self.job("receive", [*MPIRUN, "sh", "-c", shell], ranks=0) as (number, _):
            self.gone(number, [VICTIM], "shk2")

    def test_host_without_any_rank(self):
        """All ranks of shk2 are over."""
        with self.job("receive", MPIRUN) as (number, pids):
            self.hosts.signal("shk2", "KILL", *(pids[r] for r in pids if r in (2, 3)))
            self.gone(number, [2, 3], "shk2")

    def test_killed_in_a_step_of_slurm(self):
        """Ranks without PMIx, as PyTorch's are: one of them is killed, and Slurm lets the others go on."""
        code = ("import os, socket\n"
                "print('rank', os.environ['SLURM_PROCID'], 'process', os.getpid(), flush=True)\n"
                "a, b = socket.socketpair()\n"
                "a.recv(1)")
        launcher = ["srun", "--mpi=none", "-N3", "--ntasks-per-node=2", "--kill-on-bad-exit=0", sys.executable, "-c", code]
        with self.job("receive", launcher) as (number, pids):
            self.hosts.signal("shk2", "KILL", pids[VICTIM])
            self.gone(number, [VICTIM], "shk2")

    def test_checks_of_the_suspect_node(self):
        """The stopped rank's node alone is checked, and the network between it and another node of the job."""
        with self.job("stop") as (number, _):
            self.look(number, lambda code, _: code == 1)
            p = subprocess.run(self.hosts.run(BINARY, "hang", "--job", number, "--interval", "2", "--then-check", "--format", "json"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, env=environment())
        self.assertEqual(p.returncode, 1, p.stderr)
        node, network = json.loads(p.stdout)["judgement"]["checks"]
        self.assertEqual((node["what"], node["hosts"]), ("node", ["shk2"]))
        self.assertIn(node.get("verdict"), ("pass", "warn", "fail", "unknown"), node)
        self.assertEqual((network["what"], network["hosts"][0], len(network["hosts"])), ("network", "shk2", 2))
        self.assertIn(network.get("verdict"), ("pass", "warn"), network)  # a busy machine slows its own devices down

    def cut(self):
        with self.job("compute") as (number, _):
            self.hosts.on("ctl", "ip", "link", "set", "hsn0-2", "down")
            try:
                return self.look(number, lambda code, _: code == 1)
            finally:
                self.hosts.on("ctl", "ip", "link", "set", "hsn0-2", "up")

    def test_link_down(self):
        """All ranks wait in one call. What is not acknowledged leads to the host that is cut off. Where only one connection
        had data under way, either of its ends may be the one: nobody is named then, and the job is cut again."""
        for _ in range(3):
            code, doc = self.cut()
            named = [(n["kind"], n["host"]) for n in doc["judgement"]["named"]]
            if code != 3:
                break
            self.assertEqual(named, [])
        self.assertEqual(named, [("network", "shk2")], (code, doc["judgement"]["headline"], doc["judgement"].get("said")))

    def test_healthy(self):
        with self.job("ring") as (number, _):
            code, doc = self.look(number, lambda *_: True)
            self.assertEqual((code, doc["judgement"]["named"]), (0, []), doc["judgement"]["headline"])
            self.assertEqual(doc["judgement"]["seen"], RANKS)


if __name__ == "__main__":
    main()
