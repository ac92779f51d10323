#!/usr/bin/env python3
"""machine.py SHAPE[+VARIANT…] DIR: writes the captured tree of a made-up machine, for --sysroot.

machine.py --list prints the shapes, --variants SHAPE the variants that make sense for one. A variant
breaks exactly one thing; VARIANTS tells which check has to notice it. Nothing in here was taken from
a real machine: the shapes follow public descriptions, the numbers are invented."""

import json
import os
import pathlib
import sys

GPU = {  # vendor, device, class, bytes of memory, bytes of the window, model
    "h100": ("10de", "2330", "030200", 85520809984, 1 << 37, "NVIDIA H100 80GB HBM3"),
    "a100": ("10de", "20b0", "030200", 42949672960, 1 << 36, "NVIDIA A100-SXM4-40GB"),
    "t4": ("10de", "1eb8", "030200", 16106127360, 1 << 28, "Tesla T4"),
    "rtx4090": ("10de", "2684", "030000", 25757220864, 1 << 28, "NVIDIA GeForce RTX 4090"),
    "gh200": ("10de", "2342", "030200", 102005473280, 1 << 37, "NVIDIA GH200 120GB"),
    "mi250x": ("1002", "7408", "038000", 68702699520, 1 << 36, "AMD Instinct MI250X"),
    "mi300x": ("1002", "74a1", "120000", 206141652992, 1 << 38, "AMD Instinct MI300X"),
    "trainium": ("1d0f", "7164", "088000", 34359738368, 1 << 30, "Trainium"),
}
NIC = {  # vendor, device, class, driver
    "mlx5": ("15b3", "1021", "020700", "mlx5_core"),
    "cxi": ("17db", "0501", "020000", "cxi_ss1"),
    "efa": ("1d0f", "efa2", "020000", "efa"),
    "ena": ("1d0f", "ec20", "020000", "ena"),
}
GEN = {"3": "8.0", "4": "16.0", "5": "32.0"}


class Machine:
    """Files, links and answers of one machine; devices are added from the root down."""

    def __init__(self, name, arch="x86_64", numa=2, cores=4, kernel="5.14.0-427.el9.x86_64"):
        self.name, self.arch, self.numa, self.cores, self.kernel = name, arch, numa, cores, kernel
        self.files, self.links = {}, {}
        self.gpus, self.nics, self.ports, self.group = [], [], [], 0
        self.facts, self.next_bus = {}, {}
        self.env, self.nodes = {}, {}
        self.memlock, self.ipc_lock, self.shm, self.root = -1, True, 128 << 30, True
        self.cmdline = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt numa_balancing=disable"
        self.modules = ["ib_core", "ib_uverbs"]
        self.virt, self.profile = False, "single-node"

    def put(self, path, text):
        self.files[path] = text if isinstance(text, bytes) else (str(text) + "\n").encode()

    def cpus(self, node):
        return range(node * self.cores, (node + 1) * self.cores)

    # PCI ------------------------------------------------------------------------------------

    def host_bridge(self, domain, bus, node):
        """A root complex; buses below it are counted up from `bus`."""
        self.next_bus[(domain, bus)] = bus
        mask = f"{sum(1 << c for c in self.cpus(node)):08x}"
        self.put(f"/sys/devices/pci{domain:04x}:{bus:02x}/pci_bus/{domain:04x}:{bus:02x}/cpuaffinity",
                 mask)
        self.links[f"/sys/class/pci_bus/{domain:04x}:{bus:02x}"] = (
            f"../../devices/pci{domain:04x}:{bus:02x}/pci_bus/{domain:04x}:{bus:02x}")
        return {"path": f"/sys/devices/pci{domain:04x}:{bus:02x}", "root": (domain, bus), "bus": bus,
                "node": node, "domain": domain, "above": []}

    def function(self, parent, slot, ids, *, width=16, gen="5", bridge=False, driver=None, fn=0):
        vendor, device, cls = ids
        bus, domain = parent["bus"], parent["domain"]
        addr = f"{domain:04x}:{bus:02x}:{slot:02x}.{fn}"
        path = f"{parent['path']}/{addr}"
        node = {"addr": addr, "path": path, "root": parent["root"], "domain": domain,
                "node": parent["node"], "above": [parent], "class": cls, "gen": gen}
        self.put(f"{path}/uevent", (f"DRIVER={driver}\n" if driver else "") +
                 f"PCI_CLASS={int(cls, 16):X}\nPCI_ID={vendor.upper()}:{device.upper()}")
        for name, value in (("class", f"0x{cls}"), ("vendor", f"0x{vendor}"),
                            ("device", f"0x{device}"), ("revision", "0x01"),
                            ("subsystem_vendor", f"0x{vendor}"), ("subsystem_device", "0x0001"),
                            ("numa_node", parent["node"]),
                            ("current_link_speed", f"{GEN[gen]} GT/s PCIe"),
                            ("max_link_speed", f"{GEN[gen]} GT/s PCIe"),
                            ("current_link_width", width), ("max_link_width", width),
                            ("local_cpus", f"{sum(1 << c for c in self.cpus(parent['node'])):08x}")):
            self.put(f"{path}/{name}", value)
        self.links[f"/sys/bus/pci/devices/{addr}"] = "../../.." + path[len("/sys"):]
        if driver:
            self.links[f"{path}/driver"] = f"/sys/bus/pci/drivers/{driver}"
            self.put(f"/sys/bus/pci/drivers/{driver}/uevent", "")
        if bridge:
            self.next_bus[parent["root"]] += 1
            node["bus"] = self.next_bus[parent["root"]]
        self.config(node, vendor, device, cls, bridge)
        self.iommu(node)
        for kind in ("correctable", "nonfatal", "fatal"):
            self.put(f"{path}/aer_dev_{kind}", f"DLP 0\nCmpltTO 0\nTOTAL_ERR_{kind.upper()} 0")
        return node

    def config(self, node, vendor, device, cls, bridge):
        """Configuration space: identity, PCI Express capability, ACS (off) on bridges."""
        raw = bytearray(4096)
        raw[0:2] = int(vendor, 16).to_bytes(2, "little")
        raw[2:4] = int(device, 16).to_bytes(2, "little")
        raw[6] = 0x10
        raw[8] = 1
        raw[9:12] = int(cls, 16).to_bytes(3, "little")
        raw[0x0e] = 1 if bridge else 0
        raw[0x34], raw[0x40], raw[0x42] = 0x40, 0x10, 0x62 if bridge else 0x02
        if bridge:
            bus = int(node["addr"][5:7], 16)
            raw[0x18:0x1b] = bytes((bus, node["bus"], node["bus"]))
            raw[0x100:0x104] = (0x000d | 1 << 16).to_bytes(4, "little")
            raw[0x104:0x106] = (0x5f).to_bytes(2, "little")
            self.ports.append(node)
        node["config"] = raw
        up = node["above"][0]
        while bridge and "config" in up:  # every bridge above covers the new bus
            up["config"][0x1a] = max(up["config"][0x1a], node["bus"])
            up = up["above"][0]

    def iommu(self, node):
        self.group += 1
        self.put(f"/sys/kernel/iommu_groups/{self.group}/type", "identity")
        self.links[f"/sys/kernel/iommu_groups/{self.group}/devices/{node['addr']}"] = node["path"]
        self.links[f"{node['path']}/iommu_group"] = f"/sys/kernel/iommu_groups/{self.group}"
        node["group"] = self.group

    def port(self, parent, slot=0, gen="5", ids=("1022", "14ab", "060400"), width=16):
        return self.function(parent, slot, ids, bridge=True, driver="pcieport", gen=gen, width=width)

    def switch(self, root_port, ports, gen="5"):
        """Downstream ports of a PCIe switch below a root port."""
        ids = ("1000", "c030", "060400")
        up = self.port(root_port, 0, gen, ids)
        return [self.port(up, slot, gen, ids) for slot in range(ports)]

    def gpu(self, parent, model, gen="5", width=16):
        vendor, device, cls, memory, bar, name = GPU[model]
        driver = {"10de": "nvidia", "1002": "amdgpu", "1d0f": "neuron"}[vendor]
        node = self.function(parent, 0, (vendor, device, cls), driver=driver, gen=gen, width=width)
        node.update(model=model, memory=memory, title=name, index=len(self.gpus))
        start = 0x200000000000 + len(self.gpus) * (1 << 40)
        lines = [(0, 0, 0)] * 6
        lines[1 if vendor == "10de" else 0] = (start, start + bar - 1, 0x14220c)
        self.put(f"{node['path']}/resource", "\n".join("0x%016x 0x%016x 0x%016x" % l for l in lines))
        self.gpus.append(node)
        return node

    def nic(self, parent, kind, name, ib=None, gen="5", width=16, slot=0):
        vendor, device, cls, driver = NIC[kind]
        node = self.function(parent, slot, (vendor, device, cls), driver=driver, gen=gen,
                             width=width)
        node.update(kind=kind, name=name, ib=ib)
        if name:
            base = f"{node['path']}/net/{name}"
            for key, value in (("operstate", "up"), ("mtu", "4096"), ("type", "1"), ("speed", "200000"),
                               ("address", f"02:00:00:00:00:{len(self.nics) + 1:02x}")):
                self.put(f"{base}/{key}", value)
            self.links[f"{base}/device"] = node["path"]
            self.links[f"/sys/class/net/{name}"] = base
        if ib:
            self.infiniband(node, ib)
        if kind == "cxi":
            base = f"{node['path']}/cxi/cxi{len(self.nics)}"
            self.put(f"{base}/port/link", "up")
            self.put(f"{base}/port/speed", "BS_200G")
            self.put(f"{base}/properties/nid", "0x1")
            self.put(f"{base}/properties/hpc_mtu", "9216")
            self.links[f"{base}/device"] = node["path"]
            self.links[f"/sys/class/cxi/cxi{len(self.nics)}"] = base
            self.node(f"/dev/cxi{len(self.nics)}")
        self.nics.append(node)
        return node

    def infiniband(self, node, ib):
        base = f"{node['path']}/infiniband/{ib}"
        for key, value in (("node_type", "1: CA"), ("fw_ver", "28.39.1002"),
                           ("node_guid", f"0200:0000:0000:{len(self.nics) + 1:04x}"),
                           ("ports/1/state", "4: ACTIVE"), ("ports/1/phys_state", "5: LinkUp"),
                           ("ports/1/link_layer", "InfiniBand"), ("ports/1/rate", "400 Gb/sec (4X NDR)")):
            self.put(f"{base}/{key}", value)
        self.links[f"{base}/device"] = node["path"]
        self.links[f"/sys/class/infiniband/{ib}"] = base
        verbs = f"{node['path']}/infiniband_verbs/uverbs{len(self.nics)}"
        self.put(f"{verbs}/ibdev", ib)
        self.links[f"/sys/class/infiniband_verbs/uverbs{len(self.nics)}"] = verbs
        self.node(f"/dev/infiniband/uverbs{len(self.nics)}")

    # GPUs among each other -------------------------------------------------------------------

    def node(self, path, mode="0666"):
        self.put(path, "")
        self.nodes[path] = {"mode": mode, "uid": 0, "gid": 0}

    def nvml(self, links, p2p="ok", driver="550.54.15"):
        """links(i) is the list of (remote type, remote address) of GPU i."""
        lib = f"/usr/lib64/libnvidia-ml.so.{driver}"

        def fact(value):
            return {"state": "present", "value": value, "source": lib}
        absent = {"state": "absent", "source": lib, "reason": "it answers"}
        rows, pairs = [], []
        for i, gpu in enumerate(self.gpus):
            remote = links(i)
            switched = any(kind == "switch" for kind, _ in remote)
            fabric = {"state": "completed" if switched else "not supported", "status": 0, "clique": 0,
                      "domain": False}
            rows.append({"index": i, "pci": gpu["addr"], "name": gpu["title"], "memory": gpu["memory"],
                         "mig": False, "persistence": True, "fabric": fabric,
                         "links": [{"link": n, "active": True, "remote": kind, "pci": addr}
                                   for n, (kind, addr) in enumerate(remote)]})
            for peer in self.gpus[i + 1:]:
                pairs.append({"gpu": gpu["addr"], "peer": peer["addr"], "read": p2p, "write": p2p,
                              "nvlink": "ok" if remote else "not supported", "atomics": p2p})
            base = f"/proc/driver/nvidia/gpus/{gpu['addr']}/information"
            self.put(base, f"Model: \t\t {gpu['title']}\nDevice Minor: \t {i}\nGPU Excluded:\t No")
            self.node(f"/dev/nvidia{i}")
        for name in ("nvidiactl", "nvidia-uvm"):
            self.node(f"/dev/{name}")
        self.put("/proc/driver/nvidia/version",
                 f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build")
        self.modules += ["nvidia", "nvidia_uvm"]
        self.facts.update({"nvml.devices": fact(rows), "nvml.p2p": fact(pairs), "nvml.error": absent,
                           "nvml.lost": absent, "nvml.driver": fact(driver)})

    def kfd(self, xgmi, first=2):
        """AMD compute nodes: processors first, then GPUs, joined by XGMI when xgmi is true."""
        base = "/sys/devices/virtual/kfd/kfd/topology/nodes"
        self.links["/sys/class/kfd/kfd"] = "/sys/devices/virtual/kfd/kfd"
        for n in range(first):
            self.put(f"{base}/{n}/gpu_id", "0")
            self.put(f"{base}/{n}/name", "")
            self.put(f"{base}/{n}/properties", "cpu_cores_count 4\nsimd_count 0")
        for i, gpu in enumerate(self.gpus):
            node, bus = first + i, int(gpu["addr"][5:7], 16)
            self.put(f"{base}/{node}/gpu_id", str(40000 + i))
            self.put(f"{base}/{node}/name", "gfx")
            self.put(f"{base}/{node}/properties",
                     f"cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\n"
                     f"location_id {bus << 8}\ndomain {gpu['domain']}\ndrm_render_minor {128 + i}")
            self.put(f"{base}/{node}/mem_banks/0/properties",
                     f"heap_type 1\nsize_in_bytes {gpu['memory']}")
            self.node(f"/dev/dri/renderD{128 + i}")
            others = [k for k in range(len(self.gpus)) if k != i]
            for n, k in enumerate(others):
                kind, folder = (11, "io_links") if xgmi else (2, "p2p_links")
                self.put(f"{base}/{node}/{folder}/{n}/properties",
                         f"type {kind}\nnode_from {node}\nnode_to {first + k}\nweight 15\n"
                         f"min_bandwidth 50000\nmax_bandwidth 100000")
        self.node("/dev/kfd")
        self.put("/opt/rocm/.info/version", "6.3.1-48")
        self.modules.append("amdgpu")

    # The rest ----------------------------------------------------------------------------------

    def system(self):
        put = self.put
        total = self.numa * self.cores
        put("/etc/os-release", 'ID=rocky\nVERSION_ID="9.4"\nPRETTY_NAME="Rocky Linux 9.4"')
        flags = "fpu vme hypervisor" if self.virt else "fpu vme"
        put("/proc/cpuinfo", f"processor : 0\nmodel name : Made-up CPU\nflags : {flags}")
        put("/proc/cmdline", self.cmdline)
        put("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_1")
        put("/proc/self/mountinfo", "21 1 0:20 / / rw - xfs /dev/sda1 rw\n"
            "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
        put("/proc/meminfo", f"MemTotal: {self.numa * 128 << 20} kB\nMemAvailable: 1000000 kB")
        put("/proc/1/comm", "systemd")
        put("/proc/modules", "\n".join(f"{m} 16384 0 - Live 0x0" for m in sorted(self.modules)))
        put(f"/boot/config-{self.kernel}",
            "CONFIG_USERFAULTFD=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y")
        for name, value in (("kernel/numa_balancing", 0), ("net/core/somaxconn", 4096),
                            ("net/ipv4/conf/all/rp_filter", 2), ("vm/overcommit_memory", 0),
                            ("vm/max_map_count", 65530), ("vm/zone_reclaim_mode", 0)):
            put(f"/proc/sys/{name}", value)
        put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        put("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never")
        put("/sys/devices/virtual/dmi/id/sys_vendor", "Example")
        put("/sys/devices/virtual/dmi/id/product_name", self.name)
        self.links["/sys/class/dmi/id"] = "/sys/devices/virtual/dmi/id"
        put("/sys/devices/system/cpu/online", f"0-{total - 1}")
        put("/sys/devices/system/cpu/possible", f"0-{total - 1}")
        put("/sys/devices/system/cpu/present", f"0-{total - 1}")
        for node in range(self.numa):
            cpus = list(self.cpus(node))
            base = f"/sys/devices/system/node/node{node}"
            put(f"{base}/cpulist", f"{cpus[0]}-{cpus[-1]}")
            put(f"{base}/cpumap", f"{sum(1 << c for c in cpus):08x}")
            put(f"{base}/meminfo", f"Node {node} MemTotal: {128 << 20} kB")
            put(f"{base}/distance", " ".join("10" if k == node else "20" for k in range(self.numa)))
            for cpu in cpus:
                one, all_ = f"{1 << cpu:08x}", f"{sum(1 << c for c in cpus):08x}"
                topo = f"/sys/devices/system/cpu/cpu{cpu}/topology"
                for name, value in (("core_cpus", one), ("thread_siblings", one),
                                    ("package_cpus", all_), ("core_siblings", all_),
                                    ("core_id", cpu), ("physical_package_id", node)):
                    put(f"{topo}/{name}", value)
                put(f"/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor", "performance")
                put(f"/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_driver", "acpi-cpufreq")
        for table in ("DSDT", "IVRS"):
            put(f"/sys/firmware/acpi/tables/{table}", "")

    def calls(self):
        def limit(value):
            return {"soft": value, "hard": value}
        ifaces = [{"name": "lo", "flags": ["up", "loopback", "running"],
                   "addrs": [{"family": "inet", "addr": "127.0.0.1", "prefix": 8}]},
                  {"name": "eno1", "flags": ["up", "running", "broadcast", "multicast"],
                   "addrs": [{"family": "inet", "addr": "10.1.0.11", "prefix": 24}]}]
        for n, nic in enumerate(self.nics):
            if nic["name"]:
                ifaces.append({"name": nic["name"], "flags": ["up", "running", "broadcast", "multicast"],
                               "addrs": [{"family": "inet", "addr": f"10.{20 + n}.0.11", "prefix": 24}]})
        return {"uname": {"sysname": "Linux", "nodename": "node1", "release": self.kernel,
                          "version": "#1 SMP", "machine": self.arch},
                "ids": {"uid": 0, "euid": 0, "gid": 0, "groups": [0], "ipc_lock": self.ipc_lock} if self.root else
                       {"uid": 1000, "euid": 1000, "gid": 1000, "groups": [1000], "ipc_lock": False},
                "rlimits": {"memlock": limit(self.memlock), "nofile": limit(1 << 20),
                            "stack": limit(8 << 20), "as": limit(-1), "core": limit(-1),
                            "nproc": limit(-1)},
                "pagesize": 4096, "shmfs": {"size": self.shm, "free": self.shm, "type": "0x1021994"},
                "ifaddrs": ifaces, "affinity": list(range(self.numa * self.cores)),
                "resolve": {"hostname": "node1", "addrs": ["10.1.0.11"], "error": None},
                "clock": {"synchronised": True, "offset_us": 3, "maxerror_us": 900},
                "environ": {"HOME": "/root", **self.env}, "nodes": self.nodes}

    def write(self, folder):
        self.system()
        root = pathlib.Path(folder)
        for node in self.gpus + self.nics + self.ports:
            self.put(f"{node['path']}/config", bytes(node["config"][:4096 if self.root else 64]))
        if "facts" in self.__dict__ and self.facts:
            self.put("/.shakedown/facts.json",
                     json.dumps({"schema": "shakedown.facts/1", "facts": self.facts}))
        self.put("/.shakedown/hostcalls.json", json.dumps(self.calls(), indent=1))
        for path, data in self.files.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for path, target in self.links.items():
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if target.startswith("/"):  # relative, so that the tree can be moved
                target = os.path.relpath(target, os.path.dirname(path))
            link.symlink_to(target)


# Shapes ------------------------------------------------------------------------------------------

def dgx_h100():
    m = Machine("dgx-h100")
    m.profile = "generic-ib"
    for n in range(8):
        top = m.host_bridge(0, 0x10 + n * 0x18, n // 4)
        gpu_port, nic_port = m.switch(m.port(top, 1), 2)
        m.gpu(gpu_port, "h100")
        m.nic(nic_port, "mlx5", f"ib{n}", f"mlx5_{n}")
    side = m.host_bridge(0, 0xf0, 1)
    switches = [m.function(m.port(side, 1 + n, width=2, gen="4"), 0, ("10de", "22a3", "068000"),
                           driver="nvidia-nvswitch", width=2, gen="4")["addr"] for n in range(4)]
    m.nvml(lambda i: [("switch", switches[k % 4]) for k in range(18)])
    m.put("/proc/2077/comm", "nv-fabricmanage")
    m.modules += ["mlx5_core", "mlx5_ib", "nvidia_peermem"]
    return m


def hgx_a100():
    m = Machine("hgx-a100-4gpu")
    m.profile = "generic-ib"
    for n in range(4):
        top = m.host_bridge(0, 0x20 + n * 0x30, n // 2)
        m.gpu(m.port(top, 1, gen="4"), "a100", gen="4")
        if n % 2 == 0:
            m.nic(m.port(top, 3, gen="4"), "mlx5", f"ib{n // 2}", f"mlx5_{n // 2}", gen="4")
    m.nvml(lambda i: [("gpu", m.gpus[k]["addr"]) for k in range(4) if k != i for _ in range(4)])
    m.modules += ["mlx5_core", "mlx5_ib", "nvidia_peermem"]
    return m


def lumi_g():
    m = Machine("lumi-g", numa=4)
    for n in range(4):
        far, near = (m.host_bridge(0, 0xa0 + n * 0x10 + k * 8, n) for k in range(2))
        m.gpu(m.port(far, 1, gen="4"), "mi250x", gen="4")
        m.gpu(m.port(near, 1, gen="4"), "mi250x", gen="4")
        m.nic(m.port(near, 3, gen="4"), "cxi", f"hsn{n}", gen="4")
    m.kfd(xgmi=True, first=4)
    m.modules += ["cxi_ss1", "cxi_user"]
    return m


def mi300x():
    m = Machine("mi300x-8gpu")
    m.profile = "generic-ib"
    for n in range(8):
        top = m.host_bridge(0, 0x08 + n * 0x18, n // 4)
        gpu_port, nic_port = m.switch(m.port(top, 1), 2)
        m.gpu(gpu_port, "mi300x")
        m.nic(nic_port, "mlx5", f"ib{n}", f"mlx5_{n}")
    m.kfd(xgmi=True)
    m.modules += ["mlx5_core", "mlx5_ib"]
    return m


def g4dn():
    m = Machine("g4dn.metal")
    for n in range(4):
        top = m.host_bridge(0, 0x10 + n * 0x30, n // 2)
        for slot in (1, 2):
            m.gpu(m.port(top, slot, gen="3", width=8), "t4", gen="3", width=8)
    m.nic(m.port(m.host_bridge(0, 0xd0, 1), 1, gen="3"), "efa", None, "rdmap208s0", gen="3")
    m.nvml(lambda i: [], p2p="chipset not supported")
    m.modules.append("efa")
    return m


def workstation():
    m = Machine("workstation", numa=1)
    top = m.host_bridge(0, 0x00, 0)
    for slot in (1, 2):
        m.gpu(m.port(top, slot, gen="4", width=8), "rtx4090", gen="4", width=8)
    m.nvml(lambda i: [], p2p="not supported")
    return m


def gh200():
    m = Machine("gh200-4gpu", arch="aarch64", numa=4, kernel="5.14.21-cray_shasta")
    for n in range(4):
        m.gpu(m.port(m.host_bridge(n, 0x00, n), 0), "gh200")
        m.nic(m.port(m.host_bridge(n + 8, 0x00, n), 0, gen="4"), "cxi", f"hsn{n}", gen="4")
    m.nvml(lambda i: [("gpu", m.gpus[k]["addr"]) for k in range(4) if k != i for _ in range(6)])
    m.modules += ["cxi_ss1", "cxi_user"]
    return m


def pcie_box():
    m = Machine("pcie-8gpu")
    m.profile = "generic-ib"
    for half in range(2):
        top = m.host_bridge(0, 0x10 + half * 0x70, half)
        ports = m.switch(m.port(top, 1, gen="4"), 5, gen="4")
        for port in ports[:4]:
            m.gpu(port, "a100", gen="4")
        m.nic(ports[4], "mlx5", f"ib{half}", f"mlx5_{half}", gen="4")
    m.nvml(lambda i: [])
    m.modules += ["mlx5_core", "mlx5_ib", "nvidia_peermem"]
    return m


def trn1():
    m = Machine("trn1.32xlarge")
    for n in range(4):
        top = m.host_bridge(0, 0x10 + n * 0x30, n // 2)
        for slot in range(1, 5):
            m.gpu(m.port(top, slot, gen="4"), "trainium", gen="4")
        m.nic(m.port(top, 9, gen="4"), "efa", None, f"rdmap{n}s0", gen="4")
    for n in range(16):
        m.put(f"/sys/class/neuron_device/neuron{n}/core_count", "2")
        m.node(f"/dev/neuron{n}")
    m.modules += ["neuron", "efa"]
    return m


def cpu_only():
    m = Machine("cpu-only")
    m.profile = "generic-ib"
    m.nic(m.port(m.host_bridge(0, 0x30, 1), 1, gen="4"), "mlx5", "ib0", "mlx5_0", gen="4")
    m.modules += ["mlx5_core", "mlx5_ib"]
    return m


SHAPES = {f.__name__.replace("_", "-"): f for f in
          (dgx_h100, hgx_a100, lumi_g, mi300x, g4dn, workstation, gh200, pcie_box, trn1, cpu_only)}

# Variants ----------------------------------------------------------------------------------------


def acs_on(m):
    for port in m.ports:
        if port["config"][2:4] == bytes((0x30, 0xc0)):
            port["config"][0x106:0x108] = (0x1d).to_bytes(2, "little")


def acs_unreadable(m):
    m.root = False


def dma_groups(m):
    for node in m.gpus:
        m.put(f"/sys/kernel/iommu_groups/{node['group']}/type", "DMA-FQ")


def half_width(m):
    width = int(m.files[f"{m.gpus[-1]['path']}/max_link_width"])
    for node in (m.gpus[-1], m.gpus[-1]["above"][0]):
        m.put(f"{node['path']}/current_link_width", width // 2)


def slow_nic(m):
    for node in (m.nics[-1], m.nics[-1]["above"][0]):
        m.put(f"{node['path']}/current_link_speed", "2.5 GT/s PCIe")


def memlock(m):
    m.memlock, m.ipc_lock = 64 << 10, False


def small_shm(m):
    m.shm = 64 << 20


def no_peermem(m):
    m.modules.remove("nvidia_peermem")
    path = "/proc/driver/nvidia/version"
    m.files[path] = m.files[path].replace(b"Open Kernel Module", b"Kernel Module")


def numa_lost(m):
    for node in m.gpus:
        m.put(f"{node['path']}/numa_node", "-1")


def errors(m):
    m.put(f"{m.gpus[0]['path']}/aer_dev_fatal", "DLP 2\nTOTAL_ERR_FATAL 2")



def nvlink_down(m):
    m.facts["nvml.devices"]["value"][1]["links"][3]["active"] = False


def peers_refused(m):
    m.facts["nvml.p2p"]["value"][0].update(read="topology not supported")


def fabric_waits(m):
    m.facts["nvml.devices"]["value"][0]["fabric"]["state"] = "in progress"


def no_manager(m):
    del m.files["/proc/2077/comm"]
    for row in m.facts["nvml.devices"]["value"]:
        row["fabric"] = None


def small_window(m):
    path = f"{m.gpus[0]['path']}/resource"
    m.put(path, "0x0 0xfffffff 0x14220c\n" + "0x0 0x0 0x0\n" * 4 + "0x0 0x0 0x0")


def wrong_file(m):
    m.env["NCCL_TOPO_FILE"] = "/etc/topo.xml"
    m.put("/etc/topo.xml", '<system version="1"><cpu numaid="0"><pci busid="0000:99:00.0" '
          'class="0x030200"/></cpu></system>')


def never_gdr(m):
    m.env["NCCL_NET_GDR_LEVEL"] = "LOC"


def _switched(m):
    return any(p["config"][2:4] == bytes((0x30, 0xc0)) for p in m.ports)


def _links(m):
    return "nvml.devices" in m.facts and any(r["links"] for r in m.facts["nvml.devices"]["value"])


# name: (function, check that must notice it, verdicts, does it make sense for this machine?)
VARIANTS = {
    "acs-on": (acs_on, "pci.acs", ("fail",), _switched),
    "unprivileged": (acs_unreadable, "pci.acs", ("unknown",), _switched),
    "dma-groups": (dma_groups, "kernel.iommu", ("warn", "fail"), lambda m: m.gpus),
    "half-width": (half_width, "pci.link", ("warn",), lambda m: m.gpus),
    "slow-nic": (slow_nic, "pci.link", ("warn",), lambda m: m.nics),
    "memlock": (memlock, "limits.memlock", ("fail",), lambda m: m.profile == "generic-ib"),
    "small-shm": (small_shm, "shm.size", ("fail",), lambda m: len(m.gpus) > 1),
    "no-peermem": (no_peermem, "kernel.peermem", ("fail",), lambda m: "nvidia_peermem" in m.modules),
    "numa-lost": (numa_lost, "pci.numa", ("warn",), lambda m: m.gpus and m.numa > 1),
    "errors": (errors, "pci.errors", ("warn",), lambda m: m.gpus),
    "nvlink-down": (nvlink_down, "gpu.nvlink", ("warn",), _links),
    "peers-refused": (peers_refused, "gpu.peer_access", ("fail",), _links),
    "fabric-waits": (fabric_waits, "gpu.fabric_manager", ("fail",),
                     lambda m: "/proc/2077/comm" in m.files),
    "no-manager": (no_manager, "gpu.fabric_manager", ("fail",),
                   lambda m: "/proc/2077/comm" in m.files),
    "small-window": (small_window, "gpu.bar", ("warn",), lambda m: "amdgpu" in m.modules),
    "wrong-file": (wrong_file, "topology.file", ("warn",), lambda m: m.gpus),
    "never-gdr": (never_gdr, "topology.level", ("warn",), lambda m: m.gpus and m.nics),
}


def build(name):
    """The machine SHAPE[+VARIANT…]."""
    shape, *variants = name.split("+")
    machine = SHAPES[shape]()
    for variant in variants:
        VARIANTS[variant][0](machine)
    return machine


def variants_of(shape):
    machine = SHAPES[shape]()
    return [v for v, (_, _, _, fits) in VARIANTS.items() if fits(machine)]


def main():
    args = sys.argv[1:]
    if args == ["--list"]:
        print("\n".join(SHAPES))
    elif len(args) == 2 and args[0] == "--variants":
        print("\n".join(variants_of(args[1])))
    elif len(args) == 2:
        build(args[0]).write(args[1])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
