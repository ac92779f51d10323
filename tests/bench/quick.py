#!/usr/bin/env python3
"""quick.py SHAKEDOWN [PAIRS]: `--quick` beside `fi_info` of the same libfabric, in turns.

Prints least and median of wall and CPU time (user and system, children included), the ratios pair by pair, and, apart, what the
library itself costs in a process that does nothing but load it and call fi_getinfo() once, and what the program's own part costs:
`--quick` where no libfabric is found."""

import ctypes
import os
import resource
import shutil
import statistics
import struct
import sys
import time


def quiet():
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)


def run(command, **variables):
    start = time.monotonic()
    pid = os.fork()
    if not pid:
        quiet()
        os.execve(command[0], command, {**os.environ, **variables})
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit("%s: exit %d" % (command[0], os.waitstatus_to_exitcode(status)))
    return time.monotonic() - start, used.ru_utime + used.ru_stime


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def library():
    """(wall, CPU) of dlopen() and fi_getinfo() without hints; the process around them is not counted."""
    end, out = os.pipe()
    pid = os.fork()
    if not pid:
        quiet()
        start, before = time.monotonic(), spent()
        lib = ctypes.CDLL("libfabric.so.1")
        lib.fi_getinfo.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        info = ctypes.c_void_p()
        lib.fi_getinfo(lib.fi_version(), None, None, 0, None, ctypes.byref(info))
        os.write(out, struct.pack("dd", time.monotonic() - start, spent() - before))
        os._exit(0)
    os.close(out)
    got = os.read(end, 16)
    os.close(end)
    os.waitpid(pid, 0)
    return struct.unpack("dd", got) if len(got) == 16 else sys.exit("libfabric.so.1 cannot be asked")


def main():
    yardstick = shutil.which("fi_info")
    if len(sys.argv) < 2 or not yardstick:
        sys.exit(__doc__ if yardstick else "fi_info is not installed")
    ours, theirs = [os.path.abspath(sys.argv[1]), "--quick"], [yardstick]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    run(ours), run(theirs)
    none = {"SHAKEDOWN_LIBFABRIC": "/nonexistent/libfabric.so.1"}
    rows = [(run(ours), run(theirs), library(), run(ours, **none)) for _ in range(pairs)]
    print("| | --quick | fi_info | ratio | libfabric alone | by fi_info |\n|---|---:|---:|---:|---:|---:|")
    for i, name in enumerate(("wall", "CPU")):
        for how, pick in (("least", min), ("median", statistics.median)):
            a, b, c = (pick(r[k][i] for r in rows) * 1e3 for k in range(3))
            ratio, part = (pick(r[k][i] / r[1][i] for r in rows) if how == "median" else (a, b, c)[k] / b for k in (0, 2))
            print("| %s, %s | %.0f ms | %.0f ms | %.2f | %.0f ms | %.2f |" % (name, how, a, b, ratio, c, part))
    own = [r[3][1] * 1e3 for r in rows]
    print("\nCPU time of its own, without libfabric: %.0f ms, median of %d; %.0f ms the least" % (statistics.median(own), pairs, min(own)))
    print("load: " + open("/proc/loadavg").read().split()[0])


main()
