"""Ranks of three hosts that meet without PMIx: started by hand with torch's variables, by srun with nothing and with
PMI-2, by Hydra, over ssh. One report, a verified all-reduce, and whoever is missing, killed or has another key is named.
Usage: test_rendezvous.py BINARY"""
import json, os, pathlib, shutil, subprocess, sys, tempfile, time, unittest

from hosts import Hosts, environment, main
BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"
NAMES = [f"shk{i + 1}" for i in range(3)]


class Rendezvous(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hydra = next((p for p in (shutil.which(n) for n in ("mpiexec.hydra", "mpiexec.mpich")) if p), None)
        cls.hosts = Hosts(3, BINARY.parent, *([pathlib.Path(cls.hydra).parent.parent.parent] if cls.hydra else []))
        cls.addClassCleanup(cls.hosts.down)
        cls.dir = cls.hosts.dir
        cls.ports = []

    def command(self, name, *args, timeout=24, sizes="4:64K"):
        self.out = self.dir / f"{name}.json"
        self.out.unlink(missing_ok=True)
        return [str(BINARY), "run", "-v", "--timeout", str(timeout), "--sizes", sizes, "--transport", "fabric", "--format",
                "json", "-o", str(self.out), *args]

    def start(self, command, env=None):
        """What it says goes to files."""
        said = tempfile.TemporaryFile("w+")
        self.addCleanup(said.close)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   env={**environment(), **(env or {})})
        process.said = said
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    @staticmethod
    def says(process):
        return os.pread(process.said.fileno(), 1 << 20, 0).decode(errors="replace")

    def report(self, process):
        """The exit code and the report."""
        process.wait(timeout=180)
        self.said = self.says(process)
        self.assertTrue(self.out.exists(), self.said[-2000:])
        return process.returncode, json.loads(self.out.read_text())

    def row(self, report, setting, verdict):
        rows = [f for f in report["findings"] if f["setting"] == setting]
        found = [f for f in rows if f["verdict"] == verdict]
        self.assertTrue(found, f"{setting}: " + json.dumps(rows)[:1500])
        return found[0]

    def healthy(self, process, by, key=None, ranks=3):
        code, report = self.report(process)
        self.assertEqual(code, 0, self.said[-2000:])
        found = report["collectives"]["fabric"]
        self.assertEqual((found["status"], found["ranks"]), ("ok", ranks), found.get("reason"))
        self.assertEqual({size["wrong"] for size in found["sizes"]}, {0})
        row = self.row(report, "rendezvous", "pass" if key else "note")
        self.assertIn(f"joined by {by}", row["observed"])
        self.assertIn(f"the key is that of {key}" if key else "no key", row["observed"])
        self.row(report, "ranks", "pass")
        facts = report["nodes"][0]["facts"]
        self.assertEqual([r["node"] for r in facts["job.layout"]["value"]], NAMES)
        return report

    def torch(self, name, ranks, each=None, **how):
        """By hand, one rank on each host: {rank: process}."""
        command = self.command(name, **how)
        variables = {"WORLD_SIZE": "3", "MASTER_ADDR": "shk1", "MASTER_PORT": str(29500 + len(self.ports))}
        self.ports.append(name)
        done = {}
        for rank in ranks:
            mine = {**variables, "RANK": str(rank), **(each or {}).get(rank, {})}
            done[rank] = self.start(self.hosts.command(NAMES[rank], "env", *(f"{k}={v}" for k, v in mine.items()), *command))
        return done

    def test_torch_by_hand(self):
        ranks = self.torch("torch", range(3))
        self.healthy(ranks[0], "the variables of RANK and WORLD_SIZE: MASTER_ADDR")
        self.assertEqual([p.wait(timeout=60) for p in ranks.values()], [0, 0, 0])

    def test_torch_with_a_key(self):
        ranks = self.torch("key", range(3), each={r: {"SHAKEDOWN_KEY": KEY} for r in range(3)})
        report = self.healthy(ranks[0], "the variables of RANK", "SHAKEDOWN_KEY")
        self.assertNotIn(KEY, json.dumps(report))

    def test_torch_wrong_key(self):
        ranks = self.torch("wrong", range(3), each={r: {"SHAKEDOWN_KEY": OTHER if r == 1 else KEY} for r in range(3)})
        self.assertEqual(ranks[1].wait(timeout=120), 1)
        self.assertIn("rank 1: rank 0 has another key than SHAKEDOWN_KEY here", self.says(ranks[1]))
        code, report = self.report(ranks[0])
        self.assertEqual(code, 1)
        self.assertIn("rank 1 on shk2: its key is not that of rank 0",
                      self.row(report, "ranks that were not taken", "fail")["observed"])

    def test_torch_missing(self):
        code, report = self.report(self.torch("missing", [0, 1])[0])
        self.assertEqual(code, 1)
        self.assertIn("rank 2: it never came", self.row(report, "ranks", "fail")["observed"])

    def test_torch_killed(self):
        ranks = self.torch("killed", range(3), sizes="4:64M", timeout=40)
        until = time.monotonic() + 90
        while "fabric: allreduce 64 B" not in self.says(ranks[0]) and time.monotonic() < until:
            self.assertIsNone(ranks[0].poll(), self.says(ranks[0])[-2000:])
            time.sleep(0.02)
        self.hosts.signal("shk2", "KILL", self.hosts.processes("shk2", BINARY.name[:15])[-1])
        code, report = self.report(ranks[0])
        self.assertEqual(code, 1)
        row = self.row(report, "all-reduce (fabric)", "fail")
        self.assertEqual(row["nodes"], ["shk2"])
        self.assertIn("SIGKILL", row["why"])

    def srun(self, name, *args, wrap=None, **how):
        command = self.command(name, **how)
        return self.start(self.hosts.run("srun", *args, *(["sh", "-c", wrap + '\nexec "$@"', "sh"] if wrap else []), *command))

    def test_srun_none(self):
        """Two ranks on each host: by Slurm's list of nodes, without a key."""
        process = self.srun("none", "--mpi=none", "-N3", "--ntasks-per-node=2")
        self.healthy(process, "the variables of Slurm: SLURM_STEP_NODELIST", ranks=6)

    def test_srun_none_missing(self):
        process = self.srun("none-missing", "--mpi=none", "-N3", wrap='[ "$SLURM_PROCID" != 1 ] || exit 0')
        code, report = self.report(process)
        self.assertEqual(code, 1)
        row = self.row(report, "ranks", "fail")
        self.assertEqual(row["nodes"], ["shk2"])
        self.assertIn("rank 1 on shk2: it never came", row["observed"])

    def test_srun_pmi2(self):
        self.healthy(self.srun("pmi2", "--mpi=pmi2", "-N3"), "PMI of Slurm", "PMI")

    def test_srun_pmi2_missing(self):
        process = self.srun("pmi2-missing", "--mpi=pmi2", "-N3", "--wait=0", wrap='[ "$SLURM_PROCID" != 2 ] || exit 0')
        code, report = self.report(process)
        self.assertEqual(code, 1)
        self.assertIn("rank 2 on shk3: it never came", self.row(report, "ranks", "fail")["observed"])

    def ssh(self):
        """An ssh that enters the host."""
        tool = self.dir / "bin"
        tool.mkdir(exist_ok=True)
        script = tool / "ssh"
        enter = " ".join(self.hosts.command('"$host"', "sh", "-c", '"$*"'))
        script.write_text("#!/bin/sh\nwhile :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done\n"
                          f"host=$1\nshift\nexec {enter}\n")
        script.chmod(0o755)
        return tool

    def over_ssh(self, name, hosts, *args):
        listed = self.dir / f"{name}.hosts"
        listed.write_text(hosts)
        return self.start(self.command(name, "--hosts", str(listed), *args), {"PATH": f"{self.ssh()}:{os.environ['PATH']}"})

    def test_over_ssh(self):
        self.healthy(self.over_ssh("ssh", "shk1\nshk2 slots=2 # two here\nshk3\n"), "--hosts, over ssh", "ssh", ranks=4)

    def test_over_ssh_missing(self):
        code, report = self.report(self.over_ssh("ssh-missing", "shk1\nshk2\nshk9\n"))
        self.assertEqual(code, 1)
        row = self.row(report, "ranks", "fail")
        self.assertEqual(row["nodes"], ["shk9"])
        self.assertIn("rank 2 on shk9: it never came", row["observed"])

    def mpiexec(self, name, *args, wrap=None):
        if not self.hydra:
            self.skipTest("no Hydra (mpiexec of MPICH) here")
        command = self.command(name)
        if wrap:
            command = ["sh", "-c", wrap + '\nexec "$@"', "sh", *command]
        # in the network of the login host, with the processes of this machine: its ssh enters the hosts
        return self.start(["nsenter", f"--net={self.hosts.net('ctl')}", "env", f"PATH={self.ssh()}:{os.environ['PATH']}",
                           self.hydra, "-launcher", "ssh", "-localhost", "10.77.1.254", "-hosts", ",".join(NAMES), *args,
                           "env", "-u", "LD_LIBRARY_PATH", *command])

    def test_hydra(self):
        for name, args in (("hydra", ()), ("hydra-port", ("-pmi-port",))):
            with self.subTest(name):
                self.healthy(self.mpiexec(name, *args, "-n", "3", "-ppn", "1"), "PMI", "PMI")


if __name__ == "__main__":
    main()
