"""tests/tools/many_gpus on stand-in GPUs: right when all is right, and not when something is wrong."""
import os, pathlib, shutil, subprocess, tempfile
import support
from support import BASE_ENV, BINARY, FAKES, SOURCE

PERF = """#!/bin/sh
echo '           8             2     float     sum      -1     6.70    0.00    0.00      0     6.60    0.00    0.00      0'
case "$*" in *"-D 1"*) echo '          16             4     float     sum      -1     5.70    0.00    0.00      0     5.80    0.00    0.00      0';; esac
"""


class ManyGpus(support.Case):
    def tool(self, gpus, *args, **env):
        if not shutil.which("mpirun"):
            self.skipTest("there is no mpirun")
        p = subprocess.run([str(SOURCE / "tests/tools/many_gpus"), str(BINARY), "--ranks", str(gpus), "--sizes", "8:64",
                            "--timeout", "60", *args],
                           env={**BASE_ENV, "LD_LIBRARY_PATH": str(FAKES / "gpu"), "SHK_FAKE_GPUS": str(gpus), **env},
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)
        if "without a CUDA compiler" in p.stdout:
            self.skipTest("the program has no kernels")
        return p

    def test_eight(self):
        p = self.tool(8, "--transports", "peer", "--no-run", "--no-faults")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("8 ranks, 7 sizes, 0 wrong", p.stdout)
        self.assertEqual(p.stdout.count("0 wrong"), 2, "local and under mpirun")

    def test_two_with_faults_beside_nccl_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            perf = pathlib.Path(folder, "all_reduce_perf")
            perf.write_text(PERF)
            perf.chmod(0o755)
            p = self.tool(2, "--transports", "nccl", "--no-run", "--nccl-tests", str(perf), "--fault-sizes", "8:4M",
                          "--out", folder)
            self.assertTrue(pathlib.Path(folder, "nccl-mpirun.json").stat().st_size)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertRegex(p.stdout, r"\n +8 .* 6\.60")
        self.assertRegex(p.stdout, r"\n +16 .* 5\.70 -R 2 -D 1")
        for line in ("rank 1 without a GPU: failed", "rank 1 after SIGKILL: crashed", "rank 1 after SIGSTOP: timeout"):
            self.assertIn(line, p.stdout)

    def test_wrong_elements(self):
        p = self.tool(3, "--transports", "peer", "--no-run", "--no-mpirun", SHK_FAKE_FAULT="corrupt")
        self.assertEqual(p.returncode, 1, p.stdout)
        self.assertIn("WRONG: peer (local): wrong", p.stdout)

    def test_a_pair_without_access(self):
        p = self.tool(4, "--transports", "peer", "--no-run", "--no-mpirun", SHK_FAKE_REFUSED="1>2")
        self.assertEqual(p.returncode, 1, p.stdout)
        self.assertIn("no peer access between the GPUs 0000:02:00.0 to 0000:03:00.0", p.stdout)


if __name__ == "__main__":
    support.main()
