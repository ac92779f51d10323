"""Speed of `shakedown diagnose --log` on a large synthetic log of many NCCL ranks, and on one whose lines are all unlike, beside ripgrep
with the same patterns.
usage: logs.py BINARY SOURCE [--mib N] [--also BINARY]     --also: one that was built with another engine (-DSHK_VECTORSCAN=OFF)
needs python3-yaml; ripgrep is left out when it is not installed"""
import argparse, os, pathlib, random, re, resource, shutil, subprocess, tempfile, time, yaml

SECONDS_MAX = 60

p = argparse.ArgumentParser()
p.add_argument("binary")
p.add_argument("source", type=pathlib.Path)
p.add_argument("--mib", type=int, default=1024)
p.add_argument("--also", nargs="*", default=[])
a = p.parse_args()


def templates():
    """Lines of the real runs, with the process, device and rank left open."""
    lines = []
    for log in sorted((a.source / "tests" / "logs" / "healthy").glob("nccl-2.28-*.log")):
        for line in log.read_text(errors="replace").splitlines():
            body = re.sub(r"^\S+:\d+:\d+ \[\d\] ", "{who} ", line)
            if body != line:
                lines.append(body.replace("{", "{{").replace("}", "}}").replace("{{who}}", "{who}"))
    return lines


def write_log(path, size):
    """A block of 512 ranks, each with pointers of its own, repeated with other line breaks until the size is reached."""
    lines, pointer = templates(), re.compile(r"0x[0-9a-f]{6,}")
    random.seed(512)
    with open(path, "w") as out:
        block = []
        for rank in range(512):
            who = f"node{rank // 8:03}:{9000 + rank % 8}:{10000 + rank} [{rank % 8}]"
            block += [pointer.sub(lambda _: hex(0x7f0000000000 + random.getrandbits(40)), line.format(who=who)) for line in lines[rank % 7::7]]
        text = "\n".join(block) + "\n"
        while out.tell() < size:
            out.write(text)
            out.write(f"step {out.tell()}: loss 2.3\n")
    return os.path.getsize(path)


def write_unlike(path, size):
    """Lines of all the logs of the tests, each with a word of its own."""
    lines = [line for log in sorted((a.source / "tests" / "logs").rglob("*.log")) for line in log.read_text(errors="replace").splitlines() if line]
    random.seed(3)
    with open(path, "w") as out:
        while out.tell() < size:
            out.writelines(f"{random.choice(lines)} {''.join(random.choices('abcdefghijklmnop', k=8))}\n" for _ in range(1000))
    return os.path.getsize(path)


def engine(binary):
    said = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout
    return next((line.split()[-1] for line in said.splitlines() if line.startswith("log engine")), "?")


def limit(cores):
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    if cores:
        os.sched_setaffinity(0, cores)


def timed(*command, cores=None):
    """Wall and processor seconds, and peak memory in MiB, of the faster of two runs; on these cores."""
    best = None
    for _ in range(2):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: limit(cores))
        _, status, used = os.wait4(child.pid, 0)
        wall, cpu = time.monotonic() - start, used.ru_utime + used.ru_stime
        if os.WIFSIGNALED(status):
            return None
        if not best or cpu < best[1]:
            best = (wall, cpu, used.ru_maxrss / 1024)
    return best


def show(what, size, figures):
    if not figures:
        print(f"{what:34} did not end in {SECONDS_MAX} s of processors")
        return
    wall, cpu, memory = figures
    print(f"{what:34} {wall:7.2f} s wall {cpu:7.2f} s of processors {size / 1e6 / cpu:8.0f} MB/s {memory:8.0f} MiB")


def bench(what, log, size, patterns, cores):
    print(f"{what}: {size / 1e6:.0f} MB")
    for binary in [a.binary, *a.also]:
        for count in cores:
            figures = timed(binary, "diagnose", "--log", log, "-o", os.devnull, "--format", "json", cores=mine[:count])
            show(f"shakedown, {engine(binary)}, {count} core{'s' * (count > 1)}", size, figures)
    if shutil.which("rg"):
        show("rg -j1 -c -f (same patterns)", size, timed("rg", "-j1", "-c", "-f", patterns, log))
        show("rg -j1 -o -n -f (prints matches)", size, timed("rg", "-j1", "-n", "-o", "-f", patterns, log))
    else:
        print("ripgrep is not installed: nothing to compare with")


mine = sorted(os.sched_getaffinity(0))
with tempfile.TemporaryDirectory() as folder:
    log, patterns = pathlib.Path(folder, "job.log"), pathlib.Path(folder, "patterns")
    rows = [r for f in sorted((a.source / "config" / "signatures").glob("*.yaml")) for r in yaml.safe_load(f.read_text())]
    patterns.write_text("\n".join(r["pattern"] for r in rows if "pattern" in r) + "\n")
    print(f"{len(rows)} signatures")
    bench("512 ranks", log, write_log(log, a.mib << 20), patterns, [n for n in (1, 2, 4, 8) if n <= len(mine)])
    bench("lines unlike each other", log, write_unlike(log, a.mib << 18), patterns, [1])
