"""shakedown diagnose: healthy logs give nothing, known messages give their cause, one bad rank among many comes first."""
import fcntl, gzip, json, resource, signal, struct, subprocess, termios, time, unittest
from support import BASE_ENV, BINARY, Case, SOURCE, main, read_yaml, run

LOGS = SOURCE / "tests" / "logs"
# Real runs with one thing broken on purpose (NCCL 2.28 on two GPUs).
FAULTS = {"bad-dup": "duplicate-gpu", "bad-gpu": "visible-devices-mismatch", "bad-ifname": "socket-ifname-missing",
          "bad-net": "net-plugin-missing", "bad-plugin": "net-plugin-name-wrong", "bad-algo": "algo-proto-excludes-all",
          "bad-topo": "topo-file-missing"}

# Peer access is switched off by a variable there.
SLOW = {"nccl-2.28-shared-memory.log": [("p2p-not-used", "possible")]}


STATUS_ALONE = (
    "srun: error: n1: task 3: Killed",
    "rank 3 (local_rank: 3) exitcode: -11 (pid: 1)",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "RuntimeError: CUDA error: invalid device ordinal",
    "Error 803: system has unsupported display driver / cuda driver combination",
    "libfabric:1:core:core:fi_getinfo_():1<warn> fi_getinfo: provider efa returned -61 (No data available)",
    "libfabric:1:core:core:ofi_hmem_init():1<info> Failed to dlopen libnvidia-ml.so",
    "[n1][[1,1],1][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)",
    "ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
    "n1:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
    "n1:1:2 [0] NCCL WARN NUMA auto balancing enabled which can lead to variability in the RCCL performance!",
    "libfabric.so.1: cannot open shared object file: No such file or directory",
    "OSError: [Errno 28] No space left on device",
    "OSError: [Errno 5] Input/output error: '/scratch/x'",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "NVRM: Xid (PCI:0000:1b:00): 119, pid=1, Timeout waiting for RPC from GSP!",
    "slurmd: error: Failed to initialize NVML: Unknown Error",
    "RuntimeError: Found no NVIDIA driver on your system.",
    "[n1:77] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 206",
    "[n1:77] PMIX ERROR: NOT-FOUND in file client/pmix_client.c at line 282",
    "[n1:77] PMIX ERROR: PMIX_ERR_FILE_OPEN_FAILURE in file ../../gds_shmem2.c at line 1056",
    "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled system error, NCCL version 2.14.3",
    "[1.1] [n1:88 :0] ib_mlx5_log.c:171 UCX  ERROR Local QP operation error on mlx5_0:1/IB (synd 0x2 vend 0x68 hw_synd 0/0)",
    "[1.1] [n1:88 :0] ib_mlx5_log.c:171 UCX  ERROR Remote access error on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)",
    "Test HIP failure common.cu:1129 'hipErrorInvalidDevice'",
    "Couldn't allocate MR",
    "nvidia-container-cli: initialization error: driver rpc error: timed out: unknown.",
    "RuntimeError: CUDA error: unspecified launch failure",
)
OVER_AGAIN = (
    ("cxi_ss1 0000:d3:00.0: cxi0[hsn0]: CXI_EVENT_LINK_DOWN", "cxi_ss1 0000:d3:00.0: cxi0[hsn0]: CXI_EVENT_LINK_UP"),
    ("nfs: server store1 not responding, still trying", "nfs: server store1 OK"),
    ("slurmctld: error: Nodes n03 not responding, setting DOWN", "slurmctld: Node n03 now responding"),
    (
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    ),
)


class Diagnose(Case):
    def causes(self, *args, **kw):
        process = run("diagnose", "--format", "json", *args, **kw)
        causes = self.json_of(process)["diagnoses"]
        sure = any(c["confidence"] != "possible" for c in causes)
        self.assertIn(process.returncode, (1, 3) if sure else (0, 3), process.stderr)
        return causes

    def keys(self, *args, **kw):
        return [d["key"] for d in self.causes(*args, **kw)]

    def test_an_exception_that_no_signature_knows(self):
        """It comes before what the launcher says of the ranks that it ended; one of a library is that library's."""
        launcher = ("W1130 09:34:52.409000 1720 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process 1859 closing signal SIGTERM\n"
                    "E1130 09:34:52.524000 1720 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 1 (pid: 1860) of binary: /usr/bin/python3\n")
        own = "[rank0]: RuntimeError: the tokenizer has no pad token, and packing is off\n"
        causes = self.causes(self.write("a.log", "[rank0]: Traceback (most recent call last):\n" + own + launcher))
        self.assertEqual((causes[0]["key"], causes[0]["confidence"]), ("application-error", "possible"))
        self.assertIn("the tokenizer has no pad token", causes[0]["evidence"][0])
        library = "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
        evidence = [c["evidence"] for c in self.causes(self.write("b.log", library + launcher)) if c["key"] == "application-error"]
        self.assertNotIn("no library of the collectives", str(evidence))
        self.assertNotIn("application-error", self.keys(self.write("c.log", "INFO: a RuntimeError: was handled\n")))

    def test_the_stub_of_libcuda(self):
        line = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 34: CUDA driver is a stub library\n"
        self.assertEqual(self.keys(self.write("a.log", line))[0], "cuda-stub-loaded")

    def write(self, name, text):
        path = self.scratch() / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def interrupted(self, data, number):
        """Ended while it waits for more of a log; what it says of the part that it has read."""
        p = subprocess.Popen([str(BINARY), "diagnose", "--format", "json", "-"], env=BASE_ENV, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        p.stdin.write(data)
        p.stdin.flush()
        left = 1
        while left and p.poll() is None:
            time.sleep(0.05)
            left, = struct.unpack("i", fcntl.ioctl(p.stdin, termios.FIONREAD, b"\0" * 4))
        p.send_signal(number)
        p.wait(timeout=120)
        out, err = p.stdout.read(), p.stderr.read()
        for pipe in (p.stdin, p.stdout, p.stderr):
            pipe.close()
        self.assertEqual(p.returncode, 128 + number, err)
        return json.loads(out)

    def test_a_signal_that_asks_to_end(self):
        """What was read by then is judged, and the answer says that it was not all; a start as it should be is no
        healthy job then."""
        bad = (LOGS / "faults" / "bad-net.log").read_bytes()
        good = sorted((LOGS / "healthy").glob("nccl*.log"))[0].read_bytes()
        for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
            report = self.interrupted(bad, number)
            self.assertEqual(report["interrupted"], name)
            self.assertIn("net-plugin-missing", [d["key"] for d in report["diagnoses"]])
        report = self.interrupted(good, signal.SIGTERM)
        self.assertEqual((report["interrupted"], report["diagnoses"]), ("SIGTERM", []))
        # the middle of a compressed file
        packed = gzip.compress(bad * 400, 1)
        report = self.interrupted(packed[:len(packed) // 2], signal.SIGTERM)
        self.assertIn("net-plugin-missing", [d["key"] for d in report["diagnoses"]])

    def test_a_limit_on_the_size_of_files(self):
        log = self.write("x.log", "n1:1:1 [0] NCCL WARN Error: network AWS Libfabric not found.\n")
        p = run("diagnose", log, "-o", self.scratch() / "r.json", "--format", "json",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(p.returncode, 4, p.stderr)
        self.assertIn("net-plugin-missing", p.stdout)

    def test_healthy_logs_give_no_diagnosis(self):
        logs = sorted((LOGS / "healthy").glob("*.log"))
        self.assertGreaterEqual(len(logs), 45)
        for log in logs:
            with self.subTest(log=log.name):
                got = [(d["key"], d["confidence"]) for d in self.causes("--log", log)]
                self.assertEqual(got, SLOW.get(log.name, []))

    def test_healthy_logs_together_give_no_diagnosis_of_their_lines(self):
        logs = sorted((LOGS / "healthy").glob("slurm-*.log")) + sorted((LOGS / "healthy").glob("libfabric-*.log"))
        self.assertEqual(self.keys(*[a for log in logs for a in ("--log", log)]), [])

    def test_healthy_logs_of_different_programs_together(self):
        """As one job prints them: of two logs, at most one with a start of NCCL, for two starts are two jobs."""
        logs = sorted((LOGS / "healthy").glob("*.log"))
        starts = {log for log in logs if b"NCCL" in log.read_bytes()}
        others = [log for log in logs if log not in starts]
        for i, log in enumerate(logs):
            other = others[i * 7 % len(others)]
            with self.subTest(logs=(log.name, other.name)):
                got = [c["key"] for c in self.causes("--log", log, "--log", other) if c["confidence"] != "possible"]
                self.assertEqual(got, [])

    def test_real_faults(self):
        for name, want in FAULTS.items():
            with self.subTest(log=name):
                self.assertEqual(self.keys("--log", LOGS / "faults" / f"{name}.log")[:1], [want])

    def test_a_fault_in_a_healthy_log_is_found(self):
        text = (LOGS / "healthy" / "nccl-2.28-trace.log").read_text()
        text += "node01:1:1 [0] misc/ibvwrap.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
        self.assertEqual(self.keys("--log", self.write("l", text))[:1], ["memlock-too-low"])

    def test_messages(self):
        for case in json.loads((LOGS / "cases.json").read_text()):
            args = []
            if "log" in case:
                args += ["--log", self.write("log", "\n".join(case["log"]) + "\n")]
            if "env" in case:
                args += ["--env", self.write("env", "".join(f"{k}={v}\n" for k, v in case["env"].items()))]
            for i, facts in enumerate(case.get("nodes") or [case["facts"]] if "facts" in case or "nodes" in case else []):
                args += ["--facts", self.write(f"facts{i}", json.dumps({"schema": "shakedown.facts/1", "facts": facts}))]
            with self.subTest(want=case["want"], log=case.get("log"), env=case.get("env"), facts=case.get("facts")):
                causes = self.causes(*args)
                got = [c["key"] for c in causes]
                self.assertEqual(got[:1], [case["want"]] if case["want"] else [], got)
                if "confidence" in case:
                    self.assertEqual(causes[0]["confidence"], case["confidence"])

    def test_a_status_alone_is_a_guess(self):
        for line in STATUS_ALONE:
            with self.subTest(log=line):
                self.assertEqual([c for c in self.causes("--log", self.write("l", line + "\n")) if c["confidence"] != "possible"], [])

    def test_what_is_over_again_is_a_guess(self):
        for gone, back in OVER_AGAIN:
            with self.subTest(log=gone):
                first = self.causes("--log", self.write("l", gone + "\n"))[0]
                self.assertEqual(first["confidence"], "likely")
                guess = self.causes("--log", self.write("l", gone + "\n" + back + "\n"))
                self.assertEqual([c["confidence"] for c in guess if c["key"] == first["key"]], ["possible"])
                self.assertIn("(over again by l:2)", guess[0]["evidence"][0])
                again = self.causes("--log", self.write("l", back + "\n" + gone + "\n"))[0]
                self.assertEqual((again["key"], again["confidence"]), (first["key"], "likely"))

    def test_another_device_or_node_that_is_back_ends_nothing(self):
        line = "{} kernel: cxi_ss1 0000:d3:00.0: {}[hsn0]: CXI_EVENT_LINK_{}"
        for rows in (
            (("n1", "cxi0", "DOWN"), ("n1", "cxi1", "DOWN"), ("n1", "cxi1", "UP")),
            (("n1", "cxi0", "DOWN"), ("n2", "cxi0", "UP")),
        ):
            text = "".join("Nov 30 09:00:00 " + line.format(*row) + "\n" for row in rows)
            with self.subTest(log=text):
                first = self.causes("--log", self.write("l", text))[0]
                self.assertEqual((first["key"], first["confidence"]), ("cxi-link-down", "likely"))

    def test_one_bad_rank_among_a_thousand_comes_first(self):
        lines = []
        for rank in range(1000):
            who = f"node{rank // 8:03}:{5000 + rank % 8}:{6000 + rank} [{rank % 8}]"
            lines.append(f"{who} NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks 1000 cudaDev {rank % 8} busId 1000 - Init START")
            lines.append(f"{who} NCCL INFO Bootstrap: Using hsn0:10.0.{rank // 250}.{rank % 250}<0>")
            if rank == 613:
                lines.append(f"{who} misc/ibvwrap.cc:213 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory")
        for rank in range(1000):
            who = f"node{rank // 8:03}:{5000 + rank % 8}:{6000 + rank} [{rank % 8}]"
            lines.append(f"{who} misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node076<41000>")
            lines.append(f"{who} NCCL INFO misc/socket.cc:57 -> 6")
            lines.append(f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error")
        causes = self.causes("--log", self.write("l", "\n".join(lines) + "\n"))
        self.assertEqual(causes[0]["key"], "memlock-too-low")
        self.assertIn("rank 613", causes[0]["evidence"][0])
        self.assertIn("node076:5005", causes[0]["evidence"][0])
        self.assertIn("ibv_create_cq", causes[0]["evidence"][0])
        died = [c for c in causes if c["key"] == "peer-rank-died"][0]
        self.assertEqual(died["explained_by"], "memlock-too-low")
        self.assertIn("1000", " ".join(died["evidence"]))

    def test_a_symptom_alone_says_that_it_is_thin(self):
        causes = self.causes("--log", self.write("l", "RuntimeError: NCCL error: unhandled system error, NCCL version 2.4.8\n"))
        self.assertTrue(causes)
        for cause in causes:
            self.assertEqual(cause["confidence"], "possible")
            self.assertTrue(any(e.startswith("the evidence is thin") for e in cause["evidence"]), cause["evidence"])

    def test_a_setting_alone_is_a_note_below_what_a_log_shows(self):
        env = self.write("env", "MPICH_GPU_SUPPORT_ENABLED=1\nFI_MR_CACHE_MONITOR=memhooks\nFI_PROVIDER=cxi\nFI_CXI_RDZV_PROTO=alt_read\n")
        alone = self.causes("--env", env)
        self.assertIn("mr-cache-monitor-hang", [c["key"] for c in alone])
        self.assertEqual({c["confidence"] for c in alone}, {"possible"})
        for line, want in (("x: cxil_alloc_svc: Invalid argument", "cxi-service-alloc-failed"),
                           ("n1:7:9 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2000", "duplicate-gpu"),
                           ("Unable to set up: maximal number of files that could be opened simultaneously was reached", "nofile-too-low")):
            with self.subTest(want=want):
                causes = self.causes("--env", env, "--log", self.write("l", line + "\n"))
                self.assertEqual(causes[0]["key"], want)
                scores = [c["score"] for c in causes]
                self.assertEqual(scores, sorted(scores, reverse=True))

    def test_a_log_that_says_too_little_is_told_so(self):
        process = run("diagnose", "--log", self.write("l", "something went wrong\n"))
        self.assertIn("NCCL_DEBUG=INFO", process.stdout)
        self.assertEqual(self.keys("--log", self.write("l", "something went wrong\n")), [])
        process = run("diagnose", "--log", LOGS / "healthy" / "nccl-2.28-info.log")
        self.assertNotIn("detail of the logs", process.stdout)

    def test_what_would_tell_more_fits_the_log(self):
        for line, word in (("NVRM: GPU 0000:01:00.0: RmInitAdapter failed!", "dmesg"), ("[1.2] [n1:7:0] x.c:1 UCX  ERROR odd thing", "UCX_LOG_LEVEL"),
                           ("srun: error: odd thing", "srun -vv"), ("libfabric:3:4::core:core:f():1<warn> odd", "FI_LOG_LEVEL=info"),
                           ("MPICH ERROR [Rank 0] odd", "MPICH_ENV_DISPLAY")):
            with self.subTest(line=line):
                text = " ".join(run("diagnose", "--log", self.write("l", line + "\n")).stdout.split())
                self.assertIn(word, text)
        kernel = run("diagnose", "--log", self.write("l", "NVRM: GPU 0000:01:00.0: RmInitAdapter failed!\n")).stdout
        self.assertNotIn("NCCL_DEBUG", kernel)

    def test_environments_that_profiles_ask_for_are_healthy(self):
        """What each site's own list asks for, with and without what it only recommends, gives nothing above possible."""
        profiles = {row["name"]: row for f in (SOURCE / "config/profiles").glob("*.yaml") for row in [read_yaml(f)]}
        variables = {row["name"] for f in (SOURCE / "config/settings").glob("*.yaml") for row in read_yaml(f)
                     if row.get("variable", True)}
        def lines(row):
            base = lines(profiles[row["extends"]]) if row.get("extends") else {}
            return base | {line["name"]: line for line in row.get("settings", [])}
        asked = 0
        for name, row in sorted(profiles.items()):
            for optional in (False, True):
                env = {line["name"]: line["accepted"][0] for line in lines(row).values()
                       if line["name"] in variables and line.get("accepted") and (optional or line.get("strength") != "optional")}
                env |= {"PATH": "/usr/bin", "HOME": "/home/u"} if optional else {}
                file = self.write("env", "".join(f"{k}={v}\n" for k, v in env.items()))
                with self.subTest(profile=name, optional=optional):
                    self.assertEqual([c["key"] for c in self.causes("--env", file) if c["confidence"] != "possible"], [])
                asked += 1
        self.assertGreater(asked, 50)

    def test_settings_seen_in_the_log(self):
        report = self.json_of(run("diagnose", "--format", "json", "--log", LOGS / "healthy" / "nccl-2.28-set.log"))
        row = self.finding(report, "NCCL_PROTO", "pass")
        self.assertEqual(row["evidence"], "log")
        env = self.write("env", "NCCL_NET=AWS Libfabric\n")
        broken = self.write("l", "n1:1:1 [0] plugin/net.cc:379 NCCL WARN Error: network AWS Libfabric not found.\n")
        report = self.json_of(run("diagnose", "--format", "json", "--log", broken, "--env", env))
        self.assertTrue([f for f in report["findings"] if f["setting"] == "NCCL_NET" and f["verdict"] in ("warn", "fail")])

    def test_values_that_a_log_says_were_read(self):
        """libfabric prints the provider and the name without it, NVSHMEM every option with its default."""
        log = self.write("l", "libfabric:47:17::core:core:fi_param_get_():282<info> read string var mr_cache_monitor=kdreg2\n"
                         "libfabric:47:17::cxi:core:fi_param_get_():282<info> read long var default_cq_size=131072\n"
                         "libfabric:47:cxi:core:fi_param_get_():282<info> read bool var optimized_mrs=0\n"
                         "libfabric:47:17::cxi:core:fi_param_get_():282<info> read int var rdzv_get_min=16\n"
                         "libfabric:47:17::efa:core:fi_param_get_():282<info> variable iface=<not set>\n"
                         "  NVSHMEM_SYMMETRIC_SIZE      1073741824 (type: size, default: 1073741824)\n"
                         '  NVSHMEM_REMOTE_TRANSPORT    "libfabric" (type: string, default: "ibrc")\n')
        env = self.write("env", "NCCL_DEBUG=INFO\nFI_CXI_DEFAULT_CQ_SIZE=0x20000\nFI_CXI_OPTIMIZED_MRS=false\n"
                         "FI_CXI_RDZV_GET_MIN=32\nFI_MR_CACHE_MONITOR=kdreg2\nNVSHMEM_REMOTE_TRANSPORT=libfabric\n")
        report = self.json_of(run("diagnose", "--format", "json", "--log", log, "--env", env))
        seen = {f["setting"]: f["evidence"] for f in report["findings"] if f["setting"].startswith(("FI_", "NVSHMEM_"))}
        self.assertEqual(seen, {"FI_MR_CACHE_MONITOR": "log", "FI_CXI_DEFAULT_CQ_SIZE": "log", "FI_CXI_OPTIMIZED_MRS": "log",
                                "FI_CXI_RDZV_GET_MIN": "declared", "NVSHMEM_REMOTE_TRANSPORT": "log"})
        for name, said in (("FI_CXI_RDZV_GET_MIN", "fi-param-read"), ("FI_MR_CACHE_MONITOR", "fi-param-read"),
                           ("NVSHMEM_REMOTE_TRANSPORT", "nvshmem-option"), ("NCCL_PROTO", "nccl-env-read")):
            self.assertIn(said, run("explain", name).stdout)
        self.assertNotIn("In a log", run("explain", "UCX_TLS").stdout)

    def test_packed_logs_and_stdin(self):
        text = b"x NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2000\n" * 3
        gz = self.write("a.gz", gzip.compress(text))
        zst = self.write("a.zst", subprocess.run(["zstd", "-qc"], input=text, capture_output=True).stdout) if self.has_zstd() else gz
        for path in (gz, zst):
            self.assertEqual(self.keys("--log", path), ["duplicate-gpu"])
        process = subprocess.run([run.__globals__["BINARY"], "diagnose", "--format", "json", "--log", "-"], input=text, capture_output=True)
        self.assertEqual([d["key"] for d in json.loads(process.stdout)["diagnoses"]], ["duplicate-gpu"])

    def test_logs_without_the_option(self):
        a = self.write("a", b"x NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2000\n")
        self.assertEqual(self.keys(a), ["duplicate-gpu"])
        self.assertEqual(self.keys(self.write("b", b"ok\n"), "--log", a), ["duplicate-gpu"])
        self.one_line(run("diagnose", "/nonexistent"), 2, "/nonexistent")

    def has_zstd(self):
        return subprocess.run(["sh", "-c", "command -v zstd"], capture_output=True).returncode == 0

    def test_bad_input(self):
        self.one_line(run("diagnose"), 2, "nothing to look at")
        self.one_line(run("diagnose", "--log", "/nonexistent"), 2, "/nonexistent")
        half = self.write("half.gz", gzip.compress(b"line\n" * 1000)[:-9])
        self.one_line(run("diagnose", "--log", half), 2, "half.gz")
        self.assertEqual(self.keys("--log", self.write("bytes", bytes(range(256)) * 500)), [])
        self.assertEqual(self.keys("--log", self.write("empty", b"")), [])

    def test_exit_codes_and_the_headline(self):
        def ask(*args):
            process = run("diagnose", *args)
            return process.returncode, process.stdout.splitlines()[0]
        sure = self.write("sure", "x NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 2000\n")
        code, line = ask("--log", sure)
        self.assertEqual(code, 1)
        self.assertIn("1 cause, likely", line)
        code, line = ask("--log", LOGS / "healthy" / "nccl-2.28-info.log")
        self.assertEqual(code, 0)
        self.assertIn("no cause", line)
        code, line = ask("--log", self.write("odd", "job: frobnicator failed\njob: done\n"))
        self.assertEqual(code, 3)
        self.assertIn("no known cause; 1 line looks like an error: odd:1: job: frobnicator failed", line)

    def test_unknown_errors_are_shown_and_make_less_sure(self):
        cause = "bond0: link status definitely down for interface eth2, disabling it\n"
        odd = "frobnicator failed on n1\nfrobnicator failed on n2\n"
        after = self.write("after", cause + odd)
        self.assertEqual([c["confidence"] for c in self.causes("--log", after)][:1], ["likely"])
        before = self.write("before", odd + cause)
        first = self.causes("--log", before)[0]
        self.assertEqual(first["confidence"], "possible")
        self.assertIn("less sure", " ".join(first["evidence"]))
        text = run("diagnose", "--verbose", "--log", before).stdout
        self.assertIn("before:1", text)
        self.assertIn("2 lines look like errors, and no signature knows them: frobnicator failed on n1", " ".join(text.split()))

    def test_a_line_with_several_causes_is_a_guess(self):
        for line in ("n1:5:9 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 vendor err 129",
                     "n1:5:9 [0] misc/socket.cc:49 NCCL WARN socketStartConnect: Connect to 10.0.0.1<1> failed : Connection refused",
                     "[rank1]: ValueError: something is not as it should be", "RuntimeError: Address already in use",
                     "failed (exitcode: -7) local_rank: 1 (pid: 7) of binary: python3", "curl: (7) connect to n2: No route to host",
                     "DMAR: [DMA Read] Request device [3a:00.0] fault addr 0", "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
                     "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0x65:1459)", "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
                     "init.cc:179 NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead to system instablity or hang!",
                     "ucp_context.c:1 UCX ERROR connect(fd=41, dest_addr=10.0.0.1:45031) failed: Connection refused"):
            with self.subTest(line=line):
                causes = self.causes("--log", self.write("l", line + "\n"))
                self.assertEqual({c["confidence"] for c in causes} - {"possible"}, set(), [(c["key"], c["confidence"]) for c in causes])

    def test_what_binds_a_line_makes_it_likely(self):
        def first(lines, **facts):
            facts = self.write("f", json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
            cause = self.causes("--log", self.write("l", lines + "\n"), "--facts", facts)[0]
            return cause["key"], cause["confidence"]
        pmix = "[n1:7] PMIX ERROR: PMIX TEMPORARILY UNAVAILABLE in file ptl_tcp.c at line 685"
        self.assertEqual(first(pmix, **{"host.container": "singularity"}), ("pmix-version-mismatch", "likely"))
        self.assertEqual(first(pmix, **{"host.kernel": "6.1"})[1], "possible")
        iommu = "DMAR: [DMA Read] Request device [3a:00.0] fault addr 0"
        self.assertEqual(first(iommu + "\nNVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54", **{"host.kernel": "6.1"}), ("iommu-not-passthrough", "likely"))
        gids = [{"name": "mlx5_0", "driver": "mlx5_core", "ports": [{"port": 1, "state": "ACTIVE", "link_layer": "Ethernet", "gids": [
            {"index": i, "type": "RoCE v2", "family": "ipv4"} for i in (0, 1, 2, 4)]}]}]
        env = self.write("env", "NCCL_IB_GID_INDEX=3\n")
        facts = self.write("f", json.dumps({"schema": "shakedown.facts/1", "facts": {"rdma.devices": gids}}))
        found = {c["key"]: c["confidence"] for c in self.causes("--env", env, "--facts", facts)}
        self.assertEqual(found.get("roce-gid-index-wrong"), "likely")
        gids[0]["ports"][0]["gids"][3]["index"] = 3
        facts = self.write("f", json.dumps({"schema": "shakedown.facts/1", "facts": {"rdma.devices": gids}}))
        self.assertNotIn("roce-gid-index-wrong", self.keys("--env", env, "--facts", facts))

    def test_guesses_of_another_fabric_are_dropped(self):
        line = "n1:1:1 [0] misc/ibvwrap.cc:1 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory\n"
        self.assertIn("efa-nic-count-low", self.keys("--log", self.write("l", line)))
        mellanox = "n1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\n" + line
        self.assertNotIn("efa-nic-count-low", self.keys("--log", self.write("m", mellanox)))
        facts = self.write("f", json.dumps({"schema": "shakedown.facts/1", "facts": {"pci.count.mlx5": 4, "pci.count.efa": {"state": "absent"}}}))
        self.assertNotIn("efa-nic-count-low", self.keys("--log", self.write("l", line), "--facts", facts))

    def test_what_only_one_link_layer_has_is_a_guess_on_the_other(self):
        line = self.write("l", "n1:1:1 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0\n")
        def causes(layer):
            port = {"port": 1, "state": "ACTIVE", "link_layer": layer}
            facts = {"rdma.devices": [{"name": "mlx5_0", "driver": "mlx5_core", "ports": [port]}]}
            facts = self.write("f", json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
            return [(c["key"], c["confidence"]) for c in self.causes("--log", line, "--facts", facts)]
        self.assertEqual(causes("Ethernet")[0], ("roce-gid-index-wrong", "possible"))
        self.assertEqual(causes("InfiniBand")[0][0], "ib-retry-exceeded")
        self.assertFalse([c for c in causes("InfiniBand") if c[0].startswith("roce-") and c[1] != "possible"])

    def test_a_line_that_two_signatures_know_is_one_piece_of_evidence(self):
        line = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file\n"
        self.assertEqual(self.causes("--log", self.write("l", line))[0]["confidence"], "likely")

    def test_counts_of_launches_at_one_moment(self):
        """A healthy job between two launches looks the same: a guess, until a collective has timed out."""
        ras = ("NCCL version 2.28.9 compiled with CUDA 13.0\n  Communicator ranks have different AllReduce operation counts\n"
               "  Rank 0 has launched up to operation 31 -- GPU 0 managed by process 620 on node 192.0.2.2\n"
               "  Rank 1 has launched up to operation 30 -- GPU 1 managed by process 621 on node 192.0.2.2\n")
        late = ("[rank1]:[E1129 22:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
                "WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds\n")
        alone = {c["key"]: c["confidence"] for c in self.causes("--log", self.write("ras", ras))}
        both = self.causes("--log", self.write("both", ras + late))
        self.assertEqual(set(alone.values()), {"possible"})
        self.assertIn("rank-hung", alone)
        self.assertEqual((both[0]["key"], both[0]["confidence"]), ("rank-hung", "likely"))

    def test_mtus_of_one_subnet(self):
        def node(i, mtu, net="10.0.0"):
            ports = [{"name": "eth0", "mtu": mtu, "addrs": [{"family": "inet", "addr": f"{net}.{i}", "prefix": 24}]},
                     {"name": "lo", "mtu": 65536 + i, "loopback": True, "addrs": [{"family": "inet", "addr": "127.0.0.1", "prefix": 8}]}]
            facts = {"host.name": f"n{i}", "net.ifaces": ports}
            return ["--facts", self.write(f"n{i}", json.dumps({"schema": "shakedown.facts/1", "facts": facts}))]
        self.assertEqual(self.keys(*node(1, 9000), *node(2, 1500))[:1], ["mtu-mismatch"])
        self.assertNotIn("mtu-mismatch", self.keys(*node(1, 9000), *node(2, 9000)))
        self.assertNotIn("mtu-mismatch", self.keys(*node(1, 9000), *node(2, 1500, "10.0.1")))

    def test_facts_refute_and_confirm(self):
        log = self.write("l", "n1:1:1 [0] misc/ibvwrap.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n")
        def confidence(limit):
            facts = {"schema": "shakedown.facts/1", "facts": {} if limit is None else {"limits.memlock": {"soft": limit, "hard": -1}}}
            causes = self.causes("--log", log, "--facts", self.write("f", json.dumps(facts)))
            return {c["key"]: c["confidence"] for c in causes}.get("memlock-too-low")
        self.assertEqual(confidence(None), "likely")
        self.assertEqual(confidence(65536), "confirmed")
        self.assertIn(confidence(-1), ("possible", None))

    def test_few_variables_are_no_environment(self):
        few = self.write("few", "FI_PROVIDER=cxi\nNCCL_SOCKET_IFNAME=hsn0\n")
        self.assertFalse([c for c in self.causes("--env", few) if c["confidence"] != "possible"])

    def test_site_signatures_are_used(self):
        folder = self.scratch()
        (folder / "signatures").mkdir()
        (folder / "signatures" / "site.yaml").write_text(
            '- id: site-quota\n  library: system\n  pattern: "scratch quota of \\\\S+ exceeded"\n  meaning: quota\n'
            "  role: cause\n  diagnosis: shm-too-small\n  weight: 90\n  source: site handbook\n")
        log = self.write("l", "job: scratch quota of user7 exceeded\n")
        self.assertEqual(self.keys("--log", log), [])
        self.assertEqual(self.keys("--config", folder, "--log", log), ["shm-too-small"])
        (folder / "signatures" / "bad.yaml").write_text(
            '- id: site-bad\n  library: system\n  pattern: "quota (of"\n  meaning: quota\n'
            "  role: context\n  source: site handbook\n")
        self.one_line(run("diagnose", "--config", folder, "--log", log), 2, "bad.yaml:3: pattern", "quota (of")

    def test_log_of_our_own_collective_proves_a_setting(self):
        facts = {"env.NCCL_SOCKET_IFNAME": "eth0",
                 "net.ifaces": [{"name": "eth0", "up": True, "addrs": [{"addr": "10.0.0.4"}]}],
                 "collective.nccl.log": "n1:7:7 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.4<0>\n"}
        path = self.scratch() / "facts.json"
        path.write_text(json.dumps({"schema": "shakedown.facts/1", "facts": facts}))
        row = self.finding(self.json_of(run("check", path, "--profile", "single-node", "--format", "json")),
                           "NCCL_SOCKET_IFNAME", "pass")
        self.assertEqual(row["evidence"], "log")



if __name__ == "__main__":
    main()
