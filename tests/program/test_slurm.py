"""The examples for Slurm (config/slurm), each with stand-ins for the commands that it calls: what they do when
nodes are healthy, when some fail, and when shakedown itself does not work."""
import configparser, os, shlex, shutil, subprocess, sys, types, unittest.mock
from support import BASE_ENV, BINARY, SOURCE, Case, main, run

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

    LINE = "FAIL n1: memlock-too-low: RLIMIT_MEMLOCK 64 KiB: registration fails, +1 more"
    REASON = "Reason=shakedown: memlock-too-low: RLIMIT_MEMLOCK 64 KiB: registration fails, +1 more"
    # What shakedown says, its exit code, and whether the node is drained: only for a fault that is the node's.
    OUTCOMES = (("PASS n1: 10 passed\n\n", 0, False), ("UNKNOWN n1: limits: not readable\n\n", 3, False),
                ("", 2, False), ("", 4, False), ("", 124, False), ("", 127, False), ("", 137, False),
                (LINE.replace("FAIL", "UNKNOWN") + "\n", 3, False),
                (LINE + "\n\n", 1, False),  # a fault of how the job was started: no bad node
                (LINE + "\n", 1, False), (LINE + "\nn1\n", 1, True))

    def drains(self, example, failing, **env):
        for text, code, drained in self.OUTCOMES:
            with self.subTest(shakedown=code, said=text):
                (self.dir / "scontrol.calls").unlink(missing_ok=True)
                self.command("shakedown", f"printf '%b' {shlex.quote(text)}; exit {code}")
                p = self.example(example, **env)
                self.assertEqual(p.returncode, failing if drained else 0, p.stderr)
                updates = [c for c in self.calls("scontrol") if "State=DRAIN" in c]
                self.assertEqual(len(updates), drained)
                for update in updates:
                    self.assertIn(self.REASON, update)
        self.assertTrue(all("--quick" in c for c in self.calls("shakedown")))

    def test_prolog(self):
        self.command("scontrol", "")
        self.command("logger", "")
        self.drains("prolog.sh", 1, SLURMD_NODENAME="n1")
        self.assertEqual(self.calls("scontrol"), [f"update NodeName=n1 State=DRAIN {self.REASON}"])

    def test_epilog(self):
        self.command("scontrol", "[ $1 != show ] || echo 'NodeName=n1 State=IDLE Reason=x'")
        self.command("logger", "")
        self.REASON = self.REASON.replace("shakedown:", "shakedown after job 17:")
        self.drains("epilog.sh", 0, SLURMD_NODENAME="n1", SLURM_JOB_ID="17")
        (self.dir / "scontrol.calls").unlink()
        self.command("scontrol", "[ $1 != show ] || echo 'NodeName=n1 State=IDLE+DRAIN Reason=x'")
        self.assertEqual(self.example("epilog.sh", SLURMD_NODENAME="n1").returncode, 0)
        self.assertEqual(self.calls("scontrol"), ["show node n1"])

    def test_timer(self):
        """Exit codes that stand in the file are no failure of the unit; the command line is one that the program takes."""
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read([EXAMPLES / "shakedown.service", EXAMPLES / "shakedown.timer"])
        self.assertEqual(unit["Service"]["SuccessExitStatus"].split(), ["1", "3"])
        words = shlex.split(unit["Service"]["ExecStart"])
        out = self.dir / "shakedown.prom"
        self.assertTrue(words[-1].endswith("/shakedown.prom"))
        p = run(*words[1:-1], out)
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        self.assertIn("shakedown_verdict{", out.read_text())
        if shutil.which("systemd-analyze"):
            for name in ("shakedown.service", "shakedown.timer"):
                (self.dir / name).write_text((EXAMPLES / name).read_text().replace("/usr/bin/shakedown", "/bin/true"))
            p = subprocess.run(["systemd-analyze", "verify", "--man=no", self.dir / "shakedown.timer", self.dir / "shakedown.service"],
                               capture_output=True, text=True, timeout=60)
            self.assertNotIn("shakedown.", p.stderr)

    def test_reframe(self):
        """Its judgement and its figure on a real report, with stand-ins for what ReFrame is asked for."""
        stand_in = types.ModuleType("reframe")
        same = lambda *_: lambda f: f
        stand_in.simple_test = lambda c: c
        stand_in.RunOnlyRegressionTest = type("Base", (), {"stagedir": str(self.dir), "num_tasks_per_node": 2})
        sanity = types.ModuleType("reframe.utility.sanity")
        sanity.assert_ne = lambda a, b, msg: (a != b, msg)
        utility = types.ModuleType("reframe.utility")
        utility.sanity, stand_in.utility = sanity, utility
        names = {"variable": lambda *_, value: value, "run_before": same, "sanity_function": lambda f: f, "performance_function": same}
        with unittest.mock.patch.dict(sys.modules, {"reframe": stand_in, "reframe.utility": utility, "reframe.utility.sanity": sanity}):
            exec(compile((EXAMPLES / "reframe_shakedown.py").read_text(), "reframe_shakedown.py", "exec"), names)
        test = names["Shakedown"]()
        p = run(*test.executable_opts[:1], self.dir / "report.json", "--ranks", "2", "--sizes", "4:64K")
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertEqual(test.nothing_failed()[0], p.returncode == 0)
        self.assertGreater(test.busbw(), 0)
        test.set_tasks()
        self.assertEqual(test.num_tasks, 2)

    def test_reframe_itself(self):
        """The same, under ReFrame: a run that is well has a figure, one that is not says the cause."""
        reframe = shutil.which("reframe")
        if not reframe:
            self.skipTest("reframe is not in PATH (PyPI: ReFrame-HPC)")
        (self.bin / "shakedown").symlink_to(BINARY)
        for env, code, said in (({}, 0, r"P: busbw: [0-9.]+ GB/s"),
                                ({"NCCL_SOCKET_IFNAME": "nope7"}, 1, "Reason: sanity error: The interface in NCCL_SOCKET_IFNAME")):
            with self.subTest(env=env):
                p = subprocess.run([reframe, "-c", EXAMPLES / "reframe_shakedown.py", "--prefix", self.dir, "--report-file",
                                    self.dir / "rfm.json", "-r", "-S", "num_nodes=1"], cwd=self.dir, capture_output=True, text=True,
                                   timeout=240, env={**BASE_ENV, "HOME": str(self.dir), "PYTHONDONTWRITEBYTECODE": "1",
                                        "PATH": f"{self.bin}:{os.environ['PATH']}", **env})
                self.assertEqual(p.returncode, code, p.stdout[-3000:] + p.stderr[-1000:])
                self.assertRegex(p.stdout, said)

    def test_health_check(self):
        self.command("scontrol", "[ $1 != show ] || echo 'NodeName=n1 State=IDLE Reason=x'")
        self.drains("healthcheck.sh", 0)

    def test_health_check_keeps_a_reason(self):
        self.command("shakedown", f"printf '{self.LINE}\\nn1\\n'; exit 1")
        for state, drained in (("IDLE+DRAIN", 0), ("MIXED+DRAIN", 0), ("IDLE", 1)):
            (self.dir / "scontrol.calls").unlink(missing_ok=True)
            self.command("scontrol", f"[ $1 != show ] || echo '   State={state} ThreadsPerCore=1'")
            self.example("healthcheck.sh")
            self.assertEqual(sum("State=DRAIN" in c for c in self.calls("scontrol")), drained, state)

    def test_node_health_check(self):
        """A line of nhc.conf is TARGET || CHECK; NHC sources scripts/*.nhc and takes a node offline in die()."""
        lines = [l for l in (EXAMPLES / "nhc.conf").read_text().splitlines() if l.strip() and not l.startswith("#")]
        self.assertEqual(len(lines), 1)
        target, check = (part.strip() for part in lines[0].split("||"))
        self.assertEqual(target, "*")
        nhc = self.dir / "nhc"
        nhc.write_text(f'die() {{ scontrol State=DRAIN "Reason=$2"; exit "$1"; }}\n. "{EXAMPLES}/shakedown.nhc"\n{check}\n')
        self.command("scontrol", "")
        self.REASON = self.REASON.replace("shakedown:", "check_shakedown: ")
        self.drains(nhc, 1)

    def test_node_health_check_quotes(self):
        """NHC evaluates the reason between single quotes: none comes out of a report."""
        self.command("shakedown", "echo \"FAIL n1: cause: it is 'x'; touch $PWD/hacked; ''\"; echo n1; exit 1")
        nhc = self.dir / "nhc"
        nhc.write_text(f"""die() {{ eval echo "'$2'"; exit "$1"; }}\n. "{EXAMPLES}/shakedown.nhc"\ncheck_shakedown 20\n""")
        p = self.example(nhc)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("cause: it is x; touch", p.stdout)
        self.assertFalse((self.dir / "hacked").exists())

    def preflight(self, need, good, bad, code, **env):
        """Lists that are None are not written."""
        write = "".join(f'case $1 in --{name}-nodes) printf "{nodes}" >"$2" ;; esac\n'
                        for name, nodes in (("healthy", good), ("bad", bad)) if nodes is not None)
        self.command("srun", f'''case " $* " in
*" shakedown run "*)
    while [ $# -gt 0 ]; do
        {write or ":"}
        shift
    done
    exit {code} ;;
esac''')
        self.command("scontrol", '[ -z "$3" ] || tr , "\\n" <<<"$3"')
        (self.dir / "srun.calls").unlink(missing_ok=True)
        return self.example("preflight.sbatch", str(need), "./train", "--lr", "0.1", SLURM_JOB_ID="7", **env)

    def test_preflight(self):
        for tasks in (1, 8):
            p = self.preflight(2, "n1,n3,n4\n", "n2\n", 1, SLURM_NTASKS_PER_NODE=str(tasks))
            self.assertEqual(p.returncode, 0, p.stderr)
            vet, program = self.calls("srun")
            self.assertIn("--mpi=pmix", vet)
            self.assertIn(f"-N2 -n{2 * tasks} --ntasks-per-node={tasks} --nodelist=n1,n3 ./train --lr 0.1", program)
            self.assertIn("left out: n2", p.stderr)

    def test_preflight_with_too_few_healthy_nodes(self):
        p = self.preflight(2, "n1\n", "n2,n3\n", 1)
        self.assertEqual(p.returncode, 1)
        self.assertIn("fewer than 2 healthy nodes", p.stderr)
        self.assertEqual(len(self.calls("srun")), 1)

    def test_preflight_starts_nothing_without_a_list(self):
        for code in (0, 1, 2, 3, 4, 127, 137):
            for good in (None, "", "n1,n2\n") if code > 1 else (None, ""):
                with self.subTest(shakedown=code, good=good):
                    (self.dir / "shakedown.7.good").write_text("n1,n2\n")  # of the job before a requeue
                    p = self.preflight(2, good, None, code)
                    self.assertEqual(p.returncode, code or 1, p.stderr)
                    self.assertIn("not started: ./train --lr 0.1", p.stderr)
                    self.assertEqual(len(self.calls("srun")), 1)



main()
