"""ReFrame test: a node or a set of nodes is fit, and the all-reduce is as fast as it was.

  reframe -c reframe_shakedown.py -r -S num_nodes=4 -S num_tasks_per_node=8
References belong into the site's configuration (-S reference=...)."""
import json

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Shakedown(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "shakedown"
    executable_opts = ["-o", "report.json"]
    keep_files = ["report.json"]
    num_nodes = variable(int, value=1)

    @run_before("run")
    def set_tasks(self):
        self.num_tasks = self.num_nodes * (self.num_tasks_per_node or 1)

    def report(self):
        with open(f"{self.stagedir}/report.json", encoding="utf-8") as file:
            return json.load(file)

    @sanity_function
    def nothing_failed(self):
        report = self.report()
        causes = "; ".join(cause["title"] for cause in report["diagnoses"]) or "see report.json"
        return sn.assert_ne(report["summary"]["verdict"], "fail", msg=causes)

    @performance_function("GB/s")
    def busbw(self):
        runs = [run for run in self.report()["collectives"].values() if run.get("sizes")]
        return max((size["busbw"] for run in runs for size in run["sizes"]), default=0.0)
