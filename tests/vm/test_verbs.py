"""The all-reduce over verbs on a real kernel: software RoCE over ofi_rxm (RC) and ofi_rxd (UD), software iWARP, two
devices, and each thing that libfabric can be refused, with the cause and the line that mends it. No variable is set
but where a test says so. Usage: test_verbs.py BINARY"""
import pathlib, shlex, sys, unittest

import verbs
from machine import Missing, Machine, skip_if_missing

BINARY = pathlib.Path(sys.argv[1]).resolve()
RXM, RXD = "verbs;ofi_rxm", "verbs;ofi_rxd"
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
SECOND = "-netdev hubport,id=n1,hubid=1 -device virtio-net-pci,netdev=n1,mac=52:54:00:12:35:01"


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.vm = Machine(1, qemu=SECOND, args="no_timer_check")  # its clock is late on a busy machine
        cls.addClassCleanup(cls.vm.close)
        cls.vm.sh(f"chmod 777 $OUT; {verbs.ROCE}; {verbs.PORT.format('rxe0')}", 240)

    def bench(self, provider, before="", sizes="4:4K"):
        """The report of two ranks; `before` goes before the command."""
        command = [str(BINARY), "bench", "--transport", "fabric", "--ranks", "2", "--sizes", sizes, "--timeout", "100",
                   "--provider", provider, "-o"]
        return verbs.run(self.vm, f"{before} {shlex.join(command)} $OUT/report.json")

    def passes(self, report, provider, device, kind):
        row = verbs.row(report, "all-reduce (fabric)")
        self.assertEqual(row["verdict"], "pass", row)
        self.assertIn(f"2 ranks over {provider}", row["observed"])
        ports = report["collectives"]["fabric"]["ports"]
        self.assertEqual([(p["rank"], p["device"], p["gid"], p.get("type")) for p in ports],
                         [(rank, device, "::ffff:10.211.0.1", kind) for rank in (0, 1)])
        self.assertTrue(all(size["wrong"] == 0 for size in report["collectives"]["fabric"]["sizes"]))
        return "\n".join(report["collectives"]["fabric"]["evidence"])

    def refused(self, report, diagnosis, *says):
        row = verbs.row(report, "all-reduce (fabric)")
        self.assertEqual(row["verdict"], "fail", row)
        first = report["diagnoses"][0]
        self.assertEqual(first["key"], diagnosis, row)
        self.assertTrue(first.get("fix") or first.get("advice"), first)
        for text in says:
            self.assertIn(text, row["why"])

    def test_reliable_connections(self):
        proof = self.passes(self.bench(RXM), RXM, "rxe0", "RoCE v2")
        self.assertIn("rank 0: rxe0 port 1, GID ", proof)
        self.assertIn("rxe0 takes 32767: run with FI_UNIVERSE_SIZE=2", proof)

    def test_datagrams(self):
        """From the address made of the IPv4 address, not from the link-local one at index 0."""
        self.passes(self.bench(RXD, sizes="4:256"), RXD, "rxe0", "RoCE v2")

    def test_queues_too_large(self):
        self.refused(self.bench(RXM, "FI_UNIVERSE_SIZE=1024"), "verbs-queues-too-large", "fi_enable: Invalid argument",
                     "has 262144 entries, rxe0 takes 32767")

    def test_no_permission(self):
        self.vm.sh("chmod 600 /dev/infiniband/uverbs0")
        self.addCleanup(self.vm.sh, "chmod 666 /dev/infiniband/uverbs0")
        self.refused(self.bench(RXM, f"{NOBODY} --bounding-set -all --inh-caps -all"), "rdma-device-no-permission",
                     "no permission to open /dev/infiniband/uverbs0 of rxe0 (mode 0600, owner 0, group 0)")

    def test_locked_memory(self):
        for provider in (RXM, RXD):
            with self.subTest(provider):
                self.refused(self.bench(provider, f"ulimit -l 64; {NOBODY}"), "memlock-too-low", "65536 B")

    def test_no_connection_manager(self):
        self.vm.sh("mv /dev/infiniband/rdma_cm /dev/away")
        self.addCleanup(self.vm.sh, "mv /dev/away /dev/infiniband/rdma_cm")
        self.refused(self.bench(RXM), "rdma-ucm-missing", "/dev/infiniband/rdma_cm is not there")

    def test_no_address(self):
        self.vm.sh("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1; ip addr flush dev eth0")
        self.addCleanup(self.vm.sh, "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0; ip addr add 10.211.0.1/24 dev eth0")
        for provider in (RXM, RXD):
            with self.subTest(provider):
                self.refused(self.bench(provider), "rdma-port-no-address", "eth0 of rxe0 has no IP address")

    def test_interface_down(self):
        self.vm.sh("ip link set eth0 down; sleep 1")
        self.addCleanup(self.vm.sh, f"ip link set eth0 up; {verbs.PORT.format('rxe0')}")
        self.refused(self.bench(RXM), "nic-port-down", "rxe0 has no active port: its interface eth0 is down")

    def test_no_device(self):
        self.vm.sh("rdma link del rxe0")
        self.addCleanup(self.vm.sh, f"rdma link add rxe0 type rxe netdev eth0; {verbs.PORT.format('rxe0')}")
        self.refused(self.bench(RXM), "verbs-provider-absent", "the kernel has no RDMA device")

    def test_two_devices(self):
        self.vm.sh("ip addr add 10.212.0.1/24 dev eth1; ip link set eth1 up; rdma link add rxe1 type rxe netdev eth1; "
                   + verbs.PORT.format("rxe1"))
        self.addCleanup(self.vm.sh, "rdma link del rxe1; ip link set eth1 down")
        report = self.bench(RXM, sizes="4:1M")
        self.assertEqual(verbs.row(report, "all-reduce (fabric)")["verdict"], "pass")
        rails = {r["domain"]: r["status"] for r in report["collectives"]["fabric"]["rails"]}
        self.assertEqual(rails, {"rxe0": "used", "rxe1": "used"})

    def test_iwarp(self):
        """Debian's kernel leaves siw out: it is built from Debian's source."""
        try:
            module = verbs.iwarp()
        except Missing as why:
            self.skipTest(str(why))
        self.vm.sh("rdma link del rxe0; " + verbs.IWARP.format(module) + "; " + verbs.PORT.format("siw0"), 240)
        self.addCleanup(self.vm.sh, f"rdma link del siw0; rdma link add rxe0 type rxe netdev eth0; "
                                    f"{verbs.PORT.format('rxe0')}")
        report = self.bench(RXM)
        row = verbs.row(report, "all-reduce (fabric)")
        self.assertEqual(row["verdict"], "pass", row)
        self.assertEqual({p["device"] for p in report["collectives"]["fabric"]["ports"]}, {"siw0"})


if __name__ == "__main__":
    skip_if_missing()
    lacks = verbs.missing("rdma")
    if lacks:
        print(f"skipped: {lacks}")
        sys.exit(77)
    unittest.main(argv=["test_verbs"])
