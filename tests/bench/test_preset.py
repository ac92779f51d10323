#!/usr/bin/env python3
"""test_preset.py SOURCE: the preset `bench` builds what docs/dev/performance.md says, every target that is named there exists,
and those that take seconds print figures."""
import pathlib, re, subprocess, sys

SOURCE = pathlib.Path(sys.argv[1]).resolve()
BUILD = SOURCE / "build" / "bench"


def call(*command):
    done = subprocess.run(command, cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}")
    return done.stdout


def main():
    call("cmake", "--preset", "bench")
    text = (SOURCE / "docs/dev/performance.md").read_text()
    targets = set(re.findall(r"^(bench_\w+):", call("ninja", "-C", BUILD, "-t", "targets", "all"), re.M))
    named = set(re.findall(r"\bbench_[a-z]+\b", text))
    if not named or named - targets:
        sys.exit(f"docs/dev/performance.md names {sorted(named - targets) or 'nothing'}; there are {sorted(targets)}")
    for target in ("bench_probes", "bench_audit"):
        said = call("cmake", "--build", BUILD, "--target", target)
        if not re.search(r"\d+\.\d+", said.rpartition("] ")[2]):
            sys.exit(f"{target} prints no figures: {said[-500:]}")
    print(f"{len(named)} targets")


main()
