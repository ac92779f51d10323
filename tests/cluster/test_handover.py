"""How a job goes on after shakedown, as the documents and config/slurm say: their lines are run on four hosts of a
real Slurm, one of which has no libfabric. What counts is where the program ran and with how many ranks.
Usage: test_handover.py BINARY SOURCE"""
import os, pathlib, re, shutil, subprocess, sys, time, unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from hosts import Hosts, environment, main  # noqa: E402
BINARY, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
EXAMPLES = SOURCE / "config" / "slurm"
BAD = "shk2"
# Where libfabric is needed, whatever adapters these hosts have.
PROFILE = '''name: test-site
title: Hosts with libfabric
providers: [tcp]
plugin: none
gpu: any
source: "man fi_tcp(7)"
'''
SHAKEDOWN = '''#!/bin/sh
[ ! -s "{dir}/exit" ] || exit "$(cat "{dir}/exit")"
exec "{binary}" "$@" --profile "{dir}/site.yaml"
'''
PROGRAM = '''#!/bin/sh
echo "$(hostname) $SLURM_PROCID $SLURM_NTASKS $*" >>ran
'''


def blocks(path):
    """The blocks of code in a document."""
    return re.findall(r"^```(?:sh|text)\n(.*?)^```$", path.read_text(), re.M | re.S)


class Handover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(4, BINARY.parent, SOURCE)
        cls.addClassCleanup(cls.hosts.down)
        cls.dir = cls.hosts.dir
        cls.bin = cls.dir / "bin"
        cls.bin.mkdir()
        (cls.dir / "site.yaml").write_text(PROFILE)
        cls.script("shakedown", SHAKEDOWN.format(dir=cls.dir, binary=BINARY))
        cls.hosts.on(BAD, "sh", "-c", "ldconfig -p | sed -n 's/.*libfabric.so.1 .*=> //p' | while read -r file; do "
                     'mount --bind /dev/null "$(readlink -f "$file")"; done')

    @classmethod
    def script(cls, name, text):
        path = cls.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def setUp(self):
        self.job = self.dir / self._testMethodName
        self.job.mkdir()
        for name in ("train", "program"):
            (self.job / name).write_text(PROGRAM)
            (self.job / name).chmod(0o755)
        (self.dir / "exit").write_text("")

    def slurm(self, *command, check=True):
        env = environment()
        env["PATH"] = f"{self.bin}:{env['PATH']}"
        return subprocess.run(self.hosts.run(*command), cwd=self.job, env=env, capture_output=True, text=True, timeout=80,
                              check=check)

    def sbatch(self, *args):
        """The exit code of the job, and what it printed."""
        job = self.slurm("sbatch", "--parsable", "-o", "out", *args).stdout.strip()
        code = self.end_of(job)
        return code, (self.job / "out").read_text()

    def until(self, job, done):
        """What scontrol tells of a job when that is so; sbatch --wait would look only every few seconds."""
        limit = time.monotonic() + 80
        while time.monotonic() < limit:
            told = dict(re.findall(r"(\w+)=(\S+)", self.slurm("scontrol", "show", "job", job).stdout))
            if done(told):
                return told
            time.sleep(0.2)
        self.fail(f"job {job}: {told}")

    def end_of(self, job):
        """Its exit code."""
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        return int(self.until(job, lambda told: told["JobState"] in ends)["ExitCode"].split(":")[0])

    def ran(self):
        """{host: ranks} of the program; each rank once, and all of one step."""
        path = self.job / "ran"
        rows = [line.split(None, 3) for line in path.read_text().splitlines()] if path.exists() else []
        self.assertEqual(sorted(int(r[1]) for r in rows), list(range(len(rows))))
        self.assertEqual({int(r[2]) for r in rows} - {len(rows)}, set())
        return {host: sum(r[0] == host for r in rows) for host in {r[0] for r in rows}}

    def document(self, name, start):
        """The lines of a document from `start` on are a job script."""
        found = [b for b in blocks(SOURCE / name) if b.startswith(start)]
        self.assertEqual(len(found), 1, name)
        (self.job / "job.sh").write_text("#!/bin/bash\n" + found[0])
        return self.sbatch("-N4", "--ntasks-per-node=2", "job.sh")

    def test_lines_of_the_readme(self):
        code, out = self.document("README.md", "#SBATCH")
        self.assertEqual((code, self.ran()), (0, {"shk1": 2, "shk3": 2, "shk4": 2}), out)
        self.assertIn(BAD, (self.job / "preflight.md").read_text())

    def test_lines_of_the_document(self):
        code, out = self.document("docs/slurm.md", "rm -f good\n")
        self.assertEqual((code, self.ran()), (0, {"shk1": 2, "shk3": 2, "shk4": 2}), out)

    def test_lines_without_a_list(self):
        (self.dir / "exit").write_text("4")
        (self.job / "good").write_text("shk[1-4]\n")  # of an earlier job
        code, out = self.document("docs/slurm.md", "rm -f good\n")
        self.assertEqual((code, self.ran()), (1, {}), out)

    def test_exclude_in_another_job(self):
        line, = [b for b in blocks(SOURCE / "docs/slurm.md") if b.startswith("sbatch --exclude=")]
        (self.job / "job.sh").write_text("#!/bin/sh\nexec srun ./program\n")
        for bad, hosts in ((BAD, {"shk1", "shk3", "shk4"}), ("", {"shk1", "shk2", "shk3", "shk4"})):
            (self.job / "bad").write_text(f"{bad}\n" if bad else "")
            (self.job / "ran").unlink(missing_ok=True)
            p = self.slurm("bash", "-c", line.replace("sbatch ", f"sbatch -N{len(hosts)} "))
            self.assertEqual(self.end_of(re.search(r"job (\d+)", p.stdout)[1]), 0)
            self.assertEqual(self.ran(), {h: 1 for h in hosts})

    def test_preflight_with_a_spare(self):
        code, out = self.sbatch("-N4", "--ntasks-per-node=2", EXAMPLES / "preflight.sbatch", "2", "./train", "--lr", "0 1")
        self.assertEqual((code, self.ran()), (0, {"shk1": 2, "shk3": 2}), out)
        self.assertIn("--lr 0 1", (self.job / "ran").read_text())
        self.assertIn(f"left out: {BAD}", out)

    def test_preflight_with_too_few(self):
        code, out = self.sbatch("-N3", "-x", "shk4", EXAMPLES / "preflight.sbatch", "3", "./train")
        self.assertEqual((code, self.ran()), (1, {}), out)
        self.assertIn("fewer than 3 healthy nodes: shk[1,3];", out)

    def test_preflight_that_cannot_tell(self):
        for exit_code in (2, 3, 4):
            with self.subTest(exit_code):
                (self.dir / "exit").write_text(str(exit_code))
                code, out = self.sbatch("-N2", EXAMPLES / "preflight.sbatch", "1", "./train")
                self.assertEqual((code, self.ran()), (exit_code, {}), out)
                self.assertIn("not started: ./train", out)

    def reason(self, host):
        """Why a node is drained; None when it is not."""
        state, reason = self.slurm("sinfo", "-h", "-n", host, "-o", "%T|%E").stdout.strip().split("|", 1)
        return reason if "drain" in state else None

    def resume(self, host):
        if self.reason(host) is not None:
            self.slurm("scontrol", "update", f"NodeName={host}", "State=RESUME")

    def example_on(self, host, *command, code, **setting):
        self.addCleanup(self.resume, host)
        env = {**environment(), "SLURM_CONF": f"{self.hosts.state}/slurm.conf", **setting}
        env["PATH"] = f"{self.bin}:{env['PATH']}"
        p = subprocess.run(self.hosts.command(host, *command), env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, code, p.stderr)

    CAUSE = r"^shakedown: [a-z.-]+: libfabric .*libfabric\.so\.1.* not found"

    def drains(self, *command, code):
        """On the bad host it drains with the cause; not on a good one, nor when shakedown could not tell."""
        self.example_on("shk1", *command, code=0)
        self.assertIsNone(self.reason("shk1"))
        # a fault of how the program was started
        self.example_on("shk1", *command, code=0, FI_PROVIDER="cxi")
        self.assertIsNone(self.reason("shk1"))
        (self.dir / "exit").write_text("3")
        self.example_on(BAD, *command, code=0)
        self.assertIsNone(self.reason(BAD))
        (self.dir / "exit").write_text("")
        self.example_on(BAD, *command, code=code)
        self.assertRegex(self.reason(BAD) or "", self.CAUSE)

    def test_health_check(self):
        self.drains("sh", EXAMPLES / "healthcheck.sh", code=0)
        self.slurm("scontrol", "update", f"NodeName={BAD}", "State=DRAIN", "Reason=disk")
        self.example_on(BAD, "sh", EXAMPLES / "healthcheck.sh", code=0)
        self.assertEqual(self.reason(BAD), "disk", "an administrator's reason stays")

    def test_node_health_check(self):
        """Without NHC itself: what it does with a line and with die(), which takes the node offline."""
        line, = [l for l in (EXAMPLES / "nhc.conf").read_text().splitlines() if l.strip() and l[0] != "#"]
        target, check = line.split("||")
        self.assertEqual(target.strip(), "*")
        nhc = self.script("nhc", f'''#!/bin/bash
die() {{ scontrol update "NodeName=$(hostname)" State=DRAIN "Reason=$2"; exit "$1"; }}
. "{EXAMPLES}/shakedown.nhc"
{check}
''')
        with unittest.mock.patch.object(type(self), "CAUSE", self.CAUSE.replace("shakedown:", "check_shakedown: ")):
            self.drains(nhc, code=1)

    def test_real_node_health_check(self):
        """With NHC itself, where it is installed, or its source is in NHC_SOURCE."""
        source = os.environ.get("NHC_SOURCE")
        nhc = pathlib.Path(source, "nhc") if source else shutil.which("nhc")
        if not nhc:
            self.skipTest("no nhc; NHC_SOURCE can name its source")
        helpers = pathlib.Path(source, "helpers") if source else pathlib.Path("/usr/libexec/nhc")
        conf = self.dir / "nhc.d"
        shutil.copytree(pathlib.Path(source or "/etc/nhc", "scripts"), conf / "scripts")
        shutil.copy(EXAMPLES / "shakedown.nhc", conf / "scripts")
        (conf / "nhc.conf").write_text(f' * || export PATH="{self.bin}:$PATH"\n' + (EXAMPLES / "nhc.conf").read_text())
        run = ("bash", nhc, "-c", conf / "nhc.conf", f"CONFDIR={conf}", f"HELPERDIR={helpers}", "NHC_RM=slurm",
               f"LOGFILE=>>{conf}/log")
        with unittest.mock.patch.object(type(self), "CAUSE", self.CAUSE.replace("shakedown:", "NHC: check_shakedown: ")):
            self.drains(*run, code=1)

    def test_prolog(self):
        """As slurmd runs it: the job that comes to the bad host goes elsewhere, and the host tells why."""
        self.addCleanup(self.resume, BAD)
        prolog = self.hosts.state / "prolog"
        self.addCleanup(prolog.write_text, prolog.read_text())
        prolog.write_text(f'#!/bin/sh\nPATH={self.bin}:$PATH\n. "{EXAMPLES}/prolog.sh"\n')
        (self.job / "job.sh").write_text("#!/bin/sh\nexec srun ./program\n")
        for host in ("shk1", "shk3"):
            self.slurm("scontrol", "update", f"NodeName={host}", "State=DRAIN", "Reason=test")
            self.addCleanup(self.resume, host)
        job = self.slurm("sbatch", "--parsable", "--requeue", "-N1", "-o", "out", "job.sh").stdout.strip()
        told = self.until(job, lambda told: told["Restarts"] == "1" and told["JobState"] != "COMPLETING")  # shk2 comes before shk4
        self.assertEqual((told["JobState"], self.ran()), ("PENDING", {}), told)
        self.assertNotIn("held", told["Reason"])
        self.slurm("scancel", job)  # Slurm tries again after two minutes
        self.assertRegex(self.reason(BAD) or "", self.CAUSE)
        code, out = self.sbatch("-N1", "job.sh")
        self.assertEqual((code, self.ran()), (0, {"shk4": 1}), out)
        self.assertIsNone(self.reason("shk4"))


if __name__ == "__main__":
    main()
