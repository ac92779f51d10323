"""The all-reduce between three virtual machines under Slurm: over software RoCE by ofi_rxm (RC) and ofi_rxd (UD), over
software iWARP; ranks that are killed or stopped, a machine that is cut off, lost packets; and one machine with a
fault. The report names device and GID of each rank, and who is to blame. Usage: test_job.py BINARY"""
import json, pathlib, shlex, sys, time, unittest

import verbs
from machine import Machines, Missing, skip_if_missing

BINARY = pathlib.Path(sys.argv[1]).resolve()
RXM, RXD = "verbs;ofi_rxm", "verbs;ofi_rxd"
HOSTS = ("vm1", "vm2", "vm3")
NOBODY = "env HOME=/ setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all --bounding-set -all"
ON_VM2 = '[ "$(hostname)" != vm2 ] || '

# a file outside has the time of this machine; the clock of a virtual one begins with whole seconds
CLOCK = """at() { rm -f $OUT/now; : >$OUT/now; stat -c %.9Y $OUT/now; }
for i in $(seq 50); do
    date -s @$(at) >/dev/null
    before=$(date +%s%N) outside=$(at | tr -d .) after=$(date +%s%N)
    [ $((after - outside)) -ge 0 ] && [ $((after - before)) -lt 50000000 ] && [ $((outside - before)) -gt -50000000 ] && break
done
true"""


# how far its clock is from the one outside, in ms
OFFSET = CLOCK.partition("\n")[0] + "; echo $((($(date +%s%N) - $(at | tr -d .)) / 1000000))"


class Job(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.vms = Machines(3, memory=1536)
        cls.addClassCleanup(cls.vms.close)
        print(f"booted in {max(vm.booted for vm in cls.vms.all):.0f} s", flush=True)
        cls.vms.sh(f"set -e; chmod 777 $OUT; {verbs.ROCE}; {verbs.PORT.format('rxe0')}", 240)
        verbs.slurm(cls.vms)
        cls.vms.sh(CLOCK)

    def setUp(self):
        self.began, self.running = time.monotonic(), False

    def tearDown(self):
        if self.running:  # what failed did not wait for the job
            self.vms.all[0].wait(300, check=False)
        print(f"{self.id().rpartition('.')[2]}: {time.monotonic() - self.began:.0f} s", flush=True)

    def start(self, provider=RXM, wrap="true", sizes="4:4K", srun="--wait=5", deadline=60, user=""):
        vm = self.vms.all[0]
        self.report = vm.dir / "report.json"
        for name in ("report.json", "good", "bad", "said"):
            (vm.dir / name).unlink(missing_ok=True)
        command = [str(BINARY), "run", "-v", "--transport", "fabric", "--provider", provider, "--sizes", sizes, "--timeout", str(deadline)]
        where = "-o $OUT/report.json --healthy-nodes $OUT/good --bad-nodes $OUT/bad"
        self.running = True
        script = f'{wrap}\nexec "$@"'
        vm.start(f"{user} srun --mpi=pmix -N3 -n3 {srun} sh -c {shlex.quote(script)} sh "
                 f"{shlex.join(command)} {where} 2>$OUT/said")

    def ended(self):
        status = self.vms.all[0].wait(300, check=False)[0]
        self.running = False
        said = (self.vms.all[0].dir / "said").read_text()
        self.assertTrue(self.report.exists(), f"exit {status}: {said[-2000:]}")
        return json.loads(self.report.read_text())

    def run_job(self, *args, **how):
        self.start(*args, **how)
        return self.ended()

    def lists(self):
        return [(self.vms.all[0].dir / name).read_text().strip() for name in ("good", "bad")]

    def passes(self, report, provider, device):
        row = verbs.row(report, "all-reduce (fabric)")
        self.assertEqual(row["verdict"], "pass", row)
        self.assertIn(f"3 ranks over {provider}", row["observed"])
        found = report["collectives"]["fabric"]
        self.assertEqual([(p["rank"], p["device"], p["gid"]) for p in found["ports"]],
                         [(at, device, f"::ffff:10.211.0.{at + 1}") for at in range(3)])
        self.assertTrue(found["sizes"] and all(size["wrong"] == 0 for size in found["sizes"]))

    def blames(self, report, causes, host, *says):
        """That host and one of these causes first."""
        first = report["diagnoses"][0]
        self.assertIn(first["key"], causes, json.dumps(report["diagnoses"])[:3000])
        good = {"vm1": "vm[2-3]", "vm2": "vm[1,3]", "vm3": "vm[1-2]"}[host]
        self.assertEqual(self.lists(), [good, host], json.dumps(first))
        for text in says:
            self.assertIn(text, json.dumps(first) + json.dumps(report["findings"]))

    def offsets(self):
        return [int(ms) for ms in self.vms.sh(OFFSET)]

    def test_reliable_connections(self):
        self.vms.sh(CLOCK)
        before = self.offsets()
        report = self.run_job()
        self.passes(report, RXM, "rxe0")
        counted = [f for f in report["findings"] if f["id"] == "collective.counters"]
        self.assertEqual([(f["verdict"], f["observed"]) for f in counted], [("pass", "none moved in 2 measurements")])
        if max(abs(ms) for ms in before + self.offsets()) < 60:  # on a busy machine they drift
            self.assertNotIn("clock-skew", [d["key"] for d in report["diagnoses"]])

    def test_mtu(self):
        """The side that connects brings its MTU along: where that is always the smaller one, nothing is lost."""
        self.vms.all[1].sh("ip link set eth0 mtu 900")
        self.addCleanup(self.vms.all[1].sh, "ip link set eth0 mtu 1500")
        report = self.run_job(deadline=30)
        ended = verbs.row(report, "all-reduce (fabric)")["verdict"]
        print("mtu:", ended, [d["key"] for d in report["diagnoses"]], self.lists(), flush=True)
        self.assertEqual(report["diagnoses"][0]["key"], "mtu-mismatch")
        self.assertEqual([f["nodes"] for f in report["findings"] if f["setting"] == "net.ifaces[eth0].mtu"], [["vm2"]])
        self.assertEqual(self.lists(), ["vm[1-3]", ""] if ended == "pass" else ["vm[1,3]", "vm2"])

    def test_clock(self):
        self.vms.all[1].sh("date -s @$(($(date +%s) + 30))")
        self.addCleanup(self.vms.sh, CLOCK)
        report = self.run_job()
        found = [d for d in report["diagnoses"] if d["key"] == "clock-skew"]
        self.assertTrue(found)
        self.assertIn("vm2", json.dumps(found[0]))
        self.assertNotIn("vm1", json.dumps(found[0]))

    def test_datagrams(self):
        self.passes(self.run_job(RXD, sizes="4:256"), RXD, "rxe0")

    def test_iwarp(self):
        try:
            module = verbs.iwarp()
        except Missing as why:
            self.skipTest(f"software iWARP is not in this kernel, and cannot be built: {why}")
        self.vms.sh("rdma link del rxe0; " + verbs.IWARP.format(module) + "; " + verbs.PORT.format("siw0"), 240)
        self.addCleanup(self.vms.sh, f"rdma link del siw0; rdma link add rxe0 type rxe netdev eth0; {verbs.PORT.format('rxe0')}")
        report = self.run_job()
        row = verbs.row(report, "all-reduce (fabric)")
        self.assertEqual(row["verdict"], "pass", row)
        self.assertIn(f"3 ranks over {RXM}", row["observed"])
        self.assertEqual({p["device"] for p in report["collectives"]["fabric"]["ports"]}, {"siw0"})

    def long(self, provider=RXM):
        """A job that is in the middle of its all-reduce."""
        self.start(provider, sizes="4:4M")
        until = time.monotonic() + 200
        while "fabric: allreduce 64 B" not in self.said() and time.monotonic() < until:
            self.assertFalse(self.report.exists(), self.report.exists() and json.loads(self.report.read_text())["diagnoses"])
            time.sleep(0.2)

    def said(self):
        path = self.vms.all[0].dir / "said"
        return path.read_text() if path.exists() else ""

    def signal(self, number, name):
        self.vms.all[number - 1].sh(f"kill -{name} $(pgrep -x shakedown | tail -n1)")

    def test_killed_rank(self):
        self.long()
        self.signal(2, "KILL")
        self.blames(self.ended(), ("rank-ended",), "vm2", "SIGKILL")

    def test_stopped_rank(self):
        self.long()
        self.signal(3, "STOP")
        self.blames(self.ended(), ("rank-stopped",), "vm3")

    def test_cut_off(self):
        """Its network card has no link for the rest of the run; Slurm hears of it when it is back."""
        self.long()
        self.vms.all[1].monitor("set_link n0 off")
        try:
            until = time.monotonic() + 200
            while not self.report.exists() and time.monotonic() < until:
                time.sleep(0.2)
        finally:
            self.vms.all[1].monitor("set_link n0 on")
        self.blames(self.ended(), ("node-unreachable",), "vm2")

    def test_loss(self):
        """Three of a hundred packets that vm2 sends are lost: the sums are right, its share of what is sent again is
        named. When time is up before the end, no other machine is to blame."""
        self.vms.all[1].sh("modprobe sch_netem; tc qdisc add dev eth0 root netem loss 3%")
        self.addCleanup(self.vms.all[1].sh, "tc qdisc del dev eth0 root")
        report = self.run_job(sizes="4:16K", deadline=100)
        row = verbs.row(report, "all-reduce (fabric)")
        print("loss:", row["verdict"], [d["key"] for d in report["diagnoses"]], self.lists(), flush=True)
        if row["verdict"] != "pass":
            self.assertIn("timeout", row["observed"])
            self.assertEqual(self.lists(), ["vm[1,3]", "vm2"])
            return
        errors = [d for d in report["diagnoses"] if d["key"] == "network-errors"]
        self.assertTrue(errors, report["diagnoses"])
        self.assertIn("vm2: rxe0/1 rcvd_seq_err", json.dumps(errors[0]))

    def test_no_permission(self):
        self.vms.all[1].sh("chmod 600 /dev/infiniband/uverbs0")
        self.addCleanup(self.vms.all[1].sh, "chmod 666 /dev/infiniband/uverbs0")
        self.blames(self.run_job(user=NOBODY), ("rdma-device-no-permission",), "vm2", "/dev/infiniband/uverbs0")

    def test_memlock(self):
        self.blames(self.run_job(wrap=ON_VM2 + "ulimit -l 64", user=NOBODY), ("memlock-too-low",), "vm2")


if __name__ == "__main__":
    skip_if_missing()
    lacks = verbs.missing("rdma", "srun", "slurmctld", "munged")
    if lacks:
        print(f"skipped: {lacks}")
        sys.exit(77)
    unittest.main(argv=["test_job", "-v", *sys.argv[3:]])
