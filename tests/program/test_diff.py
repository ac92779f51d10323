"""shakedown diff: two nodes, before and after, folders, reports; exit codes as diff(1) has them."""
import json

import jsonschema

from support import CAPTURES, Case, SOURCE, main, run


class Diff(Case):
    def setUp(self):
        self.dir = self.scratch()
        self.a = self.dir / "a.json"
        run("probe", "--sysroot", CAPTURES / "slingshot-amd", "-o", self.a)
        self.facts = json.loads(self.a.read_text())

    def changed(self, name="b.json", **facts):
        """A copy of the facts with other values; None takes the fact out."""
        doc = json.loads(self.a.read_text())
        for key, value in facts.items():
            if value is None:
                del doc["facts"][key]
            else:
                doc["facts"][key] = value
        path = self.dir / name
        path.write_text(json.dumps(doc))
        return path

    def paths(self, *args, code=1):
        p = run("diff", *args, "--format", "json")
        self.assertEqual(p.returncode, code, p.stderr)
        doc = json.loads(p.stdout)
        schema = json.loads((SOURCE / "reports/schema/diff-1.schema.json").read_text())
        facts = json.loads((SOURCE / "reports/schema/facts-1.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(doc)
        self.assertTrue(facts)
        return doc, [row["path"] for row in doc["differences"]]

    def test_the_same(self):
        p = run("diff", self.a, self.a)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("0 differences", p.stdout)

    def test_reports_of_every_release(self):
        """A report is as good as the facts in it, whatever its schema."""
        old = SOURCE / "tests/golden/facts/report-1.json"
        new, nodes = self.dir / "new.json", self.dir / "nodes.json"
        run("check", old, "-o", new)
        nodes.write_text(json.dumps(json.loads(old.read_text())["nodes"]))
        self.assertEqual([json.loads(p.read_text())["schema"] for p in (old, new)],
                         ["shakedown.report/1", "shakedown.report/2"])
        for a, b in ((old, new), (new, old), (old, nodes), (new, nodes)):
            _, paths = self.paths(a, b, code=0)
            self.assertEqual(paths, [])
        judged = [json.loads(run("check", p, "--format", "json").stdout)["findings"] for p in (old, new, nodes)]
        self.assertEqual(judged[0], judged[1])
        self.assertEqual(judged[0], judged[2])
        later = self.dir / "later.json"
        later.write_text(new.read_text().replace("shakedown.report/2", "shakedown.report/3"))
        p = run("check", later)
        self.assertEqual(p.returncode, 2)
        self.assertIn("shakedown.report/3", p.stderr)

    def test_two_runs_of_one_node_differ_in_nothing_that_matters(self):
        again = self.dir / "again.json"
        run("probe", "--sysroot", CAPTURES / "slingshot-amd", "-o", again)
        doc, paths = self.paths(self.a, again, code=0)
        self.assertEqual(paths, [])
        self.assertGreater(doc["set_aside"]["time"], 5)
        _, paths = self.paths(self.a, again, "--all")
        self.assertTrue(all(p.endswith(".ms") for p in paths), paths)

    def test_broken_on_purpose(self):
        ifaces = json.loads(json.dumps(self.facts["facts"]["net.ifaces"]))
        ifaces["value"][0]["mtu"] = 1500
        b = self.changed(**{"net.ifaces": ifaces, "env.FI_CXI_RDZV_PROTO": None,
                            "kernel.iommu.mode": {"state": "failed", "reason": "denied"},
                            "limits.memlock": {"soft": 65536, "hard": -1}})
        name = ifaces["value"][0]["name"]
        want = ["env.FI_CXI_RDZV_PROTO", "kernel.iommu.mode", "limits.memlock.soft",
                f"net.ifaces[{name}].mtu"]
        self.assertEqual(self.paths(self.a, b)[1], want)
        text = run("diff", self.a, b).stdout
        self.assertRegex(text, r"(?m)^  env\.FI_CXI_RDZV_PROTO +alt_read +not set$")
        self.assertRegex(text, r"(?m)^  limits\.memlock\.soft +unlimited +65536 B \(64 KiB\)$")

    def test_folders_and_nodes_without_a_partner(self):
        for side, names in (("before", ("n1", "n2")), ("after", ("n1", "n3"))):
            (self.dir / side).mkdir()
            for n in names:
                self.changed(f"{side}/{n}.json", **{"host.name": n})
        doc, paths = self.paths(self.dir / "before", self.dir / "after")
        self.assertEqual((doc["only_a"], doc["only_b"], paths), (["n2"], ["n3"], []))

    def test_a_report_serves_as_facts(self):
        report = self.dir / "report.json"
        run("check", self.a, "-o", report)
        self.assertEqual(self.paths(self.a, report, code=0)[1], [])

    def test_formats_by_extension(self):
        b = self.changed(**{"fabric.version": "9.9"})
        p = run("diff", self.a, b, "-o", self.dir / "d.md", "-o", self.dir / "d.json")
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        self.assertIn("| `fabric.version` |", (self.dir / "d.md").read_text())
        self.assertEqual(len(json.loads((self.dir / "d.json").read_text())["differences"]), 1)

    def test_site_rules(self):
        b = self.changed(**{"fabric.version": "9.9"})
        folder = self.dir / "site" / "diff"
        folder.mkdir(parents=True)
        (folder / "x.yaml").write_text("- {path: fabric.version, differs: time, why: rolling}\n")
        self.assertEqual(self.paths(self.a, b, "--config", self.dir / "site", code=0)[1], [])
        (folder / "x.yaml").write_text("- {path: fabric.version, differs: noise, why: rolling}\n")
        self.one_line(run("diff", self.a, b, "--config", self.dir / "site"), 2, "x.yaml:1: percent")

    def test_misuse(self):
        self.one_line(run("diff", self.a), 2, "diff needs A B")
        self.one_line(run("diff", self.a, self.dir / "no.json"), 2, "no.json")
        self.one_line(run("diff", self.a, self.a, "--format", "html"), 2, "term, md, json")
        (self.dir / "empty").mkdir()
        self.one_line(run("diff", self.a, self.dir / "empty"), 2, "no *.json in this folder")


main()
