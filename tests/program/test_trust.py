"""As root, libraries that other users can change are not loaded unless asked."""
import json
import os
import shutil
import support
from support import FAKES, run


@support.unittest.skipIf(os.geteuid() != 0, "needs root")
class Trust(support.Case):
    def setUp(self):
        self.folder = self.scratch()
        self.folder.chmod(0o755)
        for fake, name in (("fabric_segv", "libfabric.so.1"), ("segv_constructor", "libnccl-net.so")):
            shutil.copy(FAKES / fake / name, self.folder)
        os.chown(self.folder, 65534, 65534)

    def probe(self, *args, **env):
        p = run("probe", *args, env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["facts"]

    def test_the_loaders_path(self):
        env = {"LD_LIBRARY_PATH": str(self.folder)}
        facts = self.probe("--quick", **env)
        self.assertIn("belongs to user 65534; root loads no library", facts["fabric.problem"]["value"]["text"])
        plugin = facts["plugin.candidates"]["value"][0]
        self.assertEqual(plugin["path"], str(self.folder / "libnccl-net.so"))  # found, not executed
        self.assertNotIn("load", plugin)
        facts = self.probe("--quick", "--trust-libraries", **env)
        self.assertIn("SIGSEGV", facts["fabric.problem"]["value"]["text"])
        self.assertEqual(facts["plugin.candidates"]["value"][0]["load"]["outcome"], "crashed")

    def test_no_configuration_takes_a_list_away(self):
        config = self.scratch()
        (config / "uses").mkdir()
        (config / "uses/mine.yaml").write_text("- {name: code-path.loader, variables: [NOBODY_SETS_THIS]}\n")
        facts = self.probe("--quick", "--config", config, LD_LIBRARY_PATH=str(self.folder))
        self.assertIn("root loads no library", facts["fabric.problem"]["value"]["text"])

    def test_a_plugin_by_its_path(self):
        env = {"NCCL_NET_PLUGIN": str(self.folder / "libnccl-net.so")}
        plugin = self.probe(**env)["plugin.candidates"]["value"][0]
        self.assertNotIn("load", plugin)
        self.assertIn("root loads no library", plugin["untried"])

    def test_the_report_says_so_and_fails_nothing(self):
        p = run("run", "--sizes", "4:64", "--format", "json", env={"LD_LIBRARY_PATH": str(self.folder)})
        report = self.json_of(p)
        row = self.finding(report, "all-reduce (fabric)", "na")
        self.assertIn("root loads no library", row["why"])
        self.assertIn("root loads no library", self.finding(report, "libfabric", "unknown")["why"])
        self.assertIn("root loads no library", self.finding(report, "net plugin load", "unknown")["why"])


if __name__ == "__main__":
    support.main()
