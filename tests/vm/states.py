"""States of a real kernel, each made, judged by the program in the virtual machine, and undone. What a report must
say is written down for each: which rows are not green, and that no other row has become so."""
import json, os, pathlib, resource, subprocess, sys, time, unittest

import identity
from machine import Machine, scratch, skip_if_missing

BINARY = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
ORDER = ("na", "pass", "note", "unknown", "warn", "fail")
QUICK = "--quick --format json"
# what only root may read
USER = {"pci.acs": "unknown", "device.history": "unknown", "nic.transceivers": "unknown"}
NOBODY = "HOME=/ setpriv --reuid=65534 --regid=65534 --clear-groups --"

# QEMU's machine, seen as one of metal: no hypervisor among the processor's flags, another maker's name
METAL = "max,-hypervisor"
MAKER = " ".join(f"-smbios type={t},manufacturer=Maker" for t in (1, 2, 3)) + " -smbios type=0,vendor=Maker"
# what can report errors, which QEMU's e1000e cannot
ENDPOINT = "virtio-net-pci-non-transitional,aer=on"
# one switch with a NIC and two GPUs below it; their buses are 3, 4 and 5
SWITCH = ("-device pcie-root-port,id=rp1,bus=pcie.0,chassis=1,slot=1 -device x3130-upstream,id=up1,bus=rp1 "
          "-device xio3130-downstream,id=d1,bus=up1,chassis=2,slot=2 -device xio3130-downstream,id=d2,bus=up1,chassis=3,slot=3 "
          "-device xio3130-downstream,id=d3,bus=up1,chassis=4,slot=4 "
          "-netdev hubport,id=n1,hubid=1 -device e1000e,id=nic1,bus=d1,netdev=n1 "
          "-device {0},id=gpu1,bus=d2 -device {0},id=gpu2,bus=d3 ").format(ENDPOINT)
# the same functions at the same addresses, each below a root port of its own; so each has an IOMMU group of its own
ROOTS = "".join(f"-device pcie-root-port,id=rp{i},bus=pcie.0,chassis={i},slot={i} " for i in range(1, 6))
ROOTS += ("-netdev hubport,id=n1,hubid=1 -device e1000e,id=nic1,bus=rp3,netdev=n1 "
          "-device {0},id=gpu1,bus=rp4 -device {0},id=gpu2,bus=rp5 ").format(ENDPOINT)
NIC, GPUS = "0000:03:00.0", ("0000:04:00.0", "0000:05:00.0")
NVML = scratch() / "nvml" / "libnvidia-ml.so.1"

# what is not green on the nodes that gpu_node() makes while nothing is broken
NORMAL = {"h100": {"gpu.library": "unknown"},
          # there is no kfd behind the driver
          "mi250": {"devices.access": "fail", "gpu.driver": "fail", "rocm.version": "warn", "gpu.peer_access": "unknown",
                    "gpu.bar": "unknown", "kernel.dmabuf": "unknown", "pci.acs": "unknown"}}


def metal(args="", iommu="-device intel-iommu,intremap=on", bus=SWITCH, more="", **how):
    """A machine that looks like metal, with the switch above."""
    return Machine(args=args, qemu=f"{iommu} {MAKER} {bus} {more}", **{"cpu": METAL, "memory": 1536, **how})


def plain(args="", more="", **how):
    return Machine(args=args, qemu=more, **{"memory": 1024, **how})


def carrier(name):
    """A script that waits until the link has been there for a while: a device that sees it come up counts it as one
    that was lost."""
    return (f"n=0; for i in $(seq 300); do grep -q 1 /sys/class/net/{name}/carrier && n=$((n + 1)) || n=0; "
            "[ $n = 15 ] && break; sleep 0.1; done; ")


def rdma_nic(machine, number, address, network, kind="connectx"):
    """The e1000e at an address of the bus is interface hsnNUMBER and RDMA device mlx5_NUMBER, whose packets hold as much as they
    can: 4096 bytes, which 1500 of Ethernet do not."""
    machine.sh(f"""set -e
        for n in /sys/bus/pci/devices/{address}/net/*; do ip link set ${{n##*/}} name hsn{number} mtu 9000 up; done
        ip addr add {network} dev hsn{number}; {carrier(f"hsn{number}")}
        rdma link add mlx5_{number} type rxe netdev hsn{number}
        for i in $(seq 100); do grep -q ACTIVE /sys/class/infiniband/mlx5_{number}/ports/1/state && break; sleep 0.1; done""")
    identity.function(machine, address, kind)
    machine.sh(f"echo 'mlx5_{number} {address}' >/sys/module/identity/parameters/rdma")


def gpu_node(machine, gpu="h100", nic="connectx", nics=(NIC,)):
    """Two functions of the machine are GPUs with their driver, others are NICs that have RDMA devices."""
    if not NVML.exists():
        NVML.parent.mkdir()
        source = pathlib.Path(__file__).parents[1] / "fakes" / "libnvml.c"
        subprocess.run(["gcc", "-shared", "-fPIC", "-DGPUS=2", "-DLINKS=0", "-DBUSES=4,5", "-o", NVML, source], check=True)
    identity.load(machine)
    machine.sh("set -e; modprobe e1000e; modprobe mlx5_ib; mount -o remount,size=2g /dev/shm; modprobe rdma_rxe; modprobe rdma_ucm")
    for number, address in enumerate(nics):
        rdma_nic(machine, number, address, f"10.{212 + number}.0.1/24", nic)
    driver = {"h100": "nvidia", "rtx": "nvidia", "mi250": "amdgpu"}[gpu]
    for address in GPUS:
        identity.become(machine, address, gpu, driver)
    at = "/sys/module/identity/parameters"
    script = ""
    if driver == "nvidia":
        script += (f"for d in driver/nvidia driver/nvidia/gpus; do echo $d >{at}/proc; done; "
                   "echo 'driver/nvidia/version NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release'"
                   f" >{at}/proc; ")
        for minor, address in enumerate(GPUS):
            script += (f"echo driver/nvidia/gpus/{address} >{at}/proc; env printf 'driver/nvidia/gpus/{address}/information "
                       f"Model: \\t NVIDIA H100 80GB HBM3\\nDevice Minor: \\t {minor}\\nGPU Excluded:\\t No' >{at}/proc; "
                       f"mknod -m 666 /dev/nvidia{minor} c 195 {minor}; ")
        script += "mknod -m 666 /dev/nvidiactl c 195 255; mknod -m 666 /dev/nvidia-uvm c 234 0; "
    machine.sh("set -e; " + script)


def rows(report):
    """{id of a check: (its worst verdict, what its rows of that verdict say)}."""
    found = {}
    for row in report["findings"]:
        text = " | ".join(str(row.get(k, "")) for k in ("setting", "observed", "expected", "why", "fix"))
        before = found.get(row["id"], ("na", ""))
        if ORDER.index(row["verdict"]) >= ORDER.index(before[0]):
            same = row["verdict"] == before[0]
            found[row["id"]] = (row["verdict"], before[1] + "\n" + text if same else text)
    return found


def not_green(found):
    return {key: verdict for key, (verdict, _) in found.items() if verdict not in ("na", "pass")}


class States(unittest.TestCase):
    """One class for each boot. setUpClass makes `machine`; state() judges one state of it."""
    machine, normal, done = None, {}, []

    @classmethod
    def boot(cls, machine):
        cls.machine = machine
        cls.addClassCleanup(machine.close)

    @classmethod
    def environment(cls):
        found = f"LD_LIBRARY_PATH={NVML.parent} " if NVML.exists() else ""
        return found + "ASAN_OPTIONS=detect_leaks=0"

    @classmethod
    def start_program(cls, arguments=QUICK, prefix=""):
        cls.machine.start(f"env {cls.environment()} {prefix} {BINARY} {arguments} >/mnt/out/report.json; s=$?; "
                          "[ $s = 2 ] || [ $s -gt 3 ] && exit $s; true")

    @classmethod
    def end_program(cls):
        cls.machine.wait(200)
        return json.loads((cls.machine.dir / "report.json").read_text())

    @classmethod
    def run_program(cls, arguments=QUICK, prefix="", again=2):
        """The report of the program in the machine. `prefix` starts it: unshare, setpriv … A machine that is emulated
        beside others may be too slow for the deadline of a library: then again."""
        cls.start_program(arguments, prefix)
        report = cls.end_program()
        late = any(row["id"] == "probe.health" and row.get("observed") in ("timeout", "failed") for row in report["findings"])
        if not late or not again:
            return report
        time.sleep(5)  # what boots beside it has booted then
        return cls.run_program(arguments, prefix, again - 1)

    @classmethod
    def healthy(cls, expected):
        """Nothing is broken yet: `expected` are the rows that are not green all the same."""
        began = time.monotonic()
        found = rows(cls.run_program())
        cls.normal = expected
        if not_green(found) != expected:
            raise AssertionError(f"{cls.__name__}, healthy: {describe(found, not_green(found))}")
        States.done.append((cls.__name__, "healthy", {}, time.monotonic() - began))
        return found

    def judge(self, name, found, want, green, says):
        told = not_green(found)
        wrong = [f"{key} is {told.get(key, 'green')}, not {want.get(key, 'green')}: {found.get(key, ('', 'no row'))[1]}"
                 for key in {**told, **want} if told.get(key) != want.get(key)]
        wrong += [f"{key} is {found.get(key, ('no row',))[0]}, not {verdict}" for key, verdict in green.items()
                  if found.get(key, ("no row",))[0] != verdict]
        wrong += [f"{key} does not say '{text}': {found.get(key, ('', 'no row'))[1]}" for key, text in says.items()
                  if text not in found.get(key, ("", ""))[1]]
        for line in wrong:
            print(f"{type(self).__name__}, {name}: {line}", file=sys.stderr, flush=True)
        self.assertEqual(wrong, [])

    def state(self, name, do="", expected=None, says=None, undo="", arguments=QUICK, prefix="", during=None):
        """Makes a state, and asks that exactly the rows of `expected` (id: verdict) have changed; `says`: id: a text
        that the row must hold."""
        expected, began = expected or {}, time.monotonic()
        with self.subTest(state=name):
            if do:
                self.machine.sh(do)
            try:
                found = rows(during() if during else self.run_program(arguments, prefix=prefix))
            finally:
                if undo:
                    self.machine.sh(undo)
            seconds = time.monotonic() - began
            want = {k: v for k, v in {**self.normal, **expected}.items() if v not in ("na", "pass")}
            self.judge(name, found, want, {k: v for k, v in expected.items() if v in ("na", "pass")}, says or {})
            States.done.append((type(self).__name__, name, expected, seconds))
            return found


def describe(found, keys):
    return "; ".join(f"{key} {found[key][0]}: {found[key][1]}" for key in keys)


def main():
    skip_if_missing()
    began = time.monotonic()
    program = unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]], exit=False)
    for boot, name, expected, seconds in States.done:
        told = ", ".join(f"{k} {v}" for k, v in (expected or {}).items()) or "all green"
        print(f"state  {boot:<22} {name:<52} {told:<48} {seconds:5.1f} s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(States.done)} states, {len(program.result.failures) + len(program.result.errors)} wrong, "
          f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} processor seconds")
    sys.exit(not program.result.wasSuccessful())
