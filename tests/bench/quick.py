#!/usr/bin/env python3
"""quick.py SHAKEDOWN [PAIRS]: `--quick` beside `fi_info` of the same libfabric, in turns.

Prints the medians of wall and CPU time (user and system, children included), the ratios pair by pair, and the CPU time that is
not libfabric's: the difference of each pair. fi_info does nothing but ask libfabric for all that it offers, which --quick does, too."""

import os
import shutil
import statistics
import sys
import time


def run(command):
    start = time.monotonic()
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.execv(command[0], command)
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit("%s: exit %d" % (command[0], os.waitstatus_to_exitcode(status)))
    return time.monotonic() - start, used.ru_utime + used.ru_stime


def main():
    yardstick = shutil.which("fi_info")
    if len(sys.argv) < 2 or not yardstick:
        sys.exit(__doc__ if yardstick else "fi_info is not installed")
    ours, theirs = [os.path.abspath(sys.argv[1]), "--quick"], [yardstick]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    run(ours), run(theirs)
    rows = [(run(ours), run(theirs)) for _ in range(pairs)]
    print("| | --quick | fi_info | ratio |\n|---|---:|---:|---:|")
    for i, name in enumerate(("wall", "CPU")):
        a, b = (statistics.median(r[k][i] for r in rows) for k in (0, 1))
        ratio = statistics.median(r[0][i] / r[1][i] for r in rows)
        print("| %s | %.0f ms | %.0f ms | %.2f |" % (name, a * 1e3, b * 1e3, ratio))
    own = statistics.median(r[0][1] - r[1][1] for r in rows)
    print("\nCPU time beside libfabric's: %.0f ms, median of %d pairs" % (own * 1e3, pairs))


main()
