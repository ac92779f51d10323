"""PCI Express as the kernel has it: Access Control Services of a switch, errors that QEMU injects, links, NUMA nodes,
drivers."""
import re, time

from states import GPUS, NIC, NOBODY, NORMAL, ROOTS, USER, States, gpu_node, main, metal, rows

PORTS = ("0000:02:00.0", "0000:02:01.0", "0000:02:02.0")  # of the switch: above the NIC, above the GPUs
HERE = "/sys/module/identity/parameters"


class Switch(States):
    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt"))
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def test_acs(self):
        """QEMU's switch has no such capability; the module gives it one, which setpci writes to."""
        self.state("switch without ACS", says={"pci.acs": "no redirection between 3 pairs"})
        self.machine.sh(f"for p in {' '.join(PORTS)}; do echo $p >{HERE}/acs; done")
        self.state("ACS there, all off", says={"pci.acs": "no redirection between 3 pairs"})
        self.state("ACS: source validation alone", f"setpci -s {PORTS[1]} ECAP_ACS+6.w=0001",
                   says={"pci.acs": "no redirection between 3 pairs"}, undo=f"setpci -s {PORTS[1]} ECAP_ACS+6.w=0000")
        self.state("ACS redirects at a GPU's port", f"setpci -s {PORTS[1]} ECAP_ACS+6.w=001d", {"pci.acs": "fail"},
                   {"pci.acs": f"on at {PORTS[1]} (ReqRedir CmpltRedir)"}, f"setpci -s {PORTS[1]} ECAP_ACS+6.w=0000")
        found = self.state("ACS redirects at all ports", f"for p in {' '.join(PORTS)}; do setpci -s $p ECAP_ACS+6.w=001d; done",
                           {"pci.acs": "fail"}, {"pci.acs": "3 of 3 pairs"})
        fix = re.search(r"for port in .*; done", found["pci.acs"][1])[0]
        self.state("after the command that the row gives", fix, {"pci.acs": "pass"})
        self.state("ACS not root's to read", expected=USER, prefix=NOBODY,
                   says={"pci.acs": "readable by root only"})

    def test_links(self):
        def link(address, *numbers):
            return f"echo '{address} {' '.join(map(str, numbers))}' >{HERE}/link"
        self.machine.sh("; ".join([link(p, 5, 16, 5, 16) for p in (*PORTS, NIC, *GPUS)]))
        self.state("links at full width and speed", says={"pci.link": "at full width and speed"})
        self.state("NIC on 8 of 16 lanes", link(NIC, 5, 8, 5, 16), {"pci.link": "warn"}, {"pci.link": "x8 at 32 GT/s"},
                   link(NIC, 5, 16, 5, 16))
        self.state("NIC at the speed of generation 3", link(NIC, 3, 16, 5, 16), {"pci.link": "warn"},
                   {"pci.link": "8 GT/s, x16"}, link(NIC, 5, 16, 5, 16))
        self.state("GPU slowed down, as when idle", link(GPUS[0], 1, 16, 5, 16), {"pci.link": "pass"},
                   undo=link(GPUS[0], 5, 16, 5, 16))
        self.state("GPU on 4 of 16 lanes", link(GPUS[0], 5, 4, 5, 16), {"pci.link": "warn"}, {"pci.link": "x4 at 32 GT/s"},
                   link(GPUS[0], 5, 16, 5, 16))
        self.state("NIC of generation 5 in a slot of generation 4", link(PORTS[0], 4, 16, 4, 16) + ";" + link(NIC, 4, 16, 5, 16),
                   {"pci.link": "pass"}, undo=link(PORTS[0], 5, 16, 5, 16) + ";" + link(NIC, 5, 16, 5, 16))
        path = f"/sys/bus/pci/devices/{NIC}/current_link_width"
        self.state("the width of the NIC's link cannot be read", f"chmod 0 {path}", {"pci.link": "unknown", **USER},
                   {"pci.link": NIC}, f"chmod 444 {path}", prefix=NOBODY)

    def test_modules(self):
        def driver(address, to):
            return (f"echo {address} >/sys/bus/pci/devices/{address}/driver/unbind; echo {to} "
                    f">/sys/bus/pci/devices/{address}/driver_override; echo {address} >/sys/bus/pci/drivers/{to}/bind")
        self.state("a GPU lent to a virtual machine", "modprobe vfio-pci; " + driver(GPUS[0], "vfio-pci"),
                   {"gpu.driver": "pass"}, undo=driver(GPUS[0], "nvidia"))


class Errors(States):
    """Errors that QEMU injects stay in the kernel's counters, so that this machine has no way back. The kernel's
    aer_inject would hide them: it answers for the root port."""

    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt"))
        gpu_node(cls.machine)
        cls.healthy(NORMAL["h100"])

    def inject(self, function, error, counter):
        """Returns when the kernel has counted it and has recovered."""
        self.assertIn("OK", self.machine.monitor(f"pcie_aer_inject_error {function} {error}"))
        self.machine.sh(f"for i in $(seq 100); do grep -q '^TOTAL.* [1-9]' /sys/bus/pci/devices/{counter} && break; sleep 0.2; done; "
                        f"grep -q '^TOTAL.* [1-9]' /sys/bus/pci/devices/{counter}; sleep 2; "
                        "for i in $(seq 50); do grep -q 1 /sys/class/net/hsn0/carrier && break; sleep 0.2; done")

    def during(self):
        """The report of a run in the middle of which the link above the NIC fails."""
        self.start_program()
        time.sleep(2)
        self.assertIn("OK", self.machine.monitor("pcie_aer_inject_error d1 DLP"))
        return self.end_program()

    def test_errors(self):
        self.inject("gpu1", "COMP_TIME", f"{GPUS[0]}/aer_dev_nonfatal")
        # QEMU's device has no valid link capability (width 255) after it was reset
        self.state("a completion that a GPU waited for in vain", expected={"pci.errors": "warn", "pci.link": "unknown"}, says={"pci.errors": GPUS[0]})
        self.normal = {**self.normal, "pci.errors": "warn", "pci.link": "unknown"}
        found = rows(self.during())
        self.assertNotIn(found["pci.errors"][0], ("na", "pass", "note"))
        self.inject("d1", "DLP", f"{PORTS[0]}/aer_dev_fatal")
        self.state("the port above the NIC lost its link in the run before", expected={"pci.errors": "warn", "device.history": "note"},
                   says={"pci.errors": PORTS[0]})


def two_nodes():
    memory = "".join(f"-object memory-backend-ram,id=m{i},size=768M -numa node,nodeid={i},cpus={i},memdev=m{i} " for i in (0, 1))
    return memory + "-numa dist,src=0,dst=1,val=21 "


class Numa(States):
    """Two NUMA nodes; QEMU's firmware does not say on which a device is, as many boards do not."""

    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt numa_balancing=disable", cpus=2, more=two_nodes()))
        gpu_node(cls.machine)
        cls.machine.sh(place(0, NIC, *GPUS))
        cls.healthy(NORMAL["h100"])

    def correctable(self, address, bits):
        """The kernel's aer_inject reports one; QEMU does not pass them on."""
        domain, bus, device, fn = (int(part, 16) for part in re.split("[:.]", address))
        return ("modprobe aer_inject; python3 -c 'import struct; open(\"/dev/aer_inject\", \"wb\", 0).write("
                f"struct.pack(\"<BBBxIIIIIII\", {bus}, {device}, {fn}, 0, {bits}, 0, 0, 0, 0, {domain}))'; sleep 1")

    def counted(self, address, name):
        return int(re.search(rf"^{name} (\d+)", self.machine.sh(f"cat /sys/bus/pci/devices/{address}/aer_dev_correctable"), re.M)[1])

    def test_errors(self):
        path = f"/sys/bus/pci/devices/{GPUS[1]}/aer_dev_fatal"
        self.state("the fatal errors of a GPU cannot be read", f"chmod 0 {path}", {"pci.errors": "unknown", **USER},
                   undo=f"chmod 444 {path}", prefix=NOBODY)
        (self.machine.dir / "inject.sh").write_text(f"sleep 1; {self.correctable(PORTS[0], 0x40)}")
        self.state("a correctable error of a port, during the run", expected={"pci.errors": "pass"},
                   prefix="sh -c 'sh /mnt/out/inject.sh & exec \"$@\"' sh")
        self.machine.sh(f"for i in $(seq 100); do grep -q 'BadTLP 1' /sys/bus/pci/devices/{PORTS[0]}/aer_dev_correctable && exit 0; sleep 0.1; done")
        self.assertEqual(self.counted(PORTS[0], "BadTLP"), 1)
        self.state("a correctable error of a GPU", self.correctable(GPUS[0], 0x01), {"pci.errors": "pass"})
        self.assertEqual(self.counted(GPUS[0], "RxErr"), 1)

    def test_nodes(self):
        self.state("a GPU whose node the firmware does not tell", place(-1, GPUS[0]), {"pci.numa": "warn"}, {"pci.numa": GPUS[0]},
                   place(0, GPUS[0]))
        self.state("the NIC on the far node, below the same switch", place(1, NIC), {"pci.numa": "pass", "topology.nic": "pass"},
                   undo=place(0, NIC))
        path = f"/sys/bus/pci/devices/{GPUS[1]}/numa_node"
        self.state("the node of a GPU cannot be read", f"chmod 0 {path}", {"pci.numa": "unknown", **USER},
                   {"pci.numa": GPUS[1]}, f"chmod 644 {path}", prefix=NOBODY)
        self.state("memory moves between the nodes", "sysctl -qw kernel.numa_balancing=1", {"kernel.numa_balancing": "note"},
                   undo="sysctl -qw kernel.numa_balancing=0")


# below a host bridge of the second NUMA node, which the firmware tells of: two NICs
FAR = ("-device pxb-pcie,id=far,bus_nr=128,bus=pcie.0,numa_node=1 " +
       "".join(f"-device pcie-root-port,id=fp{i},bus=far,chassis={20 + i},slot={20 + i} -netdev hubport,id=f{i},hubid={i} "
               f"-device e1000e,bus=fp{i},netdev=f{i} " for i in (1, 2)))
BRIDGES, FAR_NICS = ("0000:80:00.0", "0000:80:01.0"), ("0000:81:00.0", "0000:82:00.0")


class Far(States):
    """As many NICs as GPUs, at a host bridge of their own."""

    @classmethod
    def setUpClass(cls):
        cls.boot(metal("intel_iommu=on iommu=pt numa_balancing=disable", bus=ROOTS, cpus=2, more=two_nodes() + FAR))
        gpu_node(cls.machine, nics=FAR_NICS)
        cls.machine.sh("for d in /sys/bus/pci/devices/0000:0*; do echo 0 >$d/numa_node; done; " + place(0, *BRIDGES, *FAR_NICS))
        cls.healthy(NORMAL["h100"])

    def test_far(self):
        far = place(1, *BRIDGES, *FAR_NICS)
        self.state("all NICs on the other NUMA node", far, {"topology.nic": "warn"}, {"topology.nic": "2 GPUs"},
                   place(0, *BRIDGES, *FAR_NICS))
        hide = "; ".join(f"chmod {{0}} /sys/bus/pci/devices/{address}/{name}" for address in (*BRIDGES, *FAR_NICS)
                         for name in ("local_cpus", "local_cpulist", "numa_node"))
        self.state("the processors beside the NICs cannot be read", hide.format("0"),
                   {"topology.nic": "unknown", "pci.numa": "unknown", "device.history": "unknown", "nic.transceivers": "unknown"}, undo=hide.format("444"), prefix=NOBODY)
        path = "/sys/devices/system/node/node1/distance"
        self.state("the distances of a NUMA node cannot be read", f"chmod 0 {path}", {"device.history": "unknown", "nic.transceivers": "unknown"},
                   undo=f"chmod 444 {path}", prefix=NOBODY)


def place(node, *addresses):
    return "; ".join(f"echo {node} >/sys/bus/pci/devices/{address}/numa_node" for address in addresses)


if __name__ == "__main__":
    main()
