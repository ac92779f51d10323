"""Hosts on this machine under a real Slurm (hosts.sh), for the tests beside it."""
import os, pathlib, shutil, subprocess, sys, tempfile, unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE / "hosts.sh"
SKIP = 77
NOT_OURS = ("SLURM", "SBATCH", "FI_", "NCCL", "PMI", "OMPI")


def missing():
    """Why the hosts cannot be made here; None when they can."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("ip", "srun", "slurmctld", "slurmd", "munged", "unshare", "nsenter"):
        if not shutil.which(tool):
            return f"no {tool}"
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                            "mount -t sysfs sysfs /sys && mount -t tmpfs tmp /tmp"], capture_output=True, text=True)
    return f"no namespaces: {probe.stderr.strip()}" if probe.returncode else None


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(NOT_OURS)}


class Hosts:
    """Hosts shk1 … shkN, a folder that all of them see, and what to run on them."""

    def __init__(self, count, *folders):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="shkc-"))
        self.state = self.dir / "slurm"
        try:
            subprocess.run([TOOL, "up", self.state, str(count), self.dir, *folders], check=True, timeout=90)
        except BaseException:
            self.down()
            raise

    def down(self):
        subprocess.run([TOOL, "down", self.state], timeout=60)
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, *command):
        """The arguments that start a command as a user on the login host would."""
        return [str(a) for a in (TOOL, "run", self.state, *command)]

    def command(self, host, *command):
        """The arguments that start a command on a host; "ctl" is the login host."""
        return [str(a) for a in (TOOL, "on", self.state, host, *command)]

    def on(self, host, *command, **how):
        """What a command on a host prints."""
        how = {"check": True, "timeout": 60, **how}
        return subprocess.run(self.command(host, *command), stdout=subprocess.PIPE, text=True, **how).stdout

    def net(self, host):
        """The file of a host's network namespace."""
        return subprocess.check_output([TOOL, "net", self.state, host], text=True).strip()

    def processes(self, host, name):
        """Ids on the host of its processes of that name, oldest first."""
        found = self.on(host, "sh", "-c", 'grep -lx "$1" /proc/[0-9]*/comm 2>/dev/null', "sh", name, check=False)
        return sorted(int(line.split("/")[2]) for line in found.split())

    def signal(self, host, signal, *pids):
        self.on(host, "kill", f"-{signal}", *map(str, pids))


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    why = missing()
    if why:
        print(f"skipped: hosts cannot be made here: {why}")
        sys.exit(SKIP)
    unittest.main(verbosity=2)
