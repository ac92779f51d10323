"""Two RoCE ports of a node in one network, as the kernel filters and answers there: what the row says, and what a
station on the wire meets."""
from states import NOBODY, NORMAL, USER, States, gpu_node, main, metal, rdma_nic

# a second NIC below the same switch, and a station: all on one wire
MORE = ("-device xio3130-downstream,id=d4,bus=up1,chassis=5,slot=5 -netdev hubport,id=n2,hubid=1 "
        "-device e1000e,id=nic2,bus=d4,netdev=n2 -netdev hubport,id=n3,hubid=1 "
        "-device e1000e,netdev=n3,mac=52:54:00:aa:aa:aa")
NIC2 = "0000:06:00.0"
CONF = "net.ipv4.conf"
PING = "ip netns exec station busybox ping -c2 -w5 10.212.0.2 | grep -c 'seq='; true"
MACS = ("ip netns exec station busybox arping -I wire -c3 -w4 10.212.0.2 | grep -o '\\[..:..:..:..:..:..\\]' | sort -u | wc -l; "
        "ip -n station neigh flush all")


class OneNetwork(States):
    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt", more=MORE))
        gpu_node(cls.machine)
        rdma_nic(cls.machine, 1, NIC2, "10.212.0.2/24")
        cls.machine.sh(f"""set -e
            for n in /sys/class/net/*; do grep -q 52:54:00:aa:aa:aa $n/address && wire=${{n##*/}}; done
            ip netns add station; ip link set $wire netns station name wire; ip -n station link set wire up
            ip -n station addr add 10.212.0.9/24 dev wire
            sysctl -qw {CONF}.all.rp_filter=0 {CONF}.hsn0.rp_filter=0 {CONF}.hsn1.rp_filter=0 {CONF}.all.arp_ignore=1; sleep 3""")
        cls.healthy(NORMAL["h100"])

    def check(self, name, settings, expected, says, pings=None, macs=None):
        """A state, and how many of two pings to hsn1 are answered, and by how many cards who has its address."""
        before = {key: self.machine.sh(f"sysctl -n {CONF}.{key}").strip() for key in settings}
        self.machine.sh("\n".join([f"sysctl -qw {CONF}.{k}={v}" for k, v in settings.items()] + ["ip -n station neigh flush all"]))
        if pings is not None:
            self.assertEqual(int(self.machine.sh(PING)), pings, name)
        if macs is not None:
            self.assertEqual(int(self.machine.sh(MACS)), macs, name)
        self.state(name, expected=expected, says=says, undo="; ".join(f"sysctl -qw {CONF}.{k}={v}" for k, v in before.items()))

    def test_unread(self):
        at = f"/proc/sys/{CONF.replace('.', '/')}/hsn1/rp_filter"
        self.state("the filter of one port cannot be read", f"touch /run/no; chmod 0 /run/no; mount --bind /run/no {at}",
                   {"kernel.sysctl": "unknown", **USER}, {"kernel.sysctl": "hsn1"}, f"umount {at}", prefix=NOBODY)

    def test_settings(self):
        bad = {"kernel.sysctl": "warn"}
        self.check("no filter, each answers for itself", {}, {"kernel.sysctl": "pass"}, {}, 2, 1)
        self.check("strict filter at one of two ports", {"hsn1.rp_filter": 1}, bad, {"kernel.sysctl": "1 in effect at hsn1"}, 0)
        self.check("strict filter for all", {"all.rp_filter": 1}, bad, {"kernel.sysctl": "hsn0 and hsn1"}, 0)
        self.check("strict for all, loose at each port", {"all.rp_filter": 1, "hsn0.rp_filter": 2, "hsn1.rp_filter": 2},
                   {"kernel.sysctl": "pass"}, {}, 2)
        self.check("each port answers for the other", {"all.arp_ignore": 0}, bad, {"kernel.sysctl": "RoCE ports in one network"}, None, 2)


if __name__ == "__main__":
    main()
