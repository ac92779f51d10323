"""Grafana's dashboard and Prometheus' alert rules: in their formats, and of metrics that the program writes."""
import re, shutil
from support import *

PLACE = SOURCE / "config" / "monitoring"
FOREIGN = {"node_textfile_mtime_seconds"}  # node_exporter's own
WORDS = {"by", "without", "or", "and", "time", "max", "sum", "count", "quantile_over_time", "label_values", "unless"}


def metrics_of(expression):
    bare = re.sub(r'\{[^}]*\}|"[^"]*"|\[[^]]*\]|(by|without) *\([^)]*\)', " ", expression)
    return set(re.findall(r"[a-z_][a-z_0-9]*", bare)) - WORDS


class Monitoring(Case):
    def written(self):
        """The names of all metrics in the source of the format."""
        text = (SOURCE / "reports" / "format" / "prom.c").read_text()
        return set(re.findall(r'"(shakedown_[a-z_]+)"', text))

    def test_alerts_are_rules_of_metrics_that_exist(self):
        names = set()
        for group in read_yaml(PLACE / "alerts.yaml")["groups"]:
            for rule in group["rules"]:
                self.assertLessEqual(set(rule), {"alert", "expr", "for", "labels", "annotations"})
                self.assertEqual(set(rule["annotations"]), {"summary", "description"})
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
                names.add(rule["alert"])
                self.assertEqual(rule["expr"].count("("), rule["expr"].count(")"))
                self.assertLessEqual(metrics_of(rule["expr"]), self.written() | FOREIGN, rule["alert"])
        self.assertGreaterEqual(len(names), 6)

    def test_promtool(self):
        tool = shutil.which("promtool")
        if not tool:
            self.skipTest("no promtool")
        p = subprocess.run([tool, "check", "rules", PLACE / "alerts.yaml"], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        facts = SOURCE / "tests" / "golden" / "facts" / "handmade.json"
        text = run("check", facts, "--format", "prom").stdout
        p = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        self.assertNotIn("error while linting", p.stderr)

    def test_dashboard(self):
        dash = json.loads((PLACE / "grafana.json").read_text())
        self.assertEqual(len({p["id"] for p in dash["panels"]}), len(dash["panels"]))
        for panel in dash["panels"]:
            self.assertIn(panel["type"], ("timeseries", "table", "stat"))
            for target in panel["targets"]:
                self.assertLessEqual(metrics_of(target["expr"]), self.written(), panel["title"])
                self.assertTrue(metrics_of(target["expr"]), panel["title"])

    def test_metrics_of_a_run(self):
        doc = {"schema": "shakedown.facts/1", "facts": {
            "host.name": {"state": "present", "value": "n1"}, "run.start": {"state": "present", "value": "2026-11-28T03:00:00Z"},
            "run.seconds": {"state": "present", "value": 12.5}, "collective.nccl.status": {"state": "present", "value": "ok"},
            "collective.nccl.sizes": {"state": "present", "value": [{"bytes": 8, "time_us": 20.0, "busbw": 0.1},
                                                                    {"bytes": 1 << 28, "time_us": 900.0, "busbw": 380.0}]}}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.json"
            path.write_text(json.dumps(doc))
            text = run("check", path, "--format", "prom").stdout
        for line in ("shakedown_last_run_timestamp_seconds 1795834800", "shakedown_run_seconds 12.5",
                     'shakedown_collective_best_bus_bytes_per_second{node="n1",transport="nccl"} 3.8e+11',
                     'shakedown_collective_latency_seconds{node="n1",transport="nccl"} 2e-05'):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r'shakedown_nodes\{verdict="(pass|unknown)"\} 1\n')
        self.assertNotIn('transport="fabric"', text)


main()
