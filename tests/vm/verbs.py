"""RDMA devices in virtual machines: software RoCE (rdma_rxe) and software iWARP (siw), and Slurm over the machines."""
import base64, json, os, pathlib, shutil, subprocess

import machine

ROCE = "modprobe rdma_rxe; modprobe rdma_ucm; rdma link add rxe0 type rxe netdev eth0"
PORT = "for i in $(seq 100); do grep -q ACTIVE /sys/class/infiniband/{0}/ports/1/state && break; sleep 0.1; done"
NEEDS = {"rdma": "iproute2", "srun": "slurm-wlm", "slurmctld": "slurm-wlm", "munged": "munge", "iptables": "iptables"}


def missing(*tools):
    """Why a test cannot be run here; None when it can."""
    lacks = [f"{tool} (package {NEEDS[tool]})" for tool in tools if not shutil.which(tool)]
    if lacks:
        return "no " + ", ".join(lacks)
    if not list(pathlib.Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so")):
        return "no driver of software RoCE for libibverbs (package ibverbs-providers)"
    return None


def iwarp():
    """The kernel module of software iWARP, which Debian's kernel leaves out: built from Debian's source of the same
    version, once. Raises machine.Missing where that cannot be."""
    _, root, release = machine.kernel()
    built = list((root / "lib" / "modules" / release).glob("kernel/drivers/infiniband/sw/siw/siw.ko*"))
    if built:
        return built[0]
    folder = machine.CACHE.with_name("shakedown-vm-siw") / release
    module = folder / "siw.ko"
    if not module.exists():
        shutil.rmtree(folder, ignore_errors=True)
        series, flavour = ".".join(release.split(".")[:2]), release.rpartition("-")[0]
        for name in (f"linux-source-{series}", f"linux-headers-{release}", f"linux-headers-{flavour}-common",
                     f"linux-kbuild-{series}"):
            machine.package(folder / "x", name)
        headers = folder / "x" / "usr" / "src" / f"linux-headers-{release}"
        makefile = headers / "Makefile"
        makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/x/usr/src/"))
        source = f"linux-source-{series}/drivers/infiniband/sw/siw"
        subprocess.run(["tar", "-xf", folder / "x" / "usr" / "src" / f"linux-source-{series}.tar.xz", "-C", folder,
                        source], check=True)
        made = subprocess.run(["make", "-C", headers, f"M={folder / source}", "CONFIG_RDMA_SIW=m", "modules"],
                              capture_output=True, text=True)
        if made.returncode:
            raise machine.Missing(f"siw does not build: {made.stderr.strip()[-200:]}")
        shutil.copy(folder / source / "siw.ko", module)
    return module


IWARP = ("modprobe rdma_ucm; modprobe libcrc32c; modprobe crc32c_generic; insmod {0}; "
         "rdma link add siw0 type siw netdev eth0")

CONF = """ClusterName=vm
SlurmctldHost=vm1
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/slurm/state
SlurmdSpoolDir=/slurm/spool
SlurmctldPidFile=/slurm/ctld.pid
SlurmdPidFile=/slurm/slurmd.pid
SlurmctldLogFile=/slurm/ctld.log
SlurmdLogFile=/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=600
MessageTimeout=100
KillWait=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=vm[1-{count}] CPUs=8 RealMemory=100
PartitionName=p Nodes=ALL Default=YES State=UP
"""


def slurm(machines):
    """Starts Slurm over all machines; vm1 is the login host, too."""
    count = len(machines.all)
    key = base64.b64encode(os.urandom(1024)).decode()
    conf = CONF.format(count=count)
    # the configuration is where Slurm looks without a variable: what it starts has none
    machines.sh(f"mkdir -p /slurm/state /slurm/spool /etc/slurm /run/munge /sys/fs/cgroup/system.slice; "
                f"echo {key} | base64 -d >/slurm/key; "
                "chmod 600 /slurm/key; "
                f"cat >/etc/slurm/slurm.conf <<'EOF'\n{conf}EOF\n"
                "printf 'CgroupPlugin=cgroup/v2\\nIgnoreSystemd=yes\\n' >/etc/slurm/cgroup.conf\n"
                "chmod 755 /run/munge; chown root: /run/munge\n"
                "munged --force --key-file=/slurm/key --pid-file=/slurm/munged.pid --log-file=/slurm/munged.log "
                "--seed-file=/slurm/seed --socket=/run/munge/munge.socket.2\n"
                f"[ $VM != 1 ] || slurmctld; slurmd -N vm$VM", 120)
    machines.all[0].sh(f'for i in $(seq 600); do [ "$(sinfo -h -t idle -o %D)" = {count} ] && exit 0; sleep 0.1; '
                       "done; sinfo; tail -n5 /slurm/*.log; exit 1", 120)


def run(vm, command, timeout=240):
    """The report (JSON) of a run whose command line leaves it in $OUT/report.json; without one, what was said."""
    where = vm.dir / "report.json"
    where.unlink(missing_ok=True)
    vm.start(command)
    status, out, err = vm.wait(timeout, check=False)
    if not where.exists():
        raise AssertionError(f"exit {status} without a report: {(out + err)[-2000:]}")
    return json.loads(where.read_text())


def row(found, setting):
    """The one row of this setting."""
    rows = [f for f in found["findings"] if f["setting"] == setting]
    if len(rows) != 1:
        raise AssertionError(f"{len(rows)} rows {setting}: {sorted({f['setting'] for f in found['findings']})}")
    return rows[0]
