"""The transport fabric-hmem: a stand-in driver, and a libfabric that offers FI_HMEM on top of the real one."""
import shutil
import support
from support import FAKES, run


class Hmem(support.Case):
    def report(self, *args, **env):
        """A report with both stand-ins in the loader's path."""
        folder = self.scratch()
        folder.chmod(0o755)
        shutil.copy(FAKES / "gpu" / "libcuda.so.1", folder)
        shutil.copy(FAKES / "fabric_hmem" / "libfabric.so.1", folder)
        p = run("bench", "--sizes", "8:4K", "--provider", "tcp", "--format", "json", *args,
                env={"LD_LIBRARY_PATH": str(folder), **env})
        return self.json_of(p)

    def row(self, verdict, **env):
        return self.finding(self.report("--transport", "fabric-hmem", **env), "all-reduce (fabric-hmem)", verdict)

    def test_healthy(self):
        row = self.row("pass")
        self.assertEqual(row["evidence"], "tested")
        self.assertIn("FI_HMEM_CUDA", row["observed"])
        self.assertIn("peer to peer: effective enabled: the provider decides (asked to require it: "
                      "Operation not supported)", row["observed"])

    def test_broken(self):
        for fault, known, key, text in (("refuse", "0", "hmem-registration-refused", "fi_mr_regattr of"),
                                        ("nosys", "1", "hmem-interface-not-started", "fi_mr_regattr of"),
                                        ("crash", "0", "hmem-failed", "fi_mr_regattr")):
            with self.fault("ranks", "GPU memory: " + fault) as planted:
                row = self.row("fail", SHK_FAKE_HMEM=fault, SHK_FAKE_HMEM_KNOWN=known)
                planted.survived = True
                self.assertEqual(row["diagnosis"], key)
                self.assertIn(text, row["why"])

    def test_not_here(self):
        self.assertIn("offers no FI_HMEM", self.row("fail", SHK_FAKE_HMEM="none")["why"])
        self.assertIn("built without FI_HMEM_CUDA", self.row("fail", SHK_FAKE_HMEM="nosys")["why"])
        self.assertIn("no GPU", self.row("fail", SHK_FAKE_GPUS="0")["why"])

    def test_it_is_listed(self):
        self.assertIn("fabric-hmem", run("list", "transports").stdout)


if __name__ == "__main__":
    support.main()
