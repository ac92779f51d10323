"""The examples for Slurm (config/slurm), each with stand-ins for the commands that it calls: what they do when
nodes are healthy, when some fail, and when shakedown itself does not work."""
import os, re, shutil, subprocess
from support import BASE_ENV, SOURCE, Case, main

EXAMPLES = SOURCE / "config" / "slurm"


class Slurm(Case):
    def setUp(self):
        self.dir = self.scratch()
        self.bin = self.dir / "bin"
        self.bin.mkdir()

    def command(self, name, body):
        """A stand-in that notes its arguments, one call a line, in NAME.calls."""
        path = self.bin / name
        path.write_text(f'#!/bin/bash\necho "$@" >>"{self.dir}/{name}.calls"\n{body}\n')
        path.chmod(0o755)

    def calls(self, name):
        path = self.dir / f"{name}.calls"
        return path.read_text().splitlines() if path.exists() else []

    def example(self, name, *args, **env):
        return subprocess.run(["bash", EXAMPLES / name, *args], cwd=self.dir, capture_output=True, text=True, timeout=60,
                              env={**BASE_ENV, "PATH": f"{self.bin}:{os.environ['PATH']}", **env})

    def test_prolog(self):
        for code, verdict in ((0, 0), (1, 1), (2, 0), (4, 0), (137, 0)):
            with self.subTest(shakedown=code):
                self.command("shakedown", f"echo '| FAIL | memlock |'; exit {code}")
                self.command("logger", "")
                p = self.example("prolog.sh")
                self.assertEqual(p.returncode, verdict, p.stderr)
        self.assertEqual(len(self.calls("logger")), 1)
        self.assertTrue(all("--quick" in c for c in self.calls("shakedown")))

    def test_health_check(self):
        self.command("scontrol", "")
        for code, drained in ((0, 0), (2, 0), (1, 1)):
            self.command("shakedown", f"echo '| **FAIL** | memlock | 64 KiB |'; exit {code}")
            p = self.example("healthcheck.sh")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(len(self.calls("scontrol")), drained, f"exit {code}")
        self.assertRegex(self.calls("scontrol")[0], r"update NodeName=\S+ State=DRAIN Reason=shakedown: .*memlock.*64 KiB")

    def test_node_health_check(self):
        """A line of nhc.conf: TARGET || check_cmd_status -t SECONDS -r CODE COMMAND; NHC runs the command itself."""
        lines = [l for l in (EXAMPLES / "nhc.conf").read_text().splitlines() if l.strip() and not l.startswith("#")]
        self.assertEqual(len(lines), 1)
        found = re.fullmatch(r"\s*\* \|\| check_cmd_status -t (\d+) -r 0 (shakedown .*)", lines[0])
        self.assertIsNotNone(found, lines[0])
        self.assertIn("--quick", found[2])
        self.command("shakedown", "exit 1")
        p = subprocess.run(found[2], shell=True, env={"PATH": f"{self.bin}:{os.environ['PATH']}"})
        self.assertEqual(p.returncode, 1)

    def preflight(self, need, good, bad, code):
        self.command("srun", f'''case " $* " in
*" shakedown run "*)
    while [ $# -gt 0 ]; do
        case $1 in --healthy-nodes) echo "{good}" >"$2" ;; --bad-nodes) echo "{bad}" >"$2" ;; esac
        shift
    done
    exit {code} ;;
esac''')
        self.command("scontrol", '[ -z "$3" ] || tr , "\\n" <<<"$3"')
        return self.example("preflight.sbatch", str(need), "./train", "--lr", "0.1", SLURM_JOB_ID="7")

    def test_preflight(self):
        p = self.preflight(2, "n1,n3,n4", "n2", 1)
        self.assertEqual(p.returncode, 0, p.stderr)
        vet, program = self.calls("srun")
        self.assertIn("--mpi=pmix", vet)
        self.assertIn("--nodelist=n1,n3 ./train --lr 0.1", program)
        self.assertIn("left out: n2", p.stderr)

    def test_preflight_with_too_few_healthy_nodes(self):
        p = self.preflight(2, "n1", "n2,n3", 1)
        self.assertEqual(p.returncode, 1)
        self.assertIn("fewer than 2 healthy nodes", p.stderr)
        self.assertEqual(len(self.calls("srun")), 1)

    def test_preflight_when_shakedown_does_not_work(self):
        p = self.preflight(2, "", "", 4)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("-N2 ./train --lr 0.1", self.calls("srun")[1])


main()
