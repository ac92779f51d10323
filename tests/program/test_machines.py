"""Made-up machines (tests/tools/machine.py): the matrix of each against an expected one, no finding on a healthy
machine, exactly the one that fits on a broken one, and the same places from the topology alone.
SHAKEDOWN_BLESS=1 writes the expected matrices."""
import difflib, os, sys
from support import SOURCE, Case, main, run

sys.path[:0] = [str(SOURCE / "tests" / "tools"), str(SOURCE / "tests" / "golden")]
import machine  # noqa: E402
from matrix import matrix  # noqa: E402

EXPECTED = SOURCE / "tests" / "golden" / "matrices"

# What the machine itself decides; variables, plugins and libraries have tests of their own.
MINE = ("kernel.", "pci.", "gpu.", "topology.", "limits.", "shm.", "nic.", "devices.")


def judged(report, verdicts):
    return sorted({f["id"] for f in report["findings"]
                   if f["id"].startswith(MINE) and f["verdict"] in verdicts})


class Machines(Case):
    maxDiff = None

    def look(self, tree, profile="single-node", env=None):
        p = run("--sysroot", tree, "--quick", "--profile", profile, "--format", "json", env=env)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        return self.json_of(p)

    def judge(self, name):
        tree = self.scratch() / "m"
        made = machine.build(name)
        made.write(tree)
        return self.look(tree, made.profile)

    def same(self, name, text):
        path = EXPECTED / f"{name}.txt"
        if os.environ.get("SHAKEDOWN_BLESS") == "1":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        want = path.read_text(encoding="utf-8")
        self.assertEqual(want, text, "".join(difflib.unified_diff(
            want.splitlines(True), text.splitlines(True), f"{name}.txt", "now")))

    def test_healthy(self):
        for shape in machine.SHAPES:
            with self.subTest(shape):
                report = self.judge(shape)
                self.assertEqual(judged(report, ("warn", "fail")), [])
                self.same(shape, matrix(report["nodes"][0]["facts"]))

    def test_broken(self):
        """Each variant on the first and the last shape that it makes sense for."""
        for variant, (_, check, verdicts, _) in machine.VARIANTS.items():
            shapes = [s for s in machine.SHAPES if variant in machine.variants_of(s)]
            self.assertTrue(shapes, variant)
            for shape in dict.fromkeys((shapes[0], shapes[-1])):
                with self.subTest(f"{shape}+{variant}"):
                    report = self.judge(f"{shape}+{variant}")
                    found = judged(report, ("warn", "fail"))
                    self.assertEqual(found, [] if verdicts == ("unknown",) else [check])
                    rows = [f["verdict"] for f in report["findings"] if f["id"] == check]
                    self.assertTrue(set(rows) & set(verdicts), rows)

    def test_unprivileged_claims_nothing(self):
        """Without root the switches cannot be looked at: unknown, with the reason, and no pass."""
        report = self.judge("dgx-h100+unprivileged")
        row = self.finding(report, "pcie-acs", "unknown")
        self.assertIn("root", row["why"])
        report = self.judge("dgx-h100+unprivileged+acs-on")
        self.finding(report, "pcie-acs", "unknown")


# NCCL_TOPO_FILE of a machine with two GPUs at other places.
FOREIGN = """<system version="1">
  <cpu numaid="0" affinity="00000000,0000ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:e8:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    <pci busid="0000:e9:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
  </cpu>
</system>
"""


class Topologies(Case):
    """hwloc's XML alone, as `shakedown probe` keeps it: it gives the places that the machine itself gives."""

    def facts(self, tree):
        p = run("probe", "--sysroot", tree)
        self.assertEqual(p.returncode, 0, p.stderr)
        return self.json_of(p)["facts"]

    def both(self, name):
        """Facts of a made-up machine, and those of a tree with nothing but its topology in XML."""
        made, tree = self.scratch() / "m", self.scratch() / "t"
        machine.build(name).write(made)
        whole = self.facts(made)
        (tree / ".shakedown").mkdir(parents=True)
        (tree / ".shakedown" / "topology.xml").write_text(whole["topology.xml"]["value"])
        return whole, tree

    def test_places(self):
        for name in machine.SHAPES:
            with self.subTest(name):
                whole, tree = self.both(name)
                alone = self.facts(tree)
                for key in ("topology.gpus", "topology.gpu_nic", "topology.peers"):
                    self.assertEqual(alone[key]["state"], whole[key]["state"], key)
                where = [[(g["pci"], g["numa"], g["class"]) for g in f["topology.gpus"].get("value") or []]
                         for f in (whole, alone)]
                self.assertEqual(*where)

    def test_nothing_else_is_judged(self):
        """Everything else of the machine was not seen."""
        for name in ("lumi-g", "cpu-only", "g4dn"):
            p = run("--sysroot", self.both(name)[1], "--quick", "--profile", "single-node", "--format", "json")
            self.assertIn(p.returncode, (0, 1), p.stderr)
            self.assertEqual(judged(self.json_of(p), ("fail",)), [], name)

    def test_a_file_for_another_machine(self):
        tree = self.scratch() / "m"
        made = machine.build("dgx-h100")
        made.env["NCCL_TOPO_FILE"] = "/opt/topo.xml"
        made.files["/opt/topo.xml"] = FOREIGN.encode()
        made.write(tree)
        p = run("--sysroot", tree, "--quick", "--profile", made.profile, "--format", "json")
        self.assertEqual(judged(self.json_of(p), ("warn", "fail")), ["topology.file"])


if __name__ == "__main__":
    main()
