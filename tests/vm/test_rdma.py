"""RDMA devices as kernels show them: modules that are missing or have no device, device nodes without permission or
not there, network namespaces, ports that are down, a NIC that is unplugged in mid-run."""
import time

import identity
from states import GPUS, NIC, NOBODY, NORMAL, USER, States, carrier, gpu_node, main, metal, rows

FORBIDDEN = "mlx5_core"
VERBS, GONE = "FI_PROVIDER=verbs", {"fabric.provider": "warn", "env.value": "fail"}


class Rdma(States):
    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt"))
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def test_nodes(self):
        at = "/dev/infiniband/uverbs0"
        self.state("a verbs device that others may not open", f"chmod 600 {at}",
                   {"devices.access": "fail", "nic.opens": "warn", "nic.mtu": "unknown", **USER},
                   {"devices.access": at, "nic.opens": "mlx5_0: Permission denied"}, f"chmod 666 {at}", prefix=NOBODY)
        self.state("no verbs device node", f"mv {at} /dev/infiniband/gone", {"devices.access": "warn", "nic.mtu": "unknown"},
                   undo=f"mv /dev/infiniband/gone {at}")
        self.state("container with /dev/infiniband", expected={"container.kind": "pass"}, undo="rm -f /.dockerenv",
                   prefix="sh -c 'touch /.dockerenv; exec \"$@\"' sh")
        self.state("/dev/infiniband that users may not look into", "chmod 700 /dev/infiniband", {"devices.access": "unknown", "nic.mtu": "unknown", **USER},
                   {"devices.access": "/dev/infiniband"}, "chmod 755 /dev/infiniband", prefix=NOBODY)
        self.state("container without /dev/infiniband", expected={"devices.access": "warn", "container.kind": "warn", "nic.mtu": "unknown"},
                   prefix="unshare --mount sh -c 'mkdir -p /tmp/no; mount --bind /tmp/no /dev/infiniband; touch /.dockerenv; exec \"$@\"' sh",
                   undo="rm -f /.dockerenv", says={"devices.access": "container"})

    def test_namespaces(self):
        self.state("network namespace, devices shared", expected={"nic.mtu": "unknown"}, prefix="unshare --net --mount sh -c 'mount -t sysfs s /sys; exec \"$@\"' sh")
        self.state("network namespace, devices exclusive", "rdma system set netns exclusive", GONE,
                   prefix=VERBS + " unshare --net --mount sh -c 'mount -t sysfs s /sys; exec \"$@\"' sh", undo="rdma system set netns shared")

    def test_ports(self):
        path = "/sys/class/infiniband/mlx5_0/ports/1/state"
        self.state("the state of the port cannot be read", f"chmod 0 {path}", {"nic.link": "unknown", "nic.rate": "unknown", "nic.mtu": "unknown", **USER},
                   undo=f"chmod 444 {path}", prefix=NOBODY)
        self.state("the interface of the NIC is up without carrier", during=self.no_carrier,
                   expected={"nic.link": "fail", "device.history": "note"})
        self.state("the interface of the NIC is down", "ip link set hsn0 down", {"nic.link": "fail", "device.history": "note"},
                   undo="ip link set hsn0 up; " + carrier("hsn0"))

    def test_modules(self):
        self.state("verbs asked for and there", prefix=VERBS)
        self.state("verbs asked for, no device", "rdma link delete mlx5_0", GONE,
                   {"fabric.provider": "the driver made no verbs device"}, self.again(), prefix=VERBS)
        self.state("verbs asked for, no ib_uverbs", "rdma link delete mlx5_0; modprobe -r rdma_rxe rdma_ucm mlx5_ib; rmmod ib_uverbs || true",
                   {**GONE, "kernel.module": "fail"}, {"fabric.provider": "modprobe ib_uverbs"}, "modprobe mlx5_ib; modprobe rdma_rxe; modprobe rdma_ucm; " + self.again(), prefix=VERBS)

    def no_carrier(self):
        """QEMU's e1000e tells its driver of a link only when that starts it."""
        again = "ip link set hsn0 down; ip link set hsn0 up; "
        self.machine.monitor("set_link n1 off")
        try:
            self.machine.sh(again + "sleep 3; grep -q 0 /sys/class/net/hsn0/carrier")
            return self.run_program()
        finally:
            self.machine.monitor("set_link n1 on")
            self.machine.sh(again + carrier("hsn0"))

    @staticmethod
    def again():
        return f"rdma link add mlx5_0 type rxe netdev hsn0; echo 'mlx5_0 {NIC}' >/sys/module/identity/parameters/rdma; sleep 1"

    def unplug(self, device, address):
        """The report of a run in the middle of which a device goes."""
        self.start_program(prefix=VERBS)
        time.sleep(1)
        self.machine.monitor(f"device_del {device}")
        report = self.end_program()
        self.machine.sh(f"for i in $(seq 100); do [ -e /sys/bus/pci/devices/{address} ] || exit 0; sleep 0.2; done; exit 1")
        self.assertNotIn("timeout", [row.get("observed") for row in report["findings"] if row["id"] == "probe.health"])
        return report

    def test_unplugged(self):
        """The last one: what is unplugged stays away."""
        rows(self.unplug("nic1", NIC))
        self.state("the NIC was unplugged in the run before", expected={**GONE, "device.history": "note"}, prefix=VERBS)


class Drivers(States):
    """Devices on the bus that no driver drives; the kernel refuses to load one of the drivers."""

    def missing(self, name, module, says):
        began, found = time.monotonic(), rows(self.run_program())
        with self.subTest(state=name):
            self.assertEqual(found["kernel.module"][0], "fail")
            self.assertIn(f"module {module} | not loaded", found["kernel.module"][1])
            self.assertIn(says, found["kernel.module"][1])
            States.done.append((type(self).__name__, name, {"kernel.module": "fail"}, time.monotonic() - began))

    def test_drivers(self):
        self.boot(metal(f"intel_iommu=on iommu=pt module_blacklist=nosuch,{FORBIDDEN}"))
        identity.load(self.machine)
        identity.become(self.machine, NIC, "connectx")
        self.assertNotEqual(self.machine.sh(f"modprobe {FORBIDDEN} 2>&1; echo $?").split()[-1], "0")
        self.missing("the driver is on the kernel's list of refused modules", FORBIDDEN, "refuses to load this driver")
        for kind, module in (("cassini", "cxi_ss1"), ("efa", "efa")):
            identity.become(self.machine, NIC, kind)
            self.missing(f"a NIC without driver: {kind}", module, "no driver drives it")
        for kind, module in (("h100", "nvidia"), ("mi250", "amdgpu"), ("trainium", "neuron")):
            identity.become(self.machine, GPUS[0], kind)
            self.missing(f"an accelerator without driver: {kind}", module, "no driver drives it")


if __name__ == "__main__":
    main()
