"""Virtual machines with a kernel of their own (QEMU, an emulated processor: no KVM), on this machine's root file
system, read only with a tmpfs over it: what is built here runs there unchanged. For states that namespaces cannot
show: IOMMU groups, PCIe switches and errors, NUMA, modules, kernel parameters, RDMA devices.

By hand:  machine.py [-n MACHINES] [-a "KERNEL PARAMETERS"] [-q "QEMU ARGUMENTS"] [-m MB] COMMAND...
runs COMMAND (bash -c) in every machine, as root, in the present directory; $VM is the machine's number from 1."""
import argparse, atexit, functools, os, pathlib, re, shlex, shutil, socket, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "shakedown-vm"
IN_INITRD = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_net", "virtio_console")
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "modprobe": "kmod",
         "depmod": "kmod", "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux"}
BOOT_S = 300  # on a machine that builds beside it: 6 s when it is idle


class Missing(Exception):
    """Why there can be no virtual machine here, in one line."""


def installed_kernel():
    """The newest kernel of this machine that has its modules; None without one."""
    for image in sorted(pathlib.Path("/boot").glob("vmlinuz-*"), reverse=True):
        release = image.name.removeprefix("vmlinuz-")
        if (pathlib.Path("/lib/modules") / release / "modules.dep").exists():
            return image, pathlib.Path("/"), release
    return None


def package(folder, name):
    """A Debian package, unpacked below a folder and not installed."""
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(["apt-get", "download", "-q", name], cwd=folder, capture_output=True, text=True)
    if got.returncode:
        last = got.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise Missing(f"no kernel image in /boot, and apt-get download {name} fails: {last[0]}")
    for deb in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", deb, folder], check=True)
        deb.unlink()


def depends(name):
    """The package of the newest kernel that one of Debian's without a number stands for."""
    lines = subprocess.run(["apt-cache", "depends", name], capture_output=True, text=True).stdout
    found = re.search(r"Depends: (linux-(?:image|headers)-\d\S*)", lines)
    if not found:
        raise Missing("no kernel image in /boot, and no package linux-image-amd64 (apt-get update)")
    return found.group(1)


@functools.cache
def kernel():
    """(image, folder above lib/modules, release). Debian's package is fetched once when none is installed."""
    found = installed_kernel()
    if found:
        return found
    done = CACHE / "done"
    if not done.exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        package(CACHE, depends("linux-image-amd64"))
        release = next((CACHE / "lib" / "modules").iterdir()).name
        subprocess.run(["depmod", "-b", CACHE, release], check=True)
        done.write_text(release)
    release = done.read_text()
    return CACHE / "boot" / f"vmlinuz-{release}", CACHE, release


def require():
    """Raises Missing when this machine can have no virtual machines."""
    if os.geteuid() != 0:
        raise Missing("not root")
    for tool, owner in TOOLS.items():
        if not shutil.which(tool):
            raise Missing(f"no {tool} (package {owner})")
    kernel()


@functools.cache
def scratch():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shkvm-"))
    folder.chmod(0o755)  # nobody in a machine must see it, too
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def initrd():
    """The initial file system: busybox, the modules that reach this machine's file system, init."""
    _, root, release = kernel()
    tree = scratch() / "initrd"
    for folder in ("bin", "proc", "sys", "dev", "m", "host", "modules", "up", "root"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin" / "busybox")
    shutil.copy(HERE / "init", tree / "init")
    order = []
    for name in IN_INITRD:
        out = subprocess.run(["modprobe", "-d", root, "-S", release, "--show-depends", name], capture_output=True,
                             text=True, check=True).stdout
        order += [line.split()[1] for line in out.splitlines() if line.startswith("insmod")]
    order = list(dict.fromkeys(order))
    for at, path in enumerate(order):
        shutil.copy(path, tree / "m" / f"{at}.ko")
    (tree / "order").write_text("".join(f"{at}.ko\n" for at in range(len(order))))
    image = scratch() / "initrd.cpio"
    with open(image, "wb") as out:
        names = "\n".join(str(p.relative_to(tree)) for p in tree.rglob("*"))
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), stdout=out, cwd=tree, check=True)
    return image


def hurry(process):
    """An emulated processor's clock is this machine's: whoever gets too little of it misses deadlines, those of the
    kernel and of libraries. So it goes before other work, as process and as session (sched_autogroup)."""
    try:
        os.setpriority(os.PRIO_PROCESS, process, -10)
        pathlib.Path(f"/proc/{process}/autogroup").write_text("-10")
    except OSError:
        pass  # a container may not; then it is as fast as the others let it be


class Network:
    """A bridge in a network namespace of its own, which the machines are on: 10.211.0.VM on eth0."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "--kill-child", "sh", "-c", "echo; exec sleep 86400"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.on("ip", "link", "set", "lo", "up")
        self.on("ip", "link", "add", "br0", "type", "bridge")
        self.on("ip", "link", "set", "br0", "up")

    def inside(self, *command):
        """The arguments that start a command in the namespace."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *map(str, command)]

    def on(self, *command):
        return subprocess.run(self.inside(*command), check=True, capture_output=True, text=True).stdout

    def tap(self, name):
        self.on("ip", "tuntap", "add", name, "mode", "tap")
        self.on("ip", "link", "set", name, "master", "br0", "up")
        return name

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Machine:
    """One virtual machine. `args`: kernel parameters; `qemu`: further arguments of QEMU; `network`: a Network that
    eth0 is on, else eth0 reaches nobody. sh() runs a script in it, monitor() speaks to QEMU."""

    def __init__(self, number=1, args="", qemu=(), memory=1024, cpus=1, network=None, peers=1, wait=True,
                 machine="q35,kernel-irqchip=split", cpu="max"):
        self.number, self.count, self.began = number, 0, time.monotonic()
        self.shell = self.lines = None
        self.dir = scratch() / f"{number}-{time.monotonic_ns()}"
        self.dir.mkdir()
        shutil.copy(HERE / "guest.sh", self.dir)
        self._setup(peers)
        qemu = shlex.split(qemu) if isinstance(qemu, str) else list(qemu)
        link = "hubport,id=n0,hubid=0"
        if network:
            link = f"tap,id=n0,ifname={network.tap(f'vm{number}')},script=no,downscript=no"
        image, root, _ = kernel()
        share = "security_model=none,multidevs=remap"
        command = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-machine", machine, "-accel", "tcg,thread=multi", "-cpu", cpu, "-smp", cpus,
            "-m", memory, "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self.dir}/console",
            "-monitor", f"unix:{self.dir}/monitor,server=on,wait=off", "-kernel", image, "-initrd", initrd(),
            "-append", f"console=ttyS0 quiet net.ifnames=0 sysrq_always_enabled=1 panic=-1 no_timer_check tsc=reliable {args}",
            "-virtfs", f"local,path=/,mount_tag=host,readonly=on,{share}",
            "-virtfs", f"local,path={root}/lib/modules,mount_tag=modules,readonly=on,{share}",
            "-virtfs", f"local,path={self.dir},mount_tag=out,{share}",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=shell,path={self.dir}/shell,server=on,wait=off",
            "-device", "virtserialport,chardev=shell,name=shell", "-netdev", link,
            "-device", f"virtio-net-pci,netdev=n0,mac=52:54:00:12:34:{number:02x}", *qemu]
        command = [str(word) for word in command]
        with open(self.dir / "qemu", "wb") as log:
            self.process = subprocess.Popen(network.inside(*command) if network else command, stdout=log, stderr=log, start_new_session=True,
                                            stdin=subprocess.DEVNULL)
        hurry(self.process.pid)
        if wait:
            self.connect()

    def _setup(self, peers):
        names = "".join(f"10.211.0.{i} vm{i}\\n" for i in range(1, peers + 1))
        (self.dir / "setup").write_text(
            f"export PATH={shlex.quote(os.environ['PATH'])}:/usr/sbin:/sbin VM={self.number} OUT=/mnt/out\n"
            # what engines of containers leave in the root file system of the machine that runs the tests
            "rm -f /.dockerenv /run/.containerenv; unset container KUBERNETES_SERVICE_HOST\n"
            # munge that is installed there and does not run here
            "rm -rf /etc/munge /run/munge\n"
            f"hostname vm{self.number}; printf '127.0.0.1 localhost\\n{names}' >/etc/hosts\n"
            f"ip link set lo up; ip addr add 10.211.0.{self.number}/24 dev eth0; ip link set eth0 up\n"
            f"ulimit -l unlimited; cd {shlex.quote(os.getcwd())}\n")

    def connect(self):
        """Waits until the machine has booted."""
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        until = time.monotonic() + BOOT_S
        self.shell = socket.socket(socket.AF_UNIX)
        while self.shell.connect_ex(str(self.dir / "shell")):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"QEMU ended: {self.said()}")
            time.sleep(0.05)
        self.lines = self.shell.makefile("r")
        if self._line(until - time.monotonic()) != "ready":
            raise RuntimeError(f"did not boot in {time.monotonic() - self.began:.0f} s: {self.said()}")
        self.booted = time.monotonic() - self.began

    def said(self):
        """The end of what QEMU and the kernel's console said."""
        texts = [(self.dir / n).read_text(errors="replace") for n in ("qemu", "console") if (self.dir / n).exists()]
        return " ".join("".join(texts).split())[-600:]

    def _line(self, timeout):
        self.shell.settimeout(max(timeout, 0.1))
        try:
            return self.lines.readline().strip()
        except TimeoutError:
            return ""

    def start(self, script):
        """Begins a script (bash) in the machine; wait() ends it."""
        self.count += 1
        (self.dir / f"{self.count}.sh").write_text(script)
        self.shell.sendall(f"{self.count}\n".encode())

    def wait(self, timeout=120, check=True):
        """(status, output, errors) of what start() began."""
        line = self._line(timeout)
        number, _, status = line.partition(" ")
        if number != str(self.count):
            raise RuntimeError(f"vm{self.number}: no answer in {timeout} s: {self.said()}")
        out, err = ((self.dir / f"{self.count}.{n}").read_text(errors="replace") for n in ("out", "err"))
        if check and status != "0":
            script = (self.dir / f"{self.count}.sh").read_text()
            raise RuntimeError(f"vm{self.number}: exit {status} from: {script}\n{out[-2000:]}{err[-2000:]}")
        return int(status), out, err

    def sh(self, script, timeout=120, check=True):
        """What a script prints; raises when it fails."""
        self.start(script)
        return self.wait(timeout, check)[1]

    def monitor(self, command):
        """What QEMU's monitor answers to a command (set_link n0 off, device_del …)."""
        with socket.socket(socket.AF_UNIX) as at:
            at.settimeout(30)
            at.connect(str(self.dir / "monitor"))
            self._prompt(at)
            at.sendall(f"{command}\n".encode())
            return re.sub(r"\x1b\[\w*", "", self._prompt(at)).replace("\r", "").rpartition("(qemu)")[0].strip()

    @staticmethod
    def _prompt(at):
        text = ""
        while not text.endswith("(qemu) "):
            got = at.recv(65536)
            if not got:
                break
            text += got.decode(errors="replace")
        return text

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for end in (self.shell, self.lines):
            if end:
                end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Machines:
    """Several machines on one bridge: vm1 … vmN, which know each other's names. Keywords as of Machine."""

    def __init__(self, count, **how):
        self.network, self.all = Network(), []
        try:
            for at in range(count):
                self.all.append(Machine(at + 1, network=self.network, peers=count, wait=False, **how))
            for machine in self.all:
                machine.connect()
        except BaseException:
            self.close()
            raise

    def sh(self, script, timeout=120, check=True):
        """The outputs of a script that runs in all of them at once."""
        for machine in self.all:
            machine.start(script)
        return [machine.wait(timeout, check)[1] for machine in self.all]

    def close(self):
        for machine in self.all:
            machine.close()
        self.network.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def skip_if_missing():
    """Ends a test with a reason where there can be no virtual machines."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        require()
    except Missing as why:
        print(f"skipped: no virtual machines here: {why}")
        sys.exit(SKIP)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-n", type=int, default=1)
    options.add_argument("-a", default="")
    options.add_argument("-q", default="")
    options.add_argument("-m", type=int, default=1024)
    options.add_argument("-t", type=int, default=600)
    options.add_argument("command", nargs=argparse.REMAINDER)
    asked = options.parse_args()
    skip_if_missing()
    worst = 0
    with Machines(asked.n, args=asked.a, qemu=asked.q, memory=asked.m) as machines:
        for machine in machines.all:
            machine.start(" ".join(asked.command))
        for machine in machines.all:
            status, out, err = machine.wait(asked.t, check=False)
            worst = max(worst, status)
            for line in (out + err).splitlines():
                print(f"vm{machine.number}| {line}")
    sys.exit(worst)


if __name__ == "__main__":
    main()
