"""Speed of `shakedown diagnose --log` on a large synthetic log of many NCCL ranks, beside ripgrep with the same patterns.
usage: logs.py BINARY SOURCE [--mib N]     needs python3-yaml; ripgrep is left out when it is not installed"""
import argparse, os, pathlib, random, re, resource, shutil, subprocess, tempfile, time, yaml

p = argparse.ArgumentParser()
p.add_argument("binary")
p.add_argument("source", type=pathlib.Path)
p.add_argument("--mib", type=int, default=1024)
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


def timed(*command, cores=None):
    """Wall and processor seconds, and peak memory in MiB, of the faster of two runs; on these cores."""
    best = None
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       preexec_fn=lambda: cores and os.sched_setaffinity(0, cores))
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if not best or cpu < best[1]:
            best = (wall, cpu, after.ru_maxrss / 1024)
    return best


def show(what, size, figures):
    wall, cpu, memory = figures
    print(f"{what:34} {wall:7.2f} s wall {cpu:7.2f} s of processors {size / 1e6 / cpu:8.0f} MB/s {memory:8.0f} MiB")


with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "job.log")
    size = write_log(log, a.mib << 20)
    rows = [r for f in sorted((a.source / "config" / "signatures").glob("*.yaml")) for r in yaml.safe_load(f.read_text())]
    print(f"{size / 1e6:.0f} MB, {len(rows)} signatures")
    mine = sorted(os.sched_getaffinity(0))
    for count in [n for n in (1, 2, 4, 8) if n <= len(mine)]:
        figures = timed(a.binary, "diagnose", "--log", log, "-o", os.devnull, "--format", "json", cores=mine[:count])
        show(f"shakedown diagnose --log, {count} cores", size, figures)
    if shutil.which("rg"):
        patterns = pathlib.Path(folder, "patterns")
        patterns.write_text("\n".join(r["pattern"] for r in rows if "pattern" in r) + "\n")
        show("rg -j1 -c -f (same patterns)", size, timed("rg", "-j1", "-c", "-f", patterns, log))
        show("rg -j1 -o -n -f (prints matches)", size, timed("rg", "-j1", "-n", "-o", "-f", patterns, log))
    else:
        print("ripgrep is not installed: nothing to compare with")
