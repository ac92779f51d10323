#!/usr/bin/env python3
"""probes.py SHAKEDOWN: wall time of every probe and check without a collective, beside fi_info's.

The two run in turns, so that a busy moment of the machine hits both; the medians are compared."""
import shutil, statistics, subprocess, sys, time

ROUNDS = 15


def wall(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def main():
    fi_info = shutil.which("fi_info")
    if not fi_info:
        sys.exit("bench: fi_info is not installed (Debian: libfabric-bin)")
    commands = {"shakedown --transport none": [sys.argv[1], "--transport", "none"],
                "shakedown --quick": [sys.argv[1], "--quick"],
                "fi_info": [fi_info]}
    times = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(wall(command))
    base = statistics.median(times["fi_info"])
    for name, t in times.items():
        print(f"{name:28} median {statistics.median(t) * 1e3:7.1f} ms, min {min(t) * 1e3:7.1f} ms, "
              f"max {max(t) * 1e3:7.1f} ms, {statistics.median(t) / base:5.2f} x fi_info")


main()
