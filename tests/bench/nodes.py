"""Time and memory of an offline report over many nodes, on the terminal with Markdown and as HTML. Facts are those of a captured machine, with another
name, address, clock and free memory on every node and five odd nodes, which must be named.
usage: nodes.py SHAKEDOWN SOURCE_DIR [N ...]"""
import os, pathlib, re, subprocess, sys, tempfile, time

shakedown, source = sys.argv[1], pathlib.Path(sys.argv[2])
counts = [int(n) for n in sys.argv[3:]] or [1000, 10000]
print(f"{'nodes':>7} {'MB':>7} {'seconds':>8} {'RSS MB':>7} {'HTML s':>7} {'RSS MB':>7}  odd nodes")


def check(facts, report):
    """Seconds, and the most memory in MB."""
    began = time.monotonic()
    child = subprocess.Popen([shakedown, "check", facts, "-o", report], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 1, status
    return time.monotonic() - began, usage.ru_maxrss / 1024



with tempfile.TemporaryDirectory(prefix="shk-bench-") as scratch:
    one, many, report, page = (os.path.join(scratch, f) for f in ("one.json", "many.jsonl", "report.md", "page.html"))
    captured = os.path.join(scratch, "slingshot-amd")
    subprocess.run([source / "tests/tools/capture", "unpack", source / "tests/captures/slingshot-amd.json", captured], check=True)
    subprocess.run([shakedown, "probe", "--sysroot", captured, "-o", one], check=True)
    for count in counts:
        with open(many, "w") as out:
            odd = subprocess.run([source / "tests/tools/nodes", one, str(count)], stdout=out, check=True,
                                 stderr=subprocess.PIPE, text=True).stderr
        took, memory = check(many, report)
        page_took, page_memory = check(many, page)
        text = open(report).read()
        missing = [line for line in odd.splitlines() if not re.search(line.split()[0] + r"\b", text)]
        assert not missing, f"not named: {missing}"
        print(f"{count:7} {os.path.getsize(many) / 1e6:7.0f} {took:8.2f} {memory:7.0f} {page_took:7.2f} {page_memory:7.0f}  all named",
              flush=True)
