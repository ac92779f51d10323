"""The module identity.ko (identity/identity.c) for the kernel of the virtual machines: lets functions on their PCI
buses stand for GPUs and NICs that QEMU does not have."""
import functools, hashlib, os, pathlib, re, shutil, subprocess

from machine import CACHE, HERE, Missing, kernel, package

SOURCE = HERE / "identity"


def unpacked_headers(release):
    """The folder to build modules in, made of Debian's packages, which are fetched once and not installed."""
    folder = CACHE / "headers"
    build = folder / "usr" / "src" / f"linux-headers-{release}"
    if (build / "ready").exists():
        return build
    names = [f"linux-headers-{release}"]
    lines = subprocess.run(["apt-cache", "depends", names[0]], capture_output=True, text=True).stdout
    names += re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", lines)
    for name in names:
        package(folder, name)
    makefile = build / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    (build / "ready").touch()
    return build


def headers(release):
    installed = pathlib.Path("/lib/modules") / release / "build"
    return installed if (installed / "Makefile").exists() else unpacked_headers(release)


@functools.cache
def module():
    """Path of identity.ko, built when its source or the kernel is another one than last time."""
    release = kernel()[2]
    source = (SOURCE / "identity.c").read_bytes()
    folder = CACHE / f"identity-{release}-{hashlib.sha256(source).hexdigest()[:12]}"
    if not (folder / "identity.ko").exists():
        for tool in ("make", "gcc-12"):
            if not shutil.which(tool):
                raise Missing(f"no {tool} to build a kernel module with")
        shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
        made = subprocess.run(["make", "-s", "-C", headers(release), f"M={folder}", "modules"], capture_output=True,
                              text=True, env={**os.environ, "LC_ALL": "C"})
        if made.returncode:
            raise Missing(f"the kernel module of the tests does not build: {made.stderr.strip()[-300:]}")
    return folder / "identity.ko"


# vendor, device, class as they stand on the bus
KINDS = {"h100": "10de 2330 030200", "rtx": "10de 2684 030000", "mi250": "1002 7408 038000", "connectx": "15b3 1021 020000",
         "cassini": "17db 0501 020000", "efa": "1d0f efa2 020000", "trainium": "1d0f 7164 088000"}


def load(machine):
    machine.sh(f"modprobe ib_core; insmod {module()}")


def function(machine, address, kind):
    """A function of the machine is now of a kind of KINDS; its driver stays."""
    machine.sh(f'echo "{address} {KINDS[kind]}" >/sys/module/identity/parameters/pci')


def become(machine, address, kind, driver=None):
    """A function of the machine is now of a kind of KINDS; with a driver that has taken it, or without any."""
    script = f"""set -e; at=/sys/bus/pci/devices/{address}
        [ ! -e $at/driver ] || echo {address} >$at/driver/unbind
        echo "{address} {KINDS[kind]}" >/sys/module/identity/parameters/pci
    """
    if driver:
        script += f"""
        [ -e /sys/bus/pci/drivers/{driver} ] || echo {driver} >/sys/module/identity/parameters/driver
        echo {driver} >$at/driver_override; echo {address} >/sys/bus/pci/drivers/{driver}/bind
    """
    machine.sh(script)
