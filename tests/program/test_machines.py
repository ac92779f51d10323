"""Made-up machines (tests/tools/machine.py) and topologies of real ones: the matrix of each against
an expected one, no finding on a healthy machine, exactly the one that fits on a broken one.
SHAKEDOWN_BLESS=1 writes the expected matrices."""
import difflib, os, pathlib, sys, unittest
from support import SOURCE, Case, main, run

sys.path[:0] = [str(SOURCE / "tests" / "tools"), str(SOURCE / "tests" / "golden")]
import machine  # noqa: E402
from matrix import matrix  # noqa: E402

EXPECTED = SOURCE / "tests" / "golden" / "matrices"
SHARED = pathlib.Path(os.environ.get("SHAKEDOWN_TOPOLOGIES", SOURCE.parent / "shared" / "topologies"))

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


@unittest.skipUnless(SHARED.is_dir(), f"{SHARED} is not here")
class Topologies(Machines):
    """XML files of hwloc from real machines; they belong to others and are not in this repository."""

    def tree(self, name):
        tree = self.scratch() / "t"
        (tree / ".shakedown").mkdir(parents=True)
        (tree / ".shakedown" / "topology.xml").write_bytes((SHARED / name).read_bytes())
        return tree

    def test_healthy(self):
        files = [f for f in sorted(SHARED.glob("*.xml")) if not f.name.startswith("nccl-")]
        self.assertGreater(len(files), 5)
        for file in files:
            with self.subTest(file.name):
                report = self.look(self.tree(file.name))
                self.assertEqual(judged(report, ("warn", "fail")), [])
                facts = report["nodes"][0]["facts"]
                self.assertEqual(facts["topology.gpus"]["state"], "present", file.name)
                self.same(file.stem, matrix(facts))

    def test_gpus_of_a_newer_hwloc(self):
        facts = self.look(self.tree("nvidiaDGX2.xml"))["nodes"][0]["facts"]
        self.assertEqual(len(facts["topology.gpus"]["value"]), 16)

    def test_broken(self):
        """A file for another instance type, on a machine that it does not describe."""
        for name in ("nccl-p4d-24xl-topo.xml", "nccl-g5.48xl-topo.xml"):
            tree = self.scratch() / "m"
            made = machine.build("dgx-h100")
            made.env["NCCL_TOPO_FILE"] = "/opt/topo.xml"
            made.files["/opt/topo.xml"] = (SHARED / name).read_bytes()
            made.write(tree)
            self.assertEqual(judged(self.look(tree, made.profile), ("warn", "fail")),
                             ["topology.file"], name)

    def test_unprivileged_claims_nothing(self):
        """Only an XML file: everything else of the machine was not seen and is not judged."""
        for name in ("eas-tioga.xml", "cts1-quartz-smt1.xml", "g4dnmetal.xml"):
            self.assertEqual(judged(self.look(self.tree(name)), ("fail",)), [], name)

    def test_tioga(self):
        """Two dies share the NIC that sits with them."""
        report = self.look(self.tree("eas-tioga.xml"))
        facts = report["nodes"][0]["facts"]
        names = {n["pci"]: n["name"] for n in facts["topology.nics"]["value"]}
        rail = {g["pci"][5:7]: names[g["nic"]] for g in facts["topology.gpus"]["value"]}
        self.assertEqual(rail, {"c1": "hsi0", "c6": "hsi0", "c9": "hsi1", "ce": "hsi1",
                                "d1": "hsi2", "d6": "hsi2", "d9": "hsi3", "de": "hsi3"})


if __name__ == "__main__":
    main()
