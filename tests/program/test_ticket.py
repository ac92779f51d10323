"""shakedown diagnose on what people paste and upload: tickets with outputs of tools, dumps of PyTorch's flight recorder."""
import os, pickle, unittest
from support import Case, SOURCE, main, run

# ticket: its cause, what must have been read of it, and facts.
TICKETS = {
    "driver": ("driver-runtime-version-mismatch", ["dmesg"], {"gpu.nvidia.driver": {"version": "550.54.15", "open": False}}),
    "exception": ("application-error", ["variables"], {"env.NCCL_DEBUG": "WARN"}),
    "fabric-manager": ("fabric-manager-down", ["lspci", "systemctl"],
                       {"nvidia.fabricmanager.running": False, "pci.count.nvswitch": 2, "host.name": "hgx03"}),
    "gid": ("roce-gid-index-wrong", ["show_gids", "rdma link"], {"env.NCCL_IB_GID_INDEX": "9"}),
    "hca": ("wrong-hca-selected", ["ibstat"], {"env.NCCL_IB_HCA": "mlx5_7", "pci.count.mlx5": 2}),
    "healthy": (None, ["ulimit", "df /dev/shm", "nvidia-smi -L"], {"limits.memlock": {"soft": -1}, "pci.count.gpu-nvidia": 2}),
    "ifname": ("socket-ifname-missing", ["variables", "ip"], {"env.NCCL_SOCKET_IFNAME": "ib0", "job.nodes": 2}),
    "inspect": ("shm-too-small", ["docker inspect"], {"shm.size": 67108864, "env.NCCL_DEBUG": "INFO", "host.container": "docker"}),
    "iommu": ("iommu-not-passthrough", ["nvidia-smi topo", "/proc/cmdline", "dmesg"], {"kernel.iommu.mode": "DMA"}),
    "memlock": ("memlock-too-low", ["ulimit", "ibstat"], {"limits.memlock": {"soft": 65536}, "job.nodes": 2}),
    "nofile": ("nofile-too-low", ["ulimit"], {"limits.nofile": {"soft": 1024}}),
    "peermem": ("peermem-missing", ["lsmod", "uname"], {"host.kernel": "5.4.0-150-generic"}),
    "pod": ("container-memory-limit-oom", ["kubectl describe pod"],
            {"cgroup.memory.max": 68719476736, "env.NCCL_DEBUG": "INFO", "host.container": "kubernetes"}),
    "quoted": ("env-value-quoted", ["variables"], {"env.NCCL_SOCKET_IFNAME": '"eth0"'}),
    "remap": ("gpu-row-remap-failed", ["nvidia-smi -q"], {}),
    "shm": ("shm-too-small", ["df /dev/shm"], {"shm.size": 67108864}),
    "two-nodes": ("memlock-too-low", ["ulimit"], {}),
    # made of the corpus's reports and outputs in the forms in which people paste them; answers written down before the first run
    "shm-vllm": ("shm-too-small", ["docker inspect"], {"shm.size": 67108864, "env.NCCL_DEBUG": "WARN"}),
    "fm-tree": ("fabric-manager-down", ["lspci -t", "systemctl"], {"pci.count.gpu-nvidia": 1, "pci.count.nvswitch": 1, "host.name": "hgx11"}),
    "memlock-ansible": ("memlock-too-low", ["ulimit"], {"limits.memlock": {"soft": -1}, "host.name": "gpu41"}),
    "ifname-mail": ("socket-ifname-missing", ["ip -br", "2 variables"], {"env.NCCL_SOCKET_IFNAME": "eth2"}),
    "drained": ("slurm-kill-failed", ["sinfo", "scontrol show node"], {"slurm.sinfo": [{"name": "gpu[09-12]", "reason": "Kill task failed"}]}),
    "ras": ("rank-hung", ["ncclras"], {"nccl.version": "2.28.9"}),
    "inspector": ("rank-late", ["NCCL Inspector"], {}),
    "module": ("network-module", ["ethtool"], {"net.modules": [{"name": "ens1f0np0", "alarms": ["Module temperature high alarm"]}]}),
    "nvml-mismatch": ("driver-runtime-version-mismatch", ["modinfo", "dmesg"], {"gpu.nvidia.driver": {"version": "550.163.01", "open": False}}),
    "device-plugin": ("device-plugin-unhealthy", ["kubectl describe pod"], {"cgroup.memory.max": 966367641600, "env.NCCL_DEBUG": "INFO"}),
    "hip-kfd": ("gpu-device-not-in-container", ["rocm-smi"], {"pci.count.gpu-amd": 2, "host.name": "lab4"}),
    "neuron-driver": ("driver-runtime-version-mismatch", ["neuron-ls"], {"pci.count.neuron": 1}),
    "cxi-service": ("cxi-service-alloc-failed", ["module list", "cxi_stat"],
                    {"modules.loaded": ["craype-x86-trento", "cray-mpich/8.1.30", "rocm/6.2.4"], "pci.count.cxi": 1}),
    "nofile-zsh": ("nofile-too-low", ["ulimit"], {"limits.nofile": {"soft": 256}, "limits.memlock": {"soft": -1}}),
    "exited-early": ("rank-exited-early", ["1 variable"], {"job.local_ranks": 4}),
    "oom-cgroup": ("container-memory-limit-oom", ["kubectl describe pod"], {"cgroup.memory.max": 68719476736}),
    "clock": ("clock-skew", ["uname"], {"host.kernel": "5.15.0-91-generic"}),
}


def call(seq, name, sizes=((4,),), state="completed", group=("0", "default_pg"), p2p=False):
    return {"collective_seq_id": seq, "profiling_name": "nccl:" + name, "input_sizes": [list(s) for s in sizes], "input_dtypes": ["Float"],
            "state": state, "process_group": group, "is_p2p": p2p, "frames": [{"name": "step", "filename": "/src/train.py", "line": 7}]}


def dump(calls, ranks="[0, 1]"):
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}, "pg_status": {}, "entries": calls}


class Runs:
    """What a pickle would run."""
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Ticket(Case):
    def report(self, *args):
        process = run("diagnose", "--format", "json", *args)
        self.assertIn(process.returncode, (0, 1, 3), process.stderr)
        return self.json_of(process), process.stderr

    def keys(self, report):
        return [(d["key"], d["confidence"]) for d in report["diagnoses"]]

    def test_every_ticket_is_here(self):
        self.assertEqual({p.stem for p in (SOURCE / "tests" / "tickets").glob("*.md")}, set(TICKETS))

    def test_tickets(self):
        for name, (want, read, facts) in TICKETS.items():
            with self.subTest(ticket=name):
                report, said = self.report(SOURCE / "tests" / "tickets" / f"{name}.md")
                self.assertEqual([k for k, _ in self.keys(report)][:1], [want] if want else [], self.keys(report))
                line = next(l for l in said.splitlines() if ": read: " in l)
                for what in read:
                    self.assertIn(what, line)
                found = report["nodes"][0]["facts"]
                for key, value in facts.items():
                    self.assertEqual(found[key]["value"], value, key)

    def test_a_drained_node_somewhere_is_no_cause(self):
        path = self.scratch() / "t.md"
        path.write_text("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ngpu*  up 1-00:00:00  2 drain* gpu[09,11]\ngpu*  up 1-00:00:00  8  alloc gpu[01-08]\n")
        report, said = self.report(path)
        self.assertEqual(self.keys(report), [])
        self.assertIn("read: sinfo", said)

    def test_a_launcher_that_ends_all_its_processes(self):
        path = self.scratch() / "t.md"
        text = (SOURCE / "tests" / "tickets" / "exited-early.md").read_text()
        path.write_text(text.replace("Sending process 1259", "Sending process 1258 closing signal SIGTERM\nSending process 1259"))
        keys = self.keys(self.report(path)[0])
        self.assertEqual(keys[0][0], "job-ended-from-outside", keys)
        self.assertNotIn(("rank-exited-early", "likely"), keys)

    def test_two_outputs_of_nodes_that_are_not_told_apart(self):
        path = self.scratch() / "t.md"
        one = "CA 'mlx5_%d'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\n"
        path.write_text("```\n" + one % 0 + "```\nand the other one:\n```\n" + one % 1 + "```\n")
        report, said = self.report(path)
        self.assertEqual([d["name"] for d in report["nodes"][0]["facts"]["rdma.devices"]["value"]], ["mlx5_0"])
        self.assertIn("nothing tells of which node", said)

    def test_two_nodes_are_two_nodes(self):
        report, _ = self.report(SOURCE / "tests" / "tickets" / "two-nodes.md")
        limits = {n["name"]: n["facts"]["limits.memlock"]["value"]["soft"] for n in report["nodes"]}
        self.assertEqual(limits, {"n1": -1, "n2": 65536})

    def test_a_ticket_cut_anywhere_blames_no_one_else(self):
        text = (SOURCE / "tests" / "tickets" / "healthy.md").read_bytes()
        path = self.scratch() / "cut.md"
        for at in range(0, len(text), max(1, len(text) // 24)):
            with self.subTest(at=at):
                path.write_bytes(text[:at])
                report, _ = self.report(path)
                self.assertEqual(self.keys(report), [])

    def dumps(self, *ranks, protocol=2):
        paths = []
        for rank, calls in enumerate(ranks):
            path = self.scratch() / f"fr_{rank}"
            path.write_bytes(pickle.dumps(dump(calls, str(list(range(len(ranks))))), protocol=protocol))
            paths.append(path)
        return paths

    def first(self, *ranks, **kw):
        report, said = self.report(*self.dumps(*ranks, **kw))
        self.assertIn(f"read: {len(ranks)} dump", said)
        return (report["diagnoses"] or [{"key": None, "confidence": None, "evidence": []}])[0]

    def test_ranks_that_call_different_collectives(self):
        for protocol in (2, 3, 4, 5):
            got = self.first([call(1, "all_reduce"), call(2, "all_reduce", state="scheduled")],
                             [call(1, "all_reduce"), call(2, "broadcast", state="scheduled")], protocol=protocol)
            self.assertEqual((got["key"], got["confidence"]), ("collective-order-mismatch", "likely"))
            self.assertIn("rank 0 all_reduce at train.py:7; rank 1 broadcast", got["evidence"][0])

    def test_sizes_that_differ(self):
        got = self.first([call(1, "all_reduce", ((8,),), "scheduled")], [call(1, "all_reduce", ((4,),), "scheduled")])
        self.assertEqual(got["key"], "unequal-buffers-across-ranks")
        # what may differ: each rank gives another amount
        got = self.first([call(1, "all_to_all", ((8,),), "completed")], [call(1, "all_to_all", ((4,),), "completed")])
        self.assertIsNone(got["key"])

    def test_a_rank_that_did_not_come(self):
        got = self.first([call(1, "all_reduce"), call(2, "all_reduce", state="started")], [call(1, "all_reduce")])
        self.assertEqual((got["key"], got["confidence"]), ("rank-hung", "likely"))
        self.assertIn("rank 1 called no more than collective 1", got["evidence"][0])

    def test_a_rank_that_waits_in_another_group_is_not_to_blame(self):
        got = self.first([call(1, "all_reduce"), call(2, "all_reduce", state="started")],
                         [call(1, "all_reduce"), call(1, "send", state="started", group=("1", "pipe"), p2p=True)])
        self.assertIsNone(got["key"])

    def test_all_wait_in_the_same(self):
        got = self.first([call(1, "all_reduce", state="started")], [call(1, "all_reduce", state="started")])
        self.assertEqual((got["key"], got["confidence"]), ("collective-hangs", "possible"))

    def test_begun_on_one_gpu_only(self):
        got = self.first([call(1, "all_reduce", state="started")], [call(1, "all_reduce", state="scheduled")])
        self.assertEqual((got["key"], got["confidence"]), ("rank-hung", "likely"))
        self.assertIn("has not begun on that of rank 1", got["evidence"][0])

    def test_a_host_that_is_further_ahead_is_not_behind(self):
        """All have called what does not end; how far the hosts have enqueued tells nothing."""
        got = self.first([call(1, "all_reduce"), *(call(n, "all_reduce", state="scheduled") for n in (2, 3, 4))],
                         [call(1, "all_reduce"), call(2, "all_reduce", state="scheduled")])
        self.assertEqual((got["key"], got["confidence"]), ("collective-hangs", "possible"))
        self.assertIn("all 2 ranks wait in all_reduce (collective 2)", got["evidence"][0])

    def test_one_dump_of_two(self):
        report, _ = self.report(self.dumps([call(1, "all_reduce", state="started")], [])[0])
        (line,) = [e for d in report["diagnoses"] for e in d["evidence"] if "flight-recorder" in e]
        self.assertIn("[open]: group 0 (default_pg): rank 0 waits in all_reduce (collective 1)", line)

    def test_dumps_of_a_job_that_works(self):
        self.assertIsNone(self.first([call(1, "all_reduce")], [call(1, "all_reduce")])["key"])

    def test_a_pickle_is_not_executed(self):
        trap = self.scratch() / "ran"
        path = self.scratch() / "fr_0"
        path.write_bytes(pickle.dumps(dump([Runs(trap)]), protocol=2))
        log = self.scratch() / "log"
        log.write_text("[rank1]: KeyError: 'x'\n")
        report, said = self.report(path, log)
        self.assertFalse(trap.exists())
        self.assertIn("not executed", said)
        self.assertEqual(self.keys(report)[0][0], "application-error")

    def test_dumps_that_are_cut_or_strange(self):
        whole = self.dumps([call(1, "all_reduce")])[0].read_bytes()
        deep = b"\x80\x02" + b"]" * 100000 + b"a" * 99999 + b"."
        for name, data in {"cut": whole[:-20], "deep": deep, "empty": b"\x80\x02.", "other": pickle.dumps([1, 2], 2)}.items():
            with self.subTest(dump=name):
                path = self.scratch() / "fr_0"
                path.write_bytes(data)
                process = run("diagnose", path)
                self.assertIn(process.returncode, (0, 3), process.stderr)
                self.assertIn("left out", process.stderr)


if __name__ == "__main__":
    main()
