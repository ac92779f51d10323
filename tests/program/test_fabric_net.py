"""The host all-reduce between network namespaces that stand for hosts, over links that lose and delay,
with a rank that stops for a while, and with any number of ranks. Every element is verified."""
import contextlib, json, os, pathlib, signal, subprocess, sys, time, unittest
from relay import Relay, interface

ALLREDUCE = pathlib.Path(sys.argv[1]).resolve().parent / "tests/bench/fabric_allreduce"


def sh(*args):
    subprocess.run(args, check=True, stdin=subprocess.DEVNULL)


def can_have_hosts():
    name = f"shk{os.getpid()}-try"
    if os.geteuid() != 0:
        return False
    try:
        sh("ip", "netns", "add", name)
        sh("ip", "netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


HOSTS = can_have_hosts()


@contextlib.contextmanager
def hosts(delay=None, loss=0.0):
    """Two namespaces joined by a veth pair, or, with a delay, by a relay."""
    names = [f"shk{os.getpid()}-{i}" for i in range(2)]
    relay = None
    try:
        for name in names:
            sh("ip", "netns", "add", name)
            sh("ip", "-n", name, "link", "set", "lo", "up")
        if delay is None:
            sh("ip", "link", "add", "r0", "netns", names[0], "type", "veth", "peer", "name", "r0", "netns", names[1])
        else:
            relay = Relay([interface("r0", name) for name in names], delay, loss)
            relay.start()
        for i, name in enumerate(names):
            sh("ip", "-n", name, "addr", "add", f"10.214.0.{i + 1}/24", "dev", "r0")
            sh("ip", "-n", name, "link", "set", "r0", "addrgenmode", "none", "up")
        for name in names:
            wait_for(lambda name=name: "LOWER_UP" in subprocess.check_output(
                ["ip", "-n", name, "link", "show", "r0"], text=True), "the link does not come up")
        yield [f"/run/netns/{name}" for name in names], relay
    finally:
        if relay:
            relay.close()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def wait_for(what, complaint):
    limit = time.monotonic() + 20
    while not what():
        if time.monotonic() > limit:
            raise AssertionError(complaint)
        time.sleep(0.02)


class FabricNet(unittest.TestCase):
    def allreduce(self, ranks, provider, most, *spaces):
        p = subprocess.run([ALLREDUCE, str(ranks), provider, "4", str(most), *spaces], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=150)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.check(json.loads(p.stdout), most)

    def check(self, result, most):
        self.assertEqual(result["status"], "ok")
        self.assertEqual([row["wrong"] for row in result["sizes"]], [0] * len(result["sizes"]))
        self.assertEqual(max(row["bytes"] for row in result["sizes"]), most)

    def test_one_to_sixteen_ranks(self):
        for ranks in (1, 3, 6, 16):
            with self.subTest(ranks=ranks):
                self.allreduce(ranks, "shm", 8192)

    @unittest.skipUnless(HOSTS, "needs root and network namespaces")
    def test_uneven_ranks_per_host(self):
        with hosts() as (spaces, _):
            for deal in ("001", "01111"):
                with self.subTest(deal=deal):
                    self.allreduce(len(deal), "tcp", 65536, *[spaces[int(i)] for i in deal])

    @unittest.skipUnless(HOSTS and os.path.exists("/dev/net/tun"), "needs root, namespaces and tun")
    def test_loss_and_delay(self):
        with hosts(delay=0.002, loss=0.01) as (spaces, relay):
            self.allreduce(2, "tcp", 16384, *spaces)
            self.assertGreater(relay.dropped, 0, f"nothing was lost of {relay.carried} packets")

    @unittest.skipUnless(HOSTS and os.path.exists("/dev/net/tun"), "needs root, namespaces and tun")
    def test_uneven_ranks_and_a_stop_with_loss_and_delay(self):
        """One rank on the first host, three on the second, which stops one of its ranks for two seconds."""
        with hosts(delay=0.002, loss=0.01) as (spaces, relay):
            self.stopped(["4", "tcp", "4", "16384", *[spaces[int(i)] for i in "0111"]], 4, 16384,
                         lambda: relay.carried > 300)
            self.assertGreater(relay.dropped, 0, f"nothing was lost of {relay.carried} packets")

    def test_rank_stopped_for_two_seconds(self):
        self.stopped(["2", "shm", "4", str(16 << 20)], 2, 16 << 20)

    def stopped(self, args, ranks, most, under_way=lambda: True):
        p = subprocess.Popen([ALLREDUCE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        try:
            pids = []

            def started():
                children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
                # Ranks have opened libfabric by now; the janitor never does.
                pids[:] = [c for c in children if "libfabric" in pathlib.Path(f"/proc/{c}/maps").read_text()]
                return len(pids) == ranks

            wait_for(started, "no ranks")
            wait_for(under_way, "no packets")
            time.sleep(0.2)
            os.kill(int(pids[-1]), signal.SIGSTOP)
            time.sleep(2)
            self.assertIsNone(p.poll(), "ended while a rank was stopped")
            os.kill(int(pids[-1]), signal.SIGCONT)
            out, err = p.communicate(timeout=100)
        finally:
            p.kill()
        self.assertEqual(p.returncode, 0, err)
        self.check(json.loads(out), most)


unittest.main(argv=[sys.argv[0]], verbosity=1)
