"""The transport nvshmem: PEs of a stand-in NVSHMEM, whose file also plays the driver."""
import shutil
import support
from support import FAKES, run


class Nvshmem(support.Case):
    def row(self, fake, verdict, ranks=2, timeout=60):
        env = {}
        if fake:
            folder = self.scratch()
            folder.chmod(0o755)
            for name in ("libnvshmem_host.so.3", "libcuda.so.1"):
                shutil.copy(FAKES / fake / "libnvshmem_host.so.3", folder / name)
            env["LD_LIBRARY_PATH"] = str(folder)
        while True:
            p = run("bench", "--transport", "nvshmem", "--ranks", str(ranks), "--timeout", str(timeout), "--format", "json", env=env)
            # where other work left a rank no processor, it is not said to hang: it has more time then
            starved = [r for r in self.json_of(p)["findings"] if r["setting"] == "all-reduce (nvshmem)" and r["verdict"] == "unknown"]
            if not starved or timeout > 200:
                return self.finding(self.json_of(p), "all-reduce (nvshmem)", verdict)
            timeout *= 3

    def test_healthy(self):
        self.assertIn("2 PEs: symmetric memory, pointers to all", self.row("nvshmem_pes", "pass")["observed"])
        self.assertIn("1 PE: symmetric memory", self.row("nvshmem_pes", "pass", ranks=1)["observed"])

    def test_broken(self):
        self.assertIn("6 bytes", self.row("nvshmem_pes_put_loses", "fail")["why"])
        self.assertIn("nvshmemx_hostlib_init_attr", self.row("nvshmem_pes_init_exit", "fail")["why"])
        self.assertIn("nvshmemx_hostlib_init_attr", self.row("nvshmem_pes_init_hang", "fail", timeout=12)["why"])

    def test_not_here(self):
        self.assertIn("libnvshmem_host.so.3", self.row(None, "fail")["why"])
        self.assertIn("cuInit", self.row("nvshmem_pes_no_gpu", "fail")["why"])

    def test_it_is_listed(self):
        self.assertIn("nvshmem", run("list", "transports").stdout)


if __name__ == "__main__":
    support.main()
