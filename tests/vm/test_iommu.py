"""The IOMMU as kernels have it: off, translating, lazily flushed, passed through; of three kinds of hardware, and
what the groups say rather than the command line."""
import re

from states import GPUS, NOBODY, NORMAL, ROOTS, States, gpu_node, main, metal

INTEL, AMD, VIRTIO = "-device intel-iommu,intremap=on", "-device amd-iommu", "-device virtio-iommu-pci"
# QEMU's model of AMD's does not translate what a NIC reads: one that had something to send would hang, and its driver
# would take the link down every eight seconds
SILENT = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
WARN, FAIL = {"kernel.iommu": "warn"}, {"kernel.iommu": "fail"}

# name, kernel parameters, hardware, GPU, rows, text of the row
BOOTS = [
    ("no IOMMU", "", "", "h100", {}, "IOMMU off"),
    ("intel_iommu=off", "intel_iommu=off", INTEL, "h100", {}, "IOMMU off"),
    ("intel_iommu=on, strict", "intel_iommu=on iommu.strict=1", INTEL, "h100", WARN, "DMA, device 0000:03:00.0"),
    ("intel_iommu=on, lazy", "intel_iommu=on iommu.strict=0", INTEL, "h100", WARN, "DMA-FQ, device 0000:03:00.0"),
    ("intel_iommu=on iommu=pt", "intel_iommu=on iommu=pt", INTEL, "h100", {}, "identity"),
    ("iommu.passthrough=1", "intel_iommu=on iommu.passthrough=1", INTEL, "h100", {}, "identity"),
    ("AMD's IOMMU", "", AMD, "h100", WARN, "DMA, device 0000:03:00.0"),
    ("AMD's IOMMU, iommu=pt", "iommu=pt", AMD, "h100", {}, "identity"),
    ("AMD's IOMMU, AMD GPUs", "", AMD, "mi250", FAIL, "ROCm programs on several GPUs"),
    ("virtio-iommu, kernel without its driver", "", VIRTIO, "h100", {}, "IOMMU off"),
]


class Boots(States):
    """One boot each; while one is judged, the next one boots."""

    ahead = {}

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(lambda: [machine.close() for machine in cls.ahead.values()])

    @classmethod
    def take(cls, at):
        """The machine of BOOTS[at], booted."""
        for i in range(at, min(at + 2, len(BOOTS))):
            if i not in cls.ahead:
                cls.ahead[i] = metal(BOOTS[i][1], BOOTS[i][2], wait=False)
        machine = cls.ahead.pop(at)
        machine.connect()
        return machine


def add(at, name, gpu, expected, text):
    def test(self):
        with self.take(at) as machine:
            States.machine = machine
            if BOOTS[at][2] == AMD:
                machine.sh(SILENT)
            gpu_node(machine, gpu)
            self.normal = NORMAL[gpu]
            self.state(name, expected=expected or {"kernel.iommu": "pass"}, says={"kernel.iommu": text})

    setattr(Boots, f"test_{at}_" + re.sub(r"\W+", "_", name), test)


for number, (title, _, _, kind, wrong, said) in enumerate(BOOTS):
    add(number, title, kind, wrong, said)


class Groups(States):
    """The groups of the NIC and of the GPUs pass through, all others translate."""

    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu.strict=1", bus=ROOTS))
        cls.machine.sh("set -e; for bus in 3 4 5; do at=/sys/bus/pci/devices/0000:0$bus:00.0; "
                       "[ ! -e $at/driver ] || echo 0000:0$bus:00.0 >$at/driver/unbind; "
                       "echo identity >$at/iommu_group/type; done")
        gpu_node(cls.machine)
        cls.normal = NORMAL["h100"]

    def group(self, address, kind):
        at = f"/sys/bus/pci/devices/{address}"
        return (f"set -e; echo {address} >/sys/bus/pci/drivers/nvidia/unbind; echo {kind} >{at}/iommu_group/type; "
                f"echo {address} >/sys/bus/pci/drivers/nvidia/bind")

    def test_states(self):
        self.state("mixed, but identity for GPUs and NIC", says={"kernel.iommu": "identity"})
        self.state("one GPU's group translates", self.group(GPUS[0], "DMA"), WARN,
                   {"kernel.iommu": f"DMA, device {GPUS[0]}"}, self.group(GPUS[0], "identity"))
        self.state("one GPU's group lazily flushed", self.group(GPUS[1], "DMA-FQ"), WARN,
                   {"kernel.iommu": f"DMA-FQ, device {GPUS[1]}"}, self.group(GPUS[1], "identity"))
        self.state("the type of one GPU's group cannot be read", f"chmod 0 /sys/bus/pci/devices/{GPUS[0]}/iommu_group/type",
                   {"kernel.iommu": "unknown", "device.history": "unknown", "nic.transceivers": "unknown"}, {"kernel.iommu": GPUS[0]},
                   f"chmod 444 /sys/bus/pci/devices/{GPUS[0]}/iommu_group/type",
                   prefix=NOBODY)


if __name__ == "__main__":
    main()
