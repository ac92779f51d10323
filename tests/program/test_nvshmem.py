"""The transport nvshmem: one PE of a stand-in NVSHMEM, whose file also plays the driver."""
import shutil
import support
from support import FAKES, run


class Nvshmem(support.Case):
    def row(self, fake, verdict):
        env = {}
        if fake:
            folder = self.scratch()
            folder.chmod(0o755)
            for name in ("libnvshmem_host.so.3", "libcuda.so.1"):
                shutil.copy(FAKES / fake / "libnvshmem_host.so.3", folder / name)
            env["LD_LIBRARY_PATH"] = str(folder)
        p = run("bench", "--transport", "nvshmem", "--timeout", "3", "--format", "json", env=env)
        return self.finding(self.json_of(p), "all-reduce (nvshmem)", verdict)

    def test_healthy(self):
        self.assertIn("one PE: symmetric memory, own pointer", self.row("nvshmem_one", "pass")["observed"])

    def test_broken(self):
        self.assertIn("3 bytes", self.row("nvshmem_one_put_loses", "fail")["why"])
        self.assertIn("nvshmemx_hostlib_init_attr", self.row("nvshmem_one_init_exit", "fail")["why"])
        self.assertIn("nvshmemx_hostlib_init_attr", self.row("nvshmem_one_init_hang", "fail")["why"])

    def test_not_here(self):
        self.assertIn("libnvshmem_host.so.3", self.row(None, "na")["why"])
        self.assertIn("cuInit", self.row("nvshmem_one_no_gpu", "na")["why"])

    def test_it_is_listed(self):
        self.assertIn("nvshmem", run("list", "transports").stdout)


if __name__ == "__main__":
    support.main()
