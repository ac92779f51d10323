#!/usr/bin/env python3
"""shakedown's host all-reduce beside Open MPI's MPI_Allreduce on the same transport, in alternating
runs (ours, theirs, ours, theirs ...). Both are measured alike: same data, barrier, iterations and
statistic (tests/bench/mpi_allreduce.c). Per size the least time of the rounds is compared, which a
busy machine disturbs least; --json has every round.

  allreduce.py BUILD_DIR --transport shm --ranks 2,4
  allreduce.py BUILD_DIR --provider own                       own shared memory instead of libfabric's
  allreduce.py BUILD_DIR --transport tcp --hosts 2 --sizes 4:64M     two network namespaces joined by a
                                                              veth pair (root), removed at the end
"""
import argparse, contextlib, json, os, pathlib, shutil, subprocess, sys, tempfile, time

SUBNET = "10.213.{rail}.{host}"


def sh(*args, **kw):
    return subprocess.run([str(a) for a in args], check=True, stdout=subprocess.DEVNULL, **kw)


def size(text):
    units = {"K": 10, "M": 20, "G": 30}
    text = text.upper()
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)


def up(name, rails):
    """Waits for the interfaces' carrier: until then libfabric leaves them out."""
    for _ in range(200):
        links = json.loads(subprocess.check_output(["ip", "-n", name, "-j", "link"]))
        if sum(link["operstate"] == "UP" for link in links) == rails:
            return
        time.sleep(0.01)
    sys.exit("allreduce.py: the interfaces do not come up")


@contextlib.contextmanager
def hosts(count, rails=1):
    """Names of network namespaces that stand for hosts; none for one host."""
    names = [f"shk{os.getpid()}-{i}" for i in range(count)] if count > 1 else []
    try:
        for name in names:
            sh("ip", "netns", "add", name)
            sh("ip", "-n", name, "link", "set", "lo", "up")
            # Whatever the host prefers: BBR paces, where there is nothing to pace. Namespaces may only have
            # what is not restricted, which Reno always is.
            sh("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        for rail in range(rails if names else 0):
            sh("ip", "link", "add", f"r{rail}", "netns", names[0], "type", "veth", "peer", "name",
               f"r{rail}", "netns", names[1])
            for i, name in enumerate(names):
                address = SUBNET.format(rail=rail, host=i + 1) + "/24"
                sh("ip", "-n", name, "addr", "add", address, "dev", f"r{rail}")
                sh("ip", "-n", name, "link", "set", f"r{rail}", "addrgenmode", "none", "up")
        for name in names:
            up(name, rails)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


# Open MPI starts its daemon on the "other host" with this instead of ssh. A host name of its own
# keeps it from taking the two for one.
AGENT = """#!/bin/sh
host=$1; shift
exec ip netns exec {name} unshare -u sh -c 'hostname {name}; exec sh -c "$0"' "$*"
"""


class Theirs:
    """One run of MPI_Allreduce."""

    def __init__(self, build, scratch, transport, ranks, spaces):
        self.program = build / "tests/bench/mpi_allreduce"
        self.scratch = scratch
        btl = {"shm": "self,vader", "tcp": "self,tcp"}[transport]
        run = ["mpirun", "-np", ranks, "--mca", "pml", "ob1", "--mca", "btl", btl]
        run += ["--bind-to", "core"] if ranks <= os.cpu_count() and not spaces else ["--bind-to", "none"]
        if ranks > os.cpu_count():  # of two hosts that share one machine, MPI would not notice
            run += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        if spaces:
            agent = scratch / "agent"
            agent.write_text(AGENT.format(name=spaces[1]))
            agent.chmod(0o755)
            each = (ranks + 1) // 2
            run += ["--host", f"{SUBNET.format(rail=0, host=1)}:{each},{SUBNET.format(rail=0, host=2)}:{ranks - each}",
                    "--mca", "plm_rsh_agent", agent, "--mca", "btl_tcp_if_include", "r0",
                    "--mca", "oob_tcp_if_include", "r0"]
            if ranks <= os.cpu_count():
                run += ["--mca", "hwloc_base_binding_policy", "none"]
            run = ["ip", "netns", "exec", spaces[0], "unshare", "-u", "sh", "-c",
                   'hostname "$0"; exec "$@"', spaces[0], *run]
        self.run = [str(a) for a in run]
        self.ranks = ranks

    def once(self, least, most):
        barrier = self.scratch / "barrier"
        barrier.write_bytes(bytes(65536))
        env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "ASAN_OPTIONS": "detect_leaks=0"}  # of the MPI library
        pin = ["sh", "-c", 'exec taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc))) "$0" "$@"'] \
            if self.run[0] == "ip" and self.ranks <= os.cpu_count() else []
        p = subprocess.run([*self.run, *pin, str(self.program), str(barrier), str(least), str(most)], env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
        if p.returncode != 0:
            sys.exit(f"allreduce.py: mpirun ended with {p.returncode}")
        return json.loads(p.stdout)


class Ours:
    def __init__(self, build, transport, ranks, spaces, env):
        self.head = [str(build / "tests/bench/fabric_allreduce"), str(ranks), transport]
        self.tail = [f"/run/netns/{name}" for name in spaces]
        self.env = {**os.environ, **env}

    def once(self, least, most):
        p = subprocess.run([*self.head, str(least), str(most), *self.tail], env=self.env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
        if p.returncode != 0:
            sys.exit(f"allreduce.py: fabric_allreduce ended with {p.returncode}")
        return json.loads(p.stdout)


def by_size(result):
    return {row["bytes"]: row for row in result["sizes"] if row.get("type", "float32") == "float32"}


def compare(ours, theirs):
    """Rows of the table: least times over the rounds, their ratio, the median of the rounds' ratios."""
    mine, other = [by_size(r) for r in ours], [by_size(r) for r in theirs]
    rows = []
    for b in sorted(mine[0]):
        a, c = [m[b]["time_us"] for m in mine], [o[b]["time_us"] for o in other]
        paired = sorted(x / y for x, y in zip(a, c))
        rows.append({"bytes": b, "algorithm": mine[0][b]["algorithm"], "ours_us": min(a), "theirs_us": min(c),
                     "ratio": min(a) / min(c), "paired": paired[len(paired) // 2]})
    return rows


def roof(ours, size):
    """Highest bandwidth of plain puts in any round, for the nearest size at or below."""
    found = [(row["bytes"], row["bandwidth"]) for m in ours for row in (m.get("roofline") or {}).get("sizes", [])
             if row["bytes"] <= size]
    nearest = max((b for b, _ in found), default=None)
    return max((bandwidth for b, bandwidth in found if b == nearest), default=None)


def show(rows):
    print(f"{'bytes':>10} {'algorithm':<10} {'ours us':>10} {'MPI us':>10} {'ratio':>6} {'paired':>6}"
          f" {'busbw':>6} {'roof':>6} {'of it':>6}")
    for r in rows:
        top = f"{r['roof']:>6.2f} {r['busbw'] / r['roof']:>6.2f}" if r["roof"] else ""
        print(f"{r['bytes']:>10} {r['algorithm']:<10} {r['ours_us']:>10.2f} {r['theirs_us']:>10.2f} "
              f"{r['ratio']:>6.2f} {r['paired']:>6.2f} {r['busbw']:>6.2f} {top}")


def one(options, build, ranks, scratch, spaces):
    provider = options.provider or options.transport
    env = dict(item.split("=", 1) for item in options.env)
    ours = Ours(build, provider, ranks, spaces, env)
    theirs = Theirs(build, scratch, options.transport, ranks, spaces)
    mine, other = [], []
    for _ in range(options.rounds):
        mine.append(ours.once(*options.sizes))
        other.append(theirs.once(*options.sizes))
    rows = compare(mine, other)
    for r in rows:
        r["busbw"] = r["bytes"] / r["ours_us"] / 1000 * 2 * (ranks - 1) / ranks
        r["roof"] = roof(mine, r["bytes"])
    latency = min((m["roofline"]["latency_us"] for m in mine if m.get("roofline")), default=0)
    way = "own shared memory" if provider == "own" else f"libfabric {mine[0]['version']} provider {mine[0]['provider']}"
    print(f"\n{ranks} ranks on {max(len(spaces), 1)} host(s): {way}"
          f" beside {other[0]['library']} btl {options.transport}; least of {options.rounds} alternating rounds;"
          f" put {latency:.2f} us one way")
    show(rows)
    sys.stdout.flush()
    return {"ranks": ranks, "ours": mine, "theirs": other, "rows": rows}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--transport", choices=("shm", "tcp"), default="shm")
    p.add_argument("--provider", help="libfabric provider, if not named as the transport; own: shared memory without libfabric")
    p.add_argument("--ranks", default="2")
    p.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    p.add_argument("--sizes", default="4:64M")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for our ranks")
    p.add_argument("--json", type=pathlib.Path, help="write every round here")
    options = p.parse_args()
    options.sizes = [size(s) for s in options.sizes.split(":")]
    if shutil.which("mpirun") is None or not (options.build / "tests/bench/mpi_allreduce").exists():
        sys.exit("allreduce.py: no Open MPI (packages openmpi-bin, libopenmpi-dev), or it was not there at build time")
    results = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, hosts(options.hosts) as spaces:
        for ranks in map(int, options.ranks.split(",")):
            results.append(one(options, options.build.resolve(), ranks, pathlib.Path(folder), spaces))
    if options.json:
        options.json.write_text(json.dumps(results))


main()
