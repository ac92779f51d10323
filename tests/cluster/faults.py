"""Faults that are planted on hosts of hosts.py, and one run of the program with each: which cause comes first, and which
hosts it calls bad and healthy."""
import contextlib, json, pathlib, re, shutil, subprocess, time

from hosts import environment

RUNNING = "fabric: allreduce 64 B"
ON_FABRIC = "export FI_TCP_IFACE=hsn0"


def folded(hosts):
    """Names of hosts as the lists have them: shk[1,3-4]."""
    numbers = sorted(int(h[3:]) for h in hosts)
    runs = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    parts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    return "" if not numbers else f"shk{numbers[0]}" if len(numbers) == 1 else f"shk[{','.join(parts)}]"


class Run:
    """One run over all hosts; its files are in the folder that all of them see."""

    def __init__(self, hosts, binary, count, each="true", sizes="4:64K", deadline=24, srun=("--wait=5",)):
        self.hosts = hosts
        self.report, self.good, self.bad, self.err = (hosts.dir / n for n in ("report.json", "good", "bad", "err"))
        for path in (self.report, self.bad):
            path.unlink(missing_ok=True)
        self.good.write_text("left of an earlier run\n")
        self.deadline, self.name = deadline, pathlib.Path(binary).name[:15]
        command = [binary, "run", "-v", "--timeout", str(deadline), "--sizes", sizes, "-o", self.report,
                   "--healthy-nodes", self.good, "--bad-nodes", self.bad]
        with open(self.err, "w") as err:
            self.process = subprocess.Popen(
                hosts.run("srun", "--mpi=pmix", f"-N{count}", f"-n{count}", *srun, "sh", "-c", each + '\nexec "$@"', "sh",
                          *command), stdout=subprocess.DEVNULL, stderr=err, env=environment())

    def said(self):
        return self.err.read_text()

    def until(self, text):
        """Is it said before the run ends?"""
        limit = time.monotonic() + 60
        while time.monotonic() < limit and self.process.poll() is None:
            if text in self.said():
                return True
            time.sleep(0.02)
        return False

    def until_report(self):
        limit = time.monotonic() + 2 * self.deadline + 30
        while not self.report.exists() and self.process.poll() is None and time.monotonic() < limit:
            time.sleep(0.1)

    def end(self):
        try:
            self.code = self.process.wait(timeout=2 * self.deadline + 60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.code = self.process.wait()
        self.document = json.loads(self.report.read_text()) if self.report.exists() else {}
        return self

    def lists(self):
        return tuple(p.read_text().strip() if p.exists() else None for p in (self.good, self.bad))

    def first(self):
        """The first cause, its scope, and the hosts of the rows that fail because of it."""
        first = (self.document.get("diagnoses") or [{}])[0]
        rows = [f for f in self.document.get("findings", []) if f["verdict"] == "fail" and f.get("diagnosis") == first.get("key")]
        return first.get("key"), first.get("scope"), {h for f in rows for h in f.get("nodes", [])}


class Fault:
    # says: words of a row that fails because of it
    """relation: it shows only by difference or between hosts, so that the majority tells; without one nobody is bad or
    healthy. alone: the same, where all other hosts have it."""

    def __init__(self, name, cause, relation=False, alone=False, says="", plant=None, each=None, during=None, **how):
        self.name, self.cause, self.relation, self.alone, self.how = name, cause, relation, alone, how
        self.says = says
        self.plant, self.each, self.during = plant, each, during

    @contextlib.contextmanager
    def planted(self, hosts, count, bad):
        with contextlib.ExitStack() as stack:
            for host in bad:
                if self.plant:
                    stack.enter_context(self.plant(hosts, count, host))
            yield

    def run(self, hosts, binary, count, bad):
        each = self.each(hosts) if self.each else ("", "true")
        there = f'case $(hostname) in {"|".join(bad)}) {each[1]} ;; esac'
        run = Run(hosts, binary, count, "\n".join(filter(None, (each[0], there))), **self.how)
        try:
            if self.during:
                if run.until(RUNNING):
                    self.during(run, bad)
            return run.end()
        finally:
            if run.process.poll() is None:
                run.process.kill()

    def expected(self, count, bad):
        """(good, bad) as the lists should be."""
        every = [f"shk{i + 1}" for i in range(count)]
        if (self.relation and 2 * len(bad) >= count) or (self.alone and len(bad) == count - 1):
            return "", ""
        return folded(h for h in every if h not in bad), folded(bad)


    def wrong(self, run, count, bad):
        """What of a run was wrong, as texts."""
        good_list, bad_list = self.expected(count, bad)
        cause, _, named = run.first()
        found = []
        if cause not in self.cause:
            found.append(f"first cause {cause}")
        elif good_list and named != set(bad):
            found.append(f"first cause on {', '.join(sorted(named)) or 'no host'}")
        if run.lists() != (good_list, bad_list):
            found.append("good {!r}, bad {!r}".format(*run.lists()))
        if run.code == 0:
            found.append("exit code 0")
        return found


def lossy(*rule):
    @contextlib.contextmanager
    def plant(hosts, _, host):
        filtered = hosts.command(host, "iptables")
        tried = subprocess.run([*filtered, "-A", *rule, "-m", "statistic", "--mode", "random", "--probability", "0.03",
                                "-j", "DROP"], capture_output=True, text=True)
        if tried.returncode:
            raise NotImplementedError(f"iptables cannot drop at random: {tried.stderr.strip()}")
        try:
            yield
        finally:
            subprocess.run([*filtered, "-F"], check=True)
    return plant


@contextlib.contextmanager
def small_port(hosts, count, host):
    """Jumbo frames everywhere, but the switch's port to the host takes 1500."""
    def mtu(size):
        for i in range(1, count + 1):
            hosts.on(f"shk{i}", "ip", "link", "set", "hsn0", "mtu", str(size))
            hosts.on("ctl", "ip", "link", "set", f"hsn0-{i}", "mtu", str(size))
        hosts.on("ctl", "ip", "link", "set", "shkhsn", "mtu", str(size))

    small = getattr(hosts, "small", set())
    hosts.small = small | {host}
    mtu(9000)
    for other in hosts.small:
        hosts.on("ctl", "ip", "link", "set", f"hsn0-{other[3:]}", "mtu", "1500")
    try:
        yield
    finally:
        hosts.small = small
        mtu(1500)


@contextlib.contextmanager
def full_shm(hosts, _, host):
    hosts.on(host, "sh", "-c", "cat /dev/zero >/dev/shm/full 2>/dev/null || :")
    try:
        yield
    finally:
        hosts.on(host, "rm", "-f", "/dev/shm/full")


def another_libfabric(hosts):
    """A copy of the system's at another place, or the one that the caller named."""
    named = getattr(hosts, "libfabric", None)
    if not named:
        known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
        named = re.search(r"libfabric\.so\.1 .*=> (\S+)", known).group(1)
    (hosts.dir / "lib").mkdir(exist_ok=True)
    shutil.copy(named, hosts.dir / "lib" / "libfabric.so.1")
    return "", f"export LD_LIBRARY_PATH={hosts.dir}/lib"


def signalled(signal):
    def during(run, bad):
        ranks = {host: run.hosts.processes(host, run.name)[-1] for host in bad}
        started = [subprocess.Popen(run.hosts.command(host, "kill", f"-{signal}", str(pid))) for host, pid in ranks.items()]
        for process in started:
            process.wait()
    return during


def cut(run, bad):
    links = [f"{net}-{host[3:]}" for host in bad for net in ("mgt0", "hsn0")]
    def all_links(state):
        run.hosts.on("ctl", "sh", "-c", 'for l; do ip link set "$l" ' + state + "; done", "sh", *links)
    all_links("down")
    try:
        run.until_report()
    finally:
        all_links("up")


def flapping(run, bad):
    """The fabric's port goes down and comes back, twice."""
    for _ in range(2):
        for state, seconds in (("down", 0.4), ("up", 1)):
            for host in bad:
                run.hosts.on("ctl", "ip", "link", "set", f"hsn0-{host[3:]}", state)
            time.sleep(seconds)


LOSS = {"sizes": "4:256K", "deadline": 45}
LONG = {"sizes": "4:64M"}
PLANTED = [
    Fault("another libfabric", ("libfabric-version-differs-across-nodes", "provider-differs-across-nodes"), relation=True,
          each=another_libfabric),
    Fault("another FI_PROVIDER", ("provider-differs-across-nodes",), relation=True,
          each=lambda hosts: ("", "export FI_PROVIDER=udp")),
    Fault("3 % loss into it", ("packet-loss",), relation=True, says="of what is sent to it is lost", plant=lossy("INPUT", "-i", "hsn0"),
          each=lambda hosts: (ON_FABRIC, "true"), **LOSS),
    Fault("3 % loss out of it", ("packet-loss",), says="of what it sends is lost", plant=lossy("OUTPUT", "-o", "hsn0"),
          each=lambda hosts: (ON_FABRIC, "true"), **LOSS),
    Fault("MTU hole", ("path-mtu-hole",), alone=True, says="small ones are answered", plant=small_port, each=lambda hosts: (ON_FABRIC, "true"),
          sizes="4:1M", deadline=20),
    Fault("full /dev/shm", ("shm-too-small",), plant=full_shm),
    Fault("low memlock", ("memlock-too-low",), relation=True, each=lambda hosts: ("", "ulimit -l 64")),
]
WHILE_RUNNING = [
    Fault("killed rank", ("rank-ended",), says="SIGKILL", during=signalled("KILL"), **LONG),
    Fault("stopped rank", ("rank-stopped",), says="SIGSTOP", during=signalled("STOP"), **LONG),
    Fault("flapping link", ("network-link-flaps",), says="went down", during=flapping,
          each=lambda hosts: (ON_FABRIC, "true"), sizes="4:8M", deadline=45),
    Fault("lost link", ("node-unreachable",), alone=True, says="acknowledges nothing", during=cut, **LONG),
]
FAULTS = PLANTED + WHILE_RUNNING
