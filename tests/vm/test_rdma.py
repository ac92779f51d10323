"""RDMA devices as kernels show them: modules that are missing or have no device, device nodes without permission or
not there, network namespaces, ports that are down, a NIC that is unplugged in mid-run."""
import time

from states import NIC, NOBODY, NORMAL, States, gpu_node, main, metal, rows

VERBS, GONE = "FI_PROVIDER=verbs", {"fabric.provider": "warn", "env.value": "fail"}


class Rdma(States):
    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt"))
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def test_nodes(self):
        at = "/dev/infiniband/uverbs0"
        self.state("a verbs device that others may not open", f"chmod 600 {at}", {"devices.access": "fail", "pci.acs": "unknown"},
                   {"devices.access": at}, f"chmod 666 {at}", prefix=NOBODY)
        self.state("no verbs device node", f"mv {at} /dev/infiniband/gone", {"devices.access": "warn"},
                   undo=f"mv /dev/infiniband/gone {at}")
        self.state("container without /dev/infiniband", expected={"devices.access": "warn", "container.kind": "warn"},
                   prefix="unshare --mount sh -c 'mkdir -p /tmp/no; mount --bind /tmp/no /dev/infiniband; touch /.dockerenv; exec \"$@\"' sh",
                   undo="rm -f /.dockerenv", says={"devices.access": "container"})

    def test_namespaces(self):
        self.state("network namespace, devices shared", expected={}, prefix="unshare --net --mount sh -c 'mount -t sysfs s /sys; exec \"$@\"' sh")
        self.state("network namespace, devices exclusive", "rdma system set netns exclusive", GONE,
                   prefix=VERBS + " unshare --net --mount sh -c 'mount -t sysfs s /sys; exec \"$@\"' sh", undo="rdma system set netns shared")

    def test_ports(self):
        self.state("the interface of the NIC is down", "ip link set hsn0 down", {"nic.link": "fail"},
                   undo="ip link set hsn0 up; sleep 3")

    def test_modules(self):
        self.state("verbs asked for and there", prefix=VERBS)
        self.state("verbs asked for, no device", "rdma link delete mlx5_0", GONE,
                   {"fabric.provider": "the driver made no verbs device"}, self.again(), prefix=VERBS)
        self.state("verbs asked for, no ib_uverbs", "rdma link delete mlx5_0; modprobe -r rdma_rxe rdma_ucm mlx5_ib; rmmod ib_uverbs || true",
                   {**GONE, "kernel.module": "fail"}, {"fabric.provider": "modprobe ib_uverbs"}, "modprobe mlx5_ib; modprobe rdma_rxe; modprobe rdma_ucm; " + self.again(), prefix=VERBS)

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
        self.state("the NIC was unplugged in the run before", expected=GONE, prefix=VERBS)


if __name__ == "__main__":
    main()
