"""One run over three hosts of a real Slurm: healthy, and with one fault planted at a time. The right host
must be named, within the deadline, with exit code 1. Usage: test_cluster.py BINARY"""
import contextlib, json, pathlib, re, shutil, subprocess, sys, time, unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "program"))
from hosts import Hosts, environment, main  # noqa: E402
from relay import Relay, interface  # noqa: E402
BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
DEADLINE = 24


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(3, BINARY.parent)
        cls.addClassCleanup(cls.hosts.down)
        cls.dir = cls.hosts.dir

    def start(self, *args, sizes="4:64K", wrap=None, srun=("--mpi=pmix", "-N3", "--ntasks-per-node=2"),
              deadline=DEADLINE, name="report"):
        """srun of two ranks on each host; wrap: shell lines that run before it on every host."""
        self.deadline = deadline
        self.out, self.err = self.dir / f"{name}.json", self.dir / f"{name}.err"
        self.out.unlink(missing_ok=True)
        command = [str(BINARY), "run", "-v", "--timeout", str(deadline), "--sizes", sizes, "--format", "json",
                   "-o", str(self.out), *args]
        if wrap:
            command = ["sh", "-c", wrap + '\nexec "$@"', "sh", *command]
        with open(self.err, "w") as err:
            self.began = time.monotonic()
            self.process = subprocess.Popen(
                self.hosts.run("srun", *srun, *command), stdout=subprocess.DEVNULL, stderr=err, env=environment())
        self.addCleanup(self.process.kill)

    def wait_for(self, text):
        limit = time.monotonic() + 60
        while time.monotonic() < limit and self.process.poll() is None:
            if text in self.err.read_text():
                return
            time.sleep(0.02)
        self.fail(f"never came to {text!r}: " + self.err.read_text()[-2000:])

    def finish(self, code):
        self.process.wait(timeout=2 * self.deadline + 30)
        took = time.monotonic() - self.began
        self.assertTrue(self.out.exists(), self.err.read_text()[-2000:])
        report = json.loads(self.out.read_text())
        if code is not None:
            self.assertEqual(self.process.returncode, code, self.err.read_text()[-2000:])
        self.assertLess(took, self.deadline + 30, "ended long after its deadline")
        return report

    def row(self, report, setting, verdict):
        rows = [f for f in report["findings"] if f["setting"] == setting]
        self.assertTrue(rows, f"no row {setting}")
        found = [f for f in rows if f["verdict"] == verdict]
        self.assertTrue(found, f"{setting}: " + json.dumps(rows)[:1500])
        return found[0]

    def ranks_of(self, host):
        """Process ids of shakedown on a host, oldest first: supervisors, then workers."""
        return self.hosts.processes(host, BINARY.name[:15])

    def link(self, name, state):
        self.hosts.on("ctl", "ip", "link", "set", name, state)

    def test_healthy(self):
        self.start()
        report = self.finish(0)
        row = self.row(report, "all-reduce (fabric)", "pass")
        self.assertIn("6 ranks over tcp", row["observed"])
        self.row(report, "ranks", "pass")
        self.row(report, "facts", "pass")
        self.row(report, "packet loss (fabric)", "pass")
        self.row(report, "network error counters (fabric)", "pass")
        bad = [f for f in report["findings"] if f["verdict"] in ("warn", "fail") and f["family"] == "nodes"]
        self.assertEqual(bad, [])

    @contextlib.contextmanager
    def losing(self, host, *rule):
        """Some of the fabric's packets of a host are dropped, by a rule for iptables."""
        filtered = self.hosts.command(host, "iptables")
        tried = subprocess.run([*filtered, "-A", *rule, "-m", "statistic", "--mode", "random", "--probability",
                                "0.03", "-j", "DROP"], capture_output=True, text=True)
        if tried.returncode:
            self.skipTest(f"iptables cannot drop at random: {tried.stderr.strip()}")
        try:
            yield
        finally:
            subprocess.run([*filtered, "-F"], check=True)

    def lists(self, *args, **kwargs):
        """The same with lists of nodes; they are in self.good and self.bad after finish()."""
        self.good, self.bad = self.dir / "good", self.dir / "bad"
        self.start("--healthy-nodes", str(self.good), "--bad-nodes", str(self.bad), *args, **kwargs)

    def test_loss_between_two_hosts(self):
        """Both may be at fault: neither is called bad."""
        with self.losing("shk2", "INPUT", "-i", "hsn0"):
            self.lists(sizes="4:256K", wrap="export FI_TCP_IFACE=hsn0", srun=("--mpi=pmix", "-N2", "-w", "shk1,shk2"), deadline=45)
            report = self.finish(1)
        row = self.row(report, "packet loss (fabric)", "fail")
        self.assertNotIn("nodes", row)
        self.assertIn("shk1 to shk2", row["observed"])
        self.assertEqual(self.bad.read_text(), "")

    def test_killed_rank(self):
        self.start(sizes="4:64M")
        self.wait_for("fabric: allreduce 64 B")
        self.hosts.signal("shk2", "KILL", self.ranks_of("shk2")[-1])
        row = self.row(self.finish(1), "all-reduce (fabric)", "fail")
        self.assertEqual(row["nodes"], ["shk2"])
        self.assertIn("SIGKILL", row["why"])

    def test_killed_supervisor(self):
        self.start(sizes="4:64M")
        self.wait_for("fabric: allreduce 64 B")
        self.hosts.signal("shk3", "KILL", self.ranks_of("shk3")[0])
        report = self.finish(None)
        self.assertNotEqual(self.process.returncode, 0)
        self.assertEqual(self.row(report, "all-reduce (fabric)", "fail")["nodes"], ["shk3"])
        self.assertEqual(self.row(report, "ranks", "fail")["nodes"], ["shk3"])

    def test_unreachable_host(self):
        self.start(sizes="4:64M")
        self.wait_for("fabric: allreduce 64 B")
        for link in ("mgt0-2", "hsn0-2"):
            self.link(link, "down")
        try:
            limit = time.monotonic() + DEADLINE + 10
            while not self.out.exists() and time.monotonic() < limit:
                time.sleep(0.1)
        finally:
            for link in ("mgt0-2", "hsn0-2"):
                self.link(link, "up")
        report = self.finish(None)
        self.assertNotEqual(self.process.returncode, 0)
        self.assertEqual(self.row(report, "all-reduce (fabric)", "fail")["nodes"], ["shk2"])
        self.assertEqual(self.row(report, "ranks", "fail")["nodes"], ["shk2"])

    def test_rank_that_never_starts(self):
        """Beside it, since both wait more than they do: see second_rank()."""
        self.start(wrap='[ "$SLURM_PROCID" != 5 ] || exec sleep 15')
        first = {k: getattr(self, k) for k in ("out", "err", "process", "began", "deadline")}
        self.start(wrap='[ "$SLURM_PROCID" != 5 ] || export FI_TCP_IFACE=lo', deadline=60, name="second")
        second = {k: getattr(self, k) for k in first}
        self.__dict__.update(first)
        report = self.finish(None)
        self.assertNotEqual(self.process.returncode, 0)
        row = self.row(report, "ranks", "fail")
        self.assertEqual(row["nodes"], ["shk3"])
        self.assertIn("rank 5 on shk3: it never came", row["observed"])
        self.__dict__.update(second)
        self.second_rank()

    def second_rank(self):
        """Pairs of hosts, between their first ranks, all pass: only parts with all ranks tell."""
        report = self.finish(1)
        row = self.row(report, "all-reduce (fabric)", "fail")
        self.assertEqual(row.get("nodes"), ["shk3"], row["why"])
        self.assertIn("over parts of the nodes", row["why"])

    def test_fabric_link_down(self):
        self.link("hsn0-2", "down")
        try:
            self.start(wrap="export FI_TCP_IFACE=hsn0")
            report = self.finish(1)
        finally:
            self.link("hsn0-2", "up")
        row = self.row(report, "all-reduce (fabric)", "fail")
        self.assertEqual(row["nodes"], ["shk2"], row["why"])
        first = report["diagnoses"][0]
        self.assertIn("shk2", " ".join([first["explanation"], *first["evidence"]]))
        for f in report["findings"]:
            if f["family"] == "nodes" and f["verdict"] in ("warn", "fail"):
                self.assertEqual(f["nodes"], ["shk2"], f)

    @contextlib.contextmanager
    def relayed(self, host, delay, loss):
        """The fabric's link of a host (by its number) goes through a relay: same name and addresses."""
        name, inside, net = f"hsn0-{host}", f"shk{host}", self.hosts.net(f"shk{host}")
        link = json.loads(self.hosts.on(inside, "ip", "-j", "link", "show", "hsn0"))[0]

        def restore():
            self.hosts.on("ctl", "ip", "link", "set", name, "master", "shkhsn", "up")
            self.hosts.on(inside, "ip", "link", "set", "hsn0", "address", link["address"])
            self.hosts.on(inside, "ip", "addr", "add", f"10.77.2.{host}/24", "dev", "hsn0")
            self.hosts.on(inside, "ip", "link", "set", "hsn0", "up")

        self.link(name, "down")
        self.hosts.on("ctl", "ip", "link", "del", name)
        relay = Relay([interface(name, self.hosts.net("ctl"), tap=True), interface("hsn0", net, tap=True)], delay, loss)
        relay.start()
        try:
            restore()
            yield relay
        finally:
            relay.close()
            with open(net) as space:
                subprocess.run(self.hosts.command("ctl", "ip", "link", "add", name, "type", "veth", "peer", "name",
                                                  "hsn0", "netns", f"/proc/self/fd/{space.fileno()}"),
                               pass_fds=[space.fileno()], check=True)
            restore()

    @unittest.skipUnless(pathlib.Path("/dev/net/tun").exists(), "no tun device")
    def test_loss_delay_and_a_stop(self):
        """Uneven ranks, one of them stopped for a while, over a link that delays and loses: the result is
        right, in time, and the host with that link is named as slow."""
        with self.relayed(3, delay=0.005, loss=0.005) as relay:
            self.start(sizes="4:1K", wrap="export FI_TCP_IFACE=hsn0", srun=("--mpi=pmix", "-N3", "-n4"))
            self.wait_for("fabric: allreduce 8 B")
            stopped = self.ranks_of("shk2")[-1]
            self.hosts.signal("shk2", "STOP", stopped)
            time.sleep(2)
            self.assertIsNone(self.process.poll(), "ended while a rank was stopped")
            self.hosts.signal("shk2", "CONT", stopped)
            report = self.finish(None)
            self.assertGreater(relay.dropped, 0, f"nothing was lost of {relay.carried} packets")
        self.assertIn("4 ranks over tcp", self.row(report, "all-reduce (fabric)", "pass")["observed"])
        row = self.row(report, "speed between nodes (fabric)", "warn")
        self.assertEqual(row["nodes"], ["shk3"], row["observed"])
        for row in report["findings"]:
            if row["id"] == "collective.loss" and row["verdict"] in ("warn", "fail"):
                self.assertEqual(row["nodes"], ["shk3"], row["observed"])

    def test_killed_stepd(self):
        """Its tasks go on without it, so the run does; srun gives up on the host, with --wait soon."""
        self.start(srun=("--mpi=pmix", "-N3", "--ntasks-per-node=2", "--wait=2"))
        self.wait_for("fabric: allreduce 64 B")
        supervisor = self.ranks_of("shk3")[0]
        status = self.hosts.on("shk3", "cat", f"/proc/{supervisor}/status")
        stepd = int(re.search(r"PPid:\s+(\d+)", status).group(1))
        self.assertIn(stepd, self.hosts.processes("shk3", "slurmstepd"))
        self.hosts.signal("shk3", "KILL", stepd)
        report = self.finish(None)
        self.assertIn("6 ranks over tcp", self.row(report, "all-reduce (fabric)", "pass")["observed"])

    def test_wrong_interface_on_one_host(self):
        self.start(wrap='[ "$(hostname)" != shk3 ] || export FI_TCP_IFACE=lo FI_SOCKETS_IFACE=lo')
        report = self.finish(1)
        self.assertEqual(self.row(report, "env.FI_TCP_IFACE", "fail")["nodes"], ["shk3"])

    GPUS = f'export LD_LIBRARY_PATH="{BINARY.parent}/tests/fakes/gpu" SHK_FAKE_NCCL_DIR="{{}}"\n'

    def gpus(self, transport, *faults, code=0):
        """Each host with two GPUs of a stand-in driver; faults: shell lines that set what goes wrong."""
        self.start("--transport", transport, "--trust-libraries", sizes="8:64", wrap="\n".join((self.GPUS.format(self.dir), *faults)))
        report = self.finish(code)
        found = report["collectives"][transport]
        if "without a CUDA compiler" in found.get("reason", ""):
            self.skipTest(found["reason"])
        return report, found

    def test_gpus_of_all_hosts(self):
        _, found = self.gpus("nccl")
        self.assertEqual((found["status"], found["ranks"]), ("ok", 6), found.get("reason"))
        self.assertEqual([d["host"] for d in found["devices"]], ["shk1"] * 2 + ["shk2"] * 2 + ["shk3"] * 2)
        self.assertEqual({row["wrong"] for row in found["sizes"]}, {0})

    def test_host_without_gpus(self):
        report, _ = self.gpus("nccl", '[ "$SLURM_NODEID" != 1 ] || export SHK_FAKE_FAULT=no-device', code=1)
        row = self.row(report, "all-reduce (nccl)", "fail")
        self.assertEqual(row["nodes"], ["shk2"], row)

    def test_gpus_within_each_host(self):
        report, found = self.gpus("peer", '[ "$SLURM_NODEID" != 2 ] || export SHK_FAKE_FAULT=corrupt', code=1)
        self.assertEqual(self.row(report, "all-reduce (peer)", "fail")["nodes"], ["shk3"])
        self.assertEqual([(r["node"], r["status"], r["ranks"]) for r in found["by_node"]],
                         [("shk1", "ok", 2), ("shk2", "ok", 2), ("shk3", "wrong", 2)])
        report, found = self.gpus("peer")
        self.assertIn("2 ranks, ", self.row(report, "all-reduce (peer)", "pass")["observed"])
        self.assertIn("slowest of 3 nodes", self.row(report, "all-reduce (peer)", "pass")["observed"])
        self.assertIn("3 nodes, ", self.row(report, "nodes (peer)", "na")["observed"])

    def test_another_libfabric_on_one_host_a_wrong_clock_on_another(self):
        found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
        path = re.search(r"libfabric\.so\.1 .*=> (\S+)", found).group(1)
        (self.dir / "lib").mkdir(exist_ok=True)
        shutil.copy(path, self.dir / "lib" / "libfabric.so.1")
        clock = BINARY.parent / "tests/fakes/clock/libclock.so"
        self.start(wrap=f'[ "$(hostname)" != shk1 ] || export LD_LIBRARY_PATH={self.dir}/lib\n'
                        f'[ "$(hostname)" != shk2 ] || '
                        f'export LD_PRELOAD={clock} ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS')
        report = self.finish(1)
        self.assertEqual(self.row(report, "fabric.path", "fail")["nodes"], ["shk1"])
        row = self.row(report, "clocks", "fail")
        self.assertEqual(row["nodes"], ["shk2"])
        self.assertRegex(row["observed"], r"shk2 \+(400\.0|399\.9) s")


if __name__ == "__main__":
    main()
