"""Time and memory of an offline report over many nodes. Facts are those of a captured machine, with another
name, address, clock and free memory on every node and five odd nodes, which must be named.
usage: nodes.py SHAKEDOWN SOURCE_DIR [N ...]"""
import os, pathlib, re, subprocess, sys, tempfile, time

shakedown, source = sys.argv[1], pathlib.Path(sys.argv[2])
counts = [int(n) for n in sys.argv[3:]] or [1000, 10000]
print(f"{'nodes':>7} {'MB':>7} {'seconds':>8} {'RSS MB':>7}  odd nodes")
with tempfile.TemporaryDirectory(prefix="shk-bench-") as scratch:
    one, many, report = (os.path.join(scratch, f) for f in ("one.json", "many.jsonl", "report.md"))
    captured = os.path.join(scratch, "slingshot-amd")
    subprocess.run([source / "tests/tools/capture", "unpack", source / "tests/captures/slingshot-amd.json", captured], check=True)
    subprocess.run([shakedown, "probe", "--sysroot", captured, "-o", one], check=True)
    for count in counts:
        with open(many, "w") as out:
            odd = subprocess.run([source / "tests/tools/nodes", one, str(count)], stdout=out, check=True,
                                 stderr=subprocess.PIPE, text=True).stderr
        began = time.monotonic()
        child = subprocess.Popen([shakedown, "check", many, "-o", report])
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - began
        text = open(report).read()
        missing = [line for line in odd.splitlines() if not re.search(line.split()[0] + r"\b", text)]
        assert os.waitstatus_to_exitcode(status) == 1 and not missing, f"not named: {missing}"
        print(f"{count:7} {os.path.getsize(many) / 1e6:7.0f} {took:8.2f} {usage.ru_maxrss / 1024:7.0f}  all named",
              flush=True)
