"""The transport neuron: nccom-test played by scripts, libnrt by an empty library."""
import os
import support
from support import FAKES, run

TABLE = """cat <<'END'
   size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)
      1024             256    fp32          58           0.02           0.02
      4096            1024    fp32          60           0.07           0.07
Avg bus bandwidth:      0.0450GB/s
END"""


class Neuron(support.Case):
    def setUp(self):
        self.folder = self.scratch()
        self.folder.chmod(0o755)
        self.tool = self.folder / "nccom-test"
        self.env = {"PATH": f"{self.folder}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(FAKES / "nrt")}

    def report(self, script, *args):
        if script is not None:
            self.tool.write_text("#!/bin/sh\n" + script + "\n")
            self.tool.chmod(0o755)
        return run("run", "--transport", "neuron", "--sizes", "1024:4096", "--format", "json", *args,
                   env=self.env)

    def row(self, script, verdict, *args):
        return self.finding(self.json_of(self.report(script, *args)), "all-reduce (neuron)", verdict)

    def test_healthy(self):
        self.assertIn("2 sizes verified", self.row(TABLE, "pass")["observed"])

    def test_broken(self):
        row = self.row("echo 'rank 1: output does not match golden'; exit 1", "fail")
        self.assertIn("wrong", row["observed"])
        self.assertIn("does not match golden", row["why"])
        self.assertIn("no Neuron device", self.row("echo 'no Neuron device'; exit 1", "fail")["why"])
        self.assertIn("timeout", self.row("exec sleep 100", "fail", "--timeout", "2")["observed"])

    def test_not_here(self):
        self.assertIn("nccom-test is not in PATH", self.row(None, "fail")["why"])
        del self.env["LD_LIBRARY_PATH"]
        self.assertIn("libnrt.so.1", self.row(TABLE, "fail")["why"])

    @support.unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_root_runs_nothing_that_others_can_change(self):
        mark = self.folder / "ran"
        script = f"touch {mark}\n" + TABLE
        self.tool.touch()
        os.chown(self.tool, 65534, 65534)
        self.assertIn("belongs to user 65534", self.row(script, "fail")["why"])
        self.assertFalse(mark.exists())
        self.row(script, "pass", "--trust-libraries")
        self.assertTrue(mark.exists())

    def test_it_is_listed(self):
        self.assertIn("neuron", run("list", "transports").stdout)


if __name__ == "__main__":
    support.main()
