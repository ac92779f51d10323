"""Tasks of launchers that shakedown cannot join: the report says so, by warning, for every kind of launcher; only the
first task of a node reports. What is built without PMIx says that."""
import json
import support
from support import run

ALONE = {
    "torchrun": {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "4", "RANK": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"},
    "RANK and WORLD_SIZE": {"WORLD_SIZE": "4", "RANK": "2"},
    "horovodrun": {"HOROVOD_SIZE": "4", "HOROVOD_RANK": "2", "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "2"},
    "PMI": {"PMI_SIZE": "4", "PMI_RANK": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"},
    "PALS": {"PALS_RANKID": "2", "PALS_LOCAL_RANKID": "0", "PMI_SIZE": "4", "PMI_RANK": "2"},
    "MVAPICH": {"MV2_COMM_WORLD_SIZE": "4", "MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_LOCAL_RANK": "0"},
    "jsrun": {"JSM_NAMESPACE_SIZE": "4", "JSM_NAMESPACE_RANK": "2", "JSM_NAMESPACE_LOCAL_RANK": "0"},
    "Flux": {"FLUX_JOB_ID": "f1", "FLUX_TASK_RANK": "2", "FLUX_JOB_SIZE": "4", "FLUX_TASK_LOCAL_ID": "0"},
    "Open MPI": {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
    "Slurm": {"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2", "SLURM_LOCALID": "0",
              "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NUM_NODES": "2"},
}
# PMIX_* of the one task of srun that started torchrun
INHERITED = {**ALONE["torchrun"], "PMIX_NAMESPACE": "slurm.pmix.7.0", "PMIX_RANK": "0"}
ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "16", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2"}


class Launchers(support.Case):
    def row(self, env, *args):
        p = run("--quick", "--format", "json", *args, env=env)
        rows = [f for f in json.loads(p.stdout)["findings"] if f["id"] == "job.pmix"] if p.stdout else []
        return p, rows

    def test_not_joined(self):
        for name, env in {**ALONE, "torchrun, inherited": INHERITED}.items():
            with self.subTest(name):
                _, (row,) = self.row(env)
                self.assertEqual(row["verdict"], "warn", row)
                self.assertIn("nothing between the ranks was tested", row["why"])
                self.assertIn(f"4 tasks of {name.split(',')[0]}", row["observed"])
                self.assertTrue(row.get("fix") or row.get("advice"))

    def test_other_tasks_of_the_node_say_nothing(self):
        for name, env in ALONE.items():
            local = [k for k in env if "LOCAL" in k and "RANK" in k or k in ("SLURM_LOCALID", "FLUX_TASK_LOCAL_ID")]
            with self.subTest(name):
                p, rows = self.row({**env, **{k: "1" for k in local if k not in ("MPI_LOCALNRANKS",)}})
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(len(rows), 0 if local else 1)

    def test_without_srun(self):
        _, (row,) = self.row(ALLOCATION)
        self.assertEqual(row["verdict"], "warn", row)
        self.assertIn("nothing was tested between the job's ranks, and nothing on the other nodes", row["why"])
        for less in ({"SLURM_NTASKS": "4"}, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}):
            _, (row,) = self.row(less)
            self.assertEqual(row["verdict"], "warn", row)
        _, (row,) = self.row({**ALLOCATION, "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"})
        self.assertEqual(row["verdict"], "note", row)

    def test_one_task_is_no_news(self):
        for env in ({}, {"WORLD_SIZE": "4"}, {"RANK": "0", "WORLD_SIZE": "1"}, {**ALLOCATION, "SLURM_NTASKS": "1"},
                    {**ALLOCATION, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}):
            with self.subTest(env):
                p, rows = self.row(env)
                self.assertTrue(p.stdout, p.stderr)
                self.assertEqual(rows, [])


support.main()
