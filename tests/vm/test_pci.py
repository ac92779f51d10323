"""PCI Express as the kernel has it: Access Control Services of a switch, links, drivers."""
import re

from states import GPUS, NIC, NOBODY, NORMAL, States, gpu_node, main, metal

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
        fix = re.findall(r"setpci -s \S+ \S+", found["pci.acs"][1])
        self.assertEqual(len(fix), 3)
        self.state("after the commands that the row gives", "; ".join(fix), {"pci.acs": "pass"})
        self.state("ACS not root's to read", expected={"pci.acs": "unknown"}, prefix=NOBODY,
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
        self.state("the width of the NIC's link cannot be read", f"chmod 0 {path}", {"pci.link": "unknown", "pci.acs": "unknown"},
                   {"pci.link": NIC}, f"chmod 444 {path}", prefix=NOBODY)

    def test_modules(self):
        def driver(address, to):
            return (f"echo {address} >/sys/bus/pci/devices/{address}/driver/unbind; echo {to} "
                    f">/sys/bus/pci/devices/{address}/driver_override; echo {address} >/sys/bus/pci/drivers/{to}/bind")
        self.state("a GPU lent to a virtual machine", "modprobe vfio-pci; " + driver(GPUS[0], "vfio-pci"),
                   {"gpu.driver": "pass"}, undo=driver(GPUS[0], "nvidia"))


if __name__ == "__main__":
    main()
