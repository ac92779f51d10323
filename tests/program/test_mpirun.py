"""Ranks that mpirun started on one host, with a stand-in driver and NCCL: each works on a GPU of its own."""
import json, os, subprocess
import support
from support import BASE_ENV, BINARY, FAKES, run

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
       "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(ranks, *args, env=None, per_rank=None):
    """The report of `shakedown ARGS --format json` under mpirun. per_rank: shell assignments, with $R the rank."""
    command = ["mpirun", "--oversubscribe", "-np", str(ranks), "sh", "-c",
               f'R=$OMPI_COMM_WORLD_RANK; export R {per_rank or ""}; exec "$0" "$@"', str(BINARY), *args, "--format", "json"]
    p = subprocess.run(command, env={**BASE_ENV, **MPI, "LD_LIBRARY_PATH": str(FAKES / "gpu"), **(env or {})},
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    try:
        return json.loads(p.stdout)
    except json.JSONDecodeError:
        raise AssertionError(f"no report, exit {p.returncode}: {p.stdout[-500:]} {p.stderr[-2000:]}") from None


class Mpirun(support.Case):
    def transport(self, report, name):
        found = report["collectives"][name]
        if "without a CUDA compiler" in found.get("reason", ""):
            self.skipTest(found["reason"])
        return found

    def bench(self, name, ranks=2, **how):
        return self.transport(mpirun(ranks, "bench", "--transport", name, "--sizes", "8:64", **how), name)

    def right(self, found, ranks):
        self.assertEqual(found["status"], "ok", found.get("reason"))
        self.assertEqual(found["ranks"], ranks)
        self.assertEqual({row["wrong"] for row in found["sizes"]}, {0})
        self.assertEqual([row["rank"] for row in found["devices"]], list(range(ranks)))
        self.assertEqual(len({row["pci"] for row in found["devices"]}), ranks)

    def test_within_the_node(self):
        found = self.bench("peer")
        self.right(found, 2)
        (row,) = found["by_node"]
        self.assertEqual((row["status"], row["ranks"], row["node"]), ("ok", 2, os.uname().nodename))

    def test_a_gpu_each_by_the_launcher(self):
        """As with srun --gpus-per-task: every rank sees one GPU, another one each."""
        self.right(self.bench("peer", per_rank="CUDA_VISIBLE_DEVICES=$R"), 2)
        self.right(self.bench("nccl", ranks=3, per_rank="CUDA_VISIBLE_DEVICES=$R", env={"SHK_FAKE_GPUS": "3"}), 3)

    def test_the_path_is_proven(self):
        found = self.bench("nccl-window")
        self.right(found, 2)
        symmetric = {row["bytes"]: row["symmetric"] for row in found["proof"]["choices"]}
        self.assertTrue(symmetric[64], found["proof"])

    def test_two_ranks_on_one_gpu(self):
        found = self.bench("nccl", per_rank="CUDA_VISIBLE_DEVICES=0")
        self.assertEqual((found["status"], found["cause"]), ("failed", "same-gpu"), found.get("reason"))

    def test_one_rank_without_a_gpu(self):
        """Not "no GPUs here", as the others have some; nor that the driver is missing, which nothing shows."""
        report = mpirun(2, "bench", "--transport", "nccl", "--sizes", "8:64",
                        per_rank='SHK_FAKE_FAULT=$([ "$R" = 1 ] && echo no-device)')
        found = report["collectives"]["nccl"]
        self.assertEqual((found["status"], found["cause"], found["rank"]), ("failed", "gpu-missing", 1), found.get("reason"))
        self.assertIn("all-reduce-failed", [d["key"] for d in report["diagnoses"]])

    def test_no_rank_has_a_gpu(self):
        found = self.bench("nccl", env={"SHK_FAKE_FAULT": "no-device"})
        self.assertEqual(found["status"], "na", found)
        self.assertNotIn("nodes", found)

    def test_wrong_sums(self):
        found = self.bench("peer", env={"SHK_FAKE_FAULT": "corrupt"})
        self.assertEqual(found["status"], "wrong", found.get("reason"))
        self.assertEqual(found["nodes"], [os.uname().nodename])

    def test_without_a_launcher(self):
        """A local rank for each GPU that the driver shows, unless --ranks says otherwise."""
        for gpus, args, ranks in (("2", (), 2), ("4", (), 4), ("4", ("--ranks", "3"), 3)):
            with self.subTest(gpus=gpus, args=args):
                p = run("bench", "--transport", "nccl", "--sizes", "8:64", "--format", "json", *args,
                        env={"LD_LIBRARY_PATH": str(FAKES / "gpu"), "SHK_FAKE_GPUS": gpus})
                self.right(self.json_of(p)["collectives"]["nccl"], ranks)

    def test_every_layer(self):
        report = mpirun(2, "run", "--sizes", "4:64")
        for name in ("fabric", "lsa", "nccl", "nccl-window"):
            found = self.transport(report, name)
            self.assertEqual((found["status"], found["ranks"]), ("ok", 2), found.get("reason"))
        self.finding(report, "layers of the all-reduce", "pass")


if __name__ == "__main__":
    support.main()
