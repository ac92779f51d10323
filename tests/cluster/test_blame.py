"""Who is to blame, on three hosts of a real Slurm: each fault of faults.py once, and what else goes wrong with ranks and
hosts. Each has a cause of its own, and the lists of nodes say the same. tests/tools/blame repeats the faults and counts.
Usage: test_blame.py BINARY"""
import json, pathlib, re, subprocess, sys, time, unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hosts import Hosts, environment, main  # noqa: E402
from faults import FAULTS  # noqa: E402
BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
ON_SHK2 = '[ "$(hostname)" != shk2 ] || '


class Blame(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(3, BINARY.parent)
        cls.addClassCleanup(cls.hosts.down)
        cls.dir = cls.hosts.dir

    def path(self, name):
        return self.dir / name

    def start(self, wrap="true", sizes="4:64K", srun=("--mpi=pmix", "-N3", "-n3"), deadline=24):
        for name in ("report.json", "bad"):
            self.path(name).unlink(missing_ok=True)
        self.path("good").write_text("left of an earlier run\n")
        command = [BINARY, "run", "-v", "--timeout", str(deadline), "--sizes", sizes, "-o", self.path("report.json"),
                   "--healthy-nodes", self.path("good"), "--bad-nodes", self.path("bad")]
        with open(self.path("err"), "w") as err:
            self.process = subprocess.Popen(
                self.hosts.run("srun", *srun, "sh", "-c", wrap + '\nexec "$@"', "sh", *command),
                stdout=subprocess.DEVNULL, stderr=err, env=environment())
        self.addCleanup(self.process.kill)

    def wait_for(self, text):
        limit = time.monotonic() + 60
        while time.monotonic() < limit and self.process.poll() is None:
            if text in self.path("err").read_text():
                return
            time.sleep(0.02)
        self.fail(f"never came to {text!r}: " + self.path("err").read_text()[-2000:])

    def ended(self):
        self.process.wait(timeout=150)
        self.said = self.path("err").read_text()
        self.assertNotEqual(self.process.returncode, 0, self.said[-2000:])

    def lists(self):
        return self.path("good").read_text().strip(), self.path("bad").read_text().strip()

    def expect(self, cause, good, bad, scope="node"):
        """The first cause, and the lists."""
        self.ended()
        self.assertTrue(self.path("report.json").exists(), self.said[-2000:])
        report = json.loads(self.path("report.json").read_text())
        first = report["diagnoses"][0]
        self.assertEqual((first["key"], first["scope"]), (cause, scope), json.dumps(report["diagnoses"])[:3000])
        self.assertEqual(self.lists(), (good, bad), json.dumps(first))
        return report

    def row(self, report):
        return next(f for f in report["findings"] if f["setting"] == "all-reduce (fabric)")

    def test_each_fault(self):
        for fault in FAULTS:
            with self.subTest(fault.name):
                try:
                    with fault.planted(self.hosts, 3, ["shk2"]):
                        run = fault.run(self.hosts, BINARY, 3, ["shk2"])
                except NotImplementedError as e:
                    print(f"not tried: {fault.name}: {e}")
                    continue
                self.assertEqual(fault.wrong(run, 3, ["shk2"]), [], run.said()[-3000:])
                rows = [f for f in run.document["findings"] if f["verdict"] == "fail"]
                self.assertIn(fault.says, " ".join(f.get("observed", "") + f.get("why", "") for f in rows))

    def test_two_ranks_on_each_host(self):
        self.start(ON_SHK2 + "export FI_PROVIDER=udp", srun=("--mpi=pmix", "-N3", "-n6"))
        self.expect("provider-differs-across-nodes", "shk[1,3]", "shk2")

    def test_the_host_of_rank_0_is_the_odd_one(self):
        self.start('[ "$(hostname)" != shk1 ] || export FI_PROVIDER=udp')
        self.expect("provider-differs-across-nodes", "shk[2-3]", "shk1")

    def test_two_hosts_that_differ(self):
        """Both are named, neither is bad or healthy, and the list of an earlier run is not left to be used."""
        self.start(ON_SHK2 + "export FI_PROVIDER=udp", srun=("--mpi=pmix", "-N2", "-n2", "-w", "shk1,shk2"))
        report = self.expect("provider-differs-across-nodes", "", "", scope="launch")
        self.assertEqual(self.row(report)["nodes"], ["shk1", "shk2"])
        self.assertIn("no node is healthy", self.said)

    def test_tasks_that_find_no_job(self):
        """They write nothing that they share: not the lists, and each a report of its own."""
        self.start("unset SLURM_STEP_NODELIST", srun=("--mpi=none", "-N3", "-n3"))
        self.ended()
        self.assertEqual(self.path("good").read_text(), "left of an earlier run\n")
        self.assertFalse(self.path("bad").exists())
        self.assertFalse(self.path("report.json").exists())
        self.assertIn("did not find each other", self.said)
        for host in ("shk1", "shk2", "shk3"):
            own = self.path(f"report.{host}.json")
            self.assertEqual(json.loads(own.read_text())["nodes"][0]["facts"]["host.name"]["value"], host)
            own.unlink()

    def test_a_host_that_never_comes(self):
        self.start('[ "$SLURM_PROCID" != 2 ] || exec sleep 20')
        self.expect("rank-missing", "shk[1-2]", "shk3")

    def long(self, srun=("--mpi=pmix", "-N3", "-n3", "--wait=5")):
        self.start(sizes="4:64M", srun=srun)
        self.wait_for("fabric: allreduce 64 B")

    def processes(self, host):
        return self.hosts.processes(host, BINARY.name[:15])

    def test_stopped_host(self):
        """Also what watches the rank is stopped. Its host still answers, and a starved one looks the same: named, not bad."""
        self.long()
        self.stopped("shk3", self.processes("shk3"))
        report = self.expect("rank-silent", "shk[1-2]", "", scope="launch")
        self.assertIn("still answers", self.row(report)["why"])
        self.assertEqual(self.row(report)["nodes"], ["shk3"])

    def test_stopped_beside_another(self):
        """Of two tasks on a host one is stopped with what watches it; the other speaks, so the host is not starved."""
        self.long(srun=("--mpi=pmix", "-N3", "--ntasks-per-node=2", "--wait=5"))
        task = self.hosts.on("shk3", "sh", "-c", "ps -e -o pid=,args= | grep -v grep | grep -m1 slurmstepd")
        supervisors = [pid for pid in self.processes("shk3") if self.parent("shk3", pid) == int(task.split()[0])]
        mine = [pid for pid in self.processes("shk3") if pid == supervisors[-1] or self.parent("shk3", pid) == supervisors[-1]]
        self.stopped("shk3", mine)
        self.expect("rank-stopped", "shk[1-2]", "shk3")

    def parent(self, host, pid):
        status = self.hosts.on(host, "cat", f"/proc/{pid}/status")
        return int(re.search(r"PPid:\s+(\d+)", status).group(1))

    def stopped(self, host, pids):
        self.hosts.signal(host, "STOP", *pids)
        try:
            while not self.path("report.json").exists() and self.process.poll() is None:
                time.sleep(0.1)
        finally:
            self.hosts.signal(host, "KILL", *pids)

    def cut_off(self, host, *srun):
        self.long(srun=("--mpi=pmix", *srun, "--wait=5"))
        links = (f"mgt0-{host}", f"hsn0-{host}")
        for link in links:
            self.hosts.on("ctl", "ip", "link", "set", link, "down")
        try:
            while not self.path("report.json").exists() and self.process.poll() is None:
                time.sleep(0.1)
        finally:
            for link in links:
                self.hosts.on("ctl", "ip", "link", "set", link, "up")

    def test_the_host_of_rank_0_is_cut_off(self):
        """It hears of none of the others, which they are not to blame for."""
        self.cut_off(1, "-N3", "-n3")
        self.expect("node-unreachable", "shk[2-3]", "shk1")

    def test_one_of_two_hosts_is_cut_off(self):
        self.cut_off(2, "-N2", "-n2", "-w", "shk1,shk2")  # after another test shk2 may be completing, and shk3 be taken
        self.expect("node-unreachable", "", "", scope="launch")


main()
